/* cache_weight_casts: casts of a weight to 16 bits become cached copies. Such a cast becomes the value on
 * entry of a hidden variable, and the program that updates the weight writes the copy too, under the same
 * guard. So no step casts weights again. A write from outside the plan leaves the copy stale, and the next
 * run refreshes it first (compile/function.c). Where "upcast_matmul" reads the 16-bit values as float32, the
 * copy holds them as float32. */
#include "passes/passes.h"
#include "passes/repeat_nodes.h"

#include "graph/divided_variable.h"

static bool is_cast_of(const mix_ir_node *node, int value) {
  return !node->dead && node->op->opcode == MIX_OPCODE_CAST && node->inputs[0] == value;
}

/* The casts of each value. */
typedef struct casts {
  int *first, *next; /* by value, by node: a cast of the value, the next one; -1: none */
  const int *uses;   /* by value, before the pass */
} casts;

static bool find_casts(mix_ir *ir, casts *all) {
  *all = (casts){.first = mix_ir_ints(ir, ir->value_count + 1),
                 .next = mix_ir_ints(ir, ir->node_count + 1),
                 .uses = mix_ir_uses(ir)};
  if (!all->first || !all->next || !all->uses) return false;
  for (int v = 0; v < ir->value_count; v++) all->first[v] = -1;
  for (int n = ir->node_count - 1; n >= 0; n--) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->dead || node->op->opcode != MIX_OPCODE_CAST) continue;
    all->next[n] = all->first[node->inputs[0]];
    all->first[node->inputs[0]] = n;
  }
  return true;
}

/* The ir variable that holds this copy, or -1. It exists already where "cse" is off and several casts are
 * alike. */
static int find_variable(const mix_ir *ir, const mix_variable *copy) {
  for (int i = 0; i < ir->variable_count; i++)
    if (ir->variables[i].variable == copy) return i;
  return -1;
}

/* Replaces the result of `cast_node` by a cached copy. The node is a cast to `dtype`, or a cast of such a
 * value back to float32. */
static bool cache_cast(mix_ir *ir, int index, int cast_node, mix_dtype dtype) {
  int old = ir->nodes[cast_node].first_output;
  const char *scope = ir->nodes[cast_node].scope;
  bool upcast = ir->values[old].dtype != dtype;
  mix_variable *copy = mix_variable_copy(ir->variables[index].variable, dtype, upcast);
  if (!copy) return false;
  int at = find_variable(ir, copy);
  bool known = at >= 0;
  if (!known && (at = mix_ir_add_variable(ir, copy)) < 0) return false;
  const mix_ir_variable *weight = &ir->variables[index];
  if (!known && weight->exit != weight->entry) {
    int exit = mix_ir_add_cast(ir, weight->exit, dtype, scope);
    if (exit >= 0 && upcast) exit = mix_ir_add_cast(ir, exit, MIX_FLOAT32, scope);
    if (exit < 0) return false;
    ir->variables[at].exit = exit;
    ir->variables[at].guard = ir->variables[index].guard;
  }
  ir->nodes[cast_node].dead = true;
  mix_ir_replace(ir, old, ir->variables[at].entry);
  return true;
}

/* Does a store under a condition take it? Such a store needs a value that a node computes, which the value on
 * entry of a variable is not. */
static bool is_stored_under_guard(const mix_ir *ir, int value) {
  for (int i = 0; i < ir->variable_count; i++)
    if (ir->variables[i].exit == value && ir->variables[i].guard >= 0) return true;
  return false;
}

/* Caches cast n of variable `index` to 16 bits: first its casts back to float32, of which each loop that
 * reads them has one, then the 16-bit value itself if it still has uses. */
static bool cache_casts(mix_ir *ir, int index, int n, const casts *all) {
  const int narrow = ir->nodes[n].first_output;
  const mix_dtype dtype = ir->values[narrow].dtype;
  int uses = all->uses[narrow];
  for (int m = all->first[narrow]; m >= 0; m = all->next[m]) {
    if (!is_cast_of(&ir->nodes[m], narrow) || ir->values[ir->nodes[m].first_output].dtype != MIX_FLOAT32 ||
        is_stored_under_guard(ir, ir->nodes[m].first_output))
      continue;
    if (!cache_cast(ir, index, m, dtype)) return false;
    uses--;
  }
  if (uses) return cache_cast(ir, index, n, dtype);
  ir->nodes[n].dead = true;
  return true;
}

