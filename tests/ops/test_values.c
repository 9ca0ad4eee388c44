/* Forward values of the element-wise operations and casts, in every dtype that each supports. */
/* Holds docs/NUMERICS.md: Terms. */
#include "support/skip.h"
#include "ops/support.h"
#include <mixtape/device.h>

typedef mix_tensor *(*unary)(mix_tensor *);
typedef mix_tensor *(*binary)(mix_tensor *, mix_tensor *);

/* ---- functions of libm ---- */

static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static double rsqrt_of(double x) { return 1 / sqrt(x); }
static double reciprocal_of(double x) { return 1 / x; }
static double square_of(double x) { return x * x; }
static double elu_of(double x) { return x < 0 ? expm1(x) : x; }
static double selu_of(double x) { return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * expm1(x) : x); }
static double softplus_of(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double softsign_of(double x) { return x / (1 + fabs(x)); }

static const double everywhere[] = {-8,    -4.5,  -2.5, -1, -0.5, -0.125, -0.001, 0,
                                    0.001, 0.125, 0.5,  1,  2.5,  4.5,    8};
static const double near_zero[] = {-3,    -2.5,  -2,  -1.25, -1,   -0.5, -0.125, -0.001,
                                   0.001, 0.125, 0.5, 1,     1.25, 2,    3};
static const double positive[] = {0.001, 0.0625, 0.125, 0.25, 0.5, 0.75, 0.875, 1,
                                  1.25,  1.5,    2,     3,    10,  100,  1000};
enum { POINTS = 15 };

/* `want` is libm's value in double at the operand as the dtype represents it. float32 and float64 kernels may
 * have an error of 4 ulp (8 u of the result). float16 and bfloat16 compute in float32 and round once: u of
 * the result and the 8 u of float32. Below the smallest normal number the spacing is that of subnormals
 * (float32 subnormals are not compared: kernels may flush them). */
static double tolerance(mix_dtype dtype, double want) {
  double u = unit_roundoff(dtype), narrow = dtype == MIX_FLOAT16 || dtype == MIX_BFLOAT16;
  return fabs(want) * (narrow ? u + 8 * 0x1p-24 : 8 * u) + (narrow ? smallest(dtype) : 0);
}

static void unary_functions(void **state) {
  (void)state;
  static const struct {
    unary op;
    double (*function)(double);
    const double *points;
  } rows[] = {{mix_sqrt, sqrt, positive},
              {mix_rsqrt, rsqrt_of, positive},
              {mix_square, square_of, everywhere},
              {mix_reciprocal, reciprocal_of, near_zero},
              {mix_exp, exp, everywhere},
              {mix_expm1, expm1, everywhere},
              {mix_log, log, positive},
              {mix_log1p, log1p, positive},
              {mix_sin, sin, everywhere},
              {mix_cos, cos, everywhere},
              {mix_tanh, tanh, everywhere},
              {mix_sigmoid, sigmoid, everywhere},
              {mix_erf, erf, near_zero},
              {mix_erfc, erfc, near_zero},
              {mix_elu, elu_of, everywhere},
              {mix_selu, selu_of, everywhere},
              {mix_softplus, softplus_of, everywhere},
              {mix_softsign, softsign_of, everywhere}};
  for (int r = 0; r < COUNT(rows); r++)
    for (int d = 0; d < COUNT(floating); d++) {
      double x[POINTS], got[POINTS];
      mix_tensor *operand = tensor(floating[d], MIX_SHAPE(POINTS), rows[r].points), *y = rows[r].op(operand);
      read_into(operand, POINTS, x);
      read_into(y, POINTS, got);
      for (int i = 0; i < POINTS; i++) {
        double want = rows[r].function(x[i]);
        if (!(fabs(got[i] - want) <= tolerance(floating[d], want)))
          fail_msg("%s(%.9g) in %s: %.9g; libm gives %.9g", y->node->op->name, x[i],
                   mix_dtype_name(floating[d]), got[i], want);
      }
    }
}

/* Each number as often as there are elements, to cover vectors and the tail of kernels. */
static void long_vectors(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(floating); d++)
    for (int n = 1; n <= 259; n += 43) {
      double x[259], y[259], sums[259];
      for (int i = 0; i < n; i++) x[i] = i % 100 - 50, y[i] = i % 7, sums[i] = fmax(x[i] + y[i], 0);
      mix_tensor *a = tensor(floating[d], MIX_SHAPE(n), x), *b = tensor(floating[d], MIX_SHAPE(n), y);
      has_values(mix_relu(mix_add(a, b)), n, sums);
    }
}

