/* jit_compile: which roundings it may leave out, by how much results change, and which it must keep. */
/* Holds docs/NUMERICS.md: Excess precision. */
#include "compile/support.h"

#include "base/philox.h"
#include "tensor/convert.h"
#include "support/memory.h"

enum { ROWS = 16, COLUMNS = 48, COUNT_OF = ROWS * COLUMNS };

typedef struct job {
  mix_list *(*body)(mix_list *arguments, mix_dtype dtype);
  mix_dtype dtype; /* of the computation; the arguments have the storage dtype */
} job;
static mix_list *run_body(void *context, mix_list *arguments) {
  const job *j = context;
  return j->body(arguments, j->dtype);
}
static mix_list *run(job j, bool jit, mix_list *arguments) {
  mix_list *results = mix_function_call(mix_function_new(run_body, &j, .jit_compile = jit), arguments);
  no_error();
  return results;
}

static uint64_t position;
static int below(int n) { return (int)mix_philox_below(77, 5, &position, (uint64_t)n); }

static mix_tensor *random_numbers(mix_dtype dtype, mix_shape shape, double size) {
  static double data[1 << 16];
  int64_t count = mix_shape_size(shape);
  assert_true(count <= COUNT(data));
  for (int64_t i = 0; i < count; i++) data[i] = size * (below(2001) - 1000) / 1000;
  return mix_tensor_from_doubles(data, dtype, shape);
}

static void read_doubles(mix_list *list, int index, double *out) {
  mix_tensor *t = mix_list_get(list, index);
  mix_tensor_read(t, MIX_FLOAT64, out, mix_shape_size(mix_tensor_shape(t)));
  no_error();
}

static void equal_bits(mix_tensor *a, mix_tensor *b, const char *what) {
  const mix_value *x = mix_tensor_value(a), *y = mix_tensor_value(b);
  assert_int_equal(x->dtype, y->dtype);
  if (memcmp(bytes_of_memory(x->memory), bytes_of_memory(y->memory), mix_memory_bytes(x->memory)))
    fail_msg("%s: other bits", what);
}
static bool same(mix_tensor *a, mix_tensor *b) {
  const mix_value *x = mix_tensor_value(a), *y = mix_tensor_value(b);
  return x->dtype == y->dtype &&
         !memcmp(bytes_of_memory(x->memory), bytes_of_memory(y->memory), mix_memory_bytes(x->memory));
}

/* ---- definition: the float32 program between the same loads and stores ---- */

/* `dtype` is the dtype of the nodes. If it is the storage dtype, every node rounds to it. If it is float32,
 * the operands are widened first and the result is rounded once. */
static mix_tensor *in(mix_list *arguments, int i, mix_dtype dtype) {
  return mix_cast(mix_list_get(arguments, i), dtype);
}
static mix_list *out(mix_list *arguments, mix_tensor *y) {
  return mix_list_of(mix_cast(y, mix_tensor_dtype(mix_list_get(arguments, 0))));
}
static mix_tensor *times(mix_tensor *x, double factor) { return mix_multiply(x, mix_scalar_like(x, factor)); }

static mix_list *chain(mix_list *arguments, mix_dtype dtype) {
  mix_tensor *x = in(arguments, 0, dtype), *y = in(arguments, 1, dtype), *row = in(arguments, 2, dtype);
  mix_tensor *z = mix_add(mix_multiply(x, y), row);
  z = mix_subtract(mix_tanh(z), times(mix_sigmoid(mix_multiply(z, z)), 0.3125));
  return out(arguments, mix_maximum(mix_multiply(z, mix_exp(mix_negative(mix_abs(z)))), times(x, -0.0625)));
}

/* A product, its bias and gelu: the activation gets the sums unrounded. In float32 the product of the widened
 * operands has the same sums if the kernel widens too, as the reference does. */
static mix_list *dense(mix_list *arguments, mix_dtype dtype) {
  mix_tensor *product = mix_matmul(in(arguments, 0, dtype), in(arguments, 1, dtype), false, false);
  mix_tensor *z = mix_add(product, in(arguments, 2, dtype));
  return out(arguments,
             times(mix_multiply(z, mix_add(mix_erf(times(z, 0.70703125)), mix_scalar_like(z, 1))), 0.5));
}

