/* Functional models: several inputs and outputs, shared layers, models inside models. */
#include "model/model.h"
#include "model/support.h"
#include "nn/layer/layer.h"
#include "support/expect.h"

/* Adds the tensors of a list. */
static mix_list *sum_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  return mix_list_of(mix_add(mix_call_input(args, 0), mix_call_input(args, 1)));
}
static const mix_layer_class sum_class = {.size = sizeof(mix_layer_class), .name = "Sum", .call = sum_call};

static mix_layer *scaling(double w, const char *name) {
  return mix_dense(.units = 1, .no_bias = true,
                   .kernel_initializer_object = mix_initializer_new("constant", .value = w), .name = name);
}

static void several_inputs_are_matched_in_order(void **state) {
  (void)state;
  mix_tensor *a = mix_input(.shape = MIX_SHAPE(1), .name = "a"),
             *b = mix_input(.shape = MIX_SHAPE(1), .name = "b");
  mix_tensor *sum = mix_call(mix_layer_new(&sum_class),
                             mix_list_of(mix_call(scaling(2, "two"), a), mix_call(scaling(3, "three"), b)));
  mix_model *model = mix_model_new(mix_list_of(a, b), sum);
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(2, 1), 1, 10), *y = ARRAY(F32, MIX_SHAPE(2, 1), 5, 7);
  mix_tensor *result = mix_model_call(model, mix_list_of(x, y));
  assert_true(at(result, 0) == 2 * 1 + 3 * 5 && at(result, 1) == 2 * 10 + 3 * 7);
  mix_list *predicted = mix_model_predict(model, mix_list_of(x, y), .batch_size = 1);
  assert_int_equal(mix_list_count(predicted), 1);
  assert_true(at(mix_list_get(predicted, 0), 1) == 41);
  /* d/dw of the mean of (sum - 0)^2 over the one row: 2 * sum * x */
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.0078125));
  mix_tensor *one_x = ARRAY(F32, MIX_SHAPE(1, 1), 1), *one_y = ARRAY(F32, MIX_SHAPE(1, 1), 5),
             *zero = ARRAY(F32, MIX_SHAPE(1, 1), 0);
  mix_logs *logs = mix_model_train_on_batch(model, mix_list_of(one_x, one_y), zero);
  assert_true(mix_logs_get(logs, "loss") == 17 * 17);
  assert_true(weight_at(model, 0, 0) == 2 - 2 * 17 * 1 / 128.0 &&
              weight_at(model, 1, 0) == 3 - 2 * 17 * 5 / 128.0);
  mix_model_call(model, x);
  assert_error(MIX_VALUE_ERROR, "1 inputs given");
}

static void several_outputs_have_losses_of_their_own(void **state) {
  (void)state;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(1));
  mix_tensor *left = mix_call(scaling(2, "left"), x), *right = mix_call(scaling(3, "right"), x);
  mix_model *model = mix_model_new(x, mix_list_of(left, right));
  mix_model_compile(model, .losses = {"mse", "mae"}, .loss_weights = {0.5, 4}, .metrics = {"mae"},
                    .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  mix_tensor *data = ARRAY(F32, MIX_SHAPE(2, 1), 1, 2), *zeros = ARRAY(F32, MIX_SHAPE(2, 1), 0, 0);
  mix_logs *logs = mix_model_train_on_batch(model, data, mix_list_of(zeros, zeros));
  static const char *const names[] = {"loss", "left_loss", "right_loss", "left_mae", "right_mae"};
  /* left: 2, 4 -> mse 10, mae 3; right: 3, 6 -> mae 4.5; total 0.5 * 10 + 4 * 4.5 */
  static const double values[] = {23, 10, 4.5, 3, 4.5};
  assert_int_equal(mix_logs_count(logs), 5);
  for (int i = 0; i < 5; i++) {
    assert_string_equal(mix_logs_name(logs, i), names[i]);
    assert_true(mix_logs_value(logs, i) == values[i]);
  }
  mix_list *outputs = mix_model_call_outputs(model, data);
  assert_int_equal(mix_list_count(outputs), 2);
  assert_true(at(mix_list_get(outputs, 1), 1) == 6);
  outputs = mix_model_predict(model, data);
  assert_int_equal(mix_list_count(outputs), 2);
  assert_true(at(mix_list_get(outputs, 0), 1) == 4 && at(mix_list_get(outputs, 1), 0) == 3);
  mix_model_fit(model, data, zeros);
  assert_error(MIX_VALUE_ERROR, "1 arrays of labels; the model has 2 outputs");
}

