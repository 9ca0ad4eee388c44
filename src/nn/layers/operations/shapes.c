/* Operations that change shapes: reshape, transpose, join, split, repeat and pad. */
#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/spatial/spatial.h"
#include <strings.h>

enum { MAX_PARTS = 1024, MAX_PAD = 1 << 24 }; /* each part is a node of the graph */

static int rank_of(const mix_tensor *x) { return mix_operand_rank(x); }
static int64_t size_along(const mix_tensor *x, int axis) { return mix_operand_size(x, axis); }
static mix_tensor *flattened(mix_tensor *x) { return mix_flattened(x); }

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

static mix_tensor *reshape(const mix_operands *o, mix_tensor *x) {
  const mix_shape shape = mix_operand_shape(o, o->second);
  if (mix_failed() || !is_target(shape))
    return mix_operand_refused(o, MIX_VALUE_ERROR, o->second,
                               "dimensions of 0 or more, one of which may be -1");
  /* the dimension -1 of a shape that is unknown stays so */
  return mix_shape_size(mix_tensor_shape(x)) >= 0 ? mix_reshape(x, shape) : mix_open_result(x, shape);
}

static mix_tensor *expand_dims(const mix_operands *o, mix_tensor *x) {
  int64_t given[MIX_MAX_RANK];
  const int count = mix_operand_integers(o, "axis", MIX_MAX_RANK, given), rank = rank_of(x) + count;
  if (rank > MIX_MAX_RANK)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "the result would have %d dimensions; expected at most %d",
                              rank, MIX_MAX_RANK);
  const mix_axes axes = mix_operand_axes(o, "axis", rank);
  for (int axis = 0; axis < rank; axis++)
    for (int i = 0; i < axes.count; i++)
      if (axes.axis[i] == axis) x = mix_expand_dims(x, axis);
  return x;
}

static mix_tensor *squeeze(const mix_operands *o, mix_tensor *x) {
  return mix_squeeze(x, mix_operand_axes(o, "axis", rank_of(x)));
}

static mix_tensor *broadcast_to(const mix_operands *o, mix_tensor *x) {
  return mix_broadcast_to(x, mix_operand_shape(o, "shape"));
}

/* ---- other orders of axes ---- */

static mix_tensor *transpose(const mix_operands *o, mix_tensor *x) {
  return mix_transpose(x, mix_operand_axes(o, o->second, rank_of(x)));
}

static mix_tensor *swapaxes(const mix_operands *o, mix_tensor *x) {
  const int rank = rank_of(x), first = mix_operand_axis(o, "axis1", rank),
            second = mix_operand_axis(o, "axis2", rank);
  mix_axes axes = {.count = rank};
  for (int i = 0; i < rank; i++) axes.axis[i] = i == first ? second : i == second ? first : i;
  return mix_transpose(x, axes);
}

/* The axes of `source` go to `destination`; the others keep their order. */
static mix_tensor *moveaxis(const mix_operands *o, mix_tensor *x) {
  const int rank = rank_of(x);
  const mix_axes from = mix_operand_axes(o, "source", rank), to = mix_operand_axes(o, "destination", rank);
  mix_axes axes = {.count = rank};
  unsigned placed = 0, moved = 0;
  if (from.count != to.count)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "%d axes of source and %d of destination", from.count,
                              to.count);
  for (int i = 0; i < from.count; i++) {
    axes.axis[to.axis[i]] = from.axis[i];
    placed |= 1U << to.axis[i];
    moved |= 1U << from.axis[i];
  }
  for (int place = 0, next = 0; place < rank; place++) {
    if (placed >> place & 1U) continue;
    while (moved >> next & 1U) next++;
    axes.axis[place] = next++;
  }
  return mix_transpose(x, axes);
}

/* ---- joining and splitting ---- */

static mix_tensor *concat(const mix_operands *o, mix_list *list) {
  const int axis = mix_operand_axis(o, "axis", rank_of(mix_list_get(list, 0)));
  return axis < 0 ? NULL : mix_layer_concat(list, axis);
}

static mix_tensor *stack(const mix_operands *o, mix_list *list) {
  const int axis = mix_operand_axis(o, "axis", rank_of(mix_list_get(list, 0)) + 1);
  return axis < 0 ? NULL : mix_layer_stack(list, axis);
}

