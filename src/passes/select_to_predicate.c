#include "passes/passes.h"

/* A skipped step writes no byte: where a variable ends as select(condition, new, its own old value) with a
 * scalar condition, and nothing else uses the selection, the program that makes `new` may write straight into
 * the variable, under the condition. Other uses of `new` under the same condition (a slot's new value in its
 * weight's update) join that program; any other use leaves a copy under the condition. A condition that is a
 * variable's own old value could be overwritten before it is asked, and stays a selection. */
bool mix_pass_select_to_predicate(mix_ir *ir) {
  int *uses = mix_ir_uses(ir);
  if (!uses) return false;
  for (int i = 0; i < ir->variable_count; i++) {
    mix_ir_variable *variable = &ir->variables[i];
    const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, variable->exit)];
    if (variable->exit == variable->entry || node->source || node->op != &mix_op_select ||
        variable->guard >= 0)
      continue;
    int condition = node->inputs[0], fresh = node->inputs[1], old = node->inputs[2];
    if (ir->values[condition].shape.rank != 0 || old != variable->entry || uses[variable->exit] != 1)
      continue;
    if (!mix_shape_equal(ir->values[fresh].shape, ir->values[variable->entry].shape)) continue;
    const mix_ir_node *decides = &ir->nodes[mix_ir_producer(ir, condition)];
    if (ir->nodes[mix_ir_producer(ir, fresh)].source || decides->source || (decides->op->flags & MIX_OP_VIEW))
      continue;
    uses[variable->exit] = 0;
    ir->nodes[mix_ir_producer(ir, variable->exit)].dead = true;
    variable->exit = fresh;
    variable->guard = condition;
  }
  return mix_pass_dce(ir);
}
