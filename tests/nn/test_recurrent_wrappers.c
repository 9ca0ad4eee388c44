/* Bidirectional and TimeDistributed: weights, merges, states, and misuse. */
#include "nn/recurrent_support.h"

#include <mixtape/model.h>

static void L27_bidirectional_weights_and_shapes(void **state) {
  (void)state;
  static const mix_shape wanted[] = {{2, {2, 12}}, {2, {3, 12}}, {1, {12}},
                                     {2, {2, 12}}, {2, {3, 12}}, {1, {12}}};
  mix_set_semantics("keras3");
  mix_layer *layer = mix_bidirectional(mix_lstm(3));
  expect_shape(mix_call(layer, mix_fill(MIX_SHAPE(4, 5, 2), 0.5, MIX_FLOAT32)), MIX_SHAPE(4, 6));
  mix_list *weights = mix_layer_weights(layer);
  assert_int_equal(mix_list_count(weights), 6);
  for (int i = 0; i < 6; i++) expect_shape(mix_variable_value(mix_list_get(weights, i)), wanted[i]);
  assert_string_equal(mix_variable_name(mix_list_get(weights, 0)),
                      "bidirectional/forward_lstm/lstm_cell/kernel");
  assert_string_equal(mix_variable_name(mix_list_get(weights, 5)),
                      "bidirectional/backward_lstm/lstm_cell/bias");
}

static void bidirectional_merges(void **state) {
  (void)state;
  static const char *const modes[] = {"sum", "mul", "ave", "concat", "none"};
  double f[3], b[3];
  const double x[] = {1, 2, -1}, reversed[] = {-1, 2, 1};
  mix_layer *inner = small_gru(false, true);
  mix_tensor_read(mix_call(inner, sequence(3, x)), MIX_FLOAT64, f, 3);
  mix_tensor_read(mix_call(inner, sequence(3, reversed)), MIX_FLOAT64, b, 3);
  mix_list *weights = mix_layer_get_weights(inner);
  for (int m = 0; m < 5; m++) {
    mix_layer *layer = mix_bidirectional(mix_gru(1, .return_sequences = true), modes[m]);
    mix_layer_build(layer, ONE_FEATURE);
    mix_list *both = mix_list_new(3, mix_list_items(weights));
    for (int i = 0; i < 3; i++) mix_list_append(both, mix_list_get(weights, i));
    mix_layer_set_weights(layer, both);
    mix_list *results = mix_call_outputs(layer, sequence(3, x));
    assert_int_equal(mix_list_count(results), m == 4 ? 2 : 1);
    double wanted[6];
    for (int t = 0; t < 3; t++) {
      const double p = f[t], q = b[2 - t];
      wanted[m == 3 ? 2 * t : t] = m == 0 ? p + q : m == 1 ? p * q : m == 2 ? (p + q) / 2 : p;
      if (m == 3) wanted[2 * t + 1] = q;
    }
    expect_values(mix_list_get(results, 0), m == 3 ? 6 : 3, wanted, 1e-7, 0); /* one rounding to float32 */
  }
}

