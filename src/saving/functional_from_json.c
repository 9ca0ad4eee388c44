/* Functional models from JSON: calls the layers as the text says, each as soon as its inputs are there. */
#include "saving/model_json.h"

#include "base/alloc.h"
#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/recurrent/recurrent.h"
#include <stdio.h>
#include <string.h>

/* A layer of the text with the results of its calls. */
typedef struct saved_layer {
  const char *name;
  mix_layer *layer;    /* NULL: an input layer */
  const json_t *nodes; /* its calls */
  int count, made;
  mix_list **results; /* of the calls that are made */
  int *waiting;       /* for each call the first of the `waits` for it, plus 1 */
  int missing;        /* the tensors that its next call waits for */
} saved_layer;

/* A layer that waits for a call. */
typedef struct wait {
  saved_layer *layer;
  int next; /* that waits for the same call, plus 1 */
} wait;

typedef struct saved_graph {
  mix_json_reader *reader;
  saved_layer *layers;
  int count;
  json_t *names;      /* name -> index of a layer */
  json_t *taken;      /* the names that the layers have, which are others in some texts */
  saved_layer *tried; /* whose next call is read; NULL: inputs and outputs of the model are */
  wait *waits;
  int wait_count, wait_capacity;
} saved_graph;

/* ---- references ---- */

/* [layer, node, tensor, ...] */
static bool is_history(const json_t *value) {
  return json_array_size(value) >= 3 && json_is_string(json_array_get(value, 0)) &&
         json_is_integer(json_array_get(value, 1)) && json_is_integer(json_array_get(value, 2));
}

static bool is_keras_tensor(const json_t *value) { return mix_json_is_class(value, "__keras_tensor__"); }

/* A tensor in either form; also null, which stands for no tensor, and objects that no reader knows. */
static bool is_leaf(const json_t *value) {
  return is_history(value) || json_object_get(value, "class_name") || json_is_null(value);
}

static const json_t *history_in(const json_t *value) {
  if (is_keras_tensor(value)) value = json_object_get(json_object_get(value, "config"), "keras_history");
  if (is_history(value)) return value;
  return mix_fail_value("model_from_json: %s stands where [layer, call, result] is expected",
                        json_object_get(value, "class_name") ? "another object" : mix_json_kind(value));
}

static saved_layer *layer_named(const saved_graph *graph, const char *name) {
  const json_t *index = json_object_get(graph->names, name);
  if (index) return &graph->layers[json_integer_value(index)];
  return mix_fail_value("model_from_json: a call needs layer '%.60s', which the model lacks", name);
}

static void *await_call(saved_graph *graph, int *waiting) {
  if (!mix_reserve(&graph->waits, &graph->wait_capacity, graph->wait_count + 1, sizeof *graph->waits))
    return NULL;
  graph->waits[graph->wait_count] = (wait){graph->tried, *waiting};
  *waiting = ++graph->wait_count;
  graph->tried->missing++;
  return NULL;
}

/* The tensor; NULL without an error if the layer that is tried must wait for it. */
static mix_tensor *find_tensor(saved_graph *graph, const json_t *value) {
  const json_t *history = history_in(value);
  saved_layer *layer = history ? layer_named(graph, json_string_value(json_array_get(history, 0))) : NULL;
  if (!layer) return NULL;
  json_int_t node = json_integer_value(json_array_get(history, 1)),
             output = json_integer_value(json_array_get(history, 2));
  const mix_semantics *written = graph->reader->written;
  const bool below = node < 0; /* also of what has no number before it */
  if (!below && written->nested_calls_from_one && layer->layer && layer->layer->is_model) node--;
  /* a 0, which Keras does not write, is the first call too */
  if (!graph->tried && node > 0 && written->model_ends_from_one && layer->layer &&
      mix_layer_is_functional(layer->layer))
    node--;
  if (node < 0 || node >= layer->count)
    return mix_fail_value("model_from_json: call %lld of layer '%.60s' is asked for; it has %d",
                          (long long)node, layer->name, layer->count);
  if (node >= layer->made) return await_call(graph, &layer->waiting[node]);
  if (output < 0 || output >= mix_list_count(layer->results[node]))
    return mix_fail_value("model_from_json: result %lld of layer '%.60s' is asked for; it has %d",
                          (long long)output, layer->name, mix_list_count(layer->results[node]));
  return mix_list_get(layer->results[node], (int)output);
}

