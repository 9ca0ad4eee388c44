/* Mixed precision in models (docs/spec/mixed_precision.md, 9.6 and 9.7): scaling, skipped steps, and float32
 * state. */
#include "model/support.h"

/* x * v, where v is one weight that starts at 1. The optional regulariser is the weight itself (gradient
 * 1). */
static mix_tensor *itself(void *context, mix_tensor *weight) { return (void)context, mix_identity(weight); }
static mix_status multiply_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count, (void)shapes;
  bool regularized = *(bool *)mix_layer_data(layer);
  return mix_layer_add_weight(layer, "v", .shape = MIX_SCALAR, .initializer = "ones",
                              .regularizer_object =
                                  regularized ? mix_regularizer_new(.function = itself) : NULL)
             ? MIX_OK
             : mix_error();
}
static mix_list *multiply_call(mix_layer *layer, const mix_call_args *args) {
  return mix_list_of(
      mix_multiply(mix_call_input(args, 0), mix_variable_value(mix_list_get(mix_layer_weights(layer), 0))));
}
static const mix_layer_class multiply_class = {.size = sizeof(mix_layer_class),
                                               .name = "Multiply",
                                               .instance_size = sizeof(bool),
                                               .build = multiply_build,
                                               .call = multiply_call};

static mix_tensor *mean_of_outputs(void *context, mix_tensor *y_true, mix_tensor *y_pred) {
  (void)context, (void)y_true;
  return mix_reduce_mean(y_pred, MIX_AXES(-1), false);
}

static mix_model *multiply_model(bool regularized) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_layer *layer = mix_layer_new(&multiply_class);
  *(bool *)mix_layer_data(layer) = regularized;
  return mix_model_new(inputs, mix_call(layer, inputs));
}

static void step_of_ones(mix_model *model) {
  mix_model_train_on_batch(model, mix_fill(MIX_SHAPE(4, 1), 1, F32), mix_fill(MIX_SHAPE(4, 1), 0, F32));
  assert_no_error();
}

/* 1 - 2^-14 is not a float16 number (spacing 2^-11 below 1): only a float32 weight shows the update. */
static void M01_an_update_too_small_for_float16_is_kept(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_model *model = multiply_model(false);
  mix_model_compile(model, .loss_object = mix_loss_new(.function = mean_of_outputs),
                    .optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0x1p-14), .fixed = true,
                                                          .initial_scale = 128));
  step_of_ones(model);
  assert_true(weight_at(model, 0, 0) == 1 - 0x1p-14);
}

static void M02_a_regulariser_adds_its_gradient(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_model *model = multiply_model(true);
  mix_model_compile(model, .loss_object = mix_loss_new(.function = mean_of_outputs),
                    .optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0x1p-14), .fixed = true,
                                                          .initial_scale = 128));
  step_of_ones(model);
  assert_true(weight_at(model, 0, 0) == 1 - 2 * 0x1p-14);
}

/* The loss is 2^-25 times the output, so its gradient is half of float16's smallest number: 0 without
 * scaling. */
static mix_tensor *tiny(void *context, mix_tensor *y_true, mix_tensor *y_pred) {
  (void)context, (void)y_true;
  return mix_multiply(mix_cast(mix_squeeze(y_pred, MIX_AXES(-1)), F32), mix_scalar(0x1p-25, F32));
}
static void M03_scaling_saves_small_gradients(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  for (int scaled = 0; scaled < 2; scaled++) {
    mix_model *model = multiply_model(false);
    mix_model_compile(model, .loss_object = mix_loss_new(.function = tiny),
                      .optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0x1p10), .fixed = true,
                                                            .initial_scale = scaled ? 0x1p15 : 1));
    mix_model_train_on_batch(model, mix_fill(MIX_SHAPE(1, 1), 1, F32), mix_fill(MIX_SHAPE(1, 1), 0, F32));
    assert_no_error();
    assert_true(weight_at(model, 0, 0) == (scaled ? 1 - 0x1p-15 : 1));
  }
}

