#include "passes/repeat_nodes.h"

#include "base/alloc.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

bool mix_ir_may_repeat(const mix_ir_node *node) {
  return !node->source && !node->dead && !(node->op->flags & (MIX_OP_STATEFUL | MIX_OP_UPDATES));
}

/* ---- what to repeat ---- */

typedef struct search {
  mix_ir *ir;
  const bool *dropped;
  bool *found; /* node -> it is repeated */
  mix_repeat *repeats;
  int count, *stack;
} search;

static int by_node(const void *a, const void *b) {
  const mix_repeat *x = a, *y = b;
  return x->node < y->node ? -1 : x->node > y->node;
}

/* Operand i of a node, or its guard after them. -1: it has none. */
static int operand(const mix_ir_node *node, int i) {
  return i < node->input_count ? node->inputs[i] : node->guard;
}

static void push_dropped(search *s, int n, int *depth) {
  const mix_ir_node *node = &s->ir->nodes[n];
  const bool barrier = node->op->flags & MIX_OP_BARRIER; /* needs nothing of what it waits for */
  for (int i = 0; i <= node->input_count; i++) {
    const int value = operand(node, i), producer = value < 0 ? -1 : mix_ir_producer(s->ir, value);
    if (barrier && i == 1) continue;
    if (producer < 0 || !s->dropped[producer] || s->found[producer]) continue;
    s->found[producer] = true;
    s->stack[(*depth)++] = producer;
  }
}

int mix_ir_find_repeats(mix_ir *ir, const bool *dropped, const bool *late, mix_repeat *repeats) {
  search s = {.ir = ir,
              .dropped = dropped,
              .found = mix_ir_flags(ir, ir->node_count + 1),
              .repeats = repeats,
              .stack = mix_ir_ints(ir, ir->node_count + 1)};
  if (!s.found || !s.stack) return -1;
  for (int n = 0; n < ir->node_count; n++) {
    if (!late[n]) continue;
    const int first = s.count;
    int depth = 0;
    for (push_dropped(&s, n, &depth); depth;) {
      const int found = s.stack[--depth];
      s.repeats[s.count++] = (mix_repeat){found, n};
      push_dropped(&s, found, &depth);
    }
    qsort(s.repeats + first, (size_t)(s.count - first), sizeof *s.repeats, by_node);
  }
  return s.count;
}

/* ---- repeating ---- */

typedef struct rewrite {
  mix_ir *ir;
  mix_ir_node *nodes; /* as they were */
  int *current;       /* value of the ir as it was -> the one that nodes read from here on */
  bool *needed;       /* value of the clones: somebody reads it; before there are clones, see find_needed */
  int *position;      /* new order -> node */
  int count;
} rewrite;

static bool trims(const mix_ir_node *node) {
  return (node->op->flags & MIX_OP_PROGRAM) && node->output_count > 1;
}

/* By repeat and output, from first[repeat]: does anybody read it? Walks the new order, so that each reader
 * finds the latest repeat of what it reads. */
static bool find_needed(mix_ir *ir, int count, const mix_repeat *repeats, const int *first, bool *needed) {
  int *latest = mix_ir_ints(ir, ir->node_count + 1); /* node -> 1 + its latest repeat */
  if (!latest) return false;
  for (int n = 0, r = 0; n < ir->node_count;) {
    const bool clone = r < count && repeats[r].before == n;
    const mix_ir_node *node = &ir->nodes[clone ? repeats[r].node : n];
    for (int i = 0; i <= node->input_count; i++) {
      const int value = operand(node, i), producer = value < 0 ? -1 : mix_ir_producer(ir, value);
      if (producer >= 0 && latest[producer])
        needed[first[latest[producer] - 1] + ir->values[value].output] = true;
    }
    if (clone)
      latest[repeats[r].node] = 1 + r, r++;
    else
      n++;
  }
  return true;
}

/* The program with those outputs alone that are needed; `kept` numbers them, -1: it goes. */
static mix_program *trim_program(mix_ir *ir, const mix_program *from, const int *kept) {
  mix_program *program = mix_ir_alloc(ir, sizeof *program);
  if (!program) return NULL;
  *program = *from;
  program->stores = mix_ir_array(ir, from->store_count + 1, sizeof *program->stores);
  program->sums = mix_ir_array(ir, from->sum_count + 1, sizeof *program->sums);
  if (!program->stores || !program->sums) return NULL;
  program->store_count = program->sum_count = 0;
  for (int i = 0; i < from->store_count; i++)
    if (kept[from->stores[i].output] >= 0)
      program->stores[program->store_count++] =
          (mix_program_store){.output = kept[from->stores[i].output], .reg = from->stores[i].reg};
  for (int i = 0; i < from->sum_count; i++) {
    program->sums[i] = from->sums[i];
    program->sums[i].output = kept[from->sums[i].output];
  }
  program->sum_count = from->sum_count;
  if (from->reduction) program->reduction_output = kept[from->reduction_output];
  return program;
}

