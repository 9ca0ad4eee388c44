/* The acceptance scenario of the public guides (docs/spec/mixed_precision.md, 11), row by row. Rows that need
 * the program or real MNIST are in tests/cli. */
#include "model/support.h"

static char warning[2048];
static mix_log_level warning_level;
static void listen(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level != MIX_LOG_WARNING && level != MIX_LOG_INFO) return;
  warning_level = level;
  snprintf(warning, sizeof warning, "%s", message);
}

/* Must be the first test: the check runs once for each process. */
static void W01_the_policy_reports_on_the_device_and_goes_on(void **state) {
  (void)state;
  mix_set_log_callback(listen, NULL);
  mix_policy *policy = mix_policy_new("mixed_float16");
  assert_non_null(policy);
  assert_no_error();
  assert_non_null(strstr(warning, "Mixed precision compatibility check (mixed_float16)"));
  assert_int_equal(warning_level, MIX_LOG_WARNING); /* no GPU here; nn/test_device_check.c has the guide's */
}

static void W02_dtypes_of_the_policy(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  assert_string_equal(mix_dtype_name(mix_policy_compute_dtype(mix_global_policy())), "float16");
  assert_string_equal(mix_dtype_name(mix_policy_variable_dtype(mix_global_policy())), "float32");
}

static void W04_the_first_dense_layer(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_layer *dense = mix_dense(.units = 64, .activation = "relu", .name = "dense_1");
  mix_tensor *x = mix_call(dense, mix_input(.shape = MIX_SHAPE(784), .name = "digits"));
  assert_int_equal(mix_tensor_dtype(x), MIX_FLOAT16);
  assert_int_equal(mix_variable_dtype(mix_list_get(mix_layer_weights(dense), 0)), F32);
}

static void W05_softmax_inside_the_dense_layer_is_float16(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_layer *dense = mix_dense(.units = 10, .activation = "softmax");
  assert_int_equal(mix_tensor_dtype(mix_call(dense, mix_fill(MIX_SHAPE(2, 4), 1, F32))), MIX_FLOAT16);
}

static void W06_a_softmax_of_its_own_is_float32(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_tensor *logits = mix_call(mix_dense(.units = 10), mix_fill(MIX_SHAPE(2, 4), 1, F32));
  mix_tensor *by_name = mix_call(mix_activation("softmax", .dtype = "float32"), logits);
  mix_tensor *by_policy = mix_call(mix_activation("softmax", .policy = mix_policy_new("float32")), logits);
  assert_int_equal(mix_tensor_dtype(by_name), F32);
  assert_int_equal(mix_tensor_dtype(by_policy), F32);
  for (int i = 0; i < 20; i++) assert_true(at(by_name, i) == at(by_policy, i));
}

static void W07_a_linear_activation_is_a_cast(void **state) {
  (void)state;
  mix_layer *linear = mix_activation("linear", .dtype = "float32");
  mix_tensor *half = ARRAY(MIX_FLOAT16, MIX_SHAPE(1, 3), 0.1, -65504, 0x1p-24), *out = mix_call(linear, half);
  assert_int_equal(mix_tensor_dtype(out), F32);
  for (int i = 0; i < 3; i++) assert_true(at(out, i) == at(half, i));
  mix_tensor *already = ARRAY(F32, MIX_SHAPE(1, 2), 0.1, 1e30);
  out = mix_call(linear, already);
  for (int i = 0; i < 2; i++) assert_true(at(out, i) == at(already, i));
}

static void W08_compile_wraps_the_optimizer(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_optimizer *used = mix_model_optimizer(compiled_guide_model(784, 64));
  assert_true(mix_optimizer_scales_loss(used) && mix_optimizer_dynamic(used));
  assert_string_equal(mix_optimizer_class_name(mix_optimizer_inner(used)), "RMSprop");
}

