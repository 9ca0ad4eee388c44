/* The formula of each opcode. `a`, `b`, `c` are the operands, `alpha` is the immediate. The real formulas
 * are expanded for float and for double. Arithmetic is done in that type; functions of libm, and a formula
 * that contains one, are evaluated in double. The result is rounded to the type, then to the dtype of the
 * register. A zero result of relu, or of the maximum of two zeros, may have either sign. */
#ifndef MIX_BACKEND_REF_FORMULAS_H
#define MIX_BACKEND_REF_FORMULAS_H

/* Klambauer et al.: Self-normalizing neural networks, 2017. */
#define MIX_REF_SELU_SCALE 1.0507009873554804934193349852946
#define MIX_REF_SELU_ALPHA 1.6732632423543772848170429916717

#define MIX_REF_REAL_FORMULAS(X)                                                                             \
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
  X(SIGMOID, sigmoid(a))                                                                                     \
  X(ERF, erf(a))                                                                                             \
  X(ERFC, erfc(a))                                                                                           \
  X(RELU, a < 0 ? 0 : a)                                                                                     \
  X(RELU6, a<0 ? 0 : a> 6 ? 6 : a)                                                                           \
  X(ELU, a < 0 ? expm1(a) : a)                                                                               \
  X(SELU, MIX_REF_SELU_SCALE *(a < 0 ? MIX_REF_SELU_ALPHA * expm1(a) : a))                                   \
  X(SOFTPLUS, (a > 0 ? a : 0) + log1p(exp(-fabs(a))))                                                        \
  X(SOFTSIGN, a / (1 + fabs(a)))                                                                             \
  X(LEAKY_RELU, a > 0 ? a : alpha * a)                                                                       \
  X(ADD, a + b)                                                                                              \
  X(SUBTRACT, a - b)                                                                                         \
  X(MULTIPLY, a *b)                                                                                          \
  X(DIVIDE, a / b)                                                                                           \
  X(FLOOR_DIVIDE, floor(a / b))                                                                              \
  X(FLOOR_MOD, floor_mod(a, b))                                                                              \
  X(POWER, pow(a, b))                                                                                        \
  X(MAXIMUM, a != a || a > b ? a : b)                                                                        \
  X(MINIMUM, a != a || a < b ? a : b)                                                                        \
  X(SQUARED_DIFFERENCE, (a - b) * (a - b))                                                                   \
  X(RELU_GRAD, b > 0 ? a : a * 0)                                                                            \
  X(RELU6_GRAD, b > 0 && b < 6 ? a : a * 0)                                                                  \
  X(LEAKY_RELU_GRAD, b > 0 ? a : alpha * a)                                                                  \
  X(SOFTPLUS_GRAD, a *sigmoid(b))                                                                            \
  X(SOFTSIGN_GRAD, a / ((1 + fabs(b)) * (1 + fabs(b))))                                                      \
  X(ELU_GRAD, b < 0 ? a * (b + 1) : a)                                                                       \
  X(SELU_GRAD, b < 0 ? a * (b + MIX_REF_SELU_SCALE * MIX_REF_SELU_ALPHA) : a * MIX_REF_SELU_SCALE)           \
  X(TANH_GRAD, b *(1 - a * a))                                                                               \
  X(SIGMOID_GRAD, b *a *(1 - a))                                                                             \
  X(SQRT_GRAD, b * 0.5 / a)                                                                                  \
  X(RSQRT_GRAD, -0.5 * b * a * a * a)                                                                        \
  X(RECIPROCAL_GRAD, -b *a *a)                                                                               \
  X(CLIP, clip(a, b, c))

/* On int64, wrapped to the dtype afterwards. Sums and products are unsigned, because unsigned overflow is
 * defined. */
#define MIX_REF_INTEGER_FORMULAS(X)                                                                          \
  X(IDENTITY, a)                                                                                             \
  X(NEGATIVE, 0 - (uint64_t)a)                                                                               \
  X(ABS, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)                                                              \
  X(SIGN, (a > 0) - (a < 0))                                                                                 \
  X(FLOOR, a)                                                                                                \
  X(CEIL, a)                                                                                                 \
  X(ROUND, a)                                                                                                \
  X(SQUARE, (uint64_t)a *(uint64_t)a)                                                                        \
  X(RELU, a < 0 ? 0 : a)                                                                                     \
  X(RELU6, a<0 ? 0 : a> 6 ? 6 : a)                                                                           \
  X(ADD, (uint64_t)a + (uint64_t)b)                                                                          \
  X(SUBTRACT, (uint64_t)a - (uint64_t)b)                                                                     \
  X(MULTIPLY, (uint64_t)a *(uint64_t)b)                                                                      \
  X(MAXIMUM, a > b ? a : b)                                                                                  \
  X(MINIMUM, a < b ? a : b)                                                                                  \
  X(SQUARED_DIFFERENCE, ((uint64_t)a - (uint64_t)b) * ((uint64_t)a - (uint64_t)b))                           \
  X(RELU_GRAD, b > 0 ? a : 0)                                                                                \
  X(RELU6_GRAD, b > 0 && b < 6 ? a : 0)                                                                      \
  X(CLIP, (a > b ? a : b) < c ? (a > b ? a : b) : c)

#define MIX_REF_COMPARE_FORMULAS(X)                                                                          \
  X(EQUAL, a == b)                                                                                           \
  X(NOT_EQUAL, a != b)                                                                                       \
  X(LESS, a < b)                                                                                             \
  X(LESS_EQUAL, a <= b)                                                                                      \
  X(GREATER, a > b)                                                                                          \
  X(GREATER_EQUAL, a >= b)

/* Real operand, bool result. */
#define MIX_REF_CLASSIFY_FORMULAS(X)                                                                         \
  X(IS_FINITE, isfinite(a))                                                                                  \
  X(IS_INF, isinf(a))                                                                                        \
  X(IS_NAN, isnan(a))

/* Bool operands, bool result. */
#define MIX_REF_LOGICAL_FORMULAS(X)                                                                          \
  X(IDENTITY, a)                                                                                             \
  X(MAXIMUM, a || b)                                                                                         \
  X(MINIMUM, a &&b)                                                                                          \
  X(LOGICAL_NOT, !a)                                                                                         \
  X(LOGICAL_AND, a &&b)                                                                                      \
  X(LOGICAL_OR, a || b)

#endif
