/* remove_identities: replaces identities and casts to the same dtype by their operands. */
#include "passes/passes.h"

#include "tensor/shape.h"

/* The operand that the node returns unchanged, or -1. */
static int passed_on(const mix_ir *ir, const mix_ir_node *node) {
  if (!(node->op->flags & MIX_OP_ELEMENTWISE)) return -1;
  const mix_ir_value *in = &ir->values[node->inputs[0]], *out = &ir->values[node->first_output];
  if (!mix_shape_equal(in->shape, out->shape)) return -1; /* a broadcast */
  if (node->op->opcode == MIX_OPCODE_IDENTITY) return node->inputs[0];
  if (node->op->opcode == MIX_OPCODE_CAST && in->dtype == out->dtype) return node->inputs[0];
  return -1;
}

bool mix_pass_remove_identities(mix_ir *ir) {
  int *becomes = mix_ir_ints(ir, ir->value_count + 1);
  bool *condition = mix_ir_conditions(ir); /* a guard stays a computed value */
  if (!becomes || !condition) return false;
  for (int v = 0; v < ir->value_count; v++) becomes[v] = v;
  for (int n = 0; n < ir->node_count; n++) {
    mix_ir_node *node = &ir->nodes[n];
    for (int i = 0; i < node->input_count; i++) node->inputs[i] = becomes[node->inputs[i]];
    int operand = node->dead || node->source ? -1 : passed_on(ir, node);
    if (operand < 0 || condition[node->first_output]) continue;
    becomes[node->first_output] = operand;
    node->dead = true;
  }
  for (int i = 0; i < ir->result_count; i++) ir->results[i] = becomes[ir->results[i]];
  for (int i = 0; i < ir->variable_count; i++) ir->variables[i].exit = becomes[ir->variables[i].exit];
  return mix_ir_sort(ir);
}
