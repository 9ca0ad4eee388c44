/* Element-wise functions of NumPy and of keras.ops.math that are formulas of others. Those of 16 bits compute
 * in float32 and round once, as in TensorFlow. */
#include "base/error.h"
#include "nn/layers/moments.h"
#include "nn/layers/operations/operation.h"
#include "ops/complex.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include "tensor/convert.h"
#include <math.h>
#include <mixtape/scan.h>

#define PI 3.14159265358979323846
#define LOG_2 0.69314718055994530942

static mix_tensor *wide(mix_tensor *x) { return mix_cast(x, mix_widened(mix_tensor_dtype(x))); }
/* name(x): the formula of a wider x, rounded to x's dtype. */
#define WIDENED(name, formula)                                                                               \
  static mix_tensor *name(mix_tensor *given) {                                                               \
    mix_tensor *x = wide(given);                                                                             \
    return mix_cast(formula, mix_tensor_dtype(given));                                                       \
  }
static mix_tensor *number(mix_tensor *x, double value) { return mix_scalar_like(x, value); }
static mix_tensor *is_below(mix_tensor *x, double bound) { return mix_less(x, number(x, bound)); }
static mix_tensor *is_zero(mix_tensor *x) { return mix_equal(x, number(x, 0)); }
/* int64 becomes float64, and others that are not floating-point the default. */
static mix_tensor *floating(mix_tensor *x) {
  return mix_tensor_dtype(x) == MIX_INT64 ? mix_cast(x, MIX_FLOAT64) : mix_operand_floating(x);
}

/* ---- trigonometric and hyperbolic ---- */

/* The other leg of a right triangle of hypotenuse 1. */
static mix_tensor *leg(mix_tensor *x) {
  return mix_sqrt(mix_multiply(mix_subtract(number(x, 1), x), mix_plus(x, 1)));
}
WIDENED(arcsin_, mix_atan2(x, leg(x)))
WIDENED(arccos_, mix_atan2(leg(x), x))
WIDENED(arctan_, mix_atan2(x, number(x, 1)))
WIDENED(sinh_, mix_times(mix_subtract(mix_expm1(x), mix_expm1(mix_negative(x))), 0.5))
WIDENED(cosh_, mix_times(mix_add(mix_exp(x), mix_exp(mix_negative(x))), 0.5))

/* An odd function from its positive half. At 0 the slope is that half's, where a sign and an absolute value
 * would have none. */
static mix_tensor *odd(mix_tensor *x, mix_tensor *(*half)(mix_tensor *size)) {
  mix_tensor *below = is_below(x, 0), *sign = mix_select(below, number(x, -1), number(x, 1));
  return mix_multiply(sign, half(mix_select(below, mix_negative(x), x)));
}
/* log(x + sqrt(x^2 + 1)): of small x by log1p, of large ones without the square, which would overflow. */
static mix_tensor *half_arcsinh(mix_tensor *x) {
  const double large = 1e9;
  mix_tensor *small = mix_minimum(x, number(x, large)), *square = mix_square(small),
             *root = mix_plus(mix_sqrt(mix_plus(square, 1)), 1);
  return mix_select(is_below(x, large), mix_log1p(mix_add(small, mix_divide(square, root))),
                    mix_plus(mix_log(mix_maximum(x, number(x, 1))), LOG_2));
}
static mix_tensor *half_arctanh(mix_tensor *x) {
  return mix_times(mix_log1p(mix_divide(mix_times(x, 2), mix_subtract(number(x, 1), x))), 0.5);
}
static mix_tensor *above_one(mix_tensor *x) {
  mix_tensor *rest = mix_plus(x, -1);
  return mix_log1p(mix_add(rest, mix_multiply(mix_sqrt(rest), mix_sqrt(mix_plus(rest, 2)))));
}
WIDENED(arcsinh_, odd(x, half_arcsinh))
WIDENED(arctanh_, odd(x, half_arctanh))
WIDENED(arccosh_, above_one(x))