/* ---- weights of which no whole is here ---- */

/* What all ranks give of it, and not what the user's function assigns? */
static bool is_collected(const mix_ir *ir, int value) {
  const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, value)];
  if (node->source || node->op->opcode != MIX_OPCODE_CAST) return false;
  const mix_ir_node *from = &ir->nodes[mix_ir_producer(ir, node->inputs[0])];
  return !from->source && mix_op_is_collective(from->op);
}

/* The graph no longer has the variable, which nothing reads. */
static void drop_variable(mix_ir *ir, int index) {
  ir->nodes[mix_ir_producer(ir, ir->variables[index].entry)].dead = true;
  mix_release(ir->variables[index].variable);
  ir->variable_count--;
  for (int i = index; i < ir->variable_count; i++) {
    ir->variables[i] = ir->variables[i + 1];
    ir->nodes[mix_ir_producer(ir, ir->variables[i].entry)].index = i;
  }
}

/* Copies take the place of weights whose masters are divided among the ranks. Where something else reads or
 * assigns one, it stays, and the run fails unless the whole is here. */
static bool drop_divided(mix_ir *ir) {
  for (int i = ir->variable_count - 1; i >= 0; i--) {
    mix_ir_variable *weight = &ir->variables[i];
    if (!mix_variable_has_narrow(weight->variable)) continue;
    if (weight->exit != weight->entry && !is_collected(ir, weight->exit)) continue;
    weight->exit = weight->entry;
    weight->guard = -1;
    const int *uses = mix_ir_uses(ir);
    if (!uses) return false;
    if (!uses[weight->entry]) drop_variable(ir, i);
  }
  return true;
}

/* Node n, the casts of its result and theirs. Returns how many nodes the order then has. */
static int place(const int *cast, const int *next, int n, int *order, int placed) {
  order[placed++] = n;
  for (int c = cast[n]; c >= 0; c = next[c]) placed = place(cast, next, c, order, placed);
  return placed;
}

/* Moves the casts of new values, which are the nodes from `first` on beside sources, behind what computes
 * these: of a large graph's ends "fuse" makes no program. */
static bool move_casts(mix_ir *ir, int first) {
  const int count = ir->node_count;
  if (count == first) return true;
  int *cast = mix_ir_ints(ir, count + 1), *next = mix_ir_ints(ir, count + 1); /* by node: of its result */
  int *order = mix_ir_ints(ir, count + 1), placed = 0;
  if (!cast || !next || !order) return false;
  for (int n = 0; n < count; n++) cast[n] = -1;
  for (int n = count - 1; n >= first; n--) {
    if (ir->nodes[n].source) continue;
    const int producer = mix_ir_producer(ir, ir->nodes[n].inputs[0]);
    next[n] = cast[producer];
    cast[producer] = n;
  }
  for (int n = 0; n < count; n++)
    if (n < first || ir->nodes[n].source) placed = place(cast, next, n, order, placed);
  return mix_ir_set_order(ir, order);
}

bool mix_pass_cache_weight_casts(mix_ir *ir) {
  const int variables = ir->variable_count, nodes = ir->node_count;
  casts all;
  if (!find_casts(ir, &all)) return false;
  for (int i = 0; i < variables; i++)
    for (int n = all.first[ir->variables[i].entry]; n >= 0; n = all.next[n])
      if (is_cast_of(&ir->nodes[n], ir->variables[i].entry) &&
          mix_dtype_is_16_bit(ir->values[ir->nodes[n].first_output].dtype) &&
          !is_stored_under_guard(ir, ir->nodes[n].first_output) && !cache_casts(ir, i, n, &all))
        return false;
  return move_casts(ir, nodes) && drop_divided(ir) && mix_pass_dce(ir) && mix_ir_sort(ir);
}