/* ---- exact functions ---- */

static void exact_unary(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(floating); d++) {
    mix_dtype t = floating[d];
    mix_tensor *x = tensor(t, MIX_SHAPE(8), NUMBERS(-2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 7));
    has_values(mix_negative(x), 8, NUMBERS(2.5, 1.5, 0.5, 0, -0.5, -1.5, -2.5, -7));
    has_values(mix_abs(x), 8, NUMBERS(2.5, 1.5, 0.5, 0, 0.5, 1.5, 2.5, 7));
    has_values(mix_sign(x), 8, NUMBERS(-1, -1, -1, 0, 1, 1, 1, 1));
    has_values(mix_floor(x), 8, NUMBERS(-3, -2, -1, 0, 0, 1, 2, 7));
    has_values(mix_ceil(x), 8, NUMBERS(-2, -1, 0, 0, 1, 2, 3, 7));
    has_values(mix_round(x), 8, NUMBERS(-2, -2, 0, 0, 0, 2, 2, 7)); /* ties to even */
    has_values(mix_relu(x), 8, NUMBERS(0, 0, 0, 0, 0.5, 1.5, 2.5, 7));
    has_values(mix_relu6(x), 8, NUMBERS(0, 0, 0, 0, 0.5, 1.5, 2.5, 6));
    has_values(mix_leaky_relu(x, 0.25), 8, NUMBERS(-0.625, -0.375, -0.125, 0, 0.5, 1.5, 2.5, 7));
    has_values(mix_leaky_relu(x, -1), 8, NUMBERS(2.5, 1.5, 0.5, 0, 0.5, 1.5, 2.5, 7));
    mix_tensor *odd = tensor(t, MIX_SHAPE(5), NUMBERS(1, INFINITY, -INFINITY, NAN, 0));
    has_values(mix_is_finite(odd), 5, NUMBERS(1, 0, 0, 0, 1));
    has_values(mix_is_inf(odd), 5, NUMBERS(0, 1, 1, 0, 0));
    has_values(mix_is_nan(odd), 5, NUMBERS(0, 0, 0, 1, 0));
    has_values(mix_relu(odd), 5, NUMBERS(1, INFINITY, 0, NAN, 0));
    has_values(mix_exp(tensor(t, MIX_SHAPE(4), NUMBERS(INFINITY, -INFINITY, NAN, 0))), 4,
               NUMBERS(INFINITY, 0, NAN, 1));
    has_values(mix_tanh(tensor(t, MIX_SHAPE(3), NUMBERS(INFINITY, -INFINITY, NAN))), 3, NUMBERS(1, -1, NAN));
    has_values(mix_sigmoid(tensor(t, MIX_SHAPE(3), NUMBERS(INFINITY, -INFINITY, NAN))), 3,
               NUMBERS(1, 0, NAN));
    has_values(mix_identity(odd), 5, NUMBERS(1, INFINITY, -INFINITY, NAN, 0));
    has_values(mix_stop_gradient(x), 8, NUMBERS(-2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 7));
    has_values(mix_gradient_identity(x), 8, NUMBERS(-2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 7));
  }
  for (int d = 0; d < COUNT(integers); d++) {
    bool signed_type = integers[d] != MIX_UINT8;
    mix_tensor *x = tensor(integers[d], MIX_SHAPE(3), signed_type ? NUMBERS(-3, 0, 5) : NUMBERS(3, 0, 5));
    has_values(mix_negative(x), 3, signed_type ? NUMBERS(3, 0, -5) : NUMBERS(253, 0, 251)); /* wraps */
    has_values(mix_abs(x), 3, NUMBERS(3, 0, 5));
    has_values(mix_sign(x), 3, signed_type ? NUMBERS(-1, 0, 1) : NUMBERS(1, 0, 1));
    has_values(mix_square(x), 3, NUMBERS(9, 0, 25));
    has_values(mix_identity(x), 3, signed_type ? NUMBERS(-3, 0, 5) : NUMBERS(3, 0, 5));
  }
  has_values(mix_logical_not(mix_tensor_from((const uint8_t[]){1, 0}, MIX_BOOL, MIX_SHAPE(2))), 2,
             NUMBERS(0, 1));
}

