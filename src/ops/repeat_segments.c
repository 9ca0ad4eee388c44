#include "ops/repeat_segments.h"

#include "base/alloc.h"
#include "graph/body.h"
#include "graph/capture.h"
#include "graph/node_set.h"
#include "ops/table.h"
#include <string.h>

/* In `segment` the value `edge` of the forward pass is `found`; with output WHOLE, the node itself. */
enum { WHOLE = -1 };
typedef struct mix_repeat {
  const void *segment; /* &kept: `edge` itself is read by a gradient */
  mix_edge edge, found;
} mix_repeat;

typedef struct mix_repeat_request {
  mix_segment *segment;
  mix_edge edge;
  bool barred; /* behind a barrier, even if nothing needs one */
} mix_repeat_request;

static const char kept;

/* ---- the table ---- */

static size_t place_of(const mix_repeats *r, const void *segment, mix_edge edge) {
  size_t hash = ((uintptr_t)segment >> 4) * 0x85ebca6bu + ((uintptr_t)edge.node >> 4) + (size_t)edge.output;
  size_t at = hash * 0x9e3779b97f4a7c15u >> 20 & (size_t)(r->capacity - 1);
  while (r->entries[at].segment &&
         (r->entries[at].segment != segment || !mix_edge_equal(r->entries[at].edge, edge)))
    at = (at + 1) & (size_t)(r->capacity - 1);
  return at;
}

static bool grow(mix_repeats *r) {
  const mix_repeats old = *r;
  const int capacity = old.capacity ? old.capacity * 2 : 256;
  mix_repeat *entries = mix_calloc((size_t)capacity, sizeof *entries);
  if (!entries) return false;
  r->entries = entries;
  r->capacity = capacity;
  for (int i = 0; i < old.capacity; i++)
    if (old.entries[i].segment)
      entries[place_of(r, old.entries[i].segment, old.entries[i].edge)] = old.entries[i];
  mix_free(old.entries);
  return true;
}

static bool store(mix_repeats *r, const void *segment, mix_edge edge, mix_edge found) {
  if ((r->used + 1) * 2 > r->capacity && !grow(r)) return false;
  const size_t at = place_of(r, segment, edge);
  r->used += !r->entries[at].segment;
  r->entries[at] = (mix_repeat){segment, edge, found};
  return true;
}

static bool load(const mix_repeats *r, const void *segment, mix_edge edge, mix_edge *found) {
  const mix_repeat *entry = r->capacity ? &r->entries[place_of(r, segment, edge)] : NULL;
  if (!entry || !entry->segment) return false;
  *found = entry->found;
  return true;
}

static bool is_kept(const mix_repeats *r, mix_edge edge) {
  mix_edge found;
  return load(r, &kept, edge, &found);
}

/* ---- what is repeated ---- */

static mix_segment *segment_of(const mix_repeats *r, const mix_node *node) {
  return mix_segment_inside(node->segment, r->within);
}
static mix_segment *around(const mix_repeats *r, const mix_segment *segment) {
  return mix_segment_inside(segment->outer, r->within);
}

static bool contains(const mix_repeats *r, const mix_segment *segment, const mix_node *node) {
  for (const mix_segment *s = segment_of(r, node); s; s = around(r, s))
    if (s == segment) return true;
  return false;
}

/* What has an effect runs once. Random numbers depend on their state alone. */
static bool has_effect(const mix_node *node) {
  if (node->op->flags & MIX_OP_STATEFUL) return true;
  for (int i = 0; node->body && i < node->body->node_count; i++)
    if (has_effect(node->body->nodes[i])) return true;
  return false;
}

static bool is_repeated(const mix_repeats *r, const mix_segment *segment, const mix_node *node) {
  return !(node->op->flags & MIX_OP_SOURCE) && node->input_count > 0 && !has_effect(node) &&
         contains(r, segment, node);
}

/* May a repetition read it as it is? Weights and what is computed from them alone, such as their 16-bit
 * copies, are there anyway; a generator's state would let its numbers merge with those of the forward pass.
 */