static mix_tensor *append(const mix_operands *o, mix_tensor *x) {
  static const char *const names[] = {"x1", "x2"};
  mix_tensor *pair[2];
  if (!mix_operands_promoted(o, 2, names, pair)) return NULL;
  const bool whole = !mix_operand_json(o, "axis");
  const int axis = whole ? 0 : mix_operand_axis(o, "axis", rank_of(pair[0]));
  for (int i = 0; whole && i < 2; i++) pair[i] = flattened(pair[i]);
  return axis < 0 ? NULL : mix_concat(2, pair, axis);
}

/* Along an axis of tensors that have at least that many axes. */
static mix_tensor *stack_along(mix_list *list, int axis) {
  mix_list *wide = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(list) && !mix_failed(); i++) {
    mix_tensor *x = mix_list_get(list, i);
    if (axis != 1 && rank_of(x) < 2) x = mix_expand_dims(rank_of(x) ? x : mix_reshape(x, MIX_SHAPE(1)), 0);
    if (axis == 2 && rank_of(x) < 3) x = mix_expand_dims(x, 2);
    mix_list_append(wide, x);
  }
  return mix_failed() ? NULL : mix_layer_concat(wide, axis);
}
static mix_tensor *vstack(const mix_operands *o, mix_list *list) { return stack_along(list, 0); }
static mix_tensor *dstack(const mix_operands *o, mix_list *list) { return stack_along(list, 2); }
static mix_tensor *hstack(const mix_operands *o, mix_list *list) {
  return rank_of(mix_list_get(list, 0)) > 1 ? stack_along(list, 1) : mix_layer_concat(list, 0);
}

/* The size may be unknown where it is split into as many parts. -1 with the error recorded. */
static int known_axis(const mix_operands *o, const mix_tensor *x, int axis, bool counted) {
  if (axis >= 0 && axis < rank_of(x) && (size_along(x, axis) != MIX_UNKNOWN || counted)) return axis;
  if (!mix_failed())
    mix_operation_fail(o, MIX_UNSUPPORTED, "axis %d of %s is split; supported is one whose size is known",
                       axis, MIX_SHAPE_TEXT(mix_tensor_shape(x)));
  return -1;
}
static int axis_of_known_size(const mix_operands *o, const mix_tensor *x) {
  return known_axis(o, x, mix_operand_axis(o, "axis", rank_of(x)), false);
}
static int split_axis(const mix_operands *o, const mix_tensor *x, int axis) {
  return known_axis(o, x, axis, json_is_integer(mix_operand_json(o, o->second)));
}
/* Of shapes alone: each part has an unknown size too. */
static mix_list *open_parts(mix_tensor *x, int64_t parts) {
  mix_list *list = mix_list_new(0, NULL);
  for (int64_t i = 0; i < parts; i++) mix_list_append(list, mix_open_result(x, mix_tensor_shape(x)));
  return mix_failed() ? NULL : list;
}

/* Sizes of parts, of which one may be -1, become their ends. */
static bool ends_of_sizes(const mix_operands *o, int64_t total, int count, int64_t *sizes) {
  int64_t sum = 0, end = 0;
  int open = 0;
  for (int i = 0; i < count; i++) {
    open += sizes[i] == -1;
    sum += sizes[i] >= 0 ? sizes[i] : sizes[i] == -1 ? 0 : total + 1;
  }
  if (open > 1 || sum > total || (!open && sum != total))
    return mix_operation_fail(o, MIX_VALUE_ERROR, "its sizes do not fill an axis of %lld", (long long)total);
  for (int i = 0; i < count; i++) sizes[i] = end += sizes[i] < 0 ? total - sum : sizes[i];
  return true;
}

/* The ends of as many parts of one size. */
static int even_ends(const mix_operands *o, int axis, int64_t size, int64_t *ends) {
  const int64_t parts = mix_operand_integer(o, o->second);
  if (parts < 1 || parts > MAX_PARTS || (size != MIX_UNKNOWN && size % parts))
    return mix_operation_fail(o, MIX_VALUE_ERROR,
                              "axis %d of size %lld is not split in %lld; expected a divisor of at most %d",
                              axis, (long long)size, (long long)parts, MAX_PARTS),
           0;
  for (int64_t i = 0; i < parts; i++) ends[i] = (i + 1) * (size / parts);
  return (int)parts;
}

