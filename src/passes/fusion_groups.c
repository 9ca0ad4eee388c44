/* Groups of nodes over the same iteration space and under the same guard, unless a path leads out of the
 * group and back in. */
#include "passes/fusion_groups.h"
#include "base/error.h"
#include "passes/rematerialize.h"

/* A join looks at the groups between the two, which keeps the pass linear. A training step of a large model
 * has some thousands of nodes, and what is further apart is no longer in a cache. */
enum { MAX_DISTANCE = 4096 };

int mix_fusion_root(mix_fusion_groups *g, int n) {
  while (g->root[n] != n) n = g->root[n] = g->root[g->root[n]];
  return n;
}

bool mix_fusion_is_sum(const mix_ir *ir, const mix_ir_node *node) {
  return ir->context->backend->max_sums && mix_ir_sum(ir, node);
}

bool mix_fusion_reduces(const mix_ir *ir, const mix_ir_node *node) {
  return mix_ir_finite_check(node) || mix_fusion_is_sum(ir, node);
}

bool mix_fusion_takes(const mix_ir *ir, const mix_ir_node *node) {
  return mix_ir_fusable(node) || mix_fusion_reduces(ir, node);
}

mix_shape mix_fusion_space(const mix_ir *ir, int n) {
  const mix_ir_node *node = &ir->nodes[n];
  return ir->values[mix_fusion_reduces(ir, node) ? node->inputs[0] : node->first_output].shape;
}

/* Pushes the groups that group `from` reads and that stand after group `a`. Returns true if it reads `a`
 * itself. */
static bool push_producers(mix_fusion_groups *g, int from, int a, int *depth) {
  bool reads_a = false;
  g->ir->visits++;
  for (int n = from; n >= 0; n = g->next[n]) {
    for (int i = 0; i < g->ir->nodes[n].input_count + 2; i++) {
      int before = mix_ir_predecessor(g->ir, g->collective_before, n, i);
      if (before < 0) continue;
      int r = mix_fusion_root(g, before);
      reads_a |= r == a;
      if (r == from || g->position[r] <= g->position[a] || g->seen[r] == g->search) continue;
      g->seen[r] = g->search;
      g->stack[(*depth)++] = r;
    }
  }
  return reads_a;
}

/* Would joining a and the later group b create a cycle, that is, is there a path from a to b through a third
 * group? Marks the groups between them that b depends on. */
static bool path_outside(mix_fusion_groups *g, int a, int b) {
  int depth = 0;
  g->search++;
  g->seen[b] = g->search;
  push_producers(g, b, a, &depth);
  while (depth)
    if (push_producers(g, g->stack[--depth], a, &depth)) return true;
  return false;
}

/* Reorders the positions from a to b: first what b depends on, then the joined group (root `joined`), then
 * the rest. Each part keeps its order. */
static void reorder(mix_fusion_groups *g, int a, int b, int joined) {
  int first = g->position[a], last = g->position[b], count = 0, position = first;
  g->ir->visits += (uint64_t)(last - first);
  for (int i = first + 1; i < last; i++) {
    int r = g->root_at[i];
    if (r < 0) continue;
    if (g->seen[r] == g->search)
      g->root_at[position] = r, g->position[r] = position, position++;
    else
      g->moved[count++] = r;
  }
  g->root_at[position] = joined;
  g->position[joined] = position++;
  for (int i = 0; i < count; i++, position++)
    g->root_at[position] = g->moved[i], g->position[g->moved[i]] = position;
  for (; position <= last; position++) g->root_at[position] = -1;
}

/* Number of distinct values that the joined group would read from outside; if more than `max`, max + 1. */
static int count_loads(mix_fusion_groups *g, int a, int b, int max) {
  mix_ir *ir = g->ir;
  int values[MIX_FUSION_MEMBERS * 4], count = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int n = pass ? b : a; n >= 0; n = g->next[n])
      for (int i = 0; i < ir->nodes[n].input_count; i++) {
        int value = ir->nodes[n].inputs[i], r = mix_fusion_root(g, mix_ir_producer(ir, value)), k = 0;
        if (r == a || r == b) continue;
        while (k < count && values[k] != value) k++;
        if (k < count) continue;
        if (count > max) return count;
        values[count++] = value;
      }
  return count;
}

