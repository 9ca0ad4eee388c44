/* LayerNormalization (Ba, Kiros, Hinton; arXiv:1607.06450). Dtypes: docs/spec/mixed_precision.md, 5.1, 5.2.
 */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/moments.h"

typedef struct layer_normalization {
  mix_layer_normalization_options options;
  mix_variable *gamma, *beta; /* owned by the layer's list */
} layer_normalization;

static mix_status layer_normalization_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  layer_normalization *n = mix_layer_data(layer);
  mix_shape in = input_shapes[0];
  mix_axes axes;
  if (count != 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: got %d inputs; expected one", layer->name, count);
  if (!mix_layer_axes(layer, n->options.axis, in.rank, &axes)) return mix_error();
  mix_shape shape = mix_shape_of_axes(in, axes, false);
  for (int i = 0; i < n->options.axis.count; i++)
    shape.dims[i] =
        in.dims[mix_axis_normal(n->options.axis.axis[i], in.rank)]; /* in the order of the option */
  for (int i = 0; i < shape.rank; i++)
    if (shape.dims[i] == MIX_UNKNOWN)
      return mix_fail_status(MIX_VALUE_ERROR,
                             "%s: the input has shape %s; expected known dimensions along the axes",
                             layer->name, MIX_SHAPE_TEXT(in));
  return mix_affine_build(layer, MIX_AFFINE_OF(n), shape, NULL, true);
}

/* tf_keras uses the fused kernel for trailing axes. The kernel computes in float32 and needs an epsilon of
 * at least 1.001e-5. */
static bool is_fused(const mix_layer *layer, const layer_normalization *n, mix_axes axes, int rank) {
  bool trailing = axes.axis[0] == rank - axes.count;
  return layer->semantics->layer_norm_fused && trailing && n->options.epsilon >= 1.001e-5 &&
         layer->variable == MIX_FLOAT32;
}

static mix_list *layer_normalization_call(mix_layer *layer, const mix_call_args *args) {
  const layer_normalization *n = mix_layer_data(layer);
  const mix_semantics *semantics = layer->semantics;
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0)), *mean, *variance;
  mix_shape shape = mix_tensor_shape(x);
  mix_axes axes;
  if (!mix_layer_axes(layer, n->options.axis, shape.rank, &axes)) return NULL;
  mix_shape along = mix_shape_of_axes(shape, axes, true);
  mix_dtype given = mix_tensor_dtype(x), inner = mix_widened(given), affine = inner, result = given;
  bool fused = is_fused(layer, n, axes, shape.rank);
  if (fused)
    affine = given;
  else if (semantics->layer_norm_fused && layer->variable != MIX_FLOAT32)
    inner = affine = given;
  if (!semantics->layer_norm_input_cast && mix_dtype_is_floating(layer->compute)) result = layer->compute;
  x = mix_cast(x, inner);
  if (!mix_moments(x, axes, semantics->norm_output_clipped, &mean, &variance)) return NULL;
  mix_tensor *gamma = mix_affine_value(n->gamma, affine, along),
             *beta = mix_affine_value(n->beta, affine, along);
  mix_tensor *y = mix_cast(
      mix_normalized(x, mean, variance, n->options.epsilon, fused ? NULL : gamma, fused ? NULL : beta),
      given);
  if (!fused) return mix_one_result(mix_cast(y, result)); /* keras3 rounds to the input's dtype first */
  if (gamma) y = mix_multiply(y, gamma);
  return mix_one_result(beta ? mix_add(y, beta) : y);
}

static void sort(mix_axes *axes) {
  for (int i = 1; i < axes->count; i++)
    for (int j = i; j > 0 && axes->axis[j - 1] > axes->axis[j]; j--) {
      int former = axes->axis[j];
      axes->axis[j] = axes->axis[j - 1];
      axes->axis[j - 1] = former;
    }
}

static bool layer_normalization_ready(mix_layer *layer) {
  layer->autocast &= layer->semantics->layer_norm_input_cast;
  if (layer->semantics->layer_norm_axes_sorted) sort(&((layer_normalization *)layer->data)->options.axis);
  return true;
}

static mix_status layer_normalization_config(mix_layer *layer, mix_config *config) {
  const layer_normalization *n = layer->data;
  return mix_config_axes(layer, config, n->options.axis);
}

static bool layer_normalization_decodes(const mix_layer *layer, const mix_call_args *args) {
  return mix_decodes_along(layer, args, ((const mix_layer_normalization_options *)layer->data)->axis);
}

#define FIELD(member) MIX_FIELD(mix_layer_normalization_options, member)
static const mix_field_row fields[] = {
    {FIELD(axis), &mix_field_axes},
    {FIELD(epsilon), &mix_field_number, .number = 1e-3, .range = MIX_NOT_NEGATIVE},
    {"rms_scaling", 0, &mix_field_fixed, .text = "false", .only = MIX_RULE(config_newer_options)},
    MIX_AFFINE_FIELDS(mix_layer_normalization_options),
    {0}};
MIX_LAYER_KIND(layer_normalization, mix_layer_normalization_options, .fields = fields,
               .ready = layer_normalization_ready, .decodes = layer_normalization_decodes,
               MIX_LAYER_CLASS(.name = "LayerNormalization", .instance_size = sizeof(layer_normalization),
                               .build = layer_normalization_build, .call = layer_normalization_call,
                               .get_config = layer_normalization_config, .output_shape = mix_layer_same_shape,
                               .supports_masking = true))
