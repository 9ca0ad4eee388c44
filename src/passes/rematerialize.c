/* Guards of nodes, and clones of cheap nodes, for element-wise fusion. */
#include "passes/rematerialize.h"
#include "passes/clone_nodes.h"

#include "tensor/shape.h"

bool mix_ir_fusable(const mix_ir_node *node) {
  return !node->dead && !node->source && (node->op->flags & MIX_OP_ELEMENTWISE) &&
         !(node->op->flags & MIX_OP_STATEFUL) && node->op->opcode != MIX_OPCODE_NONE &&
         node->output_count == 1;
}

bool mix_ir_finite_check(const mix_ir_node *node) {
  return !node->dead && node->op->reduction == MIX_REDUCE_ALL_FINITE && !(node->op->flags & MIX_OP_STATEFUL);
}

bool mix_ir_is_product(const mix_ir *ir, int value) {
  const mix_ir_node *producer = &ir->nodes[mix_ir_producer(ir, value)];
  if ((producer->op->flags & MIX_OP_VIEW) && !producer->source)
    producer = &ir->nodes[mix_ir_producer(ir, producer->inputs[0])];
  return !producer->source && producer->op->contraction && producer->op->contraction->epilogue;
}

bool mix_ir_update(const mix_ir_node *node) {
  return !node->dead && !node->source && (node->op->flags & MIX_OP_UPDATES);
}

/* The axes of a reduction, as bits. */
static unsigned reduced_axes(const mix_ir_node *node) {
  if (!node->op->axes) return ~0u;
  const int *list = (const int *)((const char *)node->attributes + node->op->axes->offset);
  unsigned axes = 0;
  for (int i = 0; i < list[0]; i++) axes |= 1u << list[1 + i];
  return axes;
}

bool mix_ir_sum(const mix_ir *ir, const mix_ir_node *node) {
  const mix_reduction_kind reduction = node->op->reduction;
  if (node->dead || node->source || (reduction != MIX_REDUCE_TO_SUM && reduction != MIX_REDUCE_TO_MEAN) ||
      (node->op->flags & MIX_OP_STATEFUL))
    return false;
  const mix_ir_value *x = &ir->values[node->inputs[0]];
  if (!mix_dtype_is_floating(x->dtype) ||
      mix_shape_size(x->shape) <= mix_shape_size(ir->values[node->first_output].shape))
    return false;
  /* Axes of size 1 aside, those that are summed stand together, at one end. */
  const unsigned axes = reduced_axes(node);
  int changes = 0, before = -1;
  for (int d = 0; d < x->shape.rank; d++) {
    if (x->shape.dims[d] == 0) return false;
    if (x->shape.dims[d] == 1) continue;
    const int now = axes >> d & 1;
    changes += before >= 0 && now != before;
    before = now;
  }
  return changes <= 1;
}

mix_program_sum mix_ir_sum_form(const mix_ir *ir, const mix_ir_node *node) {
  const mix_shape shape = ir->values[node->inputs[0]].shape;
  const int64_t sums = mix_shape_size(ir->values[node->first_output].shape);
  const unsigned axes = reduced_axes(node);
  int last = shape.rank - 1;
  while (last > 0 && shape.dims[last] == 1) last--;
  mix_program_sum sum = {.kind = node->op->reduction};
  if (sums == 1) return sum;
  if (axes >> last & 1)
    sum.row = mix_shape_size(shape) / sums;
  else
    sum.column = sums;
  return sum;
}

/* Casts and products with a scalar: recomputing them costs less than a store and a load. */
static bool cheap(const mix_ir *ir, const mix_ir_node *node) {
  if (!mix_ir_fusable(node) || !mix_op_is_repeatable(node->op)) return false;
  int opcode = node->op->opcode, large = 0;
  if (opcode != MIX_OPCODE_CAST && opcode != MIX_OPCODE_MULTIPLY && opcode != MIX_OPCODE_DIVIDE &&
      opcode != MIX_OPCODE_NEGATIVE)
    return false;
  for (int i = 0; i < node->input_count; i++) large += ir->values[node->inputs[i]].shape.rank > 0;
  return large == 1;
}

bool mix_ir_guard_keys(mix_ir *ir) {
  enum { UNSET = -2, NONE = -1 };
  mix_uses uses;
  if (!mix_uses_build(&uses, ir)) return false;
  int count = ir->node_count;
  int *key = mix_ir_ints(ir, count + 1);
  /* a result, an exit or a guard: has a use that is not a node */
  bool *pinned = mix_ir_flags(ir, count + 1);
  if (!key || !pinned) return false;
  for (int n = 0; n < count; n++) key[n] = UNSET;
  for (int i = 0; i < ir->result_count; i++)
    key[mix_ir_producer(ir, ir->results[i])] = NONE, pinned[mix_ir_producer(ir, ir->results[i])] = true;
  for (int i = 0; i < ir->variable_count; i++) {
    const mix_ir_variable *variable = &ir->variables[i];
    if (variable->guard >= 0)
      key[mix_ir_producer(ir, variable->guard)] = NONE, pinned[mix_ir_producer(ir, variable->guard)] = true;
  }
  for (int i = 0; i < ir->variable_count; i++) {
    const mix_ir_variable *variable = &ir->variables[i];
    int producer = mix_ir_producer(ir, variable->exit);
    if (variable->exit == variable->entry) continue;
    pinned[producer] = true;
    key[producer] = key[producer] == UNSET || key[producer] == variable->guard ? variable->guard : NONE;
  }
  for (int n = count - 1; n >= 0; n--) {
    int found = key[n], other = UNSET;
    for (int u = uses.first[n]; u >= 0; u = uses.uses[u].next) {
      int theirs = uses.key[uses.uses[u].consumer];
      if (found == UNSET)
        found = theirs;
      else if (found != theirs)
        other = theirs;
    }
    if (other != UNSET && !pinned[n] && cheap(ir, &ir->nodes[n])) {
      /* The node keeps its users without a guard; each guard gets a clone of its own. */
      if (!mix_uses_clone_for_others(&uses, n, NONE)) return false;
      found = NONE;
    } else if (other != UNSET) {
      found = NONE;
    }
    bool keyed =
        mix_ir_fusable(&ir->nodes[n]) || mix_ir_sum(ir, &ir->nodes[n]) || mix_ir_update(&ir->nodes[n]);
    uses.key[n] = found == UNSET || !keyed ? NONE : found;
  }
  for (int n = 0; n < ir->node_count; n++) ir->nodes[n].guard_key = uses.key[n];
  return mix_ir_sort(ir);
}