/* Bytes divided by 255 in the step, and the float32 array that the guide computes first: the same bits. */
static void W09_images_are_divided_in_float32_before_the_model(void **state) {
  (void)state;
  uint8_t bytes[40][28 * 28];
  float *scaled = malloc(sizeof *scaled * 40 * 784);
  int64_t labels[40];
  for (int i = 0; i < 40; i++) {
    labels[i] = i % 10;
    for (int p = 0; p < 784; p++) {
      bytes[i][p] = (uint8_t)((i * 784 + p) * 7 % 256);
      scaled[i * 784 + p] = (float)bytes[i][p] / 255;
    }
  }
  mix_tensor *y = mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(40)),
             *images = mix_tensor_from(bytes, MIX_UINT8, MIX_SHAPE(40, 28, 28));
  mix_tensor *floats = mix_tensor_from(scaled, F32, MIX_SHAPE(40, 784));
  free(scaled);
  mix_set_global_policy("mixed_float16");
  unsigned char *bits[2];
  size_t size[2];
  for (int from_bytes = 0; from_bytes < 2; from_bytes++) {
    mix_set_seed(9);
    mix_model *model = guide_model(784, 16);
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                      .optimizer = mix_rmsprop(.learning_rate = 0), .image_bytes = from_bytes);
    mix_model_fit(model, from_bytes ? images : floats, y, .epochs = 3, .no_shuffle = true,
                  .verbose = MIX_SILENT);
    assert_no_error();
    bits[from_bytes] = bits_of(mix_model_weights(model), &size[from_bytes]);
  }
  assert_int_equal(size[0], size[1]);
  assert_memory_equal(bits[0], bits[1], size[0]);
  free(bits[0]);
  free(bits[1]);
}

/* 60,000 rows, five epochs of six steps: the policy's own loss scale object has counted them. */
static void W12_the_policys_loss_scale_is_the_models(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  mix_policy *policy = mix_policy_new("mixed_float16");
  mix_set_global_policy_object(policy);
  mix_model *model = compiled_guide_model(1, 2);
  mix_tensor *x = mix_fill(MIX_SHAPE(60000, 1), 0.5, F32), *y = mix_fill(MIX_SHAPE(60000), 3, MIX_INT64);
  mix_model_fit(model, x, y, .batch_size = 8192, .epochs = 5, .validation_split = 0.2, .verbose = MIX_SILENT);
  assert_no_error();
  mix_loss_scale *scale = mix_policy_loss_scale(policy);
  assert_ptr_equal(scale, mix_optimizer_loss_scale_object(mix_model_optimizer(model)));
  assert_true(mix_tensor_item(mix_loss_scale_value(scale)) == 32768);
  assert_true(mix_tensor_item(mix_variable_true_value(mix_loss_scale_good_steps(scale))) == 30);
}

static void W13_a_policy_with_a_fixed_loss_scale(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  char text[64];
  assert_string_equal(
      mix_loss_scale_text(mix_policy_loss_scale(mix_policy_new("mixed_float16", .loss_scale = 1024)), text,
                          sizeof text),
      "FixedLossScale(1024.0)");
}

static void W14_overflow_and_underflow(void **state) {
  (void)state;
  mix_tensor *large = mix_scalar(256, MIX_FLOAT16), *small = mix_scalar(1e-5, MIX_FLOAT16);
  assert_true(isinf(mix_tensor_item(mix_multiply(large, large))));
  assert_true(mix_tensor_item(mix_multiply(small, small)) == 0);
}

/* ---- the manual loop ---- */

typedef struct training {
  mix_model *model;
  mix_loss *loss_object;
  mix_optimizer *optimizer;
  mix_dtype gradient_dtypes[8];
  int traces;
} training;

static mix_list *train_step(void *context, mix_list *batch) {
  training *t = context;
  t->traces++;
  mix_list *variables = mix_model_trainable_variables(t->model);
  mix_tape *tape = mix_tape_begin();
  mix_tensor *predictions = mix_model_call(t->model, mix_list_get(batch, 0), .training = MIX_TRUE);
  mix_tensor *loss = mix_loss_call(t->loss_object, mix_list_get(batch, 1), predictions);
  mix_tensor *scaled_loss = mix_optimizer_get_scaled_loss(t->optimizer, loss);
  mix_tape_end(tape);
  mix_list *gradients =
      mix_optimizer_get_unscaled_gradients(t->optimizer, mix_tape_gradient(tape, scaled_loss, variables));
  for (int i = 0; i < mix_list_count(gradients) && i < 8; i++)
    t->gradient_dtypes[i] = mix_tensor_dtype(mix_list_get(gradients, i));
  mix_optimizer_apply_gradients(t->optimizer, gradients, variables);
  return mix_list_of(loss);
}

