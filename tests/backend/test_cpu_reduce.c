/* The CPU's reductions, copies and random numbers against the reference kernels. Sums of small integers are
 * exact in any order: tolerance 0. Other sums have the bound of the documented order. */
/* Holds docs/NUMERICS.md: Sums; The same bits again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/cpu_kernels.h"

#include "backend/ref/ref.h"
#include "ops/table.h"

enum { MAX = 40 };

typedef struct call {
  mix_kernel_args args;
  mix_type inputs[MAX], output;
  const void *addresses[MAX];
  void *data[MAX];
} call;

static int64_t size_of(mix_shape shape) {
  int64_t n = 1;
  for (int d = 0; d < shape.rank; d++) n *= shape.dims[d];
  return n;
}
static void begin(call *c, const mix_op *op, const void *attributes, mix_dtype dtype, mix_shape result) {
  memset(c, 0, sizeof *c);
  c->output = (mix_type){dtype, result};
  c->args = (mix_kernel_args){.op = op,
                              .attributes = attributes,
                              .output_count = 1,
                              .input_types = c->inputs,
                              .output_types = &c->output,
                              .inputs = c->addresses};
}
static void *operand(call *c, mix_dtype dtype, mix_shape shape) {
  const int i = c->args.input_count++;
  c->inputs[i] = (mix_type){dtype, shape};
  c->addresses[i] = c->data[i] = malloc((size_t)size_of(shape) * mix_dtype_size(dtype) + 1);
  assert_non_null(c->data[i]);
  return c->data[i];
}
static void end(call *c) {
  for (int i = 0; i < c->args.input_count; i++) free(c->data[i]);
}
/* NULL, or why the kernel does not support the arguments. */
static const char *run(call *c, const mix_kernel *kernel, void *result, int threads) {
  assert_non_null(kernel);
  const char *why = kernel->unsupported_reason ? kernel->unsupported_reason(&c->args) : NULL;
  if (why) return why;
  c->args.outputs = &result;
  assert_null(run_kernel(kernel, &c->args, threads));
  return NULL;
}
static void check(const char *what, call *c, const mix_kernel *const *kernels, const mix_kernel *reference,
                  int64_t bound) {
  const int64_t n = size_of(c->output.shape);
  void *expected = malloc((size_t)n * 8 + 1),
       *result = malloc((size_t)n * mix_dtype_size(c->output.dtype) + 1);
  assert_null(run(c, reference, expected, 1));
  for (int threads = 1; threads <= 3; threads++) {
    memset(result, 0x5a, (size_t)n * mix_dtype_size(c->output.dtype));
    const char *why = run(c, best_kernel(kernels), result, threads);
    if (why) fail_msg("%s: refused: %s", what, why);
    assert_close(what, result, expected, c->output.dtype, n, bound);
  }
  free(expected);
  free(result);
}

static void fill_integers(void *data, mix_dtype dtype, int64_t n, uint64_t seed, int64_t range) {
  for (int64_t i = 0; i < n; i++)
    mix_store_integer(data, dtype, i,
                      (int64_t)(mix_philox_word(seed, 0, (uint64_t)i) % (uint64_t)range) - range / 2);
}

