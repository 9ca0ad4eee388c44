/* Recurrent layers: the rows of docs/spec/keras.md, 19.2, masks, states, dropout, cells of the user,
 * 16-bit policies against recorded runs of Keras, and misuse. */
/* Holds docs/NUMERICS.md: Loops and recurrent layers. */
#include "nn/recurrent_support.h"
#include "nn/sines.h"
#include <mixtape/graph_rewrite.h>

static const char *const generations[] = {"tf_keras", "keras3", "experimental"};

static mix_layer *small_lstm(mix_layer *layer) {
  return with_weights(layer, ONE_FEATURE,
                      mix_list_of(MATRIX(MIX_FLOAT32, 1, 4, .1, .2, .3, .4),
                                  MATRIX(MIX_FLOAT32, 1, 4, .5, .6, .7, .8),
                                  VECTOR(MIX_FLOAT32, 0, 1, 0, 0)));
}

/* The table has seven digits. */
enum { LSTM_STEPS = 3 };
static const double h_numbers[] = {0.0908519, 0.2974581, 0.1254431},
                    c_numbers[] = {0.1529331, 0.4498126, 0.2800503};
static const double table = 1e-7;

static void L14_lstm(void **state) {
  (void)state;
  for (int g = 0; g < 3; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layer = small_lstm(mix_lstm(1, .return_sequences = true, .return_state = true));
    mix_list *results = mix_call_outputs(layer, SEQUENCE(1, 2, -1));
    assert_int_equal(mix_list_count(results), 3);
    expect_values(mix_list_get(results, 0), LSTM_STEPS, h_numbers, table, 0);
    expect_values(mix_list_get(results, 1), 1, &h_numbers[2], table, 0);
    expect_values(mix_list_get(results, 2), 1, &c_numbers[2], table, 0);
    expect_shape(mix_list_get(results, 0), MIX_SHAPE(1, 3, 1));
    for (int steps = 1; steps <= LSTM_STEPS; steps++) {
      const double x[] = {1, 2, -1};
      mix_list *partial = mix_call_outputs(small_lstm(mix_lstm(1, .return_state = true)), sequence(steps, x));
      expect_values(mix_list_get(partial, 0), 1, &h_numbers[steps - 1], table, 0);
      expect_values(mix_list_get(partial, 2), 1, &c_numbers[steps - 1], table, 0);
    }
  }
}

static void L15_gru_with_the_reset_gate_after(void **state) {
  (void)state;
  EXPECT(mix_call(small_gru(false, true), SEQUENCE(1, 2, -1)), table, 0, 0.1613236, 0.3560417, 0.1246348);
}
static void L16_gru_with_the_reset_gate_before(void **state) {
  (void)state;
  EXPECT(mix_call(small_gru(true, true), SEQUENCE(1, 2, -1)), table, 0, 0.1505099, 0.3431174, 0.0945955);
}
static void L17_simple_rnn(void **state) {
  (void)state;
  mix_layer *layer = with_weights(
      mix_simple_rnn(1, .return_sequences = true), ONE_FEATURE,
      mix_list_of(MATRIX(MIX_FLOAT32, 1, 1, .5), MATRIX(MIX_FLOAT32, 1, 1, .25), VECTOR(MIX_FLOAT32, .1)));
  EXPECT(mix_call(layer, SEQUENCE(1, 2, -1)), table, 0, 0.5370496, 0.8438112, -0.1868268);
}

