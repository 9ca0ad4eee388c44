/* Opcodes of the element-wise operations, the instructions of fused programs (ir/program.h). */
#pragma once

#include "ops/list.h"
#include <mixtape/dtype.h>

typedef enum mix_opcode {
  MIX_OPCODE_NONE,
#define MIX_OPCODE_ENUM(name, code, ...) MIX_OPCODE_##code,
  MIX_ELEMENTWISE_OPS(MIX_OPCODE_ENUM)
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
/* True if an element's place in the tensor decides its bits: it draws random bits. */
static inline bool mix_opcode_draws(mix_opcode opcode) { return opcode == MIX_OPCODE_STOCHASTIC_ROUND; }
/* True if an instruction has an immediate, the number in its op's mix_alpha_attributes. */
static inline bool mix_opcode_has_immediate(mix_opcode opcode) {
  return opcode == MIX_OPCODE_LEAKY_RELU || opcode == MIX_OPCODE_LEAKY_RELU_GRAD || mix_opcode_draws(opcode);
}
