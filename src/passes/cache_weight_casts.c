/* The 16-bit copy of a weight: casts of a variable's value on entry become derived state, a hidden variable
 * that the program which writes the weight writes too, under the same guard. No step casts weights again;
 * whoever writes the weight elsewhere leaves the copy behind, and a run first brings it up to date
 * (compile/function.c). What reads the 16-bit numbers as float32 ("upcast_matmul") has a copy that holds them
 * so. */
#include "passes/passes.h"
#include "tensor/type.h"

static bool casts(const mix_ir_node *node, int value) {
  return !node->dead && node->op == &mix_op_cast && node->inputs[0] == value;
}

/* A cast of `value` at the end of the node array; its result value, -1 with the error recorded. */
static int add_cast(mix_ir *ir, int value, mix_dtype dtype, const char *scope) {
  mix_cast_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!attributes) return -1;
  attributes->dtype = dtype;
  int node = mix_ir_add(ir, &mix_op_cast, attributes, 1, &value, 1,
                        &(mix_type){.dtype = dtype, .shape = ir->values[value].shape});
  if (node < 0) return -1;
  ir->nodes[node].scope = scope;
  return ir->nodes[node].first_output;
}

/* The ir's variable for the copy, if it has one already ("cse" is switched off, and several casts are alike);
 * -1. */
static int find_variable(const mix_ir *ir, const mix_variable *copy) {
  for (int i = 0; i < ir->variable_count; i++)
    if (ir->variables[i].variable == copy) return i;
  return -1;
}

/* The result of the node, a cast to `dtype` or (another) one of that back to float32, becomes a copy. */
static bool persist(mix_ir *ir, int index, int cast_node, mix_dtype dtype) {
  int old = ir->nodes[cast_node].first_output;
  const char *scope = ir->nodes[cast_node].scope;
  bool widened = ir->values[old].dtype != dtype;
  mix_variable *copy = mix_variable_copy(ir->variables[index].variable, dtype, widened);
  if (!copy) return false;
  int at = find_variable(ir, copy);
  bool known = at >= 0;
  if (!known && (at = mix_ir_add_variable(ir, copy)) < 0) return false;
  const mix_ir_variable *weight = &ir->variables[index];
  if (!known && weight->exit != weight->entry) {
    int exit = add_cast(ir, weight->exit, dtype, scope);
    if (exit >= 0 && widened) exit = add_cast(ir, exit, MIX_FLOAT32, scope);
    if (exit < 0) return false;
    ir->variables[at].exit = exit;
    ir->variables[at].guard = ir->variables[index].guard;
  }
  ir->nodes[cast_node].dead = true;
  mix_ir_replace(ir, old, ir->variables[at].entry);
  return true;
}

/* Cast n of variable `index` to 16 bits: what widens it again, and what reads it as it is. */
static bool persist_both(mix_ir *ir, int index, int n, int nodes) {
  const int narrow = ir->nodes[n].first_output;
  const mix_dtype dtype = ir->values[narrow].dtype;
  for (int m = n + 1; m < nodes; m++)
    if (casts(&ir->nodes[m], narrow) && ir->values[ir->nodes[m].first_output].dtype == MIX_FLOAT32) {
      if (!persist(ir, index, m, dtype)) return false;
      break;
    }
  const int *uses = mix_ir_uses(ir);
  if (!uses) return false;
  if (uses[narrow]) return persist(ir, index, n, dtype);
  ir->nodes[n].dead = true;
  return true;
}

bool mix_pass_cache_weight_casts(mix_ir *ir) {
  int variables = ir->variable_count, nodes = ir->node_count;
  for (int i = 0; i < variables; i++)
    for (int n = 0; n < nodes; n++)
      if (casts(&ir->nodes[n], ir->variables[i].entry) &&
          mix_dtype_is_16_bit(ir->values[ir->nodes[n].first_output].dtype) && !persist_both(ir, i, n, nodes))
        return false;
  return mix_ir_sort(ir);
}
