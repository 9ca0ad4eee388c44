/* ActivityRegularization: passes its input through and adds an L1 and L2 penalty on it. */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct activity_regularization {
  double l1, l2;
} activity_regularization;

static mix_list *activity_regularization_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  return mix_list_of(mix_call_input(args, 0));
}

static mix_status activity_regularization_config(mix_layer *layer, mix_config *config) {
  const activity_regularization *a = mix_layer_data(layer);
  /* l1 and l2 replace it; Keras accepts nothing else. */
  json_object_del(config->object, "activity_regularizer");
  mix_config_number(config, "l1", a->l1);
  return mix_config_number(config, "l2", a->l2);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "ActivityRegularization",
                                      .instance_size = sizeof(activity_regularization),
                                      .call = activity_regularization_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = activity_regularization_config,
                                      .supports_masking = true};

mix_activity_regularization_options mix_activity_regularization_defaults(void) {
  return (mix_activity_regularization_options){.size = sizeof(mix_activity_regularization_options)};
}

mix_layer *mix_activity_regularization_with(const mix_activity_regularization_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_activity_regularization_options, o, options, "activity_regularization");
  double l1 = mix_option_number(o.l1, 0), l2 = mix_option_number(o.l2, 0);
  if (o.activity_regularizer)
    return mix_fail(MIX_VALUE_ERROR,
                    "activity_regularization: takes l1 and l2, no activity_regularizer beside them");
  o.activity_regularizer =
      mix_regularizer_new("l1_l2", .l1 = l1 == 0 ? MIX_ZERO : l1, .l2 = l2 == 0 ? MIX_ZERO : l2);
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "activity_regularization");
  if (layer) *(activity_regularization *)layer->data = (activity_regularization){l1, l2};
  return mix_scoped(layer);
}

mix_layer *mix_activity_regularization_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  c.activity_regularizer = NULL; /* l1 and l2 replace it */
  return mix_activity_regularization(.l1 = mix_json_number_or(config, "l1", 0),
                                     .l2 = mix_json_number_or(config, "l2", 0), MIX_COMMON_CONFIG(c));
}
