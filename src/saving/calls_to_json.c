/* The calls of functional models as JSON: what inbound_nodes, input_layers and output_layers hold. */
#include "saving/model_json.h"

#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include <stdio.h>

/* [layer, node, tensor]; `end`: as an input or output of the model. */
static json_t *history_json(const mix_functional *graph, const mix_tensor *tensor, bool end) {
  int output = 0;
  const mix_layer_call *call = mix_tensor_history(tensor, &output);
  const mix_semantics *rules = call->layer->semantics;
  int number = mix_functional_call_number(graph, call);
  if (rules->nested_calls_from_one && mix_layer_is_structured(call->layer)) number++;
  if (end && rules->model_ends_from_one && mix_layer_is_functional(call->layer)) number++;
  return json_pack("[s,i,i]", call->layer->name, number, output);
}

static json_t *keras_tensor_json(const mix_functional *graph, const mix_tensor *tensor) {
  if (!mix_tensor_history(tensor, NULL))
    return mix_fail_unsupported(
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
  bool takes_arrays; /* it is a call of Keras 3 */
  json_t *keywords;  /* of the form of tf_keras */
} written_call;

static json_t *tensor_or_null(const written_call *written, mix_tensor *tensor) {
  if (!tensor) return json_null();
  const mix_layer_call *call = mix_tensor_history(tensor, NULL);
  if (written->takes_arrays && !call && !mix_tensor_is_symbolic(tensor))
    return mix_array_form(tensor, "model_to_json");
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

static json_t *operand_leaf(void *context, int number) {
  const written_call *written = context;
  return tensor_or_null(written, mix_list_get(written->tensors, number));
}

static json_t *keras_operation_call_json(const written_call *written, const mix_layer_call *call) {
  const mix_keras_operation *operation = mix_keras_operation_of(call->layer);
  if (!call->layer->semantics->node_objects)
    return mix_fail_unsupported(
        "model_to_json: '%s' is the Keras 3 operation %s, which models of %s do not have", call->layer->name,
        operation->kind.call, call->layer->semantics->name);
  json_t *form = call->keywords.form ? json_incref(call->keywords.form)
                                     : mix_keras_operation_form(operation, mix_list_count(written->tensors));
  json_t *filled = form ? mix_form_fill(form, operand_leaf, (void *)written) : NULL;
  json_decref(form);
  return filled;
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
  if (mix_layer_is_functional(layer)) return true;
  return !call->training && !call->arguments && finds_masks(call) && !call->initial_state &&
         !call->inputs_are_list && mix_tensor_dtype(mix_list_get(call->inputs, 0)) == layer->compute;
}

/* A mask of nulls in the structure of the inputs. */
static json_t *null_leaf(void *context, int index) { return json_null(); }
static json_t *input_form(const mix_layer_call *call);
static json_t *null_mask(const mix_layer_call *call) {
  json_t *form = input_form(call), *mask = mix_form_fill(form, null_leaf, NULL);
  json_decref(form);
  return mask;
}

static void put_call_keywords(const written_call *written, const mix_layer_call *call, json_t *keywords) {
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
  if (given->reverse) mix_json_set(keywords, "reverse", json_true());
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
  for (int i = count - call->keywords.by_name; objects && i < count; i++) {
    mix_tensor *tensor = mix_list_get(i ? call->arguments : call->inputs, i ? i - 1 : 0);
    if (tensor) mix_json_set(keywords, call->layer->kind->call_tensors[i], tensor_or_null(written, tensor));
  }
  put_call_keywords(written, call, keywords);
  if (call->initial_state)
    mix_json_set(keywords, "initial_state", states_json(written, call->initial_state, objects));
  if (training) mix_json_set(keywords, "training", json_boolean(training == MIX_TRUE));
  bool mask = (kind && kind->call_has_mask) || (own && mix_layer_is_structured(call->layer));
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
  mix_tensor *tensor = mix_list_get(written->tensors, index);
  json_t *leaf = tensor_or_null(written, tensor);
  if (leaf && written->keywords) mix_json_append(leaf, json_incref(written->keywords));
  return leaf;
}

/* The structure of the first argument. */
static json_t *input_form(const mix_layer_call *call) {
  if (mix_layer_is_functional(call->layer)) {
    const mix_functional *inner = mix_layer_data(call->layer);
    if (json_is_object(inner->input_form) && mix_operand_form_number(inner->input_form) < 0)
      return json_incref(inner->input_form);
  }
  if (!call->inputs_are_list && mix_list_count(call->inputs) == 1) return mix_operand_form(0);
  json_t *form = json_array();
  for (int i = 0; i < mix_list_count(call->inputs); i++) mix_json_append(form, mix_operand_form(i));
  return form;
}

/* Of an operation of tf_keras, which Keras 3 does not have. */
static json_t *operation_call_json(const mix_functional *graph, const mix_layer_call *call) {
  written_call written = {.graph = graph, .tensors = mix_operand_tensors(call->inputs, call->arguments)};
  if (call->layer->semantics->node_objects)
    return mix_fail_unsupported(
        "model_to_json: layer '%s' is a %s of tf_keras, which Keras 3 lacks; save the model in "
        "the generation tf_keras",
        call->layer->name, call->layer->class.name);
  return mix_tf_operation_node_json(call->keywords.form, operand_leaf, &written);
}

/* keras3: {"args": [inputs, ...], "kwargs": {...}}; tf_keras: [[layer, node, tensor, {...}], ...] */
static json_t *call_json(const mix_functional *graph, const mix_layer_call *call) {
  if (mix_call_has_form(call->layer)) return operation_call_json(graph, call);
  const bool objects = call->layer->semantics->node_objects;
  written_call written = {
      .graph = graph, .tensors = mix_operand_tensors(call->inputs, call->arguments), .takes_arrays = objects};
  if (mix_keras_operation_of(call->layer)) return keras_operation_call_json(&written, call);
  json_t *keywords = keywords_json(&written, call), *form = input_form(call), *node;
  written.keywords = objects ? NULL : keywords;
  json_t *inputs = mix_form_fill(form, input_leaf, &written);
  const bool single = mix_operand_form_number(form) >= 0;
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

json_t *mix_functional_calls_json(const mix_functional *graph, const mix_layer *layer) {
  json_t *nodes = json_array();
  for (int c = mix_functional_first_call(graph, layer); c >= 0 && !mix_failed();
       c = mix_functional_next_call(graph, c))
    if (graph->calls[c]->inputs) mix_json_append(nodes, call_json(graph, graph->calls[c]));
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

json_t *mix_functional_ends_json(const mix_functional *graph, bool outputs, bool single) {
  json_t *histories = outputs ? mix_form_fill(graph->output_form, output_history_leaf, (void *)graph)
                              : mix_form_fill(graph->input_form, input_history_leaf, (void *)graph);
  bool one = mix_operand_form_number(outputs ? graph->output_form : graph->input_form) >= 0;
  return one && !single ? json_pack("[o]", histories) : histories;
}
