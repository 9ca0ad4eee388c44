/* Models as JSON, as Keras writes them (docs/spec/keras.md, 17.1). */
#include "saving/model_json.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "nn/layers/keras_operations/keras_operation.h"
#include "nn/layers/recurrent/recurrent.h"
#include <stdio.h>
#include <string.h>

/* ---- layers that stand at several places ---- */

/* The layers of the text so far, with their objects. */
typedef struct json_writer {
  mix_list *layers;
  json_t *objects;
  int shared;
  bool models_only; /* of layers in layers that are no models nothing is added */
} json_writer;

static json_writer new_writer(bool models_only) {
  return (json_writer){mix_list_new(0, NULL), json_array(), 0, models_only};
}

/* One number for all objects of a layer, as Keras reads it. It writes the number only where it has seen the
 * layer before, and makes two layers of it. */
static void note_object(json_writer *writer, const mix_layer *layer, json_t *object) {
  int before = 0;
  while (before < mix_list_count(writer->layers) && mix_list_items(writer->layers)[before] != layer) before++;
  if (before == mix_list_count(writer->layers)) {
    mix_list_append(writer->layers, (void *)layer);
    mix_json_append(writer->objects, json_incref(object));
    return;
  }
  json_t *first = json_array_get(writer->objects, (size_t)before);
  if (!json_object_get(first, "shared_object_id"))
    mix_json_set(first, "shared_object_id", json_integer(++writer->shared));
  mix_json_set(object, "shared_object_id", json_incref(json_object_get(first, "shared_object_id")));
}

static json_t *new_json(json_writer *writer, mix_layer *layer, bool open_batch);
static json_t *layer_json(json_writer *writer, mix_layer *layer, bool open_batch);

json_t *mix_shape_json(mix_shape shape, bool open_batch) {
  json_t *list = json_array();
  for (int i = 0; i < shape.rank; i++) {
    bool open = shape.dims[i] == MIX_UNKNOWN || (open_batch && !i);
    mix_json_append(list, open ? json_null() : json_integer(shape.dims[i]));
  }
  return list;
}

/* ---- the calls of a functional model ---- */

static bool is_nested_model(const mix_layer *layer) {
  return layer->class.call == mix_class_functional.call || layer->class.call == mix_class_sequential.call;
}

/* [layer, node, tensor]; `end`: as an input or output of the model. */
static json_t *history_json(const mix_functional *graph, const mix_tensor *tensor, bool end) {
  int output = 0;
  const mix_layer_call *call = mix_tensor_history(tensor, &output);
  const mix_semantics *rules = call->layer->semantics;
  int number = mix_functional_call_number(graph, call);
  if (rules->nested_calls_from_one && is_nested_model(call->layer)) number++;
  if (end && rules->model_ends_from_one && call->layer->class.call == mix_class_functional.call) number++;
  return json_pack("[s,i,i]", call->layer->name, number, output);
}

static json_t *keras_tensor_json(const mix_functional *graph, const mix_tensor *tensor) {
  if (!mix_tensor_history(tensor, NULL))
    return mix_fail(MIX_UNSUPPORTED,
                    "model_to_json: a layer was called on a tensor that holds data; use an input for it");
  return json_pack("{s:s,s:{s:o,s:s,s:o}}", "class_name", "__keras_tensor__", "config", "shape",
                   mix_shape_json(mix_tensor_shape(tensor), false), "dtype",
                   mix_dtype_name(mix_tensor_dtype(tensor)), "keras_history",
                   history_json(graph, tensor, false));
}

/* A call that is being written. */
typedef struct written_call {
  const mix_functional *graph;
  mix_list *tensors;
  json_t *keywords; /* of the form of tf_keras */
} written_call;

static json_t *tensor_or_null(const written_call *written, const mix_tensor *tensor) {
  if (!tensor) return json_null();
  const mix_layer_call *call = mix_tensor_history(tensor, NULL);
  if (call && call->layer->semantics->node_objects) return keras_tensor_json(written->graph, tensor);
  json_t *object = keras_tensor_json(written->graph, tensor); /* checks the tensor */
  json_decref(object);
  return object ? history_json(written->graph, tensor, false) : NULL;
}

