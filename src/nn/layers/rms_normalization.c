/* RMSNormalization (Zhang, Sennrich: Root mean square layer normalization; arXiv:1910.07467). It computes in
 * float32 and reads the scale in the policy's compute dtype. */
#include "base/error.h"
#include "nn/layers/moments.h"

typedef struct rms_normalization {
  mix_axes axis; /* as given; empty means the last */
  double epsilon;
  mix_variable *scale; /* shaped as the axes; owned by the layer's list */
} rms_normalization;

static mix_status rms_normalization_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  char text[160];
  rms_normalization *n = mix_layer_data(layer);
  mix_axes axes;
  if (count != 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: got %d inputs; expected one", layer->name, count);
  if (!mix_layer_axes(layer, n->axis, input_shapes[0].rank, &axes)) return mix_error();
  mix_shape shape = mix_shape_of_axes(input_shapes[0], axes, false);
  for (int i = 0; i < shape.rank; i++)
    if (shape.dims[i] == MIX_UNKNOWN)
      return mix_fail_status(MIX_VALUE_ERROR,
                             "%s: the input has shape %s; expected known dimensions along the axes",
                             layer->name, mix_shape_text(input_shapes[0], text, sizeof text));
  n->scale = mix_layer_add_weight(layer, "scale", .shape = shape, .initializer = "ones");
  return mix_error();
}

static mix_list *rms_normalization_call(mix_layer *layer, const mix_call_args *args) {
  const rms_normalization *n = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  mix_shape shape = mix_tensor_shape(x);
  mix_dtype given = mix_tensor_dtype(x), wide = mix_widened(given);
  mix_axes axes;
  if (!mix_layer_axes(layer, n->axis, shape.rank, &axes)) return NULL;
  x = mix_cast(x, wide);
  mix_tensor *square = mix_reduce_mean(mix_square(x), axes, true);
  mix_tensor *y = mix_multiply(x, mix_rsqrt(mix_add(square, mix_scalar_like(square, n->epsilon))));
  return mix_one_result(mix_cast(
      mix_multiply(y, mix_affine_value(n->scale, wide, mix_shape_of_axes(shape, axes, true))), given));
}

static mix_status rms_normalization_config(mix_layer *layer, mix_config *config) {
  const rms_normalization *n = mix_layer_data(layer);
  mix_json_set(config->object, "axis", mix_axes_to_json(n->axis));
  return mix_config_number(config, "epsilon", n->epsilon);
}

/* It drops masks, as in Keras. */
static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "RMSNormalization",
                                      .instance_size = sizeof(rms_normalization),
                                      .build = rms_normalization_build,
                                      .call = rms_normalization_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = rms_normalization_config};

mix_rms_normalization_options mix_rms_normalization_defaults(void) {
  return (mix_rms_normalization_options){.size = sizeof(mix_rms_normalization_options)};
}

mix_layer *mix_rms_normalization_with(const mix_rms_normalization_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_rms_normalization_options, o, options, "rms_normalization");
  if (!mix_axes_option(o.axis, "rms_normalization", "axis")) return NULL;
  double epsilon = mix_option_number(o.epsilon, 1e-6);
  if (!(epsilon >= 0))
    return mix_fail(MIX_VALUE_ERROR,
                    "rms_normalization: epsilon is %g; expected a number that is not negative", epsilon);
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "rms_normalization");
  if (layer) *(rms_normalization *)layer->data = (rms_normalization){.axis = o.axis, .epsilon = epsilon};
  return mix_scoped(layer);
}

mix_layer *mix_rms_normalization_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_rms_normalization(MIX_COMMON_CONFIG(c), .axis = mix_json_axes(json_object_get(config, "axis")),
                               .epsilon = mix_json_option_number(config, "epsilon", 1e-6));
}
