/* select_to_predicate: turns a select between the new and the old value of a variable into a store under a
 * guard. */
#include "passes/passes.h"

/* A skipped step writes no byte. Where a variable ends as select(condition, new, its own old value) with a
 * scalar condition, and the selection has no other use, the program that computes `new` may write into the
 * variable under the guard `condition`. Other uses of `new` under the same guard (a slot's new value in its
 * weight's update) join that program; any other use leaves a copy under the guard. A condition that is the
 * old value of a variable could be overwritten before it is read, so it stays a select. */
bool mix_pass_select_to_predicate(mix_ir *ir) {
  int *uses = mix_ir_uses(ir);
  if (!uses) return false;
  for (int i = 0; i < ir->variable_count; i++) {
    mix_ir_variable *variable = &ir->variables[i];
    const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, variable->exit)];
    if (variable->exit == variable->entry || node->source || node->op->opcode != MIX_OPCODE_SELECT ||
        variable->guard >= 0)
      continue;
    int condition = node->inputs[0], new_value = node->inputs[1], old = node->inputs[2];
    if (ir->values[condition].shape.rank != 0 || old != variable->entry || uses[variable->exit] != 1)
      continue;
    if (!mix_shape_equal(ir->values[new_value].shape, ir->values[variable->entry].shape)) continue;
    const mix_ir_node *condition_node = &ir->nodes[mix_ir_producer(ir, condition)];
    if (ir->nodes[mix_ir_producer(ir, new_value)].source || condition_node->source ||
        (condition_node->op->flags & MIX_OP_VIEW))
      continue;
    uses[variable->exit] = 0;
    ir->nodes[mix_ir_producer(ir, variable->exit)].dead = true;
    variable->exit = new_value;
    variable->guard = condition;
  }
  return mix_pass_dce(ir);
}
