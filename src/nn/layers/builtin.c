/* Helpers that the layers share. */
#include "nn/layers/builtin.h"
#include "base/error.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include <string.h>

/* ---- configs ---- */

/* A mixed policy stays: the name of one dtype would lose it. */
bool mix_config_without_trainable(mix_layer *layer, mix_config *config) {
  if (!layer->semantics->config_without_trainable) return true;
  json_object_del(config->object, "trainable");
  if (layer->compute != layer->variable) return true;
  return mix_json_set(config->object, "dtype", json_string(mix_dtype_name(layer->variable)));
}

static mix_status set_axes(mix_config *config, mix_axes axes, int rank) {
  json_t *list = json_array();
  for (int i = 0; i < axes.count; i++)
    mix_json_append(list, json_integer(axes.axis[i] < 0 ? axes.axis[i] + rank : axes.axis[i]));
  return mix_json_set(config->object, "axis", list) ? MIX_OK : mix_error();
}

mix_status mix_config_resolved_axes(mix_layer *layer, mix_config *config, mix_axes axes) {
  if (!layer->build_count || !layer->semantics->config_axes_resolved) return MIX_OK;
  return set_axes(config, axes, layer->build_shapes[0].rank);
}

mix_status mix_config_axes(mix_layer *layer, mix_config *config, mix_axes axes) {
  if (!axes.count) axes = MIX_AXES(-1);
  if (layer->semantics->config_axes_listed) return set_axes(config, axes, 0);
  return mix_config_resolved_axes(layer, config, axes);
}

/* ---- shapes ---- */

mix_shape mix_layer_same_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  return input_shapes[0];
}

bool mix_layer_axes(const mix_layer *layer, mix_axes given, int rank, mix_axes *axes) {
  bool chosen[MIX_MAX_RANK] = {false};
  if (given.count <= 0) given = MIX_AXES(-1);
  *axes = (mix_axes){.count = 0};
  for (int i = 0; i < given.count && i < MIX_MAX_RANK; i++) {
    int axis = mix_axis_normal(given.axis[i], rank);
    if (axis < 0 || chosen[axis])
      return mix_fail_value("%s: axis %d is %s; the input has rank %d", layer->name, given.axis[i],
                            axis < 0 ? "outside" : "given twice", rank);
    chosen[axis] = true;
  }
  for (int axis = 0; axis < rank; axis++)
    if (chosen[axis]) axes->axis[axes->count++] = axis;
  return true;
}

mix_axes mix_other_axes(mix_axes axes, int rank) {
  mix_axes others = {.count = 0};
  for (int axis = 0, next = 0; axis < rank; axis++)
    if (next < axes.count && axes.axis[next] == axis)
      next++;
    else
      others.axis[others.count++] = axis;
  return others;
}

mix_shape mix_shape_of_axes(mix_shape shape, mix_axes axes, bool in_place) {
  mix_shape result = {.rank = in_place ? shape.rank : axes.count};
  for (int i = 0; i < result.rank; i++) result.dims[i] = 1;
  for (int i = 0; i < axes.count; i++) result.dims[in_place ? axes.axis[i] : i] = shape.dims[axes.axis[i]];
  return result;
}

mix_tensor *mix_layer_reshape(mix_tensor *x, mix_shape shape) {
  int unknown = 0;
  for (int i = 0; i < shape.rank; i++) unknown += shape.dims[i] == MIX_UNKNOWN;
  if (unknown < 2 || !x || !mix_tensor_is_symbolic(x)) return mix_reshape(x, shape);
  return mix_apply(&mix_op_reshape, &(mix_shape_attributes){.shape = shape}, 1, &x);
}

mix_tensor *mix_layer_floating(const mix_layer *layer, mix_tensor *x) {
  if (!x || mix_dtype_is_floating(mix_tensor_dtype(x))) return x;
  return mix_cast(x, mix_dtype_is_floating(layer->compute) ? layer->compute : mix_floatx());
}

mix_tensor *mix_no_mask(mix_layer *layer, const mix_call_args *args) { return NULL; }

mix_tensor *mix_call_mask(const mix_call_args *args) {
  return args->masks ? mix_list_get(args->masks, 0) : NULL;
}

/* ---- noise ---- */

bool mix_noise_shape(const mix_layer *layer, mix_shape given, mix_shape shape, mix_shape *noise_shape) {
  *noise_shape = shape;
  if (given.rank && given.rank != shape.rank)
    return mix_fail_value("%s: noise_shape has rank %d, the input rank %d", layer->name, given.rank,
                          shape.rank);
  for (int i = 0; i < given.rank; i++)
    if (given.dims[i] != MIX_UNKNOWN) noise_shape->dims[i] = given.dims[i];
  return true;
}

