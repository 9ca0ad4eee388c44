/* Results of a watched step. During capture, the layer calls and the tape's records yield the tensors. The
 * step then also returns statistics of each tensor and of its gradient. All of it is graph operations, so the
 * watched values do not change. */
#include "base/alloc.h"
#include "base/error.h"
#include "graph/body.h"
#include "graph/loop_capture.h"
#include "graph/tape.h"
#include "train/numerics/numerics.h"
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

typedef struct item {
  mix_edge edge; /* retained */
  const char *layer, *tensor, *blamed;
  mix_numerics_kind kind;
  bool scaled_loss, requested; /* requested: its gradient is among the sources */
} item;

struct mix_numerics_watch {
  mix_numerics *report;
  mix_layer_observer observer;
  const mix_layer_observer *previous;
  bool observing;
  /* Sequence numbers: the start of the model's call, and of what is computed from its outputs. */
  uint64_t first, loss;
  item *items;
  int count, capacity;
  mix_tensor *scale; /* retained */
};

static mix_dtype item_dtype(const item *i) { return i->edge.node->outputs[i->edge.output].dtype; }

static item *find(struct mix_numerics_watch *watch, mix_edge edge) {
  for (int i = watch->count - 1; i >= 0; i--)
    if (watch->items[i].edge.node == edge.node && watch->items[i].edge.output == edge.output)
      return &watch->items[i];
  return NULL;
}

/* Adds a tensor. A known tensor keeps its first name. NULL: not added. */
static item *add(struct mix_numerics_watch *watch, mix_edge edge, const char *layer, const char *tensor,
                 mix_numerics_kind kind) {
  if (!mix_dtype_is_real(edge.node->outputs[edge.output].dtype) || find(watch, edge)) return NULL;
  if (!mix_reserve(&watch->items, &watch->capacity, watch->count + 1, sizeof *watch->items)) return NULL;
  item *added = &watch->items[watch->count++];
  *added =
      (item){.edge = {mix_retain(edge.node), edge.output}, .layer = layer, .tensor = tensor, .kind = kind};
  return added;
}

/* Strips the model's name: "model/dense_1" is shown as dense_1. */
static const char *layer_name(const mix_numerics *report, const char *scope) {
  if (!scope || !*scope) return "model";
  size_t length = report->model ? strlen(report->model) : 0;
  bool inside = length && !strncmp(scope, report->model, length) && scope[length] == '/';
  return inside ? scope + length + 1 : scope;
}

static void layer_called(void *context, const mix_layer *layer, const char *path, mix_list *inputs,
                         mix_list *results) {
  struct mix_numerics_watch *watch = context;
  if (mix_loop_capture_current()) return; /* a value of one step: add_steps */
  const char *name = layer_name(watch->report, path);
  for (int i = 0; i < mix_list_count(inputs); i++) {
    const mix_tensor *input = mix_list_get(inputs, i);
    if (input && !(input->node->op->flags & MIX_OP_READ))
      add(watch, (mix_edge){input->node, input->output}, name, "input", MIX_NUMERICS_INPUT);
  }
  for (int i = 0; i < mix_list_count(results); i++) {
    const mix_tensor *result = mix_list_get(results, i);
    add(watch, (mix_edge){result->node, result->output}, name, "output", MIX_NUMERICS_OUTPUT);
  }
  watch->loss = mix_node_next_sequence();
}

static void end_watch(mix_numerics *report) {
  struct mix_numerics_watch *watch = report->watch;
  if (!watch) return;
  if (watch->observing) mix_layer_observer_set(watch->previous);
  for (int i = 0; i < watch->count; i++) mix_release(watch->items[i].edge.node);
  mix_release(watch->scale);
  mix_free(watch->items);
  mix_free(watch);
  report->watch = NULL;
}

