/* Sums and means of all elements, and of rows, at the end of programs: the same bits as the reduction kernels
 * for any shape and number of threads. A value needed after its sum is recomputed, never stored. */
/* Holds docs/NUMERICS.md: Element-wise operations. */
#include "compile/support.h"
#include "backend/host/executor.h"
#include "support/count.h"
#include "support/memory.h"
#include <stdio.h>

static mix_tensor *numbers(mix_shape shape, mix_dtype dtype) {
  int64_t count = mix_shape_size(shape);
  double *values = malloc(sizeof *values * (size_t)count);
  uint32_t seed = 11;
  for (int64_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (double)(seed >> 8) / (1 << 23) - 0.9;
  }
  mix_tensor *x = mix_tensor_from_doubles(values, dtype, shape);
  free(values);
  return x;
}

/* A column, or a row of the last dimension, is included, so that programs have more than one dimension. */
typedef struct chain {
  bool row, column, mean;
} chain;
static mix_list *sums(void *context, mix_list *arguments) {
  const chain *c = context;
  mix_tensor *x = mix_list_get(arguments, 0), *y = mix_add(mix_square(x), mix_scalar_like(x, 0.125));
  mix_shape shape = mix_tensor_shape(x);
  if (c->row) y = mix_multiply(y, mix_reduce_max(x, MIX_AXES(0), true));
  if (c->column) y = mix_multiply(y, mix_reduce_max(x, MIX_AXES(shape.rank - 1), true));
  return mix_list_of(c->mean ? mix_reduce_mean(y, MIX_ALL_AXES, true)
                             : mix_reduce_sum(y, MIX_ALL_AXES, false));
}

static double run(mix_function_body body, void *context, mix_tensor *x, bool fused, int threads,
                  const char *device) {
  double value = NAN;
  assert_int_equal(mix_set_device(device), MIX_OK);
  mix_set_threads(threads);
  if (!fused) setenv("MIXTAPE_DISABLE_PASSES", "fuse", 1);
  MIX_SCOPE {
    mix_list *results = mix_function_call(mix_function_new(body, context), mix_list_of(x));
    no_error();
    value = mix_tensor_item(mix_list_get(results, 0));
  }
  unsetenv("MIXTAPE_DISABLE_PASSES");
  return value;
}

static void the_bits_of_the_reductions_own_kernels(void **state) {
  (void)state;
  const mix_shape shapes[] = {
      MIX_SHAPE(1, 2),      MIX_SHAPE(5, 7),      MIX_SHAPE(1, 4096), MIX_SHAPE(1, 4097), MIX_SHAPE(3, 5000),
      MIX_SHAPE(300, 10),   MIX_SHAPE(1000, 31),  MIX_SHAPE(64, 512), MIX_SHAPE(9, 4096), MIX_SHAPE(20, 4100),
      MIX_SHAPE(7, 11, 13), MIX_SHAPE(100003, 1), MIX_SHAPE(513, 515)};
  const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT64};
  for (int s = 0; s < COUNT(shapes); s++)
    for (int d = 0; d < COUNT(dtypes); d++)
      for (int form = 0; form < 6; form++)
        MIX_SCOPE {
          chain c = {.row = form % 3 == 1, .column = form % 3 == 2, .mean = form >= 3};
          mix_tensor *x = numbers(shapes[s], dtypes[d]);
          double alone = run(sums, &c, x, false, 2, "cpu");
          for (int threads = 1; threads <= 3; threads++) {
            double fused = run(sums, &c, x, true, threads, "cpu");
            if (memcmp(&fused, &alone, sizeof fused))
              fail_msg("shape %d, %s, form %d, %d threads: %.17g, alone %.17g", s, mix_dtype_name(dtypes[d]),
                       form, threads, fused, alone);
          }
          if (mix_shape_size(shapes[s]) > 4096) continue; /* slow, and the same code for any size */
          double reference = run(sums, &c, x, false, 1, "ref"), together = run(sums, &c, x, true, 1, "ref");
          assert_memory_equal(&reference, &together, sizeof together);
        }
}