/* sin(pi x) / (pi x). */
static mix_tensor *sinc_of(mix_tensor *x) {
  mix_tensor *zero = is_zero(x), *angle = mix_times(mix_select(zero, number(x, 1), x), PI);
  return mix_select(zero, number(x, 1), mix_divide(mix_sin(angle), angle));
}
WIDENED(sinc, sinc_of(x))
static mix_tensor *deg2rad(mix_tensor *x) { return mix_times(floating(x), PI / 180); }
static mix_tensor *rad2deg(mix_tensor *x) { return mix_times(floating(x), 180 / PI); }

/* ---- special functions ---- */

/* The mean of cosh(x cos t) over a quarter of the circle: the trapezoidal rule of a periodic function, whose
 * error is below that of the dtype for every x that does not overflow. */
static mix_tensor *bessel_i0(mix_tensor *x) {
  const int rank = mix_tensor_shape(x).rank, points = mix_tensor_dtype(x) == MIX_FLOAT64 ? 96 : 32;
  mix_tensor *angles =
      mix_times(mix_plus(mix_range(0, points, 1, mix_tensor_dtype(x)), 0.5), PI / 2 / points);
  mix_tensor *parts = mix_multiply(mix_expand_dims(x, rank), mix_cos(angles));
  return mix_reduce_mean(cosh_(parts), MIX_AXES(rank), false);
}
static mix_tensor *i0(mix_tensor *given) {
  mix_tensor *x = wide(floating(given));
  return mix_cast(bessel_i0(x), mix_tensor_dtype(floating(given)));
}

static mix_tensor *polynomial(mix_tensor *x, int count, const double *coefficients) {
  mix_tensor *sum = number(x, coefficients[0]);
  for (int i = 1; i < count; i++) sum = mix_plus(mix_multiply(sum, x), coefficients[i]);
  return sum;
}
/* Giles: Approximating the erfinv function, 2012, of float32. */
static mix_tensor *estimated_erfinv(mix_tensor *x) {
  static const double center[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                  -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                  -0.00417768164,  0.246640727,    1.50140941},
                      tails[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                 -0.00367342844,  0.00573950773,  -0.0076224613,
                                 0.00943887047,   1.00167406,     2.83297682};
  mix_tensor *w = mix_negative(mix_log1p(mix_negative(mix_square(x))));
  mix_tensor *inner = polynomial(mix_plus(w, -2.5), 9, center),
             *outer = polynomial(mix_plus(mix_sqrt(w), -3), 9, tails);
  return mix_multiply(x, mix_select(is_below(w, 5), inner, outer));
}
/* A step of Newton towards erf(y) = x. Its derivative by x is that of erfinv, also where y has none. */
static mix_tensor *improved_erfinv(mix_tensor *x, mix_tensor *y) {
  mix_tensor *slope = mix_times(mix_exp(mix_square(y)), sqrt(PI) / 2);
  return mix_subtract(y, mix_multiply(mix_subtract(mix_erf(y), x), slope));
}
/* Near 1 the steps lose digits of float32, which the estimate has. */
static mix_tensor *erfinv(mix_tensor *given) {
  mix_tensor *x = wide(given), *fixed = mix_stop_gradient(x), *size = mix_abs(fixed);
  mix_tensor *inside = mix_minimum(size, number(x, 1 - 1e-7)), *sign = mix_sign(fixed);
  mix_tensor *estimate = estimated_erfinv(mix_multiply(sign, inside));
  mix_tensor *y = improved_erfinv(x, improved_erfinv(x, estimate));
  mix_tensor *value = mix_tensor_dtype(x) == MIX_FLOAT64 ? y : estimate;
  value = mix_select(mix_equal(size, number(x, 1)), mix_times(fixed, INFINITY), value);
  value = mix_select(mix_greater(size, number(x, 1)), number(x, NAN), value);
  return mix_cast(mix_surrogate_gradient(value, y), mix_tensor_dtype(given));
}