/* ---- calls ---- */

/* The arguments of a call as they are collected. */
typedef struct read_call {
  mix_list *inputs, *arguments, *masks, *initial_state;
  json_t *form; /* of an operation; owned */
  bool inputs_are_list;
  mix_training training;
  mix_call_keywords keywords;
  int positional; /* tensors before those given by name; -1: all */
} read_call;

typedef struct collecting {
  saved_graph *graph;
  mix_list *list;
  const json_t *first; /* what stands for its first tensor */
} collecting;

static json_t *collect_item(void *context, const json_t *value) {
  collecting *c = context;
  if (!(c->graph->tried ? is_leaf(value) : is_history(value))) {
    if (!json_is_array(value) && !json_is_object(value))
      mix_fail_value("model_from_json: %s stands where a tensor is expected", mix_json_kind(value));
    return NULL;
  }
  if (!c->first) c->first = value;
  mix_tensor *tensor = json_is_null(value) ? NULL
                       : mix_is_array_form(value)
                           ? mix_array_form_read(value, "model_from_json", "a constant")
                           : find_tensor(c->graph, value);
  mix_list_append(c->list, tensor);
  return mix_operand_form(mix_list_count(c->list) - 1);
}

/* Appends the tensors of a structure, NULL for null, arrays as tensors that hold data, to the list, which is
 * made if it is NULL. */
static void collect(saved_graph *graph, const json_t *structure, mix_list **list) {
  if (!*list) *list = mix_list_new(0, NULL);
  json_decref(mix_form_map(structure, collect_item, &(collecting){graph, *list, NULL}));
}

static bool all_null(mix_list *list) {
  for (int i = 0; list && i < mix_list_count(list); i++)
    if (mix_list_items(list)[i]) return false;
  return true;
}

/* The default of a class stands in texts of Keras 3 also where nothing was given. */
static void read_training(saved_graph *graph, const saved_layer *layer, const json_t *value,
                          read_call *call) {
  if (!json_is_boolean(value) && !json_is_null(value) && !json_is_integer(value))
    mix_fail_type("model_from_json: training of layer '%.60s' is %s; expected true or false", layer->name,
                  mix_json_kind(value));
  if (json_is_null(value)) return;
  bool given = json_is_integer(value) ? json_integer_value(value) != 0 : json_is_true(value);
  call->training = given ? MIX_TRUE : MIX_FALSE;
  const mix_layer_kind *kind = layer->layer->kind;
  const bool listed = graph->reader->written->node_objects && kind;
  if (listed && kind->call_training == call->training) call->training = MIX_INHERIT;
}

static bool read_flag(const saved_layer *layer, const char *name, const json_t *value) {
  if (json_is_boolean(value)) return json_is_true(value);
  return mix_fail_type("model_from_json: %s of layer '%.60s' is %s; expected true or false", name,
                       layer->name, mix_json_kind(value));
}

/* The number of a tensor's place in the call, 0 for the inputs; -1: it is no such name. */
static int place_of(const mix_layer_kind *kind, const char *name) {
  for (int i = 0; kind && kind->call_tensors && kind->call_tensors[i]; i++)
    if (!strcmp(kind->call_tensors[i], name)) return i;
  return -1;
}

/* The mask of the tensor at a place: "value_mask". */
static int mask_place_of(const mix_layer_kind *kind, const char *name) {
  const size_t length = strlen(name);
  char tensor[32];
  if (length < 6 || length >= sizeof tensor || strcmp(name + length - 5, "_mask")) return -1;
  snprintf(tensor, sizeof tensor, "%.*s", (int)length - 5, name);
  return place_of(kind, tensor);
}

