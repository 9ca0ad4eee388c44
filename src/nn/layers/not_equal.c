/* NotEqual: the operation as a layer of a functional model. Keras 3 saves masks of Embedding so. The other
 * operand is a further argument of the call. */
#include "nn/layers/builtin.h"

typedef struct not_equal_options {
  size_t size;
  MIX_LAYER_OPTIONS
} not_equal_options;

static mix_list *call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  mix_tensor *x = mix_call_input(args, 0), *other = mix_call_argument(args, 0);
  return mix_one_result(mix_not_equal(x, other ? mix_cast(other, mix_tensor_dtype(x)) : NULL));
}

/* Operations have a name and no more. */
static mix_status get_config(mix_layer *layer, mix_config *config) {
  (void)layer;
  json_object_del(config->object, "trainable");
  json_object_del(config->object, "dtype");
  return MIX_OK;
}

const mix_layer_kind mix_not_equal_kind = {
    .call = "not_equal",
    .options_size = sizeof(not_equal_options),
    .module = "keras.src.ops.numpy",
    .built_from_start = true,
    MIX_LAYER_CLASS(.name = "NotEqual", .call = call, .get_config = get_config, .no_autocast = true)};
