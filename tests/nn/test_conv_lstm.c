/* ConvLSTM1D, 2D, 3D: recorded runs of Keras, channels first, dropout, states, weights, and misuse. */
#include "nn/layer_support.h"
#include "nn/sines.h"
#include <mixtape/recurrent.h>

static const char *const generations[] = {"keras3", "tf_keras"};

static mix_layer *with_sines(mix_layer *layer, mix_shape input) {
  mix_layer_build(layer, input);
  mix_list *weights = mix_layer_weights(layer), *values = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(weights); i++)
    mix_list_append(values, sines(mix_tensor_shape(mix_variable_value(mix_list_get(weights, i))), 1.0 + i));
  assert_int_equal(mix_layer_set_weights(layer, values), MIX_OK);
  return layer;
}

/* ---- recorded with Keras 3.15 and tf_keras 2.21 on TensorFlow 2.21 (recorded/conv_lstm.py) ---- */

typedef struct recorded {
  const char *generation, *name;
  double outputs[64], cells[64];
} recorded;
static const recorded runs[] = {
#include "nn/recorded/conv_lstm.inc"
};

static mix_layer *layer_named(const char *name) {
  if (!strcmp(name, "plain")) return mix_conv_lstm1d(2, 3, .return_state = true);
  if (!strcmp(name, "strides"))
    return mix_conv_lstm2d(1, .kernel_size = MIX_SHAPE(2, 3), .strides = MIX_SHAPE(2, 1), .padding = "same",
                           .return_sequences = true, .return_state = true);
  if (!strcmp(name, "dilation"))
    return mix_conv_lstm1d(2, 2, .dilation_rate = MIX_SHAPE(2), .go_backwards = true, .no_bias = true,
                           .return_state = true);
  if (!strcmp(name, "first"))
    return mix_conv_lstm2d(2, 2, .data_format = "channels_first", .return_sequences = true,
                           .return_state = true);
  return mix_conv_lstm3d(1, .kernel_size = MIX_SHAPE(1, 2, 2), .padding = "same", .return_state = true);
}
static mix_shape inputs_named(const char *name) {
  if (!strcmp(name, "plain")) return MIX_SHAPE(2, 3, 5, 2);
  if (!strcmp(name, "strides")) return MIX_SHAPE(1, 2, 3, 4, 2);
  if (!strcmp(name, "dilation")) return MIX_SHAPE(1, 3, 5, 1);
  if (!strcmp(name, "first")) return MIX_SHAPE(1, 2, 2, 3, 4);
  return MIX_SHAPE(1, 2, 2, 2, 2, 2);
}

/* Sums of at most 16 products of numbers below 1, and three steps: a few units in the last place. */
static void outputs_and_states_are_those_of_keras(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
    MIX_SCOPE {
      const recorded *r = &runs[i];
      mix_set_semantics(r->generation);
      mix_layer *layer = with_sines(layer_named(r->name), inputs_named(r->name));
      mix_list *results = mix_call_outputs(layer, sines(inputs_named(r->name), 0.3));
      assert_int_equal(mix_list_count(results), 3);
      mix_tensor *output = mix_list_get(results, 0), *cell = mix_list_get(results, 2);
      expect_values(output, mix_shape_size(mix_tensor_shape(output)), r->outputs, 1e-6, 0);
      expect_values(cell, mix_shape_size(mix_tensor_shape(cell)), r->cells, 1e-6, 0);
    }
}

/* ---- properties ---- */

static void weights_have_the_shapes_of_keras(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layer = mix_conv_lstm2d(3, .kernel_size = MIX_SHAPE(2, 1), .name = "a");
    mix_layer_build(layer, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 4, 5, 2));
    mix_list *weights = mix_layer_weights(layer);
    assert_int_equal(mix_list_count(weights), 3);
    expect_shape(mix_variable_value(mix_list_get(weights, 0)), MIX_SHAPE(2, 1, 2, 12));
    expect_shape(mix_variable_value(mix_list_get(weights, 1)), MIX_SHAPE(2, 1, 3, 12));
    const double bias[] = {0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0};
    expect_values(mix_variable_value(mix_list_get(weights, 2)), 12, bias, 0, 0);
  }
}

/* The state after the first part of a sequence is where the second begins. */
static void initial_states_continue_a_sequence(void **state) {
  (void)state;
  const char *const formats[] = {"channels_last", "channels_first"};
  mix_set_semantics("keras3");
  for (int f = 0; f < 2; f++) {
    const mix_shape shape = f ? MIX_SHAPE(1, 3, 2, 4) : MIX_SHAPE(1, 3, 4, 2);
    mix_layer *layer =
        with_sines(mix_conv_lstm1d(2, 2, .data_format = formats[f], .return_state = true), shape);
    mix_tensor *x = sines(shape, 0.3);
    mix_shape first = shape, second = shape;
    first.dims[1] = 1;
    second.dims[1] = 2;
    mix_list *begun = mix_call_outputs(layer, mix_slice(x, MIX_SHAPE(0, 0, 0, 0), first));
    mix_list *continued =
        mix_call_outputs(layer, mix_slice(x, MIX_SHAPE(0, 1, 0, 0), second),
                         .initial_state = mix_list_of(mix_list_get(begun, 1), mix_list_get(begun, 2)));
    mix_list *whole = mix_call_outputs(layer, x);
    for (int i = 0; i < 3; i++) {
      double values[6];
      assert_int_equal(mix_tensor_read(mix_list_get(whole, i), MIX_FLOAT64, values, 6), MIX_OK);
      expect_values(mix_list_get(continued, i), 6, values, 0, 0);
    }
  }
}