/* Puts the tensor of `value` at an index of a list, which grows with NULL. */
static void put(saved_graph *graph, const json_t *value, mix_list **list, int index) {
  mix_list *former = *list, *one = NULL, *grown = mix_list_new(0, NULL);
  collect(graph, value, &one);
  if (mix_failed()) return;
  const int count = former ? mix_list_count(former) : 0;
  for (int i = 0; i < count || i <= index; i++)
    mix_list_append(grown, i == index ? mix_list_get(one, 0) : i < count ? mix_list_get(former, i) : NULL);
  *list = grown;
}

/* A tensor of a layer that names them, or the mask of one. False: it is none. */
static bool read_named(saved_graph *graph, const mix_layer_kind *kind, const char *name, const json_t *value,
                       read_call *call) {
  const int place = place_of(kind, name), mask = mask_place_of(kind, name);
  if (place > 0) put(graph, value, &call->arguments, place - 1);
  if (mask == 0) collect(graph, value, &call->masks);
  if (mask > 0) put(graph, value, &call->keywords.argument_masks, mask - 1);
  if (kind && kind->call_tensors && !strcmp(name, "attention_mask")) {
    mix_list *one = NULL;
    collect(graph, value, &one);
    if (!mix_failed()) call->keywords.attention_mask = mix_list_get(one, 0);
    return true;
  }
  return place >= 0 || mask >= 0;
}

static void read_keyword(saved_graph *graph, const saved_layer *layer, const char *name, const json_t *value,
                         read_call *call) {
  const mix_layer_kind *kind = layer->layer->kind;
  if (!strcmp(name, "training"))
    read_training(graph, layer, value, call);
  else if (json_is_null(value) || read_named(graph, kind, name, value, call))
    return;
  else if (kind && kind->call_is_attention && !strcmp(name, "use_causal_mask"))
    call->keywords.use_causal_mask = read_flag(layer, name, value);
  else if (kind && kind->call_is_attention && !strcmp(name, "return_attention_scores"))
    call->keywords.return_attention_scores = read_flag(layer, name, value);
  else if (!strcmp(name, "reverse") && (!kind || kind->call_has_reverse))
    call->keywords.reverse = read_flag(layer, name, value);
  else if (!strcmp(name, "mask"))
    collect(graph, value, &call->masks);
  else if (!strcmp(name, "initial_state"))
    collect(graph, value, &call->initial_state);
  else if (!strncmp(name, "argument_", 9))
    collect(graph, value, &call->arguments);
  else
    mix_fail_value(
        "model_from_json: the call of layer '%.60s' has an argument '%.60s', which is not supported",
        layer->name, name);
}

static void pad(mix_list *list, int count) {
  while (list && mix_list_count(list) < count && !mix_failed()) mix_list_append(list, NULL);
}

static void read_keywords(saved_graph *graph, const saved_layer *layer, const json_t *keywords,
                          read_call *call) {
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)keywords, name, value) {
    if (mix_failed()) return;
    read_keyword(graph, layer, name, value, call);
  }
  if (call->masks && all_null(call->masks)) call->masks = NULL;
  mix_list *masks = call->keywords.argument_masks;
  if (!masks || mix_failed()) return;
  /* one list may end before the other: a mask of the key may be that of the value in its place */
  if (!call->arguments) call->arguments = mix_list_new(0, NULL);
  pad(masks, mix_list_count(call->arguments));
  pad(call->arguments, mix_list_count(masks));
}

/* The arguments of an operation. */
static json_t *read_operand(void *context, const json_t *value) {
  const collecting *c = context;
  if (is_keras_tensor(value)) {
    mix_tensor *tensor = find_tensor(c->graph, value);
    if (tensor) mix_list_append(c->list, tensor);
    return mix_operand_form(mix_list_count(c->list) - 1);
  }
  if (!json_is_object(value)) return NULL;
  if (json_object_get(value, "class_name")) return mix_json_copy(value);
  return mix_fail_value(
      "model_from_json: an object without class_name stands among the arguments of an operation");
}

