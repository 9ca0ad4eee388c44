/* GlobalMaxPooling1D, 2D, 3D and GlobalAveragePooling1D, 2D, 3D. */
#include "nn/layers/spatial/spatial.h"
#include <mixtape/pooling.h>

/* The spatial axes of the input. */
static mix_axes axes_of(const mix_global_pooling_options *o, int rank) {
  mix_axes axes = {.count = rank - 2};
  for (int d = 0; d < axes.count; d++) axes.axis[d] = mix_spatial_begin(o->data_format) + d;
  return axes;
}

static mix_shape global_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_global_pooling_options *o = mix_layer_data(layer);
  mix_shape in = input_shapes[0], out = {.rank = 0};
  const int begin = mix_spatial_begin(o->data_format);
  for (int d = 0; d < in.rank; d++) {
    const bool spatial = d >= begin && d < begin + in.rank - 2;
    if (!spatial || o->keepdims) out.dims[out.rank++] = spatial ? 1 : in.dims[d];
  }
  return out;
}

static mix_list *max_call(mix_layer *layer, const mix_call_args *args) {
  const mix_global_pooling_options *o = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  return mix_one_result(mix_reduce_max(x, axes_of(o, mix_tensor_shape(x).rank), o->keepdims));
}

/* The mean of the steps that the mask keeps. */
static mix_tensor *masked_mean(const mix_layer *layer, mix_tensor *x, mix_tensor *mask, mix_axes steps) {
  const mix_global_pooling_options *o = mix_layer_data(layer);
  mask = mix_expand_dims(mask, mix_is_channels_first(o->data_format) ? 1 : 2);
  mix_tensor *kept = mix_cast(mask, mix_tensor_dtype(x));
  x = layer->semantics->pooling_masks_by_select
          ? mix_select(mix_cast(mask, MIX_BOOL), x, mix_scalar_like(x, 0))
          : mix_multiply(x, kept);
  return mix_divide(mix_reduce_sum(x, steps, o->keepdims), mix_reduce_sum(kept, steps, o->keepdims));
}

static mix_list *average_call(mix_layer *layer, const mix_call_args *args) {
  const mix_global_pooling_options *o = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0)), *mask = mix_call_mask(args);
  if (!x) return NULL;
  const mix_axes axes = axes_of(o, mix_tensor_shape(x).rank);
  if (mask && axes.count == 1) return mix_one_result(masked_mean(layer, x, mask, axes));
  return mix_one_result(mix_reduce_mean(x, axes, o->keepdims));
}

static bool ready_1d(mix_layer *layer) { return mix_layer_spatial(layer, 1); }
static bool ready_2d(mix_layer *layer) { return mix_layer_spatial(layer, 2); }
static bool ready_3d(mix_layer *layer) { return mix_layer_spatial(layer, 3); }

static const mix_field_row fields[] = {MIX_DATA_FORMAT_FIELD(mix_global_pooling_options),
                                       {MIX_FIELD(mix_global_pooling_options, keepdims), &mix_field_boolean},
                                       {0}};
#define GLOBAL_POOLING(kind_name, class_name, axes, function, masks)                                         \
  MIX_LAYER_KIND_ONLY(kind_name##axes##d, mix_global_pooling_options, .fields = fields,                      \
                      .ready = ready_##axes##d, .built_from_start = true, .call_has_mask = masks,            \
                      MIX_LAYER_CLASS(.name = class_name #axes "D", .call = function,                        \
                                      .output_shape = global_output_shape, .compute_mask = mix_no_mask))
GLOBAL_POOLING(global_max_pooling, "GlobalMaxPooling", 1, max_call, false)
GLOBAL_POOLING(global_max_pooling, "GlobalMaxPooling", 2, max_call, false)
GLOBAL_POOLING(global_max_pooling, "GlobalMaxPooling", 3, max_call, false)
GLOBAL_POOLING(global_average_pooling, "GlobalAveragePooling", 1, average_call, true)
GLOBAL_POOLING(global_average_pooling, "GlobalAveragePooling", 2, average_call, false)
GLOBAL_POOLING(global_average_pooling, "GlobalAveragePooling", 3, average_call, false)

mix_global_pooling_options mix_global_pooling_defaults(void) {
  return (mix_global_pooling_options){.size = sizeof(mix_global_pooling_options)};
}