/* Into as many parts, at indices, or of TensorFlow into sizes. */
static mix_list *split_along(const mix_operands *o, mix_tensor *x, int axis) {
  int64_t ends[MAX_PARTS + 1], begin = 0;
  if (axis < 0) return NULL;
  const int64_t size = size_along(x, axis);
  const bool listed = json_is_array(mix_operand_json(o, o->second)), tf = mix_operands_of_tf(o);
  int count = listed ? mix_operand_integers(o, o->second, MAX_PARTS, ends) : even_ends(o, axis, size, ends);
  if (size == MIX_UNKNOWN) return mix_failed() ? NULL : open_parts(x, count);
  if (listed && tf && !ends_of_sizes(o, size, count, ends)) return NULL;
  if (listed && !tf) ends[count++] = size;
  mix_list *parts = mix_list_new(0, NULL);
  for (int i = 0; i < count && !mix_failed(); begin = ends[i++]) {
    if (ends[i] < begin || ends[i] > size)
      return mix_operation_fail(o, MIX_VALUE_ERROR, "%s has %lld behind %lld; axis %d has size %lld",
                                o->second, (long long)ends[i], (long long)begin, axis, (long long)size);
    mix_list_append(parts, mix_layer_range(x, axis, begin, ends[i] - begin, 1));
  }
  return parts;
}

static mix_list *split(const mix_operands *o, mix_tensor *x) {
  return split_along(o, x, split_axis(o, x, mix_operand_axis(o, "axis", rank_of(x))));
}
static mix_list *vsplit(const mix_operands *o, mix_tensor *x) {
  return split_along(o, x, split_axis(o, x, 0));
}
static mix_list *hsplit(const mix_operands *o, mix_tensor *x) {
  return split_along(o, x, split_axis(o, x, rank_of(x) > 1));
}
static mix_list *dsplit(const mix_operands *o, mix_tensor *x) {
  return split_along(o, x, split_axis(o, x, 2));
}

/* Parts of equal size, of which the first have one item more. */
static mix_list *array_split(const mix_operands *o, mix_tensor *x) {
  const int axis = split_axis(o, x, mix_operand_axis(o, "axis", rank_of(x)));
  const int64_t parts = mix_operand_integer(o, o->second);
  if (axis < 0 || mix_failed()) return NULL;
  if (parts < 1 || parts > MAX_PARTS)
    return mix_operand_refused(o, MIX_VALUE_ERROR, o->second, "1 to 1024 parts");
  const int64_t size = size_along(x, axis);
  if (size == MIX_UNKNOWN) return open_parts(x, parts);
  mix_list *list = mix_list_new(0, NULL);
  for (int64_t i = 0, begin = 0; i < parts && !mix_failed(); i++) {
    const int64_t count = size / parts + (i < size % parts);
    mix_list_append(list, mix_layer_range(x, axis, begin, count, 1));
    begin += count;
  }
  return list;
}

static mix_list *unstack(const mix_operands *o, mix_tensor *x) {
  const int axis = axis_of_known_size(o, x);
  if (axis < 0) return NULL;
  const int64_t size = size_along(x, axis);
  const json_t *given = mix_operand_json(o, "num");
  char text[MIX_JSON_GIVEN];
  if (given && !mix_json_integer_within(given, size, size, NULL))
    return mix_operation_fail(o, MIX_TYPE_ERROR, "num is %s; expected %lld, the size of axis %d",
                              mix_json_given(given, text), (long long)size, axis);
  if (size < 1 || size > MAX_PARTS)
    return mix_operand_refused(o, MIX_UNSUPPORTED, "axis", "one of 1 to 1024 parts");
  return mix_layer_unstack(x, axis, size);
}

/* ---- repeating ---- */

