/* Operations that take parts of tensors: x[:, -1], keras.ops.take, tf.gather. */
#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include "ops/with_number.h"
#include <stdio.h>
#include <string.h>

/* ---- take ---- */

/* Keras's indices below 0 count from the end. */
static mix_tensor *from_front(mix_tensor *indices, int64_t size) {
  indices = mix_cast(indices, MIX_INT64);
  mix_tensor *from_end = mix_plus(indices, size < 0 ? 0 : (double)size);
  return mix_select(mix_less(indices, mix_scalar_like(indices, 0)), from_end, indices);
}

static mix_tensor *take(const mix_operands *o, mix_tensor *x) {
  mix_tensor *indices = mix_operand(o, "indices");
  if (indices && !mix_dtype_is_integer(mix_tensor_dtype(indices)))
    return mix_operation_fail(o, MIX_TYPE_ERROR, "indices are %s; expected integers",
                              mix_dtype_name(mix_tensor_dtype(indices)));
  if (!mix_operand_json(o, "axis")) x = mix_reshape(x, MIX_SHAPE(MIX_UNKNOWN));
  const int axis = mix_operand_json(o, "axis") ? mix_operand_axis(o, "axis", mix_tensor_shape(x).rank) : 0;
  if (axis < 0) return NULL;
  return mix_gather(x, mix_operands_of_tf(o) ? indices : from_front(indices, mix_tensor_shape(x).dims[axis]),
                    axis);
}

/* ---- x[...] ---- */

/* An x[...] on its way. */
typedef struct indexing {
  const mix_operands *o;
  mix_tensor *x;   /* with what has another step than 1 taken out */
  mix_shape shape; /* of x at first */
  int axis;        /* the next of x */
  mix_shape begin, size;
  mix_axes dropped;
  int rank;        /* of the result */
  unsigned is_new; /* bit i: axis i of the result */
} indexing;

static bool is_ellipsis(const json_t *item) {
  const char *text = json_string_value(item);
  return (text && !strcmp(text, "Ellipsis")) || mix_json_is_class(item, "__ellipsis__");
}

/* {"start", "stop", "step"}, in Keras 3 the config of an object; NULL: it is no slice. */
static const json_t *slice_of(const json_t *item) {
  if (mix_json_is_class(item, "__slice__")) item = json_object_get(item, "config");
  return json_object_get(item, "start") || json_object_get(item, "stop") || json_object_get(item, "step")
             ? item
             : NULL;
}

static void *refused(const indexing *x) {
  return mix_operand_refused(x->o, MIX_TYPE_ERROR, x->o->second,
                             "integers, slices of integers with a step other than 0, null and one ellipsis; "
                             "take and gather have indices that are tensors");
}

/* Of shapes alone: the size stays unknown. */
static bool leave_unknown(const indexing *x, bool all) {
  if (all || !mix_operands_of_tf(x->o)) return true;
  return mix_operation_fail(x->o, MIX_UNSUPPORTED, "axis %d has an unknown size; supported on it is [:]",
                            x->axis);
}

static bool take_slice(indexing *x, const json_t *value) {
  const int axis = x->axis;
  const int64_t size = x->shape.dims[axis];
  mix_json_slice slice;
  int64_t begin;
  if (!mix_json_slice_read(value, &slice)) return refused(x);
  if (size == MIX_UNKNOWN)
    return leave_unknown(x, slice.step == 1 && !json_integer_value(slice.start) && !slice.stop);
  const int64_t count = mix_json_slice_range(&slice, size, &begin);
  if (slice.step == 1) {
    x->begin.dims[axis] = count ? begin : 0;
    x->size.dims[axis] = count;
  } else {
    x->x = mix_layer_range(x->x, axis, begin, count, slice.step);
  }
  return true;
}

static bool take_index(indexing *x, int64_t index) {
  const int64_t size = x->shape.dims[x->axis];
  x->dropped.axis[x->dropped.count++] = x->axis;
  if (size == MIX_UNKNOWN) return leave_unknown(x, false);
  if (index < -size || index >= size)
    return mix_operation_fail(x->o, MIX_VALUE_ERROR, "index %lld is outside axis %d of size %lld",
                              (long long)index, x->axis, (long long)size);
  x->begin.dims[x->axis] = index < 0 ? index + size : index;
  x->size.dims[x->axis] = 1;
  return true;
}

