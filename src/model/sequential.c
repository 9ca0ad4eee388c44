/* Sequential models, a chain of layers, and building a model whose inputs are not known yet. */
#include "model/model.h"

#include "base/error.h"
#include "base/float_modes.h"

/* The data as the input layer that the model may begin with has them. */
static mix_list *conformed(const mix_layer *layer, mix_list *values) {
  const mix_layer *first = mix_sequential_input_layer(layer);
  if (!first || mix_list_count(values) != 1) return values;
  const mix_input_layer_data *input = first->data;
  mix_tensor *value = mix_model_conform(mix_list_get(values, 0), input->batch_shape, input->dtype);
  return value ? mix_list_of(value) : NULL;
}

static mix_list *sequential_call(mix_layer *layer, const mix_call_args *args) {
  mix_list *values = conformed(layer, mix_call_masked_inputs(args));
  mix_sequential_data *first = layer->data;
  if (!first->dtype) first->dtype = mix_tensor_dtype(mix_call_input(args, 0));
  bool are_list = args->inputs_are_list;
  for (int i = 0; i < mix_list_count(layer->layers) && !mix_failed(); i++) {
    mix_layer *inner = mix_list_get(layer->layers, i);
    if (inner->is_input) continue;
    values = mix_layer_call_outputs(inner, values, are_list, NULL, NULL, NULL, MIX_INHERIT, NULL);
    are_list = values && mix_list_count(values) > 1;
  }
  return mix_failed() ? NULL : values;
}

/* Stores the shape of the first call for the summary. */
static mix_status sequential_build(mix_layer *layer, int count, const mix_shape *shapes) {
  if (count == 1) ((mix_sequential_data *)layer->data)->shape = shapes[0];
  return MIX_OK;
}

static void sequential_finalize(mix_layer *layer) {
  mix_key_map_clear(&((mix_sequential_data *)layer->data)->names);
}

const mix_layer_class mix_class_sequential = {.size = sizeof(mix_layer_class),
                                              .name = "Sequential",
                                              .instance_size = sizeof(mix_sequential_data),
                                              .build = sequential_build,
                                              .call = sequential_call,
                                              .finalize = sequential_finalize,
                                              .no_autocast = true};

mix_model *mix_sequential_with(const mix_sequential_options *given) {
  MIX_OPTIONS(mix_sequential_options, options, given, "sequential");
  mix_layer_common common = {.name = options.name, .semantics = mix_semantics_or_current(options.semantics)};
  mix_layer *layer = mix_scoped(mix_layer_make(&mix_class_sequential, &common, NULL, "sequential"));
  mix_model *model = layer ? mix_model_wrap(layer, MIX_SEQUENTIAL) : NULL;
  for (int i = 0; model && options.layers && i < mix_list_count(options.layers); i++)
    if (mix_sequential_add(model, mix_list_get(options.layers, i)) != MIX_OK) return NULL;
  return model;
}

/* Has a layer of the model that name? */
static bool is_taken(const mix_layer *model, const char *name) {
  mix_sequential_data *data = model->data;
  for (; data->named < mix_list_count(model->layers); data->named++) {
    const mix_layer *layer = mix_list_items(model->layers)[data->named];
    if (!mix_key_map_set(&data->names, mix_address_key(layer->name), data->named)) break;
  }
  return mix_key_map_get(&data->names, mix_address_key(name)) >= 0;
}

static mix_status add(mix_model *model, mix_layer *layer) {
  if (model->kind != MIX_SEQUENTIAL)
    return mix_fail_status(MIX_TYPE_ERROR, "sequential_add: '%s' is a %s model", mix_layer_name(model->layer),
                           model->kind == MIX_FUNCTIONAL ? "functional" : "subclassed");
  if (!mix_is(layer, &mix_layer_object_class))
    return mix_fail_status(MIX_TYPE_ERROR, "sequential_add: expected a layer");
  if (is_taken(model->layer, layer->name))
    return mix_fail_status(MIX_VALUE_ERROR,
                           "sequential_add: all layers of a model need unique names; '%s' is taken",
                           mix_layer_name(layer));
  if (!mix_failed()) mix_layer_add_layer(model->layer, layer);
  return mix_error();
}

mix_status mix_sequential_add(mix_model *model, mix_layer *layer) {
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, "sequential_add") { add(model, layer); }
  return mix_error();
}

mix_status mix_sequential_build_on(mix_model *model, mix_tensor *input) {
  mix_call_options call = {.size = sizeof call, .inputs = input};
  mix_call_with(model->layer, &call);
  if (!mix_failed()) model->input_shape = mix_tensor_shape(input);
  return mix_error();
}

mix_status mix_model_build(mix_model *model, mix_shape input_shape) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_model_given(model, "model_build")) return mix_error();
  if (model->kind == MIX_FUNCTIONAL) return MIX_OK;
  if (model->kind == MIX_SUBCLASSED && model->input_count > 1)
    return mix_fail_status(MIX_VALUE_ERROR, "model_build: '%s' has %d inputs; call it on data instead",
                           mix_layer_name(model->layer), model->input_count);
  if (input_shape.rank < 1)
    return mix_fail_status(MIX_VALUE_ERROR, "model_build: the shape must include the batch dimension");
  if (input_shape.rank > MIX_MAX_RANK)
    return mix_fail_status(MIX_VALUE_ERROR, "model_build: the shape has rank %d; expected at most %d",
                           input_shape.rank, MIX_MAX_RANK);
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, "model_build")
  MIX_SCOPE {
    mix_input_options input = mix_input_defaults();
    input.batch_size = input_shape.dims[0] < 0 ? 0 : input_shape.dims[0];
    input.shape.rank = input_shape.rank - 1;
    for (int d = 1; d < input_shape.rank; d++) input.shape.dims[d - 1] = input_shape.dims[d];
    mix_tensor *x = mix_input_with(&input);
    if (x) mix_sequential_build_on(model, x);
  }
  return mix_error();
}