typedef struct layout {
  mix_shape shape;
  mix_reduce_attributes attributes;
} layout;
static const layout layouts[] = {{{1, {1}}, {1, {0}, false}},
                                 {{1, {7}}, {1, {0}, false}},
                                 {{1, {513}}, {1, {0}, true}},
                                 {{1, {100003}}, {1, {0}, false}},
                                 {{2, {128, 10}}, {1, {1}, false}},
                                 {{2, {40, 513}}, {1, {1}, true}},
                                 {{2, {3, 9001}}, {1, {1}, false}},
                                 {{2, {128, 10}}, {1, {0}, false}},
                                 {{2, {8191, 10}}, {1, {0}, false}},
                                 {{2, {1000, 64}}, {1, {0}, false}},
                                 {{2, {5, 513}}, {1, {0}, false}},
                                 {{2, {200, 300}}, {1, {0}, false}},
                                 {{2, {20, 4099}}, {1, {0}, false}},
                                 {{2, {1, 40}}, {1, {0}, false}},
                                 {{3, {5, 100, 70}}, {1, {1}, false}},
                                 {{3, {3, 70, 300}}, {1, {1}, true}},
                                 {{3, {14, 15, 60}}, {2, {0, 1}, false}},
                                 {{3, {14, 15, 60}}, {2, {1, 2}, false}},
                                 {{4, {4, 6, 5, 32}}, {3, {0, 1, 2}, false}},
                                 {{4, {30, 1, 20, 1}}, {2, {0, 3}, false}},
                                 {{2, {40, 50}}, {2, {0, 1}, false}},
                                 {{3, {2, 3, 4}}, {2, {0, 2}, false}}, /* tails */
                                 {{5, {2, 4, 5, 3, 16}}, {3, {1, 2, 4}, true}},
                                 {{4, {2, 2000, 6, 10}}, {2, {1, 3}, false}},
                                 {{4, {1, 130, 33, 17}}, {2, {1, 3}, false}},
                                 {{3, {6, 3, 500}}, {2, {0, 2}, false}},
                                 {{0, {0}}, {0, {0}, false}}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static mix_shape reduced_shape(const layout *l) {
  mix_shape shape = {.rank = 0};
  for (int d = 0; d < l->shape.rank; d++) {
    bool reduced = false;
    for (int i = 0; i < l->attributes.axis_count; i++) reduced = reduced || l->attributes.axes[i] == d;
    if (!reduced || l->attributes.keep_dims) shape.dims[shape.rank++] = reduced ? 1 : l->shape.dims[d];
  }
  return shape;
}

static const struct {
  const mix_op *op;
  const mix_kernel *const *kernels;
  const mix_kernel *reference;
} reductions[] = {{&mix_op_reduce_sum, mix_cpu_reduce_sum_kernels, &mix_ref_reduce_sum},
                  {&mix_op_reduce_mean, mix_cpu_reduce_mean_kernels, &mix_ref_reduce_mean},
                  {&mix_op_reduce_max, mix_cpu_reduce_max_kernels, &mix_ref_reduce_max},
                  {&mix_op_reduce_min, mix_cpu_reduce_min_kernels, &mix_ref_reduce_min}};
static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT64,
                                   MIX_INT32,   MIX_INT64,   MIX_UINT8,    MIX_INT8};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static void reductions_of_integers_are_exact(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int i = 0; i < LAYOUTS; i++)
    for (int k = 0; k < 4; k++)
      for (int d = 0; d < DTYPES; d++) {
        call c;
        char what[96];
        snprintf(what, sizeof what, "layout %d %s %s", i, reductions[k].op->name, mix_dtype_name(dtypes[d]));
        begin(&c, reductions[k].op, &layouts[i].attributes, dtypes[d], reduced_shape(&layouts[i]));
        fill_integers(operand(&c, dtypes[d], layouts[i].shape), dtypes[d], size_of(layouts[i].shape), 3,
                      dtypes[d] == MIX_UINT8 ? 1 : 9);
        check(what, &c, reductions[k].kernels, reductions[k].reference, 0);
        end(&c);
      }
}

/* |error| <= (64 + 8) u sum |x| with u = 2^-24 for columns (64 rows in float32, the rest in double), (128 +
 * 5) u sum |x| for rows; plus the result's own rounding. The bits do not depend on the number of threads. */
static void sums_keep_their_bound_and_their_bits(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int i = 0; i < LAYOUTS; i++) {
    const int64_t n = size_of(layouts[i].shape), results = size_of(reduced_shape(&layouts[i]));
    call c, magnitudes;
    begin(&c, &mix_op_reduce_sum, &layouts[i].attributes, MIX_FLOAT32, reduced_shape(&layouts[i]));
    begin(&magnitudes, &mix_op_reduce_sum, &layouts[i].attributes, MIX_FLOAT64, reduced_shape(&layouts[i]));
    float *x = operand(&c, MIX_FLOAT32, layouts[i].shape);
    double *a = operand(&magnitudes, MIX_FLOAT64, layouts[i].shape);
    fill_between(x, MIX_FLOAT32, n, 5, -1, 1.5);
    for (int64_t j = 0; j < n; j++) a[j] = x[j];
    double *exact = malloc((size_t)results * 8), *bound = malloc((size_t)results * 8);
    assert_null(run(&magnitudes, &mix_ref_reduce_sum, exact, 1));
    for (int64_t j = 0; j < n; j++) a[j] = fabs(a[j]);
    assert_null(run(&magnitudes, &mix_ref_reduce_sum, bound, 1));
    float *first = malloc((size_t)results * 4), *again = malloc((size_t)results * 4);
    for (int threads = 1; threads <= 3; threads++) {
      assert_null(run(&c, best_kernel(mix_cpu_reduce_sum_kernels), threads == 1 ? first : again, threads));
      if (threads > 1) assert_memory_equal(first, again, (size_t)results * 4);
    }
    for (int64_t j = 0; j < results; j++)
      if (!(fabs(first[j] - exact[j]) <= 133 * 0x1p-24 * bound[j] + 0x1p-24 * fabs(exact[j])))
        fail_msg("layout %d element %lld: %.9g, expected %.9g", i, (long long)j, first[j], exact[j]);
    free(exact);
    free(bound);
    free(first);
    free(again);
    end(&c);
    end(&magnitudes);
  }
}

