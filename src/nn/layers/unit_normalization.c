/* UnitNormalization: scales to unit L2 norm along the axes, in the compute dtype. */
#include "nn/layer/decoding.h"
#include "nn/layers/moments.h"

static mix_list *unit_normalization_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  const mix_unit_normalization_options *o = mix_layer_data(layer);
  mix_axes axes;
  if (!mix_layer_axes(layer, o->axis, mix_tensor_shape(x).rank, &axes)) return NULL;
  return mix_one_result(mix_unit_length(x, axes, layer->semantics));
}

static bool unit_normalization_decodes(const mix_layer *layer, const mix_call_args *args) {
  return mix_decodes_along(layer, args, ((const mix_unit_normalization_options *)layer->data)->axis);
}

static const mix_field_row fields[] = {{MIX_FIELD(mix_unit_normalization_options, axis), &mix_field_axes},
                                       {0}};
MIX_LAYER_KIND(unit_normalization, mix_unit_normalization_options, .fields = fields, .built_from_start = true,
               .decodes = unit_normalization_decodes,
               MIX_LAYER_CLASS(.name = "UnitNormalization", .call = unit_normalization_call,
                               .output_shape = mix_layer_same_shape, .supports_masking = true))