static mix_tensor *cbrt_(mix_tensor *x) {
  x = floating(x);
  return mix_multiply(mix_sign(x), mix_power(mix_abs(x), number(x, 1.0 / 3)));
}
static mix_tensor *exp2_(mix_tensor *x) { return mix_power(number(x, 2), x); }

/* ---- of real numbers as complex ones, and classes of numbers ---- */

static mix_tensor *angle(mix_tensor *x) {
  if (mix_is_complex(x)) return mix_atan2(mix_imaginary_part(x), mix_real_part(x));
  return mix_select(is_below(x, 0), number(x, PI), mix_zeros_like(x));
}
static mix_tensor *none(mix_tensor *x) { return mix_cast(mix_zeros_like(x), MIX_BOOL); }
static mix_tensor *every(mix_tensor *x) { return mix_cast(mix_ones_like(x), MIX_BOOL); }
static mix_tensor *is_real(mix_tensor *x) {
  return mix_is_complex(x) ? mix_equal(mix_imaginary_part(x), number(x, 0)) : every(x);
}
static mix_tensor *is_infinity(mix_tensor *x, double infinity) {
  return mix_dtype_is_floating(mix_tensor_dtype(x)) ? mix_equal(x, number(x, infinity)) : none(x);
}
static mix_tensor *is_neginf(mix_tensor *x) { return is_infinity(x, -INFINITY); }
static mix_tensor *is_posinf(mix_tensor *x) { return is_infinity(x, INFINITY); }
/* A zero has the sign of its reciprocal. */
static mix_tensor *signbit_(mix_tensor *x) {
  if (mix_tensor_dtype(x) == MIX_BOOL) return none(x);
  mix_tensor *below = is_below(x, 0);
  if (!mix_dtype_is_floating(mix_tensor_dtype(x))) return below;
  return mix_logical_or(below, mix_logical_and(is_zero(x), is_below(mix_reciprocal(x), 0)));
}

/* x, with `value` where it is no number of that kind. */
static mix_tensor *replaced(mix_tensor *x, mix_tensor *where, double value) {
  return mix_select(where, number(x, value), x);
}
static mix_tensor *nan_to_num(const mix_operands *o, mix_tensor *x) {
  const mix_dtype dtype = mix_tensor_dtype(x);
  if (!mix_dtype_is_floating(dtype)) return x;
  const double most = mix_dtype_max(dtype);
  const bool above = mix_operand_json(o, "posinf"), below = mix_operand_json(o, "neginf");
  x = replaced(x, mix_is_nan(x), mix_operand_number(o, "nan"));
  x = replaced(x, is_posinf(x), above ? mix_operand_number(o, "posinf") : most);
  return replaced(x, is_neginf(x), below ? mix_operand_number(o, "neginf") : -most);
}

static mix_tensor *threshold(const mix_operands *o, mix_tensor *x) {
  mix_tensor *bound = number(x, mix_operand_number(o, "threshold")),
             *other = number(x, mix_operand_number(o, "default_value"));
  return mix_select(mix_greater(x, bound), x, other);
}

/* ---- of two ---- */

