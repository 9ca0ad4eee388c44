/* Arguments that a graph does nothing with but cast them. */
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

mix_dtype mix_ir_cast_of_argument(const mix_ir *ir, int argument) {
  const int value = mix_ir_argument(ir, argument);
  mix_dtype found = MIX_DTYPE_NONE;
  if (value < 0 || is_result(ir, value)) return found;
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
