/* Losses and metrics that layers add within a call, losses of all outputs together, and models that need no
 * labels; against Keras 3 and tf_keras (recorded_batches.py). */
#include "recorded_values.h"

#include "base/alloc.h"
#include "support/folder.h"
#include <mixtape/callback.h>

typedef struct noted {
  mix_layer *dense;
  bool twice; /* its metric has two values in a call */
} noted;

static mix_status noted_build(mix_layer *layer, int count, const mix_shape *shapes) {
  noted *n = mix_layer_data(layer);
  (void)count, (void)shapes;
  n->dense = mix_layer_add_layer(layer, mix_dense(4, "tanh", .name = "dense"));
  return mix_error();
}

/* In float32, because Keras 3 adds no float16 to the other losses. */
static mix_list *noted_call(mix_layer *layer, const mix_call_args *args) {
  const noted *n = mix_layer_data(layer);
  mix_tensor *h = mix_call(n->dense, mix_call_input(args, 0)), *wide = mix_cast(h, F32);
  mix_tensor *loss = mix_reduce_mean(mix_square(wide), MIX_ALL_AXES, false);
  mix_layer_add_loss(layer, mix_multiply(mix_scalar(0.3, F32), loss));
  mix_layer_add_metric(layer, mix_abs(wide), "size");
  if (n->twice) mix_layer_add_metric(layer, mix_scalar(7, F32), "size");
  return mix_list_of(h);
}

static const mix_layer_class noted_class = {.size = sizeof noted_class,
                                            .name = "Noted",
                                            .instance_size = sizeof(noted),
                                            .build = noted_build,
                                            .call = noted_call};
static mix_layer *noted_layer(void) { return mix_layer_new(.layer_class = &noted_class); }

static mix_tensor *zeros_of(int64_t n) { return mix_fill(MIX_SHAPE(n), 0, F32); }
static mix_tensor *data(void) { return values(MIX_SHAPE(8, 5), 3); }
static mix_tensor *targets(void) { return values(MIX_SHAPE(8, 1), 5); }

/* ---- against Keras ---- */

static mix_model *recorded_model(const char *policy) {
  mix_set_global_policy(policy);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(5));
  mix_tensor *y = mix_call(mix_dense(1, .dtype = "float32"), mix_call(noted_layer(), x));
  mix_model *model = mix_model_new(x, y);
  mix_model_set_weights(
      model, mix_list_of(values(MIX_SHAPE(5, 4), 20), zeros_of(4), values(MIX_SHAPE(4, 1), 30), zeros_of(1)));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.1), .metrics = {"mae"});
  assert_no_error();
  return model;
}

static void check_history(const mix_history *history, const double *expected, double tolerance) {
  static const char *const names[] = {"loss", "mae", "size", "val_loss", "val_mae", "val_size"};
  assert_no_error();
  for (int n = 0; n < 6; n++)
    for (int e = 0; e < 2; e++)
      assert_near(mix_logs_get(mix_history_epoch(history, e), names[n]), expected[2 * n + e], tolerance);
}

static mix_history *fit_recorded(mix_model *model) {
  return mix_model_fit(model, data(), targets(), .batch_size = 4, .epochs = 2, .no_shuffle = true,
                       .validation_x = values(MIX_SHAPE(6, 5), 0), .validation_y = values(MIX_SHAPE(6, 1), 7),
                       .verbose = MIX_SILENT);
}

/* Of float32: dozens of operations on numbers below 1, four steps long. Of float16, whose values are off by
 * 2^-12 of themselves: the numbers are below 0.5 and pass three roundings, in sums of values whose errors
 * have both signs; 4 roundings all of one sign. */
#define NEAR 2e-6
#define NEAR_FLOAT16 (4 * 0.5 / 4096)

static void added_in_each_generation(void **state) {
  static const struct {
    const char *semantics, *policy;
    const double *logs, *kernel;
    double tolerance;
  } rows[] = {{"keras3", "float32", keras3_added, keras3_added_kernel, NEAR},
              {"tf_keras", "float32", tf_keras_added, tf_keras_added_kernel, NEAR},
              {"keras3", "mixed_float16", keras3_mixed_added, keras3_mixed_added_kernel, NEAR_FLOAT16},
              {"tf_keras", "mixed_float16", tf_keras_mixed_added, tf_keras_mixed_added_kernel, NEAR_FLOAT16}};
  (void)state;
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    mix_set_semantics(rows[r].semantics);
    mix_model *model = recorded_model(rows[r].policy);
    check_history(fit_recorded(model), rows[r].logs, rows[r].tolerance);
    assert_all_near(mix_list_get(mix_model_get_weights(model), 0), rows[r].kernel, 20, rows[r].tolerance);
  }
}