static void L18_masked_steps_keep_states_and_repeat_outputs(void **state) {
  (void)state;
  mix_layer *layer = small_lstm(mix_lstm(1, .return_sequences = true));
  mix_tensor *y = mix_call(layer, SEQUENCE(1, 2, -1), .mask = MASK(1, 0, 1));
  double without[2], with[3];
  mix_tensor_read(mix_call(layer, SEQUENCE(1, -1)), MIX_FLOAT64, without, 2);
  mix_tensor_read(y, MIX_FLOAT64, with, 3);
  assert_true(with[0] == without[0] && with[1] == with[0] && with[2] == without[1]);
  EXPECT(y, table, 0, 0.0908519, 0.0908519, with[2]);
  /* the last output, the last valid one, and zeros before the first */
  EXPECT_EXACT(mix_call(small_lstm(mix_lstm(1)), SEQUENCE(1, -1, 5, 5), .mask = MASK(1, 1, 0, 0)),
               without[1]);
  mix_tensor *later = mix_call(layer, SEQUENCE(5, 1, -1), .mask = MASK(0, 1, 1));
  EXPECT_EXACT(later, 0, without[0], without[1]);
  mix_layer *zeroed = small_lstm(mix_lstm(1, .return_sequences = true, .zero_output_for_mask = true));
  EXPECT_EXACT(mix_call(zeroed, SEQUENCE(1, 2, -1), .mask = MASK(1, 0, 1)), with[0], 0, with[2]);
  mix_layer *last = small_lstm(mix_lstm(1, .zero_output_for_mask = true));
  EXPECT_EXACT(mix_call(last, SEQUENCE(1, 2), .mask = MASK(1, 0)), 0);
  /* the mask goes on with the sequences alone */
  assert_non_null(y->mask);
  assert_null(mix_call(small_lstm(mix_lstm(1)), SEQUENCE(1, 2), .mask = MASK(1, 0))->mask);
}

/* ---- directions, states, layouts ---- */

static void backwards(void **state) {
  (void)state;
  double forward[3];
  mix_tensor_read(mix_call(small_gru(false, true), SEQUENCE(-1, 2, 1)), MIX_FLOAT64, forward, 3);
  mix_layer *layer = with_weights(mix_gru(1, .go_backwards = true, .return_sequences = true), ONE_FEATURE,
                                  mix_layer_get_weights(small_gru(false, true)));
  expect_values(mix_call(layer, SEQUENCE(1, 2, -1)), 3, forward, 0, 0);
}

static void initial_states(void **state_) {
  (void)state_;
  const double x[] = {1, 2, -1};
  mix_layer *layer = small_lstm(mix_lstm(1, .return_state = true));
  mix_list *first = mix_call_outputs(layer, sequence(2, x));
  mix_list *states = mix_list_of(mix_list_get(first, 1), mix_list_get(first, 2));
  EXPECT(mix_call(layer, sequence(1, x + 2), .initial_state = states), table, 0, 0.1254431);
  /* tf_keras gives them as further inputs too */
  mix_list *inputs = mix_list_of(sequence(1, x + 2), mix_list_get(first, 1), mix_list_get(first, 2));
  EXPECT(mix_call(layer, inputs), table, 0, 0.1254431);
}

/* keras3 casts given states to the compute dtype; tf_keras leaves them, and the product refuses them. */
static void initial_states_in_16_bits(void **state_) {
  (void)state_;
  mix_tensor *x = mix_fill(MIX_SHAPE(1, 2, 1), 1, MIX_FLOAT32);
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layer = mix_lstm(1, .dtype = "mixed_float16");
    mix_tensor *y = mix_call(layer, x, .initial_state = mix_list_of(state(1), state(1)));
    if (g)
      expect_dtype(y, MIX_FLOAT16);
    else
      expect_error(MIX_TYPE_ERROR, "float32");
  }
}

static void time_major(void **state) {
  (void)state;
  mix_layer *layer = small_lstm(mix_lstm(1, .return_sequences = true, .time_major = true));
  mix_tensor *x = mix_tensor_from_doubles((double[]){1, 2, -1}, MIX_FLOAT32, MIX_SHAPE(3, 1, 1));
  mix_tensor *y = mix_call(layer, x);
  expect_values(y, LSTM_STEPS, h_numbers, table, 0);
  expect_shape(y, MIX_SHAPE(3, 1, 1));
  mix_set_semantics("keras3");
  assert_null(mix_lstm(1, .time_major = true));
  expect_error(MIX_VALUE_ERROR, "time_major");
}

