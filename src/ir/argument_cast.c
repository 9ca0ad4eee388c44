/* Arguments that a graph does nothing with but round them to 16 bits. */
#include "ir/argument_cast.h"

static bool uses(const mix_ir_node *node, int value) {
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] == value) return true;
  return node->guard == value;
}

static bool is_result(const mix_ir *ir, int value) {
  for (int r = 0; r < ir->result_count; r++)
    if (ir->results[r] == value) return true;
  for (int i = 0; i < ir->variable_count; i++)
    if (ir->variables[i].exit == value) return true;
  return false;
}

int mix_ir_argument(const mix_ir *ir, int argument) {
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (!node->dead && node->source == MIX_IR_ARGUMENT && node->index == argument) return node->first_output;
  }
  return -1;
}

/* The dtype to which all uses of a value cast it. */
static mix_dtype cast_of(const mix_ir *ir, int value) {
  mix_dtype found = MIX_DTYPE_NONE;
  if (is_result(ir, value)) return found;
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->dead || !uses(node, value)) continue;
    const mix_dtype dtype = ir->values[node->first_output].dtype;
    if (node->op->opcode != MIX_OPCODE_CAST || (found != MIX_DTYPE_NONE && found != dtype))
      return MIX_DTYPE_NONE;
    found = dtype;
  }
  return found;
}

mix_dtype mix_ir_rounding_of_argument(const mix_ir *ir, int argument) {
  const int value = mix_ir_argument(ir, argument);
  if (value < 0 || ir->values[value].dtype != MIX_FLOAT32) return MIX_DTYPE_NONE;
  const mix_dtype dtype = cast_of(ir, value);
  return mix_dtype_is_16_bit(dtype) ? dtype : MIX_DTYPE_NONE;
}
