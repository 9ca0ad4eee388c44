/* The graphs of KerasHub's models: inputs and outputs by name. */
#include "base/error.h"
#include "base/json.h"
#include "model/hub/hub.h"
#include "nn/layers/operands.h"
#include <string.h>

mix_tensor *mix_hub_tokens(const void *options, const char *name) {
  const mix_layer_common *o = options;
  return mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN), .dtype = "int32", .name = name,
                   .semantics = o->semantics);
}

/* A dict as a list in the order of its names, in which Keras flattens it, and the form that it had. */
static mix_list *flattened(void *given, json_t **form) {
  if (!mix_is(given, &mix_list_class)) {
    *form = mix_operand_form(0);
    return given ? mix_list_of(given) : NULL;
  }
  mix_list *list = mix_list_new(0, NULL);
  const int count = mix_list_count(given);
  *form = json_object();
  for (int i = 0; i < count; i++) {
    int least = -1;
    for (int j = 0; j < count; j++) {
      const char *name = mix_dict_name(given, j);
      if (!json_object_get(*form, name) && (least < 0 || strcmp(name, mix_dict_name(given, least)) < 0))
        least = j;
    }
    mix_json_set(*form, mix_dict_name(given, least), mix_operand_form(i));
    mix_list_append(list, mix_list_get(given, least));
  }
  return list;
}

mix_model *mix_hub_model(const void *options, void *inputs, void *outputs) {
  const mix_layer_common *o = options;
  json_t *input_form = NULL, *output_form = NULL;
  mix_list *ins = mix_failed() ? NULL : flattened(inputs, &input_form);
  mix_list *outs = ins ? flattened(outputs, &output_form) : NULL;
  mix_model *model =
      outs && !mix_failed() ? mix_model_new(ins, outs, .name = o->name, .semantics = o->semantics) : NULL;
  if (!model) {
    json_decref(input_form);
    json_decref(output_form);
    return NULL;
  }
  mix_functional *graph = mix_layer_data(model->layer);
  json_decref(graph->input_form);
  json_decref(graph->output_form);
  graph->input_form = input_form;
  graph->output_form = output_form;
  return model;
}

mix_layer *mix_hub_add_layer(const void *options, const char *name) {
  const mix_layer_common *o = options;
  return mix_add_layer_with(&(const mix_merge_options){
      .size = sizeof(mix_merge_options), .name = name, .policy = o->policy, .semantics = o->semantics});
}

/* The result of an operation of Keras on x. Takes object and form. */
static mix_tensor *operate(mix_tensor *x, json_t *object, json_t *form) {
  mix_layer *layer = x && object && form ? mix_layer_from_object(object, &mix_semantics_keras3, "hub") : NULL;
  mix_list *results = layer ? mix_layer_call_outputs(layer, mix_list_of(x), true, NULL, NULL, NULL,
                                                     MIX_INHERIT, &(mix_call_keywords){.form = form})
                            : NULL;
  json_decref(object);
  json_decref(form);
  return results ? mix_list_get(results, 0) : NULL;
}

/* x[key]. Takes the key. */
static mix_tensor *get_item(mix_tensor *x, json_t *key) {
  return operate(x,
                 json_pack("{s:s,s:s,s:{s:s}}", "module", "keras.src.ops.numpy", "class_name", "GetItem",
                           "config", "name", mix_unique_name("get_item", false)),
                 json_pack("{s:[o,o],s:{}}", "args", mix_operand_form(0), key, "kwargs"));
}

static json_t *whole_axis(void) {
  return json_pack("{s:s,s:{s:n,s:n,s:n}}", "class_name", "__slice__", "config", "start", "stop", "step");
}

mix_tensor *mix_hub_position(mix_tensor *x, int place) {
  return get_item(x, json_pack("[o,i]", whole_axis(), place));
}

mix_tensor *mix_hub_mask_of_keys(mix_tensor *mask) {
  return get_item(mask, json_pack("[o,n,o]", whole_axis(), whole_axis()));
}

mix_tensor *mix_hub_mean_of_positions(mix_tensor *x) {
  return operate(x,
                 json_pack("{s:s,s:s,s:{s:s,s:[i],s:b}}", "module", "keras.src.ops.numpy", "class_name",
                           "Mean", "config", "name", mix_unique_name("mean", false), "axis", 1, "keepdims",
                           0),
                 json_pack("{s:[o],s:{}}", "args", mix_operand_form(0), "kwargs"));
}

/* ---- tasks ---- */

static const mix_functional *graph_of(mix_layer *backbone) {
  if (mix_failed()) return NULL;
  if (mix_layer_is_functional(backbone)) return mix_layer_data(backbone);
  return mix_fail_value("the backbone of a model of KerasHub is a '%.60s'; expected a backbone",
                        backbone->class.name);
}

mix_list *mix_hub_inputs_like(mix_layer *backbone) {
  const mix_functional *graph = graph_of(backbone);
  mix_list *inputs = graph ? mix_list_new(0, NULL) : NULL;
  for (int i = 0; inputs && i < graph->input_count; i++) {
    const mix_layer *input = mix_tensor_history(graph->inputs[i], NULL)->layer;
    mix_shape shape = mix_tensor_shape(graph->inputs[i]);
    mix_input_options options = {.size = sizeof options,
                                 .name = input->name,
                                 .dtype = mix_dtype_name(mix_tensor_dtype(graph->inputs[i])),
                                 .semantics = backbone->semantics,
                                 .shape = {.rank = shape.rank - 1}};
    memcpy(options.shape.dims, shape.dims + 1, (size_t)options.shape.rank * sizeof *shape.dims);
    mix_list_append(inputs, mix_input_with(&options));
  }
  return mix_failed() ? NULL : inputs;
}

mix_tensor *mix_hub_output(mix_layer *backbone, mix_list *inputs, const char *name) {
  const mix_functional *graph = graph_of(backbone);
  mix_list *outputs = graph && inputs ? mix_call_outputs(backbone, inputs) : NULL;
  if (!outputs) return NULL;
  const json_t *form = name ? json_object_get(graph->output_form, name) : graph->output_form;
  const int place = form ? mix_operand_form_number(form) : -1;
  if (place >= 0) return mix_list_get(outputs, place);
  if (name) return mix_fail_value("the backbone '%.60s' has no output '%s'", backbone->name, name);
  return mix_fail_value("the backbone '%.60s', a %.60s, has several outputs; the task expects one with a "
                        "single output",
                        backbone->name, backbone->class.name);
}

mix_model *mix_hub_task(const void *options, mix_layer *backbone, mix_list *inputs, mix_tensor *output) {
  const mix_layer_common *o = options;
  if (!inputs || !output) return NULL;
  mix_model *model = mix_model_new(inputs, output, .name = o->name, .semantics = o->semantics);
  if (!model) return NULL;
  mix_functional *graph = mix_layer_data(model->layer);
  json_decref(graph->input_form);
  graph->input_form = json_incref(((const mix_functional *)mix_layer_data(backbone))->input_form);
  return model;
}

mix_layer *mix_hub_layer_named(const mix_layer *backbone, const char *name) {
  for (int i = 0; i < mix_list_count(backbone->layers); i++) {
    mix_layer *layer = mix_list_get(backbone->layers, i);
    if (!strcmp(layer->name, name)) return layer;
  }
  return mix_fail_value("the backbone '%.60s' has no layer '%s'", backbone->name, name);
}
