/* The LeakyReLU layer (Maas, Hannun, Ng: Rectifier nonlinearities improve neural network acoustic models;
 * 2013). */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct leaky_relu {
  double negative_slope;
} leaky_relu;

static mix_list *leaky_relu_call(mix_layer *layer, const mix_call_args *args) {
  return mix_one_result(
      mix_leaky_relu(mix_call_input(args, 0), ((const leaky_relu *)mix_layer_data(layer))->negative_slope));
}

static mix_status leaky_relu_config(mix_layer *layer, mix_config *config) {
  const char *key = mix_layer_semantics(layer)->leaky_relu_alpha ? "alpha" : "negative_slope";
  return mix_config_number(config, key, ((const leaky_relu *)mix_layer_data(layer))->negative_slope);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "LeakyReLU",
                                      .instance_size = sizeof(leaky_relu),
                                      .call = leaky_relu_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = leaky_relu_config,
                                      .supports_masking = true};

mix_leaky_relu_layer_options mix_leaky_relu_layer_defaults(void) {
  return (mix_leaky_relu_layer_options){.size = sizeof(mix_leaky_relu_layer_options)};
}

mix_layer *mix_leaky_relu_layer_with(const mix_leaky_relu_layer_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_leaky_relu_layer_options, o, options, "leaky_relu_layer");
  double slope = mix_option_number(o.negative_slope, 0.3);
  if (!(slope >= 0))
    return mix_fail(MIX_VALUE_ERROR,
                    "leaky_relu_layer: negative_slope is %g; expected a number that is not negative", slope);
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "leaky_relu_layer");
  if (layer) ((leaky_relu *)layer->data)->negative_slope = slope;
  return mix_scoped(layer);
}

/* Keras 2 calls the slope alpha. */
mix_layer *mix_leaky_relu_layer_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  const char *key = json_object_get(config, "negative_slope") ? "negative_slope" : "alpha";
  return mix_leaky_relu_layer(MIX_COMMON_CONFIG(c),
                              .negative_slope = mix_json_option_number(config, key, 0.3));
}