static void read_operation_node(saved_graph *graph, const json_t *node, read_call *call) {
  const char *name;
  json_t *value;
  call->inputs = mix_list_new(0, NULL);
  call->inputs_are_list = true;
  call->form = json_object();
  const json_t *args = json_object_get(node, "args"), *keywords = json_object_get(node, "kwargs");
  if ((args && !json_is_array(args)) || (keywords && !json_is_object(keywords)))
    mix_fail_value("model_from_json: args of an operation are %s and kwargs %s; expected a list "
                   "and an object",
                   mix_json_kind(args), mix_json_kind(keywords));
  collecting operands = {graph, call->inputs, NULL};
  mix_json_set(call->form, "args", args ? mix_form_map(args, read_operand, &operands) : json_array());
  json_t *named = json_object();
  json_object_foreach((json_t *)keywords, name, value)
      mix_json_set(named, name, mix_form_map(value, read_operand, &operands));
  mix_json_set(call->form, "kwargs", named);
}

/* {"args": [inputs, ...], "kwargs": {...}} */
static void read_node_object(saved_graph *graph, const saved_layer *layer, const json_t *node,
                             read_call *call) {
  const json_t *args = json_object_get(node, "args"), *inputs = json_array_get(args, 0);
  const json_t *keywords = json_object_get(node, "kwargs");
  const mix_layer_kind *kind = layer->layer->kind;
  if (!inputs)
    inputs = json_object_get(keywords, kind && kind->call_tensors ? kind->call_tensors[0] : "inputs");
  if (!inputs) {
    mix_fail_value("model_from_json: a call of layer '%.60s' has no inputs", layer->name);
    return;
  }
  call->inputs_are_list = !is_leaf(inputs);
  if (kind && kind->call_tensors) call->positional = (int)json_array_size(args);
  collect(graph, inputs, &call->inputs);
  const json_t *second = json_array_get(args, 1);
  const bool is_flag = kind && kind->call_has_reverse && json_is_boolean(second);
  if (is_flag) call->keywords.reverse = json_is_true(second);
  for (size_t i = is_flag ? 2 : 1; i < json_array_size(args) && !mix_failed(); i++)
    collect(graph, json_array_get(args, i), &call->arguments);
  if (!mix_failed()) read_keywords(graph, layer, keywords, call);
}

/* [[layer, node, tensor, {...}], ...], or an object of such items. */
static void read_node_list(saved_graph *graph, const saved_layer *layer, const json_t *node,
                           read_call *call) {
  collecting c = {graph, call->inputs = mix_list_new(0, NULL), NULL};
  json_decref(mix_form_map(node, collect_item, &c));
  call->inputs_are_list = (json_is_object(node) && !is_leaf(node)) || mix_list_count(c.list) > 1;
  const json_t *keywords = json_array_get(c.first, 3);
  if (!mix_failed() && keywords) read_keywords(graph, layer, keywords, call);
}

/* ---- operations of tf_keras ---- */

static mix_tensor *referred(void *context, const json_t *reference) {
  return find_tensor(context, reference);
}

/* Makes the next call of an operation. False: it waits, or it failed. */
static bool make_operation_call(saved_graph *graph, saved_layer *layer, const json_t *node) {
  mix_tf_operation_node read = {.find = referred, .context = graph};
  if (!mix_read_operation_node(node, layer->name, &read)) return false;
  const mix_call_keywords keywords = {.form = read.form};
  layer->results[layer->made] = mix_layer_call_outputs(layer->layer, read.inputs, read.inputs_are_list,
                                                       read.arguments, NULL, NULL, MIX_INHERIT, &keywords);
  json_decref(read.form);
  if (!layer->results[layer->made]) return false;
  layer->made++;
  return true;
}

/* In the record of the call, from which the order of the layers follows. */
static void note_names(const read_call *call, mix_list *results) {
  mix_layer_call *record = mix_tensor_history(mix_list_get(results, 0), NULL);
  const int count = 1 + (call->arguments ? mix_list_count(call->arguments) : 0);
  if (record && call->positional >= 0 && call->positional < count)
    record->keywords.by_name = count - call->positional;
}

