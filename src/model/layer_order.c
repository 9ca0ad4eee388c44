/* The order of a functional model's layers, as in both Kerases: by depth, the largest distance from an
 * output; among layers of one depth in the order in which a walk from the outputs to the inputs meets them.
 * `layers`, weights and slots follow it, so files of weights in order fit (docs/spec/keras.md, 0). Layers
 * that no output needs come last. */
#include "model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

/* A call of the graph. The fields of its layer stand at the first call of that layer. */
typedef struct place {
  int layer;    /* the first call of the layer */
  bool met;     /* by the walk */
  int depth;    /* of the call */
  int position; /* of the layer: when the walk met it first; -1: not yet */
  int layer_depth;
} place;

typedef struct walk {
  const mix_functional *graph;
  place *places; /* one for each call */
  int *order;    /* the calls that the walk has finished: a call's inputs come before it */
  int finished, positions;
  int *waiting; /* a stack of calls to visit, and as ~c of calls whose inputs are visited */
  int waiting_count, waiting_capacity;
} walk;

static int call_of(const walk *w, const mix_tensor *tensor) {
  return mix_functional_call_place(w->graph, mix_tensor_history(tensor, &(int){0}));
}

static bool is_input(const walk *w, int c) {
  for (int i = 0; i < w->graph->input_count; i++)
    if (call_of(w, w->graph->inputs[i]) == c) return true;
  return false;
}

/* A model may begin at a tensor that a layer made. That call is outside the model. */
static bool is_outside(const walk *w, int c) { return w->graph->calls[c]->inputs && is_input(w, c); }

typedef void on_source(walk *w, int source, int depth);

static void one_source(walk *w, const mix_tensor *tensor, on_source *act, int depth) {
  const int source = tensor && tensor->node->symbolic ? call_of(w, tensor) : -1;
  if (source >= 0) act(w, source, depth);
}

static mix_tensor *item(mix_list *list, int i) {
  return list && i >= 0 && i < mix_list_count(list) ? mix_list_items(list)[i] : NULL;
}

/* The place of the name that follows `name` in the order of names, or of the first; -1: none. */
static int following(const char *const *names, const char *name) {
  int next = -1;
  for (int i = 0; names[i]; i++)
    if ((!name || strcmp(names[i], name) > 0) && (next < 0 || strcmp(names[i], names[next]) < 0)) next = i;
  return next;
}

/* What was given by name comes in the order of the names, as Keras 3 flattens it: key, query, value. */
static void named_sources(walk *w, const mix_layer_call *call, int positional, on_source *act, int depth) {
  const char *const *names = call->layer->kind->call_tensors;
  one_source(w, call->keywords.attention_mask, act, depth);
  for (int place = following(names, NULL); place >= 0; place = following(names, names[place])) {
    if (place >= positional)
      one_source(w, item(place ? call->arguments : call->inputs, place ? place - 1 : 0), act, depth);
    one_source(w, place ? item(call->keywords.argument_masks, place - 1) : item(call->masks, 0), act, depth);
  }
}

/* Calls `act` for each call whose results call `c` reads. */
static void each_source(walk *w, int c, on_source *act, int depth) {
  const mix_layer_call *call = w->graph->calls[c];
  const int inputs = call->inputs ? mix_list_count(call->inputs) : 0;
  const int count = inputs + (call->arguments ? mix_list_count(call->arguments) : 0);
  const int positional = count - call->keywords.by_name;
  for (int i = 0; i < positional; i++)
    one_source(w, i < inputs ? item(call->inputs, i) : item(call->arguments, i - inputs), act, depth);
  if (call->layer->kind && call->layer->kind->call_tensors) {
    named_sources(w, call, positional, act, depth);
    return;
  }
  /* Keras visits keywords in the order of their names. */
  for (int i = 0; call->initial_state && i < mix_list_count(call->initial_state); i++)
    one_source(w, item(call->initial_state, i), act, depth);
  for (int i = 0; call->masks && i < mix_list_count(call->masks); i++)
    one_source(w, item(call->masks, i), act, depth);
}

static void push(walk *w, int c, int depth) {
  if (mix_reserve(&w->waiting, &w->waiting_capacity, w->waiting_count + 1, sizeof *w->waiting))
    w->waiting[w->waiting_count++] = c;
}

