/* The Softmax layer: over one or more axes, with an optional mask (docs/spec/mixed_precision.md, 5.1
 * and 5.2). */
#include "nn/layer/decoding.h"
#include "nn/formulas.h"
#include "nn/layers/builtin.h"

static mix_tensor *normalised(const mix_layer *layer, mix_tensor *x) {
  mix_axes axes;
  if (!x || !mix_layer_axes(layer, ((const mix_softmax_layer_options *)mix_layer_data(layer))->axis,
                            mix_tensor_shape(x).rank, &axes))
    return NULL;
  if (axes.count > 1) return mix_exp(mix_subtract(x, mix_log_sum_exp(x, axes, true)));
  return mix_activate("softmax", x, .axis = mix_axis_option(axes.axis[0]), .semantics = layer->semantics);
}

static mix_list *softmax_call(mix_layer *layer, const mix_call_args *args) {
  const mix_semantics *semantics = layer->semantics;
  mix_tensor *x = mix_call_input(args, 0), *mask = mix_call_mask(args);
  if (!mask) return mix_one_result(normalised(layer, x));
  mix_dtype dtype = mix_tensor_dtype(x);
  double lowest = dtype == MIX_FLOAT16 ? semantics->softmax_mask_float16 : -1e9;
  const bool robust = ((const mix_softmax_layer_options *)mix_layer_data(layer))->robust_masking;
  if (!semantics->softmax_mask_where && !robust) {
    mix_tensor *dropped = mix_subtract(mix_scalar_like(x, 1), mix_cast(mask, dtype));
    return mix_one_result(normalised(layer, mix_add(x, mix_multiply(dropped, mix_scalar_like(x, lowest)))));
  }
  if (!semantics->softmax_mask_where)
    mask = mix_cast(mask, MIX_BOOL);
  else if (mix_tensor_dtype(mask) != MIX_BOOL)
    mask = mix_greater(mask, mix_scalar_like(mask, 0.5));
  mix_tensor *y = normalised(layer, mix_select(mask, x, mix_scalar_like(x, lowest)));
  if (!semantics->softmax_mask_where) return mix_one_result(y);
  return mix_one_result(mix_select(mask, y, mix_scalar_like(x, 0)));
}

static bool softmax_layer_decodes(const mix_layer *layer, const mix_call_args *args) {
  return mix_decodes_along(layer, args, ((const mix_softmax_layer_options *)layer->data)->axis);
}

/* tf_keras writes robust_masking only where it is set. */
static const mix_field_row fields[] = {{MIX_FIELD(mix_softmax_layer_options, axis), &mix_field_axes},
                                       {MIX_FIELD(mix_softmax_layer_options, robust_masking),
                                        &mix_field_boolean, .optional = true, .omit_none = MIX_ALWAYS,
                                        .only = MIX_RULE(attention_shapes_saved)},
                                       {0}};
MIX_LAYER_KIND(softmax_layer, mix_softmax_layer_options, .fields = fields, .built_from_start = true,
               .call_has_mask = true, .decodes = softmax_layer_decodes,
               MIX_LAYER_CLASS(.name = "Softmax", .call = softmax_call, .output_shape = mix_layer_same_shape,
                               .supports_masking = true))