static mix_tensor *choose_number(mix_tensor *a, mix_tensor *b, mix_tensor *y) {
  if (!mix_dtype_is_floating(mix_tensor_dtype(a))) return y;
  mix_tensor *no_a = mix_is_nan(a), *no_b = mix_is_nan(b);
  y = mix_select(mix_logical_and(no_a, mix_logical_not(no_b)), b, y);
  return mix_select(mix_logical_and(no_b, mix_logical_not(no_a)), a, y);
}
static mix_tensor *fmax_(mix_tensor *a, mix_tensor *b) { return choose_number(a, b, mix_maximum(a, b)); }
static mix_tensor *fmin_(mix_tensor *a, mix_tensor *b) { return choose_number(a, b, mix_minimum(a, b)); }
static mix_tensor *fmod_(mix_tensor *a, mix_tensor *b) {
  return mix_multiply(mix_sign(a), mix_floor_mod(mix_abs(a), mix_abs(b)));
}
static mix_tensor *heaviside(mix_tensor *a, mix_tensor *b) {
  a = floating(a), b = floating(b);
  mix_tensor *above = mix_select(mix_greater(a, number(a, 0)), mix_ones_like(a), b);
  return mix_select(is_below(a, 0), mix_zeros_like(a), above);
}
static mix_tensor *hypot_(mix_tensor *a, mix_tensor *b) {
  a = mix_abs(floating(a)), b = mix_abs(floating(b));
  mix_tensor *most = mix_maximum(a, b), *least = mix_minimum(a, b), *none_at = is_zero(most);
  mix_tensor *ratio = mix_select(none_at, number(a, 0), mix_divide(least, replaced(most, none_at, 1)));
  return mix_multiply(most, mix_sqrt(mix_plus(mix_square(ratio), 1)));
}
/* log(base^a + base^b), `unit` the logarithm of the base. */
static mix_tensor *add_powers(mix_tensor *a, mix_tensor *b, double unit) {
  mix_tensor *delta = mix_subtract(a, b), *part = mix_exp(mix_times(mix_negative(mix_abs(delta)), unit));
  return mix_select(mix_is_nan(delta), mix_add(a, b),
                    mix_add(mix_maximum(a, b), mix_over(mix_log1p(part), unit)));
}
static mix_tensor *logaddexp(mix_tensor *a, mix_tensor *b) { return add_powers(a, b, 1); }
static mix_tensor *logaddexp2(mix_tensor *a, mix_tensor *b) { return add_powers(a, b, LOG_2); }
static mix_tensor *ldexp_(mix_tensor *a, mix_tensor *b) {
  mix_tensor *same = mix_logical_or(mix_is_inf(a), is_zero(a));
  return mix_select(same, a, mix_multiply(a, mix_power(number(a, 2), b)));
}
/* Keras on TensorFlow takes the next number of float64, which other dtypes round back. */
static mix_tensor *nextafter_(const mix_operands *o, mix_tensor *x) {
  mix_tensor *pair[2];
  if (!mix_operand_pair(o, pair)) return NULL;
  if (mix_tensor_dtype(pair[0]) == MIX_FLOAT64)
    return mix_operation_fail(o, MIX_UNSUPPORTED, "float64 is not supported; cast the operands to float32");
  return mix_select(mix_is_nan(pair[1]), pair[1], pair[0]);
}

static mix_tensor *difference_within(const mix_operands *o, mix_tensor *a, mix_tensor *b) {
  mix_tensor *bound =
      mix_plus(mix_times(mix_abs(b), mix_operand_number(o, "rtol")), mix_operand_number(o, "atol"));
  return mix_less_equal(mix_abs(mix_subtract(a, b)), bound);
}
/* exact: infinities are close to themselves alone. */
static mix_tensor *close_to(const mix_operands *o, bool exact) {
  static const char *const names[] = {"x1", "x2"};
  mix_tensor *pair[2];
  if (!mix_operands_promoted(o, 2, names, pair)) return NULL;
  mix_tensor *a = pair[0], *b = pair[1];
  if (!mix_dtype_is_floating(mix_tensor_dtype(a))) return mix_equal(a, b);
  mix_tensor *close = difference_within(o, a, b);
  if (exact) {
    close = mix_logical_and(close, mix_logical_and(mix_is_finite(a), mix_is_finite(b)));
    close = mix_logical_or(close, mix_equal(a, b));
  }
  if (!mix_operand_flag(o, "equal_nan")) return close;
  return mix_logical_or(close, mix_logical_and(mix_is_nan(a), mix_is_nan(b)));
}
static mix_tensor *isclose(const mix_operands *o, mix_tensor *x) { return close_to(o, false); }
static mix_tensor *allclose(const mix_operands *o, mix_tensor *x) {
  return mix_reduce_all(close_to(o, true), MIX_ALL_AXES, false);
}