/* Numbers the outputs of a clone. The ends of a program other than stores stay: they decide its kernel. */
static int number_outputs(const mix_ir_node *node, const bool *needed, int *kept) {
  int count = 0;
  bool stored[MIX_PROGRAM_MAX] = {false};
  if (!trims(node) || node->output_count > MIX_PROGRAM_MAX) {
    for (int o = 0; o < node->output_count; o++) kept[o] = o;
    return node->output_count;
  }
  for (int i = 0; i < node->program->store_count; i++) stored[node->program->stores[i].output] = true;
  for (int o = 0; o < node->output_count; o++) kept[o] = needed[o] || !stored[o] ? count++ : -1;
  return count;
}

/* Appends a clone of a node, which reads what is current. Returns its index, or -1 with the error recorded.
 */
static int add_clone(rewrite *w, int n, const bool *needed) {
  mix_ir *ir = w->ir;
  const mix_ir_node node = w->nodes[n];
  int *kept = mix_ir_ints(ir, node.output_count + 1), *inputs = mix_ir_ints(ir, node.input_count + 1);
  mix_type *types = mix_ir_array(ir, node.output_count + 1, sizeof *types);
  if (!kept || !inputs || !types) return -1;
  for (int i = 0; i < node.input_count; i++) inputs[i] = w->current[node.inputs[i]];
  const int outputs = number_outputs(&node, needed, kept);
  for (int o = 0; o < node.output_count; o++)
    if (kept[o] >= 0) types[kept[o]] = ir->values[node.first_output + o].type;
  const int index = mix_ir_add(ir, node.op, node.attributes, node.input_count, inputs, outputs, types);
  if (index < 0) return -1;
  mix_ir_node *clone = &ir->nodes[index];
  clone->scope = node.scope;
  clone->keep = node.keep;
  clone->body = node.body;
  clone->guard = node.guard < 0 ? -1 : w->current[node.guard];
  clone->program = node.program;
  clone->backward = clone->repeated = true;
  if (outputs < node.output_count && !(clone->program = trim_program(ir, node.program, kept))) return -1;
  for (int o = 0; o < node.output_count; o++)
    if (kept[o] >= 0) w->current[node.first_output + o] = clone->first_output + kept[o];
  return index;
}

/* The list of operands is a new one: clones to come are made of the nodes as they were, and so are graphs
 * that share the list. */
static bool read_current(const rewrite *w, mix_ir_node *node) {
  int *inputs = mix_ir_ints(w->ir, node->input_count + 1);
  if (!inputs) return false;
  for (int i = 0; i < node->input_count; i++) inputs[i] = w->current[node->inputs[i]];
  node->inputs = inputs;
  if (node->guard >= 0) node->guard = w->current[node->guard];
  return true;
}

bool mix_ir_set_order(mix_ir *ir, const int *order) {
  mix_ir_node *sorted = mix_ir_array(ir, ir->node_count + 1, sizeof *sorted);
  if (!sorted) return false;
  for (int i = 0; i < ir->node_count; i++) {
    sorted[i] = ir->nodes[order[i]];
    for (int o = 0; o < sorted[i].output_count; o++) ir->values[sorted[i].first_output + o].node = i;
  }
  memcpy(ir->nodes, sorted, sizeof *sorted * (size_t)ir->node_count);
  return true;
}

bool mix_ir_repeat_nodes(mix_ir *ir, int count, const mix_repeat *repeats) {
  const int nodes = ir->node_count, values = ir->value_count;
  int *first = mix_ir_ints(ir, count + 1), outputs = 0;
  for (int r = 0; r < count && first; r++) {
    const mix_repeat *repeat = &repeats[r];
    if (repeat->node < 0 || repeat->node >= repeat->before || repeat->before >= nodes ||
        (r && repeats[r - 1].before > repeat->before) || !mix_ir_may_repeat(&ir->nodes[repeat->node]))
      return mix_fail_internal("repeat_nodes: node %d before node %d", repeat->node, repeat->before);
    first[r] = outputs;
    outputs += ir->nodes[repeat->node].output_count;
  }
  rewrite w = {.ir = ir,
               .nodes = mix_ir_array(ir, nodes + 1, sizeof *w.nodes),
               .current = mix_ir_ints(ir, values + 1),
               .needed = mix_ir_flags(ir, outputs + 1),
               .position = mix_ir_ints(ir, nodes + count + 1)};
  if (!first || !w.nodes || !w.current || !w.needed || !w.position ||
      !find_needed(ir, count, repeats, first, w.needed))
    return false;
  memcpy(w.nodes, ir->nodes, sizeof *w.nodes * (size_t)nodes);
  for (int v = 0; v < values; v++) w.current[v] = v;
  for (int n = 0, r = 0; n < nodes; n++) {
    for (; r < count && repeats[r].before == n; r++)
      if ((w.position[w.count++] = add_clone(&w, repeats[r].node, w.needed + first[r])) < 0) return false;
    if (!read_current(&w, &ir->nodes[n])) return false;
    w.position[w.count++] = n;
  }
  return mix_ir_set_order(ir, w.position);
}