/* Pushes the sources of a call so that the first is popped first. */
static void push_sources(walk *w, int c) {
  int begin = w->waiting_count;
  each_source(w, c, push, 0);
  for (int end = w->waiting_count - 1; begin < end; begin++, end--) {
    const int last = w->waiting[end];
    w->waiting[end] = w->waiting[begin];
    w->waiting[begin] = last;
  }
}

static void meet(walk *w, int c) {
  place *p = &w->places[c];
  if (p->met || is_outside(w, c)) return;
  p->met = true;
  if (w->places[p->layer].position < 0) w->places[p->layer].position = w->positions++;
  push(w, ~c, 0);
  push_sources(w, c);
}

/* Depth first and without recursion, for a chain may be as long as a file says. */
static void visit(walk *w, int output) {
  push(w, output, 0);
  while (w->waiting_count && !mix_failed()) {
    const int c = w->waiting[--w->waiting_count];
    if (c < 0)
      w->order[w->finished++] = ~c;
    else
      meet(w, c);
  }
}

static void deepen(walk *w, int c, int depth) {
  if (w->places[c].depth < depth) w->places[c].depth = depth;
}

/* From the outputs on. A call is at least as deep as the calls of its layer that came before. */
static void find_depths(walk *w) {
  for (int i = w->finished - 1; i >= 0; i--) {
    place *p = &w->places[w->order[i]], *layer = &w->places[p->layer];
    if (p->depth < layer->layer_depth) p->depth = layer->layer_depth;
    layer->layer_depth = p->depth;
    each_source(w, w->order[i], deepen, p->depth + 1);
  }
}

/* Inputs that no output needs come first among the layers of depth 0. */
static void place_unused_inputs(walk *w) {
  for (int i = 0; i < w->graph->input_count; i++) {
    int c = call_of(w, w->graph->inputs[i]);
    if (!w->places[c].met && !is_outside(w, c))
      w->places[c].met = true, w->places[c].position = i - w->graph->input_count;
  }
}

static void start(walk *w) {
  for (int c = 0; c < w->graph->call_count; c++)
    w->places[c] =
        (place){.layer = mix_functional_first_call(w->graph, w->graph->calls[c]->layer), .position = -1};
}

static int by_depth(const void *a, const void *b) {
  const place *x = a, *y = b;
  if (x->layer_depth != y->layer_depth) return x->layer_depth > y->layer_depth ? -1 : 1;
  return x->position < y->position ? -1 : x->position > y->position;
}

static bool add_in_order(walk *w, bool *added, mix_layer *model) {
  int count = 0;
  for (int c = 0; c < w->graph->call_count; c++)
    if (w->places[c].layer == c && (w->places[c].position >= 0 || w->places[c].met))
      added[c] = true, w->places[count++] = w->places[c];
  qsort(w->places, (size_t)count, sizeof *w->places, by_depth);
  for (int i = 0; i < count; i++)
    if (!mix_layer_add_layer(model, w->graph->calls[w->places[i].layer]->layer)) return false;
  return true;
}

/* In the order in which they were given, as tf_keras adds them. `added`: by the first call of a layer. */
static bool add_extras(const walk *w, bool *added, mix_layer *model) {
  for (int i = 0; i < w->graph->extra_count; i++) {
    mix_layer *layer = w->graph->calls[call_of(w, w->graph->extras[i])]->layer;
    const int first = mix_functional_first_call(w->graph, layer);
    if (!added[first] && !mix_layer_add_layer(model, layer)) return false;
    added[first] = true;
  }
  return true;
}

bool mix_functional_add_layers(mix_layer *model, const mix_functional *graph) {
  size_t count = (size_t)graph->call_count + 1;
  walk w = {.graph = graph,
            .places = mix_calloc(count, sizeof *w.places),
            .order = mix_calloc(count, sizeof *w.order)};
  bool *added = mix_calloc(count, sizeof *added), good = w.places && w.order && added;
  if (good) {
    start(&w);
    for (int i = 0; i < graph->output_count; i++) visit(&w, call_of(&w, graph->outputs[i]));
    find_depths(&w);
    place_unused_inputs(&w);
    good = !mix_failed() && add_in_order(&w, added, model) && add_extras(&w, added, model);
  }
  mix_free(added);
  mix_free(w.waiting);
  mix_free(w.places);
  mix_free(w.order);
  return good;
}