/* The same for rows: over the last axis, or the last two. */
static mix_list *row_sums(void *context, mix_list *arguments) {
  const chain *c = context;
  mix_tensor *x = mix_list_get(arguments, 0), *y = mix_add(mix_square(x), mix_scalar_like(x, 0.125));
  mix_shape shape = mix_tensor_shape(x);
  if (c->row) y = mix_multiply(y, mix_reduce_max(x, MIX_AXES(0), true));
  if (c->column) y = mix_multiply(y, mix_reduce_max(x, MIX_AXES(shape.rank - 1), true));
  mix_axes axes = shape.rank == 3 ? MIX_AXES(1, 2) : MIX_AXES(-1);
  return mix_list_of(c->mean ? mix_reduce_mean(y, axes, true) : mix_reduce_sum(y, axes, false));
}
static void rows_too(void **state) {
  (void)state;
  const mix_shape shapes[] = {MIX_SHAPE(2, 2),       MIX_SHAPE(5, 7),      MIX_SHAPE(3, 4097),
                              MIX_SHAPE(3, 9000),    MIX_SHAPE(300, 10),   MIX_SHAPE(1000, 31),
                              MIX_SHAPE(64, 512),    MIX_SHAPE(40, 784),   MIX_SHAPE(9, 4096),
                              MIX_SHAPE(20, 11, 13), MIX_SHAPE(17, 64, 8), MIX_SHAPE(513, 515),
                              MIX_SHAPE(30000, 3)};
  const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT64};
  for (int s = 0; s < COUNT(shapes); s++)
    for (int d = 0; d < COUNT(dtypes); d++)
      for (int form = 0; form < 6; form++)
        for (int on_ref = 0; on_ref <= (mix_shape_size(shapes[s]) < 10000); on_ref++)
          MIX_SCOPE {
            chain c = {.row = form % 3 == 1, .column = form % 3 == 2, .mean = form >= 3};
            mix_list *arguments = mix_list_of(numbers(shapes[s], dtypes[d]));
            mix_set_device(on_ref ? "ref" : "cpu");
            mix_set_threads(2);
            setenv("MIXTAPE_DISABLE_PASSES", "fuse", 1);
            mix_tensor *alone = mix_list_get(mix_function_call(mix_function_new(row_sums, &c), arguments), 0);
            unsetenv("MIXTAPE_DISABLE_PASSES");
            for (int threads = 1; threads <= 3; threads++) {
              mix_set_threads(threads);
              mix_tensor *fused =
                  mix_list_get(mix_function_call(mix_function_new(row_sums, &c), arguments), 0);
              no_error();
              const mix_value *a = mix_tensor_value(alone), *b = mix_tensor_value(fused);
              if (mix_memory_bytes(a->memory) != mix_memory_bytes(b->memory) ||
                  memcmp(bytes_of_memory(a->memory), bytes_of_memory(b->memory), mix_memory_bytes(a->memory)))
                fail_msg("shape %d, %s, form %d, %d threads%s", s, mix_dtype_name(dtypes[d]), form, threads,
                         on_ref ? ", ref" : "");
            }
          }
}

/* Columns (all axes but the last), alone or with a second sum, a stored value, and rows: in one program where
 * threads can share it. The orders of columns: one chain up to 1024 rows, else chains of 64, in blocks of
 * several rows a line where there are at most 256 columns. */
