/* Guards of nodes, and clones of cheap nodes, for element-wise fusion. */
#include "passes/rematerialize.h"

#include "tensor/shape.h"

/* Users of each node, as linked lists that can grow while nodes are added. */
typedef struct use {
  int consumer, next;
} use;

typedef struct use_lists {
  int *first; /* by node; -1: none */
  use *uses;
  int count, node_capacity, use_capacity;
} use_lists;

bool mix_ir_fusable(const mix_ir_node *node) {
  return !node->dead && !node->source && (node->op->flags & MIX_OP_ELEMENTWISE) &&
         !(node->op->flags & MIX_OP_STATEFUL) && node->op->opcode != MIX_OPCODE_NONE &&
         node->output_count == 1;
}

bool mix_ir_finite_check(const mix_ir_node *node) {
  return !node->dead && node->op->reduction == MIX_REDUCE_ALL_FINITE && !(node->op->flags & MIX_OP_STATEFUL);
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

static bool lists_build(mix_ir *ir, use_lists *lists) {
  int inputs = 0;
  for (int n = 0; n < ir->node_count; n++) inputs += ir->nodes[n].input_count + 1;
  lists->node_capacity = ir->node_count * 2 + 64; /* the capacity bounds the number of clones */
  lists->use_capacity = inputs * 2 + 256;
  lists->first = mix_ir_alloc(ir, sizeof(int) * (size_t)lists->node_capacity);
  lists->uses = mix_ir_alloc(ir, sizeof(use) * (size_t)lists->use_capacity);
  if (!lists->first || !lists->uses) return false;
  for (int n = 0; n < lists->node_capacity; n++) lists->first[n] = -1;
  return true;
}

static bool lists_add(mix_ir *ir, use_lists *lists, int n) {
  const mix_ir_node *node = &ir->nodes[n];
  for (int i = 0; i < node->input_count; i++) {
    if (lists->count == lists->use_capacity) return false;
    int producer = mix_ir_producer(ir, node->inputs[i]);
    lists->uses[lists->count] = (use){n, lists->first[producer]};
    lists->first[producer] = lists->count++;
  }
  return true;
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

static bool room_for_clone(const mix_ir *ir, const use_lists *lists) {
  return ir->node_count < lists->node_capacity && lists->count + 4 <= lists->use_capacity;
}

static void consumer_set_input(mix_ir *ir, int consumer, int from, int to) {
  mix_ir_node *node = &ir->nodes[consumer];
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] == from) node->inputs[i] = to;
}

/* One clone of node n for its users under guard `key`. */
static bool clone_for_key(mix_ir *ir, use_lists *lists, int n, int key) {
  mix_ir_node node = ir->nodes[n];
  mix_type type = ir->values[node.first_output].type;
  int clone = mix_ir_add(ir, node.op, node.attributes, node.input_count, node.inputs, 1, &type);
  if (clone < 0) return false;
  ir->nodes[clone].scope = node.scope;
  ir->nodes[clone].keep = node.keep;
  ir->nodes[clone].guard_key = key;
  int *link = &lists->first[n];
  while (*link >= 0) {
    use *u = &lists->uses[*link];
    if (ir->nodes[u->consumer].guard_key != key) {
      link = &u->next;
      continue;
    }
    consumer_set_input(ir, u->consumer, node.first_output, ir->nodes[clone].first_output);
    int moved = *link;
    *link = u->next;
    lists->uses[moved].next = lists->first[clone];
    lists->first[clone] = moved;
  }
  return lists_add(ir, lists, clone);
}

bool mix_ir_guard_keys(mix_ir *ir) {
  enum { UNSET = -2, NONE = -1 };
  use_lists lists = {0};
  if (!lists_build(ir, &lists)) return false;
  int count = ir->node_count;
  int *key = mix_ir_alloc(ir, sizeof(int) * (size_t)(count + 1));
  /* a result, an exit or a guard: has a use that is not a node */
  bool *pinned = mix_ir_alloc(ir, sizeof(bool) * (size_t)(count + 1));
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
  for (int n = 0; n < count; n++)
    if (!lists_add(ir, &lists, n)) return false;
  for (int n = count - 1; n >= 0; n--) {
    int found = key[n], other = UNSET;
    for (int u = lists.first[n]; u >= 0; u = lists.uses[u].next) {
      int theirs = ir->nodes[lists.uses[u].consumer].guard_key;
      if (found == UNSET)
        found = theirs;
      else if (found != theirs)
        other = theirs;
    }
    if (other != UNSET && !pinned[n] && cheap(ir, &ir->nodes[n])) {
      /* The node keeps its users without a guard; each guard gets a clone of its own. */
      for (int u = lists.first[n]; u >= 0 && room_for_clone(ir, &lists);) {
        int theirs = ir->nodes[lists.uses[u].consumer].guard_key;
        if (theirs == NONE) {
          u = lists.uses[u].next;
          continue;
        }
        if (!clone_for_key(ir, &lists, n, theirs)) return false;
        u = lists.first[n];
      }
      found = NONE;
    } else if (other != UNSET) {
      found = NONE;
    }
    bool keyed =
        mix_ir_fusable(&ir->nodes[n]) || mix_ir_sum(ir, &ir->nodes[n]) || mix_ir_update(&ir->nodes[n]);
    ir->nodes[n].guard_key = found == UNSET || !keyed ? NONE : found;
  }
  return mix_ir_sort(ir);
}