/* Number of values of the joined group with users outside it. */
static int count_stores(mix_fusion_groups *g, int a, int b) {
  mix_ir *ir = g->ir;
  int count = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int n = pass ? b : a; n >= 0; n = g->next[n])
      for (int i = 0; i < ir->nodes[n].input_count; i++) g->used_inside[ir->nodes[n].inputs[i]]++;
  for (int pass = 0; pass < 2; pass++)
    for (int n = pass ? b : a; n >= 0; n = g->next[n])
      count += g->uses[ir->nodes[n].first_output] > g->used_inside[ir->nodes[n].first_output];
  for (int pass = 0; pass < 2; pass++)
    for (int n = pass ? b : a; n >= 0; n = g->next[n])
      for (int i = 0; i < ir->nodes[n].input_count; i++) g->used_inside[ir->nodes[n].inputs[i]] = 0;
  return count;
}

/* Does a member of b read the reduction of a? The reduction is known only when its program has ended. */
static bool reads_reduction(mix_fusion_groups *g, int a, int b) {
  mix_ir *ir = g->ir;
  for (int n = g->reduces[a] ? b : -1; n >= 0; n = g->next[n])
    for (int i = 0; i < ir->nodes[n].input_count; i++) {
      int producer = mix_ir_producer(ir, ir->nodes[n].inputs[i]);
      if (mix_fusion_root(g, producer) == a && mix_fusion_reduces(ir, &ir->nodes[producer])) return true;
    }
  return false;
}

/* Bytes of an element of the values that the group computes and sums read. */
static size_t summed_bytes(const mix_fusion_groups *g, int root) {
  size_t bytes = 0;
  for (int n = root; n >= 0; n = g->next[n])
    if (g->summed[n]) bytes += mix_dtype_size(g->ir->values[g->ir->nodes[n].first_output].dtype);
  return bytes;
}

/* Does the group read a product that has no other users? Then it becomes the epilogue of that product, and
 * sums read what the epilogue stores, unless these are more bytes than the product, which a program that ends
 * in the sums would read. */
static bool ends_a_product(const mix_fusion_groups *g, int root) {
  mix_ir *ir = g->ir;
  for (int n = root; n >= 0; n = g->next[n])
    for (int i = 0; i < ir->nodes[n].input_count; i++) {
      int value = ir->nodes[n].inputs[i], uses = 0;
      if (!mix_ir_is_product(ir, value)) continue;
      for (int m = root; m >= 0; m = g->next[m])
        for (int k = 0; k < ir->nodes[m].input_count; k++) uses += ir->nodes[m].inputs[k] == value;
      if (uses == g->uses[value]) return summed_bytes(g, root) <= mix_dtype_size(ir->values[value].dtype);
    }
  return false;
}

/* The sums of both groups as ends of one program. -1: one of them is of another kind. */
static int sums_of(const mix_fusion_groups *g, int a, int b, mix_program_sum *sums) {
  int count = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int n = pass ? b : a; n >= 0; n = g->next[n]) {
      const mix_ir_node *node = &g->ir->nodes[n];
      if (!mix_fusion_reduces(g->ir, node)) continue;
      if (mix_ir_finite_check(node) || count == g->ir->context->backend->max_sums) return -1;
      sums[count++] = mix_ir_sum_form(g->ir, node);
    }
  return count;
}

/* Can one program end in the reductions of both groups? */
static bool ends_fit(const mix_fusion_groups *g, int a, int b) {
  mix_program_sum sums[MIX_PROGRAM_SUMS];
  if (!g->reduces[a] || !g->reduces[b]) return true;
  const mix_backend *backend = g->ir->context->backend;
  const int count = sums_of(g, a, b, sums);
  return count > 0 &&
         mix_program_sums_fit(sums, count, mix_shape_size(mix_fusion_space(g->ir, a)), backend->one_chain);
}

/* Integer divisions can fail and stay in programs of their own. */
static bool joins(const mix_fusion_groups *g, int root) {
  return g->size[root] > 1 || !mix_ir_may_fail(g->ir, &g->ir->nodes[root]);
}