static mix_list *column_sums(void *context, mix_list *arguments) {
  const chain *c = context;
  mix_tensor *x = mix_list_get(arguments, 0), *y = mix_add(mix_square(x), mix_scalar_like(x, 0.125));
  mix_shape shape = mix_tensor_shape(x);
  if (c->column) y = mix_multiply(y, mix_reduce_max(x, MIX_AXES(shape.rank - 1), true));
  mix_axes axes = shape.rank == 3 ? MIX_AXES(0, 1) : MIX_AXES(0);
  mix_list *results =
      mix_list_of(c->mean ? mix_reduce_mean(y, axes, true) : mix_reduce_sum(y, axes, false),
                  mix_reduce_sum(mix_multiply(x, y), axes, false), mix_reduce_sum(x, axes, true));
  if (c->row) {
    mix_list_append(results, mix_reduce_mean(mix_abs(y), MIX_AXES(-1), true));
    mix_list_append(results, mix_negative(y));
  }
  return results;
}
static int programs_with_sums(mix_function *function) {
  return count_of(mix_function_dump(function, "fuse"), " by columns of ");
}
static void columns_too(void **state) {
  (void)state;
  const mix_shape shapes[] = {MIX_SHAPE(2, 2),      MIX_SHAPE(5, 7),        MIX_SHAPE(1024, 3),
                              MIX_SHAPE(1025, 3),   MIX_SHAPE(40, 784),     MIX_SHAPE(1500, 300),
                              MIX_SHAPE(7000, 37),  MIX_SHAPE(30001, 3),    MIX_SHAPE(70000, 2),
                              MIX_SHAPE(17, 64, 8), MIX_SHAPE(20, 11, 600), MIX_SHAPE(130, 10, 16),
                              MIX_SHAPE(1100, 513)};
  const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT64};
  for (int s = 0; s < COUNT(shapes); s++)
    for (int d = 0; d < COUNT(dtypes); d++)
      for (int form = 0; form < 4; form++)
        for (int on_ref = 0; on_ref <= (mix_shape_size(shapes[s]) < 5000); on_ref++)
          MIX_SCOPE {
            chain c = {.row = form & 1, .column = form & 2, .mean = (s + form) & 1};
            mix_list *arguments = mix_list_of(numbers(shapes[s], dtypes[d]));
            mix_set_device(on_ref ? "ref" : "cpu");
            mix_set_threads(2);
            setenv("MIXTAPE_DISABLE_PASSES", "fuse", 1);
            mix_list *alone = mix_function_call(mix_function_new(column_sums, &c), arguments);
            unsetenv("MIXTAPE_DISABLE_PASSES");
            no_error();
            for (int threads = 1; threads <= 3; threads++) {
              mix_set_threads(threads);
              mix_function *function = mix_function_new(column_sums, &c);
              mix_list *fused = mix_function_call(function, arguments);
              no_error();
              assert_int_equal(programs_with_sums(function), 3);
              for (int i = 0; i < mix_list_count(alone); i++) {
                const mix_value *a = mix_tensor_value(mix_list_get(alone, i)),
                                *b = mix_tensor_value(mix_list_get(fused, i));
                if (mix_memory_bytes(a->memory) != mix_memory_bytes(b->memory) ||
                    memcmp(bytes_of_memory(a->memory), bytes_of_memory(b->memory),
                           mix_memory_bytes(a->memory)))
                  fail_msg("shape %d, %s, form %d, %d threads, result %d%s", s, mix_dtype_name(dtypes[d]),
                           form, threads, i, on_ref ? ", ref" : "");
              }
            }
          }
}

/* Mean and variance of rows, which one operation computes unless its pass is off: of float32 and float64 as
 * they are, of 16 bits cast to float32. */
