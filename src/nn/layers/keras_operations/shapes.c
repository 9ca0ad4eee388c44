/* Operations that change shapes: reshape, transpose, join, split, repeat and pad. */
#include "base/error.h"
#include "base/json.h"
#include "nn/layers/keras_operations/keras_operation.h"
#include "nn/layers/spatial/spatial.h"
#include <string.h>

enum { MAX_PAD = 1 << 24 };

/* x with another size along one axis. */
static mix_shape resized(mix_tensor *x, int axis, int64_t size) {
  mix_shape shape = mix_tensor_shape(x);
  shape.dims[axis] = size;
  return shape;
}

static int64_t size_along(mix_tensor *x, int axis) { return mix_tensor_shape(x).dims[axis]; }

static mix_tensor *flattened(mix_tensor *x) { return mix_reshape(x, MIX_SHAPE(MIX_UNKNOWN)); }

/* ---- other shapes of the same elements ---- */

/* False: a dimension is below -1, several are -1, or the others are too many. */
static bool is_target(mix_shape shape) {
  int64_t rest = 1;
  int open = 0;
  bool good = true;
  for (int i = 0; i < shape.rank; i++) {
    if (shape.dims[i] == MIX_UNKNOWN)
      open++;
    else
      good &= shape.dims[i] >= 0 && !__builtin_mul_overflow(rest, shape.dims[i], &rest);
  }
  return good && open <= 1;
}

static mix_list *reshape_call(const mix_operands *o) {
  mix_shape shape = {.rank = 0};
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_integers(o, "newshape", MIX_MAX_RANK, shape.dims, &shape.rank)) return NULL;
  if (!is_target(shape))
    return mix_fail(MIX_VALUE_ERROR, "%s: newshape needs dimensions of 0 or more, one of which may be -1",
                    o->layer->name);
  /* the dimension -1 of a shape that is unknown stays so */
  const bool known = mix_shape_size(mix_tensor_shape(x)) >= 0;
  return mix_one_result(known ? mix_reshape(x, shape) : mix_open_result(x, shape));
}

static mix_list *ravel_call(const mix_operands *o) {
  mix_tensor *x = mix_operand(o, "x");
  return x ? mix_one_result(flattened(x)) : NULL;
}

static mix_list *expand_dims_call(const mix_operands *o) {
  int64_t given[MIX_MAX_RANK];
  int count;
  bool chosen[MIX_MAX_RANK] = {false};
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_integers(o, "axis", MIX_MAX_RANK, given, &count)) return NULL;
  const int rank = mix_tensor_shape(x).rank + count;
  if (rank > MIX_MAX_RANK)
    return mix_fail(MIX_VALUE_ERROR, "%s: the result would have %d dimensions; expected at most %d",
                    o->layer->name, rank, MIX_MAX_RANK);
  for (int i = 0; i < count; i++) {
    const int64_t axis = given[i] < 0 ? given[i] + rank : given[i];
    if (axis < 0 || axis >= rank || chosen[axis])
      return mix_fail(MIX_VALUE_ERROR, "%s: axis %lld is outside a result of rank %d, or given twice",
                      o->layer->name, (long long)given[i], rank);
    chosen[axis] = true;
  }
  for (int axis = 0; axis < rank; axis++)
    if (chosen[axis]) x = mix_expand_dims(x, axis);
  return mix_one_result(x);
}

static mix_list *squeeze_call(const mix_operands *o) {
  mix_axes axes;
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_axes(o, "axis", mix_tensor_shape(x).rank, &axes)) return NULL;
  return mix_one_result(mix_squeeze(x, axes));
}

static mix_list *broadcast_to_call(const mix_operands *o) {
  mix_shape shape = {.rank = 0};
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_integers(o, "shape", MIX_MAX_RANK, shape.dims, &shape.rank)) return NULL;
  return mix_one_result(mix_broadcast_to(x, shape));
}

/* ---- other orders of axes ---- */

static mix_list *transpose_call(const mix_operands *o) {
  mix_axes axes;
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_axes(o, "axes", mix_tensor_shape(x).rank, &axes)) return NULL;
  return mix_one_result(mix_transpose(x, axes));
}

static mix_list *swapaxes_call(const mix_operands *o) {
  mix_tensor *x = mix_operand(o, "x");
  if (!x) return NULL;
  const int rank = mix_tensor_shape(x).rank, first = mix_operand_axis(o, "axis1", rank, 0),
            second = first < 0 ? -1 : mix_operand_axis(o, "axis2", rank, 0);
  if (second < 0) return NULL;
  mix_axes axes = {.count = rank};
  for (int i = 0; i < rank; i++) axes.axis[i] = i == first ? second : i == second ? first : i;
  return mix_one_result(mix_transpose(x, axes));
}

