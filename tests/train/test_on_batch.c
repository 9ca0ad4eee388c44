/* train_on_batch, test_on_batch and predict_on_batch with their options, against Keras 3 and tf_keras
 * (recorded_batches.py). */
#include "recorded_values.h"

/* A few dozen float32 operations on numbers near 1, four steps long. */
static const double tolerance = 4e-6;

static mix_tensor *labels(int which) {
  static const int32_t all[2][6] = {{0, 1, 2, 2, 1, 0}, {2, 2, 0, 1, 0, 1}};
  return mix_tensor_from(all[which], MIX_INT32, MIX_SHAPE(6));
}
static mix_tensor *inputs(int which) { return values(MIX_SHAPE(6, 5), 10 * which); }
static mix_tensor *weights(void) { return ARRAY(F32, MIX_SHAPE(6), 0.5, 1, 2, 0, 1.5, 0.25); }

static int captures; /* of steps: how often preprocess ran */
static mix_list *count_captures(void *context, mix_list *list) { return (void)context, captures++, list; }

static mix_model *recorded_model(const char *semantics) {
  mix_set_semantics(semantics);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(5));
  mix_tensor *y = mix_call(mix_dense(4, "tanh"), x);
  mix_model *model = mix_model_new(x, mix_call(mix_dense(3, "softmax"), y));
  mix_model_set_weights(model, mix_list_of(values(MIX_SHAPE(5, 4), 20), mix_fill(MIX_SHAPE(4), 0, F32),
                                           values(MIX_SHAPE(4, 3), 30), mix_fill(MIX_SHAPE(3), 0, F32)));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_sgd(.learning_rate = 0.5), .metrics = {"sparse_categorical_accuracy"},
                    .weighted_metrics = {"sparse_categorical_crossentropy"}, .preprocess = count_captures);
  assert_no_error();
  return model;
}

static mix_on_batch_options batch_of(int which) {
  return (mix_on_batch_options){.size = sizeof(mix_on_batch_options), .x = inputs(which), .y = labels(which)};
}
static void with_class_weights(mix_on_batch_options *batch) {
  batch->class_weight_count = 3;
  for (int i = 0; i < 3; i++) batch->class_labels[i] = i;
  batch->class_weights[0] = 1, batch->class_weights[1] = 2.5, batch->class_weights[2] = 0.5;
}

static void assert_logs(const mix_logs *logs, const double *expected) {
  assert_no_error();
  assert_int_equal(mix_logs_count(logs), 3);
  assert_near(mix_logs_get(logs, "loss"), expected[0], tolerance);
  assert_near(mix_logs_get(logs, "sparse_categorical_accuracy"), expected[1], tolerance);
  assert_near(mix_logs_get(logs, "sparse_categorical_crossentropy"), expected[2], tolerance);
}

static void run_recorded(mix_model *model, const double *expected) {
  mix_on_batch_options first = batch_of(0), second = batch_of(1);
  assert_logs(mix_model_train_on_batch_with(model, &first), expected);
  second.sample_weight = weights();
  assert_logs(mix_model_train_on_batch_with(model, &second), expected + 3);
  with_class_weights(&first);
  assert_logs(mix_model_train_on_batch_with(model, &first), expected + 6);
  assert_logs(mix_model_test_on_batch_with(model, &second), expected + 9);
}

static void batches_of_keras3(void **state) {
  (void)state;
  mix_model *model = recorded_model("keras3");
  run_recorded(model, keras3_batches);
  mix_list *outputs = mix_model_predict_on_batch(model, inputs(0));
  assert_int_equal(mix_list_count(outputs), 1);
  assert_all_near(mix_list_get(outputs, 0), keras3_predicted, 18, tolerance);
}

/* reset_metrics=False: the means go on from the call before, of training and of tests. */
static void batches_of_tf_keras(void **state) {
  (void)state;
  mix_model *model = recorded_model("tf_keras");
  run_recorded(model, tf_keras_batches);
  mix_on_batch_options first = batch_of(0), second = batch_of(1);
  assert_logs(mix_model_train_on_batch_with(model, &first), tf_keras_batches + 12);
  first.keep_metrics = second.keep_metrics = true;
  assert_logs(mix_model_train_on_batch_with(model, &second), tf_keras_batches + 15);
  assert_logs(mix_model_test_on_batch_with(model, &first), tf_keras_batches + 18);
  assert_all_near(mix_list_get(mix_model_predict_on_batch(model, inputs(0)), 0), tf_keras_predicted, 18,
                  tolerance);
}

static void equal_class_weights_are_captured_once(void **state) {
  (void)state;
  mix_model *model = recorded_model("keras3");
  mix_on_batch_options batch = batch_of(0), plain = batch;
  with_class_weights(&batch);
  captures = 0;
  for (int i = 0; i < 3; i++) assert_non_null(mix_model_train_on_batch_with(model, &batch));
  assert_int_equal(captures, 1);
  batch.class_weights[1] = 3;
  assert_non_null(mix_model_train_on_batch_with(model, &batch));
  assert_int_equal(captures, 2);
  /* A batch without weights has the loss of a model that never had any. */
  const double weighted = mix_logs_get(mix_model_train_on_batch_with(model, &batch), "loss");
  mix_model_set_weights(model, mix_model_get_weights(recorded_model("keras3")));
  assert_logs(mix_model_train_on_batch_with(model, &plain), keras3_batches);
  assert_true(weighted != keras3_batches[0]);
}