/* Small integers: exact in every dtype. */
static void exact_binary(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(numbers); d++) {
    mix_dtype t = numbers[d];
    bool negative = t != MIX_UINT8;
    mix_tensor *a = tensor(t, MIX_SHAPE(4), negative ? NUMBERS(7, -7, 7, -7) : NUMBERS(7, 9, 2, 8));
    mix_tensor *b = tensor(t, MIX_SHAPE(4), negative ? NUMBERS(2, 2, -2, -2) : NUMBERS(2, 4, 2, 3));
    has_values(mix_add(a, b), 4, negative ? NUMBERS(9, -5, 5, -9) : NUMBERS(9, 13, 4, 11));
    has_values(mix_subtract(a, b), 4, negative ? NUMBERS(5, -9, 9, -5) : NUMBERS(5, 5, 0, 5));
    has_values(mix_multiply(a, b), 4, negative ? NUMBERS(14, -14, -14, 14) : NUMBERS(14, 36, 4, 24));
    has_values(mix_floor_divide(a, b), 4, negative ? NUMBERS(3, -4, -4, 3) : NUMBERS(3, 2, 1, 2));
    has_values(mix_floor_mod(a, b), 4,
               negative ? NUMBERS(1, 1, -1, -1) : NUMBERS(1, 1, 0, 2)); /* has the divisor's sign */
    has_values(mix_maximum(a, b), 4, negative ? NUMBERS(7, 2, 7, -2) : NUMBERS(7, 9, 2, 8));
    has_values(mix_minimum(a, b), 4, negative ? NUMBERS(2, -7, -2, -7) : NUMBERS(2, 4, 2, 3));
    has_values(mix_squared_difference(a, b), 4, negative ? NUMBERS(25, 81, 81, 25) : NUMBERS(25, 25, 0, 25));
    has_values(mix_equal(a, b), 4, negative ? NUMBERS(0, 0, 0, 0) : NUMBERS(0, 0, 1, 0));
    has_values(mix_not_equal(a, b), 4, negative ? NUMBERS(1, 1, 1, 1) : NUMBERS(1, 1, 0, 1));
    has_values(mix_less(a, b), 4, negative ? NUMBERS(0, 1, 0, 1) : NUMBERS(0, 0, 0, 0));
    has_values(mix_less_equal(a, b), 4, negative ? NUMBERS(0, 1, 0, 1) : NUMBERS(0, 0, 1, 0));
    has_values(mix_greater(a, b), 4, negative ? NUMBERS(1, 0, 1, 0) : NUMBERS(1, 1, 0, 1));
    has_values(mix_greater_equal(a, b), 4, negative ? NUMBERS(1, 0, 1, 0) : NUMBERS(1, 1, 1, 1));
    mix_tensor *base = tensor(t, MIX_SHAPE(4), NUMBERS(2, 3, 5, 1)),
               *exponent = tensor(t, MIX_SHAPE(4), NUMBERS(5, 3, 0, 9));
    has_values(mix_power(base, exponent), 4, NUMBERS(32, 27, 1, 1));
    has_values(mix_bias_add(tensor(t, MIX_SHAPE(2, 2), NUMBERS(1, 2, 3, 4)),
                            tensor(t, MIX_SHAPE(2), NUMBERS(10, 20))),
               4, NUMBERS(11, 22, 13, 24));
    has_values(mix_add_n(3, (mix_tensor *[]){base, exponent, base}), 4, NUMBERS(9, 9, 10, 11));
    has_values(mix_clip(tensor(t, MIX_SHAPE(3), NUMBERS(1, 5, 9)), mix_scalar(3, t), mix_scalar(7, t)), 3,
               NUMBERS(3, 5, 7));
    /* broadcasting (2, 1) with (3) */
    has_values(
        mix_multiply(tensor(t, MIX_SHAPE(2, 1), NUMBERS(2, 5)), tensor(t, MIX_SHAPE(3), NUMBERS(1, 2, 3))), 6,
        NUMBERS(2, 4, 6, 5, 10, 15));
  }
  mix_tensor *p = mix_tensor_from((const uint8_t[]){0, 0, 1, 1}, MIX_BOOL, MIX_SHAPE(4));
  mix_tensor *q = mix_tensor_from((const uint8_t[]){0, 1, 0, 1}, MIX_BOOL, MIX_SHAPE(4));
  has_values(mix_logical_and(p, q), 4, NUMBERS(0, 0, 0, 1));
  has_values(mix_logical_or(p, q), 4, NUMBERS(0, 1, 1, 1));
  has_values(mix_equal(p, q), 4, NUMBERS(1, 0, 0, 1));
  has_values(mix_not_equal(p, q), 4, NUMBERS(0, 1, 1, 0));
}