static bool try_join(mix_fusion_groups *g, int x, int y) {
  int a = mix_fusion_root(g, x), b = mix_fusion_root(g, y);
  mix_ir *ir = g->ir;
  const mix_backend *backend = ir->context->backend;
  if (a == b) return true;
  if (g->position[b] < g->position[a]) {
    int t = a;
    a = b;
    b = t;
  }
  if (g->position[b] - g->position[a] > MAX_DISTANCE) return false;
  if (!joins(g, a) || !joins(g, b) || !mix_shape_equal(mix_fusion_space(ir, a), mix_fusion_space(ir, b)))
    return false;
  if (ir->nodes[a].guard_key != ir->nodes[b].guard_key || reads_reduction(g, a, b) ||
      reads_reduction(g, b, a))
    return false;
  if (mix_fusion_is_sum(ir, &ir->nodes[b]) && g->size[b] == 1 && ends_a_product(g, a)) return false;
  if (g->size[a] + g->size[b] > MIX_FUSION_MEMBERS || !ends_fit(g, a, b)) return false;
  if (count_loads(g, a, b, backend->max_loads) > backend->max_loads ||
      count_stores(g, a, b) > backend->max_stores || path_outside(g, a, b))
    return false;
  int joined = a < b ? a : b, other = a < b ? b : a;
  reorder(g, a, b, joined);
  g->root[other] = joined;
  g->next[g->last[joined]] = other;
  g->last[joined] = g->last[other];
  g->size[joined] += g->size[other];
  g->reduces[joined] |= g->reduces[other];
  return true;
}

/* Joins nodes that read the same variable element by element but are not connected otherwise (Lion's step and
 * its momentum), so that they share the load. */
static bool join_readers(mix_fusion_groups *g) {
  mix_ir *ir = g->ir;
  /* 1 + the first reader of a variable; -1: no reader yet; 0: not a variable */
  int *reader = mix_ir_ints(ir, ir->value_count + 1);
  if (!reader) return false;
  for (int i = 0; i < ir->variable_count; i++)
    if (ir->values[ir->variables[i].entry].shape.rank > 0) reader[ir->variables[i].entry] = -1;
  for (int n = 0; n < ir->node_count; n++) {
    if (!mix_ir_fusable(&ir->nodes[n])) continue;
    for (int i = 0; i < ir->nodes[n].input_count; i++) {
      int value = ir->nodes[n].inputs[i];
      if (!reader[value] || !mix_shape_equal(ir->values[value].shape, mix_fusion_space(ir, n))) continue;
      if (reader[value] < 0)
        reader[value] = n + 1;
      else
        try_join(g, reader[value] - 1, n);
    }
  }
  return true;
}

/* Joins sums that read the same operand element by element, so that they share the load. */
static bool join_sums(mix_fusion_groups *g) {
  mix_ir *ir = g->ir;
  int *reader = mix_ir_ints(ir, ir->value_count + 1); /* 1 + the first one */
  if (!reader) return false;
  for (int n = 0; n < ir->node_count; n++) {
    if (!mix_fusion_takes(ir, &ir->nodes[n]) || !g->reduces[mix_fusion_root(g, n)]) continue;
    for (int i = 0; i < ir->nodes[n].input_count; i++) {
      const int value = ir->nodes[n].inputs[i];
      if (!mix_shape_equal(ir->values[value].shape, mix_fusion_space(ir, n)) ||
          mix_fusion_root(g, mix_ir_producer(ir, value)) == mix_fusion_root(g, n))
        continue;
      if (reader[value])
        try_join(g, reader[value] - 1, n);
      else
        reader[value] = n + 1;
    }
  }
  return true;
}

static void join_producers(mix_fusion_groups *g, int n) {
  mix_ir *ir = g->ir;
  if (!mix_fusion_takes(ir, &ir->nodes[n])) return;
  for (int i = 0; i < ir->nodes[n].input_count; i++) {
    int producer = mix_ir_producer(ir, ir->nodes[n].inputs[i]);
    if (mix_ir_fusable(&ir->nodes[producer])) try_join(g, producer, n);
  }
}