/* TensorFlow's order: 32 lanes, as four packets of eight, for whole groups. Then the four packets are added
 * one by one, then the remaining packets, the halves of eight lanes, and the tail. */
static float sum_in_order(const float *x, int n) {
  float lanes[32] = {0}, tail = 0;
  const int whole = n / 32 * 32;
  int i = 0;
  for (; i < whole; i++) lanes[i % 32] += x[i];
  for (int j = 0; j < 8; j++) lanes[j] = ((lanes[j] + lanes[8 + j]) + lanes[16 + j]) + lanes[24 + j];
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; j++) lanes[j] += x[i + j];
  for (; i < n; i++) tail += x[i];
  for (int half = 4; half; half /= 2)
    for (int j = 0; j < half; j++) lanes[j] += lanes[j + half];
  return tail + lanes[0];
}

static void sums_have_tensorflows_order(void **state) {
  NEED_INSTRUCTION_SET(state);
  const mix_reduce_attributes attributes = {1, {0}, false};
  for (int n = 2; n <= 4096; n += n < 140 ? 1 : 989) {
    call c;
    begin(&c, &mix_op_reduce_sum, &attributes, MIX_FLOAT32, (mix_shape){.rank = 0});
    float *x = operand(&c, MIX_FLOAT32, MIX_SHAPE(n)), sum;
    fill_between(x, MIX_FLOAT32, n, 50 + (uint64_t)n, 0, 3);
    assert_null(run(&c, best_kernel(mix_cpu_reduce_sum_kernels), &sum, 1));
    const float expected = sum_in_order(x, n);
    if (memcmp(&sum, &expected, sizeof sum))
      fail_msg("%d numbers: %.9g, expected %.9g", n, (double)sum, (double)expected);
    end(&c);
  }
}

static void extremes_of_wild_numbers(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int i = 0; i < LAYOUTS; i++)
    for (int k = 2; k < 4; k++)
      for (int d = 0; d < 4; d++)
        for (int with_nan = 0; with_nan < 2; with_nan++) {
          call c;
          begin(&c, reductions[k].op, &layouts[i].attributes, dtypes[d], reduced_shape(&layouts[i]));
          const int64_t n = size_of(layouts[i].shape);
          void *x = operand(&c, dtypes[d], layouts[i].shape);
          fill_between(x, dtypes[d], n, 6, -100, 100);
          if (with_nan) mix_store_double(x, dtypes[d], n * 2 / 3, NAN);
          mix_store_double(x, dtypes[d], n / 2, k == 2 ? -INFINITY : INFINITY);
          check("extremes", &c, reductions[k].kernels, reductions[k].reference, 0);
          end(&c);
        }
}

static void axes_that_are_not_adjacent_are_unsupported(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const struct {
    mix_shape shape, result;
    const char *reason;
  } rows[] = {{{4, {2, 3, 4, 5}}, {2, {3, 5}}, "reduced axes that are not neighbours"},
              {{3, {2, 3, 513}}, {1, {3}}, "reduced axes that are not neighbours, and many in the end"}};
  const mix_reduce_attributes attributes = {2, {0, 2}, false};
  for (int i = 0; i < 2; i++) {
    call c;
    begin(&c, &mix_op_reduce_sum, &attributes, MIX_FLOAT32, rows[i].result);
    operand(&c, MIX_FLOAT32, rows[i].shape);
    float result[15];
    assert_string_equal(run(&c, best_kernel(mix_cpu_reduce_sum_kernels), result, 1), rows[i].reason);
    end(&c);
  }
}