static mix_model *model_alone(void) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(5));
  mix_model *model = mix_model_new(x, mix_call(noted_layer(), x));
  mix_model_set_weights(model, mix_list_of(values(MIX_SHAPE(5, 4), 20), zeros_of(4)));
  mix_model_compile(model, .optimizer = mix_sgd(.learning_rate = 0.5));
  return model;
}

/* Arrays, and data sets of inputs alone, flat and nested. */
static void no_labels_are_needed_where_nothing_reads_them(void **state) {
  (void)state;
  for (int form = 0; form < 6; form++) {
    mix_set_semantics(form % 2 ? "keras3" : "tf_keras");
    const double *logs = form % 2 ? keras3_alone : tf_keras_alone,
                 *kernel = form % 2 ? keras3_alone_kernel : tf_keras_alone_kernel;
    mix_model *model = model_alone();
    mix_dataset *flat = mix_dataset_batch(mix_dataset_from_tensors(data()), 4);
    mix_dataset *nested = mix_dataset_batch(mix_dataset_from_tensors(mix_list_of(mix_list_of(data()))), 4);
    void *x = form < 2 ? (void *)data() : form < 4 ? (void *)flat : (void *)nested;
    mix_history *history = mix_model_fit(model, x, NULL, .batch_size = form < 2 ? 4 : 0, .epochs = 2,
                                         .no_shuffle = true, .verbose = MIX_SILENT);
    assert_no_error();
    for (int e = 0; e < 2; e++) {
      assert_near(mix_logs_get(mix_history_epoch(history, e), "loss"), logs[e], NEAR);
      assert_near(mix_logs_get(mix_history_epoch(history, e), "size"), logs[2 + e], NEAR);
    }
    assert_all_near(mix_list_get(mix_model_get_weights(model), 0), kernel, 20, NEAR);
  }
}

static void labels_may_be_left_out_everywhere(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_model *model = model_alone();
  mix_history *history = mix_model_fit(model, data(), NULL, .validation_split = 0.5, .verbose = MIX_SILENT);
  assert_no_error();
  assert_true(mix_logs_has(mix_history_epoch(history, 0), "val_size"));
  assert_non_null(mix_model_fit(model, data(), NULL, .validation_x = data(), .verbose = MIX_SILENT));
  const double loss = mix_logs_get(mix_model_evaluate(model, data(), NULL, .verbose = MIX_SILENT), "loss");
  assert_near(mix_logs_get(mix_model_test_on_batch(model, data(), NULL), "loss"), loss, 1e-7);
  assert_non_null(mix_model_train_on_batch(model, data(), NULL));
  /* Where a loss reads them, they are missed. */
  assert_null(mix_model_fit(recorded_model("float32"), data(), NULL, .verbose = MIX_SILENT));
  assert_error(MIX_TYPE_ERROR, "fit: y is neither");
}

/* ---- added metrics ---- */

static void values_of_one_name_share_a_mean(void **state) {
  (void)state;
  mix_layer *layer = noted_layer();
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(5));
  mix_model *model = mix_model_new(x, mix_call(layer, x));
  ((noted *)mix_layer_data(layer))->twice = true;
  mix_model_set_weights(model, mix_list_of(mix_fill(MIX_SHAPE(5, 4), 0, F32), zeros_of(4)));
  mix_model_compile(model, .optimizer = mix_sgd(.learning_rate = 0.5));
  /* 8 x 4 zeros and one 7. */
  const double size = mix_logs_get(mix_model_test_on_batch(model, data(), NULL), "size");
  assert_no_error();
  assert_near(size, 7.0 / 33, 1e-7);
}