/* The axes of `source` go to `destination`; the others keep their order. */
static mix_list *moveaxis_call(const mix_operands *o) {
  mix_axes from, to, axes;
  mix_tensor *x = mix_operand(o, "x");
  const int rank = x ? mix_tensor_shape(x).rank : 0;
  bool placed[MIX_MAX_RANK] = {false}, moved[MIX_MAX_RANK] = {false};
  if (!x || !mix_operand_axes(o, "source", rank, &from) || !mix_operand_axes(o, "destination", rank, &to))
    return NULL;
  if (from.count != to.count)
    return mix_fail(MIX_VALUE_ERROR, "%s: %d axes of source and %d of destination", o->layer->name,
                    from.count, to.count);
  axes.count = rank;
  for (int i = 0; i < from.count; i++) {
    axes.axis[to.axis[i]] = from.axis[i];
    placed[to.axis[i]] = moved[from.axis[i]] = true;
  }
  for (int place = 0, next = 0; place < rank; place++) {
    if (placed[place]) continue;
    while (moved[next]) next++;
    axes.axis[place] = next++;
  }
  return mix_one_result(mix_transpose(x, axes));
}

/* ---- joining and splitting ---- */

static mix_list *concatenate_call(const mix_operands *o) {
  mix_list *list = mix_operand_list(o, "xs");
  const int axis = list ? mix_operand_axis(o, "axis", mix_tensor_shape(mix_list_get(list, 0)).rank, 0) : -1;
  if (axis < 0) return NULL;
  return mix_one_result(mix_layer_concat(list, axis));
}

static mix_list *stack_call(const mix_operands *o) {
  mix_list *list = mix_operand_list(o, "x");
  const int axis =
      list ? mix_operand_axis(o, "axis", mix_tensor_shape(mix_list_get(list, 0)).rank + 1, 0) : -1;
  return axis < 0 ? NULL : mix_one_result(mix_layer_stack(list, axis));
}

static mix_list *split_call(const mix_operands *o) {
  enum { MOST = 1000 };
  int64_t given[MOST];
  int count;
  mix_tensor *x = mix_operand(o, "x");
  const int axis = x ? mix_operand_axis(o, "axis", mix_tensor_shape(x).rank, 0) : -1;
  if (axis < 0 || !mix_operand_integers(o, "indices_or_sections", MOST, given, &count)) return NULL;
  const json_t *sections = mix_operand_json(o, "indices_or_sections");
  const int64_t size = size_along(x, axis);
  const bool even = !json_is_array(sections);
  if (!sections || size < 0 || (even && (given[0] < 1 || given[0] > MOST || size % given[0])))
    return mix_fail(MIX_VALUE_ERROR,
                    "%s: axis %d of size %lld is not split in %lld; expected a known size that it divides",
                    o->layer->name, axis, (long long)size, (long long)(even && sections ? given[0] : 0));
  mix_list *parts = mix_list_new(0, NULL);
  const int64_t pieces = even ? given[0] : count + 1;
  int64_t begin = 0;
  for (int64_t i = 0; i < pieces && !mix_failed(); i++) {
    int64_t end = even ? (i + 1) * (size / given[0]) : i < count ? given[i] : size;
    if (end < begin || end > size)
      return mix_fail(MIX_VALUE_ERROR, "%s: indices_or_sections has %lld behind %lld; axis %d has size %lld",
                      o->layer->name, (long long)end, (long long)begin, axis, (long long)size);
    mix_list_append(parts, mix_layer_range(x, axis, begin, end - begin, 1));
    begin = end;
  }
  return mix_failed() ? NULL : parts;
}

static mix_list *unstack_call(const mix_operands *o) {
  enum { MOST = 1000 };
  mix_tensor *x = mix_operand(o, "x");
  const int axis = x ? mix_operand_axis(o, "axis", mix_tensor_shape(x).rank, 0) : -1;
  if (axis < 0) return NULL;
  const int64_t size = size_along(x, axis);
  if (size < 1 || size > MOST)
    return mix_fail(MIX_VALUE_ERROR, "%s: axis %d has size %lld; expected 1 to %d", o->layer->name, axis,
                    (long long)size, MOST);
  int64_t given;
  return mix_operand_integer(o, "num", size, size, size, &given) ? mix_layer_unstack(x, axis, size) : NULL;
}

/* ---- repeating ---- */

