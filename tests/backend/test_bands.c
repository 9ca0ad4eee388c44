/* Steps that run together in bands of rows give the bits that they give one after another, on any number of
 * threads, with rows that fill no band and no vector, and move fewer bytes. */
/* Holds docs/NUMERICS.md: The same bits again. */
#include "../compile/support.h"

#include "backend/host/bands.h"
#include "support/folder.h"
#include "support/skip.h"
#include "support/trace.h"
#include <mixtape/mixtape.h>

enum { MAX_RESULTS = 16, THREADS = 3, MANY_ROWS = 1024 };

typedef struct subject {
  mix_layer *layer; /* NULL: a chain of operations */
} subject;

static mix_tensor *uniform(uint64_t seed, mix_shape shape, mix_dtype dtype) {
  mix_tensor *x = mix_random_uniform(mix_generator_new(seed), shape, MIX_FLOAT32);
  x = mix_cast(mix_subtract(x, mix_scalar(0.4, MIX_FLOAT32)), dtype);
  assert_int_equal(mix_evaluate(1, &x), MIX_OK);
  return x;
}

/* x and the gradient of y. */
static mix_list *arguments_of(mix_shape shape, mix_dtype dtype) {
  return mix_list_of(uniform(3, shape, dtype), uniform(4, shape, dtype));
}

/* y and the gradients of x and the weights. */
static mix_list *normalise(void *context, mix_list *arguments) {
  const subject *s = context;
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_call(s->layer, x, .training = MIX_TRUE);
  mix_tape_end(tape);
  mix_list *sources = mix_layer_trainable_weights(s->layer);
  mix_list_append(sources, x);
  mix_list *results =
      mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(mix_list_get(arguments, 1)), sources);
  mix_list_append(results, y);
  return results;
}

/* Rows: a maximum, exponentials of which two things are made, their sum, and the mean of columns. */
static mix_list *chain(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0), *dy = mix_list_get(arguments, 1);
  const mix_axes rows = MIX_AXES(-1);
  mix_tensor *max = mix_reduce_max(x, rows, true), *e = mix_exp(mix_subtract(x, max)),
             *p = mix_divide(e, mix_reduce_sum(e, rows, true)),
             *inner = mix_reduce_sum(mix_multiply(p, dy), rows, true),
             *columns = mix_reduce_mean(mix_multiply(p, dy), MIX_AXES(0), false);
  return mix_list_of(p, mix_multiply(p, mix_subtract(dy, inner)), columns);
}

typedef struct outcome {
  char *bytes[MAX_RESULTS];
  size_t sizes[MAX_RESULTS], moved;
  int count, steps;
} outcome;

static outcome outcome_of(mix_function *function, mix_list *arguments) {
  outcome o = {.count = 0};
  mix_plan_report report;
  mix_list *results = mix_function_call(function, arguments);
  no_error();
  assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
  o.moved = report.moved_bytes;
  o.steps = report.nodes;
  for (; o.count < mix_list_count(results); o.count++) {
    mix_tensor *t = mix_list_get(results, o.count);
    o.sizes[o.count] = (size_t)mix_shape_size(mix_tensor_shape(t)) * mix_dtype_size(mix_tensor_dtype(t));
    o.bytes[o.count] = malloc(o.sizes[o.count] + 1);
    memcpy(o.bytes[o.count], mix_tensor_data(t), o.sizes[o.count]);
  }
  return o;
}

static outcome run(subject *s, mix_list *arguments, mix_host_band_rule rule, int threads) {
  mix_host_set_band_rule(rule);
  mix_set_threads(threads);
  return outcome_of(mix_function_new(s->layer ? normalise : chain, s, .name = "bands"), arguments);
}

static void free_outcome(outcome *o) {
  for (int i = 0; i < o->count; i++) free(o->bytes[i]);
}

static void expect_same_bytes(const outcome *a, const outcome *b) {
  assert_int_equal(a->count, b->count);
  for (int i = 0; i < a->count; i++) {
    assert_int_equal(a->sizes[i], b->sizes[i]);
    if (memcmp(a->bytes[i], b->bytes[i], a->sizes[i])) fail_msg("result %d of %d", i, a->count);
  }
}