static void stateful_layers_go_on(void **state) {
  (void)state;
  mix_layer *layer = mix_lstm(1, .stateful = true, .return_sequences = true);
  mix_layer_build(layer, MIX_SHAPE(1, MIX_UNKNOWN, 1));
  mix_layer_set_weights(layer, mix_layer_get_weights(small_lstm(mix_lstm(1))));
  for (int again = 0; again < 2; again++) {
    EXPECT(mix_call(layer, SEQUENCE(1, 2)), table, 0, h_numbers[0], h_numbers[1]);
    EXPECT(mix_call(layer, SEQUENCE(-1)), table, 0, h_numbers[2]);
    assert_int_equal(mix_layer_reset_states(layer), MIX_OK);
  }
  assert_int_equal(mix_list_count(mix_layer_weights(layer)), 3);
  assert_null(mix_call(layer, mix_fill(MIX_SHAPE(2, 3, 1), 0, MIX_FLOAT32)));
  expect_error(MIX_VALUE_ERROR, "batch of 1; the input has 2");
  assert_int_equal(mix_layer_build(mix_gru(1, .stateful = true), MIX_SHAPE(MIX_UNKNOWN, 3, 1)),
                   MIX_VALUE_ERROR);
  expect_error(MIX_VALUE_ERROR, "batch of known size");
}

static mix_list *stateful_body(void *context, mix_list *arguments) {
  return mix_list_of(mix_call(context, mix_list_get(arguments, 0)));
}
static void stateful_layers_in_captured_functions(void **state) {
  (void)state;
  mix_layer *layer = mix_lstm(1, .stateful = true);
  mix_layer_build(layer, MIX_SHAPE(1, MIX_UNKNOWN, 1));
  mix_layer_set_weights(layer, mix_layer_get_weights(small_lstm(mix_lstm(1))));
  mix_function *function = mix_function_new(stateful_body, layer, .name = "go_on");
  static const double x[] = {1, 2, -1};
  for (int i = 0; i < LSTM_STEPS; i++)
    EXPECT(mix_list_get(mix_function_call(function, mix_list_of(sequence(1, x + i))), 0), table, 0,
           h_numbers[i]);
}

static void unrolling_changes_nothing(void **state) {
  (void)state;
  expect_values(
      mix_call(small_lstm(mix_lstm(1, .return_sequences = true, .unroll = true)), SEQUENCE(1, 2, -1)),
      LSTM_STEPS, h_numbers, table, 0);
  mix_tensor *x = mix_input(MIX_SHAPE(MIX_UNKNOWN, 2));
  assert_null(mix_call(mix_lstm(1, .unroll = true), x));
  expect_error(MIX_VALUE_ERROR, "known number of steps");
}

/* ---- dropout ---- */

/* One decision for all steps: with a kernel of ones, no recurrence and equal inputs all steps are equal. */
static void dropout_is_decided_once_a_call(void **state) {
  (void)state;
  mix_layer *layer =
      mix_simple_rnn(2, .activation = "linear", .no_bias = true, .kernel_initializer = "ones",
                     .recurrent_initializer = "zeros", .return_sequences = true, .dropout = 0.5, .seed = 5);
  mix_tensor *x = mix_fill(MIX_SHAPE(8, 4, 6), 1, MIX_FLOAT32);
  double y[64], without[64];
  mix_tensor_read(mix_call(layer, x, .training = MIX_TRUE), MIX_FLOAT64, y, 64);
  mix_tensor_read(mix_call(layer, x), MIX_FLOAT64, without, 64);
  int dropped = 0;
  for (int b = 0; b < 8; b++)
    for (int t = 0; t < 8; t++) {
      assert_true(y[b * 8 + t] == y[b * 8] && without[b * 8 + t] == 6);
      assert_true(fmod(y[b * 8 + t], 2) == 0); /* kept ones become 2 */
      dropped += y[b * 8 + t] != 12;
    }
  assert_true(dropped > 0);
}