static json_t *tensors_json(const written_call *written, mix_list *list) {
  json_t *array = json_array();
  for (int i = 0; i < mix_list_count(list); i++)
    mix_json_append(array, tensor_or_null(written, mix_list_get(list, i)));
  return array;
}

/* In Keras 3 one state stands alone. */
static json_t *states_json(const written_call *written, mix_list *states, bool objects) {
  return objects && mix_list_count(states) == 1 ? tensor_or_null(written, mix_list_get(states, 0))
                                                : tensors_json(written, states);
}

/* The arguments of an operation with the tensors that stand for {"tensor": index}. */
static json_t *operand_json(const written_call *written, const json_t *form) {
  const char *key;
  const json_t *index = json_object_get(form, "tensor");
  json_t *item, *value;
  size_t i;
  if (json_is_integer(index))
    return tensor_or_null(written, mix_list_get(written->tensors, (int)json_integer_value(index)));
  if (json_is_array(form)) {
    value = json_array();
    json_array_foreach(form, i, item) mix_json_append(value, operand_json(written, item));
    return value;
  }
  if (!json_is_object(form)) return json_incref((json_t *)form);
  value = json_object();
  json_object_foreach((json_t *)form, key, item) mix_json_set(value, key, operand_json(written, item));
  return value;
}

/* A call from C has no form. */
static json_t *keras_operation_call_json(const written_call *written, const mix_layer_call *call) {
  const mix_keras_operation *operation = mix_keras_operation_of(call->layer);
  if (!call->layer->semantics->node_objects)
    return mix_fail(MIX_UNSUPPORTED,
                    "model_to_json: '%s' is the Keras 3 operation %s, which models of %s do not have",
                    call->layer->name, operation->kind.call, call->layer->semantics->name);
  if (call->keywords.form) return operand_json(written, call->keywords.form);
  json_t *args = tensors_json(written, call->inputs);
  for (int i = 0; call->arguments && i < mix_list_count(call->arguments); i++)
    mix_json_append(args, tensor_or_null(written, mix_list_get(call->arguments, i)));
  if (operation->takes_list) args = json_pack("[o]", args);
  return mix_json_whole(json_pack("{s:o,s:{}}", "args", args, "kwargs"));
}

/* Masks that Keras found by itself are results of operations. */
static bool finds_masks(const mix_layer_call *call) {
  for (int i = 0; i < mix_list_count(call->masks); i++) {
    const mix_tensor *mask = mix_list_get(call->masks, i);
    const mix_layer_call *made = mix_tensor_history(mask, NULL);
    if (mask && !(made && made->layer->kind && made->layer->kind->module)) return false;
  }
  return true;
}

/* Keras 3 lists keywords that it set by itself, where it did not copy the arguments first: to cast them, or
 * because there are others. Functional models never cast. */
static bool lists_own_keywords(const mix_layer_call *call) {
  const mix_layer *layer = call->layer;
  if (!layer->semantics->node_objects) return false;
  if (layer->class.call == mix_class_functional.call) return true;
  return !call->training && !call->arguments && finds_masks(call) && !call->initial_state &&
         !call->inputs_are_list && mix_tensor_dtype(mix_list_get(call->inputs, 0)) == layer->compute;
}

/* A mask of nulls in the structure of the inputs. */
static json_t *null_leaf(void *context, int index) {
  (void)context, (void)index;
  return json_null();
}
static json_t *input_form(const mix_layer_call *call);
static json_t *null_mask(const mix_layer_call *call) {
  json_t *form = input_form(call), *mask = mix_form_fill(form, null_leaf, NULL);
  json_decref(form);
  return mask;
}

static void put_attention_keywords(const written_call *written, const mix_layer_call *call,
                                   json_t *keywords) {
  const mix_call_keywords *given = &call->keywords;
  char name[32];
  for (int i = 0; given->argument_masks && i < mix_list_count(given->argument_masks); i++) {
    if (!mix_list_get(given->argument_masks, i)) continue;
    snprintf(name, sizeof name, "%s_mask", call->layer->kind->call_tensors[i + 1]);
    mix_json_set(keywords, name, tensor_or_null(written, mix_list_get(given->argument_masks, i)));
  }
  if (given->attention_mask)
    mix_json_set(keywords, "attention_mask", tensor_or_null(written, given->attention_mask));
  if (given->return_attention_scores) mix_json_set(keywords, "return_attention_scores", json_true());
  if (given->use_causal_mask) mix_json_set(keywords, "use_causal_mask", json_true());
}