static void floating_binary(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(floating); d++) {
    mix_dtype t = floating[d];
    mix_tensor *a = tensor(t, MIX_SHAPE(6), NUMBERS(1, NAN, 2, INFINITY, -INFINITY, 3));
    mix_tensor *b = tensor(t, MIX_SHAPE(6), NUMBERS(NAN, 1, 4, 1, 1, -0.5));
    has_values(mix_maximum(a, b), 6, NUMBERS(NAN, NAN, 4, INFINITY, 1, 3));
    has_values(mix_minimum(a, b), 6, NUMBERS(NAN, NAN, 2, 1, -INFINITY, -0.5));
    has_values(mix_divide(a, b), 6, NUMBERS(NAN, NAN, 0.5, INFINITY, -INFINITY, -6));
    has_values(mix_equal(a, a), 6, NUMBERS(1, 0, 1, 1, 1, 1));
    has_values(mix_not_equal(a, a), 6, NUMBERS(0, 1, 0, 0, 0, 0));
    has_values(mix_less(a, b), 6, NUMBERS(0, 0, 1, 0, 1, 0));
    has_values(
        mix_divide(tensor(t, MIX_SHAPE(3), NUMBERS(1, -1, 0)), tensor(t, MIX_SHAPE(3), NUMBERS(0, 0, 0))), 3,
        NUMBERS(INFINITY, -INFINITY, NAN));
    has_values(
        mix_power(tensor(t, MIX_SHAPE(3), NUMBERS(4, -2, -2)), tensor(t, MIX_SHAPE(3), NUMBERS(0.5, 3, 0.5))),
        3, NUMBERS(2, -8, NAN));
    has_values(mix_select(mix_tensor_from((const uint8_t[]){1, 0}, MIX_BOOL, MIX_SHAPE(2, 1)),
                          tensor(t, MIX_SHAPE(2), NUMBERS(1, 2)), tensor(t, MIX_SCALAR, NUMBERS(NAN))),
               4, NUMBERS(1, 2, NAN, NAN));
    has_values(mix_clip(tensor(t, MIX_SHAPE(4), NUMBERS(-INFINITY, NAN, 0.5, INFINITY)), mix_scalar(-1, t),
                        mix_scalar(1, t)),
               4, NUMBERS(-1, NAN, 0.5, 1));
  }
}

