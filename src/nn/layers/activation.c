/* Activation: an activation function as a layer. Its dtype may differ from the policy's, as in the guide's
 * float32 softmax. */
#include "nn/layer/decoding.h"
#include "nn/layers/activation_functions.h"
#include "base/error.h"
#include "nn/layer/remat.h"
#include "nn/layers/builtin.h"

static mix_list *activation_call(mix_layer *layer, const mix_call_args *args) {
  const mix_activation_options *o = mix_layer_data(layer);
  mix_tensor *y = mix_layer_activate(layer, o->activation, mix_call_input(args, 0));
  return y ? mix_list_of(y) : NULL;
}

static mix_shape activation_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_activation_options *o = mix_layer_data(layer);
  return mix_activation_shape(o->activation, input_shapes[0]);
}

static bool activation_check(void *options, const mix_layer_kind *kind) {
  if (((const mix_activation_options *)options)->activation) return true;
  return mix_fail_type("%s: needs the name of an activation; 'linear' changes nothing", kind->call);
}

static const mix_field_row fields[] = {{MIX_FIELD(mix_activation_options, activation), &mix_field_activation},
                                       {0}};
MIX_LAYER_KIND(activation, mix_activation_options, .fields = fields, .built_from_start = true,
               .check = activation_check, .decodes = mix_decodes_features,
               MIX_LAYER_CLASS(.name = "Activation", .call = activation_call,
                               .output_shape = activation_output_shape, .supports_masking = true))
