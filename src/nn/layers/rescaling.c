/* Rescaling: x * scale + offset. */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct rescaling {
  double scale, offset;
} rescaling;

static mix_list *rescaling_call(mix_layer *layer, const mix_call_args *args) {
  const rescaling *r = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  return mix_one_result(
      mix_add(mix_multiply(x, mix_scalar_like(x, r->scale)), mix_scalar_like(x, r->offset)));
}

static mix_status rescaling_config(mix_layer *layer, mix_config *config) {
  const rescaling *r = mix_layer_data(layer);
  mix_config_number(config, "scale", r->scale);
  return mix_config_number(config, "offset", r->offset);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "Rescaling",
                                      .instance_size = sizeof(rescaling),
                                      .call = rescaling_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = rescaling_config};

mix_rescaling_options mix_rescaling_defaults(void) {
  return (mix_rescaling_options){.size = sizeof(mix_rescaling_options)};
}

mix_layer *mix_rescaling_with(const mix_rescaling_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_rescaling_options, o, options, "rescaling");
  if (o.scale == 0) return mix_fail(MIX_TYPE_ERROR, "rescaling: needs a scale; MIX_ZERO says zero");
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "rescaling");
  if (!layer) return NULL;
  layer->class.supports_masking = layer->semantics->preprocessing_passes_masks;
  *(rescaling *)layer->data = (rescaling){mix_option_number(o.scale, 0), mix_option_number(o.offset, 0)};
  return mix_scoped(layer);
}

mix_layer *mix_rescaling_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_rescaling(.scale =
                           json_object_get(config, "scale") ? mix_json_option_number(config, "scale", 0) : 0,
                       .offset = mix_json_number_or(config, "offset", 0), MIX_COMMON_CONFIG(c));
}