static void class_and_sample_weights_together(void **state) {
  (void)state;
  mix_model *model = recorded_model("keras3");
  mix_on_batch_options batch = batch_of(0);
  with_class_weights(&batch);
  batch.sample_weight = weights();
  assert_null(mix_model_train_on_batch_with(model, &batch));
  assert_error(MIX_VALUE_ERROR, "train_on_batch: class weights and sample weights together");
  /* tf_keras multiplies them. Labels 0 1 2 2 1 0. */
  model = recorded_model("tf_keras");
  mix_on_batch_options product = batch_of(0);
  product.sample_weight = ARRAY(F32, MIX_SHAPE(6), 0.5 * 1, 1 * 2.5, 2 * 0.5, 0, 1.5 * 2.5, 0.25 * 1);
  const double expected = mix_logs_get(mix_model_train_on_batch_with(model, &product), "loss");
  model = recorded_model("tf_keras");
  assert_near(mix_logs_get(mix_model_train_on_batch_with(model, &batch), "loss"), expected, tolerance);
}

static void class_weights_out_of_place_are_refused(void **state) {
  (void)state;
  mix_model *model = recorded_model("keras3");
  mix_on_batch_options batch = batch_of(0);
  with_class_weights(&batch);
  assert_null(mix_model_test_on_batch_with(model, &batch));
  assert_error(MIX_TYPE_ERROR, "test_on_batch: class weights are of training alone");
  batch.class_weights[2] = NAN;
  assert_null(mix_model_train_on_batch_with(model, &batch));
  assert_error(MIX_VALUE_ERROR, "train_on_batch: class_weights[2] is nan");
  batch.class_weights[2] = 1;
  batch.class_labels[2] = -1;
  assert_null(mix_model_train_on_batch_with(model, &batch));
  assert_error(MIX_VALUE_ERROR, "train_on_batch: class weight for label -1");
  batch.class_weight_count = MIX_CLASS_MAX + 1;
  assert_null(mix_model_train_on_batch_with(model, &batch));
  assert_error(MIX_VALUE_ERROR, "train_on_batch: class_weight_count is 65");
  batch.class_weight_count = -1;
  assert_null(mix_model_train_on_batch_with(model, &batch));
  assert_error(MIX_VALUE_ERROR, "class_weight_count is -1");
}

/* ---- predict_on_batch ---- */

static void predict_on_batch_gives_every_output(void **state) {
  (void)state;
  mix_tensor *a = mix_input(.shape = MIX_SHAPE(1)), *b = mix_input(.shape = MIX_SHAPE(1));
  mix_tensor *sum = mix_call(mix_add_layer(), mix_list_of(a, b));
  mix_model *model = mix_model_new(mix_list_of(a, b), mix_list_of(sum, mix_call(mix_flatten(), a)));
  mix_list *x = mix_list_of(counting(3), mix_fill(MIX_SHAPE(3, 1), 10, F32));
  mix_list *first = mix_model_predict_on_batch(model, x), *second = mix_model_predict_on_batch(model, x);
  assert_no_error();
  assert_int_equal(mix_list_count(first), 2);
  for (int i = 0; i < 3; i++) { /* the second call leaves the results of the first */
    assert_true(at(mix_list_get(first, 0), i) == 10 + i && at(mix_list_get(second, 0), i) == 10 + i);
    assert_true(at(mix_list_get(first, 1), i) == i);
  }
}

/* Dropout does nothing, and the bits are those of predict. */
static void predict_on_batch_is_predict(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(5));
  mix_tensor *y = mix_call(mix_dropout(.rate = 0.5), mix_call(mix_dense(3, "relu"), x));
  mix_model *model = mix_model_new(x, y);
  mix_tensor *all = mix_list_get(mix_model_predict(model, inputs(0)), 0),
             *batch = mix_list_get(mix_model_predict_on_batch(model, inputs(0)), 0);
  assert_no_error();
  assert_int_equal(mix_tensor_dtype(batch), MIX_FLOAT16);
  assert_memory_equal(mix_tensor_data(all), mix_tensor_data(batch), 2 * 18);
}

static mix_list *predict_in_a_step(void *model, mix_list *arguments) {
  return mix_model_predict_on_batch(model, mix_list_get(arguments, 0));
}

static void predict_on_batch_refuses(void **state) {
  (void)state;
  mix_model *model = product_model(2, 0);
  assert_null(mix_model_predict_on_batch(NULL, counting(1)));
  assert_error(MIX_TYPE_ERROR, "predict_on_batch");
  assert_null(mix_model_predict_on_batch(model, NULL));
  assert_error(MIX_TYPE_ERROR, "predict_on_batch: x is neither a tensor nor a list of tensors");
  assert_null(mix_model_predict_on_batch(model, mix_dataset_batch(mix_dataset_from_tensors(counting(2)), 1)));
  assert_error(MIX_TYPE_ERROR, "predict_on_batch: x is neither");
  assert_null(mix_model_predict_on_batch(model, mix_input(.shape = MIX_SHAPE(1))));
  assert_error(MIX_TYPE_ERROR, "symbolic");
  assert_null(mix_model_predict_on_batch(model, mix_fill(MIX_SHAPE(0, 1), 0, F32)));
  assert_error(MIX_VALUE_ERROR, "predict_on_batch: array 0 has no rows");
  assert_null(mix_function_call(mix_function_new(predict_in_a_step, model), mix_list_of(counting(3))));
  assert_error(MIX_RUNTIME_ERROR, "predict_on_batch: called in a function that is being captured");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(batches_of_keras3),
      TEST(batches_of_tf_keras),
      TEST(equal_class_weights_are_captured_once),
      TEST(class_and_sample_weights_together),
      TEST(class_weights_out_of_place_are_refused),
      TEST(predict_on_batch_gives_every_output),
      TEST(predict_on_batch_is_predict),
      TEST(predict_on_batch_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
