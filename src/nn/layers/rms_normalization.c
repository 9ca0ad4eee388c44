/* RMSNormalization (Zhang, Sennrich: Root mean square layer normalization; arXiv:1910.07467). It computes in
 * float32 and reads the scale in the policy's compute dtype. */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/moments.h"
#include "ops/with_number.h"

typedef struct rms_normalization {
  mix_rms_normalization_options options;
  mix_variable *scale; /* shaped as the axes; owned by the layer's list */
} rms_normalization;

static mix_status rms_normalization_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  rms_normalization *n = mix_layer_data(layer);
  mix_axes axes;
  if (count != 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: got %d inputs; expected one", layer->name, count);
  if (!mix_layer_axes(layer, n->options.axis, input_shapes[0].rank, &axes)) return mix_error();
  mix_shape shape = mix_shape_of_axes(input_shapes[0], axes, false);
  for (int i = 0; i < shape.rank; i++)
    if (shape.dims[i] == MIX_UNKNOWN)
      return mix_fail_status(MIX_VALUE_ERROR,
                             "%s: the input has shape %s; expected known dimensions along the axes",
                             layer->name, MIX_SHAPE_TEXT(input_shapes[0]));
  n->scale = mix_layer_add_weight(layer, "scale", .shape = shape, .initializer = "ones");
  return mix_error();
}

static mix_list *rms_normalization_call(mix_layer *layer, const mix_call_args *args) {
  const rms_normalization *n = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  mix_shape shape = mix_tensor_shape(x);
  mix_dtype given = mix_tensor_dtype(x), wide = mix_widened(given);
  mix_axes axes;
  if (!mix_layer_axes(layer, n->options.axis, shape.rank, &axes)) return NULL;
  x = mix_cast(x, wide);
  mix_tensor *square = mix_reduce_mean(mix_square(x), axes, true);
  mix_tensor *y = mix_multiply(x, mix_rsqrt(mix_plus(square, n->options.epsilon)));
  return mix_one_result(mix_cast(
      mix_multiply(y, mix_affine_value(n->scale, wide, mix_shape_of_axes(shape, axes, true))), given));
}

static mix_status rms_normalization_config(mix_layer *layer, mix_config *config) {
  const rms_normalization *n = layer->data;
  return mix_config_axes(layer, config, n->options.axis);
}

static bool rms_normalization_decodes(const mix_layer *layer, const mix_call_args *args) {
  return mix_decodes_along(layer, args, ((const mix_rms_normalization_options *)layer->data)->axis);
}

static const mix_field_row fields[] = {{MIX_FIELD(mix_rms_normalization_options, axis), &mix_field_axes},
                                       {MIX_FIELD(mix_rms_normalization_options, epsilon), &mix_field_number,
                                        .number = 1e-6, .range = MIX_NOT_NEGATIVE},
                                       {0}};
/* It drops masks, as in Keras. */
MIX_LAYER_KIND(rms_normalization, mix_rms_normalization_options, .fields = fields, .keras3_only = true,
               .decodes = rms_normalization_decodes,
               MIX_LAYER_CLASS(.name = "RMSNormalization", .instance_size = sizeof(rms_normalization),
                               .build = rms_normalization_build, .call = rms_normalization_call,
                               .get_config = rms_normalization_config, .output_shape = mix_layer_same_shape))
