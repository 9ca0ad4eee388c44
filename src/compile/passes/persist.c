/* The 16-bit copy of a weight: casts of a variable's value on entry become derived state, a hidden variable that the program which
 * writes the weight writes too, under the same guard. No step casts weights again; whoever writes the weight elsewhere leaves the
 * copy behind, and a run first brings it up to date (compile/function.c). */
#include "compile/passes/passes.h"

static bool is_16_bit(mix_dtype dtype) { return dtype == MIX_FLOAT16 || dtype == MIX_BFLOAT16; }

static bool casts(const mix_ir *ir, const mix_ir_node *node, int value) {
  return !node->dead && node->op == &mix_op_cast && node->inputs[0] == value && is_16_bit(ir->values[node->first_output].dtype);
}

/* A cast of `value` at the end of the node array; its result value, -1 with the error recorded. */
static int add_cast(mix_ir *ir, int value, mix_dtype dtype, const char *scope) {
  mix_cast_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!attributes) return -1;
  attributes->dtype = dtype;
  int node =
      mix_ir_add(ir, &mix_op_cast, attributes, 1, &value, 1, &(mix_ir_value){.dtype = dtype, .shape = ir->values[value].shape});
  if (node < 0) return -1;
  ir->nodes[node].scope = scope;
  return ir->nodes[node].first_output;
}

static bool persist(mix_ir *ir, int index, int cast_node) {
  int old = ir->nodes[cast_node].first_output;
  mix_dtype dtype = ir->values[old].dtype;
  const char *scope = ir->nodes[cast_node].scope;
  mix_variable *copy = mix_variable_copy(ir->variables[index].variable, dtype);
  if (!copy) return false;
  int at = mix_ir_add_variable(ir, copy);
  if (at < 0) return false;
  const mix_ir_variable *weight = &ir->variables[index];
  if (weight->exit != weight->entry) {
    int exit = add_cast(ir, weight->exit, dtype, scope);
    if (exit < 0) return false;
    ir->variables[at].exit = exit;
    ir->variables[at].guard = ir->variables[index].guard;
  }
  ir->nodes[cast_node].dead = true;
  mix_ir_replace(ir, old, ir->variables[at].entry);
  return true;
}

bool mix_pass_persist(mix_ir *ir) {
  int variables = ir->variable_count, nodes = ir->node_count;
  for (int i = 0; i < variables; i++)
    for (int n = 0; n < nodes; n++)
      if (casts(ir, &ir->nodes[n], ir->variables[i].entry) && !persist(ir, i, n)) return false;
  return mix_ir_sort(ir);
}