static void keeps_float32_inside(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16};
  for (int d = 0; d < 2; d++)
    for (int device = 0; device < 2; device++) {
      mix_set_device(device ? "ref" : default_device());
      mix_shape shape = MIX_SHAPE(ROWS, COLUMNS);
      mix_list *elements =
          mix_list_of(random_numbers(dtypes[d], shape, 2), random_numbers(dtypes[d], shape, 2),
                      random_numbers(dtypes[d], MIX_SHAPE(COLUMNS), 1));
      mix_list *rounded = run((job){chain, dtypes[d]}, false, elements),
               *kept = run((job){chain, dtypes[d]}, true, elements);
      mix_list *wide = run((job){chain, MIX_FLOAT32}, false, elements);
      equal_bits(mix_list_get(kept, 0), mix_list_get(wide, 0), "element-wise");
      assert_false(same(mix_list_get(rounded, 0), mix_list_get(wide, 0))); /* else the test is void */
      if (!device) continue;
      mix_list *matrices = mix_list_of(random_numbers(dtypes[d], MIX_SHAPE(ROWS, 40), 1),
                                       random_numbers(dtypes[d], MIX_SHAPE(40, COLUMNS), 1),
                                       random_numbers(dtypes[d], MIX_SHAPE(COLUMNS), 1));
      rounded = run((job){dense, dtypes[d]}, false, matrices),
      kept = run((job){dense, dtypes[d]}, true, matrices);
      wide = run((job){dense, MIX_FLOAT32}, false, matrices);
      equal_bits(mix_list_get(kept, 0), mix_list_get(wide, 0), "an epilogue");
      assert_false(same(mix_list_get(rounded, 0), mix_list_get(wide, 0)));
    }
}

/* Float32 has no excess precision. */
static void float32_does_not_change(void **state) {
  (void)state;
  mix_shape shape = MIX_SHAPE(ROWS, COLUMNS);
  mix_list *x = mix_list_of(random_numbers(MIX_FLOAT32, shape, 2), random_numbers(MIX_FLOAT32, shape, 2),
                            random_numbers(MIX_FLOAT32, MIX_SHAPE(COLUMNS), 1));
  equal_bits(mix_list_get(run((job){chain, MIX_FLOAT32}, false, x), 0),
             mix_list_get(run((job){chain, MIX_FLOAT32}, true, x), 0), "float32");
}

/* ---- the bound ---- */

/* A running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 3.3) of a random chain of
 * +, -, *, tanh and sigmoid. Each exact value has a bound of the computed value's error, where every node but
 * the last rounds with unit roundoff u. */
typedef struct step {
  int kind, a, b;
} step;
enum { INPUTS = 3, MAX_STEPS = 14 };
static step steps[MAX_STEPS];
static int step_count;

static mix_list *random_chain(mix_list *arguments, mix_dtype dtype) {
  mix_tensor *pool[INPUTS + MAX_STEPS];
  for (int i = 0; i < INPUTS; i++) pool[i] = in(arguments, i, dtype);
  for (int s = 0; s < step_count; s++) {
    mix_tensor *a = pool[steps[s].a], *b = pool[steps[s].b];
    switch (steps[s].kind) {
    case 0: pool[INPUTS + s] = mix_add(a, b); break;
    case 1: pool[INPUTS + s] = mix_subtract(a, b); break;
    case 2: pool[INPUTS + s] = mix_multiply(a, b); break;
    case 3: pool[INPUTS + s] = mix_tanh(a); break;
    default: pool[INPUTS + s] = mix_sigmoid(a); break;
    }
  }
  return out(arguments, pool[INPUTS + step_count - 1]);
}

typedef struct bounded {
  double value, error;
} bounded;

/* u: the unit roundoff; tiny: half of the smallest subnormal number. Functions add two float32 ulp
 * (docs/NUMERICS.md). */
static bounded analyse(const double *inputs, double u, double tiny, double last, double last_tiny) {
  bounded pool[INPUTS + MAX_STEPS];
  for (int i = 0; i < INPUTS; i++) pool[i] = (bounded){inputs[i], 0};
  for (int s = 0; s < step_count; s++) {
    bounded a = pool[steps[s].a], b = pool[steps[s].b], y;
    switch (steps[s].kind) {
    case 0: y = (bounded){a.value + b.value, a.error + b.error}; break;
    case 1: y = (bounded){a.value - b.value, a.error + b.error}; break;
    case 2:
      y = (bounded){a.value * b.value, fabs(a.value) * b.error + fabs(b.value) * a.error + a.error * b.error};
      break;
    case 3: y = (bounded){tanh(a.value), a.error}; break;                /* slopes of at most 1, */
    default: y = (bounded){1 / (1 + exp(-a.value)), a.error / 4}; break; /* and 1/4 */
    }
    y.error += (fabs(y.value) + y.error) * (steps[s].kind > 2 ? 0x1p-21 : 0x1p-24);
    bool ends = s == step_count - 1;
    y.error += (fabs(y.value) + y.error) * (ends ? last : u) + (ends ? last_tiny : tiny);
    pool[INPUTS + s] = y;
  }
  return pool[INPUTS + step_count - 1];
}