static void bias_gradients(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const mix_shape shapes[] = {{2, {128, 10}},   {2, {8192, 64}}, {3, {20, 30, 17}}, {1, {9}},
                                     {2, {100, 1024}}, {2, {5000, 1}},  {4, {3, 9, 9, 33}}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int d = 0; d < 4; d++) {
      call c;
      char what[64];
      snprintf(what, sizeof what, "bias shape %zu %s", i, mix_dtype_name(dtypes[d]));
      begin(&c, &mix_op_bias_add_grad, NULL, dtypes[d], MIX_SHAPE(shapes[i].dims[shapes[i].rank - 1]));
      fill_integers(operand(&c, dtypes[d], shapes[i]), dtypes[d], size_of(shapes[i]), 4, 7);
      check(what, &c, mix_cpu_bias_add_grad_kernels, &mix_ref_bias_add_grad, 0);
      end(&c);
    }
}

static void finite_tests(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[] = {0, 1, 7, 511, 513, 100003};
  for (int i = 0; i < 6; i++)
    for (int d = 0; d < 4; d++) {
      const int64_t n = sizes[i], places[] = {-1, 0, n / 3, n - 1};
      call c;
      begin(&c, &mix_op_all_finite, NULL, MIX_BOOL, MIX_SCALAR);
      void *x = operand(&c, dtypes[d], MIX_SHAPE(n));
      fill_between(x, dtypes[d], n, 8, -6e4, 6e4);
      for (int k = 0; k < (n ? 4 : 1); k++) {
        if (places[k] >= 0) mix_store_double(x, dtypes[d], places[k], k == 2 ? NAN : -INFINITY);
        for (int threads = 1; threads <= 3; threads++) {
          uint8_t trace = 9;
          assert_null(run(&c, best_kernel(mix_cpu_all_finite_kernels), &trace, threads));
          assert_int_equal(trace, places[k] < 0);
        }
        if (places[k] >= 0) mix_store_double(x, dtypes[d], places[k], 0);
      }
      end(&c);
    }
}

/* The reference adds in double: the same bits for two numbers, for more only with integers. */
static void sums_of_tensors(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int counts[] = {1, 2, 3, 32};
  for (int i = 0; i < 4; i++)
    for (int d = 0; d < DTYPES; d++) {
      call c;
      begin(&c, &mix_op_add_n, NULL, dtypes[d], MIX_SHAPE(3, 7001));
      for (int k = 0; k < counts[i]; k++) {
        void *x = operand(&c, dtypes[d], MIX_SHAPE(3, 7001));
        if (counts[i] <= 2 && d < 4)
          fill_wild(x, dtypes[d], 21003, 30 + (uint64_t)k);
        else
          fill_integers(x, dtypes[d], 21003, 30 + (uint64_t)k, 9);
      }
      check("add_n", &c, mix_cpu_add_n_kernels, &mix_ref_add_n, 0);
      end(&c);
    }
}

static void positions_of_extremes(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const mix_shape shapes[] = {
      {2, {128, 10}}, {1, {1}}, {2, {3, 5000}}, {3, {10, 20, 40}}, {2, {2000, 33}}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int d = 0; d < DTYPES; d++)
      for (int smallest = 0; smallest < 2; smallest++)
        for (int wild = 0; wild < 2; wild++) {
          mix_shape result = shapes[i];
          result.rank--;
          const mix_axis_attributes attributes = {shapes[i].rank - 1};
          call c;
          begin(&c, smallest ? &mix_op_argmin : &mix_op_argmax, &attributes, MIX_INT64, result);
          void *x = operand(&c, dtypes[d], shapes[i]);
          if (wild)
            fill_wild(x, dtypes[d], size_of(shapes[i]), 50);
          else
            fill_integers(x, dtypes[d], size_of(shapes[i]), 50, 100); /* with ties */
          check("positions", &c, smallest ? mix_cpu_argmin_kernels : mix_cpu_argmax_kernels,
                smallest ? &mix_ref_argmin : &mix_ref_argmax, 0);
          end(&c);
        }
}

/* ---- copies ---- */