/* x `times` over along an axis: each element for itself, or the whole. */
static mix_tensor *repeated(const mix_operands *o, mix_tensor *x, int axis, int64_t times, bool each) {
  mix_shape shape = mix_tensor_shape(x);
  const int64_t size = shape.dims[axis];
  const bool counted = size < 0 || !__builtin_mul_overflow(size, times, &shape.dims[axis]);
  if (times < 0 || !counted || shape.rank == MIX_MAX_RANK)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "%lld repeats along axis %d of size %lld and rank %d",
                              (long long)times, axis, (long long)size, shape.rank);
  if (times == 1) return x;
  mix_tensor *wide = mix_expand_dims(x, each ? axis + 1 : axis);
  mix_shape apart = mix_tensor_shape(wide);
  apart.dims[each ? axis + 1 : axis] = times;
  return mix_layer_reshape(mix_broadcast_to(wide, apart), shape);
}

static mix_tensor *repeat(const mix_operands *o, mix_tensor *x) {
  int64_t times = -1;
  mix_operand_integers(o, "repeats", 1, &times);
  if (!mix_operand_json(o, "axis")) return repeated(o, flattened(x), 0, times, true);
  const int axis = mix_operand_axis(o, "axis", rank_of(x));
  return axis < 0 ? NULL : repeated(o, x, axis, times, true);
}

static mix_tensor *tile(const mix_operands *o, mix_tensor *x) {
  const mix_shape times = mix_operand_shape(o, o->second);
  for (int i = 0; mix_operands_of_tf(o) && i < times.rank; i++)
    if (times.rank != rank_of(x) || times.dims[i] > MAX_PARTS)
      return mix_operand_refused(o, MIX_UNSUPPORTED, o->second, "at most 1024 parts along each axis");
  while (rank_of(x) < times.rank && !mix_failed()) x = mix_expand_dims(x, 0);
  for (int i = 0; i < times.rank && x; i++)
    x = repeated(o, x, rank_of(x) - times.rank + i, times.dims[i], false);
  return x;
}

/* ---- other orders along an axis ---- */

mix_tensor *mix_flipped(mix_tensor *x, int axis) {
  const int64_t size = size_along(x, axis); /* of shapes alone where it is unknown */
  return size > 1 ? mix_layer_range(x, axis, size - 1, size, -1) : x;
}
static mix_tensor *flip(const mix_operands *o, mix_tensor *x) {
  mix_axes axes = mix_operand_axes(o, "axis", rank_of(x));
  if (!mix_operand_json(o, "axis"))
    for (; axes.count < rank_of(x); axes.count++) axes.axis[axes.count] = axes.count;
  for (int i = 0; x && i < axes.count; i++) x = mix_flipped(x, axes.axis[i]);
  return x;
}
static mix_tensor *flip_along(const mix_operands *o, mix_tensor *x, int axis) {
  if (axis < rank_of(x)) return mix_flipped(x, axis);
  return mix_operation_fail(o, MIX_VALUE_ERROR, "its operand has rank %d; expected at least %d", rank_of(x),
                            axis + 1);
}
static mix_tensor *flipud(const mix_operands *o, mix_tensor *x) { return flip_along(o, x, 0); }
static mix_tensor *fliplr(const mix_operands *o, mix_tensor *x) { return flip_along(o, x, 1); }

/* A quarter turn is a reflection of the second axis and an exchange of both. */
static mix_tensor *rot90(const mix_operands *o, mix_tensor *x) {
  const int64_t turns = (mix_operand_integer(o, "k") % 4 + 4) % 4;
  const int rank = rank_of(x);
  const mix_axes axes = mix_operand_axes(o, "axes", rank);
  mix_axes order = {.count = rank};
  if (mix_failed()) return NULL;
  if (axes.count != 2) return mix_operand_refused(o, MIX_VALUE_ERROR, "axes", "two axes");
  for (int i = 0; i < rank; i++)
    order.axis[i] = i == axes.axis[0] ? axes.axis[1] : i == axes.axis[1] ? axes.axis[0] : i;
  for (int64_t i = 0; x && i < turns; i++) x = mix_transpose(mix_flipped(x, axes.axis[1]), order);
  return x;
}

static mix_tensor *rolled(mix_tensor *x, int axis, int64_t shift) {
  const int64_t size = size_along(x, axis), places = size > 1 ? (shift % size + size) % size : 0;
  if (!places) return x;
  mix_tensor *ends[] = {mix_layer_range(x, axis, size - places, places, 1),
                        mix_layer_range(x, axis, 0, size - places, 1)};
  return mix_concat(2, ends, axis);
}