/* The keyword arguments that were given, and those that Keras 3 sets by itself. */
static json_t *keywords_json(const written_call *written, const mix_layer_call *call) {
  const bool objects = call->layer->semantics->node_objects, own = lists_own_keywords(call);
  const mix_layer_kind *kind = own ? call->layer->kind : NULL;
  mix_training training = call->training ? call->training : kind ? kind->call_training : MIX_INHERIT;
  json_t *keywords = json_object();
  char name[32];
  for (int i = 0; !objects && call->arguments && i < mix_list_count(call->arguments); i++) {
    if (!call->layer->kind || !call->layer->kind->call_tensors)
      snprintf(name, sizeof name, "argument_%d", i + 1);
    else if (mix_list_get(call->arguments, i))
      snprintf(name, sizeof name, "%s", call->layer->kind->call_tensors[i + 1]);
    else
      continue;
    mix_json_set(keywords, name, tensor_or_null(written, mix_list_get(call->arguments, i)));
  }
  const int count = 1 + (call->arguments ? mix_list_count(call->arguments) : 0);
  for (int i = count - call->keywords.by_name; objects && i < count; i++)
    mix_json_set(keywords, call->layer->kind->call_tensors[i],
                 tensor_or_null(written, mix_list_get(i ? call->arguments : call->inputs, i ? i - 1 : 0)));
  put_attention_keywords(written, call, keywords);
  if (call->initial_state)
    mix_json_set(keywords, "initial_state", states_json(written, call->initial_state, objects));
  if (training) mix_json_set(keywords, "training", json_boolean(training == MIX_TRUE));
  bool mask = (kind && kind->call_has_mask) || (own && is_nested_model(call->layer));
  const bool named = call->layer->kind && call->layer->kind->call_tensors;
  if (call->masks && !call->inputs_are_list)
    mix_json_set(keywords, named ? "query_mask" : "mask",
                 tensor_or_null(written, mix_list_get(call->masks, 0)));
  else if (call->masks)
    mix_json_set(keywords, "mask", tensors_json(written, call->masks));
  else if (mask)
    mix_json_set(keywords, "mask", null_mask(call));
  return mix_json_whole(keywords);
}

static json_t *input_leaf(void *context, int index) {
  const written_call *written = context;
  const mix_tensor *tensor = mix_list_get(written->tensors, index);
  json_t *leaf = tensor_or_null(written, tensor);
  if (leaf && written->keywords) mix_json_append(leaf, json_incref(written->keywords));
  return leaf;
}

/* The structure of the first argument. */
static json_t *input_form(const mix_layer_call *call) {
  if (call->layer->class.call == mix_class_functional.call) {
    const mix_functional *inner = mix_layer_data(call->layer);
    if (json_is_object(inner->input_form)) return json_incref(inner->input_form);
  }
  if (!call->inputs_are_list && mix_list_count(call->inputs) == 1) return json_integer(0);
  json_t *form = json_array();
  for (int i = 0; i < mix_list_count(call->inputs); i++) mix_json_append(form, json_integer(i));
  return form;
}

static bool has_form(const mix_layer *layer) { return layer->kind && layer->kind->call_has_form; }

static json_t *operand_leaf(void *context, int index) {
  const written_call *written = context;
  return tensor_or_null(written, mix_list_get(written->tensors, index));
}

/* Of an operation of tf_keras, which Keras 3 does not have. */
static json_t *operation_call_json(const mix_functional *graph, const mix_layer_call *call) {
  written_call written = {graph, mix_list_new(0, NULL), NULL};
  if (call->layer->semantics->node_objects)
    return mix_fail(MIX_UNSUPPORTED,
                    "model_to_json: layer '%s' is a %s of tf_keras, which Keras 3 lacks; save the model in "
                    "the generation tf_keras",
                    call->layer->name, call->layer->class.name);
  mix_list *const lists[] = {call->inputs, call->arguments};
  for (int l = 0; l < 2; l++)
    for (int i = 0; lists[l] && i < mix_list_count(lists[l]); i++)
      mix_list_append(written.tensors, mix_list_get(lists[l], i));
  return mix_tf_operation_node_json(call->keywords.form, operand_leaf, &written);
}

