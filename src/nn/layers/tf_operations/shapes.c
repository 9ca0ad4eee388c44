/* TensorFlow's functions that move elements. */
#include "nn/layers/tf_operations/operation.h"

#include "base/error.h"
#include "base/json.h"
#include "tensor/shape.h"
#include <string.h>

enum { MAX_PARTS = 1024 }; /* of a split, a tile and the like: each is a node of the graph */

static mix_tensor *first_tensor(const mix_tf_operation_call *call) {
  return mix_tf_operation_tensor(call, call->names[0], NULL);
}
static int rank_of(const mix_tensor *x) { return mix_tensor_shape(x).rank; }

static mix_list *parts_refused(const mix_tf_operation_call *call, const char *name) {
  return mix_tf_operation_refused(call, name, "at most 1024 parts");
}

/* ---- shapes ---- */

mix_list *mix_tf_operation_reshape(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_shape shape;
  if (!x || !mix_tf_operation_integers(call, "shape", &shape)) return NULL;
  return mix_one_result(mix_reshape(x, shape));
}

mix_list *mix_tf_operation_broadcast_to(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_shape shape;
  if (!x || !mix_tf_operation_integers(call, "shape", &shape)) return NULL;
  return mix_one_result(mix_broadcast_to(x, shape));
}

mix_list *mix_tf_operation_transpose(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_axes permutation;
  return x && mix_tf_operation_axes(call, "perm", &permutation)
             ? mix_one_result(mix_transpose(x, permutation))
             : NULL;
}

mix_list *mix_tf_operation_expand_dims(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  int axis;
  if (!x || !mix_tf_operation_axis(call, "axis", rank_of(x) + 1, &axis)) return NULL;
  return mix_one_result(mix_expand_dims(x, axis));
}

mix_list *mix_tf_operation_squeeze(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_axes axes;
  return x && mix_tf_operation_axes(call, "axis", &axes) ? mix_one_result(mix_squeeze(x, axes)) : NULL;
}

/* ---- parts ---- */

mix_list *mix_tf_operation_concat(const mix_tf_operation_call *call) {
  mix_list *list = mix_tf_operation_tensors(call, "values");
  int axis;
  if (!list || !mix_tf_operation_axis(call, "axis", rank_of(mix_list_get(list, 0)), &axis)) return NULL;
  return mix_one_result(mix_layer_concat(list, axis));
}

mix_list *mix_tf_operation_stack(const mix_tf_operation_call *call) {
  mix_list *list = mix_tf_operation_tensors(call, "values");
  int axis;
  if (!list || !mix_tf_operation_axis(call, "axis", rank_of(mix_list_get(list, 0)) + 1, &axis)) return NULL;
  return mix_one_result(mix_layer_stack(list, axis));
}

/* The axis and its size, which must be known. */
static bool known_axis(const mix_tf_operation_call *call, const mix_tensor *x, int *axis, int64_t *size) {
  if (!x || !mix_tf_operation_axis(call, "axis", rank_of(x), axis)) return false;
  *size = mix_tensor_shape(x).dims[*axis];
  return *size != MIX_UNKNOWN || mix_tf_operation_refused(call, "axis", "one whose size is known");
}

/* A -1 among the sizes is what is left. */
static bool complete_sizes(const mix_tf_operation_call *call, int64_t total, int count, int64_t *sizes) {
  int64_t sum = 0;
  int open = -1;
  for (int i = 0; i < count; i++)
    if (sizes[i] == -1 && open < 0)
      open = i;
    else if (sizes[i] >= 0)
      sum += sizes[i];
    else
      sum = total + 1;
  if (open >= 0) sizes[open] = total - sum;
  if (sum == total || (open >= 0 && sum < total)) return true;
  mix_fail(MIX_VALUE_ERROR, "tf.split in layer '%s': its sizes do not fill an axis of %lld",
           call->layer->name, (long long)total);
  return false;
}

/* The number of parts, with their sizes; 0 with the error recorded. */
static int part_sizes(const mix_tf_operation_call *call, int64_t total, int64_t *sizes) {
  const json_t *value = mix_tf_operation_value(call, "num_or_size_splits");
  const bool listed = json_is_array(value);
  const int64_t count = listed ? (int64_t)json_array_size(value) : json_integer_value(value);
  if (!listed && !json_is_integer(value))
    return mix_tf_operation_mistyped(call, "num_or_size_splits", "an integer or a list of them"), 0;
  if (count < 1 || count > MAX_PARTS) return parts_refused(call, "num_or_size_splits"), 0;
  for (int i = 0; i < count; i++) {
    sizes[i] = total / count;
    if (listed && !mix_json_integer_within(json_array_get(value, (size_t)i), -1, total, &sizes[i]))
      return mix_tf_operation_mistyped(call, "num_or_size_splits", "sizes of parts"), 0;
  }
  return complete_sizes(call, total, (int)count, sizes) ? (int)count : 0;
}

mix_list *mix_tf_operation_split(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  int axis;
  int64_t total, sizes[MAX_PARTS], start = 0;
  if (!known_axis(call, x, &axis, &total)) return NULL;
  const int count = part_sizes(call, total, sizes);
  mix_list *parts = count ? mix_list_new(0, NULL) : NULL;
  for (int i = 0; i < count && !mix_failed(); start += sizes[i++])
    mix_list_append(parts, mix_layer_range(x, axis, start, sizes[i], 1));
  return parts;
}

mix_list *mix_tf_operation_unstack(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  int axis;
  int64_t count;
  if (!known_axis(call, x, &axis, &count)) return NULL;
  const json_t *given = mix_tf_operation_value(call, "num");
  if (given && !mix_json_integer_within(given, count, count, NULL))
    return mix_tf_operation_mistyped(call, "num", "the size of the axis");
  if (count < 1 || count > MAX_PARTS) return parts_refused(call, "axis");
  return mix_layer_unstack(x, axis, count);
}