/* ---- integers ---- */

static mix_tensor *invert(mix_tensor *x) {
  return mix_tensor_dtype(x) == MIX_BOOL ? mix_logical_not(x)
                                         : mix_subtract(mix_negative(x), mix_ones_like(x));
}
/* By all places at most, as in TensorFlow. */
static mix_tensor *places(mix_tensor *b) {
  return mix_minimum(b, number(b, 8 * (double)mix_dtype_size(mix_tensor_dtype(b)) - 1));
}
static mix_tensor *left(mix_tensor *a, mix_tensor *b) { return mix_shift_left(a, places(b)); }
static mix_tensor *right(mix_tensor *a, mix_tensor *b) { return mix_shift_right(a, places(b)); }

static mix_tensor *of_integers(const mix_operands *o, mix_tensor *(*function)(mix_tensor *a, mix_tensor *b)) {
  mix_tensor *pair[2];
  if (!mix_operand_pair(o, pair)) return NULL;
  if (mix_dtype_is_integer(mix_tensor_dtype(pair[0]))) return function(pair[0], pair[1]);
  return mix_operation_fail(o, MIX_TYPE_ERROR, "its operands are %s; expected integers",
                            mix_dtype_name(mix_tensor_dtype(pair[0])));
}

/* Euclid: (a, b) becomes (b, a mod b), unless b is 0. */
static mix_list *divide_once(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *a = mix_list_get(carry, 0), *b = mix_list_get(carry, 1), *done = is_zero(b);
  mix_tensor *next = mix_select(done, a, b), *divisor = mix_select(done, mix_ones_like(b), b),
             *rest = mix_select(done, b, mix_floor_mod(a, divisor));
  return mix_failed() ? NULL : mix_list_of(mix_list_of(next, rest), mix_list_new(0, NULL));
}
/* As many steps as two Fibonacci numbers of the dtype need. */
static mix_tensor *divisor_of(mix_tensor *a, mix_tensor *b) {
  const size_t size = mix_dtype_size(mix_tensor_dtype(a));
  mix_tensor *zero = mix_zeros_like(mix_add(a, b));
  a = mix_add(mix_abs(a), zero), b = mix_add(mix_abs(b), zero);
  if (mix_failed()) return NULL;
  mix_list *results = mix_scan(divide_once, NULL, mix_list_of(a, b), NULL, .steps = (int64_t)(size * 12));
  return results ? mix_list_get(mix_list_get(results, 0), 0) : NULL;
}
static mix_tensor *multiple_of(mix_tensor *a, mix_tensor *b) {
  mix_tensor *divisor = divisor_of(a, b), *zero = is_zero(divisor);
  mix_tensor *safe = mix_select(zero, mix_ones_like(divisor), divisor);
  return mix_multiply(mix_abs(a), mix_floor_divide(mix_abs(b), safe));
}
static mix_tensor *gcd(const mix_operands *o, mix_tensor *x) { return of_integers(o, divisor_of); }
static mix_tensor *lcm(const mix_operands *o, mix_tensor *x) { return of_integers(o, multiple_of); }

/* ---- others ---- */

/* The first of several conditions that is true chooses. */
static mix_tensor *select_(const mix_operands *o, mix_tensor *x) {
  mix_list *conditions = mix_operand_listed(o, "condlist"), *choices = mix_operand_listed(o, "choicelist");
  const int count = mix_list_count(choices);
  if (!conditions || !choices) return NULL;
  if (mix_list_count(conditions) != count)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "%d conditions and %d choices", mix_list_count(conditions),
                              count);
  mix_tensor *y = mix_operand_like(o, "default", mix_list_get(choices, 0));
  for (int i = count - 1; i >= 0; i--)
    y = mix_select(mix_cast(mix_list_get(conditions, i), MIX_BOOL), mix_list_get(choices, i), y);
  return y;
}