/* A layer of each kind, with a state each, which the given halves set and the results end with. */
static void bidirectional_of_two_layers(void **state_) {
  (void)state_;
  const double x[] = {1, 2, -1}, reversed[] = {-1, 2, 1};
  mix_layer *forward = mix_gru(1, .return_state = true, .return_sequences = true);
  mix_layer *backward =
      mix_simple_rnn(1, .return_state = true, .return_sequences = true, .go_backwards = true);
  mix_layer *both = mix_bidirectional(forward, .backward_layer = backward);
  mix_layer *alone[] = {mix_gru(1, .return_state = true, .return_sequences = true),
                        mix_simple_rnn(1, .return_state = true, .return_sequences = true)};
  mix_list *weights = mix_list_new(0, NULL);
  mix_layer_build(both, ONE_FEATURE);
  for (int i = 0; i < 2; i++) {
    mix_layer_build(alone[i], ONE_FEATURE);
    mix_list *own = mix_layer_get_weights(alone[i]);
    for (int w = 0; w < mix_list_count(own); w++) mix_list_append(weights, mix_list_get(own, w));
  }
  assert_int_equal(mix_layer_set_weights(both, weights), MIX_OK);
  mix_list *f = mix_call_outputs(alone[0], sequence(3, x), .initial_state = mix_list_of(state(0.5)));
  mix_list *b = mix_call_outputs(alone[1], sequence(3, reversed), .initial_state = mix_list_of(state(-0.25)));
  mix_list *got =
      mix_call_outputs(both, sequence(3, x), .initial_state = mix_list_of(state(0.5), state(-0.25)));
  double wanted[6], ys[3], last;
  assert_int_equal(mix_list_count(got), 3);
  for (int i = 0; i < 2; i++) {
    mix_tensor_read(mix_list_get(i ? b : f, 0), MIX_FLOAT64, ys, 3);
    for (int t = 0; t < 3; t++) wanted[2 * t + i] = ys[i ? 2 - t : t];
    mix_tensor_read(mix_list_get(i ? b : f, 1), MIX_FLOAT64, &last, 1);
    expect_values(mix_list_get(got, 1 + i), 1, &last, 0, 0);
  }
  expect_values(mix_list_get(got, 0), 6, wanted, 0, 0);
}

/* Sums of the inputs so far, in the direction of the layer. */
static mix_layer *summing(bool backwards) {
  return mix_simple_rnn(1, .activation = "linear", .no_bias = true, .kernel_initializer = "ones",
                        .recurrent_initializer = "ones", .return_sequences = true, .go_backwards = backwards);
}

/* In Keras the second layer's outputs are flipped, whichever runs backwards. */
static void bidirectional_of_a_layer_that_runs_backwards(void **state) {
  (void)state;
  static const double wanted[] = {4, 7, 6, 3, 7, 1};
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(i ? "keras3" : "tf_keras");
    mix_layer *both = mix_bidirectional(summing(true), .backward_layer = i ? summing(false) : NULL);
    expect_values(mix_call(both, SEQUENCE(1, 2, 4)), 6, wanted, 0, 0);
  }
}

/* The wrapper turns the outputs round in its own calls alone. */
static void the_given_backward_layer_stays_as_it_is(void **state) {
  (void)state;
  static const double alone[] = {4, 6, 7};
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(i ? "keras3" : "tf_keras");
    mix_layer *backward = summing(true);
    mix_layer *both = mix_bidirectional(summing(false), .backward_layer = backward);
    mix_call(both, SEQUENCE(1, 2, 4));
    expect_values(mix_call(backward, SEQUENCE(1, 2, 4)), 3, alone, 0, 0);
  }
}

static void bidirectional_without_merging_is_null_in_json(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(i ? "keras3" : "tf_keras");
    const char *text = mix_layer_serialize(mix_bidirectional(mix_gru(2), "none"));
    assert_non_null(strstr(text, "\"merge_mode\": null"));
    mix_list *results =
        mix_call_outputs(mix_layer_deserialize(text, NULL), mix_fill(MIX_SHAPE(2, 3, 2), 1, MIX_FLOAT32));
    assert_int_equal(mix_list_count(results), 2);
  }
}

static void bidirectional_layers_must_match(void **state) {
  (void)state;
  assert_null(mix_bidirectional(mix_lstm(2), .backward_layer = mix_lstm(2)));
  expect_error(MIX_VALUE_ERROR, "go_backwards");
  assert_null(mix_bidirectional(mix_lstm(2),
                                .backward_layer = mix_gru(2, .go_backwards = true, .return_state = true)));
  expect_error(MIX_VALUE_ERROR, "return_state");
  assert_null(mix_bidirectional(mix_lstm(2), "max"));
  expect_error(MIX_VALUE_ERROR, "merge_mode");
  assert_null(mix_bidirectional(mix_dense(2)));
  expect_error(MIX_VALUE_ERROR, "recurrent layer");
  mix_tensor *x = mix_fill(MIX_SHAPE(2, 3, 2), 1, MIX_FLOAT32),
             *one = mix_fill(MIX_SHAPE(2, 2), 0, MIX_FLOAT32);
  assert_null(mix_call(mix_bidirectional(mix_gru(2)), x, .initial_state = mix_list_of(one, one, one)));
  expect_error(MIX_VALUE_ERROR, "each direction");
}