static void M07_metrics_are_float32(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  /* The mean of 4096 ones and a half is 4096 in float16, where the spacing is 4. */
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("linear"), inputs));
  mix_metric *mae = mix_metric_new("mae");
  mix_model_compile(model, .loss = "mae", .optimizer = mix_sgd(.learning_rate = MIX_ZERO),
                    .metric_objects = mix_list_of(mae));
  float values[256];
  for (int i = 0; i < 256; i++) values[i] = i % 2 ? 2048 : 2049 + 1; /* float16 has spacing 2 here */
  mix_tensor *x = mix_tensor_from(values, F32, MIX_SHAPE(256, 1));
  mix_logs *logs = mix_model_evaluate(model, x, mix_fill(MIX_SHAPE(256, 1), 0, F32), .batch_size = 256,
                                      .verbose = MIX_SILENT);
  assert_no_error();
  assert_true(mix_logs_get(logs, "mae") == 2049); /* not a float16 number */
  for (int i = 0; i < 2; i++)
    assert_int_equal(mix_variable_true_dtype(mix_list_get(mix_metric_variables(mae), i)), F32);
  assert_int_equal(mix_tensor_dtype(mix_metric_result_tensor(mae)), F32);
}

static void M09_the_reported_loss_is_not_scaled(void **state) {
  (void)state;
  examples e = examples_of(32, 6, 10);
  double loss[3];
  static const double scales[] = {1, 1024, 32768};
  mix_set_global_policy("mixed_float16");
  for (int i = 0; i < 3; i++) {
    mix_set_seed(4);
    mix_model *model = guide_model(6, 8);
    mix_model_compile(
        model, .loss = "sparse_categorical_crossentropy",
        .optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.1), .initial_scale = scales[i]));
    loss[i] =
        mix_logs_get(mix_history_epoch(mix_model_fit(model, e.x, e.y, .verbose = MIX_SILENT), 0), "loss");
    assert_no_error();
    assert_true(loss[i] > 1 && loss[i] < 4);
    assert_true(loss[i] == loss[0]);
  }
}

/* ---- skipped steps ---- */

/* Sum of the outputs; if x is infinite, so is its gradient. */
static mix_model *unit_gradient_model(mix_optimizer *optimizer) {
  mix_set_global_policy("mixed_float16");
  mix_model *model = multiply_model(false);
  mix_model_compile(model, .loss_object = mix_loss_new(.function = mean_of_outputs), .optimizer = optimizer);
  assert_no_error();
  return model;
}
static void step_with(mix_model *model, double x) {
  mix_model_train_on_batch(model, ARRAY(F32, MIX_SHAPE(1, 1), x), ARRAY(F32, MIX_SHAPE(1, 1), 0));
  assert_no_error();
}

/* Momentum 1, rate 1: a unit gradient changes v by 1, then by 2. */
static void O33_a_checkpoint_holds_scale_counter_and_slots(void **state) {
  (void)state;
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = 1, .momentum = 1),
                                                      .initial_scale = 1, .dynamic_growth_steps = 2);
  mix_model *model = unit_gradient_model(optimizer);
  mix_variable *v = mix_list_get(mix_model_weights(model), 0);
  mix_variable_assign(v, mix_scalar(2, F32));
  step_with(model, 1);
  mix_list *state_variables = mix_optimizer_variables(optimizer), *saved = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(state_variables); i++)
    mix_list_append(saved, mix_variable_true_value(mix_list_get(state_variables, i)));
  mix_variable *scale = mix_loss_scale_variable(mix_optimizer_loss_scale_object(optimizer)),
               *good = mix_optimizer_dynamic_counter(optimizer);
  mix_tensor *saved_scale = mix_variable_true_value(scale), *saved_good = mix_variable_true_value(good),
             *saved_v = mix_variable_true_value(v);
  mix_variable *slot = mix_optimizer_slot(mix_optimizer_inner(optimizer), v, "m");
  if (!slot) slot = mix_optimizer_slot(mix_optimizer_inner(optimizer), v, "momentum");
  assert_non_null(slot);
  for (int round = 0; round < 2; round++) {
    assert_true(weight_at(model, 0, 0) == 1 && mix_tensor_item(mix_variable_true_value(slot)) == -1);
    assert_true(mix_tensor_item(mix_variable_true_value(good)) == 1 &&
                mix_optimizer_iterations(optimizer) == 1);
    step_with(model, 1);
    assert_true(weight_at(model, 0, 0) == -1 && mix_tensor_item(mix_variable_true_value(slot)) == -2);
    assert_true(mix_optimizer_iterations(optimizer) == 2 &&
                mix_tensor_item(mix_variable_true_value(scale)) == 2);
    if (round) break;
    for (int i = 0; i < mix_list_count(state_variables); i++)
      mix_variable_assign(mix_list_get(state_variables, i), mix_list_get(saved, i));
    mix_variable_assign(scale, saved_scale);
    mix_variable_assign(good, saved_good);
    mix_variable_assign(v, saved_v);
  }
}

