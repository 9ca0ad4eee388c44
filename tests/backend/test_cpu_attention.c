/* Attention by blocks on the CPU against the reference, and the reference against the plain form; its memory
 * is linear in the number of places. */
#include "backend/host/executor.h"
#include "ops/support.h"
#include "base/philox.h"
#include <mixtape/device.h>
#include <mixtape/function.h>

enum { ELEMENTS = 40000, OPERANDS = 6 };

typedef struct attention_case {
  int64_t batch, queries, keys, heads, groups, dim, value_dim;
  mix_shape mask;
  mix_attention_attributes attributes;
} attention_case;

#define NO_MASK                                                                                              \
  {                                                                                                          \
    4, { 1, 1, 1, 1 }                                                                                        \
  }
static const attention_case cases[] = {
    {2, 5, 7, 2, 2, 4, 3, NO_MASK, {.scale = 0.5, .mask_value = -2.4e38}},
    {1, 70, 70, 2, 1, 8, 8, NO_MASK, {.scale = 0.35, .mask_value = -2.4e38, .causal = true}},
    {2, 33, 65, 4, 2, 17, 9, {4, {2, 1, 1, 65}}, {.scale = 0.25, .mask_value = -2.4e38}},
    {2, 33, 40, 2, 2, 16, 16, {4, {2, 1, 33, 40}}, {.scale = 1, .mask_value = -3e4, .mask_adds = true}},
    {1,
     40,
     24,
     3,
     3,
     5,
     6,
     {4, {1, 3, 40, 24}},
     {.scale = 1, .mask_value = -1e9, .mask_zeroes = true, .causal = true}},
    {1,
     66,
     50,
     2,
     1,
     8,
     24,
     {4, {1, 1, 1, 50}},
     {.scale = 1, .mask_value = -1e9, .mask_zeroes = true, .rate = 0.3}},
    {1, 1, 600, 1, 1, 3, 1, NO_MASK, {.scale = 1, .mask_value = -1e9, .mask_adds = true, .rate = 0.5}},
};

/* Uniform in (-1, 1). */
static mix_tensor *numbers_of(mix_dtype dtype, mix_shape shape, int seed) {
  static double values[ELEMENTS];
  const int64_t count = mix_shape_size(shape);
  assert_true(count <= ELEMENTS);
  for (int64_t i = 0; i < count; i++)
    values[i] = (double)mix_philox_word(17, (uint64_t)seed, (uint64_t)i) * 0x1p-31 - 1;
  return mix_tensor_from_doubles(values, dtype, shape);
}

/* Every fifth is masked, and the first row of a mask with queries. */
static mix_tensor *mask_of(mix_shape shape) {
  static bool values[ELEMENTS];
  const int64_t count = mix_shape_size(shape);
  for (int64_t i = 0; i < count; i++)
    values[i] = count == 1 || ((i * 3 + 1) % 5 && !(shape.dims[2] > 1 && i < shape.dims[3]));
  return mix_tensor_from(values, MIX_BOOL, shape);
}

static void make_operands(const attention_case *c, mix_dtype dtype, mix_tensor **x) {
  x[0] = numbers_of(dtype, MIX_SHAPE(c->batch, c->queries, c->heads, c->dim), 1);
  x[1] = numbers_of(dtype, MIX_SHAPE(c->batch, c->keys, c->groups, c->dim), 2);
  x[2] = numbers_of(dtype, MIX_SHAPE(c->batch, c->keys, c->groups, c->value_dim), 3);
  x[3] = mask_of(c->mask);
  x[4] = mix_tensor_from((const int64_t[]){5, 9}, MIX_INT64, MIX_SHAPE(2));
  x[5] = numbers_of(dtype, MIX_SHAPE(c->batch, c->queries, c->heads, c->value_dim), 4);
}

/* Result 0, or the gradients, as doubles, one after the other. */
static int64_t read_results(mix_tensor *first, int results, double *to) {
  int64_t total = 0;
  no_error();
  for (int r = 0; r < results; r++) {
    mix_tensor *y = mix_tensor_of(first->node, r);
    const int64_t count = mix_shape_size(mix_tensor_shape(y));
    assert_true(total + count <= ELEMENTS);
    assert_int_equal(mix_tensor_read(y, MIX_FLOAT64, to + total, count), MIX_OK);
    total += count;
  }
  return total;
}