static void begin(void *context, mix_list *inputs, mix_list *arguments) {
  mix_numerics *report = context;
  end_watch(report);
  struct mix_numerics_watch *watch = report->watch = mix_calloc(1, sizeof *watch);
  if (!watch) return;
  report->end_watch = end_watch;
  watch->report = report;
  watch->observer = (mix_layer_observer){layer_called, watch};
  watch->previous = mix_layer_observer_set(&watch->observer);
  watch->observing = true;
  watch->first = watch->loss = mix_node_next_sequence();
  for (int i = 0; i < mix_list_count(arguments); i++) {
    bool input = i < mix_list_count(inputs);
    const mix_tensor *tensor = mix_list_get(input ? inputs : arguments, i);
    if (tensor)
      add(watch, (mix_edge){tensor->node, tensor->output}, input ? "inputs" : "labels", "data",
          MIX_NUMERICS_DATA);
  }
}

/* ---- records of the tape ---- */

/* True for ops that only move or rename values: their results are already known. */
static bool moves_only(const mix_node *node) {
  return (node->op->flags & (MIX_OP_LAYOUT | MIX_OP_ALIAS | MIX_OP_BARRIER)) ||
         node->op->opcode == MIX_OPCODE_IDENTITY;
}

static bool reads(mix_edge edge) { return (edge.node->op->flags & MIX_OP_READ) && edge.node->variable; }

/* "dense_1/kernel:0" is shown as kernel. */
static const char *variable_name(const mix_variable *variable) {
  char text[128];
  const char *name = mix_variable_name(variable), *slash = strrchr(name, '/');
  snprintf(text, sizeof text, "%s", slash ? slash + 1 : name);
  text[strcspn(text, ":")] = 0;
  return mix_intern(text);
}

/* True for nodes of the loss, including penalties and the loss scale. */
static bool behind_outputs(const struct mix_numerics_watch *watch, const mix_node *node) {
  return node->sequence >= watch->loss;
}

static const char *layer_of(const struct mix_numerics_watch *watch, const mix_node *node) {
  return behind_outputs(watch, node) ? "loss" : layer_name(watch->report, node->scope);
}

/* Blames the layer whose backward operation computes the gradient of an operand: the consumer's layer. If the
 * consumer is a cast or the loss, blames the operand's own layer, whose dtype the gradient does not fit. */
static void blame_consumer(struct mix_numerics_watch *watch, const mix_node *node) {
  for (int i = 0; i < node->input_count; i++) {
    item *operand = find(watch, node->inputs[i]);
    if (!operand) continue;
    bool own = node->op->opcode == MIX_OPCODE_CAST || behind_outputs(watch, node);
    operand->blamed = own ? operand->layer : layer_of(watch, node);
  }
}

/* The loops of a tape whose steps have values of their own. */
typedef struct loop_list {
  const mix_node **nodes; /* owned */
  int count, capacity;
} loop_list;

/* False with the error recorded. */
static bool find_loops(loop_list *found, mix_node *const *nodes, int count) {
  for (int n = 0; n < count; n++) {
    if (!nodes[n]->body || !nodes[n]->body->varying_count) continue;
    if (!mix_reserve(&found->nodes, &found->capacity, found->count + 1, sizeof *found->nodes)) return false;
    found->nodes[found->count++] = nodes[n];
  }
  return true;
}

/* Was it made in the step of a loop? Such a value belongs to that step. */
static bool is_in_step(const mix_node *node, const loop_list *loops) {
  for (int n = 0; n < loops->count; n++) {
    const mix_node *loop = loops->nodes[n];
    if (node->sequence < loop->sequence && node->sequence > loop->body->parameters[0].node->sequence)
      return true;
  }
  return false;
}

/* The values of all steps of a loop, which its gradient reads, under the names that they have in the step. */
static void add_steps(struct mix_numerics_watch *watch, mix_node *loop) {
  const mix_scan_attributes *attributes = loop->attributes;
  for (int output = attributes->carries; output < loop->output_count; output++) {
    const mix_edge inside = loop->body->results[output];
    if (mix_body_varies(loop->body, inside) && !moves_only(inside.node))
      add(watch, (mix_edge){loop, output}, layer_of(watch, inside.node), inside.node->op->name,
          MIX_NUMERICS_INTERMEDIATE);
  }
}

/* Adds a weight as the layer uses it: the cast of its value, or the value itself. A cast in the step of a
 * loop has no gradient of its own: steps are summed in the value's dtype. */
