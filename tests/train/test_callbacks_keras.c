/* Keras's callbacks. A callback before them writes the watched values into the logs, so that each epoch's
 * value is known. */
#include "model/support.h"
#include "support/folder.h"
#include <mixtape/callback.h>
#include <sys/stat.h>
#include <unistd.h>

static mix_tensor *zeros(int64_t n) { return mix_fill(MIX_SHAPE(n, 1), 0, F32); }

typedef struct script {
  const char *name;
  double values[12];
  bool move; /* sets the weight to the epoch's number */
} script;
static mix_status play(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  script *s = context;
  if (s->move) mix_model_set_weights(model, mix_list_of(mix_fill(MIX_SHAPE(1, 1), (double)epoch, F32)));
  return mix_logs_set(logs, s->name, s->values[epoch]);
}
static mix_callback *player(script *s) { return mix_callback_new(.on_epoch_end = play, .context = s); }

static mix_history *train(mix_model *model, script *s, int64_t epochs, mix_callback *callback) {
  mix_history *history = mix_model_fit(model, counting(2), zeros(2), .epochs = epochs, .verbose = MIX_SILENT,
                                       .callbacks = mix_list_of(player(s), callback));
  assert_no_error();
  return history;
}
static int64_t epochs_run(script *s, mix_callback *callback) {
  return mix_history_epochs(train(product_model(1, 0), s, 12, callback));
}