/* `skipped`: the axes of an ellipsis. */
static bool take_item(indexing *x, const json_t *item, int skipped) {
  const json_t *slice = slice_of(item);
  if (is_ellipsis(item)) {
    x->axis += skipped;
    x->rank += skipped;
    return true;
  }
  if (json_is_null(item)) {
    if (x->rank == MIX_MAX_RANK) return refused(x);
    x->is_new |= 1U << x->rank++;
    return true;
  }
  if (!slice && !json_is_integer(item)) return refused(x);
  if (!(slice ? take_slice(x, slice) : take_index(x, json_integer_value(item)))) return false;
  x->rank += slice != NULL;
  x->axis++;
  return true;
}

static bool take_items(indexing *x, const json_t *items) {
  int used = 0, ellipses = 0;
  char expected[80];
  size_t i;
  json_t *item;
  json_array_foreach(items, i, item) {
    used += !json_is_null(item) && !is_ellipsis(item);
    ellipses += is_ellipsis(item);
  }
  snprintf(expected, sizeof expected, "at most %d; it has %d indices and %d ellipses", x->shape.rank, used,
           ellipses);
  if (used > x->shape.rank || ellipses > 1)
    return mix_operand_refused(x->o, MIX_VALUE_ERROR, x->o->second, expected);
  json_array_foreach(items, i, item) if (!take_item(x, item, x->shape.rank - used)) return false;
  return true;
}

static mix_tensor *get_item(const mix_operands *o, mix_tensor *tensor) {
  indexing x = {.o = o, .x = tensor, .shape = mix_tensor_shape(tensor)};
  json_t *key = json_object_get(o->values, o->second);
  if (!key) return mix_operand_refused(o, MIX_TYPE_ERROR, o->second, "an index");
  x.begin.rank = x.size.rank = x.shape.rank;
  for (int i = 0; i < x.shape.rank; i++) x.size.dims[i] = MIX_UNKNOWN;
  json_t *items = json_is_array(key) ? json_incref(key) : json_pack("[O]", key);
  const bool good = items ? take_items(&x, items) : mix_fail_memory("an index") != NULL;
  json_decref(items);
  if (!good) return NULL;
  tensor = mix_slice(x.x, x.begin, x.size);
  if (x.dropped.count) tensor = mix_squeeze(tensor, x.dropped);
  for (int i = 0; i < x.rank; i++)
    if (x.is_new >> i & 1U) tensor = mix_expand_dims(tensor, i);
  return tensor;
}

/* ---- slice ---- */

static mix_tensor *slice(const mix_operands *o, mix_tensor *x) {
  const mix_shape begin = mix_operand_shape(o, "start_indices"), size = mix_operand_shape(o, "shape");
  const int rank = mix_tensor_shape(x).rank;
  if (begin.rank != rank || size.rank != rank)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "%d start_indices and a shape of %d for rank %d",
                              begin.rank, size.rank, rank);
  return mix_slice(x, begin, size);
}

/* ---- the tables ---- */

const mix_keras_operation mix_keras_index_operations[] = {
    MIX_KERAS_OPERATION("GetItem", "numpy", "x key", "", .build = get_item),
    MIX_KERAS_OPERATION("Take", "numpy", "x indices", "axis", .build = take),
    MIX_KERAS_OPERATION("Slice", "core", "inputs start_indices", "shape", .build = slice),
    {.operation = {0}}};

const mix_operation mix_tf_index_operations[] = {
    MIX_TF_OPERATION("__operators__.getitem", "tensor", "slice_spec !var", .build = get_item),
    MIX_TF_OPERATION("gather", "params", "indices validate_indices axis=0 !batch_dims=0", .build = take),
    MIX_TF_OPERATION("compat.v1.gather", "params", "indices validate_indices axis=0 !batch_dims=0",
                     .build = take),
    {0}};
