/* Opcodes of the element-wise operations, the instructions of fused programs (ir/program.h). */
#ifndef MIX_OPS_ELEMENTWISE_H
#define MIX_OPS_ELEMENTWISE_H

#include <mixtape/dtype.h>
#include <stdbool.h>

/* code, operands, kind of the result: S same as the operands, B bool, C another dtype (cast) */
#define MIX_OPCODE_LIST(X)                                                                                  \
  X(IDENTITY, 1, S) X(CAST, 1, C)                                                                           \
  X(NEGATIVE, 1, S) X(ABS, 1, S) X(SIGN, 1, S) X(FLOOR, 1, S) X(CEIL, 1, S) X(ROUND, 1, S)                  \
  X(SQRT, 1, S) X(RSQRT, 1, S) X(SQUARE, 1, S) X(RECIPROCAL, 1, S) X(EXP, 1, S) X(EXPM1, 1, S)              \
  X(LOG, 1, S) X(LOG1P, 1, S) X(SIN, 1, S) X(COS, 1, S) X(TANH, 1, S) X(SIGMOID, 1, S)                      \
  X(ERF, 1, S) X(ERFC, 1, S) X(RELU, 1, S) X(RELU6, 1, S) X(ELU, 1, S) X(SELU, 1, S)                        \
  X(SOFTPLUS, 1, S) X(SOFTSIGN, 1, S) X(LEAKY_RELU, 1, S) /* immediate: alpha */                            \
  X(IS_FINITE, 1, B) X(IS_INF, 1, B) X(IS_NAN, 1, B) X(LOGICAL_NOT, 1, B)                                   \
  X(ADD, 2, S) X(SUBTRACT, 2, S) X(MULTIPLY, 2, S) X(DIVIDE, 2, S)                                          \
  X(FLOOR_DIVIDE, 2, S) X(FLOOR_MOD, 2, S) X(POWER, 2, S)                                                   \
  X(MAXIMUM, 2, S) X(MINIMUM, 2, S) /* a NaN operand gives NaN */ X(SQUARED_DIFFERENCE, 2, S)               \
  X(EQUAL, 2, B) X(NOT_EQUAL, 2, B) X(LESS, 2, B) X(LESS_EQUAL, 2, B)                                       \
  X(GREATER, 2, B) X(GREATER_EQUAL, 2, B) X(LOGICAL_AND, 2, B) X(LOGICAL_OR, 2, B)                          \
  /* gradients with TensorFlow's operand order: (dy, x) */                                                  \
  X(RELU_GRAD, 2, S) X(RELU6_GRAD, 2, S) X(LEAKY_RELU_GRAD, 2, S) X(SOFTPLUS_GRAD, 2, S)                    \
  X(SOFTSIGN_GRAD, 2, S)                                                                                    \
  /* (dy, y) */                                                                                             \
  X(ELU_GRAD, 2, S) X(SELU_GRAD, 2, S)                                                                      \
  /* (y, dy) */                                                                                             \
  X(TANH_GRAD, 2, S) X(SIGMOID_GRAD, 2, S) X(SQRT_GRAD, 2, S) X(RSQRT_GRAD, 2, S) X(RECIPROCAL_GRAD, 2, S)  \
  /* select: bool, then two of the result's dtype */                                                        \
  X(SELECT, 3, S) X(CLIP, 3, S)

typedef enum mix_opcode {
  MIX_OPCODE_NONE,
#define MIX_OPCODE_ENUM(code, operands, kind) MIX_OPCODE_##code,
  MIX_OPCODE_LIST(MIX_OPCODE_ENUM)
#undef MIX_OPCODE_ENUM
  MIX_OPCODE_COUNT
} mix_opcode;

int mix_opcode_operands(mix_opcode opcode);
const char *mix_opcode_name(mix_opcode opcode);
/* True if an operation on this dtype can meet invalid values: an integer divided by zero, a negative
 * power. */
static inline bool mix_opcode_may_fail(mix_opcode opcode, mix_dtype dtype) {
  return (opcode == MIX_OPCODE_FLOOR_DIVIDE || opcode == MIX_OPCODE_FLOOR_MOD ||
          opcode == MIX_OPCODE_POWER) &&
         mix_dtype_is_integer(dtype);
}
/* True if the elements after the last full SIMD packet of eight use another formula, as in TensorFlow when
 * registers are float32. The result bits then depend on the position of an element. */
static inline bool mix_opcode_has_tail(mix_opcode opcode) {
  return opcode == MIX_OPCODE_RSQRT || opcode == MIX_OPCODE_RECIPROCAL || opcode == MIX_OPCODE_LOG;
}

#endif