static void O34_fit_goes_on_from_a_restored_scale(void **state) {
  (void)state;
  mix_optimizer *optimizer =
      mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.5), .initial_scale = 1, .dynamic_growth_steps = 2);
  mix_model *model = unit_gradient_model(optimizer);
  mix_tensor *x = mix_fill(MIX_SHAPE(3, 1), 1, F32), *y = mix_fill(MIX_SHAPE(3, 1), 0, F32);
  mix_variable *scale = mix_loss_scale_variable(mix_optimizer_loss_scale_object(optimizer)),
               *good = mix_optimizer_dynamic_counter(optimizer);
#define STATE_IS(s, g)                                                                                       \
  (mix_tensor_item(mix_variable_true_value(scale)) == (s) &&                                                 \
   mix_tensor_item(mix_variable_true_value(good)) == (g))
  mix_model_fit(model, x, y, .batch_size = 1, .verbose = MIX_SILENT);
  assert_true(STATE_IS(2, 1));
  mix_tensor *saved_scale = mix_variable_true_value(scale), *saved_good = mix_variable_true_value(good);
  mix_model_fit(model, x, y, .batch_size = 1, .steps = 1, .verbose = MIX_SILENT);
  assert_true(STATE_IS(4, 0));
  mix_variable_assign(scale, saved_scale);
  mix_variable_assign(good, saved_good);
  assert_true(STATE_IS(2, 1));
  mix_model_fit(model, x, y, .batch_size = 1, .steps = 1, .verbose = MIX_SILENT);
  assert_true(STATE_IS(4, 0));
#undef STATE_IS
}

static void O35_a_nan_is_skipped_and_halves_the_scale(void **state) {
  (void)state;
  mix_optimizer *optimizer =
      mix_loss_scale_optimizer(mix_sgd(.learning_rate = 1), .initial_scale = 2, .dynamic_growth_steps = 2);
  mix_model *model = unit_gradient_model(optimizer);
  static const double x[] = {1, 1, 1, NAN, 1}, weights[] = {0, -1, -2, -2, -3}, scales[] = {2, 4, 4, 2, 2};
  for (int i = 0; i < 5; i++) {
    step_with(model, x[i]);
    assert_near(weight_at(model, 0, 0), weights[i], 0);
    assert_near(mix_tensor_item(mix_optimizer_loss_scale(optimizer)), scales[i], 0);
    assert_int_equal(mix_optimizer_iterations(optimizer), i + 1);
  }
}