static bool needs_no_barrier(mix_edge edge) {
  const mix_op *op = edge.node->op;
  if (op->flags & MIX_OP_READ) return mix_dtype_is_real(mix_edge_value(edge)->dtype);
  return op == &mix_op_constant || (!(op->flags & MIX_OP_SOURCE) && !edge.node->input_count);
}

/* ---- repeating ---- */

static bool keep_node(mix_repeats *r, mix_node *node) {
  if (node && mix_reserve(&r->made, &r->made_capacity, r->made_count + 1, sizeof *r->made)) {
    r->made[r->made_count++] = node;
    return true;
  }
  mix_release(node);
  return false;
}

static mix_node *new_node(const mix_node *like, const mix_edge *inputs) {
  const char *scope = mix_graph_scope_set(like->scope);
  const bool keep = mix_graph_keep_set(like->keep);
  mix_node *node = NULL;
  if (!strcmp(like->op->signature, "->")) {
    mix_type *types = mix_calloc((size_t)like->output_count + 1, sizeof *types);
    for (int o = 0; types && o < like->output_count; o++) types[o] = like->outputs[o].type;
    if (types)
      node = mix_node_new_with_body(like->op, like->attributes, like->body, like->input_count, inputs,
                                    like->output_count, types);
    mix_free(types);
  } else {
    node = mix_node_new(like->op, like->attributes, like->input_count, inputs);
  }
  mix_graph_keep_set(keep);
  mix_graph_scope_set(scope);
  return node;
}

static bool push(mix_repeats *r, mix_segment *segment, mix_edge edge, bool barred) {
  if (!mix_reserve(&r->stack, &r->stack_capacity, r->depth + 1, sizeof *r->stack)) return false;
  r->stack[r->depth++] = (mix_repeat_request){segment, edge, barred};
  return true;
}

/* The value in the segment, if it has been worked out. */
static bool find(const mix_repeats *r, const mix_segment *segment, mix_edge edge, mix_edge *found) {
  if (segment) return load(r, segment, edge, found);
  *found = edge;
  return true;
}

/* A value from outside the segment. */
static bool bring_in(mix_repeats *r, mix_repeat_request wanted, mix_edge after) {
  mix_segment *outer = around(r, wanted.segment);
  mix_edge source;
  if (!find(r, outer, wanted.edge, &source)) return push(r, outer, wanted.edge, wanted.barred);
  r->depth--;
  if (!store(r, &kept, source, source)) return false;
  if (needs_no_barrier(source) && !wanted.barred) return store(r, wanted.segment, wanted.edge, source);
  const char *scope = mix_graph_scope_set(wanted.edge.node->scope);
  mix_node *barrier = mix_node_new(&mix_op_optimization_barrier, NULL, 2, (const mix_edge[]){source, after});
  mix_graph_scope_set(scope);
  return keep_node(r, barrier) && store(r, wanted.segment, wanted.edge, (mix_edge){barrier, 0});
}

/* Results that are there anyway stay what they are. */
static mix_node *repeat_node(mix_repeats *r, const mix_segment *segment, mix_node *node,
                             const mix_edge *inputs) {
  mix_node *made = new_node(node, inputs);
  bool good = keep_node(r, made) && store(r, segment, (mix_edge){node, WHOLE}, (mix_edge){made, WHOLE});
  for (int o = 0; o < node->output_count && good; o++) {
    mix_edge found;
    if (!load(r, segment, (mix_edge){node, o}, &found))
      good = store(r, segment, (mix_edge){node, o}, (mix_edge){made, o});
  }
  return good ? made : NULL;
}