static void early_stopping_waits_for_patience(void **state) {
  (void)state;
  script s = {"val_loss", {3, 2, 2, 2, 1, 1, 1}, false};
  assert_int_equal(epochs_run(&s, mix_early_stopping(.patience = 2)), 4);
  /* Epoch 7 is 0, the best; 8, 9 and 10 are no better. */
  assert_int_equal(epochs_run(&s, mix_early_stopping(.patience = 3)), 11);
  /* The first epoch without an improvement. */
  assert_int_equal(epochs_run(&s, mix_early_stopping(.patience = 0)), 3);
}
static void early_stopping_min_delta_and_baseline(void **state) {
  (void)state;
  script s = {"val_loss", {3, 2.5, 2.25, 2, 1.75, 1.5}, false};
  /* 2.25 is better than 3 by more than 0.5, but 2.5 is not. Then 2 and 1.75 are not better, and training
   * stops. */
  assert_int_equal(epochs_run(&s, mix_early_stopping(.patience = 2, .min_delta = 0.5)), 5);
  /* No epoch before the sixth beats 1.6: the wait counts on through the improvements, and ends at an epoch
   * without one. */
  script t = {"val_loss", {3, 2, 1.9, 1.9, 1.5}, false};
  assert_int_equal(epochs_run(&t, mix_early_stopping(.patience = 2, .baseline = 1.6)), 4);
  script u = {"val_loss", {3, 1.5, 1.6, 1.7, 1}, false};
  assert_int_equal(epochs_run(&u, mix_early_stopping(.patience = 2, .baseline = 1.6)), 4);
}
static void early_stopping_starts_from_an_epoch(void **state) {
  (void)state;
  script s = {"val_loss", {1, 2, 3, 4, 5, 6, 7, 8}, false};
  assert_int_equal(epochs_run(&s, mix_early_stopping(.patience = 1)), 2);
  assert_int_equal(epochs_run(&s, mix_early_stopping(.patience = 1, .start_from_epoch = 4)), 6);
}
static void early_stopping_directions_of_tf_keras(void **state) {
  (void)state;
  script up = {"val_accuracy", {1, 2, 3, 3, 3}, false};
  assert_int_equal(epochs_run(&up, mix_early_stopping(.monitor = "val_accuracy", .patience = 1)), 4);
  assert_int_equal(
      epochs_run(&up, mix_early_stopping(.monitor = "val_accuracy", .patience = 1, .mode = "min")), 2);
  script auc = {"auc", {1, 2, 1}, false};
  assert_int_equal(epochs_run(&auc, mix_early_stopping(.monitor = "auc", .patience = 1)), 3);
  script other = {"thing", {1, 2, 1}, false};
  assert_int_equal(epochs_run(&other, mix_early_stopping(.monitor = "thing", .patience = 1)), 2);
}
static void early_stopping_directions_of_keras3(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  script up = {"val_accuracy", {1, 2, 3, 3, 3}, false};
  mix_model *model = product_model(1, 0);
  mix_model_compile(model, .loss = "mse", .metrics = {"accuracy", "mae"},
                    .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  assert_int_equal(
      mix_history_epochs(train(model, &up, 12, mix_early_stopping(.monitor = "val_accuracy", .patience = 1))),
      4);
  script down = {"mae", {3, 2, 2}, false};
  assert_int_equal(
      mix_history_epochs(train(model, &down, 12, mix_early_stopping(.monitor = "mae", .patience = 1))), 3);
  assert_null(mix_model_fit(model, counting(2), zeros(2), .verbose = MIX_SILENT,
                            .callbacks = mix_list_of(mix_early_stopping(.monitor = "thing"))));
  assert_error(MIX_VALUE_ERROR, "set mode to max or min");
}
static void early_stopping_restores_the_best_weights(void **state) {
  (void)state;
  script s = {"val_loss", {3, 2, 1, 2, 3, 4}, true};
  for (int stopped = 0; stopped < 2;
       /* Restored at the end of training, whether the callback or the last epoch ended it. */
       stopped++) {
    mix_model *model = product_model(1, 0);
    mix_history *history =
        train(model, &s, stopped ? 12 : 4, mix_early_stopping(.patience = 2, .restore_best_weights = true));
    assert_int_equal(mix_history_epochs(history), stopped ? 5 : 4);
    assert_true(weight_at(model, 0, 0) == 2);
  }
  mix_model *model = product_model(1, 0);
  train(model, &s, 4, mix_early_stopping(.patience = 5));
  assert_true(weight_at(model, 0, 0) == 3);
}
static void a_name_that_is_missing_is_a_warning(void **state) {
  (void)state;
  script s = {"other", {0}, false};
  assert_int_equal(epochs_run(&s, mix_early_stopping(.patience = 1)), 12);
  assert_int_equal(epochs_run(&s, mix_reduce_lr_on_plateau(.patience = 1)), 12);
}

/* ---- learning rates ---- */

static double halve(void *context, int64_t epoch, double rate) {
  *(double *)context += rate;
  return epoch ? rate / 2 : rate;
}
static double broken_schedule(void *context, int64_t epoch, double rate) {
  (void)context, (void)epoch;
  return rate / 0.0;
}
static void the_scheduler_sets_and_logs_the_rate(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.5);
  double sum = 0;
  mix_history *history = mix_model_fit(model, zeros(2), zeros(2), .epochs = 3, .verbose = MIX_SILENT,
                                       .callbacks = mix_list_of(mix_learning_rate_scheduler(halve, &sum)));
  assert_no_error();
  static const double rates[] = {0.5, 0.25, 0.125};
  for (int e = 0; e < 3; e++) assert_true(mix_logs_get(mix_history_epoch(history, e), "lr") == rates[e]);
  assert_true(sum == 0.5 + 0.5 + 0.25); /* the rates that it was called with */
  assert_true(mix_optimizer_learning_rate(mix_model_optimizer(model)) == 0.125);
  assert_null(mix_model_fit(model, zeros(2), zeros(2), .verbose = MIX_SILENT,
                            .callbacks = mix_list_of(mix_learning_rate_scheduler(broken_schedule, NULL))));
  assert_error(MIX_VALUE_ERROR, "finite");
  mix_model_compile(model, .loss = "mse",
                    .optimizer = mix_sgd(.schedule = mix_exponential_decay(1, 1, 0.5, false)));
  assert_null(mix_model_fit(model, zeros(2), zeros(2), .verbose = MIX_SILENT,
                            .callbacks = mix_list_of(mix_learning_rate_scheduler(halve, &sum))));
  assert_error(MIX_TYPE_ERROR, "schedule");
}

