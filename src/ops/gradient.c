/* Reverse-mode differentiation: visits the nodes of a tape in reverse order and builds each op's gradient. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "graph/tape.h"
#include "graph/variable.h"
#include "ops/repeat_segments.h"
#include "ops/table.h"
#include <stdlib.h>

/* The gradient contributions to one result of a node. They are summed when needed. */
typedef struct flow {
  mix_edge edge;
  mix_tensor **parts; /* borrowed: owned by the walk's scope */
  int count, capacity;
} flow;

typedef struct walk {
  mix_tape *tape;
  int node_count; /* nodes recorded before the walk began */
  bool *active;   /* true if node i depends on a source */
  flow *flows;    /* open addressing by (node, output) */
  int capacity, used;
  flow *
      /* The flows to reads of variables, in order of creation, so that sums do not depend on addresses. */
      *reads;
  int read_count;
  bool has_segments; /* so that what they compute is repeated */
  mix_repeats repeats;
} walk;

static size_t edge_hash(mix_edge edge) {
  return ((uintptr_t)edge.node >> 4) * 0x9e3779b97f4a7c15u + (size_t)edge.output * 0x85ebca6bu;
}

static flow *flow_find(walk *w, mix_edge edge, bool make) {
  if (make && (w->used + 1) * 2 > w->capacity) {
    int capacity = w->capacity ? w->capacity * 2 : 64;
    flow *flows = mix_calloc((size_t)capacity, sizeof *flows);
    if (!flows) return NULL;
    for (int i = 0; i < w->capacity; i++) {
      if (!w->flows[i].edge.node) continue;
      size_t at = (edge_hash(w->flows[i].edge) >> 7) & (size_t)(capacity - 1);
      while (flows[at].edge.node) at = (at + 1) & (size_t)(capacity - 1);
      flows[at] = w->flows[i];
    }
    mix_free(w->flows);
    w->flows = flows;
    w->capacity = capacity;
  }
  if (!w->capacity) return NULL;
  size_t at = (edge_hash(edge) >> 7) & (size_t)(w->capacity - 1);
  for (; w->flows[at].edge.node; at = (at + 1) & (size_t)(w->capacity - 1))
    if (w->flows[at].edge.node == edge.node && w->flows[at].edge.output == edge.output) return &w->flows[at];
  if (!make) return NULL;
  w->used++;
  w->flows[at].edge = edge;
  return &w->flows[at];
}

static bool flow_add(walk *w, mix_edge edge, mix_tensor *part) {
  flow *f = flow_find(w, edge, true);
  if (!f || !mix_reserve(&f->parts, &f->capacity, f->count + 1, sizeof *f->parts)) return false;
  f->parts[f->count++] = part;
  return true;
}

/* As in TensorFlow, a sum of rows alone holds the rows of all. */
static mix_tensor *sum(int count, mix_tensor *const *parts) {
  if (mix_all_are_rows(count, parts)) return mix_concat_rows(count, parts);
  return count == 2 ? mix_add(parts[0], parts[1]) : mix_add_n(count, parts);
}

/* The sum of the contributions to an edge; NULL if there are none. */
static mix_tensor *flow_sum(flow *f) {
  if (!f || !f->count) return NULL;
  if (f->count > 1) {
    f->parts[0] = sum(f->count, f->parts);
    f->count = 1;
  }
  return f->parts[0];
}

static int record_index(const walk *w, const mix_node *node) {
  return mix_node_index(w->tape->nodes, w->node_count, node);
}

/* True if the edge is a source, or depends on one, for a node with sequence number `at`. */
static bool edge_active(const walk *w, mix_edge edge, uint64_t at) {
  int index = record_index(w, edge.node);
  if (index >= 0 && w->active[index]) return true;
  if (edge.node->variable && edge.node->variable->trainable && w->tape->watch_accessed) return true;
  for (int i = 0; i < w->tape->watched_count; i++) {
    const mix_watched *source = &w->tape->watched[i];
    if (source->edge.node == edge.node && source->edge.output == edge.output && source->since <= at)
      return true;
  }
  return false;
}

/* The node whose values the gradient of `node` reads. */
static mix_node *repeated(walk *w, mix_node *node, mix_tensor *const *above) {
  int first = 0;
  while (!above[first]) first++;
  return mix_repeat_node(&w->repeats, node, above[first]);
}