/* Makes the next call of an operation. */
static bool make_keras_operation_call(saved_graph *graph, saved_layer *layer, const json_t *node) {
  read_call call = {.training = MIX_INHERIT};
  if (mix_operand_form_reserved(node))
    return mix_fail_value("model_from_json: the call of layer '%.60s' has an object that no operation takes",
                          layer->name);
  read_operation_node(graph, node, &call);
  const bool ready = !mix_failed() && !layer->missing;
  if (ready && !mix_list_count(call.inputs))
    mix_fail_value("model_from_json: a call of operation '%.60s' has no tensors", layer->name);
  else if (ready)
    layer->results[layer->made] =
        mix_layer_call_outputs(layer->layer, call.inputs, true, NULL, NULL, NULL, MIX_INHERIT,
                               &(mix_call_keywords){.form = call.form});
  json_decref(call.form);
  const bool made = ready && !mix_failed() && layer->results[layer->made];
  layer->made += made;
  return made;
}

/* A text of another generation may have the initial states of a recurrent layer among its inputs. */
static void separate_states(const saved_layer *layer, read_call *call) {
  const mix_layer *rnn = layer->layer;
  const int count = mix_list_count(call->inputs);
  if (rnn->semantics->rnn_states_in_inputs || count < 2 || call->initial_state) return;
  if (!mix_rnn_of(rnn) && rnn->kind != &mix_bidirectional_kind) return;
  call->initial_state = mix_list_new(count - 1, mix_list_items(call->inputs) + 1);
  call->inputs = mix_list_new(1, mix_list_items(call->inputs));
  call->inputs_are_list = false;
}

/* Makes the next call of the layer. False: it waits, or it failed. */
static bool make_call(saved_graph *graph, saved_layer *layer) {
  const json_t *node = json_array_get(layer->nodes, (size_t)layer->made);
  if (mix_keras_operation_of(layer->layer)) return make_keras_operation_call(graph, layer, node);
  if (mix_call_has_form(layer->layer)) return make_operation_call(graph, layer, node);
  read_call call = {.training = MIX_INHERIT, .positional = -1};
  if (json_object_get(node, "args") || json_object_get(node, "kwargs"))
    read_node_object(graph, layer, node, &call);
  else
    read_node_list(graph, layer, node, &call);
  if (mix_failed() || layer->missing) return false;
  separate_states(layer, &call);
  if (!mix_list_count(call.inputs) || all_null(call.inputs))
    return mix_fail_value("model_from_json: a call of layer '%.60s' has no inputs", layer->name);
  mix_call_options options = {.size = sizeof options,
                              .inputs =
                                  call.inputs_are_list ? (void *)call.inputs : mix_list_get(call.inputs, 0),
                              .arguments = call.arguments,
                              .masks = call.masks,
                              .training = call.training,
                              .initial_state = call.initial_state,
                              .argument_masks = call.keywords.argument_masks,
                              .attention_mask = call.keywords.attention_mask,
                              .use_causal_mask = call.keywords.use_causal_mask,
                              .return_attention_scores = call.keywords.return_attention_scores,
                              .reverse = call.keywords.reverse};
  layer->results[layer->made] = mix_call_outputs_with(layer->layer, &options);
  if (!layer->results[layer->made]) return false;
  note_names(&call, layer->results[layer->made++]);
  return true;
}

/* ---- the order of the calls ---- */

/* The layers to try next, as round * count + index: a heap whose first is the smallest. A layer is in it at
 * most once. */
typedef struct agenda {
  int64_t *turns;
  int count;
} agenda;

static void swap(agenda *all, int i, int j) {
  const int64_t turn = all->turns[i];
  all->turns[i] = all->turns[j];
  all->turns[j] = turn;
}

