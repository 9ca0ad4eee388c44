/* Activation: an activation function as a layer. Its dtype may differ from the policy's, as in the guide's
 * float32 softmax. */
#include "nn/layers/activation_functions.h"
#include "base/alloc.h"
#include "base/error.h"
#include "nn/layer/layer.h"

typedef struct activation {
  const char *name; /* interned */
} activation;

static mix_list *activation_call(mix_layer *layer, const mix_call_args *args) {
  const activation *a = mix_layer_data(layer);
  mix_tensor *y = mix_activate(a->name, mix_call_input(args, 0), .semantics = layer->semantics);
  return y ? mix_list_of(y) : NULL;
}

static mix_shape activation_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)count;
  return mix_activation_shape(((const activation *)mix_layer_data(layer))->name, input_shapes[0]);
}

static mix_status activation_config(mix_layer *layer, mix_config *config) {
  return mix_config_text(config, "activation", ((const activation *)mix_layer_data(layer))->name);
}

const mix_layer_class mix_class_activation = {.size = sizeof(mix_layer_class),
                                              .name = "Activation",
                                              .instance_size = sizeof(activation),
                                              .call = activation_call,
                                              .output_shape = activation_output_shape,
                                              .get_config = activation_config,
                                              .supports_masking = true};

mix_activation_options mix_activation_defaults(void) {
  return (mix_activation_options){.size = sizeof(mix_activation_options)};
}

mix_layer *mix_activation_with(const mix_activation_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_activation_options, o, options, "activation");
  if (!o.activation)
    return mix_fail(MIX_TYPE_ERROR, "activation: needs the name of an activation; 'linear' changes nothing");
  if (!mix_activation_known(o.activation, mix_semantics_or_current(o.semantics), "activation")) return NULL;
  mix_layer *layer = mix_layer_make(&mix_class_activation, MIX_LAYER_COMMON(o), "activation");
  if (layer) ((activation *)layer->data)->name = mix_intern(o.activation);
  return mix_scoped(layer);
}