/* What stands behind the outputs is an error, not left out. */
static void more_losses_than_outputs(void **state) {
  (void)state;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(2));
  mix_model *model = mix_model_new(x, mix_call(mix_dense(.units = 1), x));
  assert_int_equal(mix_model_compile(model, .losses = {"mse", "mae"}), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "2 losses; the model has 1 output");
  assert_int_equal(mix_model_compile(model, .loss = "mse", .loss_weights = {1, 0, 2}), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "3 loss_weights; the model has 1 output");
  assert_int_equal(mix_model_compile(model, .losses = {"mse"}, .loss_weights = {2}), MIX_OK);
}

static mix_logs *evaluated_outputs_of_one_layer(const char *generation) {
  mix_set_semantics(generation);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(2, 1));
  mix_layer *rnn =
      mix_simple_rnn(1, .return_state = true, .no_bias = true, .activation = "linear",
                     .kernel_initializer = "ones", .recurrent_initializer = "zeros", .name = "rnn");
  mix_layer *taken = mix_dense(.units = 1, .kernel_initializer = "ones", .name = "rnn_1");
  mix_list *results = mix_call_outputs(rnn, x);
  mix_model *model =
      mix_model_new(x, mix_list_of(mix_list_get(results, 0), mix_call(taken, mix_list_get(results, 0)),
                                   mix_list_get(results, 1)));
  mix_model_compile(model, .loss = "mse", .metrics = {"mae"}, .optimizer = mix_sgd());
  mix_tensor *data = ARRAY(F32, MIX_SHAPE(1, 2, 1), 5, 7);
  mix_list *labels = mix_list_of(ARRAY(F32, MIX_SHAPE(1, 1), 6), ARRAY(F32, MIX_SHAPE(1, 1), 5),
                                 ARRAY(F32, MIX_SHAPE(1, 1), 4));
  mix_logs *logs = mix_model_evaluate(model, data, labels, .verbose = MIX_SILENT);
  assert_no_error();
  return logs;
}

static void assert_logs(const mix_logs *logs, int count, const char *const *names, const double *values) {
  assert_int_equal(mix_logs_count(logs), count);
  for (int i = 0; i < count; i++) {
    assert_string_equal(mix_logs_name(logs, i), names[i]);
    assert_true(mix_logs_value(logs, i) == values[i]);
  }
}

/* Keras 3 shows the last of the losses of one name. */
static void outputs_of_one_layer_are_named_as_in_keras(void **state) {
  (void)state;
  static const char *const unique[] = {"loss",    "rnn_loss",  "rnn_1_loss", "rnn_2_loss",
                                       "rnn_mae", "rnn_1_mae", "rnn_2_mae"};
  assert_logs(evaluated_outputs_of_one_layer("tf_keras"), 7, unique, (const double[]){14, 1, 4, 9, 1, 2, 3});
  static const char *const shared[] = {"loss", "rnn_loss", "rnn_1_loss", "rnn_mae", "rnn_1_mae", "rnn_mae_1"};
  assert_logs(evaluated_outputs_of_one_layer("keras3"), 6, shared, (const double[]){14, 9, 4, 1, 2, 3});
}

static void long_names_of_outputs_are_whole(void **state) {
  (void)state;
  char name[400] = "";
  memset(name, 'a', sizeof name - 1);
  mix_set_semantics("tf_keras");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(2, 1));
  mix_list *results = mix_call_outputs(mix_simple_rnn(1, .return_state = true, .name = name), x);
  mix_model *model = mix_model_new(x, results);
  assert_string_equal(mix_model_output_name(model, 0), name);
  assert_int_equal(strlen(mix_model_output_name(model, 1)), sizeof name - 1 + 2);
}

