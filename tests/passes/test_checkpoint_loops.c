/* Loops that keep every n-th carry: training has the bits of loops that keep all values, in every policy, for
 * every n, and takes less memory. */
/* Holds docs/NUMERICS.md: Loops and recurrent layers. */
#include "model/support.h"

#include "backend/host/executor.h"
#include "base/alloc.h"
#include "passes/checkpoint_loops.h"
#include <mixtape/function.h>
#include <mixtape/random.h>
#include <mixtape/recurrent.h>
#include <mixtape/scan.h>
#include <mixtape/tape.h>

enum { BATCH = 3, FEATURES = 4, UNITS = 5, MOST = 1 << 16 };

typedef struct outcome {
  unsigned char *bits;
  size_t size;
  mix_plan_report report;
} outcome;

/* How loops are compiled: the n of the setting, or a budget. */
typedef struct way {
  int64_t every;
  size_t budget;
  int threads; /* 0: as many as pay, else all of so many */
} way;

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

static mix_model *train_model(layers *make, int64_t steps, int times) {
  mix_set_seed(3);
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(steps, FEATURES));
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(2, .dtype = "float32"), make(inputs)));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.01));
  mix_tensor *x = inputs_of(steps, make == masked), *y = mix_fill(MIX_SHAPE(BATCH, 2), 0.5, MIX_FLOAT32);
  for (int i = 0; i < times; i++) mix_model_train_on_batch(model, x, y);
  return model;
}

static outcome train(layers *make, int64_t steps, const char *policy, way how) {
  outcome got = {0};
  mix_keep_every_set(how.every);
  mix_set_memory_budget(how.budget);
  mix_set_threads(how.threads);
  mix_host_take_all_threads(how.threads > 0);
  MIX_SCOPE {
    mix_set_global_policy(policy);
    mix_model *model = train_model(make, steps, 3);
    mix_function_report(mix_model_train_function(model), &got.report, sizeof got.report);
    assert_no_error();
    got.bits = bits_of(mix_model_weights(model), &got.size);
    mix_set_global_policy("float32");
  }
  mix_keep_every_set(0);
  mix_set_memory_budget(0);
  mix_set_threads(0);
  mix_host_take_all_threads(false);
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
        outcome whole = train(kinds[k].make, lengths[l], policies[p], (way){0});
        for (int e = 0; e < 5; e++) {
          outcome got = train(kinds[k].make, lengths[l], policies[p], (way){every[e], 0, 1 + e % 3});
          same_bits(&whole, &got, kinds[k].name, lengths[l], every[e]);
          free(got.bits);
        }
        free(whole.bits);
      }
}

/* ---- memory ---- */

enum { LONG = 64, SIDE = 32 };

static mix_tensor *long_lstm(mix_tensor *x) { return mix_call(mix_lstm(SIDE), x); }
static mix_tensor *two_long(mix_tensor *x) {
  x = mix_call(mix_lstm(SIDE, .return_sequences = true), x);
  return mix_call(mix_gru(SIDE, .recurrent_dropout = 0.25), x);
}

/* Of U units a step keeps 8 U numbers, of which the gradient of the weights reads U after the loop, and the
 * projections are 4 U, whose memory the gradients of the gates take: 12 U. Where steps run again the
 * projections are there until then, and their rows become those of the gradients: 5 U, with 2 U every eighth
 * step, and 7 U for eight of 64 steps; 0.52 of it, if inputs and the rest of the model did not count. */
static void takes_little_more_than_half(void **state) {
  (void)state;
  outcome whole = train(long_lstm, LONG, "float32", (way){0}),
          eighth = train(long_lstm, LONG, "float32", (way){8, 0, 1});
  print_message("arena %zu of %zu bytes\n", eighth.report.arena_bytes, whole.report.arena_bytes);
  assert_true((double)eighth.report.arena_bytes <= 0.6 * (double)whole.report.arena_bytes);
  free(whole.bits);
  free(eighth.bits);
}

/* The smallest budget, which the error of one byte names. */
static size_t smallest_budget(layers *make, const char *policy) {
  char message[2048];
  size_t bytes = 0;
  MIX_SCOPE {
    mix_set_global_policy(policy);
    mix_set_memory_budget(1);
    train_model(make, LONG, 1);
    assert_int_equal(mix_error_take(message, sizeof message), MIX_MEMORY_ERROR);
    mix_set_memory_budget(0);
    mix_set_global_policy("float32");
  }
  const char *found = strstr(message, "found is ");
  assert_non_null(found);
  assert_int_equal(sscanf(found, "found is %zu bytes", &bytes), 1);
  return bytes;
}

/* Five budgets from the smallest one to almost that of the whole plan, which is larger than each: steps run
 * again, or less is stored. */
static void budgets_keep_the_bits(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};
  for (int l = 0; l < 2; l++)
    for (int p = 0; p < 3; p++) {
      layers *make = l ? two_long : long_lstm;
      outcome whole = train(make, LONG, policies[p], (way){0});
      const size_t peak = whole.report.peak_bytes, least = smallest_budget(make, policies[p]);
      assert_true(least < peak);
      for (size_t i = 0; i < 5; i++) {
        const size_t budget = least + (peak - least) * i / 5;
        outcome got = train(make, LONG, policies[p], (way){.budget = budget});
        same_bits(&whole, &got, policies[p], LONG, (int64_t)i);
        assert_true(got.report.peak_bytes <= budget);
        free(got.bits);
      }
      free(whole.bits);
    }
}

/* ---- loops of the user's own ---- */