/* Returns the bytes that bands save. */
static size_t compare(subject *s, mix_shape shape, mix_dtype dtype, int threads) {
  mix_list *arguments = arguments_of(shape, dtype);
  outcome apart = run(s, arguments, MIX_BANDS_NEVER, 1), bands = run(s, arguments, MIX_BANDS_ALWAYS, threads);
  expect_same_bytes(&apart, &bands);
  assert_true(bands.moved <= apart.moved);
  const size_t saved = apart.moved - bands.moved;
  free_outcome(&apart);
  free_outcome(&bands);
  return saved;
}

static const mix_shape matrices[] = {
    {.rank = 2, .dims = {7, 24}}, {.rank = 2, .dims = {130, 48}}, {.rank = 2, .dims = {1100, 264}}};
static const mix_shape images[] = {{.rank = 4, .dims = {5, 3, 7, 24}}, {.rank = 4, .dims = {9, 16, 9, 264}}};
static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16};
static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};

static mix_layer *layer_of(int kind, mix_shape shape) {
  mix_layer *list[] = {mix_layer_normalization(), mix_group_normalization(.groups = 8),
                       mix_rms_normalization(), mix_unit_normalization()};
  assert_int_equal(mix_layer_build(list[kind], shape), MIX_OK);
  return list[kind];
}

static void normalisations(void **state) {
  (void)state;
  enum { KINDS = 4 };
  for (int d = 0; d < COUNT(dtypes); d++)
    for (int kind = 0; kind < KINDS; kind++)
      for (int i = 0; i < COUNT(matrices) + COUNT(images); i++)
        for (int threads = 1; threads <= THREADS; threads++)
          MIX_SCOPE {
            const bool matrix = i < COUNT(matrices);
            const mix_shape shape = matrix ? matrices[i] : images[i - COUNT(matrices)];
            mix_set_global_policy(policies[d]);
            subject s = {.layer = layer_of(kind, shape)};
            const size_t saved = compare(&s, shape, dtypes[d], threads);
            const size_t operand = (size_t)mix_shape_size(shape) * mix_dtype_size(dtypes[d]);
            /* Something of the size of x is read once instead of twice, at least, and by LayerNormalization
             * of rows instead of three times. Few rows have too few chains of sums for several threads, and
             * so have narrow ones. */
            const bool many = mix_shape_size(shape) > MANY_ROWS * shape.dims[shape.rank - 1];
            const size_t least = kind == 0 && matrix ? 2 * operand : operand;
            if ((threads == 1 || many) && saved < least)
              fail_msg("dtype %d, layer %d, shape %d, %d threads: %zu saved", d, kind, i, threads, saved);
          }
}

static void chains(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(dtypes); d++)
    for (int i = 0; i < COUNT(matrices); i++)
      for (int threads = 1; threads <= THREADS; threads++)
        MIX_SCOPE {
          subject s = {.layer = NULL};
          if (!compare(&s, matrices[i], dtypes[d], threads)) fail_msg("dtype %d, shape %d", d, i);
        }
}

/* Operands that the caches hold are not cut into bands. */
static void small_operands_stay_whole(void **state) {
  (void)state;
  subject s = {.layer = layer_of(0, matrices[1])};
  mix_list *arguments = arguments_of(matrices[1], MIX_FLOAT32);
  outcome apart = run(&s, arguments, MIX_BANDS_NEVER, 2), by_size = run(&s, arguments, MIX_BANDS_BY_SIZE, 2);
  assert_int_equal(apart.moved, by_size.moved);
  free_outcome(&apart);
  free_outcome(&by_size);
}

/* Where they do not: LayerNormalization reads x and dy once and writes y and dx; GroupNormalization of images
 * reads dy once more, for a sum over all images. */