static void an_output_without_a_loss_is_left_out(void **state) {
  (void)state;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(1));
  mix_model *model =
      mix_model_new(x, mix_list_of(mix_call(scaling(2, "left"), x), mix_call(scaling(3, "right"), x)));
  mix_list *losses = mix_list_new(2, (void *[]){NULL, mix_loss_new("mse")});
  mix_model_compile(model, .loss_objects = losses, .optimizer = mix_sgd(.learning_rate = 0.125));
  mix_tensor *one = ARRAY(F32, MIX_SHAPE(1, 1), 1), *zero = ARRAY(F32, MIX_SHAPE(1, 1), 0);
  assert_true(mix_logs_get(mix_model_train_on_batch(model, one, mix_list_of(zero, zero)), "loss") == 9);
  assert_true(weight_at(model, 0, 0) == 2); /* no gradient, no update */
  assert_true(weight_at(model, 1, 0) == 3 - 0.125 * 2 * 3);
  mix_logs *logs = mix_model_evaluate(model, one, mix_list_of(zero, zero), .verbose = MIX_SILENT);
  assert_int_equal(mix_logs_count(logs), 2); /* loss and right_loss */
  assert_string_equal(mix_logs_name(logs, 1), "right_loss");
  mix_set_semantics("keras3"); /* Keras 3 logs the total only */
  model = mix_model_new(x, mix_list_of(mix_call(scaling(2, "left"), x), mix_call(scaling(3, "right"), x)));
  losses = mix_list_new(2, (void *[]){NULL, mix_loss_new("mse")});
  mix_model_compile(model, .loss_objects = losses, .optimizer = mix_sgd());
  logs = mix_model_evaluate(model, one, mix_list_of(zero, zero), .verbose = MIX_SILENT);
  assert_int_equal(mix_logs_count(logs), 1);
  mix_set_semantics("tf_keras");
}

static void a_shared_layer_has_one_weight_and_the_sum_of_gradients(void **state) {
  (void)state;
  mix_tensor *a = mix_input(.shape = MIX_SHAPE(1)), *b = mix_input(.shape = MIX_SHAPE(1));
  mix_layer *shared = scaling(2, "shared");
  mix_tensor *sum =
      mix_call(mix_layer_new(&sum_class), mix_list_of(mix_call(shared, a), mix_call(shared, b)));
  mix_model *model = mix_model_new(mix_list_of(a, b), sum);
  assert_int_equal(mix_list_count(mix_model_weights(model)), 1);
  assert_int_equal(mix_list_count(mix_model_layers(model)), 4); /* two inputs, shared, sum */
  mix_model_compile(model, .loss = "mae", .optimizer = mix_sgd(.learning_rate = 0.25));
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(1, 1), 1), *y = ARRAY(F32, MIX_SHAPE(1, 1), 2),
             *zero = ARRAY(F32, MIX_SHAPE(1, 1), 0);
  assert_true(mix_logs_get(mix_model_train_on_batch(model, mix_list_of(x, y), zero), "loss") == 6);
  assert_true(weight_at(model, 0, 0) == 2 - 0.25 * (1 + 2));
}

static void a_model_is_a_layer_of_another(void **state) {
  (void)state;
  mix_tensor *inner_inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_model *inner =
      mix_model_new(inner_inputs, mix_call(scaling(3, "three"), inner_inputs), .name = "inner");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_model *outer = mix_model_new(
      inputs, mix_call(scaling(2, "two"), mix_call(mix_model_layer(inner), inputs)), .name = "outer");
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(1, 1), 5);
  assert_true(at(mix_model_call(outer, x), 0) == 30);
  assert_int_equal(mix_list_count(mix_model_weights(outer)), 2);
  assert_ptr_equal(mix_model_get_layer(outer, "inner"), mix_model_layer(inner));
  /* Training the outer model updates the inner model's weight. */
  mix_model_compile(outer, .loss = "mae", .optimizer = mix_sgd(.learning_rate = 0.0625));
  mix_model_train_on_batch(outer, x, ARRAY(F32, MIX_SHAPE(1, 1), 0));
  assert_true(weight_at(inner, 0, 0) == 3 - 0.0625 * 2 * 5);
  /* A frozen inner model does not change. */
  mix_layer_set_trainable(mix_model_layer(inner), false);
  assert_int_equal(mix_list_count(mix_model_trainable_variables(outer)), 1);
  assert_int_equal(mix_list_count(mix_model_non_trainable_variables(outer)), 1);
  double before = weight_at(inner, 0, 0);
  mix_model_compile(outer, .loss = "mae", .optimizer = mix_sgd(.learning_rate = 0.0625));
  mix_model_train_on_batch(outer, x, ARRAY(F32, MIX_SHAPE(1, 1), 0));
  assert_true(weight_at(inner, 0, 0) == before);
}