/* Spec section 9.9: results round to nearest even once, overflow to infinity, and keep subnormals. */
static void N04_N06_sixteen_bit_arithmetic(void **state) {
  (void)state;
  mix_tensor *large = mix_scalar(256, MIX_FLOAT16), *tiny = mix_scalar(1e-5, MIX_FLOAT16);
  has_values(mix_multiply(large, large), 1, NUMBERS(INFINITY));
  has_values(tiny, 1, NUMBERS(168 * 0x1p-24));
  has_values(mix_multiply(tiny, tiny), 1, NUMBERS(0));
  large = mix_scalar(256, MIX_BFLOAT16);
  has_values(mix_multiply(large, large), 1, NUMBERS(65536));
  has_values(mix_add(mix_scalar(2048, MIX_FLOAT16), mix_scalar(1, MIX_FLOAT16)), 1, NUMBERS(2048));
  has_values(mix_add(mix_scalar(2050, MIX_FLOAT16), mix_scalar(1, MIX_FLOAT16)), 1, NUMBERS(2052));
  has_values(mix_add(mix_scalar(256, MIX_BFLOAT16), mix_scalar(1, MIX_BFLOAT16)), 1, NUMBERS(256));
  has_values(mix_add(mix_scalar(65504, MIX_FLOAT16), mix_scalar(16, MIX_FLOAT16)), 1, NUMBERS(INFINITY));
  /* each node of a chain rounds to its own dtype, fused or not: (2048 + 1) + 1 is 2048, not 2050 */
  mix_tensor *one = mix_scalar(1, MIX_FLOAT16);
  has_values(mix_add(mix_add(mix_scalar(2048, MIX_FLOAT16), one), one), 1, NUMBERS(2048));
  has_values(mix_multiply(mix_multiply(mix_scalar(0x1p-14, MIX_FLOAT16), mix_scalar(0.5, MIX_FLOAT16)),
                          mix_scalar(4, MIX_FLOAT16)),
             1, NUMBERS(0x1p-13));
}

/* ---- gradient operations ---- */

static double relu_grad(double dy, double x) { return x > 0 ? dy : 0; }
static double relu6_grad(double dy, double x) { return x > 0 && x < 6 ? dy : 0; }
static double softplus_grad(double dy, double x) { return dy * sigmoid(x); }
static double softsign_grad(double dy, double x) { return dy / ((1 + fabs(x)) * (1 + fabs(x))); }
static double elu_grad(double dy, double y) { return y < 0 ? dy * (y + 1) : dy; }
static double selu_grad(double dy, double y) {
  return y < 0 ? dy * (y + 1.0507009873554805 * 1.6732632423543772) : dy * 1.0507009873554805;
}
static double tanh_grad(double y, double dy) { return dy * (1 - y * y); }
static double sigmoid_grad(double y, double dy) { return dy * y * (1 - y); }
static double sqrt_grad(double y, double dy) { return dy * 0.5 / y; }
static double rsqrt_grad(double y, double dy) { return dy * -0.5 * y * y * y; }
static double reciprocal_grad(double y, double dy) { return -dy * y * y; }

/* Operands are exact in every dtype. The formulas have up to four operations, and 1 - y^2 for |y| <= 0.75
 * amplifies errors by a factor below 3: 16 ulp for float32 and float64. */
static void gradient_operations(void **state) {
  (void)state;
  static const struct {
    const mix_op *op;
    double (*function)(double, double);
  } rows[] = {{&mix_op_relu_grad, relu_grad},
              {&mix_op_relu6_grad, relu6_grad},
              {&mix_op_softplus_grad, softplus_grad},
              {&mix_op_softsign_grad, softsign_grad},
              {&mix_op_elu_grad, elu_grad},
              {&mix_op_selu_grad, selu_grad},
              {&mix_op_tanh_grad, tanh_grad},
              {&mix_op_sigmoid_grad, sigmoid_grad},
              {&mix_op_sqrt_grad, sqrt_grad},
              {&mix_op_rsqrt_grad, rsqrt_grad},
              {&mix_op_reciprocal_grad, reciprocal_grad}};
  const double *a = NUMBERS(-0.75, -0.5, -0.125, 0.25, 0.5, 0.75), *b = NUMBERS(3, -2, 0.75, -0.5, 7, 0.25);
  for (int r = 0; r < COUNT(rows); r++)
    for (int d = 0; d < COUNT(floating); d++) {
      mix_tensor *operands[] = {tensor(floating[d], MIX_SHAPE(6), a), tensor(floating[d], MIX_SHAPE(6), b)};
      double got[6], scale = floating[d] == MIX_FLOAT32 || floating[d] == MIX_FLOAT64 ? 4 : 1;
      read_into(mix_apply(rows[r].op, NULL, 2, operands), 6, got);
      for (int i = 0; i < 6; i++) {
        double want = rows[r].function(a[i], b[i]);
        if (!(fabs(got[i] - want) <=
              scale * tolerance(floating[d], want) + fabs(want) * 32 * 0x1p-24 * (scale == 1)))
          fail_msg("%s(%g, %g) in %s: %.9g; expected %.9g", rows[r].op->name, a[i], b[i],
                   mix_dtype_name(floating[d]), got[i], want);
      }
      mix_tensor *leaky = mix_apply(&mix_op_leaky_relu_grad, &(mix_alpha_attributes){0.25}, 2, operands);
      has_values(leaky, 6, NUMBERS(-0.75, -0.125, -0.125, 0.0625, 0.5, 0.75));
    }
}