/* A value that the segment computes: there anyway, or of a new node, once all operands are worked out. */
static bool repeat(mix_repeats *r, mix_repeat_request wanted) {
  const mix_node *node = wanted.edge.node;
  mix_edge outside;
  if (find(r, around(r, wanted.segment), wanted.edge, &outside) && is_kept(r, outside))
    return r->depth--, store(r, wanted.segment, wanted.edge, outside);
  mix_edge few[8], *inputs = few;
  if (node->input_count > 8 && !(inputs = mix_alloc(sizeof *inputs * (size_t)node->input_count)))
    return false;
  int missing = 0;
  bool good = true;
  for (int i = node->input_count - 1; i >= 0 && good; i--) {
    if (load(r, wanted.segment, node->inputs[i], &inputs[i])) continue;
    missing++;
    good = push(r, wanted.segment, node->inputs[i], (node->op->flags & MIX_OP_RANDOM) != 0);
  }
  if (good && !missing) {
    r->depth--;
    good = repeat_node(r, wanted.segment, wanted.edge.node, inputs) != NULL;
  }
  if (inputs != few) mix_free(inputs);
  return good;
}

/* By a stack of our own: a segment may be a chain of any length. */
static bool work_out(mix_repeats *r, mix_edge after) {
  const bool backward = mix_graph_backward_set(false);
  bool good = true;
  while (r->depth && good) {
    const mix_repeat_request wanted = r->stack[r->depth - 1];
    mix_edge found;
    if (load(r, wanted.segment, wanted.edge, &found))
      r->depth--;
    else if (is_repeated(r, wanted.segment, wanted.edge.node))
      good = repeat(r, wanted);
    else
      good = bring_in(r, wanted, after);
  }
  r->depth = 0;
  mix_graph_backward_set(backward);
  return good;
}

mix_node *mix_repeat_node(mix_repeats *r, mix_node *node, const mix_tensor *after) {
  mix_segment *segment = segment_of(r, node);
  mix_edge whole;
  if (!segment || !is_repeated(r, segment, node)) return node;
  if (load(r, segment, (mix_edge){node, WHOLE}, &whole)) return whole.node;
  mix_edge *inputs = mix_alloc(sizeof *inputs * (size_t)node->input_count);
  bool good = inputs != NULL;
  for (int i = node->input_count - 1; i >= 0 && good; i--)
    good = push(r, segment, node->inputs[i], (node->op->flags & MIX_OP_RANDOM) != 0);
  good = good && work_out(r, (mix_edge){after->node, after->output});
  for (int i = 0; i < node->input_count && good; i++) good = load(r, segment, node->inputs[i], &inputs[i]);
  mix_node *made = good ? repeat_node(r, segment, node, inputs) : NULL;
  mix_free(inputs);
  return made;
}

/* ---- what gradients read ---- */

static void replace_input(mix_edge *input, mix_edge by) {
  mix_retain(by.node);
  mix_release(input->node);
  *input = by;
}

static bool note(mix_repeats *r, mix_edge *input, mix_node *node, const mix_node *repeated) {
  mix_edge outside;
  if (input->node == repeated && repeated != node &&
      find(r, around(r, segment_of(r, node)), (mix_edge){node, input->output}, &outside) &&
      is_kept(r, outside))
    replace_input(input, outside);
  return store(r, &kept, *input, *input);
}

bool mix_repeat_note_reads(mix_repeats *r, mix_node *node, mix_node *repeated, const mix_tensor *gradient,
                           uint64_t begin) {
  mix_node_set set = {0};
  bool good = gradient->node->sequence < begin || mix_node_set_add(&set, gradient->node);
  for (int n = 0; n < set.count && good; n++)
    for (int i = 0; i < set.nodes[n]->input_count && good; i++) {
      mix_edge *input = &set.nodes[n]->inputs[i];
      good = input->node->sequence >= begin ? mix_node_set_add(&set, input->node)
                                            : note(r, input, node, repeated);
    }
  mix_node_set_clear(&set);
  return good;
}

void mix_repeats_clear(mix_repeats *r) {
  for (int i = 0; i < r->made_count; i++) mix_release(r->made[i]);
  mix_free(r->made);
  mix_free(r->entries);
  mix_free(r->stack);
  *r = (mix_repeats){.within = r->within};
}