static void W15_the_manual_loop(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  training t = {.model = guide_model(4, 8),
                .loss_object = mix_loss_new("sparse_categorical_crossentropy"),
                .optimizer = mix_loss_scale_optimizer(mix_rmsprop(.learning_rate = 0))};
  examples e = examples_of(60000, 4, 4);
  mix_dataset *train =
      mix_dataset_batch(mix_dataset_shuffle(mix_dataset_from_tensors(e.x, e.y), 10000, .seed = 1), 8192);
  mix_function *step = mix_function_new(train_step, &t);
  int64_t steps = 0, rows = 0;
  double first = 0, last = 0;
  MIX_SCOPE {
    mix_iterator *batches = mix_dataset_iterate(train);
    for (mix_list *batch; (batch = mix_iterator_next(batches));)
      MIX_SCOPE {
        rows = mix_tensor_shape(mix_list_get(batch, 1)).dims[0];
        assert_int_equal(rows, steps < 7 ? 8192 : 2656);
        last = mix_tensor_item(mix_list_get(mix_function_call(step, batch), 0));
        if (!steps++) first = last;
      }
  }
  assert_no_error();
  assert_int_equal(steps, 8);
  assert_int_equal(t.traces, 2); /* one trace for each shape */
  assert_true(last < first);
  assert_int_equal(mix_optimizer_iterations(t.optimizer), 8);
  assert_true(mix_tensor_item(mix_variable_true_value(mix_optimizer_dynamic_counter(t.optimizer))) == 8);
}

static void W16_only_the_wrapper_scales_in_a_manual_loop(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  mix_policy *policy = mix_policy_new("mixed_float16", .loss_scale = 64);
  mix_set_global_policy_object(policy);
  training t = {.model = guide_model(4, 8),
                .loss_object = mix_loss_new("sparse_categorical_crossentropy"),
                .optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.1),
                                                      .loss_scale = mix_fixed_loss_scale(8))};
  mix_tensor *loss = mix_scalar(2, F32);
  assert_true(mix_tensor_item(mix_optimizer_get_scaled_loss(t.optimizer, loss)) == 16);
  examples e = examples_of(8, 4, 4);
  mix_function_call(mix_function_new(train_step, &t), mix_list_of(e.x, e.y));
  assert_no_error();
  assert_true(mix_tensor_item(mix_optimizer_loss_scale(t.optimizer)) == 8);
}

/* 0.858 in float32 is this double (tests/cli tests that the program prints it). */
static void W17_metrics_are_float32_read_as_double(void **state) {
  (void)state;
  mix_metric *mean = mix_metric_mean();
  mix_metric_update(mean, mix_scalar(0.858, F32));
  assert_true(mix_metric_result(mean) == 0.8579999804496765);
  mix_metric *accuracy = mix_metric_new("sparse_categorical_accuracy");
  mix_metric_update(accuracy, ARRAY(MIX_INT64, MIX_SHAPE(3), 0, 1, 1),
                    ARRAY(MIX_FLOAT16, MIX_SHAPE(3, 2), 1, 0, 0, 1, 1, 0));
  assert_true(mix_metric_result(accuracy) == (double)(2.0f / 3.0f));
}

/* A scale of 2^40 overflows float16 at once. It is halved until the steps fit, and no weight becomes
 * non-finite. */
static void W18_early_steps_may_be_skipped(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_model *model = guide_model(6, 8);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer =
                        mix_loss_scale_optimizer(mix_rmsprop(.learning_rate = 0), .initial_scale = 0x1p40));
  examples e = examples_of(320, 6, 10);
  step_losses_seen seen = {.count = 0};
  mix_model_fit(model, e.x, e.y, .batch_size = 8, .on_step = see_step, .context = &seen,
                .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(seen.count, 40);
  assert_false(seen.applied[0]);
  assert_true(seen.applied[39]);
  for (int i = 0; i < 40; i++) assert_true(isfinite(seen.loss[i]));
  for (int w = 0; w < 6; w++) assert_true(isfinite(weight_at(model, w, 0)));
}

