/* Gemma's norm: in float32, with a scale that is 0 at first. */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/hub/decoder.h"
#include "nn/layers/moments.h"
#include "ops/with_number.h"

typedef struct offset_rms_norm {
  mix_hub_offset_rms_norm_options options;
  mix_variable *scale; /* owned by the layer's list */
} offset_rms_norm;

static mix_status offset_rms_norm_build(mix_layer *layer, int count, const mix_shape *shapes) {
  offset_rms_norm *n = layer->data;
  n->scale = mix_layer_add_weight(layer, "scale", .shape = MIX_SHAPE(shapes[0].dims[shapes[0].rank - 1]),
                                  .initializer = "zeros");
  return mix_error();
}

static mix_list *offset_rms_norm_call(mix_layer *layer, const mix_call_args *args) {
  const offset_rms_norm *n = layer->data;
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  if (!x) return NULL;
  const mix_dtype given = mix_tensor_dtype(x), wide = mix_widened(given);
  x = mix_cast(x, wide);
  mix_tensor *square = mix_reduce_mean(mix_square(x), MIX_AXES(-1), true);
  mix_tensor *y = mix_multiply(x, mix_rsqrt(mix_plus(square, n->options.epsilon)));
  mix_tensor *scale = mix_cast(mix_variable_value(n->scale), wide);
  return mix_one_result(scale ? mix_cast(mix_multiply(y, mix_plus(scale, 1)), given) : NULL);
}

static const mix_field_row fields[] = {{MIX_FIELD(mix_hub_offset_rms_norm_options, epsilon),
                                        &mix_field_number, .number = 1e-6, .range = MIX_NOT_NEGATIVE},
                                       {0}};
MIX_LAYER_KIND_ONLY(hub_offset_rms_norm, mix_hub_offset_rms_norm_options, .fields = fields,
                    .keras3_only = true, .decodes = mix_decodes_features,
                    MIX_LAYER_CLASS(.name = "RMSNormalization", .instance_size = sizeof(offset_rms_norm),
                                    .build = offset_rms_norm_build, .call = offset_rms_norm_call,
                                    .output_shape = mix_layer_same_shape, .supports_masking = true))