static mix_tensor *array_(const mix_operands *o, mix_tensor *x) {
  return mix_cast(x, mix_operand_dtype(o, "dtype", mix_tensor_dtype(x)));
}
static mix_tensor *view(const mix_operands *o, mix_tensor *x) {
  const mix_dtype dtype = mix_operand_dtype(o, "dtype", mix_tensor_dtype(x));
  return mix_failed() ? NULL : mix_bitcast(x, dtype);
}
/* Numbers beyond the dtype become its ends. */
static mix_tensor *saturate_cast(const mix_operands *o, mix_tensor *x) {
  const mix_dtype dtype = mix_operand_dtype(o, "dtype", mix_tensor_dtype(x)), from = mix_tensor_dtype(x);
  if (mix_failed() || dtype == MIX_BOOL || from == MIX_BOOL) return mix_cast(x, dtype);
  const bool real = mix_dtype_is_floating(dtype);
  double low = real ? -mix_dtype_max(dtype) : (double)mix_dtype_lowest(dtype),
         high = real ? mix_dtype_max(dtype) : (double)mix_dtype_highest(dtype);
  if (mix_dtype_is_floating(from)) {
    const double most = mix_dtype_max(from);
    low = fmax(low, -most), high = fmin(high, most);
  } else {
    low = fmax(low, (double)mix_dtype_lowest(from)), high = fmin(high, (double)mix_dtype_highest(from));
    if (dtype == MIX_INT64 || dtype == from) return mix_cast(x, dtype);
  }
  return mix_cast(mix_clip(x, number(x, low), number(x, high)), dtype);
}

/* ---- the tables ---- */

#define UNARY(name, module, function, ...)                                                                   \
  MIX_KERAS_OPERATION(name, module, "x", "", .unary = function, .elementwise = true, __VA_ARGS__)
