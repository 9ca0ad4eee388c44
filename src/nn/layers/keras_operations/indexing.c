/* Operations that take parts of tensors: x[:, -1], keras.ops.take. */
#include "base/error.h"
#include "nn/layers/keras_operations/keras_operation.h"
#include <string.h>

enum { MAX_STEP = 1 << 24 };

/* ---- take ---- */

static mix_list *take_call(const mix_operands *o) {
  mix_tensor *x = mix_operand(o, "x"), *indices = x ? mix_operand(o, "indices") : NULL;
  if (!indices) return NULL;
  if (!mix_dtype_is_integer(mix_tensor_dtype(indices)))
    return mix_fail(MIX_TYPE_ERROR, "%s: indices are %s; expected integers", o->layer->name,
                    mix_dtype_name(mix_tensor_dtype(indices)));
  if (!mix_operand_json(o, "axis")) {
    const int64_t all = mix_shape_size(mix_tensor_shape(x));
    x = mix_layer_reshape(x, MIX_SHAPE(all < 0 ? MIX_UNKNOWN : all));
  }
  const int axis = mix_failed() ? -1 : mix_operand_axis(o, "axis", mix_tensor_shape(x).rank, 0);
  if (axis < 0) return NULL;
  const int64_t size = mix_tensor_shape(x).dims[axis];
  if (mix_tensor_dtype(indices) != MIX_INT64) indices = mix_cast(indices, MIX_INT64);
  mix_tensor *from_end = mix_add(indices, mix_scalar_like(indices, size < 0 ? 0 : (double)size));
  indices = mix_select(mix_less(indices, mix_scalar_like(indices, 0)), from_end, indices);
  return mix_one_result(mix_gather(x, indices, axis));
}

/* ---- x[...] ---- */

static bool is_class(const json_t *value, const char *wanted) {
  const char *name = json_string_value(json_object_get(value, "class_name"));
  return name && !strcmp(name, wanted);
}

/* A bound of a slice, which Python cuts to 0 ... size, or -1 ... size - 1 for a negative step. */
static bool read_bound(const mix_operands *o, const json_t *slice, const char *key, int64_t absent,
                       int64_t size, bool backward, int64_t *bound) {
  const json_t *value = json_object_get(slice, key);
  const int64_t low = backward ? -1 : 0, high = backward ? size - 1 : size;
  *bound = absent;
  if (!value || json_is_null(value)) return true;
  if (!json_is_integer(value)) return mix_operand_refused(o, key, value, "an integer in its slice");
  *bound = json_integer_value(value);
  if (*bound < 0) *bound = *bound < -size ? low : *bound + size;
  *bound = *bound < low ? low : *bound > high ? high : *bound;
  return true;
}

static mix_tensor *sliced(const mix_operands *o, mix_tensor *x, int axis, const json_t *slice) {
  const int64_t size = mix_tensor_shape(x).dims[axis];
  const json_t *step_json = json_object_get(slice, "step");
  int64_t begin, end, step = 1;
  if (step_json && !json_is_null(step_json)) {
    if (!json_is_integer(step_json)) return mix_operand_refused(o, "step", step_json, "an integer");
    step = json_integer_value(step_json);
  }
  if (step == 0 || step > MAX_STEP || step < -MAX_STEP)
    return mix_fail(MIX_VALUE_ERROR, "%s: a slice has the step %lld", o->layer->name, (long long)step);
  const bool backward = step < 0;
  if (!read_bound(o, slice, "start", backward ? size - 1 : 0, size, backward, &begin) ||
      !read_bound(o, slice, "stop", backward ? -1 : size, size, backward, &end))
    return NULL;
  if (size == MIX_UNKNOWN) return x; /* of shapes alone; the size stays unknown */
  const int64_t distance = backward ? begin - end : end - begin, stride = backward ? -step : step;
  const int64_t count = distance <= 0 ? 0 : (distance + stride - 1) / stride;
  return step == 1 && count == size ? x : mix_layer_range(x, axis, begin, count, step);
}