/* ---- casts ---- */

static void casts(void **state) {
  (void)state;
  for (int a = 0; a < COUNT(every_dtype); a++)
    for (int b = 0; b < COUNT(every_dtype); b++) {
      bool to_bool = every_dtype[b] == MIX_BOOL, from_bool = every_dtype[a] == MIX_BOOL;
      uint8_t bits[] = {0, 1, 1, 1};
      mix_tensor *x = from_bool ? mix_tensor_from(bits, MIX_BOOL, MIX_SHAPE(4))
                                : tensor(every_dtype[a], MIX_SHAPE(4), NUMBERS(0, 1, 5, 100));
      has_values(mix_cast(x, every_dtype[b]), 4,
                 to_bool || from_bool ? NUMBERS(0, 1, 1, 1) : NUMBERS(0, 1, 5, 100));
    }
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(6), NUMBERS(-1.75, -0.5, 0.75, 2.5, NAN, 65520));
  has_values(mix_cast(x, MIX_INT32), 6, NUMBERS(-1, 0, 0, 2, 0, 65520)); /* toward zero */
  has_values(mix_cast(x, MIX_BOOL), 6, NUMBERS(1, 1, 1, 1, 1, 1));
  has_values(mix_cast(x, MIX_FLOAT16), 6, NUMBERS(-1.75, -0.5, 0.75, 2.5, NAN, INFINITY));
  has_values(mix_cast(x, MIX_BFLOAT16), 6, NUMBERS(-1.75, -0.5, 0.75, 2.5, NAN, 65536));
  has_values(mix_cast(tensor(MIX_FLOAT16, MIX_SHAPE(2), NUMBERS(65504, -INFINITY)), MIX_BFLOAT16), 2,
             NUMBERS(65536, -INFINITY));
  has_values(mix_cast(tensor(MIX_INT32, MIX_SHAPE(2), NUMBERS(300, -1)), MIX_INT8), 2,
             NUMBERS(44, -1)); /* wraps */
  has_values(mix_cast(tensor(MIX_INT32, MIX_SHAPE(2), NUMBERS(16777217, 2049)), MIX_FLOAT32), 2,
             NUMBERS(16777216, 2049));
  has_values(mix_cast(tensor(MIX_INT64, MIX_SHAPE(1), NUMBERS(2049)), MIX_FLOAT16), 1, NUMBERS(2048));
  /* one rounding from float64, not two: 1 + 2^-11 + 2^-30 is above the tie */
  has_values(
      mix_cast(tensor(MIX_FLOAT64, MIX_SHAPE(2), NUMBERS(1 + 0x1p-11 + 0x1p-30, 1 + 0x1p-11)), MIX_FLOAT16),
      2, NUMBERS(1 + 0x1p-10, 1));
}

/* Integer division by zero is detected when values are known: the evaluation fails. */
static void integer_division_by_zero(void **state) {
  (void)state;
  mix_tensor *x = tensor(MIX_INT32, MIX_SHAPE(2), NUMBERS(1, 2)),
             *zero = tensor(MIX_INT32, MIX_SHAPE(2), NUMBERS(1, 0));
  mix_tensor *y = mix_floor_divide(x, zero);
  no_error();
  assert_null(mix_tensor_data(y));
  assert_int_equal(mix_error_take(NULL, 0), MIX_VALUE_ERROR);
}

