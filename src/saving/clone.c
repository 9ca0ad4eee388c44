/* Clones of models: the same calls of new layers. */
#include "saving/model_json.h"

#include "base/error.h"
#include "nn/layer/registry.h"

static mix_model *clone_of_layer(mix_layer *layer, const mix_clone_options *options);

static bool holds_model(const mix_layer *layer) {
  bool holds = false;
  for (int i = 0; i < mix_list_count(layer->layers); i++) {
    const mix_layer *inner = mix_list_items(layer->layers)[i];
    holds |= inner->is_model || holds_model(inner);
  }
  return holds;
}

/* The config of a layer has no models. */
static mix_layer *copy_with_models(mix_layer *layer) {
  json_t *object = mix_layer_to_json(layer, false);
  mix_layer *copy = object ? mix_layer_from_saved(object, layer->semantics, "layer_clone") : NULL;
  json_decref(object);
  return copy;
}

mix_layer *mix_layer_clone(mix_layer *layer) {
  if (!mix_given(layer, &mix_layer_object_class, "layer_clone", "a layer")) return NULL;
  if (!mix_is(layer, &mix_layer_object_class)) return mix_fail_type("layer_clone: the object is no layer");
  if (!mix_layer_is_structured(layer))
    return layer->kind && holds_model(layer) ? copy_with_models(layer) : mix_layer_copy(layer);
  mix_model *model = clone_of_layer(layer, &(const mix_clone_options){.size = sizeof(mix_clone_options)});
  return model ? model->layer : NULL;
}

static mix_layer *replace(mix_layer *layer, const mix_clone_options *options) {
  mix_layer *made =
      options->clone_function ? options->clone_function(options->context, layer) : mix_layer_clone(layer);
  if (mix_failed() || mix_is(made, &mix_layer_object_class)) return mix_failed() ? NULL : made;
  return mix_fail_type("model_clone: the clone function gave no layer for '%s'", layer->name);
}

static mix_tensor *new_input(mix_layer *layer) {
  const mix_input_layer_data *data = mix_layer_data(layer);
  mix_input_options options = {.size = sizeof options,
                               .name = layer->name,
                               .dtype = mix_dtype_name(data->dtype),
                               .semantics = layer->semantics};
  options.batch_size = data->batch_shape.dims[0] == MIX_UNKNOWN ? 0 : data->batch_shape.dims[0];
  options.shape.rank = data->batch_shape.rank - 1;
  for (int d = 0; d < options.shape.rank; d++) options.shape.dims[d] = data->batch_shape.dims[d + 1];
  return mix_input_with(&options);
}

/* ---- functional models ---- */

typedef struct clone_state {
  const mix_functional *graph;
  const mix_clone_options *options;
  mix_list **results; /* of each call; borrowed */
  mix_layer **layers; /* of each call's layer, at the first call of it; borrowed */
} clone_state;

static mix_tensor *stand_in(const clone_state *clone, mix_tensor *tensor) {
  int output = 0;
  const mix_layer_call *call = tensor ? mix_tensor_history(tensor, &output) : NULL;
  const int index = call ? mix_functional_call_place(clone->graph, call) : -1;
  return index >= 0 ? mix_list_get(clone->results[index], output) : tensor;
}

static mix_list *stand_ins(const clone_state *clone, mix_list *list) {
  mix_list *made = list ? mix_list_new(0, NULL) : NULL;
  for (int i = 0; list && i < mix_list_count(list); i++)
    mix_list_append(made, stand_in(clone, mix_list_get(list, i)));
  return made;
}

static mix_layer *layer_of_call(const clone_state *clone, int c) {
  const int first = mix_functional_first_call(clone->graph, clone->graph->calls[c]->layer);
  if (!clone->layers[first]) clone->layers[first] = replace(clone->graph->calls[c]->layer, clone->options);
  return clone->layers[first];
}

static bool clone_inputs(const clone_state *clone) {
  const mix_functional *graph = clone->graph;
  void *given = clone->options->inputs;
  mix_list *inputs = given ? mix_tensors_given(given, "model_clone", "inputs") : NULL;
  if (inputs && mix_list_count(inputs) != graph->input_count)
    mix_fail_value("model_clone: %d inputs; the model has %d", mix_list_count(inputs), graph->input_count);
  for (int i = 0; i < graph->input_count && !mix_failed(); i++) {
    const mix_layer_call *call = mix_tensor_history(graph->inputs[i], NULL);
    if (call->inputs && !inputs)
      mix_fail_unsupported("model_clone: input %d is the result of a layer; give the clone's inputs", i);
    mix_tensor *input = mix_failed() ? NULL : inputs ? mix_list_get(inputs, i) : new_input(call->layer);
    if (input) clone->results[mix_functional_call_place(graph, call)] = mix_list_of(input);
  }
  return !mix_failed();
}