/* The item of an axis, which goes. */
static mix_tensor *item(const mix_operands *o, mix_tensor *x, int axis, int64_t index) {
  const int64_t size = mix_tensor_shape(x).dims[axis];
  if (size == MIX_UNKNOWN) /* of shapes alone: any item has that of the result */
    return mix_gather(x, mix_scalar(0, MIX_INT64), axis);
  if (index < -size || index >= size)
    return mix_fail(MIX_VALUE_ERROR, "%s: index %lld is outside axis %d of size %lld", o->layer->name,
                    (long long)index, axis, (long long)size);
  return mix_squeeze(mix_layer_range(x, axis, index < 0 ? index + size : index, 1, 1), MIX_AXES(axis));
}

/* How many axes of x the items of a key take. */
static int taken(const json_t *keys) {
  int count = 0;
  size_t i;
  json_t *key;
  json_array_foreach(keys, i, key) count += !json_is_null(key) && !is_class(key, "__ellipsis__");
  return count;
}

static mix_tensor *indexed(const mix_operands *o, mix_tensor *x, const json_t *keys) {
  const int rank = mix_tensor_shape(x).rank, used = taken(keys);
  int axis = 0;
  bool skipped = false;
  size_t i;
  json_t *key;
  if (used > rank)
    return mix_fail(MIX_VALUE_ERROR, "%s: %d indices for a tensor of rank %d", o->layer->name, used, rank);
  json_array_foreach(keys, i, key) {
    if (!x || mix_failed()) return NULL;
    if (json_is_null(key)) {
      x = mix_expand_dims(x, axis++);
    } else if (is_class(key, "__ellipsis__")) {
      if (skipped) return mix_fail(MIX_VALUE_ERROR, "%s: the key has two ellipses", o->layer->name);
      skipped = true;
      axis += rank - used;
    } else if (is_class(key, "__slice__")) {
      x = sliced(o, x, axis++, json_object_get(key, "config"));
    } else if (json_is_integer(key)) {
      x = item(o, x, axis, json_integer_value(key));
    } else {
      return mix_operand_refused(o, "key", key, "integers, slices, ... and None; take gathers by a tensor");
    }
  }
  return x;
}

static mix_list *get_item_call(const mix_operands *o) {
  mix_tensor *x = mix_operand(o, "x");
  const json_t *args = json_object_get(o->form, "args"), *key = json_array_get(args, 1);
  if (!key) key = json_object_get(json_object_get(o->form, "kwargs"), "key");
  if (!x) return NULL;
  if (!key) return mix_operand_refused(o, "key", NULL, "an index");
  json_t *keys = json_is_array(key) ? json_incref((json_t *)key) : json_pack("[O]", key);
  mix_tensor *y = keys ? indexed(o, x, keys) : mix_fail_memory("an index");
  json_decref(keys);
  return y ? mix_one_result(y) : NULL;
}

/* ---- slice ---- */

static mix_list *slice_call(const mix_operands *o) {
  mix_shape begin = {.rank = 0}, size = {.rank = 0};
  mix_tensor *x = mix_operand(o, "inputs");
  if (!x || !mix_operand_integers(o, "start_indices", MIX_MAX_RANK, begin.dims, &begin.rank) ||
      !mix_operand_integers(o, "shape", MIX_MAX_RANK, size.dims, &size.rank))
    return NULL;
  const int rank = mix_tensor_shape(x).rank;
  if (begin.rank != rank || size.rank != rank)
    return mix_fail(MIX_VALUE_ERROR, "%s: %d start_indices and a shape of %d for rank %d", o->layer->name,
                    begin.rank, size.rank, rank);
  return mix_one_result(mix_slice(x, begin, size));
}

/* ---- the table ---- */

const mix_keras_operation mix_keras_index_operations[] = {
    MIX_KERAS_OPERATION("GetItem", "numpy", "x|key", "", .call = get_item_call),
    MIX_KERAS_OPERATION("Take", "numpy", "x|indices", "axis", .call = take_call),
    MIX_KERAS_OPERATION("Slice", "core", "inputs|start_indices", "shape", .call = slice_call),
    {.operands = NULL}};