static void check_rates(mix_callback *callback, script *s, int count, const double *rates) {
  mix_model *model = product_model(1, 1);
  mix_history *history = mix_model_fit(model, zeros(2), zeros(2), .epochs = count, .verbose = MIX_SILENT,
                                       .callbacks = mix_list_of(player(s), callback));
  assert_no_error();
  for (int e = 0; e < count; e++) assert_true(mix_logs_get(mix_history_epoch(history, e), "lr") == rates[e]);
}
/* An epoch's log has the rate used for that epoch. */
static void a_plateau_reduces_the_rate(void **state) {
  (void)state;
  script s = {"val_loss", {1, 1, 1, 1, 1, 1, 1}, false};
  check_rates(mix_reduce_lr_on_plateau(.factor = 0.5, .patience = 2), &s, 6,
              (const double[]){1, 1, 1, 0.5, 0.5, 0.25});
  check_rates(mix_reduce_lr_on_plateau(.factor = 0.5, .patience = 2, .min_lr = 0.5), &s, 6,
              (const double[]){1, 1, 1, 0.5, 0.5, 0.5});
  /* Reduced after epoch 1. Epochs 2 and 3 are the cooldown, but as in Keras its last epoch already counts:
   * epoch 3 reduces again. */
  check_rates(mix_reduce_lr_on_plateau(.factor = 0.5, .patience = 1, .cooldown = 2), &s, 6,
              (const double[]){1, 1, 0.5, 0.5, 0.25, 0.25});
  script slow = {"val_loss", {1, 0.99995, 0.9999, 0.5, 0.5}, false}; /* within min_delta, 1e-4, of the best */
  check_rates(mix_reduce_lr_on_plateau(.factor = 0.5, .patience = 2), &slow, 4,
              (const double[]){1, 1, 1, 0.5});
  check_rates(mix_reduce_lr_on_plateau(.factor = 0.5, .patience = 2, .min_delta = MIX_ZERO), &slow, 4,
              (const double[]){1, 1, 1, 1});
  assert_null(mix_reduce_lr_on_plateau(.factor = 1));
  assert_error(MIX_VALUE_ERROR, "factor is 1");
}

/* ---- files ---- */

static bool is_there(const char *name) { return access(in_folder(name), F_OK) == 0; }
static double saved_weight(const char *name) {
  double value = 0;
  MIX_SCOPE { value = at(mix_npz_get(mix_npz_open(in_folder(name)), "product/kernel"), 0); }
  return value;
}

