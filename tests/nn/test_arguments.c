/* Arguments of the macros without names: they mean what Keras means, or are refused with the way to write
 * them. tests/api/arguments.py holds the list of all macros. */
#include "nn/layer_support.h"
#include <mixtape/callback.h>
#include <mixtape/convolution.h>
#include <mixtape/image.h>
#include <mixtape/model.h>
#include <mixtape/pooling.h>
#include <mixtape/recurrent.h>

static void expect_config(mix_layer *layer, const char *config) {
  if (!layer || !strstr(mix_layer_config(layer), config))
    fail_msg("%s is not in %s", config, layer ? mix_layer_config(layer) : mix_error_message());
}

static void a_number_works_where_keras_takes_one(void **state) {
  (void)state;
  expect_config(mix_dense(8, "relu"), "\"units\": 8, \"activation\": \"relu\", \"use_bias\": true");
  expect_config(mix_random_rotation(0.1), "\"factor\": 0.1");
  expect_config(mix_random_zoom(0.2), "\"height_factor\": 0.2");
  expect_config(mix_random_translation(0.1, -0.2), "\"height_factor\": 0.1, \"width_factor\": -0.2");
  expect_config(mix_zero_padding2d(2), "\"padding\": [[2, 2], [2, 2]]");
  expect_config(mix_cropping1d(MIX_INT_ZERO), "\"cropping\": [0, 0]");
  expect_config(mix_max_pooling2d(3), "\"pool_size\": [3, 3]");
  expect_config(mix_up_sampling2d(3), "\"size\": [3, 3]");
  expect_config(mix_conv2d(32, 3), "\"kernel_size\": [3, 3]");
  expect_config(mix_depthwise_conv2d(3), "\"kernel_size\": [3, 3]");
  expect_config(mix_random_contrast(MIX_ZERO), "\"factor\": 0");
}

/* The second number would begin a struct, which -Wall warns of; it is refused all the same. */
#pragma GCC diagnostic ignored "-Wmissing-braces"
#define REFUSED(call, mentions) expect_refused(call, MIX_TYPE_ERROR, mentions)

static void what_keras_means_otherwise_is_refused(void **state) {
  (void)state;
  REFUSED(mix_dense(8, "relu", false), "mix_dense: the argument 'false' has no name");
  REFUSED(mix_dense(8, "relu", 1), "without a name mix_dense takes units, activation; write .NAME = 1");
  REFUSED(mix_dense(.units = 8, "relu"), "follows one that has");
  REFUSED(mix_random_zoom(0.2, 0), "mix_random_zoom: the argument '0'");
  REFUSED(mix_zero_padding2d(0), "the argument '0' would mean the default of .cells");
  REFUSED(mix_leaky_relu_layer(0.0), "default of .negative_slope");
  REFUSED(mix_conv2d(32, 3, .strides = MIX_SHAPE(2), MIX_SHAPE(1)), "follows one that has");
  REFUSED(mix_conv2d(32, 3, .kernel_size = MIX_SHAPE(3)), "kernel_size is given twice");
  REFUSED(mix_call(mix_flatten(), NULL, NULL), "mix_call: the argument 'NULL'");
  REFUSED(mix_sgd(0), "default of .learning_rate");
  REFUSED(mix_sgd(0.1, NULL), "mix_sgd: the argument 'NULL'");
  REFUSED(mix_early_stopping("loss", 0.1, 3, "min"), "'\"min\"'");
}

/* The one number of several, which is read as configs are: messages name the call all the same. */
static void sizes_out_of_range_are_refused(void **state) {
  (void)state;
#define SIZE(call, mentions) expect_refused(call, MIX_VALUE_ERROR, mentions)
  SIZE(mix_conv2d(32, -3), "conv2d: kernel_size is -3; expected 0 or more");
  SIZE(mix_conv1d_transpose(32, INT64_MAX), "kernel_size is 9223372036854775807; expected a smaller number");
  SIZE(mix_max_pooling2d(-1), "max_pooling2d: pool_size is -1; expected 0 or more");
  SIZE(mix_up_sampling1d(-2), "up_sampling1d: size is -2; expected 0 or more");
  SIZE(mix_zero_padding2d(-7), "zero_padding2d: padding is -7; expected 0 or more");
  SIZE(mix_cropping3d(INT64_MAX / 8 + 1), "cropping3d: cropping is 1152921504606846976; expected a smaller");
  SIZE(mix_gru(INT64_MAX), "gru: units is 9223372036854775807; expected a smaller number");
  SIZE(mix_dense(INT64_MAX / 8 + 1), "dense: units is 1152921504606846976; expected a smaller number");
}

