/* Loops that keep every n-th carry: training has the bits of loops that keep all values, in every policy, for
 * every n, and takes less memory. */
/* Holds docs/NUMERICS.md: Loops and recurrent layers. */
#include "model/support.h"
#include "passes/checkpoint_loops.h"
#include <mixtape/function.h>
#include <mixtape/random.h>
#include <mixtape/recurrent.h>
#include <mixtape/scan.h>
#include <mixtape/tape.h>

enum { BATCH = 3, FEATURES = 4, UNITS = 5, MOST = 1 << 16 };

typedef struct outcome {
  unsigned char *bits;
  size_t size, arena_bytes;
} outcome;

/* ---- layers ---- */

typedef mix_tensor *layers(mix_tensor *x);

static mix_tensor *lstm(mix_tensor *x) { return mix_call(mix_lstm(UNITS), x); }
static mix_tensor *lstm_backwards(mix_tensor *x) {
  x = mix_call(mix_lstm(UNITS, .return_sequences = true, .go_backwards = true), x);
  return mix_call(mix_lstm(UNITS, .dropout = 0.25, .recurrent_dropout = 0.25), x);
}
static mix_tensor *gru(mix_tensor *x) {
  x = mix_call(mix_gru(UNITS, .return_sequences = true), x);
  return mix_call(mix_gru(UNITS, .reset_before = true, .go_backwards = true), x);
}
static mix_tensor *simple(mix_tensor *x) {
  return mix_call(mix_simple_rnn(UNITS, .recurrent_dropout = 0.5), x);
}
static mix_tensor *both_ways(mix_tensor *x) {
  x = mix_call(mix_bidirectional(mix_gru(UNITS, .return_sequences = true)), x);
  return mix_call(mix_bidirectional(mix_lstm(UNITS)), x);
}
/* Steps of which a row is zeros are skipped. */
static mix_tensor *masked(mix_tensor *x) {
  x = mix_call(mix_masking(.mask_value = 0), x);
  x = mix_call(mix_lstm(UNITS, .return_sequences = true), x);
  return mix_call(mix_gru(UNITS, .go_backwards = true), x);
}
static mix_tensor *stacked(mix_tensor *x) {
  mix_layer *cells = mix_stacked_rnn_cells(
      mix_list_of(mix_lstm_cell(UNITS), mix_gru_cell(UNITS + 1, .dropout = 0.5), mix_simple_rnn_cell(UNITS)));
  return mix_call(mix_rnn(cells), x);
}
static mix_tensor *convolutional(mix_tensor *x) {
  const int64_t steps = mix_tensor_shape(x).dims[1];
  x = mix_call(mix_reshape_layer(MIX_SHAPE(steps, FEATURES, 1)), x);
  x = mix_call(mix_conv_lstm1d(2, 3, .padding = "same", .return_sequences = true), x);
  return mix_call(mix_flatten(), mix_call(mix_conv_lstm1d(2, 3), x));
}

static mix_tensor *inputs_of(int64_t steps, bool gaps) {
  const int64_t size = BATCH * steps * FEATURES;
  double *values = malloc(sizeof *values * (size_t)size);
  for (int64_t i = 0; i < size; i++) {
    const int64_t row = i / FEATURES;
    values[i] = gaps && row % 3 == 1 ? 0 : sin(0.37 * (double)i) + 0.01;
  }
  mix_tensor *x = mix_tensor_from_doubles(values, MIX_FLOAT32, MIX_SHAPE(BATCH, steps, FEATURES));
  free(values);
  return x;
}

static outcome train(layers *make, int64_t steps, const char *policy, int64_t every) {
  outcome got = {0};
  mix_keep_every_set(every);
  MIX_SCOPE {
    mix_set_seed(3);
    mix_set_global_policy(policy);
    mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(steps, FEATURES));
    mix_model *model = mix_model_new(inputs, mix_call(mix_dense(2, .dtype = "float32"), make(inputs)));
    mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.01));
    mix_tensor *x = inputs_of(steps, make == masked);
    mix_tensor *y = mix_fill(MIX_SHAPE(BATCH, 2), 0.5, MIX_FLOAT32);
    for (int i = 0; i < 3; i++) mix_model_train_on_batch(model, x, y);
    mix_plan_report report;
    mix_function_report(mix_model_train_function(model), &report, sizeof report);
    assert_no_error();
    got.arena_bytes = report.arena_bytes;
    got.bits = bits_of(mix_model_weights(model), &got.size);
    mix_set_global_policy("float32");
  }
  mix_keep_every_set(0);
  return got;
}

static void same_bits(const outcome *want, const outcome *got, const char *what, int64_t steps,
                      int64_t every) {
  assert_int_equal(got->size, want->size);
  if (memcmp(got->bits, want->bits, got->size))
    fail_msg("%s of %lld steps: other bits where every %lld is kept", what, (long long)steps,
             (long long)every);
}

static const struct {
  layers *make;
  const char *name;
} kinds[] = {{lstm, "LSTM"},        {lstm_backwards, "LSTM, backwards"}, {gru, "GRU"},
             {simple, "SimpleRNN"}, {both_ways, "Bidirectional"},        {masked, "masked"},
             {stacked, "stacked"},  {convolutional, "ConvLSTM1D"}};

static void the_bits_of_training(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16", "float64"};
  static const int64_t lengths[] = {12, 7}, every[] = {1, 2, 3, 5, 6};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (int p = 0; p < 4; p++)
      for (int l = 0; l < 2; l++) {
        outcome whole = train(kinds[k].make, lengths[l], policies[p], 0);
        for (int e = 0; e < 5; e++) {
          outcome got = train(kinds[k].make, lengths[l], policies[p], every[e]);
          same_bits(&whole, &got, kinds[k].name, lengths[l], every[e]);
          free(got.bits);
        }
        free(whole.bits);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_bits_of_training)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