static void a_sequential_is_a_layer_of_a_functional_model(void **state) {
  (void)state;
  mix_model *inner = mix_sequential(mix_list_of(scaling(2, "two"), scaling(3, "three")));
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_model *outer = mix_model_new(inputs, mix_call(mix_model_layer(inner), inputs));
  assert_true(at(mix_model_call(outer, ARRAY(F32, MIX_SHAPE(1, 1), 5)), 0) == 30);
  assert_int_equal(mix_list_count(mix_model_weights(outer)), 2);
}

static void training_reaches_the_layers(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(64));
  mix_model *model = mix_model_new(inputs, mix_call(mix_dropout(.rate = 0.5, .seed = 3), inputs));
  mix_tensor *ones = mix_fill(MIX_SHAPE(4, 64), 1, F32);
  mix_tensor *inferred = mix_model_call(model, ones),
             *trained = mix_model_call(model, ones, .training = MIX_TRUE);
  double kept = 0, dropped = 0;
  for (int i = 0; i < 256; i++) {
    assert_true(at(inferred, i) == 1);
    kept += at(trained, i) == 2;
    dropped += at(trained, i) == 0;
  }
  assert_true(kept + dropped == 256 && kept > 64 && dropped > 64); /* fails with probability 4e-15 */
}

/* ---- parts of models ---- */

/* A layer that is called twice, and one of two results, of which one is read. */
static void a_part_of_a_model_begins_another(void **state) {
  (void)state;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3, 2), .name = "x");
  mix_list *states = mix_call_outputs(mix_lstm(4, .return_state = true, .name = "lstm"), x);
  mix_layer *shared = mix_dense(4, "tanh", .name = "shared");
  mix_tensor *once = mix_call(shared, mix_list_get(states, 1));
  mix_model *model = mix_model_new(x, mix_call(mix_dense(1), mix_call(shared, once)));
  assert_ptr_equal(mix_list_get(mix_model_inputs(model), 0), x);
  assert_int_equal(mix_list_count(mix_model_outputs(model)), 1);
  mix_list *found = mix_model_layer_outputs(model, "lstm");
  assert_int_equal(mix_list_count(found), 3);
  assert_ptr_equal(mix_list_get(found, 1), mix_list_get(states, 1));
  assert_null(mix_list_get(found, 0));
  assert_ptr_equal(mix_list_get(mix_model_layer_outputs(model, "shared"), 0), once);
  assert_ptr_equal(mix_list_get(mix_model_layer_outputs(model, "x"), 0), x);
  mix_model *part = mix_model_new(mix_model_inputs(model), mix_model_layer_outputs(model, "shared"));
  assert_no_error();
  assert_ptr_equal(mix_model_get_layer(part, "shared"), shared);
  assert_int_equal(mix_list_count(mix_model_trainable_variables(part)), 5);
  expect_refused(mix_model_layer_outputs(model, "shard"), MIX_VALUE_ERROR, "did you mean 'shared'");
  mix_model *sequential = mix_sequential(mix_list_of(mix_dense(2)));
  expect_refused(mix_model_inputs(sequential), MIX_VALUE_ERROR, "is not functional");
  expect_refused(mix_model_layer_outputs(sequential, "dense"), MIX_VALUE_ERROR, "is not functional");
}

static void inputs_and_outputs_must_be_connected(void **state) {
  (void)state;
  mix_tensor *a = mix_input(.shape = MIX_SHAPE(1), .name = "a"),
             *b = mix_input(.shape = MIX_SHAPE(1), .name = "b");
  assert_null(mix_model_new(a, mix_call(scaling(1, "one"), b)));
  assert_error(MIX_VALUE_ERROR, "'b'");
  assert_null(mix_model_new(a, mix_add(a, a)));
  assert_error(MIX_VALUE_ERROR, "outside any layer");
  assert_null(mix_model_new(mix_list_of(a, a), mix_call(scaling(1, "two"), a)));
  assert_error(MIX_VALUE_ERROR, "inputs 0 and 1");
  assert_null(mix_model_new(ARRAY(F32, MIX_SHAPE(1, 1), 1), mix_call(scaling(1, "three"), a)));
  assert_error(MIX_VALUE_ERROR, "mix_input");
  assert_null(mix_model_new(a, ARRAY(F32, MIX_SHAPE(1, 1), 1)));
  assert_error(MIX_VALUE_ERROR, "mix_input");
  assert_null(mix_model_new(mix_list_new(0, NULL), a));
  assert_error(MIX_VALUE_ERROR, "0 inputs");
}