static void compare(const attention_case *c, const char *what, mix_dtype dtype, int64_t count,
                    const double *got, const double *wanted, double bound) {
  for (int64_t i = 0; i < count; i++)
    if (!(fabs(got[i] - wanted[i]) <= bound))
      fail_msg("case %d, %s in %s: element %d is %.9g, not %.9g within %g", (int)(c - cases), what,
               mix_dtype_name(dtype), (int)i, got[i], wanted[i], bound);
}

static double got[ELEMENTS], wanted[ELEMENTS];

/* The forward pass: of `dim` products in (-1, 1) a score is off by dim (dim + 1) / 2 u at most in float32 (u
 * = 2^-24), which is the relative error of its exp; sums of keys and the quotient add keys + 8 u. So a convex
 * sum of values in (-1, 1) is off by twice that. In 16 bits a score on a tie may round the other way, an ulp
 * of dim, that is 2 dim u16; then the rounding of probabilities, dropout's product and the result, 2 u16
 * each, where dropout magnifies by 1 / (1 - rate). */
static double forward_bound(const attention_case *c, mix_dtype dtype) {
  const double u = 0x1p-24, dim = (double)c->dim, keys = (double)c->keys;
  double bound = 2 * (dim * (dim + 1) / 2 + keys + 8) * u;
  if (dtype != MIX_FLOAT32) bound += (2 * dim + 6) * unit_roundoff(dtype);
  return bound / (1 - c->attributes.rate);
}

/* The gradients: dP is a sum of value_dim products, of error value_dim (value_dim + 1) / 2 u, dS = P (dP -
 * sum) at most 2 value_dim P; sums over keys weigh by P, sums over queries by 1. Each factor carries the
 * error of P. */
static double gradient_bound(const attention_case *c, mix_dtype dtype) {
  const double values = (double)c->value_dim, rows = (double)(c->queries * (c->heads / c->groups));
  return rows * (2 * values + 1) * (forward_bound(c, dtype) + 2 * values * 0x1p-24) +
         2 * rows * values * unit_roundoff(dtype);
}

static void on_the_cpu_as_on_the_reference(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16};
  const char *former = mix_device();
  for (int i = 0; i < COUNT(cases) * COUNT(dtypes) * 2; i++)
    MIX_SCOPE {
      const attention_case *c = &cases[i / 2 % COUNT(cases)];
      const mix_dtype dtype = dtypes[i / 2 / COUNT(cases)];
      const bool gradient = i % 2;
      const mix_op *op = gradient ? &mix_op_attention_grad : &mix_op_attention;
      mix_tensor *x[OPERANDS];
      make_operands(c, dtype, x);
      assert_int_equal(mix_set_device("ref"), MIX_OK);
      int64_t count =
          read_results(mix_apply(op, &c->attributes, gradient ? 6 : 5, x), gradient ? 3 : 1, wanted);
      assert_int_equal(mix_set_device("cpu"), MIX_OK);
      read_results(mix_apply(op, &c->attributes, gradient ? 6 : 5, x), gradient ? 3 : 1, got);
      compare(c, op->name, dtype, count, got, wanted,
              gradient ? gradient_bound(c, dtype) : forward_bound(c, dtype));
    }
  mix_set_device(former);
}

/* In float32 and float64 the reference rounds where the plain form does, in the same order of sums. */
static void the_reference_as_the_plain_form(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT64};
  const char *former = mix_device();
  assert_int_equal(mix_set_device("ref"), MIX_OK);
  for (int i = 0; i < COUNT(cases) * COUNT(dtypes); i++)
    MIX_SCOPE {
      const attention_case *c = &cases[i % COUNT(cases)];
      const mix_dtype dtype = dtypes[i / COUNT(cases)];
      mix_tensor *x[OPERANDS];
      make_operands(c, dtype, x);
      const int64_t count = read_results(mix_apply(&mix_op_attention, &c->attributes, 5, x), 1, got);
      mix_tensor *plain = mix_attention_plain(x, &c->attributes);
      no_error();
      mix_tensor_read(plain, MIX_FLOAT64, wanted, count);
      /* float64 divides and sums the probabilities as softmax does */
      compare(c, "plain form", dtype, count, got, wanted, dtype == MIX_FLOAT64 ? 0x1p-50 : 0x1p-23);
    }
  mix_set_device(former);
}

