/* Masking: zeroes and masks the steps in which every element equals mask_value. */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct masking {
  double mask_value;
} masking;

static mix_tensor *any_differs(mix_layer *layer, const mix_call_args *args, bool keep_dims) {
  mix_tensor *x = mix_call_input(args, 0);
  mix_tensor *differs =
      mix_not_equal(x, mix_scalar_like(x, ((const masking *)mix_layer_data(layer))->mask_value));
  return mix_reduce_any(differs, MIX_AXES(-1), keep_dims);
}

static mix_list *masking_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  return mix_one_result(mix_multiply(x, mix_cast(any_differs(layer, args, true), mix_tensor_dtype(x))));
}

static mix_tensor *masking_mask(mix_layer *layer, const mix_call_args *args) {
  return any_differs(layer, args, false);
}

static mix_status masking_config(mix_layer *layer, mix_config *config) {
  return mix_config_number(config, "mask_value", ((const masking *)mix_layer_data(layer))->mask_value);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "Masking",
                                      .instance_size = sizeof(masking),
                                      .call = masking_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = masking_config,
                                      .supports_masking = true,
                                      .compute_mask = masking_mask};

mix_masking_options mix_masking_defaults(void) {
  return (mix_masking_options){.size = sizeof(mix_masking_options)};
}

mix_layer *mix_masking_with(const mix_masking_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_masking_options, o, options, "masking");
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "masking");
  if (layer) ((masking *)layer->data)->mask_value = mix_option_number(o.mask_value, 0);
  return mix_scoped(layer);
}

mix_layer *mix_masking_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_masking(MIX_COMMON_CONFIG(c), .mask_value = mix_json_number_or(config, "mask_value", 0));
}
