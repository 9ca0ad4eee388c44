/* Operations that take parts of tensors: x[:, -1], keras.ops.take. */
#include "base/error.h"
#include "base/json.h"
#include "nn/layers/keras_operations/keras_operation.h"

/* ---- take ---- */

static mix_list *take_call(const mix_operands *o) {
  mix_tensor *x = mix_operand(o, "x"), *indices = x ? mix_operand(o, "indices") : NULL;
  if (!indices) return NULL;
  if (!mix_dtype_is_integer(mix_tensor_dtype(indices)))
    return mix_fail(MIX_TYPE_ERROR, "%s: indices are %s; expected integers", o->layer->name,
                    mix_dtype_name(mix_tensor_dtype(indices)));
  if (!mix_operand_json(o, "axis")) x = mix_reshape(x, MIX_SHAPE(MIX_UNKNOWN));
  const int axis = mix_failed() ? -1 : mix_operand_axis(o, "axis", mix_tensor_shape(x).rank, 0);
  if (axis < 0) return NULL;
  const int64_t size = mix_tensor_shape(x).dims[axis];
  if (mix_tensor_dtype(indices) != MIX_INT64) indices = mix_cast(indices, MIX_INT64);
  mix_tensor *from_end = mix_add(indices, mix_scalar_like(indices, size < 0 ? 0 : (double)size));
  indices = mix_select(mix_less(indices, mix_scalar_like(indices, 0)), from_end, indices);
  return mix_one_result(mix_gather(x, indices, axis));
}

/* ---- x[...] ---- */

static mix_tensor *sliced(const mix_operands *o, mix_tensor *x, int axis, const json_t *value) {
  const int64_t size = mix_tensor_shape(x).dims[axis];
  int64_t begin;
  mix_json_slice slice;
  if (!mix_json_slice_read(value, &slice))
    return mix_operand_refused(o, "key", value, "slices of integers, with a step other than 0");
  if (size == MIX_UNKNOWN) return x; /* of shapes alone; the size stays unknown */
  const int64_t count = mix_json_slice_range(&slice, size, &begin);
  return slice.step == 1 && count == size ? x : mix_layer_range(x, axis, begin, count, slice.step);
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
  json_array_foreach(keys, i, key) count += !json_is_null(key) && !mix_json_is_class(key, "__ellipsis__");
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
    } else if (mix_json_is_class(key, "__ellipsis__")) {
      if (skipped) return mix_fail(MIX_VALUE_ERROR, "%s: the key has two ellipses", o->layer->name);
      skipped = true;
      axis += rank - used;
    } else if (mix_json_is_class(key, "__slice__")) {
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