/* One head of one sequence, and groups that share keys: several threads give the same bits. */
static void bits_do_not_depend_on_threads(void **state) {
  (void)state;
  static const attention_case shapes[] = {
      {1, 200, 400, 1, 1, 6, 7, NO_MASK, {.scale = 0.5, .mask_value = -2.4e38}},
      {1, 150, 220, 4, 2, 5, 3, NO_MASK, {.scale = 1, .mask_value = -2.4e38, .causal = true, .rate = 0.25}}};
  static const int threads[] = {1, 2, 3, 5};
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_BFLOAT16};
  const char *former = mix_device();
  const int before = mix_threads();
  assert_int_equal(mix_set_device("cpu"), MIX_OK);
  mix_host_take_all_threads(true);
  for (int i = 0; i < COUNT(shapes) * COUNT(dtypes) * COUNT(threads); i++)
    MIX_SCOPE {
      const attention_case *c = &shapes[i / COUNT(threads) % COUNT(shapes)];
      const mix_dtype dtype = dtypes[i / COUNT(threads) / COUNT(shapes)];
      double *to = i % COUNT(threads) ? got : wanted;
      mix_tensor *x[OPERANDS];
      assert_int_equal(mix_set_threads(threads[i % COUNT(threads)]), MIX_OK);
      make_operands(c, dtype, x);
      int64_t count = read_results(mix_apply(&mix_op_attention, &c->attributes, 5, x), 1, to);
      count += read_results(mix_apply(&mix_op_attention_grad, &c->attributes, 6, x), 3, to + count);
      if (to == got) assert_memory_equal(got, wanted, (size_t)count * sizeof *got);
    }
  mix_host_take_all_threads(false);
  assert_int_equal(mix_set_threads(before), MIX_OK);
  mix_set_device(former);
}

/* ---- memory ---- */

static mix_list *forward_and_backward(void *context, mix_list *arguments) {
  (void)context;
  const mix_attention_attributes attributes = {.scale = 0.125, .mask_value = -2.4e38, .causal = true};
  mix_tensor *x[] = {mix_list_get(arguments, 0), mix_list_get(arguments, 1), mix_list_get(arguments, 2),
                     mix_tensor_from((const bool[]){true}, MIX_BOOL, MIX_SHAPE(1, 1, 1, 1)),
                     mix_tensor_from((const int64_t[]){0, 0}, MIX_INT64, MIX_SHAPE(2))};
  mix_tape *tape = mix_tape_begin();
  for (int i = 0; i < 3; i++) mix_tape_watch(tape, x[i]);
  mix_tensor *y = mix_apply(&mix_op_attention, &attributes, 5, x);
  y = mix_square(y);
  mix_tape_end(tape);
  return mix_tape_gradient(tape, y, mix_list_of(x[0], x[1], x[2]));
}

static size_t memory_of(int64_t places) {
  size_t bytes = 0;
  MIX_SCOPE {
    mix_tensor *x = mix_fill(MIX_SHAPE(1, places, 2, 8), 0.5, MIX_FLOAT32);
    mix_function *function = mix_function_new(forward_and_backward, NULL);
    mix_plan_report report;
    assert_non_null(mix_function_call(function, mix_list_of(x, x, x)));
    assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
    bytes = report.peak_bytes;
  }
  return bytes;
}

/* Twice the places take at most twice the memory; all scores would take four times. */
static void memory_is_linear(void **state) {
  (void)state;
  const char *former = mix_device();
  assert_int_equal(mix_set_device("cpu"), MIX_OK);
  const size_t once = memory_of(1024), twice = memory_of(2048);
  assert_true(twice <= 2 * once);
  assert_true(once < sizeof(float) * 2 * 1024 * 1024); /* less than the scores of the two heads */
  mix_set_device(former);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(on_the_cpu_as_on_the_reference),
                                     TEST(the_reference_as_the_plain_form),
                                     TEST(bits_do_not_depend_on_threads), TEST(memory_is_linear)};
  return cmocka_run_group_tests_name("attention by blocks", tests, NULL, NULL);
}
