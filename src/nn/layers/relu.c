/* The ReLU layer, with a maximum, and a slope below a threshold. */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct relu {
  double max_value; /* as mix_activate takes it: 0 means none, MIX_ZERO means 0 */
  double negative_slope, threshold;
} relu;

static mix_list *relu_call(mix_layer *layer, const mix_call_args *args) {
  const relu *r = mix_layer_data(layer);
  return mix_one_result(mix_activate("relu", mix_call_input(args, 0), .max_value = r->max_value,
                                     .negative_slope = r->negative_slope, .threshold = r->threshold,
                                     .semantics = layer->semantics));
}

static mix_status relu_config(mix_layer *layer, mix_config *config) {
  const relu *r = mix_layer_data(layer);
  mix_json_set(config->object, "max_value",
               r->max_value == 0 ? json_null() : json_real(mix_option_number(r->max_value, 0)));
  mix_config_number(config, "negative_slope", r->negative_slope);
  return mix_config_number(config, "threshold", r->threshold);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "ReLU",
                                      .instance_size = sizeof(relu),
                                      .call = relu_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = relu_config,
                                      .supports_masking = true};

mix_relu_layer_options mix_relu_layer_defaults(void) {
  return (mix_relu_layer_options){.size = sizeof(mix_relu_layer_options)};
}

mix_layer *mix_relu_layer_with(const mix_relu_layer_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_relu_layer_options, o, options, "relu_layer");
  double max_value = mix_option_number(o.max_value, 0), slope = mix_option_number(o.negative_slope, 0),
         threshold = mix_option_number(o.threshold, 0);
  if (!(max_value >= 0 && slope >= 0 && threshold >= 0))
    return mix_fail(MIX_VALUE_ERROR,
                    "relu_layer: max_value is %g, negative_slope %g, threshold %g; "
                    "expected numbers that are not negative",
                    max_value, slope, threshold);
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "relu_layer");
  if (layer) *(relu *)layer->data = (relu){o.max_value, slope, threshold};
  return mix_scoped(layer);
}

mix_layer *mix_relu_layer_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  const json_t *max_value = json_object_get(config, "max_value");
  return mix_relu_layer(
      MIX_COMMON_CONFIG(c),
      .max_value = max_value && !json_is_null(max_value) ? mix_json_option_number(config, "max_value", 0) : 0,
      .negative_slope = mix_json_number_or(config, "negative_slope", 0),
      .threshold = mix_json_number_or(config, "threshold", 0));
}
