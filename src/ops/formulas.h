/* The formula of each opcode. `a` and `b` are the operands, `alpha` is the immediate. The reference expands
 * the real formulas for float and for double, the CPU's kernels for double. Arithmetic is done in that type;
 * functions of libm, and a formula that contains one, are evaluated in double. The result is rounded to the
 * type, then to the dtype of the register. A zero result of relu, or of the maximum of two zeros, may have
 * either sign. tests/backend/test_formulas.c compares them with MPFR. */
#pragma once

#include "ops/error_function.h"
#include <math.h>
#include <stdint.h>

/* Klambauer et al.: Self-normalizing neural networks, 2017. */
#define MIX_SELU_SCALE 1.0507009873554804934193349852946
#define MIX_SELU_ALPHA 1.6732632423543772848170429916717

static inline double mix_sigmoid_of(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }
/* The result has the sign of the divisor, as in Python and in TensorFlow's FloorMod. */
static inline double mix_floor_mod_of(double a, double b) {
  const double rest = fmod(a, b);
  return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

static inline double mix_clip_of(double x, double low, double high) {
  const double above = x != x || x > low ? x : low;
  return above != above || above < high ? above : high;
}

#define MIX_REAL_UNARY(X)                                                                                    \
  X(IDENTITY, a)                                                                                             \
  X(NEGATIVE, -a)                                                                                            \
  X(ABS, fabs(a))                                                                                            \
  X(SIGN, a != a ? a : (a > 0) - (a < 0))                                                                    \
  X(FLOOR, floor(a))                                                                                         \
  X(CEIL, ceil(a))                                                                                           \
  X(ROUND, rint(a))                                                                                          \
  X(SQRT, sqrt(a))                                                                                           \
  X(RSQRT, 1 / sqrt(a))                                                                                      \
  X(SQUARE, a *a)                                                                                            \
  X(RECIPROCAL, 1 / a)                                                                                       \
  X(EXP, exp(a))                                                                                             \
  X(EXPM1, expm1(a))                                                                                         \
  X(LOG, log(a))                                                                                             \
  X(LOG1P, log1p(a))                                                                                         \
  X(SIN, sin(a))                                                                                             \
  X(COS, cos(a))                                                                                             \
  X(TANH, tanh(a))                                                                                           \
  X(SIGMOID, mix_sigmoid_of(a))                                                                              \
  X(ERF, mix_erf_of(a))                                                                                      \
  X(ERFC, mix_erfc_of(a))                                                                                    \
  X(RELU, a < 0 ? 0 : a)                                                                                     \
  X(RELU6, a<0 ? 0 : a> 6 ? 6 : a)                                                                           \
  X(ELU, a < 0 ? expm1(a) : a)                                                                               \
  X(SELU, MIX_SELU_SCALE *(a < 0 ? MIX_SELU_ALPHA * expm1(a) : a))                                           \
  X(SOFTPLUS, (a > 0 ? a : 0) + log1p(exp(-fabs(a))))                                                        \
  X(SOFTSIGN, a / (1 + fabs(a)))                                                                             \
  X(LEAKY_RELU, a > 0 ? a : alpha * a)

#define MIX_REAL_BINARY(X)                                                                                   \
  X(ADD, a + b)                                                                                              \
  X(SUBTRACT, a - b)                                                                                         \
  X(MULTIPLY, a *b)                                                                                          \
  X(DIVIDE, a / b)                                                                                           \
  X(FLOOR_DIVIDE, floor(a / b))                                                                              \
  X(FLOOR_MOD, mix_floor_mod_of(a, b))                                                                       \
  X(POWER, pow(a, b))                                                                                        \
  X(MAXIMUM, a != a || a > b ? a : b)                                                                        \
  X(MINIMUM, a != a || a < b ? a : b)                                                                        \
  X(SQUARED_DIFFERENCE, (a - b) * (a - b))                                                                   \
  X(ATAN2, atan2(a, b))                                                                                      \
  X(RELU_GRAD, b > 0 ? a : a * 0)                                                                            \
  X(RELU6_GRAD, b > 0 && b < 6 ? a : a * 0)                                                                  \
  X(LEAKY_RELU_GRAD, b > 0 ? a : alpha * a)                                                                  \
  X(SOFTPLUS_GRAD, a *mix_sigmoid_of(b))                                                                     \
  X(SOFTSIGN_GRAD, a / ((1 + fabs(b)) * (1 + fabs(b))))                                                      \
  X(ELU_GRAD, b < 0 ? a * (b + 1) : a)                                                                       \
  X(SELU_GRAD, b < 0 ? a * (b + MIX_SELU_SCALE * MIX_SELU_ALPHA) : a * MIX_SELU_SCALE)                       \
  X(TANH_GRAD, b *(1 - a * a))                                                                               \
  X(SIGMOID_GRAD, b *a *(1 - a))                                                                             \
  X(SQRT_GRAD, b * 0.5 / a)                                                                                  \
  X(RSQRT_GRAD, -0.5 * b * a * a * a)                                                                        \
  X(RECIPROCAL_GRAD, -b *a *a)

/* `c` is the third operand. */
#define MIX_REAL_TERNARY(X) X(CLIP, mix_clip_of(a, b, c))
#define MIX_INTEGER_TERNARY(X) X(CLIP, (a > b ? a : b) < c ? (a > b ? a : b) : c)

/* On int64, wrapped to the dtype afterwards. Sums and products are unsigned, because unsigned overflow is
 * defined. */
#define MIX_INTEGER_UNARY(X)                                                                                 \
  X(IDENTITY, a)                                                                                             \
  X(NEGATIVE, 0 - (uint64_t)a)                                                                               \
  X(ABS, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)                                                              \
  X(SIGN, (a > 0) - (a < 0))                                                                                 \
  X(FLOOR, a)                                                                                                \
  X(CEIL, a)                                                                                                 \
  X(ROUND, a)                                                                                                \
  X(SQUARE, (uint64_t)a *(uint64_t)a)                                                                        \
  X(RELU, a < 0 ? 0 : a)                                                                                     \
  X(RELU6, a<0 ? 0 : a> 6 ? 6 : a)

/* No shift is by more than 63 places. */
static inline int mix_shift_places(int64_t b) { return b < 0 ? 0 : b > 63 ? 63 : (int)b; }

#define MIX_INTEGER_BINARY(X)                                                                                \
  X(ADD, (uint64_t)a + (uint64_t)b)                                                                          \
  X(SUBTRACT, (uint64_t)a - (uint64_t)b)                                                                     \
  X(MULTIPLY, (uint64_t)a *(uint64_t)b)                                                                      \
  X(MAXIMUM, a > b ? a : b)                                                                                  \
  X(MINIMUM, a < b ? a : b)                                                                                  \
  X(BITWISE_AND, a &b)                                                                                       \
  X(BITWISE_OR, a | b)                                                                                       \
  X(BITWISE_XOR, a ^ b)                                                                                      \
  X(SHIFT_LEFT, (uint64_t)a << mix_shift_places(b))                                                          \
  X(SHIFT_RIGHT, a >> mix_shift_places(b))                                                                   \
  X(SQUARED_DIFFERENCE, ((uint64_t)a - (uint64_t)b) * ((uint64_t)a - (uint64_t)b))                           \
  X(RELU_GRAD, b > 0 ? a : 0)                                                                                \
  X(RELU6_GRAD, b > 0 && b < 6 ? a : 0)

#define MIX_COMPARISONS(X)                                                                                   \
  X(EQUAL, a == b)                                                                                           \
  X(NOT_EQUAL, a != b)                                                                                       \
  X(LESS, a < b)                                                                                             \
  X(LESS_EQUAL, a <= b)                                                                                      \
  X(GREATER, a > b)                                                                                          \
  X(GREATER_EQUAL, a >= b)

/* Real operand, bool result. */
#define MIX_CLASSIFICATIONS(X)                                                                               \
  X(IS_FINITE, isfinite(a) != 0)                                                                             \
  X(IS_INF, isinf(a) != 0)                                                                                   \
  X(IS_NAN, a != a)

/* Bools, 0 or 1. */
#define MIX_LOGICAL_UNARY(X) X(IDENTITY, a) X(LOGICAL_NOT, a ^ 1)
#define MIX_LOGICAL_BINARY(X) X(LOGICAL_AND, a &b) X(LOGICAL_OR, a | b) X(MAXIMUM, a | b) X(MINIMUM, a &b)