static bool clone_calls(const clone_state *clone) {
  for (int c = 0; c < clone->graph->call_count && !mix_failed(); c++) {
    const mix_layer_call *call = clone->graph->calls[c];
    mix_layer *layer = clone->results[c] ? NULL : layer_of_call(clone, c);
    mix_call_keywords keywords = call->keywords;
    keywords.argument_masks = stand_ins(clone, keywords.argument_masks);
    keywords.attention_mask = keywords.attention_mask ? stand_in(clone, keywords.attention_mask) : NULL;
    if (layer)
      clone->results[c] = mix_layer_call_outputs(
          layer, stand_ins(clone, call->inputs), call->inputs_are_list, stand_ins(clone, call->arguments),
          stand_ins(clone, call->masks), stand_ins(clone, call->initial_state), call->training, &keywords);
  }
  return !mix_failed();
}

static mix_list *ends(const clone_state *clone, mix_tensor **tensors, int count) {
  mix_list *list = mix_list_new(0, NULL);
  for (int i = 0; i < count; i++) mix_list_append(list, stand_in(clone, tensors[i]));
  return list;
}

static mix_model *clone_functional(mix_layer *old, const mix_clone_options *options) {
  const mix_functional *graph = mix_layer_data(old);
  size_t size = ((size_t)graph->call_count + 1) * sizeof(void *);
  clone_state clone = {graph, options, mix_scoped_memory(size), mix_scoped_memory(size)};
  if (!clone.results || !clone.layers || !clone_inputs(&clone) || !clone_calls(&clone)) return NULL;
  mix_model *model = mix_model_with_extras(
      &(const mix_model_options){.size = sizeof(mix_model_options),
                                 .inputs = ends(&clone, graph->inputs, graph->input_count),
                                 .outputs = ends(&clone, graph->outputs, graph->output_count),
                                 .name = old->name,
                                 .semantics = old->semantics},
      graph->extra_count ? ends(&clone, graph->extras, graph->extra_count) : NULL);
  if (!model) return NULL;
  mix_functional *made = mix_layer_data(model->layer);
  json_decref(made->input_form);
  json_decref(made->output_form);
  made->input_form = json_incref(graph->input_form);
  made->output_form = json_incref(graph->output_form);
  return model;
}

/* ---- sequential models ---- */

static mix_model *clone_sequential(mix_layer *old, const mix_clone_options *options) {
  mix_model *model = mix_sequential_with(&(const mix_sequential_options){
      .size = sizeof(mix_sequential_options), .name = old->name, .semantics = old->semantics});
  mix_tensor *input = NULL;
  if (options->inputs)
    return mix_fail_value("model_clone: inputs are for functional models; '%s' is sequential", old->name);
  for (int i = 0; model && i < mix_list_count(old->layers) && !mix_failed(); i++) {
    mix_layer *layer = mix_list_get(old->layers, i), *made;
    if (layer->is_input)
      made = (input = new_input(layer)) ? mix_tensor_history(input, NULL)->layer : NULL;
    else
      made = replace(layer, options);
    if (made) mix_sequential_add(model, made);
  }
  const mix_sequential_data *first = old->data;
  if (mix_failed() || !model) return NULL;
  if (!input && first->shape.rank > 0) {
    mix_node *node = mix_node_placeholder(first->dtype, first->shape, true);
    input = node ? mix_tensor_of(node, 0) : NULL;
    mix_release(node);
  }
  if (input && mix_list_count(old->layers)) mix_sequential_build_on(model, input);
  return mix_failed() ? NULL : model;
}

/* Of a class whose config stands for its layers: the clone is of that class too. */
static mix_model *clone_of_class(mix_layer *layer) {
  json_t *object = mix_layer_to_json(layer, false);
  const mix_from_json_options options = {.size = sizeof options, .semantics = layer->semantics};
  mix_model *model = object ? mix_model_from_object(object, &options, false) : NULL;
  json_decref(object);
  return model;
}

static mix_model *clone_of_layer(mix_layer *layer, const mix_clone_options *options) {
  if (layer->origin && !options->clone_function && !options->inputs) return clone_of_class(layer);
  mix_model *model =
      mix_layer_is_functional(layer) ? clone_functional(layer, options) : clone_sequential(layer, options);
  if (!model) return NULL;
  mix_layer *made = model->layer;
  mix_release(made->policy);
  made->policy = mix_retain(layer->policy);
  made->compute = layer->compute;
  made->variable = layer->variable;
  made->trainable = layer->trainable;
  return model;
}

mix_model *mix_model_clone_with(const mix_clone_options *given) {
  MIX_OPTIONS(mix_clone_options, options, given, "model_clone");
  if (!mix_model_given(options.model, "model_clone")) return NULL;
  if (options.model->kind == MIX_SUBCLASSED)
    return mix_fail_unsupported(
        "model_clone: '%s' is a subclassed model, whose structure is its program; make it again",
        mix_model_name(options.model));
  mix_scope *scope = mix_scope_begin();
  mix_model *model = mix_retain(clone_of_layer(options.model->layer, &options));
  mix_scope_end(scope);
  return mix_scoped(model);
}
