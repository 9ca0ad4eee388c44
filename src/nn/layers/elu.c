/* The ELU layer (Clevert, Unterthiner, Hochreiter; arXiv:1511.07289). */
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"

static mix_list *elu_call(mix_layer *layer, const mix_call_args *args) {
  double alpha = ((const mix_elu_layer_options *)mix_layer_data(layer))->alpha;
  return mix_one_result(mix_activate("elu", mix_call_input(args, 0), .alpha = alpha == 0 ? MIX_ZERO : alpha,
                                     .semantics = layer->semantics));
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_elu_layer_options, alpha), &mix_field_number, .number = 1}, {0}};
MIX_LAYER_KIND(elu_layer, mix_elu_layer_options, .fields = fields, .built_from_start = true,
               .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "ELU", .call = elu_call, .output_shape = mix_layer_same_shape,
                               .supports_masking = true))