/* keras3: {"args": [inputs, ...], "kwargs": {...}}; tf_keras: [[layer, node, tensor, {...}], ...] */
static json_t *call_json(const mix_functional *graph, const mix_layer_call *call) {
  if (has_form(call->layer)) return operation_call_json(graph, call);
  written_call written = {graph, call->inputs, NULL};
  if (mix_keras_operation_of(call->layer)) return keras_operation_call_json(&written, call);
  json_t *keywords = keywords_json(&written, call), *form = input_form(call), *node;
  const bool objects = call->layer->semantics->node_objects;
  written.keywords = objects ? NULL : keywords;
  json_t *inputs = mix_form_fill(form, input_leaf, &written);
  const bool single = json_is_integer(form);
  json_decref(form);
  if (objects) {
    json_t *args = json_array(), *more = call->arguments ? tensors_json(&written, call->arguments) : NULL;
    mix_json_append(args, inputs);
    if (more) mix_json_extend(args, more);
    json_decref(more);
    for (int i = 0; i < call->keywords.by_name; i++) json_array_remove(args, json_array_size(args) - 1);
    node = json_pack("{s:o,s:o}", "args", args, "kwargs", keywords);
  } else {
    node = single ? json_pack("[o]", inputs) : inputs;
    json_decref(keywords);
  }
  return mix_json_whole(node);
}

/* Also of an input layer, which has none. A layer of the model that begins it in Keras's place is refused. */
static json_t *calls_json(const mix_functional *graph, const mix_layer *layer) {
  json_t *nodes = json_array();
  for (int c = 0; c < graph->call_count && !mix_failed(); c++)
    if (graph->calls[c]->layer == layer && graph->calls[c]->inputs)
      mix_json_append(nodes, call_json(graph, graph->calls[c]));
  return nodes;
}

static json_t *input_history_leaf(void *context, int index) {
  const mix_functional *graph = context;
  return history_json(graph, graph->inputs[index], true);
}
static json_t *output_history_leaf(void *context, int index) {
  const mix_functional *graph = context;
  return history_json(graph, graph->outputs[index], true);
}

/* input_layers and output_layers; tf_keras has a list in any case. */
static json_t *histories_json(const mix_functional *graph, bool outputs, bool single) {
  json_t *histories = outputs ? mix_form_fill(graph->output_form, output_history_leaf, (void *)graph)
                              : mix_form_fill(graph->input_form, input_history_leaf, (void *)graph);
  bool one = json_is_integer(outputs ? graph->output_form : graph->input_form);
  return one && !single ? json_pack("[o]", histories) : histories;
}

static bool inputs_are_layers(const mix_layer *model, const mix_functional *graph) {
  for (int i = 0; i < graph->input_count; i++)
    if (mix_tensor_history(graph->inputs[i], NULL)->inputs) {
      mix_fail(MIX_UNSUPPORTED,
               "model_to_json: input %d of '%s' is the result of a layer; expected models that begin with "
               "mix_input",
               i, model->name);
      return false;
    }
  return true;
}

/* Names tell the calls apart. */
static bool names_are_unique(const mix_layer *model) {
  mix_layer *const *layers = (mix_layer *const *)mix_list_items(model->layers);
  for (int i = 0; i < mix_list_count(model->layers); i++)
    for (int before = 0; before < i; before++)
      if (layers[i]->name == layers[before]->name) {
        mix_fail(MIX_VALUE_ERROR, "model_to_json: two layers of '%s' are named '%s'; expected unique names",
                 model->name, layers[i]->name);
        return false;
      }
  return true;
}

static json_t *operand_shape_leaf(void *context, int index) {
  return mix_shape_json(mix_tensor_shape(mix_list_get(context, index)), false);
}

/* An operation is built for the shapes of its first argument, also of constants in it. */
static void put_operand_shapes(const mix_functional *graph, const mix_layer *layer, json_t *object) {
  json_t *config = json_object_get(object, "build_config");
  for (int c = 0; config && c < graph->call_count; c++) {
    const mix_layer_call *call = graph->calls[c];
    if (call->layer != layer || !has_form(layer)) continue;
    mix_json_set(config, "input_shape",
                 mix_tf_operation_shapes_json(call->keywords.form, operand_shape_leaf, call->inputs));
    return;
  }
}