/* As in Keras, whose losses are of each layer once: here one that two models inside the model share. */
static void a_shared_layer_adds_once_for_each_call(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layer = noted_layer();
    mix_tensor *x[3];
    mix_layer *models[2];
    for (int i = 0; i < 3; i++) x[i] = mix_input(.shape = MIX_SHAPE(4));
    for (int i = 0; i < 2; i++) models[i] = mix_model_layer(mix_model_new(x[i], mix_call(layer, x[i])));
    mix_model *model = mix_model_new(x[2], mix_call(models[1], mix_call(models[0], x[2])));
    ((noted *)mix_layer_data(layer))->twice = true;
    mix_model_set_weights(model,
                          mix_list_of(mix_fill(MIX_SHAPE(4, 4), 0, F32), mix_fill(MIX_SHAPE(4), 1, F32)));
    mix_model_compile(model, .optimizer = mix_sgd(.learning_rate = 0.5));
    mix_tensor *four = mix_fill(MIX_SHAPE(1, 4), 0, F32);
    const mix_logs *logs = mix_model_test_on_batch(model, four, NULL);
    assert_no_error();
    assert_near(mix_logs_get(logs, "loss"), 2 * 0.3 * tanh(1) * tanh(1), 1e-6);
    /* keras3 counts rows, tf_keras elements. */
    assert_near(mix_logs_get(logs, "size"), g ? (2 * tanh(1) + 14) / 4 : (8 * tanh(1) + 14) / 10, 1e-6);
  }
}

static mix_tensor *own_metric(void *context, mix_tensor *y, mix_tensor *p) {
  return (void)context, (void)y, mix_reduce_mean(p, MIX_AXES(-1), false);
}

static void a_name_that_is_taken_is_refused(void **state) {
  (void)state;
  mix_model *model = recorded_model("float32");
  mix_model_compile(model, .loss = "mse",
                    .metric_objects = mix_list_of(mix_metric_with(&(mix_metric_options){
                        .size = sizeof(mix_metric_options), .function = own_metric, .name = "size"})));
  assert_no_error();
  assert_null(mix_model_train_on_batch(model, data(), targets()));
  assert_error(MIX_VALUE_ERROR, "layer_add_metric: 'size' is in the logs already");
}

static void bad_losses_and_metrics_are_refused(void **state) {
  (void)state;
  mix_layer *layer = noted_layer();
  assert_int_equal(mix_layer_add_loss(layer, zeros_of(3)), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "has shape (3); expected a scalar");
  assert_int_equal(mix_layer_add_metric(NULL, zeros_of(1), "a"), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR, "layer_add_metric");
  assert_int_equal(mix_layer_add_metric(layer, NULL, "a"), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR, "the metric's value");
  assert_int_equal(mix_layer_add_metric(layer, zeros_of(1), NULL), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "gave no name");
  assert_int_equal(mix_layer_add_metric(layer, mix_scalar(1, MIX_INT32), "a"), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR, "is int32; expected a floating dtype");
}

/* on_step has them too, of each batch alone; the mean of an epoch is that of its batches. */
typedef struct steps_seen {
  double size[4];
  int count;
} steps_seen;
static void see_size(void *context, const mix_step_record *record) {
  steps_seen *seen = context;
  seen->size[seen->count++] = mix_logs_get(record->metrics, "size");
}

static void steps_have_their_own_values(void **state) {
  (void)state;
  mix_model *model = recorded_model("float32");
  steps_seen seen = {.count = 0};
  mix_history *history = mix_model_fit(model, data(), targets(), .batch_size = 4, .no_shuffle = true,
                                       .on_step = see_size, .context = &seen, .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(seen.count, 2);
  assert_true(seen.size[0] != seen.size[1]);
  assert_near(mix_logs_get(mix_history_epoch(history, 0), "size"), (seen.size[0] + seen.size[1]) / 2, 1e-7);
}

/* Of two values of one name a step has the mean of both, as the epoch has. */
static void steps_have_all_values_of_a_name(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layer = noted_layer();
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(5));
    mix_model *model = mix_model_new(x, mix_call(layer, x));
    ((noted *)mix_layer_data(layer))->twice = true;
    mix_model_set_weights(model, mix_list_of(mix_fill(MIX_SHAPE(5, 4), 0, F32), zeros_of(4)));
    mix_model_compile(model, .optimizer = mix_sgd(.learning_rate = 0.5));
    steps_seen seen = {.count = 0};
    mix_model_fit(model, data(), NULL, .batch_size = 4, .no_shuffle = true, .on_step = see_size,
                  .context = &seen, .verbose = MIX_SILENT);
    assert_no_error();
    assert_int_equal(seen.count, 2);
    /* One 7 beside 4 rows of zeros, which keras3 counts, or their 16 elements. */
    for (int i = 0; i < 2; i++) assert_near(seen.size[i], g ? 7.0 / 5 : 7.0 / 17, 1e-6);
  }
}