/* ---- elements by their places ---- */

static mix_tensor *copies(mix_tensor *x, int axis, int64_t count) {
  mix_list *list = mix_list_new(0, NULL);
  for (int64_t i = 0; i < count && !mix_failed(); i++) mix_list_append(list, x);
  return mix_failed() ? NULL : mix_layer_concat(list, axis);
}

mix_list *mix_tf_operation_tile(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_shape multiples;
  if (!x || !mix_tf_operation_integers(call, "multiples", &multiples)) return NULL;
  if (multiples.rank != rank_of(x))
    return mix_tf_operation_mistyped(call, "multiples", "one integer for each axis");
  for (int i = 0; i < multiples.rank && !mix_failed(); i++) {
    const int64_t count = multiples.dims[i];
    if (count < 1 || count > MAX_PARTS) return parts_refused(call, "multiples");
    if (count > 1) x = copies(x, i, count);
  }
  return mix_failed() ? NULL : mix_one_result(mix_identity(x));
}

mix_list *mix_tf_operation_repeat(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_shape repeats;
  int axis;
  int64_t size;
  if (!known_axis(call, x, &axis, &size) || !mix_tf_operation_integers(call, "repeats", &repeats))
    return NULL;
  const int64_t count = repeats.rank == 1 ? repeats.dims[0] : 0;
  if (count < 1 || count > MAX_PARTS || size > INT32_MAX / MAX_PARTS)
    return mix_tf_operation_refused(call, "repeats", "one integer from 1 to 1024");
  mix_tensor *places = mix_floor_divide(mix_range(0, (double)(size * count), 1, MIX_INT32),
                                        mix_scalar((double)count, MIX_INT32));
  return mix_one_result(mix_gather(x, places, axis));
}

mix_list *mix_tf_operation_reverse(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_shape axes;
  if (!x || !mix_tf_operation_integers(call, "axis", &axes)) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  for (int i = 0; i < axes.rank && !mix_failed(); i++) {
    const int axis = mix_axis_normal((int)axes.dims[i], shape.rank);
    if (axis < 0) return mix_tf_operation_mistyped(call, "axis", "axes of the tensor");
    if (shape.dims[axis] == MIX_UNKNOWN)
      return mix_tf_operation_refused(call, "axis", "axes whose sizes are known");
    x = mix_layer_range(x, axis, shape.dims[axis] - 1, shape.dims[axis], -1);
  }
  return mix_failed() ? NULL : mix_one_result(mix_identity(x));
}

mix_list *mix_tf_operation_gather(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call), *indices = x ? mix_tf_operation_tensor(call, "indices", NULL) : NULL;
  int axis = 0;
  if (!indices) return NULL;
  const json_t *batch = mix_tf_operation_value(call, "batch_dims");
  if (batch && !mix_json_integer_within(batch, 0, 0, NULL))
    return mix_tf_operation_refused(call, "batch_dims", "0");
  if (mix_tf_operation_value(call, "axis") && !mix_tf_operation_axis(call, "axis", rank_of(x), &axis))
    return NULL;
  return mix_one_result(mix_gather(x, indices, axis));
}

mix_list *mix_tf_operation_one_hot(const mix_tf_operation_call *call) {
  mix_tensor *indices = first_tensor(call);
  mix_dtype dtype;
  double depth;
  if (!indices || !mix_tf_operation_number(call, "depth", &depth) ||
      !mix_tf_operation_dtype(call, "dtype", MIX_FLOAT32, &dtype))
    return NULL;
  if (mix_tf_operation_value(call, "on_value") || mix_tf_operation_value(call, "off_value"))
    return mix_tf_operation_refused(call, mix_tf_operation_value(call, "on_value") ? "on_value" : "off_value",
                                    "null");
  const json_t *axis = mix_tf_operation_value(call, "axis");
  if (axis && !mix_json_integer_within(axis, -1, -1, NULL))
    return mix_tf_operation_refused(call, "axis", "-1");
  if (!(depth >= 0 && depth <= 1e9))
    return mix_tf_operation_mistyped(call, "depth", "a number from 0 to 10^9");
  return mix_one_result(mix_one_hot(indices, (int64_t)depth, dtype));
}

/* ---- padding ---- */

static bool read_paddings(const mix_tf_operation_call *call, int rank, mix_shape *before, mix_shape *after) {
  const json_t *value = mix_tf_operation_value(call, "paddings");
  *before = *after = (mix_shape){.rank = rank};
  enum { MAX_PAD = 1000000000 };
  bool good = json_is_array(value) && json_array_size(value) == (size_t)rank;
  for (int i = 0; good && i < rank; i++) {
    const json_t *pair = json_array_get(value, (size_t)i), *low = json_array_get(pair, 0),
                 *high = json_array_get(pair, 1);
    good = json_array_size(pair) == 2 && mix_json_integer_within(low, 0, MAX_PAD, &before->dims[i]) &&
           mix_json_integer_within(high, 0, MAX_PAD, &after->dims[i]);
  }
  return good || mix_tf_operation_mistyped(call, "paddings", "[before, after] for each axis");
}

mix_list *mix_tf_operation_pad(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_shape before, after;
  double value;
  if (!x || !read_paddings(call, rank_of(x), &before, &after) ||
      !mix_tf_operation_number(call, "constant_values", &value))
    return NULL;
  const char *mode = json_string_value(mix_tf_operation_value(call, "mode"));
  if (!mode || strcmp(mode, "CONSTANT")) return mix_tf_operation_refused(call, "mode", "CONSTANT");
  return mix_one_result(mix_pad(x, before, after, value));
}