static void check_skip(mix_optimizer *inner) {
  mix_set_global_policy("mixed_float16");
  mix_model *model = guide_model(6, 16);
  mix_optimizer *optimizer = mix_loss_scale_optimizer(inner, .initial_scale = 1024);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = optimizer,
                    .metrics = {"accuracy"});
  examples e = examples_of(32, 6, 10);
  mix_model_fit(model, e.x, e.y, .batch_size = 8, .verbose = MIX_SILENT);
  assert_no_error();
  mix_variable *iterations = mix_optimizer_iterations_variable(optimizer);
  mix_list *all = mix_list_new(0, NULL), *slots = mix_optimizer_variables(inner),
           *weights = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(weights); i++) mix_list_append(all, mix_list_get(weights, i));
  for (int i = 0; i < mix_list_count(slots); i++)
    if (mix_list_get(slots, i) != iterations) mix_list_append(all, mix_list_get(slots, i));
  assert_true(mix_list_count(all) > 6);
  static const double non_finite[] = {NAN, INFINITY, -INFINITY};
  for (int s = 0; s < 3; s++) {
    size_t size, size_after;
    unsigned char *before = bits_of(all, &size);
    double scale = mix_tensor_item(mix_optimizer_loss_scale(optimizer));
    float values[6] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, (float)non_finite[s]};
    step_losses_seen seen = {.count = 0};
    mix_model_fit(model, mix_tensor_from(values, F32, MIX_SHAPE(1, 6)), ARRAY(MIX_INT64, MIX_SHAPE(1), 1),
                  .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
    assert_no_error();
    assert_int_equal(seen.count, 1);
    assert_false(seen.applied[0]);
    assert_true(seen.scale[0] == scale / 2 && seen.good_steps[0] == 0);
    unsigned char *after = bits_of(all, &size_after);
    assert_int_equal(size, size_after);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
  }
  /* And training continues. */
  step_losses_seen seen = {.count = 0};
  mix_model_fit(model, e.x, e.y, .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
  assert_true(seen.applied[0] && isfinite(seen.loss[0]));
}
static char warning[1024];
static void keep_warning(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level == MIX_LOG_WARNING) snprintf(warning, sizeof warning, "%s", message);
}
/* Of `rows` examples the first `bad` are NaN. */
static void fit_with_nan(int bad, int rows, bool dynamic) {
  mix_set_global_policy("mixed_float16");
  mix_model *model = multiply_model(false);
  mix_model_compile(model, .loss_object = mix_loss_new(.function = mean_of_outputs),
                    .optimizer = mix_loss_scale_optimizer(mix_sgd(), .fixed = !dynamic, .initial_scale = 8));
  double x[8] = {0};
  for (int i = 0; i < bad; i++) x[i] = NAN;
  *warning = 0;
  mix_set_log_callback(keep_warning, NULL);
  mix_model_fit(model, mix_tensor_from_doubles(x, F32, MIX_SHAPE(rows, 1)),
                mix_fill(MIX_SHAPE(rows, 1), 0, F32), .batch_size = 1, .epochs = 2, .no_shuffle = true,
                .verbose = MIX_SILENT);
  mix_set_log_callback(NULL, NULL);
  assert_no_error();
}
static void a_run_without_an_applied_step_says_so(void **state) {
  (void)state;
  fit_with_nan(4, 4, true);
  assert_non_null(strstr(warning, "fit: none of the 8 steps was applied"));
  fit_with_nan(3, 4, true); /* one is applied */
  assert_string_equal(warning, "");
  fit_with_nan(4, 4, false); /* a fixed scale applies them */
  assert_string_equal(warning, "");
}

static void a_skipped_step_leaves_every_bit_sgd(void **state) {
  (void)state, check_skip(mix_sgd(.momentum = 0.9, .nesterov = true));
}
static void a_skipped_step_leaves_every_bit_rmsprop(void **state) {
  (void)state, check_skip(mix_rmsprop(.momentum = 0.5, .centered = true));
}
static void a_skipped_step_leaves_every_bit_adam(void **state) {
  (void)state, check_skip(mix_adam(.amsgrad = true));
}
static void a_skipped_step_leaves_every_bit_averages(void **state) {
  (void)state, check_skip(mix_sgd(.use_ema = true));
}

static void without_loss_scaling_a_nan_reaches_the_weights(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.5);
  mix_history *history = mix_model_fit(model, ARRAY(F32, MIX_SHAPE(2, 1), 1, NAN),
                                       mix_fill(MIX_SHAPE(2, 1), 0, F32), .verbose = MIX_SILENT);
  assert_no_error();
  assert_true(isnan(mix_logs_get(mix_history_epoch(history, 0), "loss")));
  assert_true(isnan(weight_at(model, 0, 0)));
}

/* ---- labels outside the classes ---- */

