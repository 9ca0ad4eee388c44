/* dce: dead code elimination. Removes nodes that no result, variable, guard or stateful node needs. */
#include "passes/passes.h"

bool mix_pass_dce(mix_ir *ir) {
  char *needed = mix_ir_alloc(ir, (size_t)ir->node_count + 1);
  if (!needed) return false;
  for (int i = 0; i < ir->result_count; i++) needed[mix_ir_producer(ir, ir->results[i])] = 1;
  for (int i = 0; i < ir->variable_count; i++) {
    needed[mix_ir_producer(ir, ir->variables[i].exit)] = 1;
    if (ir->variables[i].guard >= 0) needed[mix_ir_producer(ir, ir->variables[i].guard)] = 1;
  }
  /* Operands come before uses, so one backward scan marks everything reachable. */
  for (int n = ir->node_count - 1; n >= 0; n--) {
    mix_ir_node *node = &ir->nodes[n];
    if (!needed[n] && !(node->op->flags & MIX_OP_STATEFUL)) {
      node->dead = !node->source || node->source == MIX_IR_CONSTANT;
      continue;
    }
    for (int i = 0; i < node->input_count; i++) needed[mix_ir_producer(ir, node->inputs[i])] = 1;
    if (node->guard >= 0) needed[mix_ir_producer(ir, node->guard)] = 1;
  }
  return mix_ir_sort(ir);
}