static void large_operands(void **state) {
  (void)state;
  if (mix_cpu_cache(3) > 64 << 20) SKIP("five operands of twice the third-level cache take too much memory");
  const int64_t columns = 512, side = 8,
                size = 2 * mix_cpu_cache(3) / (int64_t)sizeof(float) / (columns * side * side);
  const struct {
    int layer;
    mix_shape shape;
    size_t operands;
  } rows[] = {{0, MIX_SHAPE(size * side * side, columns), 4}, {1, MIX_SHAPE(size, side, side, columns), 5}};
  for (int i = 0; i < COUNT(rows); i++)
    MIX_SCOPE {
      subject s = {.layer = layer_of(rows[i].layer, rows[i].shape)};
      mix_list *arguments = arguments_of(rows[i].shape, MIX_FLOAT32);
      outcome apart = run(&s, arguments, MIX_BANDS_NEVER, 2),
              bands = run(&s, arguments, MIX_BANDS_BY_SIZE, 2);
      const size_t operand = (size_t)mix_shape_size(rows[i].shape) * sizeof(float);
      expect_same_bytes(&apart, &bands);
      /* Statistics and sums are small beside an operand. */
      assert_in_range(100 * bands.moved / operand, 100 * rows[i].operands, 100 * rows[i].operands + 10);
      free_outcome(&apart);
      free_outcome(&bands);
    }
}

/* Wherever memory ends, that is an error and nothing else; then the function works. */
static void failed_allocations(void **state) {
  (void)state;
  subject s = {.layer = layer_of(1, images[1])};
  mix_list *arguments = arguments_of(images[1], MIX_FLOAT32);
  outcome apart = run(&s, arguments, MIX_BANDS_NEVER, 1);
  bool failed = true;
  int64_t count = 0;
  for (; failed; count++)
    MIX_SCOPE {
      mix_host_set_band_rule(MIX_BANDS_ALWAYS);
      mix_set_threads(2);
      mix_function *function = mix_function_new(normalise, &s, .name = "bands");
      mix_inject_allocation_failure(count);
      mix_function_call(function, arguments);
      mix_inject_allocation_failure(-1);
      failed = mix_error() != MIX_OK;
      if (failed) expect_error(MIX_MEMORY_ERROR, "memory");
      outcome bands = outcome_of(function, arguments);
      expect_same_bytes(&apart, &bands);
      assert_true(bands.moved < apart.moved);
      free_outcome(&bands);
    }
  assert_true(count > 100);
  free_outcome(&apart);
}

/* A trace has every step of a group, one after another on each thread. */
static void traces(void **state) {
  (void)state;
  char *path = in_folder("bands.json");
  subject s = {.layer = layer_of(0, matrices[2])};
  mix_list *arguments = arguments_of(matrices[2], MIX_FLOAT32);
  outcome apart = run(&s, arguments, MIX_BANDS_NEVER, 1);
  for (int threads = 1; threads <= 2; threads++) {
    assert_int_equal(mix_trace_start(path, .steps = 1), MIX_OK);
    outcome bands = run(&s, arguments, MIX_BANDS_ALWAYS, threads);
    assert_int_equal(mix_trace_stop(), MIX_OK);
    assert_true(bands.moved < apart.moved);
    json_t *root, *events = events_of(path, &root);
    assert_int_equal(check_runs(events, "bands"), 1);
    json_decref(root);
    free_outcome(&bands);
  }
  free_outcome(&apart);
}

static int end_bands_test(void **state) {
  mix_host_set_band_rule(MIX_BANDS_BY_SIZE);
  mix_set_global_policy("float32");
  return end_test(state);
}
#define BANDS_TEST(function) cmocka_unit_test_setup_teardown(function, begin_test, end_bands_test)

int main(void) {
  mix_host_take_all_threads(true);
  const struct CMUnitTest tests[] = {
      BANDS_TEST(normalisations),
      BANDS_TEST(chains),
      BANDS_TEST(small_operands_stay_whole),
      BANDS_TEST(large_operands),
      BANDS_TEST(failed_allocations),
      BANDS_TEST(traces),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