static void a_checkpoint_is_named_by_epoch_and_logs(void **state) {
  (void)state;
  script s = {"val_loss", {1.25, 0.5}, true};
  train(product_model(1, 0), &s, 2,
        mix_model_checkpoint(in_folder("a/b/w{epoch:03d}-{val_loss:.2f}-{{{epoch}}}-{val_loss}.npz")));
  assert_true(saved_weight("a/b/w001-1.25-{1}-1.25.npz") == 0);
  assert_true(saved_weight("a/b/w002-0.50-{2}-0.5.npz") == 1);
}
/* Python has no sign for NaN, and zero-pads non-finite numbers too; C does neither. */
static void a_checkpoint_named_by_nan_or_infinity_is_named_as_by_python(void **state) {
  (void)state;
  static const struct {
    double value;
    const char *plain, *padded;
  } cases[] = {{NAN, "nan,nan,NAN", "00nan,     nan,00000NAN,000nan"},
               {-NAN, "nan,nan,NAN", "00nan,     nan,00000NAN,000nan"},
               {INFINITY, "inf,inf,INF", "00inf,     inf,00000INF,000inf"},
               {-INFINITY, "-inf,-inf,-INF", "-0inf,    -inf,-0000INF,-00inf"},
               {-1.5, "-1.50,-1.500000e+00,-1.5", "-1.50,   -1.50,-1.500000,-001.5"},
               {1.5, "1.50,1.500000e+00,1.5", "01.50,    1.50,1.500000,0001.5"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char name[64];
    script s = {"x", {cases[i].value}, false};
    train(product_model(1, 0), &s, 1, mix_model_checkpoint(in_folder("p{x:.2f},{x:e},{x:G}.npz")));
    snprintf(name, sizeof name, "p%s.npz", cases[i].plain);
    assert_true(is_there(name) && !unlink(in_folder(name)));
    train(product_model(1, 0), &s, 1,
          mix_model_checkpoint(in_folder("p{x:05.2f},{x:8.2f},{x:08F},{x:06}.npz")));
    snprintf(name, sizeof name, "p%s.npz", cases[i].padded);
    assert_true(is_there(name) && !unlink(in_folder(name)));
  }
}
static void the_best_checkpoint_is_kept(void **state) {
  (void)state;
  script s = {"val_loss", {3, 1, 2, 0.5}, true};
  train(product_model(1, 0), &s, 3, mix_model_checkpoint(in_folder("best.npz"), .save_best_only = true));
  assert_true(saved_weight("best.npz") == 1);
  script t = {"val_accuracy", {1, 3, 2}, true};
  train(product_model(1, 0), &t, 3,
        mix_model_checkpoint(in_folder("up{epoch}.npz"), .save_best_only = true, .monitor = "val_accuracy"));
  assert_true(is_there("up1.npz") && is_there("up2.npz") && !is_there("up3.npz"));
  train(product_model(1, 0), &s, 4,
        mix_model_checkpoint(in_folder("under{epoch}.npz"), .save_best_only = true,
                             .initial_value_threshold = 0.75));
  assert_true(!is_there("under1.npz") && !is_there("under2.npz") && is_there("under4.npz"));
}
static void checkpoints_by_batches(void **state) {
  (void)state;
  mix_model_fit(
      product_model(1, 0), counting(5), zeros(5), .batch_size = 1, .epochs = 2, .verbose = MIX_SILENT,
      .callbacks = mix_list_of(mix_model_checkpoint(in_folder("n{epoch}-{batch:02d}.npz"), .save_freq = 3)));
  assert_no_error();
  assert_true(is_there("n1-03.npz") && is_there("n2-01.npz") && is_there("n2-04.npz"));
  assert_false(is_there("n1-01.npz") || is_there("n1-05.npz") || is_there("n2-05.npz"));
}
static void checkpoints_of_whole_models(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.125);
  mix_model_fit(model, counting(4), zeros(4), .batch_size = 2, .verbose = MIX_SILENT,
                .callbacks =
                    mix_list_of(mix_model_checkpoint(in_folder("whole.keras")),
                                mix_model_checkpoint(in_folder("whole.h5")),
                                mix_model_checkpoint(in_folder("part.h5"), .save_weights_only = true),
                                mix_model_checkpoint(in_folder("part.weights.h5"))));
  assert_no_error();
  static const char *const wholes[] = {"whole.keras", "whole.h5"}, *const parts[] = {"part.h5",
                                                                                     "part.weights.h5"};
  for (int i = 0; i < 2; i++) {
    mix_model *saved = mix_model_load(in_folder(wholes[i]));
    assert_no_error();
    assert_true(weight_at(saved, 0, 0) == weight_at(model, 0, 0));
    assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(saved)), 2);
    mix_model *other = product_model(7, 0);
    assert_int_equal(mix_model_load_weights(other, in_folder(parts[i])), MIX_OK);
    assert_true(weight_at(other, 0, 0) == weight_at(model, 0, 0));
    assert_null(mix_model_load(in_folder(parts[i])));
    assert_error(MIX_FORMAT_ERROR, "no model in the file");
  }
}

static void checkpoints_that_cannot_be_are_refused(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  assert_null(mix_model_checkpoint("weights.onnx"));
  assert_error(MIX_VALUE_ERROR, "in .keras, .weights.h5, .h5, .npz or .safetensors");
  assert_null(mix_model_checkpoint("w.keras", .save_weights_only = true));
  assert_error(MIX_VALUE_ERROR, "in .weights.h5, .h5, .npz or .safetensors");
  assert_null(mix_model_checkpoint("w.npz", .mode = "up"));
  assert_error(MIX_VALUE_ERROR, "auto, min or max");
  static const char *const patterns[] = {"{nothing}.npz",  "{epoch:z}.npz", "{epoch.npz",
                                         "{loss:02d}.npz", "{batch}.npz",   "{}.npz"};
  for (int i = 0; i < 6; i++) {
    assert_null(mix_model_fit(model, counting(2), zeros(2), .verbose = MIX_SILENT,
                              .callbacks = mix_list_of(mix_model_checkpoint(in_folder(patterns[i])))));
    assert_error(MIX_VALUE_ERROR, "model_checkpoint");
  }
  assert_null(mix_model_fit(model, counting(2), zeros(2), .verbose = MIX_SILENT,
                            .callbacks = mix_list_of(mix_model_checkpoint("/proc/none/w.npz"))));
  assert_error(MIX_IO_ERROR, "/proc/none");
}