static void add_weight(struct mix_numerics_watch *watch, mix_node *node, bool in_step) {
  for (int i = 0; i < node->input_count; i++) {
    mix_edge edge = node->inputs[i];
    if (!reads(edge) || (behind_outputs(watch, node) && !mix_variable_trainable(edge.node->variable)))
      continue;
    const char *layer = layer_of(watch, node), *name = variable_name(edge.node->variable);
    bool cast = node->op->opcode == MIX_OPCODE_CAST;
    if (cast) add(watch, (mix_edge){node, 0}, layer, name, MIX_NUMERICS_WEIGHT);
    const bool itself = !cast || in_step;
    item *known = itself ? find(watch, edge) : NULL;
    if (known) known->kind = MIX_NUMERICS_WEIGHT;
    if (itself || watch->report->intermediates)
      add(watch, edge, layer, name, itself ? MIX_NUMERICS_WEIGHT : MIX_NUMERICS_INTERMEDIATE);
  }
}

static void add_recorded(struct mix_numerics_watch *watch, mix_tape *tape) {
  int count;
  loop_list loops = {0};
  mix_node *const *nodes = mix_tape_nodes(tape, &count);
  const bool found = find_loops(&loops, nodes, count);
  for (int n = 0; n < count && found; n++) {
    if (nodes[n]->sequence < watch->first) continue;
    const bool in_step = is_in_step(nodes[n], &loops);
    add_weight(watch, nodes[n], in_step);
    if (!watch->report->intermediates || moves_only(nodes[n]) || in_step) continue;
    if (!nodes[n]->scope && !behind_outputs(watch, nodes[n])) continue;
    if (nodes[n]->body) {
      add_steps(watch, nodes[n]);
      continue;
    }
    for (int output = 0; output < nodes[n]->output_count; output++)
      add(watch, (mix_edge){nodes[n], output}, layer_of(watch, nodes[n]), nodes[n]->op->name,
          MIX_NUMERICS_INTERMEDIATE);
  }
  mix_free(loops.nodes);
  for (int n = 0; n < count; n++) blame_consumer(watch, nodes[n]);
}

static int by_sequence(const void *a, const void *b) {
  const item *x = a, *y = b;
  if (x->edge.node->sequence != y->edge.node->sequence)
    return x->edge.node->sequence < y->edge.node->sequence ? -1 : 1;
  return x->edge.output - y->edge.output;
}

/* Appends a number to a repeated name within a layer. */
static const char *numbered(const struct mix_numerics_watch *watch, int index) {
  const item *named = &watch->items[index];
  int before = 0;
  for (int i = 0; i < index; i++)
    before += watch->items[i].layer == named->layer && !strcmp(watch->items[i].tensor, named->tensor) &&
              item_dtype(&watch->items[i]) == item_dtype(named);
  if (!before) return mix_intern(named->tensor);
  char text[160];
  snprintf(text, sizeof text, "%s_%d", named->tensor, before + 1);
  return mix_intern(text);
}

/* Adds the loss last, because it is computed from everything else. */
static void add_losses(struct mix_numerics_watch *watch, mix_tensor *loss, mix_tensor *scaled) {
  item *known = find(watch, (mix_edge){loss->node, loss->output});
  if (known && known->kind == MIX_NUMERICS_INTERMEDIATE)
    known->kind = MIX_NUMERICS_LOSS, known->layer = known->tensor = "loss";
  add(watch, (mix_edge){loss->node, loss->output}, "loss", "loss", MIX_NUMERICS_LOSS);
  if (scaled->node == loss->node) return;
  known = find(watch, (mix_edge){scaled->node, scaled->output});
  if (!known)
    known = add(watch, (mix_edge){scaled->node, scaled->output}, "loss", "scaled_loss", MIX_NUMERICS_LOSS);
  if (known)
    known->kind = MIX_NUMERICS_LOSS, known->layer = "loss", known->tensor = "scaled_loss",
    known->scaled_loss = true;
}

