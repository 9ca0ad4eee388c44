/* fuse: element-wise fusion. Nodes over the same iteration space and under the same guard join one program,
 * unless a path leads out of the group and back in. A program may end in a finite check, in a sum or mean of
 * all elements, or in several of rows and columns. */
#include "base/error.h"
#include "passes/passes.h"
#include "passes/rematerialize.h"
#include "tensor/shape.h"
#include <string.h>

/* A join looks at the groups between the two: MAX_DISTANCE keeps the pass linear. A training step of a large
 * model has some thousands of nodes, and what is further apart is no longer in a cache. */
enum { MAX_MEMBERS = 40, MAX_DISTANCE = 4096 };

/* Groups are kept in topological order, each at its own position: a group stands after what it reads. Joining
 * two groups moves only those between them (Pearce and Kelly: A dynamic topological sort algorithm for
 * directed acyclic graphs, ACM JEA 11, 2006, with one edge contracted). */
typedef struct groups {
  mix_ir *ir;
  int *root;               /* by node: union-find parent */
  int *next, *last;        /* members of a group, as a list from its root */
  int *size;               /* by root: number of members */
  bool *summed;            /* by node: a sum reads it */
  bool *reduces;           /* by root: contains a finite check or a sum */
  int *position, *root_at; /* position by root; root by position, -1: none */
  int *seen;               /* by root: the latest search that visited it */
  int search;
  int *stack, *moved;
  int *uses;              /* by value */
  int *used_inside;       /* by value: scratch, zero between calls */
  int *collective_before; /* by node: it stands after this one, as if it read it; -1: none */
} groups;

static int find(groups *g, int n) {
  while (g->root[n] != n) n = g->root[n] = g->root[g->root[n]];
  return n;
}

/* A sum that may end a program, which must add in the order of the sum's own kernel. */
static bool is_sum(const mix_ir *ir, const mix_ir_node *node) {
  return ir->context->backend->max_sums && mix_ir_sum(ir, node);
}

static bool reduces(const mix_ir *ir, const mix_ir_node *node) {
  return mix_ir_finite_check(node) || is_sum(ir, node);
}

static bool member(const mix_ir *ir, const mix_ir_node *node) {
  return mix_ir_fusable(node) || reduces(ir, node);
}

/* The iteration space of a node that can join a group. */
static mix_shape space_of(const mix_ir *ir, int n) {
  const mix_ir_node *node = &ir->nodes[n];
  return ir->values[reduces(ir, node) ? node->inputs[0] : node->first_output].shape;
}

/* Pushes the groups that group `from` reads and that stand after group `a`. Returns true if it reads `a`
 * itself. */