/* h = h tanh(x w) + noise, of numbers that each step draws; the inputs count steps. */
typedef struct walk {
  mix_variable *w;
  mix_generator *generator;
} walk;

static mix_list *take_step(void *context, mix_list *carry, mix_list *inputs) {
  walk *k = context;
  mix_tensor *h = mix_list_get(carry, 0), *count = mix_list_get(carry, 1);
  mix_tensor *noise = mix_random_uniform(k->generator, mix_tensor_shape(h), MIX_FLOAT32);
  mix_tensor *w = mix_variable_value(k->w);
  h = mix_add(mix_multiply(h, mix_tanh(mix_multiply(mix_list_get(inputs, 0), w))), mix_multiply(noise, h));
  count = mix_add(count, mix_scalar_like(count, 1));
  return mix_list_of(mix_list_of(h, count), mix_list_of(mix_multiply(h, noise)));
}

static mix_list *walk_and_learn(void *context, mix_list *arguments) {
  walk *k = context;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *x = mix_list_get(arguments, 0), *h = mix_list_get(arguments, 1);
  mix_tape_watch(tape, h);
  mix_list *result = mix_scan(take_step, k, mix_list_of(h, mix_scalar(0, MIX_INT32)), mix_list_of(x));
  mix_list *last = mix_list_get(result, 0), *all = mix_list_get(result, 1);
  mix_tensor *loss = mix_reduce_sum(mix_square(mix_list_get(all, 0)), MIX_ALL_AXES, false);
  mix_list *gradients = mix_tape_gradient(tape, loss, mix_list_of(k->w, h));
  if (!gradients) return NULL;
  mix_variable_assign(k->w, mix_subtract(mix_variable_value(k->w),
                                         mix_multiply(mix_list_get(gradients, 0), mix_scalar(0.01, F32))));
  return mix_list_of(loss, mix_list_get(gradients, 1), mix_list_get(last, 0), mix_list_get(last, 1));
}

/* Loss, gradient, last carry, and the variables after two runs. */
static size_t run_walk(int64_t every, float *numbers) {
  size_t count = 0;
  mix_keep_every_set(every);
  MIX_SCOPE {
    walk k = {mix_variable_new(mix_fill(MIX_SHAPE(FEATURES), 0.5, F32), .name = "w"), mix_generator_new(5)};
    mix_function *learn = mix_function_new(walk_and_learn, &k);
    double values[BATCH * 11 * FEATURES];
    for (int i = 0; i < BATCH * 11 * FEATURES; i++) values[i] = cos(0.7 * i);
    mix_list *arguments = mix_list_of(mix_tensor_from_doubles(values, F32, MIX_SHAPE(11, BATCH, FEATURES)),
                                      mix_fill(MIX_SHAPE(BATCH, FEATURES), 0.75, F32));
    for (int run = 0; run < 2; run++) {
      mix_list *results = mix_function_call(learn, arguments);
      assert_no_error();
      for (int r = 0; r < mix_list_count(results); r++) {
        mix_tensor *result = mix_list_get(results, r);
        const int64_t size = mix_shape_size(mix_tensor_shape(result));
        assert_int_equal(mix_tensor_read(result, F32, numbers + count, size), MIX_OK);
        count += (size_t)size;
      }
    }
    for (int i = 0; i < FEATURES; i++) numbers[count++] = (float)at(mix_variable_true_value(k.w), i);
    numbers[count++] = (float)at(mix_variable_true_value(mix_generator_state(k.generator)), 1);
  }
  mix_keep_every_set(0);
  return count;
}

static void steps_that_draw_numbers(void **state) {
  (void)state;
  float whole[128], got[128];
  const size_t count = run_walk(0, whole);
  assert_int_equal(whole[1 + BATCH * FEATURES * 2], 11); /* steps */
  for (int64_t every = 1; every <= 10; every++) {
    assert_int_equal(run_walk(every, got), count);
    if (memcmp(whole, got, sizeof *got * count)) fail_msg("other bits where every %d is kept", (int)every);
  }
}

/* Wherever memory ends, compiling ends with the error, and what is compiled afterwards has the bits. */
static void ends_cleanly_without_memory(void **state) {
  (void)state;
  float whole[128], got[128];
  int failures = 0;
  const size_t count = run_walk(3, whole);
  for (int64_t left = 0;; left += 1 + left / 16) {
    bool failed = false;
    MIX_SCOPE {
      walk k = {mix_variable_new(mix_fill(MIX_SHAPE(FEATURES), 0.5, F32), .name = "w"), mix_generator_new(5)};
      mix_function *learn = mix_function_new(walk_and_learn, &k);
      mix_list *arguments = mix_list_of(mix_fill(MIX_SHAPE(11, BATCH, FEATURES), 0.5, F32),
                                        mix_fill(MIX_SHAPE(BATCH, FEATURES), 0.75, F32));
      assert_no_error();
      mix_keep_every_set(3);
      mix_inject_allocation_failure(left);
      mix_function_call(learn, arguments);
      mix_inject_allocation_failure(-1);
      mix_keep_every_set(0);
      failed = mix_error() != MIX_OK;
      if (failed) assert_error(MIX_MEMORY_ERROR, NULL);
    }
    if (!failed) break;
    failures++;
  }
  assert_true(failures > 20);
  assert_int_equal(run_walk(3, got), count);
  assert_memory_equal(whole, got, sizeof *got * count);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(the_bits_of_training), TEST(takes_little_more_than_half),
                                     TEST(budgets_keep_the_bits), TEST(steps_that_draw_numbers),
                                     TEST(ends_cleanly_without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