static json_t *functional_config(json_writer *writer, mix_layer *model) {
  const mix_functional *graph = mix_layer_data(model);
  const bool single = model->semantics->node_objects;
  if (!inputs_are_layers(model, graph) || !names_are_unique(model)) return NULL;
  json_t *layers = json_array();
  for (int i = 0; i < mix_list_count(model->layers) && !mix_failed(); i++) {
    mix_layer *layer = mix_list_get(model->layers, i);
    json_t *object = layer_json(writer, layer, false);
    if (!object) break;
    put_operand_shapes(graph, layer, object);
    mix_json_set(object, "name", json_string(layer->name));
    mix_json_set(object, "inbound_nodes", calls_json(graph, layer));
    mix_json_append(layers, object);
  }
  return json_pack("{s:s,s:b,s:o,s:o,s:o}", "name", model->name, "trainable", model->trainable, "layers",
                   layers, "input_layers", histories_json(graph, false, single), "output_layers",
                   histories_json(graph, true, single));
}

/* ---- sequential models ---- */

static mix_layer *first_layer(const mix_layer *model) {
  return mix_list_count(model->layers) ? mix_list_items(model->layers)[0] : NULL;
}

/* The shape of the input with an open batch size if it is that of data; rank 0: unknown. */
static mix_shape sequential_shape(const mix_layer *model) {
  const mix_layer *first = first_layer(model);
  if (first && first->is_input) return ((const mix_input_layer_data *)first->data)->batch_shape;
  mix_shape shape = ((const mix_sequential_input *)model->data)->shape;
  if (shape.rank > 0) shape.dims[0] = MIX_UNKNOWN;
  return shape;
}

/* The input layer that Keras puts in front of a model that was built without one. */
static json_t *implied_input_json(const mix_layer *model, mix_shape shape) {
  const mix_semantics *rules = model->semantics;
  const mix_layer *first = first_layer(model);
  char name[256] = "input_layer";
  if (rules->input_named_by_layer) snprintf(name, sizeof name, "%.240s_input", first->name);
  mix_dtype dtype = ((const mix_sequential_input *)model->data)->dtype;
  if (!rules->input_named_by_layer) dtype = first->compute;
  mix_input_options options = {
      .size = sizeof options, .name = name, .dtype = mix_dtype_name(dtype), .semantics = rules};
  options.shape.rank = shape.rank - 1;
  memcpy(options.shape.dims, shape.dims + 1, (size_t)options.shape.rank * sizeof *shape.dims);
  mix_tensor *input = mix_input_with(&options);
  return input ? mix_layer_to_json(mix_tensor_history(input, NULL)->layer, false) : NULL;
}

static json_t *sequential_layers(json_writer *writer, mix_layer *model, mix_shape shape) {
  json_t *layers = json_array();
  const mix_layer *first = first_layer(model);
  bool implied = shape.rank > 0 && !(first && first->is_input);
  if (implied) mix_json_append(layers, implied_input_json(model, shape));
  for (int i = 0; i < mix_list_count(model->layers) && !mix_failed(); i++)
    mix_json_append(layers, layer_json(writer, mix_list_get(model->layers, i), implied));
  return layers;
}

static json_t *sequential_config(json_writer *writer, mix_layer *model) {
  mix_shape shape = sequential_shape(model);
  json_t *config = json_pack("{s:s}", "name", model->name);
  if (model->semantics->sequential_saves_policy) {
    mix_json_set(config, "trainable", json_boolean(model->trainable));
    mix_json_set(config, "dtype", mix_policy_to_json(model->policy, model->semantics));
  }
  mix_json_set(config, "layers", sequential_layers(writer, model, shape));
  if (model->semantics->sequential_saves_policy && shape.rank > 0)
    mix_json_set(config, "build_input_shape", mix_shape_json(shape, false));
  return config;
}

/* ---- layers ---- */

static json_t *input_shape_leaf(void *context, int index) {
  const mix_functional *graph = context;
  return mix_shape_json(mix_tensor_shape(graph->inputs[index]), false);
}

