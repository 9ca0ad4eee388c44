/* Monitored values: the direction, what counts as an improvement, and the state that a second fit keeps from
 * the first. The numbers are those of Keras 2.21 (tf_keras) and 3.15 in the same runs, except for a NaN that
 * comes first. */
#include "model/support.h"
#include "support/folder.h"
#include <mixtape/callback.h>
#include <unistd.h>

/* What the epochs log; without a name, nothing. */
typedef struct script {
  const char *name;
  int count;
  double values[8];
} script;
static mix_status play(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  (void)model;
  const script *s = context;
  return s->name ? mix_logs_set(logs, s->name, s->values[epoch]) : MIX_OK;
}
#define SCRIPT(name, ...) (&(script){name, sizeof((double[]){__VA_ARGS__}) / sizeof(double), {__VA_ARGS__}})
#define VAL_LOSS(...) SCRIPT("val_loss", __VA_ARGS__)

static mix_history *train(mix_model *model, script *s, mix_callback *callback) {
  mix_tensor *zeros = mix_fill(MIX_SHAPE(2, 1), 0, F32);
  mix_callback *player = mix_callback_new(.on_epoch_end = play, .context = s);
  mix_history *history = mix_model_fit(model, zeros, zeros, .epochs = s->count, .verbose = MIX_SILENT,
                                       .callbacks = mix_list_of(player, callback));
  assert_no_error();
  return history;
}

static void expect_epochs(mix_callback *early_stopping, script *s, int64_t epochs) {
  const int64_t run = mix_history_epochs(train(product_model(1, 0), s, early_stopping));
  if (run != epochs) fail_msg("%s: %lld epochs, expected %lld", s->name, (long long)run, (long long)epochs);
}

/* Expects these learning rates of the epochs, starting at 1. */
#define EXPECT_RATES(plateau, s, ...) expect_rates(plateau, s, (const double[]){__VA_ARGS__})
static void expect_rates(mix_callback *plateau, script *s, const double *rates) {
  mix_history *history = train(product_model(1, 1), s, plateau);
  for (int e = 0; e < s->count; e++) {
    const mix_logs *logs = mix_history_epoch(history, e);
    const double rate = mix_logs_get(logs, mix_logs_has(logs, "lr") ? "lr" : "learning_rate");
    if (rate != rates[e])
      fail_msg("%s: epoch %d has the rate %g, expected %g", s->name, e + 1, rate, rates[e]);
  }
}

/* Expects files named after these epochs or batches, "12" for 1.npz and 2.npz, and removes them. */
static void expect_files(const char *expected) {
  char saved[16] = "", name[16];
  for (int i = 1; i < 10; i++) {
    snprintf(name, sizeof name, "%d.npz", i);
    if (!unlink(in_folder(name))) saved[strlen(saved)] = (char)('0' + i);
  }
  if (strcmp(saved, expected)) fail_msg("saved \"%s\", expected \"%s\"", saved, expected);
}
static void expect_saved(mix_callback *checkpoint, script *s, const char *expected) {
  train(product_model(1, 0), s, checkpoint);
  expect_files(expected);
}
#define BEST(...) mix_model_checkpoint(in_folder("{epoch}.npz"), .save_best_only = true, __VA_ARGS__)
#define PLATEAU(...) mix_reduce_lr_on_plateau(.factor = 0.5, .patience = 1, __VA_ARGS__)

static const char *const generations[] = {"tf_keras", "keras3"};

/* ---- a second fit ---- */

