/* The LeakyReLU layer (Maas, Hannun, Ng: Rectifier nonlinearities improve neural network acoustic models;
 * 2013). */
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"

static mix_list *leaky_relu_call(mix_layer *layer, const mix_call_args *args) {
  const mix_leaky_relu_layer_options *o = mix_layer_data(layer);
  return mix_one_result(mix_leaky_relu(mix_call_input(args, 0), o->negative_slope));
}

static const mix_field_row fields[] = {{MIX_FIELD(mix_leaky_relu_layer_options, negative_slope),
                                        &mix_field_number, .number = 0.3, .range = MIX_NOT_NEGATIVE,
                                        .alias = "alpha", .renamed = MIX_RULE(leaky_relu_alpha)},
                                       {0}};
MIX_LAYER_KIND(leaky_relu_layer, mix_leaky_relu_layer_options, .fields = fields, .built_from_start = true,
               .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "LeakyReLU", .call = leaky_relu_call,
                               .output_shape = mix_layer_same_shape, .supports_masking = true))
