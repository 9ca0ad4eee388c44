/* ThresholdedReLU: x above the threshold theta, else 0 (Konda, Memisevic, Krueger: Zero-bias autoencoders;
 * arXiv:1402.3337). */
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"

static mix_list *thresholded_relu_call(mix_layer *layer, const mix_call_args *args) {
  const mix_thresholded_relu_options *o = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  mix_tensor *above = mix_greater(x, mix_scalar_like(x, o->theta));
  return mix_one_result(mix_multiply(x, mix_cast(above, mix_tensor_dtype(x))));
}

static const mix_field_row fields[] = {{MIX_FIELD(mix_thresholded_relu_options, theta), &mix_field_number,
                                        .number = 1, .range = MIX_NOT_NEGATIVE},
                                       {0}};
MIX_LAYER_KIND(thresholded_relu, mix_thresholded_relu_options, .fields = fields, .tf_keras_only = true,
               .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "ThresholdedReLU", .call = thresholded_relu_call,
                               .output_shape = mix_layer_same_shape, .supports_masking = true))