mix_tensor *mix_dropped(mix_tensor *x, double rate, mix_shape noise_shape, mix_generator *generator) {
  if (rate == 0) return x;
  if (rate == 1) return mix_zeros_like(x);
  mix_tensor *uniform = mix_random_uniform(generator, noise_shape, mix_tensor_dtype(x));
  mix_tensor *keep = mix_greater_equal(uniform, mix_scalar_like(x, rate));
  return mix_select(keep, mix_times(x, 1 / (1 - rate)), mix_scalar_like(x, 0));
}

mix_tensor *mix_layer_range(mix_tensor *x, int axis, int64_t begin, int64_t count, int64_t step) {
  if (step == 1 || count == 0) {
    mix_shape from = {.rank = mix_tensor_shape(x).rank}, size = from;
    for (int i = 0; i < size.rank; i++) size.dims[i] = MIX_UNKNOWN;
    from.dims[axis] = count ? begin : 0;
    size.dims[axis] = count;
    return mix_slice(x, from, size);
  }
  mix_tensor *places =
      mix_range((double)begin, (double)begin + (double)count * (double)step, (double)step, MIX_INT64);
  return mix_gather(x, places, axis);
}

mix_list *mix_layer_unstack(mix_tensor *x, int axis, int64_t count) {
  mix_list *items = mix_list_new(0, NULL);
  for (int64_t i = 0; i < count && !mix_failed(); i++)
    mix_list_append(items, mix_squeeze(mix_layer_range(x, axis, i, 1, 1), MIX_AXES(axis)));
  return mix_failed() ? NULL : items;
}

mix_tensor *mix_layer_concat(const mix_list *list, int axis) {
  return mix_concat(mix_list_count(list), (mix_tensor *const *)mix_list_items(list), axis);
}

mix_tensor *mix_layer_stack(const mix_list *list, int axis) {
  mix_list *wide = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(list) && !mix_failed(); i++)
    mix_list_append(wide, mix_expand_dims(mix_list_get(list, i), axis));
  return mix_failed() ? NULL : mix_layer_concat(wide, axis);
}

/* ---- categories ---- */

mix_category_mode mix_category_mode_named(const char *name) {
  static const char *const modes[] = {"int", "one_hot", "multi_hot", "count"};
  int mode = MIX_CATEGORY_INT;
  while (mode < MIX_CATEGORY_COUNT && strcmp(modes[mode], name)) mode++;
  return (mix_category_mode)mode;
}

mix_tensor *mix_encode_categories(mix_tensor *ids, mix_category_mode mode, int64_t depth, mix_tensor *weights,
                                  mix_dtype dtype) {
  if (!ids) return NULL;
  mix_shape shape = mix_tensor_shape(ids);
  if (mode == MIX_CATEGORY_ONE_HOT) {
    bool single = shape.rank > 1 && shape.dims[shape.rank - 1] == 1;
    return mix_one_hot(single ? mix_squeeze(ids, MIX_AXES(-1)) : ids, depth, dtype);
  }
  if (shape.rank == 0)
    return mix_fail_value("category encoding: the input is a scalar; expected ids (..., n)");
  mix_tensor *hot = mix_one_hot(ids, depth, dtype); /* (..., n, depth) */
  if (mode == MIX_CATEGORY_MULTI_HOT) return mix_reduce_max(hot, MIX_AXES(-2), false);
  if (weights) hot = mix_multiply(hot, mix_expand_dims(mix_cast(weights, dtype), -1));
  return mix_reduce_sum(hot, MIX_AXES(-2), false);
}

mix_tensor *mix_matmul_rows(mix_tensor *x, mix_tensor *matrix) {
  if (!x || !matrix) return NULL;
  mix_shape shape = mix_tensor_shape(x);
  int unknown = 0;
  for (int i = 0; i + 1 < shape.rank; i++) unknown += shape.dims[i] == MIX_UNKNOWN;
  int64_t in = shape.dims[shape.rank - 1];
  if (shape.rank == 2 || unknown > 1 || !in) return mix_matmul(x, matrix, false, false);
  mix_tensor *rows = mix_reshape(x, MIX_SHAPE(-1, in));
  shape.dims[shape.rank - 1] = mix_tensor_shape(matrix).dims[1];
  return mix_reshape(mix_matmul(rows, matrix, false, false), shape);
}
