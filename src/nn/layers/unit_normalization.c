/* UnitNormalization: scales to unit L2 norm along the axes, in the compute dtype. */
#include "base/error.h"
#include "nn/layers/moments.h"

typedef struct unit_normalization {
  mix_axes axis; /* as given; empty means the last */
} unit_normalization;

static mix_list *unit_normalization_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  mix_axes axes;
  if (!mix_layer_axes(layer, ((const unit_normalization *)mix_layer_data(layer))->axis,
                      mix_tensor_shape(x).rank, &axes))
    return NULL;
  return mix_one_result(mix_unit_length(x, axes, layer->semantics));
}

static mix_status unit_normalization_config(mix_layer *layer, mix_config *config) {
  mix_json_set(config->object, "axis",
               mix_axes_to_json(((const unit_normalization *)mix_layer_data(layer))->axis));
  return mix_error();
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "UnitNormalization",
                                      .instance_size = sizeof(unit_normalization),
                                      .call = unit_normalization_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = unit_normalization_config,
                                      .supports_masking = true};

mix_unit_normalization_options mix_unit_normalization_defaults(void) {
  return (mix_unit_normalization_options){.size = sizeof(mix_unit_normalization_options)};
}

mix_layer *mix_unit_normalization_with(const mix_unit_normalization_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_unit_normalization_options, o, options, "unit_normalization");
  if (!mix_axes_option(o.axis, "unit_normalization", "axis")) return NULL;
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "unit_normalization");
  if (layer) ((unit_normalization *)layer->data)->axis = o.axis;
  return mix_scoped(layer);
}

mix_layer *mix_unit_normalization_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_unit_normalization(MIX_COMMON_CONFIG(c), .axis = mix_json_axes(json_object_get(config, "axis")));
}