static json_t *build_shapes_json(const mix_layer *layer, bool open_batch) {
  const char *const *names = layer->kind ? layer->kind->call_tensors : NULL;
  if (names && layer->semantics->build_shapes_named && layer->build_count > 1) {
    json_t *named = json_object();
    char name[32];
    for (int i = 0; i < layer->build_count; i++) {
      snprintf(name, sizeof name, "%s_shape", names[i]);
      mix_json_set(named, name, mix_shape_json(layer->build_shapes[i], open_batch));
    }
    return named;
  }
  if (!layer->built_for_list) return mix_shape_json(layer->build_shapes[0], open_batch);
  json_t *shapes = json_array();
  for (int i = 0; i < layer->build_count; i++)
    mix_json_append(shapes, mix_shape_json(layer->build_shapes[i], open_batch));
  return shapes;
}

/* The shapes that a layer was built for; NULL: its object has no build_config. */
static json_t *build_shape(mix_layer *layer, bool open_batch) {
  const mix_semantics *rules = layer->semantics;
  if (!rules->objects_have_module || layer->is_input) return NULL;
  if (layer->class.call == mix_class_functional.call) {
    const mix_functional *graph = mix_layer_data(layer);
    return rules->functional_saves_shape ? mix_form_fill(graph->input_form, input_shape_leaf, (void *)graph)
                                         : json_null();
  }
  if (layer->class.call == mix_class_sequential.call) {
    mix_shape shape = sequential_shape(layer);
    return shape.rank > 0 ? mix_json_whole(mix_shape_json(shape, false)) : NULL;
  }
  if (layer->kind && layer->kind->built_from_start && rules->built_from_start_unsaved) return NULL;
  return layer->build_count ? mix_json_whole(build_shapes_json(layer, open_batch)) : NULL;
}

static json_t *object_of(json_writer *writer, mix_layer *layer) {
  if (!is_nested_model(layer)) return mix_layer_object_json(layer, mix_layer_config_json(layer));
  const mix_semantics *rules = layer->semantics;
  const bool functional = layer->class.call == mix_class_functional.call;
  const char *module = functional ? rules->functional_module : "keras";
  json_t *config = functional ? functional_config(writer, layer) : sequential_config(writer, layer);
  json_t *object = mix_json_object(rules->objects_have_module ? module : NULL, layer->class.name, config);
  if (object && functional && rules->objects_have_module)
    mix_json_set(object, "registered_name", json_string("Functional"));
  return object;
}

/* Keras 3 keeps the shapes of all arguments of a first call that had more than one. */
static json_t *build_config(mix_layer *layer, bool open_batch) {
  const mix_rnn *rnn = mix_rnn_of(layer);
  json_t *shape = build_shape(layer, open_batch), *states = json_array();
  const bool named = layer->kind && layer->kind->call_tensors && layer->semantics->build_shapes_named &&
                     layer->build_count > 1;
  if (!shape || !rnn || !rnn->called_with_states || !layer->semantics->node_objects) {
    json_decref(states);
    return shape ? mix_json_whole(json_pack("{s:o}", named ? "shapes_dict" : "input_shape", shape)) : NULL;
  }
  for (int i = 0; i < rnn->sizes.count; i++) {
    json_t *state = json_pack("[n]");
    for (int d = 0; d < rnn->sizes.states[i].rank; d++)
      mix_json_append(state, json_integer(rnn->sizes.states[i].dims[d]));
    mix_json_append(states, state);
  }
  if (rnn->sizes.count == 1) { /* stands alone */
    json_t *one = json_incref(json_array_get(states, 0));
    json_decref(states);
    states = one;
  }
  return mix_json_whole(
      json_pack("{s:{s:o,s:o}}", "shapes_dict", "sequences_shape", shape, "initial_state_shape", states));
}

/* Where the config of a layer has the object of an inner one, by its attribute; NULL: nowhere. `item`: of the
 * inner layers in a list. */
static json_t *inner_object(const mix_layer *layer, const json_t *config, const char *attribute, int *item) {
  const bool keeps = layer->semantics->bidirectional_keeps_layer; /* and does not build it */
  if (!strcmp(attribute, "cells/"))
    return json_array_get(json_object_get(config, "cells"), (size_t)(*item)++);
  if (!strcmp(attribute, "forward_layer")) return keeps ? NULL : json_object_get(config, "layer");
  if (!strcmp(attribute, "backward_layer") && keeps) return NULL;
  return json_object_get(config, attribute);
}