static mix_list *sources(void *context, mix_tape *tape, mix_tensor *loss, mix_tensor *scaled) {
  mix_numerics *report = context;
  struct mix_numerics_watch *watch = report->watch;
  if (!watch || mix_failed()) return NULL;
  mix_layer_observer_set(watch->previous);
  watch->observing = false;
  watch->scale = mix_retain(mix_optimizer_scale_loss(report->optimizer, mix_scalar(1, MIX_FLOAT32)));
  add_recorded(watch, tape);
  add_losses(watch, loss, scaled);
  qsort(watch->items, (size_t)watch->count, sizeof *watch->items, by_sequence);
  mix_list *requested = mix_list_new(0, NULL);
  for (int i = 0; i < watch->count && !mix_failed(); i++) { /* after a failure names may be missing */
    item *current = &watch->items[i];
    current->tensor = numbered(watch, i);
    current->requested = current->kind != MIX_NUMERICS_LOSS && current->kind != MIX_NUMERICS_DATA;
    if (current->requested)
      mix_list_append(requested, mix_tensor_of(current->edge.node, current->edge.output));
  }
  return mix_failed() ? NULL : requested;
}

/* ---- the results ---- */

static bool append_slot(mix_numerics_layout *layout, int *capacity, int entry, bool gradient) {
  if (!mix_reserve(&layout->slots, capacity, layout->count + 1, sizeof *layout->slots)) return false;
  layout->slots[layout->count].entry = entry;
  layout->slots[layout->count++].gradient = gradient;
  return true;
}

static int entry_of(mix_numerics *report, const item *i, bool has_gradient) {
  const mix_value *value = &i->edge.node->outputs[i->edge.output];
  mix_numerics_entry like = {.layer = mix_intern(i->layer),
                             .tensor = i->tensor,
                             .op = i->edge.node->op->name,
                             .blamed = mix_intern(i->blamed ? i->blamed : i->layer),
                             .kind = i->kind,
                             .dtype = value->dtype,
                             .shape = value->shape,
                             .has_gradient = has_gradient,
                             .scaled_loss = i->scaled_loss};
  return mix_failed() ? -1 : mix_numerics_entry_of(report, &like);
}

/* Returns the concatenated vectors, the loss scale, and the index of the layout. */
static mix_list *results(void *context, mix_list *gradients) {
  mix_numerics *report = context;
  struct mix_numerics_watch *watch = report->watch;
  if (!watch || mix_failed()) return NULL;
  if (!mix_reserve(&report->layouts, &report->layout_capacity, report->layout_count + 1,
                   sizeof *report->layouts))
    return NULL;
  mix_numerics_layout *layout = &report->layouts[report->layout_count++];
  *layout = (mix_numerics_layout){0};
  mix_tensor **vectors = mix_calloc(2 * (size_t)watch->count + 1, sizeof *vectors);
  int capacity = 0, next = 0;
  for (int i = 0; i < watch->count && vectors && !mix_failed(); i++) {
    const item *current = &watch->items[i];
    mix_tensor *gradient = current->requested ? mix_list_get(gradients, next++) : NULL;
    int entry = entry_of(report, current, gradient != NULL);
    if (entry < 0 || !append_slot(layout, &capacity, entry, false)) break;
    vectors[layout->count - 1] = mix_magnitudes(mix_tensor_of(current->edge.node, current->edge.output));
    if (gradient && append_slot(layout, &capacity, entry, true))
      vectors[layout->count - 1] = mix_magnitudes(gradient);
  }
  mix_tensor *all = mix_failed() || !vectors ? NULL : mix_concat(layout->count, vectors, 0);
  mix_free(vectors);
  mix_tensor *scale = all ? mix_identity(watch->scale) : NULL;
  mix_list *list =
      scale ? mix_list_of(all, scale, mix_scalar((double)(report->layout_count - 1), MIX_INT32)) : NULL;
  end_watch(report);
  return list;
}

/* After a skipped step every step is watched until one is applied. */
static bool wants(void *context) {
  const mix_numerics *report = context;
  return report->steps % report->every == 0 || report->skipped_in_row > 0;
}

mix_step_observer mix_numerics_observer(mix_numerics *report) {
  return (mix_step_observer){.context = report,
                             .wants = wants,
                             .begin = begin,
                             .sources = sources,
                             .results = results,
                             .after = mix_numerics_after};
}
