/* A model's layers and connections in the JSON of Keras's model.to_json, which TensorBoard draws as the
 * conceptual graph. Its reader accepts only the connections of Keras 3, so every generation uses that
 * form. */
#include "train/callback.h"
#include "nn/config.h"

static json_t *model_json(mix_layer *layer);

/* keras_history of a tensor: its layer, the index of the call, the index of the result. */
static json_t *tensor_json(const mix_functional *graph, const mix_tensor *tensor) {
  int output;
  const mix_layer_call *call = mix_tensor_history(tensor, &output);
  if (!call) return NULL;
  return mix_json_whole(json_pack("{s:s, s:{s:s, s:[s, i, i]}}", "class_name", "__keras_tensor__", "config",
                                  "dtype", mix_dtype_name(mix_tensor_dtype(tensor)), "keras_history",
                                  call->layer->name, mix_functional_call_number(graph, call), output));
}

static void append_inputs(json_t *inputs, const mix_functional *graph, mix_list *tensors) {
  for (int i = 0; tensors && i < mix_list_count(tensors); i++) {
    json_t *tensor = mix_list_get(tensors, i) ? tensor_json(graph, mix_list_get(tensors, i)) : NULL;
    if (tensor) mix_json_append(inputs, tensor);
  }
}

/* The inputs of each call of the layer in the model. */
static json_t *inbound_json(const mix_functional *graph, const mix_layer *layer) {
  json_t *nodes = json_array();
  for (int c = mix_functional_first_call(graph, layer); c >= 0; c = mix_functional_next_call(graph, c)) {
    if (!graph->calls[c]->inputs) continue;
    json_t *inputs = json_array();
    append_inputs(inputs, graph, graph->calls[c]->inputs);
    append_inputs(inputs, graph, graph->calls[c]->arguments);
    mix_json_append(nodes, json_pack("{s:[o], s:{}}", "args", inputs, "kwargs"));
  }
  return nodes;
}

static json_t *layer_json(mix_layer *layer) {
  if (mix_layer_is_structured(layer)) return model_json(layer);
  return json_pack("{s:s, s:s, s:o}", "class_name", layer->class.name, "name", layer->name, "config",
                   mix_layer_config_json(layer));
}

/* [[layer, 0, 0], ...] */
static json_t *ends_json(const mix_functional *graph, mix_tensor *const *tensors, int count) {
  json_t *ends = json_array();
  for (int i = 0; i < count; i++) {
    json_t *tensor = tensor_json(graph, tensors[i]);
    json_t *history = json_object_get(json_object_get(tensor, "config"), "keras_history");
    if (history) mix_json_append(ends, json_incref(history));
    json_decref(tensor);
  }
  return ends;
}

static json_t *functional_json(mix_layer *model) {
  const mix_functional *graph = mix_layer_data(model);
  json_t *layers = json_array();
  for (int c = 0; c < graph->call_count; c++) {
    if (mix_functional_first_call(graph, graph->calls[c]->layer) < c) continue;
    json_t *layer = layer_json(graph->calls[c]->layer);
    mix_json_set(layer, "inbound_nodes", inbound_json(graph, graph->calls[c]->layer));
    mix_json_append(layers, layer);
  }
  return json_pack("{s:s, s:s, s:{s:s, s:o, s:o, s:o}}", "class_name", "Functional", "name", model->name,
                   "config", "name", model->name, "layers", layers, "input_layers",
                   ends_json(graph, graph->inputs, graph->input_count), "output_layers",
                   ends_json(graph, graph->outputs, graph->output_count));
}

static json_t *sequential_json(mix_layer *model) {
  json_t *layers = json_array();
  for (int i = 0; i < mix_list_count(model->layers); i++)
    mix_json_append(layers, layer_json(mix_list_get(model->layers, i)));
  return json_pack("{s:s, s:s, s:{s:s, s:o}}", "class_name", "Sequential", "name", model->name, "config",
                   "name", model->name, "layers", layers);
}

static json_t *model_json(mix_layer *layer) {
  return mix_layer_is_functional(layer) ? functional_json(layer) : sequential_json(layer);
}

char *mix_graph_text(const mix_model *model) {
  json_t *json = mix_json_whole(layer_json(model->layer));
  char *text = mix_json_text(json);
  json_decref(json);
  return text;
}