static int on_ref(void **state) { return (void)state, mix_set_device("ref") != MIX_OK; }

/* After a tensor's last whole packet of eight, TensorFlow's CPU kernels divide 1 by the root or the number.
 * In packets they use an estimate. */
static void tails_after_packets_are_divisions(void **state) {
  (void)state;
  enum { MAX = 45, DRAWS = 50 };
  float x[MAX], r[MAX], fused[MAX], inverse[MAX];
  uint32_t noise = 7;
  if (strcmp(mix_device(), "cpu")) SKIP("%s has no packets", mix_device());
  for (int draw = 0; draw < DRAWS; draw++)
    for (int n = 1; n <= MAX; n += 11) {
      for (int i = 0; i < n; i++)
        noise = noise * 1664525u + 1013904223u, x[i] = (float)((noise >> 8) + 1) * 0x1p-20f;
      MIX_SCOPE {
        mix_tensor *t = mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(n));
        mix_tensor_read(mix_rsqrt(t), MIX_FLOAT32, r, n);
        mix_tensor_read(mix_rsqrt(mix_add(t, mix_scalar(1, MIX_FLOAT32))), MIX_FLOAT32, fused, n);
        mix_tensor_read(mix_reciprocal(t), MIX_FLOAT32, inverse, n);
      }
      assert_int_equal(mix_error(), MIX_OK);
      for (int i = n - n % 8; i < n; i++) {
        assert_true(r[i] == 1 / sqrtf(x[i]));
        assert_true(fused[i] == 1 / sqrtf(x[i] + 1));
        assert_true(inverse[i] == 1 / x[i]);
      }
    }
}

/* Numbers and their logarithms from TensorFlow 2.21's CPU kernels that are not correctly rounded. After whole
 * packets the kernels call the C library. */
static void log_has_the_bits_of_packets(void **state) {
  (void)state;
  enum { RECORDED = 8, MAX = 45 };
  static const float recorded[RECORDED][2] = {
      {0x1.e5b56p-1f, -0x1.afd96cp-5f},   {0x1.3f50bcp-2f, -0x1.2a509cp+0f},
      {0x1.a7c8a2p-1f, -0x1.834798p-3f},  {0x1.c38740p-6f, -0x1.cbb3bcp+1f},
      {0x1.e75088p-36f, -0x1.84f3fcp+4f}, {0x1.162520p+94f, 0x1.04f488p+6f},
      {0x1.9e2f14p-55f, -0x1.2d22bcp+5f}, {0x1.196458p-1f, -0x1.32788ep-1f}};
  if (strcmp(mix_device(), "cpu")) SKIP("%s has no packets", mix_device());
  for (int n = 1; n <= MAX; n++) {
    float x[MAX], y[MAX];
    for (int i = 0; i < n; i++) x[i] = recorded[(i + n) % RECORDED][0];
    MIX_SCOPE
      mix_tensor_read(mix_log(mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(n))), MIX_FLOAT32, y, n);
    assert_int_equal(mix_error(), MIX_OK);
    for (int i = 0; i < n; i++)
      assert_true(y[i] == (i < n - n % 8 ? recorded[(i + n) % RECORDED][1] : logf(x[i])));
  }
}

/* On the default device, then on the scalar reference. */
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(unary_functions),
      TEST(long_vectors),
      TEST(exact_unary),
      TEST(exact_binary),
      TEST(floating_binary),
      TEST(N04_N06_sixteen_bit_arithmetic),
      TEST(gradient_operations),
      TEST(casts),
      TEST(integer_division_by_zero),
      TEST(tails_after_packets_are_divisions),
      TEST(log_has_the_bits_of_packets),
  };
  int failed = cmocka_run_group_tests_name("ops/values", tests, NULL, NULL);
  return failed + cmocka_run_group_tests_name("ops/values on ref", tests, on_ref, NULL);
}