static void a_checkpoint_keeps_the_best_value_of_the_last_fit(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_callback *best = BEST(.monitor = "val_loss"), *under = BEST(.initial_value_threshold = 1.5);
    expect_saved(best, VAL_LOSS(3, 1, 2), "12");
    expect_saved(best, VAL_LOSS(2, 0.5, 1), "2");
    expect_saved(best, VAL_LOSS(0.75, 0.25, 0.5), "2");
    expect_saved(under, VAL_LOSS(INFINITY, 2, 1), "3");
    expect_saved(under, VAL_LOSS(1.25, 0.5, 0.75), "2");
  }
}
static void a_checkpoint_keeps_counting_batches_in_the_next_fit(void **state) {
  (void)state;
  static const char *const expected[] = {"3", "14", "25"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_callback *checkpoint = mix_model_checkpoint(in_folder("{batch}.npz"), .save_freq = 3);
    mix_model *model = product_model(1, 0);
    for (int fit = 0; fit < 3; fit++) {
      mix_model_fit(model, counting(5), counting(5), .batch_size = 1, .verbose = MIX_SILENT,
                    .callbacks = mix_list_of(checkpoint));
      assert_no_error();
      expect_files(expected[fit]);
    }
  }
}
/* As in a new process: the callbacks are new. */
static void resume(script *s, int64_t epochs, const char *expected) {
  mix_tensor *zeros = mix_fill(MIX_SHAPE(2, 1), 0, F32);
  mix_callback *player = mix_callback_new(.on_epoch_end = play, .context = s),
               *best = BEST(.monitor = "val_loss");
  mix_callback *backup = mix_backup_and_restore(in_folder("backup"), .keep_checkpoint = true);
  mix_model_fit(product_model(1, 0), zeros, zeros, .epochs = epochs, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(player, best, backup));
  assert_no_error();
  expect_files(expected);
}
static void a_resumed_checkpoint_knows_the_best_value_and_that_there_is_none(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    resume(VAL_LOSS(3, 1, 2, 0.5), 2, "12");
    resume(VAL_LOSS(3, 1, 2, 0.5), 4, "4");
    forget("backup");
    resume(VAL_LOSS(NAN, INFINITY, 2), 1, "");
    resume(VAL_LOSS(NAN, INFINITY, 2), 3, g ? "23" : "3");
    forget("backup");
  }
}

/* ---- the first value ---- */

static void keras3_takes_the_first_value_for_the_best_even_infinity(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_callback *best = BEST(.monitor = "val_loss"), *plateau = PLATEAU(.monitor = "val_loss");
  expect_saved(best, VAL_LOSS(INFINITY, 2, 3), "12");
  expect_saved(best, VAL_LOSS(INFINITY, 1, 1.5), "2");
  expect_saved(BEST(.mode = "max"), VAL_LOSS(-INFINITY, 2, 3), "123");
  for (int fit = 0; fit < 2; fit++)
    EXPECT_RATES(plateau, VAL_LOSS(INFINITY, INFINITY, INFINITY, 2, 2), 1, 1, 0.5, 0.25, 0.25);
  EXPECT_RATES(PLATEAU(.mode = "max"), VAL_LOSS(-INFINITY, -INFINITY, 1, 1), 1, 1, 0.5, 0.5);
}
static void tf_keras_begins_with_infinity_for_the_best(void **state) {
  (void)state;
  expect_saved(BEST(.monitor = "val_loss"), VAL_LOSS(INFINITY, 2, 3), "2");
  expect_saved(BEST(.mode = "max"), VAL_LOSS(-INFINITY, 2, 3), "23");
  EXPECT_RATES(PLATEAU(.monitor = "val_loss"), VAL_LOSS(INFINITY, INFINITY, INFINITY, 2, 2), 1, 0.5, 0.25,
               0.125, 0.125);
  EXPECT_RATES(PLATEAU(.mode = "max"), VAL_LOSS(-INFINITY, -INFINITY, 1, 1), 1, 0.5, 0.25, 0.25);
}
/* tf_keras's numbers. Keras 3 takes the NaN as the best and never improves on it: it saves 1, stops after 2,
 * has the rates 1, 1, 0.5, 0.25. */
static void nan_is_never_the_best(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    expect_saved(BEST(.monitor = "val_loss"), VAL_LOSS(NAN, 2, 1), "23");
    expect_epochs(mix_early_stopping(.patience = 1), VAL_LOSS(NAN, 3, 2, 1, 1, 1), 5);
    EXPECT_RATES(PLATEAU(.monitor = "val_loss"), VAL_LOSS(NAN, 3, 2, 1), 1, 0.5, 0.5, 0.5);
  }
}

/* ---- directions ---- */