/* x `times` over along an axis: each element for itself, or the whole. */
static mix_tensor *repeated(const mix_operands *o, mix_tensor *x, int axis, int64_t times, bool each) {
  const mix_shape shape = mix_tensor_shape(x);
  const int64_t size = shape.dims[axis];
  int64_t all = MIX_UNKNOWN;
  if (times < 0 || (size >= 0 && __builtin_mul_overflow(size, times, &all)) || shape.rank == MIX_MAX_RANK)
    return mix_fail(MIX_VALUE_ERROR, "%s: %lld repeats along axis %d of size %lld and rank %d",
                    o->layer->name, (long long)times, axis, (long long)size, shape.rank);
  if (times == 1) return x;
  mix_tensor *wide = mix_expand_dims(x, each ? axis + 1 : axis);
  wide = mix_broadcast_to(wide, resized(wide, each ? axis + 1 : axis, times));
  return mix_layer_reshape(wide, resized(x, axis, all));
}

static mix_list *repeat_call(const mix_operands *o) {
  int64_t times;
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_integer(o, "repeats", -1, INT64_MIN, INT64_MAX, &times)) return NULL;
  if (!mix_operand_json(o, "axis")) x = flattened(x);
  const int axis = mix_failed() ? -1 : mix_operand_axis(o, "axis", mix_tensor_shape(x).rank, 0);
  return axis < 0 ? NULL : mix_one_result(repeated(o, x, axis, times, true));
}

static mix_list *tile_call(const mix_operands *o) {
  int64_t times[MIX_MAX_RANK];
  int count;
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_integers(o, "repeats", MIX_MAX_RANK, times, &count)) return NULL;
  while (mix_tensor_shape(x).rank < count && !mix_failed()) x = mix_expand_dims(x, 0);
  for (int i = 0; i < count && x; i++)
    x = repeated(o, x, mix_tensor_shape(x).rank - count + i, times[i], false);
  return x ? mix_one_result(x) : NULL;
}

/* ---- other orders along an axis ---- */

static mix_list *flip_call(const mix_operands *o) {
  mix_axes axes;
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_axes(o, "axis", mix_tensor_shape(x).rank, &axes)) return NULL;
  const bool all = !mix_operand_json(o, "axis");
  for (int i = 0; x && i < (all ? mix_tensor_shape(x).rank : axes.count); i++) {
    const int axis = all ? i : axes.axis[i];
    const int64_t size = size_along(x, axis); /* of shapes alone where it is unknown */
    if (size > 1) x = mix_layer_range(x, axis, size - 1, size, -1);
  }
  return mix_one_result(x);
}

static mix_tensor *rolled(mix_tensor *x, int axis, int64_t shift) {
  const int64_t size = size_along(x, axis), places = size > 1 ? (shift % size + size) % size : 0;
  if (!places) return x;
  mix_tensor *ends[] = {mix_layer_range(x, axis, size - places, places, 1),
                        mix_layer_range(x, axis, 0, size - places, 1)};
  return mix_concat(2, ends, axis);
}

static mix_list *roll_call(const mix_operands *o) {
  int64_t shift;
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_integer(o, "shift", 0, INT64_MIN, INT64_MAX, &shift)) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  if (!mix_operand_json(o, "axis")) {
    x = flattened(x);
    return x ? mix_one_result(mix_layer_reshape(rolled(x, 0, shift), shape)) : NULL;
  }
  const int axis = mix_operand_axis(o, "axis", shape.rank, 0);
  return axis < 0 ? NULL : mix_one_result(rolled(x, axis, shift));
}

/* ---- padding ---- */

/* pad_width: one number, [before, after], or such a pair for each axis. */
static bool read_pads(const mix_operands *o, int rank, mix_shape *before, mix_shape *after) {
  const json_t *width = mix_operand_json(o, "pad_width");
  before->rank = after->rank = rank;
  const bool listed = json_is_array(json_array_get(width, 0));
  if (listed && json_array_size(width) != (size_t)rank && json_array_size(width) != 1)
    return mix_fail(MIX_VALUE_ERROR, "%s: pad_width has %zu items for rank %d", o->layer->name,
                    json_array_size(width), rank);
  for (int i = 0; i < rank; i++) {
    const json_t *of_axis =
        listed ? json_array_get(width, json_array_size(width) == 1 ? 0 : (size_t)i) : width;
    const json_t *first = json_is_array(of_axis) ? json_array_get(of_axis, 0) : of_axis,
                 *second = json_array_size(of_axis) > 1 ? json_array_get(of_axis, 1) : first;
    if (!json_is_integer(first) || !json_is_integer(second))
      return mix_operand_refused(o, "pad_width", of_axis, "integers");
    if (!mix_json_integer_within(first, 0, MAX_PAD, &before->dims[i]) ||
        !mix_json_integer_within(second, 0, MAX_PAD, &after->dims[i]))
      return mix_fail(MIX_VALUE_ERROR, "%s: pad_width has %lld and %lld; expected 0 to %d", o->layer->name,
                      (long long)json_integer_value(first), (long long)json_integer_value(second), MAX_PAD);
  }
  return true;
}