/* The configs of layers know nothing of models. */
static void put_model(json_writer *writer, mix_layer *model, json_t *place, bool open_batch) {
  json_t *object = new_json(writer, model, open_batch);
  if (object) json_object_clear(place);
  if (object) mix_json_update(place, object);
  json_decref(object);
}

static void complete_inner_objects(json_writer *writer, mix_layer *layer, json_t *object, bool open_batch) {
  int item = 0;
  for (int i = 0; layer->kind && i < mix_list_count(layer->layers); i++) {
    mix_layer *inner = mix_list_items(layer->layers)[i];
    json_t *place = inner->attribute
                        ? inner_object(layer, json_object_get(object, "config"), inner->attribute, &item)
                        : NULL;
    if (!json_is_object(place)) continue;
    if (is_nested_model(inner)) {
      put_model(writer, inner, place, open_batch);
    } else {
      complete_inner_objects(writer, inner, place, open_batch);
      json_t *config = writer->models_only ? NULL : build_config(inner, open_batch);
      if (config) mix_json_set(place, "build_config", config);
    }
    if (!writer->models_only) note_object(writer, inner, place);
  }
}

static json_t *new_json(json_writer *writer, mix_layer *layer, bool open_batch) {
  json_t *object = object_of(writer, layer),
         *config = object && !mix_failed() ? build_config(layer, open_batch) : NULL;
  if (config) mix_json_set(object, "build_config", config);
  if (object) complete_inner_objects(writer, layer, object, open_batch);
  if (object && is_nested_model(layer) && layer->semantics->compile_config_always)
    mix_json_set(object, "compile_config", json_object());
  return mix_json_whole(object);
}

static json_t *layer_json(json_writer *writer, mix_layer *layer, bool open_batch) {
  json_t *object = new_json(writer, layer, open_batch);
  if (object) note_object(writer, layer, object);
  return object;
}

json_t *mix_layer_to_json(mix_layer *layer, bool open_batch) {
  json_writer writer = new_writer(false);
  json_t *object = layer_json(&writer, layer, open_batch);
  json_decref(writer.objects);
  return mix_json_whole(object);
}

json_t *mix_layer_object_with_models(mix_layer *layer) {
  if (is_nested_model(layer)) return mix_layer_to_json(layer, false);
  json_writer writer = new_writer(true);
  json_t *object = object_of(&writer, layer);
  if (object) complete_inner_objects(&writer, layer, object, false);
  json_decref(writer.objects);
  return mix_json_whole(object);
}

/* ---- models ---- */

json_t *mix_model_archive_json(mix_model *model) {
  json_t *object = mix_layer_to_json(model->layer, false);
  json_t *compiled = object && model->state ? mix_compile_config_json(model) : NULL;
  if (compiled) mix_json_set(object, "compile_config", compiled);
  return mix_json_whole(object);
}

/* What to_json gives. */
static json_t *text_json(mix_model *model) {
  const mix_semantics *rules = model->semantics;
  if (!rules->json_has_version) return mix_model_archive_json(model);
  json_t *object = mix_layer_to_json(model->layer, false);
  if (!object) return NULL;
  json_t *text = json_pack("{s:s,s:O,s:s,s:s}", "class_name", model->layer->class.name, "config",
                           json_object_get(object, "config"), "keras_version", rules->keras_version,
                           "backend", "tensorflow");
  json_decref(object);
  return mix_json_whole(text);
}

bool mix_model_has_structure(const mix_model *model, const char *call) {
  if (model->kind != MIX_SUBCLASSED) return true;
  mix_fail(MIX_UNSUPPORTED,
           "%s: '%s' is a subclassed model, whose structure is its program; save its weights, or make the "
           "model of mix_model_new or mix_sequential",
           call, model->layer->name);
  return false;
}

const char *mix_model_to_json(mix_model *model) {
  if (!mix_model_given(model, "model_to_json") || !mix_model_has_structure(model, "model_to_json"))
    return NULL;
  char *text = NULL;
  MIX_MODEL_USE(model, MIX_READS_MODEL, "model_to_json")
  MIX_SCOPE {
    json_t *json = text_json(model);
    text = mix_json_python_text(json);
    json_decref(json);
  }
  return text ? mix_model_keep_text(&model->json, text) : NULL;
}