static void errors_stay_inside_the_bound(void **state) {
  (void)state;
  static double x[INPUTS][COUNT_OF], got[2][COUNT_OF];
  double mean[2] = {0, 0};
  for (uint64_t seed = 0; seed < 40; seed++)
    MIX_SCOPE {
      position = seed * 10000;
      mix_dtype dtype = seed % 2 ? MIX_BFLOAT16 : MIX_FLOAT16;
      double unit = seed % 2 ? 0x1p-8 : 0x1p-11,
             tiny = seed % 2 ? 0x1p-126 : 0x1p-25; /* bfloat16 subnormals are flushed */
      step_count = 4 + below(MAX_STEPS - 3);
      for (int s = 0; s < step_count; s++)
        steps[s] = (step){below(5), s ? INPUTS + s - 1 : below(INPUTS),
                          below(INPUTS + s)}; /* each reads the last one: one program */
      mix_list *arguments = mix_list_new(0, NULL);
      for (int i = 0; i < INPUTS; i++)
        mix_list_append(arguments, random_numbers(dtype, MIX_SHAPE(ROWS, COLUMNS), 2));
      for (int i = 0; i < INPUTS; i++) read_doubles(arguments, i, x[i]);
      for (int jit = 0; jit < 2; jit++)
        read_doubles(run((job){random_chain, dtype}, jit, arguments), 0, got[jit]);
      for (int i = 0; i < COUNT_OF; i++) {
        double inputs[INPUTS] = {x[0][i], x[1][i], x[2][i]};
        bounded rounded = analyse(inputs, unit, tiny, unit, tiny),
                kept = analyse(inputs, 0x1p-24, 0x1p-126, unit, tiny);
        assert_true(kept.error <= rounded.error);
        if (fabs(rounded.value) + rounded.error > 60000) continue; /* the bound does not cover overflow */
        double e0 = fabs(got[0][i] - rounded.value), e1 = fabs(got[1][i] - kept.value);
        if (!(e0 <= rounded.error))
          fail_msg("seed %d, element %d: %g off, bound %g", (int)seed, i, e0, rounded.error);
        if (!(e1 <= kept.error))
          fail_msg("seed %d, element %d under jit: %g off, bound %g", (int)seed, i, e1, kept.error);
        mean[0] += e0 / (rounded.error + 1e-30), mean[1] += e1 / (rounded.error + 1e-30);
      }
    }
  assert_true(mean[1] < mean[0]); /* smaller errors on average, not only a smaller bound */
}

/* ---- checks that must see the 16-bit values ---- */

/* 300 * 300 overflows float16. Without the rounding the values computed from it would be finite. */
static mix_list *hidden_overflow(mix_list *arguments, mix_dtype dtype) {
  (void)dtype;
  mix_tensor *x = mix_list_get(arguments, 0), *square = mix_multiply(x, x);
  mix_tensor *unscaled = times(mix_cast(square, MIX_FLOAT32), 0x1p-10);
  mix_tensor *in_one = mix_all_finite(unscaled);
  mix_tensor *far = mix_all_finite(mix_reshape(times(unscaled, 0.5), MIX_SHAPE(-1))); /* another program */
  mix_tensor *each = mix_is_finite(times(mix_multiply(x, mix_add(x, x)), 0.125));
  return mix_list_of(in_one, far, mix_reduce_all(each, MIX_ALL_AXES, false));
}
static mix_list *product_overflow(mix_list *arguments, mix_dtype dtype) {
  (void)dtype;
  mix_tensor *x = mix_list_get(arguments, 0), *product = mix_matmul(x, x, true, false);
  mix_tensor *gradient = times(mix_cast(product, MIX_FLOAT32), 0x1p-10);
  return mix_list_of(mix_all_finite(gradient), gradient);
}
/* Without a check the overflow may disappear: the result is the exact number. */
static mix_list *unseen_overflow(mix_list *arguments, mix_dtype dtype) {
  (void)dtype;
  mix_tensor *x = mix_list_get(arguments, 0);
  return mix_list_of(times(mix_multiply(x, x), 0x1p-10));
}
/* The gradient of a maximum compares for equality. */
static mix_list *comparison(mix_list *arguments, mix_dtype dtype) {
  (void)dtype;
  mix_tensor *x = mix_list_get(arguments, 0), *y = mix_multiply(x, mix_scalar_like(x, 1.0 / 3));
  mix_tensor *peak = mix_reduce_max(y, MIX_ALL_AXES, false);
  return mix_list_of(mix_reduce_sum(mix_cast(mix_equal(y, peak), MIX_INT32), MIX_ALL_AXES, false),
                     mix_floor(times(mix_multiply(x, mix_scalar_like(x, 1.0 / 3)), 3)));
}