static bool node_back(walk *w, mix_node *node) {
  enum { FEW = 16 };
  mix_tensor *local[FEW] = {0}, **above = local, **below = local + node->output_count, **many = NULL;
  bool any = false;
  if (node->input_count + node->output_count > FEW) {
    many = mix_calloc((size_t)(node->input_count + node->output_count), sizeof *many);
    if (!many) return false;
    above = many, below = many + node->output_count;
  }
  for (int i = 0; i < node->output_count; i++)
    any |= (above[i] = flow_sum(flow_find(w, (mix_edge){node, i}, false))) != NULL;
  if (!any || mix_failed()) return mix_free(many), !mix_failed();
  const char *former = mix_graph_scope_set(node->scope);
  mix_node *read = w->has_segments ? repeated(w, node, above) : node;
  const uint64_t begin = mix_node_next_sequence();
  const bool outside = mix_graph_backward_set(true);
  if (read) node->op->gradient(read, above, below);
  mix_graph_backward_set(outside);
  bool good = !mix_failed();
  for (int i = 0; i < node->input_count && good; i++)
    if (below[i] && edge_active(w, node->inputs[i], node->sequence))
      good = (!w->has_segments || mix_repeat_note_reads(&w->repeats, node, read, below[i], begin)) &&
             flow_add(w, node->inputs[i], below[i]);
  mix_graph_scope_set(former);
  mix_free(many);
  return good;
}

static int by_sequence(const void *a, const void *b) {
  uint64_t x = (*(flow *const *)a)->edge.node->sequence, y = (*(flow *const *)b)->edge.node->sequence;
  return x < y ? -1 : x > y;
}

static bool collect_reads(walk *w) {
  w->reads = mix_calloc((size_t)w->used + 1, sizeof *w->reads);
  if (!w->reads) return false;
  for (int i = 0; i < w->capacity; i++)
    if (w->flows[i].edge.node && w->flows[i].edge.node->op == &mix_op_read && w->flows[i].count)
      w->reads[w->read_count++] = &w->flows[i];
  qsort(w->reads, (size_t)w->read_count, sizeof *w->reads, by_sequence);
  return true;
}

/* The gradient of one source: of the edge itself, or the sum over all reads of a variable. */
static mix_tensor *source_gradient(walk *w, void *source) {
  if (mix_is(source, &mix_tensor_class)) {
    mix_edge edge = {((mix_tensor *)source)->node, ((mix_tensor *)source)->output};
    return edge_active(w, edge, UINT64_MAX) ? flow_sum(flow_find(w, edge, false)) : NULL;
  }
  mix_tensor *total = NULL;
  for (int i = 0; i < w->read_count; i++) {
    flow *f = w->reads[i];
    if (f->edge.node->variable != source || !edge_active(w, f->edge, UINT64_MAX)) continue;
    total = total ? sum(2, (mix_tensor *[]){total, flow_sum(f)}) : flow_sum(f);
  }
  return total;
}

static mix_list *walk_run(walk *w, mix_list *targets, mix_list *upstream, mix_list *sources) {
  mix_tape *tape = w->tape;
  w->node_count = tape->node_count;
  w->active = mix_calloc((size_t)w->node_count + 1, sizeof *w->active);
  if (!w->active) return NULL;
  for (int i = 0; i < w->node_count; i++)
    if (tape->nodes[i]->op->gradient)
      for (int j = 0; j < tape->nodes[i]->input_count && !w->active[i]; j++)
        w->active[i] = edge_active(w, tape->nodes[i]->inputs[j], tape->nodes[i]->sequence);
  for (int i = 0; i < mix_list_count(targets); i++) {
    mix_tensor *target = mix_list_get(targets, i), *gradient = upstream ? mix_list_get(upstream, i) : NULL;
    if (!target) continue;
    if (!gradient) gradient = mix_ones_like(target);
    if (!gradient || !flow_add(w, (mix_edge){target->node, target->output}, gradient)) return NULL;
  }
  for (int i = 0; i < w->node_count && !w->has_segments; i++)
    w->has_segments = mix_segment_inside(tape->nodes[i]->segment, w->repeats.within) != NULL;
  for (int i = w->node_count - 1; i >= 0; i--)
    if (w->active[i] && !node_back(w, tape->nodes[i])) return NULL;
  if (!collect_reads(w)) return NULL;
  mix_list *result = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(sources); i++)
    if (mix_list_append(result, source_gradient(w, mix_list_get(sources, i))) != MIX_OK) return NULL;
  return result;
}