/* Masks of ones by rate 0 and of the same draws: each gate has its own. */
static void recurrent_dropout_has_a_mask_a_gate(void **state) {
  (void)state;
  mix_tensor *x = mix_fill(MIX_SHAPE(4, 3, 2), 0.5, MIX_FLOAT32);
  mix_layer *layers[] = {mix_lstm(2, .recurrent_dropout = 0.5, .dropout = 0.25),
                         mix_gru(2, .recurrent_dropout = 0.5),
                         mix_gru(2, .recurrent_dropout = 0.5, .reset_before = true),
                         mix_simple_rnn(2, .recurrent_dropout = 0.5)};
  for (int i = 0; i < 4; i++) {
    double a[8], b[8], c[8];
    mix_tensor_read(mix_call(layers[i], x, .training = MIX_TRUE), MIX_FLOAT64, a, 8);
    mix_tensor_read(mix_call(layers[i], x, .training = MIX_TRUE), MIX_FLOAT64, b, 8);
    mix_tensor_read(mix_call(layers[i], x), MIX_FLOAT64, c, 8);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    for (int k = 0; k < 8; k++) assert_true(isfinite(a[k]) && isfinite(c[k]));
    /* outside training the separate gates compute what the joint ones do */
    mix_layer *plain = i == 0   ? mix_lstm(2)
                       : i == 1 ? mix_gru(2)
                       : i == 2 ? mix_gru(2, .reset_before = true)
                                : mix_simple_rnn(2);
    mix_call(plain, x);
    mix_layer_set_weights(plain, mix_layer_get_weights(layers[i]));
    expect_values(mix_call(plain, x), 8, c, 1e-6, 0);
  }
}

/* ---- a cell of the user: a counter and a leaky sum, with an output of another size than its states ---- */

typedef struct leaky {
  mix_variable *rate;
} leaky;

static mix_status leaky_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count, (void)shapes;
  leaky *cell = mix_layer_data(layer);
  cell->rate = mix_layer_add_weight(layer, "rate", .shape = MIX_SCALAR, .initializer = "ones");
  return mix_error();
}
static mix_list *leaky_call(mix_layer *layer, const mix_call_args *args) {
  const leaky *cell = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0), *sum = mix_call_argument(args, 0),
             *steps = mix_call_argument(args, 1);
  mix_tensor *half = mix_multiply(mix_variable_value(cell->rate), mix_scalar_like(sum, 0.5));
  sum = mix_add(mix_multiply(sum, half), x);
  steps = mix_add(steps, mix_scalar_like(steps, 1));
  return mix_list_of(mix_concat(2, (mix_tensor *[]){sum, steps}, -1), sum, steps);
}
static mix_status leaky_states(mix_layer *layer, mix_shape inputs, mix_cell_states *states) {
  (void)layer;
  states->count = 2;
  states->states[0] = MIX_SHAPE(inputs.dims[1]);
  states->states[1] = MIX_SHAPE(1);
  states->output = MIX_SHAPE(inputs.dims[1] + 1);
  return MIX_OK;
}
static const mix_layer_class leaky_class = {.size = sizeof(mix_layer_class),
                                            .name = "LeakyCell",
                                            .instance_size = sizeof(leaky),
                                            .build = leaky_build,
                                            .call = leaky_call,
                                            .cell_states = leaky_states};