static void W19_gradients_of_float32_weights_are_float32(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  training t = {.model = guide_model(4, 8),
                .loss_object = mix_loss_new("sparse_categorical_crossentropy"),
                .optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.1))};
  examples e = examples_of(8, 4, 4);
  mix_function_call(mix_function_new(train_step, &t), mix_list_of(e.x, e.y));
  assert_no_error();
  for (int i = 0; i < 6; i++) assert_int_equal(t.gradient_dtypes[i], F32);
}

/* Multiples of 8 only affect speed: odd sizes give float32's result within float16's accuracy. */
static void W20_sizes_that_are_no_multiples_of_8_work(void **state) {
  (void)state;
  examples e = examples_of(13, 11, 10);
  mix_model *models[2];
  for (int mixed = 0; mixed < 2; mixed++) {
    mix_set_global_policy(mixed ? "mixed_float16" : "float32");
    mix_set_seed(2);
    models[mixed] = guide_model(11, 17);
  }
  mix_model_set_weights(models[1], mix_model_get_weights(models[0]));
  mix_tensor *a = mix_model_call(models[0], e.x), *b = mix_model_call(models[1], e.x);
  for (int i = 0; i < 130; i++) assert_near(at(b, i), at(a, i), 2e-3);
}

static void W21_bfloat16_scales_nothing(void **state) {
  (void)state;
  mix_set_global_policy("mixed_bfloat16");
  mix_model *model = compiled_guide_model(6, 8);
  assert_false(mix_optimizer_scales_loss(mix_model_optimizer(model)));
  examples e = examples_of(32, 6, 10);
  step_losses_seen seen = {.count = 0};
  mix_model_fit(model, e.x, e.y, .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
  /* Without loss scaling the record has no scale. */
  assert_true(seen.count == 1 && seen.applied[0] && seen.scale[0] == 0 && seen.good_steps[0] == -1);
  mix_set_semantics("experimental");
  assert_null(mix_policy_loss_scale(mix_policy_new("mixed_bfloat16")));
}

/* ---- custom layers ---- */

static mix_dtype seen_dtypes[3];
static mix_list *two_arguments_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  seen_dtypes[0] = mix_tensor_dtype(mix_call_input(args, 0));
  seen_dtypes[1] = mix_tensor_dtype(mix_call_argument(args, 0));
  return mix_list_of(mix_call_input(args, 0));
}
static const mix_layer_class two_arguments_class = {
    .size = sizeof(mix_layer_class), .name = "MyLayer", .call = two_arguments_call};
static void W23_only_the_first_argument_is_cast(void **state) {
  (void)state;
  mix_tensor *x = mix_fill(MIX_SHAPE(1, 2), 1, F32), *y = mix_fill(MIX_SHAPE(1, 2), 1, F32);
  mix_call(mix_layer_new(&two_arguments_class, .dtype = "float64"), x, .arguments = mix_list_of(y));
  assert_no_error();
  assert_int_equal(seen_dtypes[0], MIX_FLOAT64);
  assert_int_equal(seen_dtypes[1], F32);
}

/* AddRandom: random numbers of the input's dtype, or of float32 for any input. */
static mix_list *add_random_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  mix_dtype dtype = *(bool *)mix_layer_data(layer) ? mix_tensor_dtype(x) : F32;
  return mix_list_of(
      mix_add(x, mix_stateless_normal(ARRAY(MIX_INT64, MIX_SHAPE(2), 1, 2), mix_tensor_shape(x), dtype)));
}
static const mix_layer_class add_random_class = {.size = sizeof(mix_layer_class),
                                                 .name = "AddRandom",
                                                 .instance_size = sizeof(bool),
                                                 .call = add_random_call};