/* Checks the request: targets are tensors of floating dtypes; an upstream gradient has the dtype and shape
 * of its target, or is NULL; sources are tensors or variables. */
static bool request_valid(mix_list *targets, mix_list *upstream, mix_list *sources) {
  int count = mix_list_count(targets);
  char got[320], expected[320];
  if (upstream && mix_list_count(upstream) != count)
    return mix_fail_value("tape_gradient: %d output gradients for %d targets", mix_list_count(upstream),
                          count);
  for (int i = 0; i < count; i++) {
    mix_tensor *target = mix_list_get(targets, i), *gradient = upstream ? mix_list_get(upstream, i) : NULL;
    if (!target) continue;
    if (!mix_is(target, &mix_tensor_class) || (gradient && !mix_is(gradient, &mix_tensor_class)))
      return mix_fail_type("tape_gradient: target %d or its output gradient is not a tensor", i);
    if (!mix_dtype_is_real(mix_tensor_value(target)->dtype))
      return mix_fail_type("tape_gradient: target %d has dtype %s; expected a floating dtype", i,
                           mix_dtype_name(mix_tensor_value(target)->dtype));
    if (gradient && (mix_tensor_dtype(gradient) != mix_tensor_dtype(target) ||
                     !mix_shape_equal(mix_tensor_shape(gradient), mix_tensor_shape(target))))
      return mix_fail_value("tape_gradient: output gradient %d is %s; its target is %s", i,
                            mix_operands_text(1, &gradient, got, sizeof got),
                            mix_operands_text(1, &target, expected, sizeof expected));
  }
  for (int i = 0; i < mix_list_count(sources); i++) {
    void *source = mix_list_get(sources, i);
    if (!mix_is(source, &mix_tensor_class) && !mix_is(source, &mix_variable_class))
      return mix_fail_type("tape_gradient: source %d is %s; expected a tensor or a variable", i,
                           source ? "another object" : "NULL");
  }
  return true;
}

mix_list *mix_gradient_walk(mix_tape *tape, mix_list *targets, mix_list *upstream, mix_list *sources,
                            const mix_segment *within) {
  mix_scope *scope = mix_scope_begin();
  walk w = {.tape = tape, .repeats.within = within};
  mix_list *result = scope ? mix_retain(walk_run(&w, targets, upstream, sources)) : NULL;
  for (int i = 0; i < w.capacity; i++) mix_free(w.flows[i].parts);
  mix_repeats_clear(&w.repeats);
  mix_free(w.flows);
  mix_free(w.active);
  mix_free(w.reads);
  mix_scope_end(scope);
  return mix_scoped(result);
}

mix_list *mix_tape_gradient_from(mix_tape *tape, mix_list *targets, mix_list *upstream, mix_list *sources) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed()) return NULL;
  if (!mix_is(tape, &mix_tape_class)) return mix_fail_type("tape_gradient: expected a tape");
  if (!mix_is(targets, &mix_list_class) || !mix_is(sources, &mix_list_class) ||
      (upstream && !mix_is(upstream, &mix_list_class)))
    return mix_fail_type("tape_gradient: targets, output gradients and sources are lists");
  if (tape->used && !tape->persistent)
    return mix_fail_runtime(
        "tape_gradient: this tape has been used; begin it with .persistent = true to ask more than once");
  if (!request_valid(targets, upstream, sources)) return NULL;
  if (!tape->persistent) mix_tape_close(tape);
  tape->used = true;
  mix_list *result = mix_gradient_walk(tape, targets, upstream, sources, mix_segment_current());
  if (!tape->persistent) mix_tape_drop_records(tape);
  return result;
}

mix_list *mix_tape_gradient(mix_tape *tape, void *target, mix_list *sources) {
  if (mix_failed()) return NULL;
  mix_list *targets = mix_is(target, &mix_tensor_class) ? mix_list_of(target)
                      : mix_is(target, &mix_list_class) ? target
                                                        : NULL;
  if (!targets) return mix_fail_type("tape_gradient: the target is neither a tensor nor a list of tensors");
  return mix_tape_gradient_from(tape, targets, NULL, sources);
}