/* x between its mirror images; edge: 1 where the outermost items stand once. */
static mix_tensor *mirrored(mix_tensor *x, int axis, int64_t before, int64_t after, int edge) {
  const int64_t size = size_along(x, axis);
  mix_tensor *pieces[3];
  int count = 0;
  if (before) pieces[count++] = mix_layer_range(x, axis, before - 1 + edge, before, -1);
  pieces[count++] = x;
  if (after) pieces[count++] = mix_layer_range(x, axis, size - 1 - edge, after, -1);
  return mix_concat(count, pieces, axis);
}

static mix_list *pad_call(const mix_operands *o) {
  double value;
  mix_shape before, after;
  mix_tensor *x = mix_operand(o, "x");
  const char *mode = mix_operand_text(o, "mode", "constant");
  if (!x || !mode || !mix_operand_number(o, "constant_values", 0, &value) ||
      !read_pads(o, mix_tensor_shape(x).rank, &before, &after))
    return NULL;
  if (!strcmp(mode, "constant")) return mix_one_result(mix_pad(x, before, after, value));
  const int edge = !strcmp(mode, "reflect");
  if (!edge && strcmp(mode, "symmetric"))
    return mix_fail(MIX_VALUE_ERROR, "%s: mode is '%.60s'; expected constant, reflect or symmetric",
                    o->layer->name, mode);
  for (int axis = 0; x && axis < before.rank; axis++) {
    const int64_t size = size_along(x, axis), first = before.dims[axis], last = after.dims[axis];
    if (size == MIX_UNKNOWN || (!first && !last)) continue; /* of shapes alone; it stays unknown */
    if (first > size - edge || last > size - edge)
      return mix_fail(MIX_VALUE_ERROR, "%s: axis %d of size %lld is padded by %lld and %lld in mode %s",
                      o->layer->name, axis, (long long)size, (long long)first, (long long)last, mode);
    x = mirrored(x, axis, first, last, edge);
  }
  return mix_one_result(x);
}

/* ---- the table ---- */

const mix_keras_operation mix_keras_shape_operations[] = {
    MIX_KERAS_OPERATION("Reshape", "numpy", "x", "newshape", .call = reshape_call),
    MIX_KERAS_OPERATION("Ravel", "numpy", "x", "", .call = ravel_call),
    MIX_KERAS_OPERATION("ExpandDims", "numpy", "x", "axis", .call = expand_dims_call),
    MIX_KERAS_OPERATION("Squeeze", "numpy", "x", "axis", .call = squeeze_call),
    MIX_KERAS_OPERATION("BroadcastTo", "numpy", "x", "shape", .call = broadcast_to_call),
    MIX_KERAS_OPERATION("Transpose", "numpy", "x", "axes", .call = transpose_call),
    MIX_KERAS_OPERATION("Swapaxes", "numpy", "x", "axis1|axis2", .call = swapaxes_call),
    MIX_KERAS_OPERATION("Moveaxis", "numpy", "x", "source|destination", .call = moveaxis_call),
    MIX_KERAS_OPERATION("Concatenate", "numpy", "xs", "axis", .call = concatenate_call, .takes_list = true),
    MIX_KERAS_OPERATION("Stack", "numpy", "x", "axis", .call = stack_call, .takes_list = true),
    MIX_KERAS_OPERATION("Split", "numpy", "x", "indices_or_sections|axis", .call = split_call),
    MIX_KERAS_OPERATION("Unstack", "core", "x", "num|axis", .call = unstack_call),
    MIX_KERAS_OPERATION("Repeat", "numpy", "x", "repeats|axis", .call = repeat_call),
    MIX_KERAS_OPERATION("Tile", "numpy", "x", "repeats", .call = tile_call),
    MIX_KERAS_OPERATION("Flip", "numpy", "x", "axis", .call = flip_call),
    MIX_KERAS_OPERATION("Roll", "numpy", "x", "shift|axis", .call = roll_call),
    MIX_KERAS_OPERATION("Pad", "numpy", "x|constant_values", "pad_width|mode", .call = pad_call),
    {.operands = NULL}};
