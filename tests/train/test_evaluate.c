/* evaluate, predict, train_on_batch and test_on_batch. */
#include "model/support.h"

static mix_tensor *zeros(int64_t n) { return mix_fill(MIX_SHAPE(n, 1), 0, F32); }

/* Without metrics there is one number, the loss. */
static void Y10_without_metrics_there_is_the_loss(void **state) {
  (void)state;
  mix_logs *logs = mix_model_evaluate(product_model(2, 0), counting(3), zeros(3), .verbose = MIX_SILENT);
  assert_int_equal(mix_logs_count(logs), 1);
  assert_string_equal(mix_logs_name(logs, 0), "loss");
  assert_near(mix_logs_value(logs, 0), (0 + 4 + 16) / 3.0, 1e-6);
  assert_true(isnan(mix_logs_get(logs, "accuracy")));
  assert_null(mix_logs_name(logs, 1));
}

static void evaluate_weighs_batches_by_rows_and_trains_nothing(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.5);
  mix_logs *logs = mix_model_evaluate(model, ARRAY(F32, MIX_SHAPE(4, 1), 1, 1, 1, 3), zeros(4),
                                      .batch_size = 3, .verbose = MIX_SILENT);
  assert_true(mix_logs_get(logs, "loss") == (3 * 1 + 9) / 4.0);
  assert_true(weight_at(model, 0, 0) == 1);
  assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(model)), 0);
}

static void evaluate_after_fit_resets_the_metrics(void **state) {
  (void)state;
  mix_model *model = compiled_guide_model(6, 8);
  examples e = examples_of(64, 6, 3);
  mix_model_fit(model, e.x, e.y, .epochs = 2, .verbose = MIX_SILENT);
  mix_logs *first = mix_model_evaluate(model, e.x, e.y, .verbose = MIX_SILENT),
           *again = mix_model_evaluate(model, e.x, e.y, .verbose = MIX_SILENT);
  assert_no_error();
  for (int i = 0; i < 2; i++) assert_true(mix_logs_value(first, i) == mix_logs_value(again, i));
}

static void predict_joins_the_batches(void **state) {
  (void)state;
  mix_model *model = product_model(2, 0);
  for (int64_t size = 1; size <= 8; size++) {
    mix_tensor *outputs = mix_list_get(mix_model_predict(model, counting(7), .batch_size = size), 0);
    assert_true(mix_shape_equal(mix_tensor_shape(outputs), MIX_SHAPE(7, 1)));
    for (int i = 0; i < 7; i++) assert_true(at(outputs, i) == 2 * i);
  }
}

static mix_list *predict_in_a_step(void *model, mix_list *arguments) {
  return mix_model_predict(model, mix_list_get(arguments, 0));
}
static void predict_inside_a_capture_says_what_to_do(void **state) {
  (void)state;
  mix_function *step = mix_function_new(predict_in_a_step, product_model(2, 0));
  assert_null(mix_function_call(step, mix_list_of(counting(3))));
  assert_error(MIX_RUNTIME_ERROR, "predict: called in a function that is being captured");
  assert_null(mix_function_call(step, mix_list_of(counting(3))));
  assert_error(MIX_RUNTIME_ERROR, "use mix_model_call there");
}

static void predict_is_inference(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(8));
  mix_model *model = mix_model_new(inputs, mix_call(mix_dropout(.rate = 0.5), inputs));
  mix_tensor *outputs = mix_list_get(mix_model_predict(model, mix_fill(MIX_SHAPE(3, 8), 1, F32)), 0);
  for (int i = 0; i < 24; i++) assert_true(at(outputs, i) == 1);
}

static void predict_of_bytes_of_images(void **state) {
  (void)state;
  static const float expected[] = {0, 1 / 255.0f, 128 / 255.0f, 1};
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(4));
  mix_model *models[] = {mix_model_new(inputs, mix_call(mix_activation("linear"), inputs)),
                         mix_sequential(mix_list_of(mix_activation("linear")))};
  mix_model_build(models[1], MIX_SHAPE(MIX_UNKNOWN, 4));
  for (int m = 0; m < 2; m++) {
    mix_model_compile(models[m], .loss = "mse", .image_bytes = true);
    mix_tensor *x = ARRAY(MIX_UINT8, MIX_SHAPE(1, 2, 2), 0, 1, 128, 255);
    mix_tensor *outputs = mix_list_get(mix_model_predict(models[m], x), 0);
    assert_true(mix_shape_equal(mix_tensor_shape(outputs), MIX_SHAPE(1, 4)));
    for (int i = 0; i < 4; i++) assert_true(at(outputs, i) == expected[i]);
  }
}