static void check_text(const char *name, const char *expected) {
  char text[1024] = "";
  FILE *file = fopen(in_folder(name), "rb");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  assert_string_equal(text, expected);
}
/* Losses: (0 + 1) / 2 for the rows 0 and 1; 1 for the row 1 alone. */
static void the_csv_has_a_row_an_epoch(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  script s = {"extra", {1.1, 1e-7, INFINITY}, false};
  mix_list *callbacks = mix_list_of(player(&s), mix_csv_logger(in_folder("log.csv")));
  mix_model_fit(model, counting(2), zeros(2), .epochs = 2, .verbose = MIX_SILENT, .callbacks = callbacks);
  assert_no_error();
  check_text("log.csv", "epoch,extra,loss,val_extra,val_loss\r\n0,1.1,0.5,NA,NA\r\n1,1e-07,0.5,NA,NA\r\n");
  /* A new fit overwrites the file. */
  mix_model_fit(model, counting(2), zeros(2), .epochs = 1, .verbose = MIX_SILENT, .callbacks = callbacks);
  check_text("log.csv", "epoch,extra,loss,val_extra,val_loss\r\n0,1.1,0.5,NA,NA\r\n");
  mix_model_fit(model, counting(2), zeros(2), .initial_epoch = 2, .epochs = 3, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(player(&s), mix_csv_logger(in_folder("log.csv"), .append = true)));
  check_text("log.csv", "epoch,extra,loss,val_extra,val_loss\r\n0,1.1,0.5,NA,NA\r\n2,inf,0.5,NA,NA\r\n");
  mix_model_fit(model, counting(2), zeros(2), .epochs = 2, .validation_x = ARRAY(F32, MIX_SHAPE(1, 1), 1),
                .validation_y = zeros(1), .validation_freq = 2, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_csv_logger(in_folder("sparse.csv"), .separator = ";")));
  assert_no_error();
  check_text("sparse.csv", "epoch;loss;val_loss\r\n0;0.5;NA\r\n1;0.5;1.0\r\n");
  assert_null(mix_model_fit(model, counting(2), zeros(2), .verbose = MIX_SILENT,
                            .callbacks = mix_list_of(mix_csv_logger(in_folder("none/log.csv")))));
  assert_error(MIX_IO_ERROR, "none/log.csv");
  assert_null(mix_csv_logger("a", .separator = "ab"));
  assert_error(MIX_VALUE_ERROR, "one character");
}

static double rate_of(void *context, int64_t epoch, double rate) {
  (void)epoch, (void)rate;
  return *(const double *)context;
}
/* tf_keras logs the learning rate as NumPy's float32, Keras 3 as a float. */
static void the_csv_shows_the_learning_rate_as_its_generation_does(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "experimental", "keras3"};
  static const struct {
    double rate;
    const char *older, *keras3;
  } cases[] = {{0.001, "0.001", "0.0010000000474974513"},
               {1e-5, "1e-05", "9.999999747378752e-06"},
               {1e-4, "1e-04", "9.999999747378752e-05"},
               {0.00012, "0.00012", "0.00011999999696854502"},
               {1.0 / 3, "0.33333334", "0.3333333432674408"},
               {0.5, "0.5", "0.5"},
               {2, "2.0", "2.0"},
               {123456, "123456.0", "123456.0"}};
  for (int g = 0; g < 3; g++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      char expected[128];
      double rate = cases[i].rate;
      mix_set_semantics(generations[g]);
      mix_model_fit(product_model(1, 0), counting(2), zeros(2), .epochs = 1, .verbose = MIX_SILENT,
                    .callbacks = mix_list_of(mix_learning_rate_scheduler(rate_of, &rate),
                                             mix_csv_logger(in_folder("rate.csv"))));
      assert_no_error();
      if (g < 2)
        snprintf(expected, sizeof expected, "epoch,loss,lr,val_loss,val_lr\r\n0,0.5,%s,NA,NA\r\n",
                 cases[i].older);
      else
        snprintf(expected, sizeof expected,
                 "epoch,learning_rate,loss,val_learning_rate,val_loss\r\n0,%s,0.5,NA,NA\r\n",
                 cases[i].keras3);
      check_text("rate.csv", expected);
    }
  mix_set_semantics("tf_keras");
  mix_set_floatx("float64"); /* the learning rate's dtype */
  double third = 1.0 / 3;
  mix_model_fit(product_model(1, 0), counting(2), zeros(2), .epochs = 1, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_learning_rate_scheduler(rate_of, &third),
                                         mix_csv_logger(in_folder("rate.csv"))));
  mix_set_floatx("float32");
  assert_no_error();
  check_text("rate.csv", "epoch,loss,lr,val_loss,val_lr\r\n0,0.5,0.3333333333333333,NA,NA\r\n");
}