static void cells_of_the_user(void **state) {
  (void)state;
  mix_tensor *x = mix_tensor_from_doubles((double[]){1, 2, 4}, MIX_FLOAT32, MIX_SHAPE(1, 3, 1));
  for (int g = 0; g < 3; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layer = mix_rnn(mix_layer_new(&leaky_class), .return_sequences = true, .return_state = true);
    mix_list *results = mix_call_outputs(layer, x);
    EXPECT_EXACT(mix_list_get(results, 0), 1, 1, 2.5, 2, 5.25, 3);
    EXPECT_EXACT(mix_list_get(results, 1), 5.25);
    EXPECT_EXACT(mix_list_get(results, 2), 3);
    EXPECT_EXACT(mix_call(mix_rnn(mix_layer_new(&leaky_class)), x, .mask = MASK(1, 1, 0)), 2.5, 2);
    mix_layer *stacked =
        mix_rnn(mix_stacked_rnn_cells(mix_list_of(mix_layer_new(&leaky_class), mix_layer_new(&leaky_class))));
    EXPECT_EXACT(mix_call(stacked, x), 1 * .25 + 2.5 * .5 + 5.25, 1 * .25 + 2 * .5 + 3, 3);
  }
  mix_register_layer(NULL, NULL, &leaky_class);
  mix_layer *read = mix_layer_deserialize(mix_layer_serialize(mix_rnn(mix_layer_new(&leaky_class))), NULL);
  EXPECT_EXACT(mix_call(read, x), 5.25, 3);
  assert_null(mix_rnn(mix_dense(3)));
  expect_error(MIX_TYPE_ERROR, "no recurrent cell");
}

/* d/drate of the last sum, 1 r r / 4 + 2 r / 2 + 4 at r = 1. */
static void gradients_reach_the_weights_of_cells(void **state) {
  (void)state;
  mix_tensor *x = mix_tensor_from_doubles((double[]){1, 2, 4}, MIX_FLOAT32, MIX_SHAPE(1, 3, 1));
  mix_layer *layer = mix_rnn(mix_layer_new(&leaky_class));
  mix_call(layer, x);
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = mix_call(layer, x);
  mix_list *gradients = mix_tape_gradient(tape, y, mix_layer_trainable_weights(layer));
  EXPECT_EXACT(mix_list_get(gradients, 0), 1.5);
}

static mix_layer *make_leaky(const char *dtype) {
  mix_layer *cell = mix_layer_new(&leaky_class, .dtype = dtype);
  return mix_rnn(cell, .return_sequences = true, .dtype = dtype);
}
static mix_layer *make_unrolled(const char *dtype) {
  return mix_gru(2, .unroll = true, .return_state = true, .dtype = dtype);
}
static mix_layer *make_two(const char *dtype) {
  mix_layer *backward = mix_simple_rnn(3, .go_backwards = true, .dtype = dtype);
  return mix_bidirectional(mix_gru(2, .dtype = dtype), .backward_layer = backward, .dtype = dtype);
}
/* In float64; those of the library's own layers are in test_layers_all.c. */
static void gradients_are_those_of_finite_differences(void **state) {
  (void)state;
  mix_layer *(*const made[])(const char *) = {make_leaky, make_unrolled, make_two};
  for (int i = 0; i < 3; i++)
    MIX_SCOPE { gradients_agree(&(const trial){made[i], 1, {MIX_SHAPE(2, 3, 4)}}); }
}

/* ---- 16-bit policies: recorded with Keras 3.15 and tf_keras 2.21 on TensorFlow 2.21, which agree
 * (recorded/recurrent.py) ---- */

typedef struct recorded {
  const char *policy, *layer;
  double outputs[24];
} recorded;
static const recorded runs[] = {
#include "nn/recorded/recurrent.inc"
};

/* Each gate and state is rounded as there. A transcendental function that is a unit in the last place off
 * moves a value of magnitude below 1 by 2^-12 or 2^-9, and 4 steps of recurrence add up to 4 of these. */
static void sixteen_bit_states_are_rounded_as_in_keras(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
    for (int g = 0; g < 2; g++) {
      const recorded *r = &runs[i];
      mix_set_semantics(generations[g]);
      mix_layer *layer = !strcmp(r->layer, "lstm") ? mix_lstm(3, .return_sequences = true, .dtype = r->policy)
                         : !strcmp(r->layer, "gru") ? mix_gru(3, .return_sequences = true, .dtype = r->policy)
                         : !strcmp(r->layer, "gru_before")
                             ? mix_gru(3, .return_sequences = true, .reset_before = true, .dtype = r->policy)
                             : mix_simple_rnn(3, .return_sequences = true, .dtype = r->policy);
      mix_layer_build(layer, MIX_SHAPE(2, 4, 3));
      mix_list *weights = mix_layer_weights(layer), *values = mix_list_new(0, NULL);
      for (int w = 0; w < mix_list_count(weights); w++)
        mix_list_append(values,
                        sines(mix_tensor_shape(mix_variable_value(mix_list_get(weights, w))), 1.0 + w));
      mix_layer_set_weights(layer, values);
      const bool half = !strcmp(r->policy, "mixed_float16");
      expect_values(mix_call(layer, sines(MIX_SHAPE(2, 4, 3), 0.3)), 24, r->outputs,
                    4 * (half ? 0x1p-12 : 0x1p-9), 0);
    }
}