static mix_tensor *roll(const mix_operands *o, mix_tensor *x) {
  int64_t shifts[MIX_MAX_RANK];
  const int count = mix_operand_integers(o, "shift", MIX_MAX_RANK, shifts);
  if (mix_failed()) return NULL;
  if (!mix_operand_json(o, "axis") && count == 1)
    return mix_layer_reshape(rolled(flattened(x), 0, shifts[0]), mix_tensor_shape(x));
  const mix_axes axes = mix_operand_axes(o, "axis", rank_of(x));
  if (!mix_failed() && axes.count != count && count != 1)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "%d shifts along %d axes", count, axes.count);
  for (int i = 0; x && i < axes.count; i++) x = rolled(x, axes.axis[i], shifts[count > 1 ? i : 0]);
  return mix_failed() ? NULL : x;
}

/* ---- padding ---- */

/* One number, [before, after], or such a pair for each axis. */
static bool read_pads(const mix_operands *o, int rank, mix_shape *before, mix_shape *after) {
  const json_t *width = mix_operand_json(o, o->second);
  const size_t count = json_array_size(width);
  const bool listed = json_is_array(json_array_get(width, 0));
  bool good = !listed || count == (size_t)rank || count == 1;
  before->rank = after->rank = rank;
  for (int i = 0; good && i < rank; i++) {
    const json_t *pair = listed ? json_array_get(width, count == 1 ? 0 : (size_t)i) : width;
    const json_t *first = json_is_array(pair) ? json_array_get(pair, 0) : pair,
                 *second = json_array_size(pair) > 1 ? json_array_get(pair, 1) : first;
    good = mix_json_integer_within(first, 0, MAX_PAD, &before->dims[i]) &&
           mix_json_integer_within(second, 0, MAX_PAD, &after->dims[i]);
  }
  return good || mix_operand_refused(o, MIX_TYPE_ERROR, o->second,
                                     "integers from 0 to 2^24: [before, after] for each axis");
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

static mix_tensor *pad(const mix_operands *o, mix_tensor *x) {
  mix_shape before, after;
  const char *mode = mix_operand_text(o, "mode");
  const double value = mix_operand_number(o, "constant_values");
  if (mix_failed() || !read_pads(o, rank_of(x), &before, &after)) return NULL;
  if (!strcasecmp(mode, "constant")) return mix_pad(x, before, after, value);
  const int edge = !strcasecmp(mode, "reflect");
  if (!edge && strcasecmp(mode, "symmetric"))
    return mix_operation_fail(o, MIX_VALUE_ERROR, "mode is '%.60s'; expected constant, reflect or symmetric",
                              mode);
  for (int axis = 0; x && axis < before.rank; axis++) {
    const int64_t size = size_along(x, axis), first = before.dims[axis], last = after.dims[axis];
    if (size == MIX_UNKNOWN || (!first && !last)) continue; /* of shapes alone; it stays unknown */
    if (first > size - edge || last > size - edge)
      return mix_operation_fail(o, MIX_VALUE_ERROR,
                                "axis %d of size %lld is padded by %lld and %lld in mode %s", axis,
                                (long long)size, (long long)first, (long long)last, mode);
    x = mirrored(x, axis, first, last, edge);
  }
  return x;
}

/* ---- the tables ---- */

const mix_keras_operation mix_keras_shape_operations[] = {
    MIX_KERAS_OPERATION("Reshape", "numpy", "x", "newshape", .build = reshape),
    MIX_KERAS_OPERATION("Ravel", "numpy", "x", "", .unary = flattened),
    MIX_KERAS_OPERATION("ExpandDims", "numpy", "x", "axis", .build = expand_dims),
    MIX_KERAS_OPERATION("Squeeze", "numpy", "x", "axis", .build = squeeze),
    MIX_KERAS_OPERATION("BroadcastTo", "numpy", "x", "shape", .build = broadcast_to),
    MIX_KERAS_OPERATION("Transpose", "numpy", "x", "axes", .build = transpose),
    MIX_KERAS_OPERATION("Swapaxes", "numpy", "x", "axis1=0 axis2=0", .build = swapaxes),
    MIX_KERAS_OPERATION("Moveaxis", "numpy", "x", "source destination", .build = moveaxis),
    MIX_KERAS_OPERATION("Concatenate", "numpy", "xs", "axis=0", .join = concat, .takes_list = true),
    MIX_KERAS_OPERATION("Stack", "numpy", "x", "axis=0", .join = stack, .takes_list = true),
    MIX_KERAS_OPERATION("Split", "numpy", "x", "indices_or_sections axis=0", .results = split),
    MIX_KERAS_OPERATION("Unstack", "core", "x", "num axis=0", .results = unstack),
    MIX_KERAS_OPERATION("ArraySplit", "numpy", "x", "indices_or_sections axis=0", .results = array_split),
    MIX_KERAS_OPERATION("Hsplit", "numpy", "x", "indices_or_sections", .results = hsplit),
    MIX_KERAS_OPERATION("Vsplit", "numpy", "x", "indices_or_sections", .results = vsplit),
    MIX_KERAS_OPERATION("Dsplit", "numpy", "x", "indices_or_sections", .results = dsplit),
    MIX_KERAS_OPERATION("Append", "numpy", "x1 x2", "axis", .build = append),
    MIX_KERAS_OPERATION("Hstack", "numpy", "xs", "", .join = hstack, .takes_list = true),
    MIX_KERAS_OPERATION("Vstack", "numpy", "xs", "", .join = vstack, .takes_list = true),
    MIX_KERAS_OPERATION("Dstack", "numpy", "xs", "", .join = dstack, .takes_list = true),
    MIX_KERAS_OPERATION("Fliplr", "numpy", "x", "", .build = fliplr),
    MIX_KERAS_OPERATION("Flipud", "numpy", "x", "", .build = flipud),
    MIX_KERAS_OPERATION("Rot90", "numpy", "array", "k=1 axes=[0,1]", .build = rot90),
    MIX_KERAS_OPERATION("Repeat", "numpy", "x", "repeats axis", .build = repeat),
    MIX_KERAS_OPERATION("Tile", "numpy", "x", "repeats", .build = tile),
    MIX_KERAS_OPERATION("Flip", "numpy", "x", "axis", .build = flip),
    MIX_KERAS_OPERATION("Roll", "numpy", "x", "shift=0 axis", .build = roll),
    MIX_KERAS_OPERATION("Pad", "numpy", "x constant_values=0", "pad_width mode=\"constant\"", .build = pad),
    {.operation = {0}}};

const mix_operation mix_tf_shape_operations[] = {
    MIX_TF_OPERATION("reshape", "tensor", "shape", .build = reshape),
    MIX_TF_OPERATION("transpose", "a", "perm conjugate", .build = transpose),
    MIX_TF_OPERATION("compat.v1.transpose", "a", "perm conjugate", .build = transpose),
    MIX_TF_OPERATION("expand_dims", "input", "axis", .build = expand_dims),
    MIX_TF_OPERATION("squeeze", "input", "axis", .build = squeeze),
    MIX_TF_OPERATION("compat.v1.squeeze", "input", "axis", .build = squeeze),
    MIX_TF_OPERATION("concat", "values", "axis", .join = concat),
    MIX_TF_OPERATION("stack", "values", "axis=0", .join = stack),
    MIX_TF_OPERATION("split", "value", "num_or_size_splits axis=0 num", .results = split),
    MIX_TF_OPERATION("unstack", "value", "num axis=0", .results = unstack),
    MIX_TF_OPERATION("tile", "input", "multiples", .build = tile),
    MIX_TF_OPERATION("repeat", "input", "repeats axis", .build = repeat),
    MIX_TF_OPERATION("pad", "tensor", "paddings mode=\"CONSTANT\" constant_values=0", .build = pad),
    MIX_TF_OPERATION("compat.v1.pad", "tensor", "paddings mode=\"CONSTANT\" constant_values=0", .build = pad),
    MIX_TF_OPERATION("roll", "input", "shift axis", .build = roll),
    MIX_TF_OPERATION("reverse", "tensor", "axis", .build = flip),
    MIX_TF_OPERATION("broadcast_to", "input", "shape", .build = broadcast_to),
    {0}};