static void a_loss_that_is_no_number_ends_training(void **state) {
  (void)state;
  static const double values[] = {NAN, INFINITY};
  for (int i = 0; i < 2; i++) {
    mix_tensor *x = ARRAY(F32, MIX_SHAPE(4, 1), 1, 2, values[i], 3);
    mix_history *history =
        mix_model_fit(product_model(1, 0), x, zeros(4), .batch_size = 1, .epochs = 3, .no_shuffle = true,
                      .verbose = MIX_SILENT, .callbacks = mix_list_of(mix_terminate_on_nan()));
    assert_no_error();
    assert_int_equal(mix_history_steps(history), 3);
    assert_int_equal(mix_history_epochs(history), 1);
  }
}

/* ---- by text ---- */

static void callbacks_by_text(void **state) {
  (void)state;
  script s = {"val_loss", {3, 2, 2, 2, 1, 1, 1}, true};
  mix_model *model = product_model(1, 0);
  mix_history *history =
      train(model, &s, 12,
            mix_callback_from_text("early_stopping:monitor=val_loss,patience=2,restore_best_weights=true"));
  assert_int_equal(mix_history_epochs(history), 4);
  assert_true(weight_at(model, 0, 0) == 1);
  assert_int_equal(mix_history_epochs(train(model, &s, 12, mix_callback_from_text("EarlyStopping"))), 3);
  char text[256];
  snprintf(text, sizeof text, "ModelCheckpoint:filepath=%s/t{epoch}.npz,save_best_only=true", test_folder);
  train(model, &s, 3, mix_callback_from_text(text));
  assert_true(is_there("t1.npz") && is_there("t2.npz") && !is_there("t3.npz"));
  script flat = {"val_loss", {1, 1, 1, 1}, false};
  check_rates(mix_callback_from_text("reduce_lr_on_plateau:factor=0.5,patience=0"), &flat, 4,
              (const double[]){1, 1, 0.5, 0.25});
  assert_string_equal(mix_callback_name(mix_callback_from_text("csv_logger:filename=a.csv,append=true")),
                      "CSVLogger");
  assert_string_equal(mix_callback_name(mix_callback_from_text("TerminateOnNaN")), "TerminateOnNaN");
  static const struct {
    const char *text, *part;
  } wrong[] = {{"remote_monitor", "early_stopping, reduce"},
               {"early_stopping:patience", "key=value"},
               {"early_stopping:patience=x", "an integer"},
               {"early_stopping:min_delta=nan", "a number"},
               {"early_stopping:restore_best_weights=1", "true or false"},
               {"early_stopping:wait=1", "monitor, min_delta"},
               {"terminate_on_nan:a=1", "known: none"},
               {"early_stopping:patience=-1", "negative"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_null(mix_callback_from_text(wrong[i].text));
    assert_error(MIX_VALUE_ERROR, wrong[i].part);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(early_stopping_waits_for_patience),
      TEST(early_stopping_min_delta_and_baseline),
      TEST(early_stopping_starts_from_an_epoch),
      TEST(early_stopping_directions_of_tf_keras),
      TEST(early_stopping_directions_of_keras3),
      TEST(early_stopping_restores_the_best_weights),
      TEST(a_name_that_is_missing_is_a_warning),
      TEST(the_scheduler_sets_and_logs_the_rate),
      TEST(a_plateau_reduces_the_rate),
      TEST(a_checkpoint_is_named_by_epoch_and_logs),
      TEST(a_checkpoint_named_by_nan_or_infinity_is_named_as_by_python),
      TEST(the_best_checkpoint_is_kept),
      TEST(checkpoints_by_batches),
      TEST(checkpoints_of_whole_models),
      TEST(checkpoints_that_cannot_be_are_refused),
      TEST(the_csv_has_a_row_an_epoch),
      TEST(the_csv_shows_the_learning_rate_as_its_generation_does),
      TEST(a_loss_that_is_no_number_ends_training),
      TEST(callbacks_by_text),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