static void check_label_outside(const char *policy, double label) {
  char expected[80];
  mix_set_global_policy(policy);
  mix_model *model = compiled_guide_model(4, 4);
  examples e = examples_of(8, 4, 3);
  mix_model_fit(model, e.x, e.y, .verbose = MIX_SILENT);
  mix_list *all = mix_model_weights(model), *slots = mix_optimizer_variables(mix_model_optimizer(model));
  for (int i = 0; i < mix_list_count(slots); i++) mix_list_append(all, mix_list_get(slots, i));
  size_t size, after_size;
  unsigned char *before = bits_of(all, &size);
  mix_tensor *y = ARRAY(MIX_INT64, MIX_SHAPE(8), 0, 1, 2, 0, 1, 2, 0, label);
  assert_null(mix_model_fit(model, e.x, y, .verbose = MIX_SILENT));
  snprintf(expected, sizeof expected, "label %.0f (element ", label); /* fit shuffles */
  assert_error(MIX_VALUE_ERROR, expected);
  assert_null(mix_model_evaluate(model, e.x, y, .verbose = MIX_SILENT));
  snprintf(expected, sizeof expected, "label %.0f (element 7) is outside the classes, [0, 10): labels",
           label);
  assert_error(MIX_VALUE_ERROR, expected);
  unsigned char *after = bits_of(all, &after_size);
  assert_memory_equal(before, after, size); /* including iterations */
  free(before);
  free(after);
  assert_null(mix_model_evaluate(model, e.x, y, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "label");
  assert_non_null(mix_model_fit(model, e.x, e.y, .verbose = MIX_SILENT)); /* good data trains */
}
static void a_label_outside_the_classes_changes_nothing(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16"};
  static const double labels[] = {10, -1, 1e12};
  for (int p = 0; p < 2; p++)
    for (int l = 0; l < 3; l++) check_label_outside(policies[p], labels[l]);
}

/* ---- the guide's model ---- */

static void M10_the_guides_model(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_model *model = guide_model(784, 8); /* 4096 units in the guide: the counts do not depend on it */
  static const char *const layers[] = {"dense_1", "dense_2", "dense_logits", "predictions"};
  mix_tensor *x = mix_fill(MIX_SHAPE(2, 784), 0.5, F32);
  for (int i = 0; i < 4; i++) {
    mix_layer *layer = mix_model_get_layer(model, layers[i]);
    x = mix_call(layer, x);
    assert_int_equal(mix_tensor_dtype(x), i < 3 ? MIX_FLOAT16 : F32);
    mix_list *weights = mix_layer_weights(layer);
    for (int w = 0; w < mix_list_count(weights); w++)
      assert_int_equal(mix_variable_dtype(mix_list_get(weights, w)), F32);
  }
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_rmsprop(.learning_rate = 0), .metrics = {"accuracy"},
                    .image_bytes = true);
  uint8_t *images = calloc(60000, 784);
  int64_t *labels = calloc(60000, sizeof *labels);
  for (int i = 0; i < 60000; i++) {
    labels[i] = i % 10;
    memset(images + 784 * (size_t)i + 70 * (i % 10), 200, 70);
  }
  mix_tensor *bytes = mix_tensor_from(images, MIX_UINT8, MIX_SHAPE(60000, 28, 28)),
             *y = mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(60000));
  free(images);
  free(labels);
  mix_history *history = mix_model_fit(model, bytes, y, .batch_size = 8192, .epochs = 5,
                                       .validation_split = 0.2, .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(mix_history_steps(history), 5 * 6);
  assert_int_equal(mix_history_epochs(history), 5);
  assert_true(isfinite(mix_logs_get(mix_history_epoch(history, 4), "val_loss")));
  assert_int_equal(
      mix_tensor_dtype(mix_list_get(mix_model_predict(model, mix_fill(MIX_SHAPE(1, 784), 0, F32)), 0)), F32);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(M01_an_update_too_small_for_float16_is_kept), TEST(M02_a_regulariser_adds_its_gradient),
      TEST(M03_scaling_saves_small_gradients),           TEST(M07_metrics_are_float32),
      TEST(M09_the_reported_loss_is_not_scaled),         TEST(O33_a_checkpoint_holds_scale_counter_and_slots),
      TEST(O34_fit_goes_on_from_a_restored_scale),       TEST(O35_a_nan_is_skipped_and_halves_the_scale),
      TEST(a_run_without_an_applied_step_says_so),       TEST(a_skipped_step_leaves_every_bit_sgd),
      TEST(a_skipped_step_leaves_every_bit_rmsprop),     TEST(a_skipped_step_leaves_every_bit_adam),
      TEST(a_skipped_step_leaves_every_bit_averages),    TEST(without_loss_scaling_a_nan_reaches_the_weights),
      TEST(a_label_outside_the_classes_changes_nothing), TEST(M10_the_guides_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