static void put_turn(agenda *all, int64_t turn) {
  int i = all->count++;
  all->turns[i] = turn;
  for (; i && all->turns[(i - 1) / 2] > all->turns[i]; i = (i - 1) / 2) swap(all, i, (i - 1) / 2);
}

static int64_t take_turn(agenda *all) {
  const int64_t first = all->turns[0];
  all->turns[0] = all->turns[--all->count];
  for (int i = 0, child; (child = 2 * i + 1) < all->count; i = child) {
    if (child + 1 < all->count && all->turns[child + 1] < all->turns[child]) child++;
    if (all->turns[i] <= all->turns[child]) break;
    swap(all, i, child);
  }
  return first;
}

/* Those whose last missing tensor is made now: later layers in this round, earlier ones in the next. */
static void wake(saved_graph *graph, int first, int64_t now, agenda *all) {
  for (const wait *w; first; first = w->next) {
    w = &graph->waits[first - 1];
    const int64_t turn = now - now % graph->count + (w->layer - graph->layers);
    if (!--w->layer->missing) put_turn(all, turn > now ? turn : turn + graph->count);
  }
}

/* What an attempt made ends with it, but for the results of the call. */
static bool try_call(saved_graph *graph, saved_layer *layer) {
  bool made = false;
  MIX_SCOPE { made = make_call(graph, layer) && mix_scope_leave(layer->results[layer->made - 1]); }
  return made;
}

/* Makes calls of one layer, until one must wait. */
static void make_calls_of(saved_graph *graph, int64_t now, agenda *all) {
  saved_layer *layer = graph->tried = &graph->layers[now % graph->count];
  while (layer->made < layer->count && try_call(graph, layer))
    wake(graph, layer->waiting[layer->made - 1], now, all);
}

/* Rounds over the layers, until all calls are made. In a round only those are tried that can go on. */
static bool make_calls(saved_graph *graph) {
  agenda all = {.turns = mix_scoped_memory(((size_t)graph->count + 1) * sizeof *all.turns)};
  for (int i = 0; i < graph->count && all.turns; i++) put_turn(&all, i);
  while (all.count && !mix_failed()) make_calls_of(graph, take_turn(&all), &all);
  mix_free(graph->waits);
  graph->tried = NULL;
  for (int i = 0; i < graph->count && !mix_failed(); i++)
    if (graph->layers[i].made < graph->layers[i].count)
      mix_fail_value("model_from_json: the calls of layer '%.60s' form a circle with others",
                     graph->layers[i].name);
  return !mix_failed();
}

/* ---- layers ---- */

static bool take_name(saved_graph *graph, const char *name) {
  if (json_object_get(graph->taken, name))
    return mix_fail_value("model_from_json: two layers are named '%.60s'", name);
  return mix_json_set(graph->taken, name, json_true());
}

static bool read_layer(saved_graph *graph, saved_layer *layer, const json_t *object, int index) {
  const json_t *config = json_object_get(object, "config");
  layer->name = json_string_value(json_object_get(object, "name"));
  if (!layer->name) layer->name = json_string_value(json_object_get(config, "name"));
  if (!layer->name) return mix_fail_value("model_from_json: layer %d has no name", index);
  if (json_object_get(graph->names, layer->name))
    return mix_fail_value("model_from_json: two layers are named '%.60s'", layer->name);
  mix_json_set(graph->names, layer->name, json_integer(index));
  layer->nodes = json_object_get(object, "inbound_nodes");
  const bool input = mix_json_is_class(object, "InputLayer");
  layer->count = input ? 1 : (int)json_array_size(layer->nodes);
  layer->results = mix_scoped_memory(((size_t)layer->count + 1) * sizeof *layer->results);
  layer->waiting = mix_scoped_memory(((size_t)layer->count + 1) * sizeof *layer->waiting);
  if (!layer->results || !layer->waiting) return false;
  if (!input)
    return (layer->layer = graph->reader->read_layer(graph->reader, object, index)) &&
           take_name(graph, layer->layer->name);
  mix_tensor *tensor = mix_reader_input(graph->reader, object);
  if (tensor) layer->results[layer->made++] = mix_list_of(tensor);
  return tensor && take_name(graph, mix_tensor_history(tensor, NULL)->layer->name);
}

