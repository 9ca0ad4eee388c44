/* Layers that the models of keras.applications define for themselves: LayerScale and StochasticDepth of
 * ConvNeXt, CustomScaleLayer of InceptionResNetV2. They come from files; nothing else makes them. */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include "ops/with_number.h"

#define MIX_APPLICATION_KIND(name, type, from, ...)                                                          \
  const mix_layer_kind mix_##name##_kind = {                                                                 \
      .call = #name, .options_size = sizeof(type), .module = ".applications." from, __VA_ARGS__};

/* ---- LayerScale ---- */

typedef struct layer_scale_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double init_values;
  int64_t projection_dim;
} layer_scale_options;

typedef struct layer_scale {
  layer_scale_options options;
  mix_variable *gamma; /* owned by the layer's list */
} layer_scale;

static mix_status layer_scale_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  layer_scale *s = mix_layer_data(layer);
  const int64_t channels = s->options.projection_dim;
  const int64_t last =
      count == 1 && input_shapes[0].rank > 1 ? input_shapes[0].dims[input_shapes[0].rank - 1] : 0;
  if (channels < 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: projection_dim is %lld", layer->name, (long long)channels);
  if (last != channels && last != MIX_UNKNOWN)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: the input has shape %s; expected %lld channels", layer->name,
                           MIX_SHAPE_TEXT(input_shapes[0]), (long long)channels);
  mix_scope *scope = mix_scope_begin();
  mix_initializer *constant = mix_initializer_new(.initializer = "constant", .value = s->options.init_values);
  s->gamma =
      mix_layer_add_weight(layer, "gamma", .shape = MIX_SHAPE(channels), .initializer_object = constant);
  if (scope) mix_scope_end(scope);
  return mix_error();
}

static mix_list *layer_scale_call(mix_layer *layer, const mix_call_args *args) {
  const layer_scale *s = mix_layer_data(layer);
  return mix_one_result(mix_multiply(mix_call_input(args, 0), mix_variable_value(s->gamma)));
}

static const mix_field_row layer_scale_fields[] = {
    {MIX_FIELD(layer_scale_options, init_values), &mix_field_number},
    {MIX_FIELD(layer_scale_options, projection_dim), &mix_field_integer},
    {0}};
MIX_APPLICATION_KIND(layer_scale, layer_scale_options, "convnext", .fields = layer_scale_fields,
                     MIX_LAYER_CLASS(.name = "LayerScale", .instance_size = sizeof(layer_scale),
                                     .build = layer_scale_build, .call = layer_scale_call,
                                     .output_shape = mix_layer_same_shape))

/* ---- StochasticDepth ---- */

typedef struct stochastic_depth_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double drop_path_rate;
} stochastic_depth_options;

/* x / keep * floor(keep + uniform): whole examples are kept or dropped. */
static mix_list *stochastic_depth_call(mix_layer *layer, const mix_call_args *args) {
  const stochastic_depth_options *d = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (!args->training || args->symbolic) return mix_list_of(x);
  mix_shape examples = mix_tensor_shape(x);
  for (int i = 1; i < examples.rank; i++) examples.dims[i] = 1;
  return mix_one_result(mix_dropped(x, d->drop_path_rate, examples, mix_generator_of(layer)));
}

static bool stochastic_depth_ready(mix_layer *layer) { return mix_layer_generator(layer, 0) != NULL; }

static const mix_field_row stochastic_depth_fields[] = {
    {MIX_FIELD(stochastic_depth_options, drop_path_rate), &mix_field_number, .range = MIX_UNIT_INTERVAL},
    {0}};
MIX_APPLICATION_KIND(stochastic_depth, stochastic_depth_options, "convnext",
                     .fields = stochastic_depth_fields, .ready = stochastic_depth_ready,
                     MIX_LAYER_CLASS(.name = "StochasticDepth", .call = stochastic_depth_call,
                                     .output_shape = mix_layer_same_shape))

/* ---- CustomScaleLayer ---- */

typedef struct custom_scale_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double scale;
} custom_scale_options;

static mix_list *custom_scale_call(mix_layer *layer, const mix_call_args *args) {
  const custom_scale_options *o = mix_layer_data(layer);
  if (mix_list_count(args->inputs) != 2)
    return mix_fail_value("%s: got %d inputs; expected two", layer->name, mix_list_count(args->inputs));
  mix_tensor *x = mix_call_input(args, 0), *branch = mix_call_input(args, 1);
  return mix_one_result(mix_add(x, mix_times(branch, o->scale)));
}

static const mix_field_row custom_scale_fields[] = {
    {MIX_FIELD(custom_scale_options, scale), &mix_field_number}, {0}};
MIX_APPLICATION_KIND(custom_scale, custom_scale_options, "inception_resnet_v2", .registered = true,
                     .fields = custom_scale_fields,
                     MIX_LAYER_CLASS(.name = "CustomScaleLayer", .call = custom_scale_call))