static void finite_checks_see_the_overflow(void **state) {
  (void)state;
  for (int device = 0; device < 2; device++) {
    mix_set_device(device ? "ref" : default_device());
    mix_list *big = mix_list_of(mix_fill(MIX_SHAPE(4, 4), 300, MIX_FLOAT16)),
             *small = mix_list_of(mix_fill(MIX_SHAPE(4, 4), 2, MIX_FLOAT16));
    for (int jit = 0; jit < 2; jit++) {
      mix_list *checks = run((job){hidden_overflow, 0}, jit, big);
      for (int i = 0; i < 3; i++) has_values(mix_list_get(checks, i), 0);
      has_values(mix_list_get(run((job){hidden_overflow, 0}, jit, small), 0), 1);
      has_values(mix_list_get(run((job){product_overflow, 0}, jit, big), 0), 0);
      has_values(mix_list_get(run((job){product_overflow, 0}, jit, small), 0), 1);
      double unseen = jit ? 87.875 : INFINITY; /* 90,000 / 1,024, rounded to float16 once */
      double got[16];
      read_doubles(run((job){unseen_overflow, 0}, jit, big), 0, got);
      assert_true(got[0] == unseen);
    }
    mix_list *x = mix_list_of(random_numbers(MIX_FLOAT16, MIX_SHAPE(ROWS, COLUMNS), 8));
    mix_list *rounded = run((job){comparison, 0}, false, x), *kept = run((job){comparison, 0}, true, x);
    assert_true(mix_tensor_item(mix_list_get(kept, 0)) >= 1);
    for (int i = 0; i < 2; i++) equal_bits(mix_list_get(rounded, i), mix_list_get(kept, i), "a decision");
  }
}

/* ---- transposes under jit ---- */

static mix_list *transposed(mix_list *arguments, mix_dtype dtype) {
  mix_tensor *a = in(arguments, 0, dtype), *b = in(arguments, 1, dtype);
  return mix_list_of(
      mix_transpose(mix_matmul(mix_transpose(a, MIX_AXES(1, 0)), b, false, false), MIX_AXES(1, 0)));
}

static void transposes_always_fold(void **state) {
  (void)state;
  mix_list *x = mix_list_of(random_numbers(MIX_FLOAT32, MIX_SHAPE(2000, 9), 1),
                            random_numbers(MIX_FLOAT32, MIX_SHAPE(2000, 6), 1));
  job j = {transposed, MIX_FLOAT32}, wide = {transposed, MIX_FLOAT64};
  mix_function *function = mix_function_new(run_body, &j, .jit_compile = true);
  mix_list *kept = mix_function_call(function, x);
  no_error();
  assert_null(strstr(mix_function_dump(function, "passes"), "transpose("));
  double got[54], exact[54];
  read_doubles(kept, 0, got);
  read_doubles(run(wide, false, x), 0, exact);
  for (int i = 0; i < 54; i++)
    assert_true(fabs(got[i] - exact[i]) <= 2002 * 0x1p-24 * 2000); /* (k + 2) u |A| |B|, numbers up to 1 */
}

/* ---- the option ---- */

static void each_function_has_its_own(void **state) {
  (void)state;
  mix_list *x = mix_list_of(mix_fill(MIX_SHAPE(4, 4), 300, MIX_FLOAT16));
  job j = {unseen_overflow, 0};
  mix_function *plain = mix_function_new(run_body, &j),
               *jit = mix_function_new(run_body, &j, .jit_compile = true);
  for (int i = 0; i < 2; i++) {
    double got[16];
    read_doubles(mix_function_call(plain, x), 0, got);
    assert_true(isinf(got[0]));
    read_doubles(mix_function_call(jit, x), 0, got);
    assert_true(isfinite(got[0]));
  }
  setenv("MIXTAPE_DISABLE_PASSES", "excess_precision", 1); /* another plan of the same function */
  double got[16];
  read_doubles(mix_function_call(jit, x), 0, got);
  assert_true(isinf(got[0]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(keeps_float32_inside),           TEST(float32_does_not_change), TEST(errors_stay_inside_the_bound),
      TEST(finite_checks_see_the_overflow), TEST(transposes_always_fold),  TEST(each_function_has_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
