/* Identity: passes its input through. */
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"

typedef struct identity_options {
  size_t size;
  MIX_LAYER_OPTIONS
} identity_options;

static mix_list *call(mix_layer *layer, const mix_call_args *args) {
  return mix_one_result(mix_call_input(args, 0));
}

const mix_layer_kind mix_identity_layer_kind = {.call = "identity",
                                                .options_size = sizeof(identity_options),
                                                .built_from_start = true,
                                                .decodes = mix_decodes,
                                                MIX_LAYER_CLASS(.name = "Identity", .call = call,
                                                                .output_shape = mix_layer_same_shape,
                                                                .supports_masking = true)};