static bool push_producers(groups *g, int from, int a, int *depth) {
  bool reads_a = false;
  g->ir->visits++;
  for (int n = from; n >= 0; n = g->next[n]) {
    for (int i = 0; i < g->ir->nodes[n].input_count + 2; i++) {
      int before = mix_ir_predecessor(g->ir, g->collective_before, n, i);
      if (before < 0) continue;
      int r = find(g, before);
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
static bool path_outside(groups *g, int a, int b) {
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
static void reorder(groups *g, int a, int b, int joined) {
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
static int count_loads(groups *g, int a, int b, int max) {
  mix_ir *ir = g->ir;
  int values[MAX_MEMBERS * 4], count = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int n = pass ? b : a; n >= 0; n = g->next[n])
      for (int i = 0; i < ir->nodes[n].input_count; i++) {
        int value = ir->nodes[n].inputs[i], r = find(g, mix_ir_producer(ir, value)), k = 0;
        if (r == a || r == b) continue;
        while (k < count && values[k] != value) k++;
        if (k < count) continue;
        if (count > max) return count;
        values[count++] = value;
      }
  return count;
}

/* Number of values of the joined group with users outside it. */
static int count_stores(groups *g, int a, int b) {
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
static bool reads_reduction(groups *g, int a, int b) {
  mix_ir *ir = g->ir;
  for (int n = g->reduces[a] ? b : -1; n >= 0; n = g->next[n])
    for (int i = 0; i < ir->nodes[n].input_count; i++) {
      int producer = mix_ir_producer(ir, ir->nodes[n].inputs[i]);
      if (find(g, producer) == a && reduces(ir, &ir->nodes[producer])) return true;
    }
  return false;
}

/* Bytes of an element of the values that the group computes and sums read. */
static size_t summed_bytes(const groups *g, int root) {
  size_t bytes = 0;
  for (int n = root; n >= 0; n = g->next[n])
    if (g->summed[n]) bytes += mix_dtype_size(g->ir->values[g->ir->nodes[n].first_output].dtype);
  return bytes;
}

/* Does the group read a product that has no other users? Then it becomes the epilogue of that product, and
 * sums read what the epilogue stores, unless these are more bytes than the product, which a program that ends
 * in the sums would read. */
static bool ends_a_product(const groups *g, int root) {
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
static int sums_of(const groups *g, int a, int b, mix_program_sum *sums) {
  int count = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int n = pass ? b : a; n >= 0; n = g->next[n]) {
      const mix_ir_node *node = &g->ir->nodes[n];
      if (!reduces(g->ir, node)) continue;
      if (mix_ir_finite_check(node) || count == g->ir->context->backend->max_sums) return -1;
      sums[count++] = mix_ir_sum_form(g->ir, node);
    }
  return count;
}

/* Can one program end in the reductions of both groups? */
static bool ends_fit(const groups *g, int a, int b) {
  mix_program_sum sums[MIX_PROGRAM_SUMS];
  if (!g->reduces[a] || !g->reduces[b]) return true;
  const mix_backend *backend = g->ir->context->backend;
  const int count = sums_of(g, a, b, sums);
  return count > 0 &&
         mix_program_sums_fit(sums, count, mix_shape_size(space_of(g->ir, a)), backend->one_chain);
}

/* Integer divisions can fail and stay in programs of their own. */
static bool joins(const groups *g, int root) {
  return g->size[root] > 1 || !mix_ir_may_fail(g->ir, &g->ir->nodes[root]);
}

static bool try_join(groups *g, int x, int y) {
  int a = find(g, x), b = find(g, y);
  mix_ir *ir = g->ir;
  const mix_backend *backend = ir->context->backend;
  if (a == b) return true;
  if (g->position[b] < g->position[a]) {
    int t = a;
    a = b;
    b = t;
  }
  if (g->position[b] - g->position[a] > MAX_DISTANCE) return false;
  if (!joins(g, a) || !joins(g, b) || !mix_shape_equal(space_of(ir, a), space_of(ir, b))) return false;
  if (ir->nodes[a].guard_key != ir->nodes[b].guard_key || reads_reduction(g, a, b) ||
      reads_reduction(g, b, a))
    return false;
  if (is_sum(ir, &ir->nodes[b]) && g->size[b] == 1 && ends_a_product(g, a)) return false;
  if (g->size[a] + g->size[b] > MAX_MEMBERS || !ends_fit(g, a, b)) return false;
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
static bool join_readers(groups *g) {
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
      if (!reader[value] || !mix_shape_equal(ir->values[value].shape, space_of(ir, n))) continue;
      if (reader[value] < 0)
        reader[value] = n + 1;
      else
        try_join(g, reader[value] - 1, n);
    }
  }
  return true;
}

/* Joins sums that read the same operand element by element, so that they share the load. */
static bool join_sums(groups *g) {
  mix_ir *ir = g->ir;
  int *reader = mix_ir_ints(ir, ir->value_count + 1); /* 1 + the first one */
  if (!reader) return false;
  for (int n = 0; n < ir->node_count; n++) {
    if (!member(ir, &ir->nodes[n]) || !g->reduces[find(g, n)]) continue;
    for (int i = 0; i < ir->nodes[n].input_count; i++) {
      const int value = ir->nodes[n].inputs[i];
      if (!mix_shape_equal(ir->values[value].shape, space_of(ir, n)) ||
          find(g, mix_ir_producer(ir, value)) == find(g, n))
        continue;
      if (reader[value])
        try_join(g, reader[value] - 1, n);
      else
        reader[value] = n + 1;
    }
  }
  return true;
}

static void join_producers(groups *g, int n) {
  mix_ir *ir = g->ir;
  if (!member(ir, &ir->nodes[n])) return;
  for (int i = 0; i < ir->nodes[n].input_count; i++) {
    int producer = mix_ir_producer(ir, ir->nodes[n].inputs[i]);
    if (mix_ir_fusable(&ir->nodes[producer])) try_join(g, producer, n);
  }
}

/* Joins what sums are made of, and the sums: before the small values made of them tie one sum to another. */
static bool join_operands_of_sums(groups *g) {
  mix_ir *ir = g->ir;
  bool *in_cone = mix_ir_array(ir, ir->node_count + 1, sizeof *in_cone);
  if (!in_cone) return false;
  for (int n = ir->node_count - 1; n >= 0; n--) {
    in_cone[n] = in_cone[n] || is_sum(ir, &ir->nodes[n]);
    for (int i = 0; i < ir->nodes[n].input_count && in_cone[n]; i++) {
      int producer = mix_ir_producer(ir, ir->nodes[n].inputs[i]);
      in_cone[producer] = in_cone[producer] || (mix_ir_fusable(&ir->nodes[producer]) &&
                                                mix_shape_equal(space_of(ir, producer), space_of(ir, n)));
    }
  }
  for (int n = 0; n < ir->node_count; n++)
    if (in_cone[n]) join_producers(g, n);
  return join_sums(g);
}

/* Cheap values made from a group that ends in sums, for what has to wait for these sums, are computed by the
 * later program: it reads what they are made of. */
static bool join_after_sums(groups *g) {
  mix_ir *ir = g->ir;
  int *from = mix_ir_array(ir, ir->node_count + 1, sizeof *from); /* 1 + the group's first node */
  if (!from) return false;
  for (int n = 0; n < ir->node_count; n++) {
    if (ir->nodes[n].dead || g->reduces[find(g, n)]) continue;
    const int operand = mix_ir_cheap_operand(ir, n);
    if (operand < 0) continue;
    const int producer = mix_ir_producer(ir, operand), root = find(g, producer);
    from[n] = g->reduces[root] && mix_ir_fusable(&ir->nodes[producer]) ? 1 + root : from[producer];
  }
  for (int n = ir->node_count - 1; n >= 0; n--)
    for (int i = 0; i < ir->nodes[n].input_count && mix_ir_fusable(&ir->nodes[n]); i++) {
      const int producer = mix_ir_producer(ir, ir->nodes[n].inputs[i]);
      if (!from[producer]) continue;
      const int group = find(g, from[producer] - 1), own = find(g, n);
      if (group == own || g->position[own] < g->position[group] ||
          g->position[own] - g->position[group] > MAX_DISTANCE)
        continue;
      if (reads_reduction(g, group, own) || path_outside(g, group, own)) try_join(g, producer, n);
    }
  return true;
}

static bool groups_make(mix_ir *ir, groups *g) {
  const int count = ir->node_count + 1;
  *g = (groups){.ir = ir,
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
    g->reduces[n] = reduces(ir, &ir->nodes[n]);
    if (is_sum(ir, &ir->nodes[n])) g->summed[mix_ir_producer(ir, ir->nodes[n].inputs[0])] = true;
  }
  if (!mix_pass_wanted(ir, "fuse")) return true;
  if (!join_operands_of_sums(g) || !join_after_sums(g)) return false;
  for (int n = 0; n < ir->node_count; n++) join_producers(g, n);
  if (!join_readers(g) || !join_sums(g)) return false;
  /* Scalar bookkeeping (iterations, loss scale, metrics) forms no chain: join whatever can be joined. */
  int scalar = -1;
  for (int n = 0; n < ir->node_count; n++) {
    if (!mix_ir_fusable(&ir->nodes[n]) || space_of(ir, n).rank != 0 || find(g, n) != n) continue;
    if (scalar < 0 || !try_join(g, scalar, n)) scalar = n;
  }
  return true;
}

/* ---- programs ---- */

/* Drops dimensions of size 1 and merges neighbours that every load steps through as one. */
static void collapse(mix_program *program, mix_shape space) {
  int rank = 0;
  for (int d = 0; d < space.rank; d++) {
    if (space.dims[d] == 1) continue;
    bool merges = rank > 0;
    for (int l = 0; l < program->load_count && merges; l++)
      merges = program->loads[l].strides[rank - 1] == program->loads[l].strides[d] * space.dims[d];
    if (merges)
      program->dims[rank - 1] *= space.dims[d];
    else
      program->dims[rank++] = space.dims[d];
    for (int l = 0; l < program->load_count; l++)
      program->loads[l].strides[rank - 1] = program->loads[l].strides[d];
  }
  if (rank == 0) {
    program->dims[0] = 1;
    for (int l = 0; l < program->load_count; l++) program->loads[l].strides[0] = 0;
    rank = 1;
  }
  program->rank = rank;
}

typedef struct building {
  mix_program *program;
  int inputs[MAX_MEMBERS * 4], input_count; /* values loaded */
  mix_type outputs[MAX_MEMBERS + 1];
  int output_values[MAX_MEMBERS + 1], output_count;
} building;

static int member_list(groups *g, int root, int *members) {
  int count = 0;
  for (int n = root; n >= 0; n = g->next[n]) members[count++] = n;
  for (int i = 1; i < count; i++) /* node order, so that operands come first */
    for (int j = i; j > 0 && members[j - 1] > members[j]; j--) {
      int t = members[j];
      members[j] = members[j - 1];
      members[j - 1] = t;
    }
  return count;
}

static int load_register(building *b, int value) {
  for (int i = 0; i < b->input_count; i++)
    if (b->inputs[i] == value) return i;
  return -1;
}

/* Strides of the operand that a load reads instead of a slice of it, whose rows must be long enough to repay
 * reading them one by one. Returns the operand, or `value` itself: where the operand is as large as the
 * space, a result may overwrite it, and a small part must not keep a large computed operand alive. */
static int load_from(const mix_ir *ir, int value, mix_shape space, mix_program_load *load) {
  enum { SHORTEST = 16, MOST = 8 };
  const mix_ir_node *slice = &ir->nodes[mix_ir_producer(ir, value)];
  const mix_shape own = ir->values[value].shape;
  mix_program_strides(own, space, load->strides);
  if (slice->source || !(slice->op->flags & MIX_OP_SLICE)) return value;
  const mix_slice_attributes *cut = slice->attributes;
  const mix_shape from = ir->values[slice->inputs[0]].shape;
  int64_t stride = 1, length = 1, offset = 0;
  bool whole = true;
  for (int d = own.rank - 1; d >= 0; stride *= from.dims[d--]) {
    if (from.dims[d] != 1 && from.dims[d] < space.dims[d + space.rank - own.rank]) return value;
    if (whole) length *= own.dims[d];
    whole = whole && own.dims[d] == from.dims[d];
    offset += cut->begin.dims[d] * stride;
  }
  const bool source = ir->nodes[mix_ir_producer(ir, slice->inputs[0])].source;
  if (whole || length < SHORTEST || mix_shape_size(from) == mix_shape_size(space)) return value;
  if (!source && mix_shape_size(from) > MOST * mix_shape_size(own)) return value;
  load->offset = offset;
  stride = 1;
  for (int d = own.rank - 1, s = space.rank - 1; d >= 0; stride *= from.dims[d--], s--)
    load->strides[s] = own.dims[d] == 1 ? 0 : stride;
  return slice->inputs[0];
}

/* A single reduction that is not of columns has a form of its own. */
static void end_in_one(mix_program *program) {
  if (program->sum_count != 1 || program->sums[0].column) return;
  program->reduction = program->sums[0].kind;
  program->reduced = program->sums[0].reg;
  program->reduction_output = program->sums[0].output;
  program->row = program->sums[0].row;
  program->sum_count = 0;
}

/* The register of an earlier instruction that computes what the next one does, or -1. Nodes that are repeated
 * to save memory may meet the first in one program. */
static int same_register(const mix_program *program) {
  const mix_instruction *next = &program->instructions[program->instruction_count];
  for (int i = 0; i < program->instruction_count && !mix_opcode_draws(next->opcode); i++) {
    const mix_instruction *x = &program->instructions[i];
    if (x->opcode == next->opcode && x->dtype == next->dtype && x->immediate == next->immediate &&
        !memcmp(x->operands, next->operands, sizeof x->operands))
      return program->load_count + i;
  }
  return -1;
}

/* Emits the program of one group and the node that holds it. `becomes` maps old values to results of the
 * node. */
static bool emit(groups *g, int root, int *inside, int *value_register, int *becomes) {
  mix_ir *ir = g->ir;
  int members[MAX_MEMBERS], count = member_list(g, root, members);
  mix_shape space = space_of(ir, root);
  building *b = mix_ir_alloc(ir, sizeof *b);
  mix_program *program = b ? mix_ir_alloc(ir, sizeof *program) : NULL;
  if (!program) return false;
  for (int m = 0; m < count; m++)
    for (int i = 0; i < ir->nodes[members[m]].input_count; i++) {
      int value = ir->nodes[members[m]].inputs[i];
      if (find(g, mix_ir_producer(ir, value)) == root && member(ir, &ir->nodes[mix_ir_producer(ir, value)]))
        inside[value]++;
      else if (load_register(b, value) < 0)
        b->inputs[b->input_count++] = value;
    }
  program->load_count = b->input_count;
  program->loads = mix_ir_array(ir, b->input_count + 1, sizeof *program->loads);
  program->instructions = mix_ir_array(ir, count + 1, sizeof *program->instructions);
  program->stores = mix_ir_array(ir, count + 1, sizeof *program->stores);
  program->sums = mix_ir_array(ir, MIX_PROGRAM_SUMS, sizeof *program->sums);
  if (!program->loads || !program->instructions || !program->stores || !program->sums) return false;
  int read[MAX_MEMBERS * 4]; /* values, of which a slice may be an input */
  memcpy(read, b->inputs, sizeof read);
  const bool in_place = !g->reduces[root] && mix_pass_wanted(ir, "fuse");
  for (int i = 0; i < b->input_count; i++) {
    mix_program_load *load = &program->loads[i];
    *load = (mix_program_load){.input = i, .dtype = ir->values[b->inputs[i]].dtype};
    if (in_place)
      read[i] = load_from(ir, b->inputs[i], space, load);
    else
      mix_program_strides(ir->values[b->inputs[i]].shape, space, load->strides);
  }
  const char *scope = NULL;
  int ended[MIX_PROGRAM_SUMS]; /* values, by sum */
  for (int m = 0; m < count; m++) {
    const mix_ir_node *node = &ir->nodes[members[m]];
    if (node->scope) scope = node->scope;
    int operands[3] = {0};
    for (int i = 0; i < node->input_count && i < 3; i++) {
      int reg = load_register(b, node->inputs[i]);
      operands[i] = reg >= 0 ? reg : value_register[node->inputs[i]];
    }
    if (reduces(ir, node)) {
      mix_program_sum sum = {.kind = node->op->reduction};
      if (is_sum(ir, node)) sum = mix_ir_sum_form(ir, node);
      sum.reg = operands[0];
      ended[program->sum_count] = node->first_output;
      program->sums[program->sum_count++] = sum;
      continue;
    }
    mix_instruction *instruction = &program->instructions[program->instruction_count];
    *instruction = (mix_instruction){.opcode = (mix_opcode)node->op->opcode,
                                     .dtype = ir->values[node->first_output].dtype,
                                     .operands = {operands[0], operands[1], operands[2]}};
    if (node->op->attributes_size == sizeof(mix_alpha_attributes))
      instruction->immediate = ((const mix_alpha_attributes *)node->attributes)->alpha;
    const bool stored = g->uses[node->first_output] != inside[node->first_output];
    const int same = stored ? -1 : same_register(program);
    value_register[node->first_output] =
        same >= 0 ? same : program->load_count + program->instruction_count++;
  }
  for (int m = 0; m < count; m++) {
    int value = ir->nodes[members[m]].first_output;
    if (reduces(ir, &ir->nodes[members[m]]) || g->uses[value] == inside[value]) continue;
    program->stores[program->store_count++] =
        (mix_program_store){.output = b->output_count, .reg = value_register[value]};
    b->outputs[b->output_count] = ir->values[value].type;
    b->output_values[b->output_count++] = value;
  }
  for (int i = 0; i < program->sum_count; i++) {
    program->sums[i].output = b->output_count;
    b->outputs[b->output_count] = ir->values[ended[i]].type;
    b->output_values[b->output_count++] = ended[i];
  }
  end_in_one(program);
  collapse(program, space);
  int guard = ir->nodes[root].guard_key;
  for (int m = 0; m < count; m++) ir->nodes[members[m]].dead = true;
  if (!b->output_count) return true; /* unused, and "dce" is off */
  int fused = mix_ir_add(ir, &mix_op_fused, NULL, b->input_count, read, b->output_count, b->outputs);
  if (fused < 0) return false;
  ir->nodes[fused].program = program;
  ir->nodes[fused].guard = guard;
  ir->nodes[fused].scope = scope;
  for (int i = 0; i < b->output_count; i++) becomes[b->output_values[i]] = ir->nodes[fused].first_output + i;
  return true;
}

/* Slices whose users all read their operand. */
static bool remove_slices(mix_ir *ir) {
  const int *uses = mix_ir_uses(ir);
  for (int n = 0; n < ir->node_count && uses; n++)
    if ((ir->nodes[n].op->flags & MIX_OP_SLICE) && !uses[ir->nodes[n].first_output]) ir->nodes[n].dead = true;
  return uses != NULL;
}

bool mix_pass_fuse(mix_ir *ir) {
  groups g;
  if (mix_pass_wanted(ir, "fuse") &&
      !(mix_ir_recompute_later(ir) && mix_ir_recompute(ir) && mix_ir_recompute_narrow(ir)))
    return false;
  if (!mix_ir_guard_keys(ir) || !groups_make(ir, &g)) return false;
  int nodes = ir->node_count, values = ir->value_count;
  int *inside = mix_ir_ints(ir, values + 1);
  int *value_register = mix_ir_ints(ir, values + 1);
  int *becomes = mix_ir_ints(ir, values + 1);
  if (!inside || !value_register || !becomes) return false;
  for (int v = 0; v < values; v++) becomes[v] = v;
  for (int n = 0; n < nodes; n++) {
    if (mix_ir_update(&ir->nodes[n])) ir->nodes[n].guard = ir->nodes[n].guard_key;
    if (find(&g, n) != n || !member(ir, &ir->nodes[n])) continue;
    /* A reduction alone keeps its own kernel, except the finite check of a product, which becomes its
     * epilogue. */
    const bool checks_product =
        mix_ir_finite_check(&ir->nodes[n]) && mix_ir_is_product(ir, ir->nodes[n].inputs[0]);
    if (reduces(ir, &ir->nodes[n]) && g.size[n] == 1 && !checks_product) {
      ir->nodes[n].guard = ir->nodes[n].guard_key;
      continue;
    }
    if (!emit(&g, n, inside, value_register, becomes)) return false;
  }
  for (int n = 0; n < ir->node_count; n++) {
    mix_ir_node *node = &ir->nodes[n];
    if (node->dead) continue;
    for (int i = 0; i < node->input_count; i++)
      if (node->inputs[i] < values) node->inputs[i] = becomes[node->inputs[i]];
    if (node->guard >= 0 && node->guard < values) node->guard = becomes[node->guard];
    node->guard_key = -1;
  }
  for (int i = 0; i < ir->result_count; i++) ir->results[i] = becomes[ir->results[i]];
  for (int i = 0; i < ir->variable_count; i++) {
    ir->variables[i].exit = becomes[ir->variables[i].exit];
    if (ir->variables[i].guard >= 0) ir->variables[i].guard = becomes[ir->variables[i].guard];
  }
  return remove_slices(ir) && mix_ir_sort(ir);
}
