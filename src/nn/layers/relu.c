/* The ReLU layer, with a maximum, and a slope below a threshold. */
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"
#include <math.h>

static mix_list *relu_call(mix_layer *layer, const mix_call_args *args) {
  const mix_relu_layer_options *o = mix_layer_data(layer);
  double max_value = isinf(o->max_value) ? 0 : o->max_value == 0 ? MIX_ZERO : o->max_value;
  return mix_one_result(mix_activate("relu", mix_call_input(args, 0), .max_value = max_value,
                                     .negative_slope = o->negative_slope, .threshold = o->threshold,
                                     .semantics = layer->semantics));
}

#define FIELD(member)                                                                                        \
  MIX_FIELD(mix_relu_layer_options, member), .kind = &mix_field_number, .range = MIX_NOT_NEGATIVE
static const mix_field_row fields[] = {
    {FIELD(max_value), .number = INFINITY}, {FIELD(negative_slope)}, {FIELD(threshold)}, {0}};
MIX_LAYER_KIND(relu_layer, mix_relu_layer_options, .fields = fields, .built_from_start = true,
               .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "ReLU", .call = relu_call, .output_shape = mix_layer_same_shape,
                               .supports_masking = true))
