/* What a layer takes: rank, axes and dtype of its inputs. */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/layer/layer.h"
#include "tensor/shape.h"

mix_status mix_layer_set_input_spec(mix_layer *layer, const mix_input_spec *spec) {
  if (!mix_given(layer, &mix_layer_object_class, "layer_set_input_spec", "a layer")) return mix_error();
  mix_input_spec copy;
  if (!mix_options_copy(&copy, sizeof copy, spec, "layer_set_input_spec")) return mix_error();
  if (copy.dtype && mix_dtype_from_name(copy.dtype) == MIX_DTYPE_NONE)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: input_spec: there is no dtype '%.60s'", layer->name,
                           copy.dtype);
  if (copy.axis_count < 0 || copy.axis_count > MIX_MAX_RANK)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: input_spec: axis_count is %d; expected 0 to %d", layer->name,
                           copy.axis_count, MIX_MAX_RANK);
  copy.dtype = mix_intern(copy.dtype);
  layer->spec = copy;
  return mix_error();
}

mix_status mix_layer_require_size(mix_layer *layer, int rank, int axis, int64_t size) {
  mix_input_spec spec = {
      .size = sizeof spec, .rank = rank, .axis_count = 1, .axes = {axis}, .axis_sizes = {size}};
  return mix_layer_set_input_spec(layer, &spec);
}

static bool spec_axes(const mix_layer *layer, int index, mix_shape shape) {
  for (int i = 0; i < layer->spec.axis_count; i++) {
    int axis = mix_axis_normal(layer->spec.axes[i], shape.rank);
    if (axis >= 0 && (shape.dims[axis] == layer->spec.axis_sizes[i] || shape.dims[axis] == MIX_UNKNOWN))
      continue;
    return mix_fail_value("%s: input %d has shape %s; expected axis %d to have size %lld", layer->name, index,
                          MIX_SHAPE_TEXT(shape), layer->spec.axes[i], (long long)layer->spec.axis_sizes[i]);
  }
  return true;
}

bool mix_layer_spec_holds(const mix_layer *layer, mix_list *inputs) {
  const mix_input_spec *spec = &layer->spec;
  for (int i = 0; i < mix_list_count(inputs); i++) {
    const mix_value *value = mix_tensor_value(mix_list_items(inputs)[i]);
    mix_shape shape = value->shape;
    if (spec->dtype && value->dtype != mix_dtype_from_name(spec->dtype))
      return mix_fail_value("%s: input %d has dtype %s; expected %s", layer->name, i,
                            mix_dtype_name(value->dtype), spec->dtype);
    bool rank = (!spec->rank || shape.rank == spec->rank) &&
                (!spec->min_rank || shape.rank >= spec->min_rank) &&
                (!spec->max_rank || shape.rank <= spec->max_rank);
    if (!rank)
      return mix_fail_value("%s: input %d has shape %s of rank %d; expected %s %d", layer->name, i,
                            MIX_SHAPE_TEXT(shape), shape.rank,
                            spec->rank                                      ? "rank"
                            : spec->min_rank && shape.rank < spec->min_rank ? "at least rank"
                                                                            : "at most rank",
                            spec->rank                                      ? spec->rank
                            : spec->min_rank && shape.rank < spec->min_rank ? spec->min_rank
                                                                            : spec->max_rank);
    if (!spec_axes(layer, i, shape)) return false;
  }
  return true;
}