static void transpositions(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const struct {
    mix_shape shape;
    mix_transpose_attributes attributes;
  } cases[] = {{{0}, {{0}}},
               {{2, {3, 5}}, {{1, 0}}},
               {{2, {300, 301}}, {{1, 0}}},
               {{3, {4, 33, 65}}, {{0, 2, 1}}},
               {{3, {4, 33, 65}}, {{2, 0, 1}}},
               {{3, {4, 33, 65}}, {{1, 2, 0}}},
               {{4, {3, 1, 40, 5}}, {{2, 1, 3, 0}}},
               {{2, {1, 9}}, {{1, 0}}},
               {{4, {2, 3, 4, 5}}, {{0, 1, 2, 3}}},
               {{4, {2, 30, 4, 5}}, {{0, 3, 2, 1}}},
               {{3, {30, 20, 40}}, {{1, 0, 2}}},
               {{3, {3, 0, 4}}, {{2, 1, 0}}},
               {{5, {3, 4, 5, 2, 6}}, {{2, 0, 1, 3, 4}}},
               {{5, {6, 1, 5, 7, 1}}, {{3, 4, 2, 1, 0}}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int d = 0; d < DTYPES; d++) {
      mix_shape result = cases[i].shape;
      for (int k = 0; k < result.rank; k++)
        result.dims[k] = cases[i].shape.dims[cases[i].attributes.permutation[k]];
      call c;
      begin(&c, &mix_op_transpose, &cases[i].attributes, dtypes[d], result);
      fill_wild(operand(&c, dtypes[d], cases[i].shape), dtypes[d], size_of(result), 60);
      if (i >= 9)
        assert_string_equal(best_kernel(mix_cpu_transpose_kernels)->unsupported_reason(&c.args),
                            "a permutation of more than two groups of axes");
      else
        check("transpose", &c, mix_cpu_transpose_kernels, &mix_ref_transpose, 0);
      check("transpose", &c, mix_cpu_transpose_kernels + 1, &mix_ref_transpose, 0);
      end(&c);
    }
}

static void broadcasts(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const struct {
    mix_shape x, result;
  } cases[] = {{{0}, {0}},
               {{0}, {1, {70000}}},
               {{1, {1}}, {2, {3, 5}}},
               {{1, {300}}, {2, {40, 300}}},
               {{1, {30000}}, {2, {2, 30000}}},
               {{2, {40, 1}}, {2, {40, 300}}},
               {{2, {40, 30}}, {2, {40, 30}}},
               {{3, {40, 1, 30}}, {3, {40, 20, 30}}},
               {{3, {40, 1, 1}}, {3, {40, 20, 30}}},
               {{3, {1, 20, 1}}, {4, {5, 40, 20, 30}}},
               {{2, {4, 1}}, {3, {3, 4, 1}}},
               {{2, {1, 5}}, {2, {0, 5}}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int d = 0; d < DTYPES; d++) {
      const mix_shape_attributes attributes = {.shape = cases[i].result};
      call c;
      begin(&c, &mix_op_broadcast_to, &attributes, dtypes[d], cases[i].result);
      fill_wild(operand(&c, dtypes[d], cases[i].x), dtypes[d], size_of(cases[i].x), 65);
      check("broadcast_to", &c, mix_cpu_broadcast_to_kernels, &mix_ref_broadcast_to, 0);
      end(&c);
    }
}

static void concatenations_and_slices(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int axis = 0; axis < 3; axis++)
    for (int d = 0; d < DTYPES; d++) {
      const mix_axis_attributes attributes = {axis};
      mix_shape result = MIX_SHAPE(6, 50, 300);
      result.dims[axis] = 0;
      call c;
      begin(&c, &mix_op_concat, &attributes, dtypes[d], result);
      for (int k = 0; k < 3; k++) {
        mix_shape shape = MIX_SHAPE(6, 50, 300);
        shape.dims[axis] = 7 * k;
        fill_wild(operand(&c, dtypes[d], shape), dtypes[d], size_of(shape), 70 + (uint64_t)k);
        c.output.shape.dims[axis] += 7 * k;
      }
      check("concat", &c, mix_cpu_concat_kernels, &mix_ref_concat, 0);
      end(&c);
      static const int64_t begins[][3] = {{0, 0, 0}, {1, 2, 3}, {2, 0, 0}, {0, 7, 0}},
                           ends[][3] = {{6, 50, 300}, {5, 40, 250}, {4, 50, 300}, {6, 9, 300}};
      for (int k = 0; k < 4; k++) {
        mix_slice_attributes slice = {.begin = {3, {begins[k][0], begins[k][1], begins[k][2]}}};
        slice.size =
            MIX_SHAPE(ends[k][0] - begins[k][0], ends[k][1] - begins[k][1], ends[k][2] - begins[k][2]);
        begin(&c, &mix_op_slice, &slice, dtypes[d], slice.size);
        fill_wild(operand(&c, dtypes[d], MIX_SHAPE(6, 50, 300)), dtypes[d], 90000, 80);
        check("slice", &c, mix_cpu_slice_kernels, &mix_ref_slice, 0);
        end(&c);
      }
    }
}

static void paddings(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const struct {
    mix_shape x, before, after;
  } cases[] = {{{1, {700}}, {1, {300}}, {1, {200}}},
               {{1, {5}}, {1, {0}}, {1, {0}}},
               {{0}, {0}, {0}},
               {{2, {32, 256}}, {2, {0, 256}}, {2, {0, 512}}},
               {{2, {3, 1000}}, {2, {2, 0}}, {2, {1, 0}}},
               {{2, {1, 4000}}, {2, {0, 600}}, {2, {0, 2}}},
               {{3, {4, 5, 30}}, {3, {1, 2, 3}}, {3, {2, 0, 1}}},
               {{3, {4, 5, 30}}, {3, {0, 3, 0}}, {3, {0, 0, 0}}},
               {{3, {40, 5, 30}}, {3, {0, 0, 0}}, {3, {9, 0, 0}}},
               {{3, {4, 0, 30}}, {3, {1, 2, 3}}, {3, {0, 1, 0}}},
               {{4, {3, 4, 5, 6}}, {4, {0, 1, 2, 0}}, {4, {1, 1, 0, 0}}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int d = 0; d < DTYPES; d++) {
      const mix_pad_attributes attributes = {cases[i].before, cases[i].after, d % 2 ? 2.7 : 0};
      mix_shape result = cases[i].x;
      for (int k = 0; k < result.rank; k++)
        result.dims[k] += cases[i].before.dims[k] + cases[i].after.dims[k];
      call c;
      begin(&c, &mix_op_pad, &attributes, dtypes[d], result);
      fill_wild(operand(&c, dtypes[d], cases[i].x), dtypes[d], size_of(cases[i].x), 90);
      check("pad", &c, mix_cpu_pad_kernels, &mix_ref_pad, 0);
      end(&c);
    }
}

static void fills_and_reshapes(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[] = {0, 1, 7, 513, 100003};
  for (int i = 0; i < 5; i++)
    for (int d = 0; d < DTYPES; d++) {
      const mix_shape_attributes fill = {.shape = {1, {sizes[i]}}, .dtype = dtypes[d], .value = 2.7};
      call c;
      begin(&c, &mix_op_fill, &fill, dtypes[d], fill.shape);
      check("fill", &c, mix_cpu_fill_kernels, &mix_ref_fill, 0);
      end(&c);
      const mix_shape_attributes reshape = {.shape = {2, {1, sizes[i]}}};
      begin(&c, &mix_op_reshape, &reshape, dtypes[d], reshape.shape);
      fill_wild(operand(&c, dtypes[d], fill.shape), dtypes[d], sizes[i], 2);
      check("reshape", &c, mix_cpu_reshape_kernels, &mix_ref_reshape, 0);
      end(&c);
    }
}

/* Holds docs/NUMERICS.md: Random numbers. */
static void uniform_numbers(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[] = {1, 7, 511, 513, 100003};
  for (int i = 0; i < 5; i++)
    for (int d = 0; d < 3; d++) {
      const mix_shape_attributes attributes = {.shape = {1, {sizes[i]}}, .dtype = dtypes[d]};
      call c;
      begin(&c, &mix_op_random_uniform, &attributes, dtypes[d], attributes.shape);
      int64_t *words = operand(&c, MIX_INT64, MIX_SHAPE(2));
      words[0] = INT64_C(0x123456789abcdef0);
      words[1] = -5;
      check("uniform", &c, mix_cpu_random_uniform_kernels, &mix_ref_random_uniform, 0);
      end(&c);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_SET(reductions_of_integers_are_exact),
      ON_EACH_SET(sums_keep_their_bound_and_their_bits),
      ON_EACH_SET(sums_have_tensorflows_order),
      ON_EACH_SET(extremes_of_wild_numbers),
      ON_EACH_SET(axes_that_are_not_adjacent_are_unsupported),
      ON_EACH_SET(bias_gradients),
      ON_EACH_SET(finite_tests),
      ON_EACH_SET(sums_of_tensors),
      ON_EACH_SET(positions_of_extremes),
      ON_EACH_SET(transpositions),
      ON_EACH_SET(broadcasts),
      ON_EACH_SET(concatenations_and_slices),
      ON_EACH_SET(paddings),
      ON_EACH_SET(fills_and_reshapes),
      ON_EACH_SET(uniform_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