/* Outside of training nothing drops; each call in training draws anew. */
static void dropout_is_for_training_alone(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  const mix_shape shape = MIX_SHAPE(2, 3, 4, 2);
  mix_tensor *x = sines(shape, 0.3);
  double plain[12], dropped[12], again[12];
  mix_layer *layer =
      with_sines(mix_conv_lstm1d(2, 2, .dropout = 0.5, .recurrent_dropout = 0.5, .seed = 3), shape);
  mix_layer *without = with_sines(mix_conv_lstm1d(2, 2), shape);
  assert_int_equal(mix_tensor_read(mix_call(without, x), MIX_FLOAT64, plain, 12), MIX_OK);
  expect_values(mix_call(layer, x), 12, plain, 0, 0);
  mix_list *training = mix_call_outputs(layer, x, .training = MIX_TRUE);
  assert_int_equal(mix_tensor_read(mix_list_get(training, 0), MIX_FLOAT64, dropped, 12), MIX_OK);
  training = mix_call_outputs(layer, x, .training = MIX_TRUE);
  assert_int_equal(mix_tensor_read(mix_list_get(training, 0), MIX_FLOAT64, again, 12), MIX_OK);
  assert_memory_not_equal(plain, dropped, sizeof plain);
  assert_memory_not_equal(dropped, again, sizeof dropped);
}

static void stateful_layers_keep_their_state(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  const mix_shape shape = MIX_SHAPE(1, 2, 4, 1);
  mix_layer *layer = with_sines(mix_conv_lstm1d(1, 2, .stateful = true), shape);
  double first[3], second[3];
  assert_int_equal(mix_tensor_read(mix_call(layer, sines(shape, 0)), MIX_FLOAT64, first, 3), MIX_OK);
  assert_int_equal(mix_tensor_read(mix_call(layer, sines(shape, 0)), MIX_FLOAT64, second, 3), MIX_OK);
  assert_memory_not_equal(first, second, sizeof first);
  assert_int_equal(mix_layer_reset_states(layer), MIX_OK);
  expect_values(mix_call(layer, sines(shape, 0)), 3, first, 0, 0);
}

/* ---- misuse ---- */

static void misuse(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  assert_null(mix_conv_lstm1d(0, 2));
  expect_error(MIX_VALUE_ERROR, "filters");
  assert_null(mix_conv_lstm1d(2));
  expect_error(MIX_TYPE_ERROR, "kernel_size is missing");
  assert_null(mix_conv_lstm2d(2, .kernel_size = MIX_SHAPE(2, 2, 2)));
  expect_error(MIX_VALUE_ERROR, "kernel_size has 3 numbers");
  assert_null(mix_conv_lstm1d(2, 2, .padding = "causal"));
  expect_error(MIX_VALUE_ERROR, "padding 'causal'");
  assert_null(mix_conv_lstm1d(2, 2, .strides = MIX_SHAPE(2), .dilation_rate = MIX_SHAPE(2)));
  expect_error(MIX_VALUE_ERROR, "both strides and dilation_rate");
  assert_null(mix_call(mix_conv_lstm1d(2, 2), sines(MIX_SHAPE(2, 3, 4), 0)));
  expect_error(MIX_VALUE_ERROR, "(2, 3, 4); expected 4 dimensions");
  assert_null(mix_call(mix_conv_lstm1d(2, 5), sines(MIX_SHAPE(1, 3, 4, 1), 0)));
  expect_error(MIX_VALUE_ERROR, "smaller than the kernel along spatial axis 0");
  mix_layer *layer = with_sines(mix_conv_lstm1d(2, 2), MIX_SHAPE(1, 2, 3, 2));
  assert_null(mix_call(layer, sines(MIX_SHAPE(1, 2, 3, 4), 0)));
  expect_error(MIX_VALUE_ERROR, "4");
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(3, MIX_UNKNOWN, 2));
    mix_tensor *y = mix_call(mix_conv_lstm1d(2, 2), x);
    if (g == 0)
      expect_error(MIX_VALUE_ERROR, "expected known spatial sizes");
    else
      expect_shape(y, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 2));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(outputs_and_states_are_those_of_keras), TEST(weights_have_the_shapes_of_keras),
      TEST(initial_states_continue_a_sequence),    TEST(dropout_is_for_training_alone),
      TEST(stateful_layers_keep_their_state),      TEST(misuse)};
  return cmocka_run_group_tests_name("conv lstm", tests, NULL, NULL);
}
