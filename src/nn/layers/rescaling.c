/* Rescaling: x * scale + offset. */
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"
#include "ops/with_number.h"

static mix_list *rescaling_call(mix_layer *layer, const mix_call_args *args) {
  const mix_rescaling_options *r = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  return mix_one_result(mix_add(mix_times(x, r->scale), mix_scalar_like(x, r->offset)));
}

static bool rescaling_ready(mix_layer *layer) {
  layer->class.supports_masking = layer->semantics->preprocessing_passes_masks;
  return true;
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_rescaling_options, scale), &mix_field_number, .required = true},
    {MIX_FIELD(mix_rescaling_options, offset), &mix_field_number},
    {0}};
MIX_LAYER_KIND(rescaling, mix_rescaling_options, .fields = fields, .ready = rescaling_ready,
               .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "Rescaling", .call = rescaling_call,
                               .output_shape = mix_layer_same_shape))