/* Joins what sums are made of, and the sums: before the small values made of them tie one sum to another. */
static bool join_operands_of_sums(mix_fusion_groups *g) {
  mix_ir *ir = g->ir;
  bool *in_cone = mix_ir_array(ir, ir->node_count + 1, sizeof *in_cone);
  if (!in_cone) return false;
  for (int n = ir->node_count - 1; n >= 0; n--) {
    in_cone[n] = in_cone[n] || mix_fusion_is_sum(ir, &ir->nodes[n]);
    for (int i = 0; i < ir->nodes[n].input_count && in_cone[n]; i++) {
      int producer = mix_ir_producer(ir, ir->nodes[n].inputs[i]);
      in_cone[producer] =
          in_cone[producer] || (mix_ir_fusable(&ir->nodes[producer]) &&
                                mix_shape_equal(mix_fusion_space(ir, producer), mix_fusion_space(ir, n)));
    }
  }
  for (int n = 0; n < ir->node_count; n++)
    if (in_cone[n]) join_producers(g, n);
  return join_sums(g);
}

/* Cheap values made from a group that ends in sums, for what has to wait for these sums, are computed by the
 * later program: it reads what they are made of. */
static bool join_after_sums(mix_fusion_groups *g) {
  mix_ir *ir = g->ir;
  int *from = mix_ir_array(ir, ir->node_count + 1, sizeof *from); /* 1 + the group's first node */
  if (!from) return false;
  for (int n = 0; n < ir->node_count; n++) {
    if (ir->nodes[n].dead || g->reduces[mix_fusion_root(g, n)]) continue;
    const int operand = mix_ir_cheap_operand(ir, n);
    if (operand < 0) continue;
    const int producer = mix_ir_producer(ir, operand), root = mix_fusion_root(g, producer);
    from[n] = g->reduces[root] && mix_ir_fusable(&ir->nodes[producer]) ? 1 + root : from[producer];
  }
  for (int n = ir->node_count - 1; n >= 0; n--)
    for (int i = 0; i < ir->nodes[n].input_count && mix_ir_fusable(&ir->nodes[n]); i++) {
      const int producer = mix_ir_producer(ir, ir->nodes[n].inputs[i]);
      if (!from[producer]) continue;
      const int group = mix_fusion_root(g, from[producer] - 1), own = mix_fusion_root(g, n);
      if (group == own || g->position[own] < g->position[group] ||
          g->position[own] - g->position[group] > MAX_DISTANCE)
        continue;
      if (reads_reduction(g, group, own) || path_outside(g, group, own)) try_join(g, producer, n);
    }
  return true;
}

bool mix_fusion_make_groups(mix_ir *ir, mix_fusion_groups *g) {
  const int count = ir->node_count + 1;
  *g = (mix_fusion_groups){.ir = ir,
                           .root = mix_ir_ints(ir, count),
                           .next = mix_ir_ints(ir, count),
                           .last = mix_ir_ints(ir, count),
                           .size = mix_ir_ints(ir, count),
                           .summed = mix_ir_flags(ir, count),
                           .reduces = mix_ir_flags(ir, count),
                           .seen = mix_ir_ints(ir, count),
                           .position = mix_ir_ints(ir, count),
                           .root_at = mix_ir_ints(ir, count),
                           .stack = mix_ir_ints(ir, count),
                           .moved = mix_ir_ints(ir, count),
                           .uses = mix_ir_uses(ir),
                           .used_inside = mix_ir_ints(ir, ir->value_count + 1),
                           .collective_before = mix_ir_collective_before(ir)};
  if (mix_failed()) return false;
  for (int n = 0; n < ir->node_count; n++) {
    g->root[n] = g->last[n] = g->position[n] = g->root_at[n] = n;
    g->next[n] = -1;
    g->size[n] = 1;
    g->reduces[n] = mix_fusion_reduces(ir, &ir->nodes[n]);
    if (mix_fusion_is_sum(ir, &ir->nodes[n])) g->summed[mix_ir_producer(ir, ir->nodes[n].inputs[0])] = true;
  }
  if (!mix_pass_wanted(ir, "fuse")) return true;
  if (!join_operands_of_sums(g) || !join_after_sums(g)) return false;
  for (int n = 0; n < ir->node_count; n++) join_producers(g, n);
  if (!join_readers(g) || !join_sums(g)) return false;
  /* Scalar bookkeeping (iterations, loss scale, metrics) forms no chain: join whatever can be joined. */
  int scalar = -1;
  for (int n = 0; n < ir->node_count; n++) {
    if (!mix_ir_fusable(&ir->nodes[n]) || mix_fusion_space(ir, n).rank != 0 || mix_fusion_root(g, n) != n)
      continue;
    if (scalar < 0 || !try_join(g, scalar, n)) scalar = n;
  }
  return true;
}