static void models_are_named_as_keras_names_them(void **state) {
  (void)state;
  mix_tensor *a = mix_input(.shape = MIX_SHAPE(1));
  assert_string_equal(mix_model_name(mix_model_new(a, a)), "model");
  assert_string_equal(mix_model_name(mix_model_new(a, a)), "model_1");
  assert_string_equal(mix_model_name(mix_model_new(a, a, .name = "mine")), "mine");
  assert_string_equal(mix_model_name(mix_sequential(NULL)), "sequential");
  mix_set_semantics("keras3");
  assert_string_equal(mix_model_name(mix_model_new(a, a)), "functional");
}

static void the_summary_shows_shapes_parameters_and_policies(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  const char *text = mix_model_summary(guide_model(784, 64));
  static const char *const parts[] = {"Model: \"model\"",
                                      "digits (InputLayer)",
                                      "dense_1 (Dense)",
                                      "(None, 64)",
                                      "50240",
                                      "4160",
                                      "650",
                                      "(None, 10)",
                                      "Total params: 55050 (215.04 KB)",
                                      "Trainable params: 55050",
                                      "Non-trainable params: 0 (0.00 Byte)",
                                      "Policy: mixed_float16 (predictions float32); device"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(text, parts[i])) fail_msg("'%s' is missing in:\n%s", parts[i], text);
}

/* As in Keras, in Functional's _convert_inputs_to_tensors and _adjust_input_rank: integers for a float32
 * input, and vectors for an input of one column; also where models are in models. */
static void data_become_what_the_inputs_declare(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(1));
    mix_model *model = mix_model_new(x, mix_call(mix_rescaling(0.5), x));
    mix_model *chain = mix_sequential(
        mix_list_of(mix_tensor_history(mix_input(.shape = MIX_SHAPE(1)), NULL)->layer, mix_rescaling(0.5)));
    mix_tensor *data[] = {ARRAY(MIX_INT32, MIX_SHAPE(3), 1, 2, 3), ARRAY(MIX_UINT8, MIX_SHAPE(3, 1), 1, 2, 3),
                          ARRAY(F32, MIX_SHAPE(3, 1, 1), 1, 2, 3)};
    for (int i = 0; i < 3; i++)
      for (int m = 0; m < 2; m++) {
        mix_tensor *y = mix_model_call(m ? chain : model, data[i]);
        assert_no_error();
        assert_true(mix_shape_equal(mix_tensor_shape(y), MIX_SHAPE(3, 1)));
        assert_int_equal(mix_tensor_dtype(y), F32);
        assert_near(at(y, 2), 1.5, 0);
      }
  }
}

/* A cast by the model to any other dtype would round 1 + 2^-40. */
static void A12_the_functional_model_casts_nothing(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3), .dtype = "float64");
  mix_tensor *kept = mix_call(mix_activation("linear", .dtype = "float64"), x),
             *product = mix_call(mix_dense(.units = 2), x);
  mix_model *model = mix_model_new(x, mix_list_of(kept, product));
  assert_non_null(model);
  mix_list *outputs = mix_model_call_outputs(model, mix_fill(MIX_SHAPE(1, 3), 1 + 0x1p-40, MIX_FLOAT64));
  assert_int_equal(mix_tensor_dtype(mix_list_get(outputs, 0)), MIX_FLOAT64);
  for (int i = 0; i < 3; i++) assert_true(at(mix_list_get(outputs, 0), i) == 1 + 0x1p-40);
  assert_int_equal(mix_tensor_dtype(mix_list_get(outputs, 1)), MIX_FLOAT16);
}
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(data_become_what_the_inputs_declare),
      TEST(A12_the_functional_model_casts_nothing),

      TEST(several_inputs_are_matched_in_order),
      TEST(several_outputs_have_losses_of_their_own),
      TEST(more_losses_than_outputs),
      TEST(outputs_of_one_layer_are_named_as_in_keras),
      TEST(long_names_of_outputs_are_whole),
      TEST(an_output_without_a_loss_is_left_out),
      TEST(a_shared_layer_has_one_weight_and_the_sum_of_gradients),
      TEST(a_model_is_a_layer_of_another),
      TEST(a_sequential_is_a_layer_of_a_functional_model),
      TEST(training_reaches_the_layers),
      TEST(a_part_of_a_model_begins_another),
      TEST(inputs_and_outputs_must_be_connected),
      TEST(models_are_named_as_keras_names_them),
      TEST(the_summary_shows_shapes_parameters_and_policies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