static void time_distributed_is_the_layer_on_each_step(void **state) {
  (void)state;
  mix_layer *inner = mix_dense(3, "tanh"), *layer = mix_time_distributed(inner);
  mix_tensor *x = numbers(MIX_SHAPE(2, 4, 5), 1, MIX_FLOAT32, NULL);
  double wanted[24];
  mix_tensor_read(mix_call(layer, x), MIX_FLOAT64, wanted, 24);
  for (int t = 0; t < 4; t++) {
    mix_tensor *one = mix_reshape(mix_slice(x, MIX_SHAPE(0, t, 0), MIX_SHAPE(2, 1, 5)), MIX_SHAPE(2, 5));
    double got[6];
    mix_tensor_read(mix_call(inner, one), MIX_FLOAT64, got, 6);
    for (int b = 0; b < 2; b++)
      for (int u = 0; u < 3; u++) assert_true(fabs(got[b * 3 + u] - wanted[(b * 4 + t) * 3 + u]) < 1e-6);
  }
  assert_null(mix_call(layer, mix_fill(MIX_SHAPE(2, 3), 0, MIX_FLOAT32)));
  expect_error(MIX_VALUE_ERROR, "(2, 3)");
}

/* A mask of each step's own: steps that it hides leave the state as it is. */
static void time_distributed_gives_each_step_its_mask(void **state) {
  (void)state;
  static const double sums[] = {1, 4};
  mix_tensor *mask = mix_cast(mix_reshape(SEQUENCE(1, 0, 1, 1), MIX_SHAPE(1, 2, 2)), MIX_BOOL);
  mix_layer *sum = mix_simple_rnn(1, .activation = "linear", .no_bias = true, .kernel_initializer = "ones",
                                  .recurrent_initializer = "ones");
  mix_tensor *x = mix_reshape(SEQUENCE(1, 7, 1, 3), MIX_SHAPE(1, 2, 2, 1));
  expect_values(mix_call(mix_time_distributed(sum), x, .mask = mask), 2, sums, 0, 0);
}

/* ---- layers that mix samples ---- */

static mix_tensor *two_steps(void) { return mix_reshape(SEQUENCE(1, 10, 3, 30), MIX_SHAPE(2, 2, 1)); }

/* Steps of means 2 and 20, and variances 1 and 100: keras3 moves its statistics twice, tf_keras once, by the
 * mean and the variance of all. */
static void time_distributed_batch_normalization(void **state) {
  (void)state;
  static const double moved[] = {10.5, 50.5}, together[] = {5.5, 66.25};
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(i ? "keras3" : "tf_keras");
    mix_layer *norm = mix_batch_normalization(.momentum = 0.5, .epsilon = MIX_ZERO);
    double y[4];
    mix_tensor_read(mix_call(mix_time_distributed(norm), two_steps(), .training = MIX_TRUE), MIX_FLOAT64, y,
                    4);
    mix_list *weights = mix_layer_weights(norm);
    double mean, variance;
    mix_tensor_read(mix_variable_value(mix_list_get(weights, 2)), MIX_FLOAT64, &mean, 1);
    mix_tensor_read(mix_variable_value(mix_list_get(weights, 3)), MIX_FLOAT64, &variance, 1);
    const double *wanted = i ? moved : together;
    assert_true(fabs(mean - wanted[0]) < 1e-5 && fabs(variance - wanted[1]) < 1e-4);
    for (int k = 0; k < 4 && i; k++) assert_true(fabs(y[k] - (k < 2 ? -1 : 1)) < 1e-5);
  }
}

