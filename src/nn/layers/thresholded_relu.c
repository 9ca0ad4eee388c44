/* ThresholdedReLU: x above the threshold theta, else 0 (Konda, Memisevic, Krueger: Zero-bias autoencoders;
 * arXiv:1402.3337). */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct thresholded_relu {
  double theta;
} thresholded_relu;

static mix_list *thresholded_relu_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  mix_tensor *above =
      mix_greater(x, mix_scalar_like(x, ((const thresholded_relu *)mix_layer_data(layer))->theta));
  return mix_one_result(mix_multiply(x, mix_cast(above, mix_tensor_dtype(x))));
}

static mix_status thresholded_relu_config(mix_layer *layer, mix_config *config) {
  return mix_config_number(config, "theta", ((const thresholded_relu *)mix_layer_data(layer))->theta);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "ThresholdedReLU",
                                      .instance_size = sizeof(thresholded_relu),
                                      .call = thresholded_relu_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = thresholded_relu_config,
                                      .supports_masking = true};

mix_thresholded_relu_options mix_thresholded_relu_defaults(void) {
  return (mix_thresholded_relu_options){.size = sizeof(mix_thresholded_relu_options)};
}

mix_layer *mix_thresholded_relu_with(const mix_thresholded_relu_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_thresholded_relu_options, o, options, "thresholded_relu");
  double theta = mix_option_number(o.theta, 1);
  if (!(theta >= 0))
    return mix_fail(MIX_VALUE_ERROR, "thresholded_relu: theta is %g; expected a number that is not negative",
                    theta);
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "thresholded_relu");
  if (layer) ((thresholded_relu *)layer->data)->theta = theta;
  return mix_scoped(layer);
}

mix_layer *mix_thresholded_relu_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_thresholded_relu(MIX_COMMON_CONFIG(c), .theta = mix_json_option_number(config, "theta", 1));
}