static bool read_layers(saved_graph *graph, const json_t *layers) {
  graph->count = (int)json_array_size(layers);
  graph->layers = mix_scoped_memory(((size_t)graph->count + 1) * sizeof *graph->layers);
  for (int i = 0; graph->layers && i < graph->count && !mix_failed(); i++)
    read_layer(graph, &graph->layers[i], json_array_get(layers, (size_t)i), i);
  return !mix_failed();
}

/* ---- inputs and outputs ---- */

/* The tensors of input_layers or output_layers, with their structure. */
static mix_list *read_ends(saved_graph *graph, const json_t *structure, const char *key, json_t **form) {
  collecting c = {graph, mix_list_new(0, NULL), NULL};
  *form = mix_form_map(structure ? structure : json_null(), collect_item, &c);
  if (!mix_failed() && !c.first) mix_fail_value("model_from_json: %s of a functional model is missing", key);
  return mix_failed() ? NULL : c.list;
}

/* tf_keras writes one tensor as a list of one. */
static json_t *unpacked(json_t *form, const mix_semantics *rules) {
  if (rules->node_objects || json_array_size(form) != 1) return form;
  json_t *one = json_incref(json_array_get(form, 0));
  json_decref(form);
  return one;
}

/* Where a layer adds a loss or a metric, all calls run, as in tf_keras: results of them in the order of their
 * layers. NULL without an error: there is no such layer. */
static mix_list *find_extras(const saved_graph *graph) {
  bool adds = false;
  for (int i = 0; i < graph->count && !adds; i++) {
    const mix_layer *layer = graph->layers[i].layer;
    adds = layer && (layer->kind == &mix_add_loss_kind || layer->kind == &mix_add_metric_kind);
  }
  mix_list *extras = adds ? mix_list_new(0, NULL) : NULL;
  for (int i = 0; i < graph->count && extras; i++)
    for (int c = 0; graph->layers[i].layer && c < graph->layers[i].made; c++)
      mix_list_append(extras, mix_list_get(graph->layers[i].results[c], 0));
  return extras;
}

static mix_model *make_model(saved_graph *graph, const json_t *config) {
  const mix_semantics *rules = graph->reader->semantics;
  json_t *input_form = NULL, *output_form = NULL;
  mix_model_options options = {
      .size = sizeof options,
      .inputs = read_ends(graph, json_object_get(config, "input_layers"), "input_layers", &input_form),
      .name = mix_json_string_or(config, "name", NULL),
      .semantics = rules};
  if (options.inputs)
    options.outputs =
        read_ends(graph, json_object_get(config, "output_layers"), "output_layers", &output_form);
  mix_list *extras = find_extras(graph);
  mix_model *model = mix_failed() ? NULL : mix_model_with_extras(&options, extras);
  if (!model) return json_decref(input_form), json_decref(output_form), NULL;
  mix_functional *functional = mix_layer_data(model->layer);
  json_decref(functional->input_form);
  json_decref(functional->output_form);
  functional->input_form = unpacked(input_form, graph->reader->written);
  functional->output_form = unpacked(output_form, graph->reader->written);
  return model;
}

mix_model *mix_reader_functional(mix_json_reader *reader, const json_t *config) {
  saved_graph graph = {.reader = reader, .names = json_object(), .taken = json_object()};
  const json_t *layers = json_object_get(config, "layers");
  mix_model *model = NULL;
  if (!json_is_array(layers))
    mix_fail_value("model_from_json: a functional model has no list of layers");
  else if (read_layers(&graph, layers) && make_calls(&graph))
    model = make_model(&graph, config);
  json_decref(graph.names);
  json_decref(graph.taken);
  if (model && !mix_json_boolean_or(config, "trainable", true)) mix_layer_set_trainable(model->layer, false);
  return mix_failed() ? NULL : model;
}