/* What makes a struct of it is in the message. Each of these changed or computed something else. */
static void one_number_for_a_struct_is_refused(void **state) {
  (void)state;
  REFUSED(mix_random_rotation(.factor = 0.1), "write .factor = MIX_FACTOR(0.1)");
  REFUSED(mix_random_zoom(.height_factor = -.2), "write .height_factor = MIX_FACTOR(-.2)");
  REFUSED(mix_zero_padding2d(.padding = 1), "write .padding = MIX_BORDERS(1)");
  REFUSED(mix_conv2d_transpose(8, 3, .output_padding = 1), ".output_padding is no single number");
  REFUSED(mix_conv2d(8, 3, .strides = 2), "write .strides = MIX_SHAPE(2)");
  REFUSED(mix_softmax_layer(.axis = 1), "write .axis = MIX_AXES(1)");
  REFUSED(mix_layer_normalization(.axis = -1), "write .axis = MIX_AXES(-1)");
  REFUSED(mix_dot(.axes = (1)), "mix_dot: .axes is no single number");
  REFUSED(mix_prelu(.shared_axes = 1), "MIX_AXES(1)");
  REFUSED(mix_dropout(0.5, .noise_shape = 1), "MIX_SHAPE(1)");
  REFUSED(mix_reshape_layer(7), "write .target_shape = MIX_SHAPE(7)");
  REFUSED(mix_permute(1), "write .dims = MIX_AXES(1)");
  REFUSED(mix_input(784), "write .shape = MIX_SHAPE(784)");
  REFUSED(mix_metric_new("precision", .thresholds = 0.7), "write .thresholds = MIX_NUMBERS(0.7)");
  assert_non_null(mix_conv2d(8, 3, .strides = MIX_SHAPE(2), .groups = 1));
  assert_non_null(mix_conv2d(8, .kernel_size = {2, {3, 3}}, .strides.rank = 1, .strides.dims[0] = 2));
}

/* Keras's None and 0 are others than the defaults for which NULL and 0 stand. */
static void what_would_mean_another_default_is_refused(void **state) {
  (void)state;
  REFUSED(mix_lstm(8, NULL), "the argument 'NULL' would mean the default of .activation");
  REFUSED(mix_gru(8, "tanh", NULL), "default of .recurrent_activation");
  REFUSED(mix_simple_rnn_cell(8, NULL), "default of .activation");
  REFUSED(mix_bidirectional(mix_lstm(8), NULL), "default of .merge_mode");
  REFUSED(mix_embedding(10, 4, NULL), "default of .embeddings_initializer");
  REFUSED(mix_mean_squared_error(NULL), "default of .reduction");
  REFUSED(mix_loss_new("mse", NULL), "default of .reduction");
  REFUSED(mix_dynamic_loss_scale(0), "default of .initial_loss_scale");
  REFUSED(mix_model_fit(NULL, NULL, NULL, 32, 0), "default of .epochs");
  assert_non_null(mix_dense(8, NULL));
  assert_non_null(mix_flatten(NULL));
  assert_non_null(mix_early_stopping("loss", 0, 0));
}

/* Keras's Mean takes weights there. */
static void weights_of_a_mean_have_their_name(void **state) {
  (void)state;
  const char *const metrics[] = {"mean", "sum", "mean_tensor"};
  for (int i = 0; i < 3; i++) {
    mix_tensor *values = mix_tensor_from_doubles((const double[]){1, 2}, MIX_FLOAT32, MIX_SHAPE(2));
    mix_metric *metric = mix_metric_new(metrics[i]);
    assert_int_equal(mix_metric_update(metric, values, values), MIX_TYPE_ERROR);
    assert_non_null(strstr(mix_error_message(), "weights are .sample_weight"));
    mix_error_clear();
    assert_int_equal(mix_metric_update(metric, values, .sample_weight = values), MIX_OK);
  }
}

/* Commas, points and quotes inside an argument do not count. */
static void one_argument_is_one(void **state) {
  (void)state;
  assert_non_null(mix_dense((int64_t[]){1, 2, 3}[1],
                            "re"
                            "lu",
                            .name = "a,b\"),(", .no_bias = ',' == '\''));
  assert_non_null(mix_dropout(.5));
  assert_non_null(mix_dropout());
  assert_non_null(mix_sequential(mix_list_of(mix_dense(2, "tanh"), mix_dense(1)), .name = "chain"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_number_works_where_keras_takes_one),
      cmocka_unit_test(what_keras_means_otherwise_is_refused),
      cmocka_unit_test(one_number_for_a_struct_is_refused),
      cmocka_unit_test(sizes_out_of_range_are_refused),
      cmocka_unit_test(what_would_mean_another_default_is_refused),
      cmocka_unit_test(weights_of_a_mean_have_their_name),
      cmocka_unit_test(one_argument_is_one),
  };
  return cmocka_run_group_tests_name("nn/arguments", tests, NULL, NULL);
}