static mix_list *moments(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0);
  if (mix_tensor_dtype(x) != MIX_FLOAT64) x = mix_cast(x, MIX_FLOAT32);
  mix_axes axes = mix_tensor_shape(x).rank == 3 ? MIX_AXES(1, 2) : MIX_AXES(-1);
  mix_tensor *mean = mix_reduce_mean(x, axes, true);
  return mix_list_of(mean, mix_reduce_mean(mix_squared_difference(x, mean), axes, true));
}
static void moments_too(void **state) {
  (void)state;
  const mix_shape shapes[] = {MIX_SHAPE(2, 2),    MIX_SHAPE(5, 7),       MIX_SHAPE(3, 4096),
                              MIX_SHAPE(300, 16), MIX_SHAPE(700, 515),   MIX_SHAPE(40, 31),
                              MIX_SHAPE(2, 4097), MIX_SHAPE(20, 11, 13), MIX_SHAPE(170, 64, 8)};
  const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT64};
  for (int s = 0; s < COUNT(shapes); s++)
    for (int d = 0; d < COUNT(dtypes); d++)
      for (int on_ref = 0; on_ref < 2; on_ref++)
        MIX_SCOPE {
          mix_list *arguments = mix_list_of(numbers(shapes[s], dtypes[d]));
          mix_set_device(on_ref ? "ref" : "cpu");
          setenv("MIXTAPE_DISABLE_PASSES", "row_moments", 1);
          mix_list *apart = mix_function_call(mix_function_new(moments, NULL), arguments);
          unsetenv("MIXTAPE_DISABLE_PASSES");
          no_error();
          for (int threads = 1; threads <= 3; threads++) {
            mix_set_threads(threads);
            mix_function *function = mix_function_new(moments, NULL);
            mix_list *joined = mix_function_call(function, arguments);
            no_error();
            const int64_t row = mix_shape_size(shapes[s]) / shapes[s].dims[0];
            assert_int_equal(strstr(mix_function_dump(function, "plan"), " row_moments ") != NULL,
                             row <= 4096);
            for (int i = 0; i < 2; i++) {
              const mix_value *a = mix_tensor_value(mix_list_get(apart, i)),
                              *b = mix_tensor_value(mix_list_get(joined, i));
              if (memcmp(bytes_of_memory(a->memory), bytes_of_memory(b->memory), mix_memory_bytes(a->memory)))
                fail_msg("shape %d, %s, %d threads, result %d%s", s, mix_dtype_name(dtypes[d]), threads, i,
                         on_ref ? ", ref" : "");
            }
          }
        }
}

/* x / |x|: the square is fused with the sum, and x is recomputed. Nothing of x's size is stored except the
 * result. */
static mix_list *normalised(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_tanh(mix_list_get(arguments, 0));
  mix_tensor *norm = mix_sqrt(mix_reduce_sum(mix_square(x), MIX_ALL_AXES, false));
  return mix_list_of(mix_divide(x, norm));
}
static void values_needed_after_the_sum_are_recomputed(void **state) {
  (void)state;
  mix_function *function = mix_function_new(normalised, NULL);
  mix_tensor *x = numbers(MIX_SHAPE(100, 100), MIX_FLOAT32);
  mix_list *results = mix_function_call(function, mix_list_of(x));
  no_error();
  const char *plan = mix_function_dump(function, "plan");
  if (count_of(plan, "fused [") > 3 ||
      strstr(plan, "arena+0:float32(100, 100)")) /* The sum, its root, the quotient. */
    fail_msg("%s", plan);
  mix_plan_report report;
  mix_function_report(function, &report, sizeof report);
  assert_true(report.arena_bytes <= 4 * 64);
  double *values = malloc(sizeof *values * 10000), square = 0;
  mix_tensor_read(mix_list_get(results, 0), MIX_FLOAT64, values, 10000);
  for (int i = 0; i < 10000; i++) square += values[i] * values[i];
  assert_true(fabs(square - 1) < 1e-5); /* 10,000 roundings of 6e-8, including the norm's */
  free(values);
}

int main(void) {
  mix_host_take_all_threads(true);
  const struct CMUnitTest tests[] = {TEST(the_bits_of_the_reductions_own_kernels), TEST(rows_too),
                                     TEST(columns_too), TEST(moments_too),
                                     TEST(values_needed_after_the_sum_are_recomputed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