/* A fit that goes on in the middle of an epoch has the means of the whole epoch. */
static void see_nothing(void *context, const mix_step_record *record) { (void)context, (void)record; }
static void stop(void *context, const mix_step_record *record) {
  (void)context;
  if (record->step == 3) mix_error_record(MIX_IO_ERROR, "stopped");
}
static mix_history *fit_with_backup(mix_model *model, const char *path,
                                    void (*on_step)(void *, const mix_step_record *)) {
  return mix_model_fit(model, data(), targets(), .batch_size = 2, .epochs = 2, .seed = 5, .on_step = on_step,
                       .verbose = MIX_SILENT,
                       .callbacks = mix_list_of(mix_backup_and_restore(path, .save_freq = 2)));
}

static void a_resumed_epoch_keeps_the_mean(void **state) {
  (void)state;
  mix_history *whole = fit_with_backup(recorded_model("float32"), in_folder("whole"), see_nothing);
  const double expected = mix_logs_get(mix_history_epoch(whole, 0), "size");
  assert_no_error();
  assert_null(fit_with_backup(recorded_model("float32"), in_folder("stopped"), stop));
  assert_error(MIX_IO_ERROR, "stopped");
  mix_history *rest = fit_with_backup(recorded_model("float32"), in_folder("stopped"), see_nothing);
  assert_no_error();
  assert_int_equal(mix_history_epochs(rest), 2);
  assert_true(mix_logs_get(mix_history_epoch(rest, 0), "size") == expected);
}

/* ---- a loss of all outputs ---- */

static int bad_result; /* 1: NULL, 2: an integer */
static mix_tensor *distance(void *context, mix_list *y_true, mix_list *y_pred) {
  assert_int_equal(mix_list_count(y_true), 2);
  assert_int_equal(mix_list_count(y_pred), 2);
  if (bad_result) return bad_result == 1 ? NULL : mix_scalar(1, MIX_INT32);
  mix_tensor *a = mix_subtract(mix_list_get(y_pred, 0), mix_list_get(y_true, 0)),
             *b = mix_subtract(mix_list_get(y_pred, 1), mix_list_get(y_true, 1));
  mix_tensor *product = mix_multiply(a, b);
  return *(const bool *)context ? mix_reduce_mean(product, MIX_ALL_AXES, false)
                                : mix_reduce_sum(product, MIX_AXES(-1), false);
}

/* Outputs w x and w x, of which the loss is the product of the distances from the labels. */
static mix_model *two_outputs(bool *scalar) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(1));
  mix_layer *dense = mix_dense(1, .no_bias = true, .kernel_initializer = "ones");
  mix_tensor *y = mix_call(dense, x);
  mix_model *model = mix_model_new(x, mix_list_of(y, mix_call(mix_flatten(), y)));
  mix_model_compile(model, .optimizer = mix_sgd(.learning_rate = 0.25), .outputs_loss = distance,
                    .outputs_loss_context = scalar);
  assert_no_error();
  return model;
}

static void a_loss_of_all_outputs(void **state) {
  (void)state;
  for (int r = 0; r < 4; r++) {
    bool scalar = r % 2;
    mix_set_semantics(r < 2 ? "keras3" : "tf_keras");
    mix_model *model = two_outputs(&scalar);
    mix_tensor *x = counting(3); /* 0 1 2 */
    mix_list *y = mix_list_of(mix_fill(MIX_SHAPE(3, 1), 1, F32), mix_fill(MIX_SHAPE(3, 1), 3, F32));
    /* (x - 1)(x - 3): 3, 0, -1; by w: x (2 w x - 4): 0, -2, 0 */
    mix_logs *logs = mix_model_train_on_batch(model, x, y);
    assert_no_error();
    assert_int_equal(mix_logs_count(logs), 1);
    assert_near(mix_logs_get(logs, "loss"), 2.0 / 3, 1e-7);
    assert_near(weight_at(model, 0, 0), 1 + 0.25 * 2 / 3, 1e-7);
    logs = mix_model_evaluate(two_outputs(&scalar), x, y, .batch_size = 2, .verbose = MIX_SILENT);
    assert_near(mix_logs_get(logs, "loss"), 2.0 / 3, 1e-7);
    if (scalar) continue;
    const mix_on_batch_options weighted = {
        .size = sizeof weighted, .x = x, .y = y, .sample_weight = ARRAY(F32, MIX_SHAPE(3), 1, 1, 3)};
    assert_near(mix_logs_get(mix_model_test_on_batch_with(two_outputs(&scalar), &weighted), "loss"), 0, 1e-7);
  }
}