/* (a, b) of bytes: (b / 2, a + c). */
static mix_list *halve_and_add(void *context, mix_list *inputs) {
  mix_tensor *a = mix_cast(mix_list_get(inputs, 0), F32), *b = mix_cast(mix_list_get(inputs, 1), F32);
  return mix_list_of(mix_divide(b, mix_scalar(2, F32)),
                     mix_add(a, mix_scalar(*(const double *)context, F32)));
}
static mix_list *keep_first(void *context, mix_list *inputs) {
  return (void)context, mix_list_of(mix_list_get(inputs, 0));
}

static void preprocess_makes_the_inputs_in_each_step(void **state) {
  (void)state;
  double more = 1000;
  mix_tensor *a = mix_input(.shape = MIX_SHAPE(1)), *b = mix_input(.shape = MIX_SHAPE(1));
  mix_model *model = mix_model_new(mix_list_of(a, b), mix_call(mix_subtract_layer(), mix_list_of(a, b)));
  mix_list *x =
      mix_list_of(ARRAY(MIX_UINT8, MIX_SHAPE(2, 1), 3, 255), ARRAY(MIX_UINT8, MIX_SHAPE(2, 1), 5, 1));
  mix_tensor *y = ARRAY(F32, MIX_SHAPE(2, 1), -1000.5, -1254.5);
  mix_model_compile(model, .loss = "mae", .preprocess = halve_and_add, .preprocess_context = &more);
  mix_tensor *outputs = mix_list_get(mix_model_predict(model, x), 0);
  assert_true(at(outputs, 0) == 2.5 - 1003 && at(outputs, 1) == 0.5 - 1255);
  mix_logs *logs = mix_model_evaluate(model, x, y, .verbose = MIX_SILENT);
  assert_true(mix_logs_get(logs, "loss") == 0);
  mix_history *history = mix_model_fit(model, x, y, .verbose = MIX_SILENT);
  assert_true(mix_logs_get(mix_history_epoch(history, 0), "loss") == 0);
  mix_model_compile(model, .loss = "mae", .preprocess = keep_first);
  assert_null(mix_model_predict(model, x));
  assert_error(MIX_VALUE_ERROR, "preprocess returned 1 tensors; expected one for each of 2 inputs");
  mix_model_compile(model, .loss = "mae", .preprocess = keep_first, .image_bytes = true);
  assert_error(MIX_VALUE_ERROR, "preprocess or image_bytes");
}

/* The numbers are those of one batch, independent of earlier ones. */
static void train_on_batch_resets_the_metrics(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.25);
  mix_tensor *one = ARRAY(F32, MIX_SHAPE(1, 1), 1), *zero = zeros(1);
  assert_true(mix_logs_get(mix_model_train_on_batch(model, one, zero), "loss") == 1);
  assert_true(weight_at(model, 0, 0) == 0.5); /* 1 - 0.25 * 2 */
  assert_true(mix_logs_get(mix_model_train_on_batch(model, one, zero), "loss") == 0.25);
  assert_true(weight_at(model, 0, 0) == 0.25);
  assert_true(mix_logs_get(mix_model_test_on_batch(model, one, zero), "loss") == 0.0625);
  assert_true(weight_at(model, 0, 0) == 0.25);
}

static void each_batch_size_has_a_plan_and_one_set_of_weights(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.125);
  double w = 1;
  for (int64_t n = 1; n <= 4; n++) {
    mix_model_train_on_batch(model, mix_fill(MIX_SHAPE(n, 1), 1, F32), zeros(n));
    w -= 0.125 * 2 * w;
    assert_near(weight_at(model, 0, 0), w, 1e-7);
  }
  mix_plan_report report;
  assert_int_equal(mix_function_report(mix_model_train_function(model), &report, sizeof report), MIX_OK);
  assert_true(report.nodes > 0 && report.peak_bytes > 0);
}

static void custom_logs(void **state) {
  (void)state;
  mix_logs *logs = mix_logs_of(2, (const char *const[]){"a", "b"}, (const double[]){1, 2});
  assert_int_equal(mix_logs_count(logs), 2);
  assert_true(mix_logs_get(logs, "b") == 2 && isnan(mix_logs_value(logs, 2)) &&
              isnan(mix_logs_value(logs, -1)));
  assert_null(mix_logs_of(1, NULL, (const double[]){1}));
  assert_error(MIX_TYPE_ERROR, "logs_of");
}

/* ---- NULL and other objects in every public call ---- */