/* ---- the automatic rewrite ---- */

static mix_list *train_body(void *context, mix_list *arguments) {
  mix_layer *layer = context;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = mix_call(layer, mix_list_get(arguments, 0), .training = MIX_TRUE);
  mix_tensor *loss = mix_reduce_sum(mix_square(y), MIX_ALL_AXES, false);
  mix_list *weights = mix_layer_trainable_weights(layer), *gradients = mix_tape_gradient(tape, loss, weights);
  for (int i = 0; i < mix_list_count(weights) && gradients; i++)
    mix_variable_assign_sub(mix_list_get(weights, i), mix_list_get(gradients, i));
  return mix_list_of(loss);
}

/* Row G58 of docs/spec/mixed_precision.md: the products of a cell in a loop are 16-bit, its states are not.
 */
static void G58_the_rewrite_reaches_the_steps(void **state) {
  (void)state;
  mix_layer *layer = mix_lstm(3, .return_sequences = true);
  mix_tensor *x = sines(MIX_SHAPE(2, 4, 3), 0.3);
  double wanted[24];
  mix_tensor_read(mix_call(layer, x), MIX_FLOAT64, wanted, 24);
  assert_int_equal(mix_set_graph_rewrite("float16"), MIX_OK);
  mix_function *function = mix_function_new(train_body, layer, .name = "train");
  mix_function *serving = mix_function_new(stateful_body, layer, .name = "serve");
  mix_list *results = mix_function_call(serving, mix_list_of(x));
  expect_values(results ? mix_list_get(results, 0) : NULL, 24, wanted, 2e-3, 0); /* that of Keras's tests */
  const char *text = mix_function_dump(serving, "amp");
  assert_non_null(text);
  const char *step = strstr(text, "\n| ");
  assert_non_null(step);
  assert_non_null(strstr(step, ":float16(2, 12) = matmul("));
  assert_non_null(strstr(step, "| %0:float32(2, 3) = argument 0"));
  assert_non_null(mix_function_call(function, mix_list_of(x)));
  assert_int_equal(mix_set_graph_rewrite(NULL), MIX_OK);
}

/* ---- memory: docs/NUMERICS.md, "Loops and recurrent layers" ---- */

static void training_keeps_what_the_formula_says(void **state) {
  (void)state;
  enum { BATCH = 8, TIME = 64, WIDTH = 32 };
  mix_layer *layers[] = {mix_lstm(WIDTH, .return_sequences = true), mix_gru(WIDTH, .return_sequences = true)};
  for (int i = 0; i < 2; i++) {
    mix_plan_report report;
    mix_function *function = mix_function_new(train_body, layers[i], .name = "train");
    mix_function_call(function, mix_list_of(mix_fill(MIX_SHAPE(BATCH, TIME, WIDTH), 0.01, MIX_FLOAT32)));
    assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
    const double kept = (i ? 15 : 14) * (double)(BATCH * TIME * WIDTH * (int)sizeof(float));
    if (!(fabs((double)report.arena_bytes / kept - 1) <= 0.05))
      fail_msg("layer %d: the arena has %g of the bytes of the formula", i,
               (double)report.arena_bytes / kept);
  }
}

/* ---- misuse ---- */