static void W24_random_numbers_must_have_the_inputs_dtype(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_tensor *x = mix_fill(MIX_SHAPE(2, 2), 1, F32);
  mix_layer *right = mix_layer_new(&add_random_class), *wrong = mix_layer_new(&add_random_class);
  *(bool *)mix_layer_data(right) = true;
  assert_int_equal(mix_tensor_dtype(mix_call(right, x)), MIX_FLOAT16);
  assert_null(mix_call(wrong, x));
  assert_error(MIX_TYPE_ERROR, "float16");
}

static mix_status simple_dense_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count;
  int64_t inputs = shapes[0].dims[shapes[0].rank - 1];
  mix_layer_add_weight(layer, "kernel", .shape = MIX_SHAPE(inputs, 3));
  mix_layer_add_weight(layer, "bias", .shape = MIX_SHAPE(3), .initializer = "zeros");
  return mix_error();
}
static mix_list *simple_dense_call(mix_layer *layer, const mix_call_args *args) {
  mix_list *weights = mix_layer_weights(layer);
  mix_variable *kernel = mix_list_get(weights, 0);
  seen_dtypes[0] = mix_variable_dtype(kernel);
  seen_dtypes[1] = mix_variable_true_dtype(kernel);
  return mix_list_of(
      mix_bias_add(mix_matmul(mix_call_input(args, 0), mix_variable_value(kernel), false, false),
                   mix_variable_value(mix_list_get(weights, 1))));
}
static const mix_layer_class simple_dense_class = {.size = sizeof(mix_layer_class),
                                                   .name = "SimpleDense",
                                                   .build = simple_dense_build,
                                                   .call = simple_dense_call};
static void W25_weights_of_a_custom_layer_cast_themselves(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_layer *layer = mix_layer_new(&simple_dense_class);
  mix_tensor *out = mix_call(layer, mix_fill(MIX_SHAPE(2, 4), 1, F32));
  assert_int_equal(mix_tensor_dtype(out), MIX_FLOAT16);
  assert_int_equal(seen_dtypes[0], MIX_FLOAT16);
  assert_int_equal(seen_dtypes[1], F32);
  assert_int_equal(mix_variable_dtype(mix_list_get(mix_layer_weights(layer), 0)), F32);
  /* It also trains, without any change for mixed precision. */
  mix_model *model = mix_sequential(mix_list_of(layer, mix_activation("softmax", .dtype = "float32")));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_adam(.learning_rate = 0.05), .metrics = {"accuracy"});
  examples e = examples_of(90, 4, 3);
  mix_model_fit(model, e.x, e.y, .epochs = 20, .verbose = MIX_SILENT);
  assert_no_error();
  assert_true(mix_logs_get(mix_model_evaluate(model, e.x, e.y, .verbose = MIX_SILENT), "accuracy") > 0.8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(W01_the_policy_reports_on_the_device_and_goes_on),
      TEST(W02_dtypes_of_the_policy),
      TEST(W04_the_first_dense_layer),
      TEST(W05_softmax_inside_the_dense_layer_is_float16),
      TEST(W06_a_softmax_of_its_own_is_float32),
      TEST(W07_a_linear_activation_is_a_cast),
      TEST(W08_compile_wraps_the_optimizer),
      TEST(W09_images_are_divided_in_float32_before_the_model),
      TEST(W12_the_policys_loss_scale_is_the_models),
      TEST(W13_a_policy_with_a_fixed_loss_scale),
      TEST(W14_overflow_and_underflow),
      TEST(W15_the_manual_loop),
      TEST(W16_only_the_wrapper_scales_in_a_manual_loop),
      TEST(W17_metrics_are_float32_read_as_double),
      TEST(W18_early_steps_may_be_skipped),
      TEST(W19_gradients_of_float32_weights_are_float32),
      TEST(W20_sizes_that_are_no_multiples_of_8_work),
      TEST(W21_bfloat16_scales_nothing),
      TEST(W23_only_the_first_argument_is_cast),
      TEST(W24_random_numbers_must_have_the_inputs_dtype),
      TEST(W25_weights_of_a_custom_layer_cast_themselves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