static void null_is_an_error_everywhere(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_tensor *x = counting(2), *y = zeros(2);
#define REFUSED(call)                                                                                        \
  do {                                                                                                       \
    if ((call) && mix_error() == MIX_OK) fail_msg("%s: no error", #call);                                    \
    mix_status status_ = mix_error_take(NULL, 0);                                                            \
    if (status_ != MIX_TYPE_ERROR && status_ != MIX_VALUE_ERROR)                                             \
      fail_msg("%s: %s", #call, mix_status_name(status_));                                                   \
  } while (0)
  REFUSED(mix_model_with(NULL));
  REFUSED(mix_model_new(NULL, x));
  REFUSED(mix_model_new(x, NULL));
  REFUSED(mix_sequential_add(NULL, NULL));
  REFUSED(mix_model_build(NULL, MIX_SHAPE(1)));
  REFUSED(mix_model_layer(NULL));
  REFUSED(mix_model_layers(NULL));
  REFUSED(mix_model_get_layer(NULL, "a"));
  REFUSED(mix_model_get_layer(model, NULL));
  REFUSED(mix_model_get_layer(model, "none"));
  REFUSED(mix_model_weights(NULL));
  REFUSED(mix_model_trainable_variables(NULL));
  REFUSED(mix_model_non_trainable_variables(NULL));
  REFUSED(mix_model_get_weights(NULL));
  REFUSED(mix_model_set_weights(NULL, NULL));
  REFUSED(mix_model_set_weights(model, NULL));
  REFUSED(mix_model_save_weights(NULL, "a"));
  REFUSED(mix_model_save_weights(model, NULL));
  REFUSED(mix_model_load_weights(NULL, "a"));
  REFUSED(mix_model_load_weights(model, NULL));
  REFUSED(mix_model_call_with(NULL, NULL));
  REFUSED(mix_model_call_with(model, NULL));
  REFUSED(mix_model_call(model, NULL));
  REFUSED(mix_model_call_outputs_with(model, NULL));
  REFUSED(mix_model_compile_with(NULL, NULL));
  REFUSED(mix_model_fit_with(NULL, NULL));
  REFUSED(mix_model_fit_with(model, NULL));
  REFUSED(mix_model_fit(model, NULL, y));
  REFUSED(mix_model_fit(model, x, NULL));
  REFUSED(mix_model_fit(model, (mix_tensor *)model, y));
  REFUSED(mix_model_fit(model, mix_list_of(NULL), y));
  REFUSED(mix_model_fit((mix_model *)x, x, y));
  REFUSED(mix_model_evaluate_with(NULL, NULL));
  REFUSED(mix_model_evaluate_with(model, NULL));
  REFUSED(mix_model_evaluate(model, NULL, y));
  REFUSED(mix_model_evaluate(model, x, NULL));
  REFUSED(mix_model_predict_with(NULL, NULL));
  REFUSED(mix_model_predict_with(model, NULL));
  REFUSED(mix_model_predict(model, NULL));
  REFUSED(mix_model_train_on_batch(NULL, x, y));
  REFUSED(mix_model_train_on_batch(model, NULL, y));
  REFUSED(mix_model_train_on_batch(model, x, NULL));
  REFUSED(mix_model_test_on_batch(NULL, x, y));
  REFUSED(mix_model_test_on_batch(model, x, NULL));
  REFUSED(mix_model_summary(NULL));
#undef REFUSED
  /* Getters return an empty value without an error. */
  assert_string_equal(mix_model_name(NULL), "");
  assert_null(mix_model_policy(NULL));
  assert_null(mix_model_optimizer(NULL));
  assert_null(mix_model_train_function(NULL));
  assert_int_equal(mix_history_epochs(NULL), 0);
  assert_int_equal(mix_history_steps(NULL), 0);
  assert_null(mix_history_epoch(NULL, 0));
  assert_int_equal(mix_logs_count(NULL), 0);
  assert_null(mix_logs_name(NULL, 0));
  assert_true(isnan(mix_logs_value(NULL, 0)) && isnan(mix_logs_get(NULL, "loss")));
  assert_no_error();
}

/* While an error is pending every call fails with it and has no effect. */
static void a_pending_error_stops_everything(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.5);
  mix_tensor *x = counting(2), *y = zeros(2);
  mix_tensor *bad = mix_add(x, mix_cast(x, MIX_FLOAT16));
  assert_null(bad);
  assert_null(mix_model_fit(model, x, y));
  assert_null(mix_model_evaluate(model, x, y));
  assert_null(mix_model_predict(model, x));
  assert_int_equal(mix_model_compile(model, .loss = "mae"), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR, "add");
  assert_true(weight_at(model, 0, 0) == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(Y10_without_metrics_there_is_the_loss),
      TEST(evaluate_weighs_batches_by_rows_and_trains_nothing),
      TEST(evaluate_after_fit_resets_the_metrics),
      TEST(predict_joins_the_batches),
      TEST(predict_is_inference),
      TEST(predict_inside_a_capture_says_what_to_do),
      TEST(predict_of_bytes_of_images),
      TEST(preprocess_makes_the_inputs_in_each_step),
      TEST(train_on_batch_resets_the_metrics),
      TEST(each_batch_size_has_a_plan_and_one_set_of_weights),
      TEST(custom_logs),
      TEST(null_is_an_error_everywhere),
      TEST(a_pending_error_stops_everything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