#define FLOATING(name, module, function) UNARY(name, module, function, .rule = MIX_OPERANDS_FLOATING)
#define BINARY(name, function, type)                                                                         \
  MIX_KERAS_OPERATION(name, "numpy", "x1 x2", "", .binary = function, .elementwise = true,                   \
                      .rule = MIX_OPERANDS_##type)
#define BITS(name, function)                                                                                 \
  MIX_KERAS_OPERATION(name, "numpy", "x y", "", .binary = function, .elementwise = true)
#define BUILT(name, module, operands, options, function, ...)                                                \
  MIX_KERAS_OPERATION(name, module, operands, options, .build = function, .elementwise = true, __VA_ARGS__)

const mix_keras_operation mix_keras_function_operations[] = {
    FLOATING("Arcsin", "numpy", arcsin_),
    FLOATING("Arccos", "numpy", arccos_),
    FLOATING("Arctan", "numpy", arctan_),
    FLOATING("Arcsinh", "numpy", arcsinh_),
    FLOATING("Arccosh", "numpy", arccosh_),
    FLOATING("Arctanh", "numpy", arctanh_),
    FLOATING("Sinh", "numpy", sinh_),
    FLOATING("Cosh", "numpy", cosh_),
    FLOATING("Sinc", "numpy", sinc),
    FLOATING("Exp2", "numpy", exp2_),
    FLOATING("Fabs", "numpy", mix_abs),
    FLOATING("Angle", "numpy", angle),
    FLOATING("Erfc", "math", mix_erfc),
    FLOATING("Erfinv", "math", erfinv),
    UNARY("Cbrt", "numpy", cbrt_),
    UNARY("I0", "numpy", i0),
    UNARY("Deg2rad", "numpy", deg2rad),
    UNARY("Rad2deg", "numpy", rad2deg),
    UNARY("Real", "numpy", mix_real_part),
    UNARY("Conj", "numpy", mix_conjugate),
    UNARY("Conjugate", "numpy", mix_conjugate),
    UNARY("Imag", "numpy", mix_imaginary_part),
    UNARY("Copy", "numpy", mix_identity),
    UNARY("Isreal", "numpy", is_real),
    UNARY("Isneginf", "numpy", is_neginf),
    UNARY("Isposinf", "numpy", is_posinf),
    UNARY("Signbit", "numpy", signbit_),
    UNARY("BitwiseInvert", "numpy", invert),
    UNARY("BitwiseNot", "numpy", invert),
    BITS("BitwiseAnd", mix_bitwise_and),
    BITS("BitwiseOr", mix_bitwise_or),
    BITS("BitwiseXor", mix_bitwise_xor),
    BITS("BitwiseLeftShift", left),
    BITS("BitwiseRightShift", right),
    BITS("LeftShift", left),
    BITS("RightShift", right),
    BINARY("Arctan2", mix_atan2, FLOATING),
    BINARY("Fmax", fmax_, PROMOTED),
    BINARY("Fmin", fmin_, PROMOTED),
    BINARY("Fmod", fmod_, TYPED),
    BINARY("Heaviside", heaviside, PROMOTED),
    BINARY("Hypot", hypot_, PROMOTED),
    BINARY("Logaddexp", logaddexp, FLOATING),
    BINARY("Logaddexp2", logaddexp2, FLOATING),
    BINARY("Ldexp", ldexp_, FLOATING),
    BUILT("Nextafter", "numpy", "x1 x2", "", nextafter_, .rule = MIX_OPERANDS_FLOATING),
    BUILT("Gcd", "numpy", "x1 x2", "", gcd),
    BUILT("Lcm", "numpy", "x1 x2", "", lcm),
    BUILT("Isclose", "numpy", "x1 x2 rtol=1e-5 atol=1e-8", "equal_nan", isclose),
    MIX_KERAS_OPERATION("AllClose", "numpy", "x1 x2", "rtol=1e-5 atol=1e-8 equal_nan", .build = allclose),
    BUILT("NanToNum", "numpy", "x", "nan=0 posinf neginf", nan_to_num),
    BUILT("Threshold", "nn", "x", "threshold default_value", threshold, .rule = MIX_OPERANDS_FLOATING),
    BUILT("Select", "numpy", "condlist choicelist default=0", "", select_, .bare = true),
    BUILT("Array", "numpy", "x", "dtype", array_),
    MIX_KERAS_OPERATION("View", "numpy", "x", "dtype", .build = view),
    BUILT("SaturateCast", "core", "x", "dtype", saturate_cast),
    {.operation = {0}}};

static mix_tensor *ndtri(mix_tensor *x) {
  return mix_times(erfinv(mix_plus(mix_times(x, 2), -1)), 1.4142135623730951);
}
static mix_tensor *erfcinv(mix_tensor *x) { return erfinv(mix_subtract(number(x, 1), x)); }

#define TF(name, function) MIX_TF_OPERATION("math." name, "x", "", .unary = function)
#define TF_BITS(name, function) MIX_TF_OPERATION("bitwise." name, "x", "y", .binary = function)

const mix_operation mix_tf_function_operations[] = {
    TF("asin", arcsin_),
    TF("acos", arccos_),
    TF("atan", arctan_),
    TF("asinh", arcsinh_),
    TF("acosh", arccosh_),
    TF("atanh", arctanh_),
    TF("sinh", sinh_),
    TF("cosh", cosh_),
    TF("erfinv", erfinv),
    TF("bessel_i0", i0),
    TF("ndtri", ndtri),
    TF("erfcinv", erfcinv),
    MIX_TF_OPERATION("math.angle", "input", "", .unary = angle),
    MIX_TF_OPERATION("dtypes.saturate_cast", "value", "dtype", .build = saturate_cast),
    MIX_TF_OPERATION("math.atan2", "y", "x", .binary = mix_atan2),
    TF_BITS("bitwise_and", mix_bitwise_and),
    TF_BITS("bitwise_or", mix_bitwise_or),
    TF_BITS("bitwise_xor", mix_bitwise_xor),
    TF_BITS("left_shift", left),
    TF_BITS("right_shift", right),
    MIX_TF_OPERATION("bitwise.invert", "x", "", .unary = invert),
    {0}};