static void a_loss_of_all_outputs_stands_alone(void **state) {
  (void)state;
  bool scalar = false;
  mix_model *model = two_outputs(&scalar);
  mix_model_compile(model, .loss = "mse", .outputs_loss = distance, .outputs_loss_context = &scalar);
  assert_error(MIX_VALUE_ERROR, "outputs_loss beside another loss");
  mix_model_compile(model, .loss_weights = {1, 2}, .outputs_loss = distance, .outputs_loss_context = &scalar);
  assert_error(MIX_VALUE_ERROR, "outputs_loss beside loss_weights");
  mix_list *y = mix_list_of(counting(3), counting(3));
  const mix_on_batch_options two = {
      .size = sizeof two, .x = counting(3), .y = y, .sample_weight = mix_list_of(zeros_of(3), zeros_of(3))};
  assert_null(mix_model_train_on_batch_with(two_outputs(&scalar), &two));
  assert_error(MIX_VALUE_ERROR, "2 arrays of sample weights for the one outputs_loss");
  for (bad_result = 1; bad_result <= 2; bad_result++) {
    assert_null(mix_model_train_on_batch(two_outputs(&scalar), counting(3), y));
    assert_error(MIX_TYPE_ERROR, "outputs_loss");
  }
  bad_result = 0;
}

/* ---- no memory ---- */

static void memory_runs_out(void **state) {
  (void)state;
  mix_layer *layer = noted_layer();
  mix_tensor *one = mix_scalar(1, F32);
  for (int64_t n = 0; n < 4; n++) {
    mix_inject_allocation_failure(n);
    const mix_status status = mix_layer_add_metric(layer, one, "a name");
    mix_inject_allocation_failure(-1);
    assert_int_equal(status, mix_error_take(NULL, 0));
    assert_true(status == MIX_OK || status == MIX_MEMORY_ERROR);
    assert_true(n > 0 || status == MIX_MEMORY_ERROR);
  }
}

/* Each allocation of a call fails once, also that of the list for its losses; then it calls as before. */
static void a_call_without_memory_can_be_repeated(void **state) {
  (void)state;
  mix_layer *layer = noted_layer();
  mix_tensor *x = data();
  assert_non_null(mix_call(layer, x));
  bool done = false;
  for (int64_t n = 0; !done; n++)
    MIX_SCOPE {
      mix_inject_allocation_failure(n);
      done = mix_call(layer, x) != NULL;
      mix_inject_allocation_failure(-1);
      assert_int_equal(mix_error_take(NULL, 0), done ? MIX_OK : MIX_MEMORY_ERROR);
      assert_non_null(mix_call(layer, x));
      assert_int_equal(mix_list_count(mix_layer_losses(layer)), 1);
      assert_no_error();
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(added_in_each_generation),
      TEST(no_labels_are_needed_where_nothing_reads_them),
      TEST(labels_may_be_left_out_everywhere),
      TEST(values_of_one_name_share_a_mean),
      TEST(a_shared_layer_adds_once_for_each_call),
      TEST(a_name_that_is_taken_is_refused),
      TEST(bad_losses_and_metrics_are_refused),
      TEST(steps_have_their_own_values),
      TEST(steps_have_all_values_of_a_name),
      TEST(a_resumed_epoch_keeps_the_mean),
      TEST(a_loss_of_all_outputs),
      TEST(a_loss_of_all_outputs_stands_alone),
      TEST(memory_runs_out),
      TEST(a_call_without_memory_can_be_repeated),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