/* Rising values: three epochs are better if larger is better, one if smaller is. */
static void tf_keras_derives_the_direction_from_the_name(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool early, checkpoint, plateau; /* larger is better */
  } rows[] = {{"val_accent_loss", false, true, true}, {"accent", false, true, true},
              {"val_acc", true, true, true},          {"accuracy", true, true, true},
              {"acc_1", false, true, true},           {"val_auc", true, false, false},
              {"auc_1", false, false, false},         {"fmeasure", false, true, false},
              {"val_fmeasure", false, false, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    script *s = SCRIPT(rows[i].name, 1, 2, 3, 3);
    expect_epochs(mix_early_stopping(.monitor = s->name, .patience = 1), s, rows[i].early ? 4 : 2);
    expect_saved(BEST(.monitor = s->name), s, rows[i].checkpoint ? "123" : "1");
    EXPECT_RATES(PLATEAU(.monitor = s->name), s, 1, 1, rows[i].plateau ? 1 : 0.5, rows[i].plateau ? 1 : 0.25);
  }
}

/* ---- a missing value ---- */

static int warnings;
static void count_warnings(void *context, mix_log_level level, const char *message) {
  (void)context;
  warnings += level == MIX_LOG_WARNING && strstr(message, "model_checkpoint: 'val_loss'");
}
static void only_keras3_saves_a_best_checkpoint_without_its_value(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    warnings = 0;
    mix_set_log_callback(count_warnings, NULL);
    expect_saved(BEST(.monitor = "val_loss"), SCRIPT(NULL, 0, 0, 0), g ? "123" : "");
    mix_set_log_callback(NULL, NULL);
    assert_int_equal(warnings, 3);
  }
}

/* ---- ties ---- */

/* 0.4 - 0.1 is more than 0.3, and 0.3 + 0.1 is 0.4. */
static void min_delta_is_subtracted_from_the_value_except_in_the_plateau_of_tf_keras(void **state) {
  (void)state;
  script *down = VAL_LOSS(0.4, 0.3, 0.3), *up = VAL_LOSS(0.3, 0.4, 0.4);
  EXPECT_RATES(PLATEAU(.min_delta = 0.1), down, 1, 1, 1);
  EXPECT_RATES(PLATEAU(.min_delta = 0.1, .mode = "max"), up, 1, 1, 0.5);
  expect_epochs(mix_early_stopping(.patience = 1, .min_delta = 0.1), down, 2);
  expect_epochs(mix_early_stopping(.patience = 1, .min_delta = 0.1, .mode = "max"), up, 3);
  mix_set_semantics("keras3");
  EXPECT_RATES(PLATEAU(.min_delta = 0.1), down, 1, 1, 0.5);
  expect_epochs(mix_early_stopping(.patience = 1, .min_delta = 0.1), down, 2);
}
static void a_negative_min_delta_loses_its_sign_except_in_the_plateau_of_tf_keras(void **state) {
  (void)state;
  script *s = VAL_LOSS(1, 1.25, 1.5, 2);
  EXPECT_RATES(PLATEAU(.min_delta = -0.5), s, 1, 1, 1, 1);
  expect_epochs(mix_early_stopping(.patience = 1, .min_delta = -0.5), s, 2);
  mix_set_semantics("keras3");
  EXPECT_RATES(PLATEAU(.min_delta = -0.5), s, 1, 1, 0.5, 0.25);
  expect_epochs(mix_early_stopping(.patience = 1, .min_delta = -0.5), s, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_checkpoint_keeps_the_best_value_of_the_last_fit),
      TEST(a_checkpoint_keeps_counting_batches_in_the_next_fit),
      TEST(a_resumed_checkpoint_knows_the_best_value_and_that_there_is_none),
      TEST(keras3_takes_the_first_value_for_the_best_even_infinity),
      TEST(tf_keras_begins_with_infinity_for_the_best),
      TEST(nan_is_never_the_best),
      TEST(tf_keras_derives_the_direction_from_the_name),
      TEST(only_keras3_saves_a_best_checkpoint_without_its_value),
      TEST(min_delta_is_subtracted_from_the_value_except_in_the_plateau_of_tf_keras),
      TEST(a_negative_min_delta_loses_its_sign_except_in_the_plateau_of_tf_keras),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