static void misuse(void **state_) {
  (void)state_;
  mix_tensor *x = mix_fill(MIX_SHAPE(2, 3, 4), 1, MIX_FLOAT32),
             *wide = mix_fill(MIX_SHAPE(2, 3), 0, MIX_FLOAT32),
             *good = mix_fill(MIX_SHAPE(2, 2), 0, MIX_FLOAT32);
  assert_null(mix_lstm(0));
  expect_error(MIX_VALUE_ERROR, "units");
  assert_null(mix_lstm_cell(-1));
  expect_error(MIX_VALUE_ERROR, "units");
  assert_null(mix_call(mix_lstm(2), x, .initial_state = mix_list_of(good)));
  expect_error(MIX_VALUE_ERROR, "initial_state has 1 tensors; expected 2");
  assert_null(mix_call(mix_lstm(2), x, .initial_state = mix_list_of(good, wide)));
  expect_error(MIX_VALUE_ERROR, "initial state 1 has shape (2, 3); expected (2, 2)");
  assert_null(mix_call(mix_gru(2), x, .mask = mix_fill(MIX_SHAPE(2, 4), 1, MIX_BOOL)));
  expect_error(MIX_VALUE_ERROR, "mask 0 has shape (2, 4); expected (2, 3)");
  assert_null(mix_call(mix_gru(2), mix_fill(MIX_SHAPE(2, 0, 4), 1, MIX_FLOAT32)));
  expect_error(MIX_VALUE_ERROR, "one step or more");
  assert_null(mix_call(mix_gru(2), wide));
  expect_error(MIX_VALUE_ERROR, "(2, 3)");
  assert_null(mix_call(mix_lstm_cell(2), wide, .arguments = mix_list_of(good)));
  expect_error(MIX_VALUE_ERROR, "got 1 states; expected 2");
  assert_null(mix_stacked_rnn_cells(mix_list_new(0, NULL)));
  expect_error(MIX_VALUE_ERROR, "no cells");
}

static mix_list *growing_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  mix_tensor *state = mix_call_argument(args, 0);
  mix_tensor *more = mix_concat(2, (mix_tensor *[]){state, state}, -1);
  return mix_list_of(state, more);
}
static mix_status growing_states(mix_layer *layer, mix_shape inputs, mix_cell_states *states) {
  (void)layer, (void)inputs;
  states->count = 1;
  states->states[0] = states->output = MIX_SHAPE(2);
  return MIX_OK;
}
static void states_keep_their_shape(void **state) {
  (void)state;
  static const mix_layer_class growing = {.size = sizeof(mix_layer_class),
                                          .name = "GrowingCell",
                                          .call = growing_call,
                                          .cell_states = growing_states};
  assert_null(mix_call(mix_rnn(mix_layer_new(&growing)), mix_fill(MIX_SHAPE(2, 3, 4), 1, MIX_FLOAT32)));
  expect_error(MIX_VALUE_ERROR, "the next state 0 has shape (2, 4); expected (2, 2)");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(L14_lstm),
                                     TEST(L15_gru_with_the_reset_gate_after),
                                     TEST(L16_gru_with_the_reset_gate_before),
                                     TEST(L17_simple_rnn),
                                     TEST(L18_masked_steps_keep_states_and_repeat_outputs),
                                     TEST(backwards),
                                     TEST(initial_states),
                                     TEST(initial_states_in_16_bits),
                                     TEST(time_major),
                                     TEST(stateful_layers_go_on),
                                     TEST(stateful_layers_in_captured_functions),
                                     TEST(unrolling_changes_nothing),
                                     TEST(dropout_is_decided_once_a_call),
                                     TEST(recurrent_dropout_has_a_mask_a_gate),
                                     TEST(cells_of_the_user),
                                     TEST(gradients_reach_the_weights_of_cells),
                                     TEST(gradients_are_those_of_finite_differences),
                                     TEST(sixteen_bit_states_are_rounded_as_in_keras),
                                     TEST(G58_the_rewrite_reaches_the_steps),
                                     TEST(training_keeps_what_the_formula_says),
                                     TEST(misuse),
                                     TEST(states_keep_their_shape)};
  return cmocka_run_group_tests_name("recurrent layers", tests, NULL, NULL);
}