/* A frozen one does not mix samples. */
static void time_distributed_of_a_frozen_batch_normalization(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_layer *norm = mix_batch_normalization(.momentum = 0.5, .not_trainable = true);
  mix_call(mix_time_distributed(norm), two_steps(), .training = MIX_TRUE);
  double mean = 1;
  mix_tensor_read(mix_variable_value(mix_list_get(mix_layer_weights(norm), 2)), MIX_FLOAT64, &mean, 1);
  assert_true(mean == 0);
}

static mix_list *count_samples(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  (void)layer;
  mix_layer_add_loss(layer, mix_scalar((double)mix_tensor_shape(x).dims[0], MIX_FLOAT32));
  return mix_list_of(x);
}

/* A layer of a user's, and a model with a penalty, are called once a step; a penalty of the wrapped layer
 * itself does not count in Keras 3, which calls its `call`. */
static void time_distributed_calls_and_their_losses(void **state) {
  (void)state;
  static const mix_layer_class counter = {
      .size = sizeof(mix_layer_class), .name = "Counter", .call = count_samples};
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(i ? "keras3" : "tf_keras");
    mix_layer *layer = mix_time_distributed(mix_layer_new(.layer_class = &counter));
    mix_call(layer, two_steps());
    mix_list *losses = mix_layer_losses(layer);
    assert_int_equal(mix_list_count(losses), i ? 2 : 1);
    assert_true(mix_tensor_item(mix_list_get(losses, 0)) == (i ? 2 : 4));

    mix_layer *penalised = mix_dense(.units = 1, .kernel_initializer = "ones",
                                     .activity_regularizer = mix_regularizer_new("l2", .l2 = 1));
    layer = mix_time_distributed(penalised);
    mix_call(layer, two_steps());
    assert_int_equal(mix_list_count(mix_layer_losses(layer)), i ? 0 : 1);
    mix_model *model = mix_sequential(mix_list_of(penalised));
    mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 1));
    layer = mix_time_distributed(mix_model_layer(model));
    mix_call(layer, two_steps());
    losses = mix_layer_losses(layer);
    assert_int_equal(mix_list_count(losses), i ? 2 : 1);
    assert_true(fabs(mix_tensor_item(mix_list_get(losses, 0)) - (i ? 5 : 252.5)) < 1e-4);
  }
}

static mix_list *note_regularizer(mix_layer *layer, const mix_call_args *args) {
  *(mix_regularizer **)mix_layer_data(layer) = layer->activity_regularizer;
  return mix_list_of(mix_call_input(args, 0));
}

/* Another thread may call it at the same time. */
static void calls_leave_the_wrapped_layer_as_it_is(void **state) {
  (void)state;
  static const mix_layer_class noting = {.size = sizeof(mix_layer_class),
                                         .name = "Noting",
                                         .instance_size = sizeof(mix_regularizer *),
                                         .call = note_regularizer};
  mix_set_semantics("keras3");
  mix_layer *inner =
      mix_layer_new(.layer_class = &noting, .activity_regularizer = mix_regularizer_new("l2", .l2 = 1));
  mix_layer *layer = mix_time_distributed(inner);
  assert_non_null(mix_call(layer, two_steps()));
  assert_non_null(*(mix_regularizer **)mix_layer_data(inner));
  assert_int_equal(mix_list_count(mix_layer_losses(layer)), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(L27_bidirectional_weights_and_shapes),
                                     TEST(bidirectional_merges),
                                     TEST(bidirectional_of_two_layers),
                                     TEST(bidirectional_of_a_layer_that_runs_backwards),
                                     TEST(bidirectional_without_merging_is_null_in_json),
                                     TEST(bidirectional_layers_must_match),
                                     TEST(time_distributed_is_the_layer_on_each_step),
                                     TEST(time_distributed_gives_each_step_its_mask),
                                     TEST(the_given_backward_layer_stays_as_it_is),
                                     TEST(time_distributed_batch_normalization),
                                     TEST(time_distributed_of_a_frozen_batch_normalization),
                                     TEST(time_distributed_calls_and_their_losses),
                                     TEST(calls_leave_the_wrapped_layer_as_it_is)};
  return cmocka_run_group_tests_name("recurrent wrappers", tests, NULL, NULL);
}
