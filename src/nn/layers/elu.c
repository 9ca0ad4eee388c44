/* The ELU layer (Clevert, Unterthiner, Hochreiter; arXiv:1511.07289). */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct elu {
  double alpha;
} elu;

static mix_list *elu_call(mix_layer *layer, const mix_call_args *args) {
  double alpha = ((const elu *)mix_layer_data(layer))->alpha;
  return mix_one_result(mix_activate("elu", mix_call_input(args, 0), .alpha = alpha == 0 ? MIX_ZERO : alpha,
                                     .semantics = layer->semantics));
}

static mix_status elu_config(mix_layer *layer, mix_config *config) {
  return mix_config_number(config, "alpha", ((const elu *)mix_layer_data(layer))->alpha);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "ELU",
                                      .instance_size = sizeof(elu),
                                      .call = elu_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = elu_config,
                                      .supports_masking = true};

mix_elu_layer_options mix_elu_layer_defaults(void) {
  return (mix_elu_layer_options){.size = sizeof(mix_elu_layer_options)};
}

mix_layer *mix_elu_layer_with(const mix_elu_layer_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_elu_layer_options, o, options, "elu_layer");
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "elu_layer");
  if (layer) ((elu *)layer->data)->alpha = mix_option_number(o.alpha, 1);
  return mix_scoped(layer);
}

mix_layer *mix_elu_layer_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_elu_layer(MIX_COMMON_CONFIG(c), .alpha = mix_json_option_number(config, "alpha", 1));
}
