/* Operations that take and put elements at places: take_along_axis, scatter, sums of segments. */
#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/spatial/spatial.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include "tensor/shape.h"
#include "tensor/convert.h"
#include <math.h>
#include <mixtape/scan.h>
#include <string.h>

static mix_tensor *number(mix_tensor *x, double value) { return mix_scalar_like(x, value); }

/* ---- take_along_axis ---- */

static mix_tensor *take_along(const mix_operands *o, mix_tensor *x, mix_tensor *indices, int axis) {
  mix_shape of_x = mix_tensor_shape(x), of_indices = mix_tensor_shape(indices);
  bool open = false;
  if (of_x.rank != of_indices.rank)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "x has rank %d and its indices %d", of_x.rank,
                              of_indices.rank);
  for (int i = 0; i < of_x.rank; i++) { /* axes of 1 broadcast */
    if (i == axis) continue;
    const int64_t a = of_x.dims[i], b = of_indices.dims[i];
    open |= a == MIX_UNKNOWN || b == MIX_UNKNOWN;
    of_x.dims[i] = of_indices.dims[i] = a == 1 ? b : b == 1 || b == MIX_UNKNOWN || a == MIX_UNKNOWN ? a : b;
  }
  if (open) return mix_open_result(x, of_indices); /* of shapes alone */
  indices = mix_cast(indices, MIX_INT64);
  mix_tensor *from_end = mix_plus(indices, (double)of_x.dims[axis]);
  indices = mix_select(mix_less(indices, number(indices, 0)), from_end, indices);
  return mix_take_along_axis(mix_broadcast_to(x, of_x), mix_broadcast_to(indices, of_indices), axis);
}
static mix_tensor *take_along_axis(const mix_operands *o, mix_tensor *x) {
  mix_tensor *indices = mix_operand(o, "indices");
  if (!indices) return NULL;
  if (!mix_operand_json(o, "axis")) return take_along(o, mix_flattened(x), indices, 0);
  const int axis = mix_operand_axis(o, "axis", mix_operand_rank(x));
  return axis < 0 ? NULL : take_along(o, x, indices, axis);
}

/* ---- scatter ---- */

/* Where indices (..., depth) point among the first `depth` axes of a shape, as one number each; outside: -1.
 */
static mix_tensor *flat_places(mix_tensor *indices, mix_shape shape, int64_t depth) {
  mix_tensor *sum = NULL, *inside = NULL;
  indices = mix_cast(indices, MIX_INT64);
  for (int64_t k = 0; k < depth && !mix_failed(); k++) {
    mix_tensor *one =
        mix_squeeze(mix_layer_range(indices, mix_operand_rank(indices) - 1, k, 1, 1), MIX_AXES(-1));
    mix_tensor *good = mix_logical_and(mix_greater_equal(one, number(one, 0)),
                                       mix_less(one, number(one, (double)shape.dims[k])));
    sum = sum ? mix_add(mix_times(sum, (double)shape.dims[k]), one) : one;
    inside = inside ? mix_logical_and(inside, good) : good;
  }
  return mix_select(inside, sum, number(sum, -1));
}

/* The axes of a shape behind the first `depth`, which become one of `rows`. */
static mix_shape as_rows(mix_shape shape, int64_t depth, int64_t *rows) {
  mix_shape flat = {.rank = 1};
  *rows = 1;
  for (int64_t k = 0; k < depth; k++) *rows *= shape.dims[k];
  flat.dims[0] = *rows;
  for (int i = (int)depth; i < shape.rank; i++) flat.dims[flat.rank++] = shape.dims[i];
  return flat;
}

static int64_t depth_of(const mix_operands *o, mix_tensor *indices, mix_shape shape) {
  const int rank = mix_operand_rank(indices);
  const int64_t depth = rank ? mix_operand_size(indices, rank - 1) : 0;
  if (!mix_failed() && depth >= 1 && depth <= shape.rank && mix_dtype_is_integer(mix_tensor_dtype(indices)))
    return depth;
  return mix_operand_refused(o, MIX_VALUE_ERROR, "indices", "integers (..., depth), depth at most the rank"),
         -1;
}

static mix_tensor *scatter(const mix_operands *o, mix_tensor *indices) {
  const mix_shape shape = mix_operand_shape(o, "shape");
  mix_tensor *values = mix_operand(o, "values");
  const int64_t depth = depth_of(o, indices, shape);
  int64_t rows;
  if (depth < 0 || mix_failed()) return NULL;
  if (mix_shape_checked_size(shape) < 0)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "shape", "sizes of 0 or more");
  as_rows(shape, depth, &rows);
  if (mix_shape_size(mix_tensor_shape(values)) < 0 || mix_shape_size(mix_tensor_shape(indices)) < 0)
    return mix_open_result(values, shape); /* of shapes alone */
  return mix_reshape(mix_segment_sum(values, flat_places(indices, shape, depth), rows), shape);
}

/* Of several updates of one place the last one counts: the last of each run of sorted places. */
static mix_tensor *replaced(mix_tensor *x, mix_tensor *places, mix_tensor *updates, int64_t rows) {
  const int64_t count = mix_operand_size(places, 0);
  mix_tensor *order = mix_argsort(places, 0, false), *sorted = mix_gather(places, order, 0);
  mix_tensor *next =
      mix_pad(mix_slice(sorted, MIX_SHAPE(1), MIX_SHAPE(count - 1)), MIX_SHAPE(0), MIX_SHAPE(1), -2);
  mix_tensor *last = mix_not_equal(sorted, next), *wide = last;
  for (int i = 1; i < mix_operand_rank(updates); i++) wide = mix_expand_dims(wide, -1);
  updates = mix_gather(updates, order, 0);
  mix_tensor *sums = mix_segment_sum(mix_select(wide, updates, mix_zeros_like(updates)), sorted, rows);
  mix_tensor *covered = mix_segment_sum(mix_cast(last, MIX_INT32), sorted, rows);
  covered = mix_greater(covered, number(covered, 0));
  for (int i = 1; i < mix_operand_rank(x); i++) covered = mix_expand_dims(covered, -1);
  return mix_select(covered, sums, x);
}

static mix_tensor *scatter_update(const mix_operands *o, mix_tensor *x) {
  mix_tensor *indices = mix_operand(o, "indices"), *updates = mix_operand_like(o, "updates", x);
  const char *reduction = mix_operand_json(o, "reduction") ? mix_operand_text(o, "reduction") : NULL;
  if (mix_failed()) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  const int64_t depth = depth_of(o, indices, shape);
  int64_t rows;
  if (depth < 0) return NULL;
  if (reduction && strcmp(reduction, "add"))
    return mix_operand_refused(o, MIX_UNSUPPORTED, "reduction", "null or add");
  if (mix_shape_size(shape) < 0 || mix_operand_rank(indices) != 2 || mix_operand_size(indices, 0) < 1)
    return o->symbolic ? mix_identity(x)
                       : mix_operand_refused(o, MIX_VALUE_ERROR, "indices", "(count, depth)");
  const mix_shape flat = as_rows(shape, depth, &rows);
  mix_tensor *table = mix_reshape(x, flat), *places = flat_places(indices, shape, depth);
  updates = mix_cast(updates, mix_tensor_dtype(x));
  mix_tensor *y = reduction ? mix_add(table, mix_segment_sum(updates, places, rows))
                            : replaced(table, places, updates, rows);
  return mix_reshape(y, shape);
}

/* The updates from those places on; they move inside if they would not fit, as in XLA. */
static mix_tensor *slice_update(const mix_operands *o, mix_tensor *x) {
  const mix_shape start = mix_operand_shape(o, "start_indices"), shape = mix_tensor_shape(x);
  mix_tensor *updates = mix_cast(mix_operand(o, "updates"), mix_tensor_dtype(x));
  if (mix_failed()) return NULL;
  const mix_shape part = mix_tensor_shape(updates);
  mix_shape before = {.rank = shape.rank}, after = before;
  bool fits = start.rank == shape.rank && part.rank == shape.rank;
  for (int i = 0; fits && i < shape.rank; i++) {
    const int64_t rest = shape.dims[i] - part.dims[i], from = start.dims[i] < 0 ? 0 : start.dims[i];
    fits = rest >= 0 || shape.dims[i] < 0 || part.dims[i] < 0;
    before.dims[i] = from < rest ? from : rest;
    after.dims[i] = rest - before.dims[i];
  }
  if (!fits)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "updates %s from %d start_indices on do not fit into %s",
                              MIX_SHAPE_TEXT(part), start.rank, MIX_SHAPE_TEXT(shape));
  if (mix_shape_size(shape) < 0 || mix_shape_size(part) < 0) return mix_identity(x);
  mix_tensor *covered = mix_pad(mix_fill(part, 1, MIX_BOOL), before, after, 0);
  return mix_select(covered, mix_pad(updates, before, after, 0), x);
}

/* ---- segments ---- */

typedef mix_tensor *combine(mix_tensor *a, mix_tensor *b);

/* The number of segments, and ids in which what belongs to none is the segment behind the last. */
static mix_tensor *segments_of(const mix_operands *o, int64_t *count) {
  mix_tensor *ids = mix_cast(mix_operand(o, "segment_ids"), MIX_INT64);
  if (!mix_operand_json(o, "num_segments"))
    return mix_operation_fail(o, MIX_UNSUPPORTED,
                              "how many segments there are depends on the values; give num_segments");
  *count = mix_operand_integer(o, "num_segments");
  mix_operand_flag(o, "sorted");
  if (mix_failed()) return NULL;
  if (*count < 1 || *count > 1 << 24)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "num_segments", "1 to 2^24");
  return mix_select(mix_less(ids, number(ids, 0)), number(ids, (double)*count), ids);
}

static mix_tensor *sums(mix_tensor *x, mix_tensor *ids, int64_t count) {
  mix_tensor *all = mix_segment_sum(x, ids, count + 1);
  return mix_layer_range(all, 0, 0, count, 1);
}
static mix_tensor *segment_sum(const mix_operands *o, mix_tensor *x) {
  int64_t count;
  mix_tensor *ids = segments_of(o, &count);
  return ids ? sums(x, ids, count) : NULL;
}

/* Inputs: is it the first of its segment, and the row. */
static mix_list *combine_next(void *context, mix_list *carry, mix_list *inputs) {
  combine *const *function = context;
  mix_tensor *row = mix_list_get(inputs, 1), *next = (*function)(mix_list_get(carry, 0), row);
  mix_tensor *y = mix_select(mix_list_get(inputs, 0), row, next);
  return mix_failed() ? NULL : mix_list_of(mix_list_of(y), mix_list_of(y));
}

/* x combined in the order of its rows, which are sorted by segments; `empty` where a segment has none. */
static mix_tensor *combined(mix_tensor *x, mix_tensor *ids, int64_t count, combine *function, double empty) {
  const int64_t rows = mix_operand_size(x, 0);
  mix_tensor *order = mix_argsort(ids, 0, false), *sorted = mix_gather(ids, order, 0),
             *data = mix_gather(x, order, 0);
  mix_tensor *inner = mix_slice(sorted, MIX_SHAPE(1), MIX_SHAPE(rows - 1));
  mix_tensor *before = mix_pad(mix_slice(sorted, MIX_SHAPE(0), MIX_SHAPE(rows - 1)), MIX_SHAPE(1),
                               MIX_SHAPE(0), -1),
             *after = mix_pad(inner, MIX_SHAPE(0), MIX_SHAPE(1), -1);
  mix_tensor *first = mix_not_equal(sorted, before), *last = mix_not_equal(sorted, after);
  if (mix_failed()) return NULL;
  mix_tensor *start = mix_squeeze(mix_layer_range(mix_zeros_like(data), 0, 0, 1, 1), MIX_AXES(0));
  mix_list *results =
      start ? mix_scan(combine_next, (void *)&function, mix_list_of(start), mix_list_of(first, data)) : NULL;
  mix_tensor *ends = results ? mix_list_get(mix_list_get(results, 1), 0) : NULL, *seen = last;
  for (int i = 1; ends && i < mix_operand_rank(ends); i++) last = mix_expand_dims(last, -1);
  mix_tensor *y = ends ? sums(mix_select(last, ends, mix_zeros_like(ends)), sorted, count) : NULL;
  seen = mix_greater(sums(mix_cast(seen, MIX_INT32), sorted, count), mix_scalar(0, MIX_INT32));
  for (int i = 1; y && i < mix_operand_rank(y); i++) seen = mix_expand_dims(seen, -1);
  return y ? mix_select(seen, y, number(y, empty)) : NULL;
}

static mix_tensor *segment_combine(const mix_operands *o, mix_tensor *x, combine *function, double empty,
                                   bool extreme) {
  int64_t count;
  mix_tensor *ids = segments_of(o, &count);
  mix_shape shape = mix_tensor_shape(x);
  if (!ids) return NULL;
  if (!shape.rank || mix_operand_rank(ids) != 1)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "expected data with an axis, and one id for each row");
  if (mix_operand_size(x, 0) >= 0 && mix_operand_size(ids, 0) >= 0 &&
      mix_operand_size(x, 0) != mix_operand_size(ids, 0))
    return mix_operation_fail(o, MIX_VALUE_ERROR, "%lld rows and %lld ids", (long long)mix_operand_size(x, 0),
                              (long long)mix_operand_size(ids, 0));
  shape.dims[0] = count;
  if (mix_operand_size(x, 0) < 1 || mix_operand_size(ids, 0) < 1) /* of shapes alone, or nothing */
    return mix_operand_size(x, 0) < 0 ? mix_open_result(x, shape)
                                      : mix_fill(shape, empty, mix_tensor_dtype(x));
  if (!extreme) return combined(x, ids, count, function, empty);
  mix_tensor *y = combined(mix_stop_gradient(x), ids, count, function, empty);
  if (!mix_dtype_is_floating(mix_tensor_dtype(x))) return y;
  /* the gradient is shared by all that are the extreme, as in TensorFlow */
  mix_tensor *all[] = {y, mix_layer_range(y, 0, 0, 1, 1)};
  mix_tensor *table = mix_concat(2, all, 0),
             *hits =
                 mix_cast(mix_equal(mix_stop_gradient(x), mix_gather(table, ids, 0)), mix_tensor_dtype(x));
  mix_tensor *counts = mix_maximum(mix_segment_sum(hits, ids, count + 1), number(x, 1));
  mix_tensor *shares = mix_divide(hits, mix_gather(counts, ids, 0));
  return mix_surrogate_gradient(y, sums(mix_multiply(x, mix_stop_gradient(shares)), ids, count));
}

static double extreme_of(const mix_tensor *x, bool largest) {
  const mix_dtype dtype = mix_tensor_dtype(x);
  if (mix_dtype_is_floating(dtype)) return largest ? mix_dtype_max(dtype) : -mix_dtype_max(dtype);
  return (double)(largest ? mix_dtype_highest(dtype) : mix_dtype_lowest(dtype));
}
static mix_tensor *segment_max(const mix_operands *o, mix_tensor *x) {
  return segment_combine(o, x, mix_maximum, extreme_of(x, false), true);
}
static mix_tensor *segment_min(const mix_operands *o, mix_tensor *x) {
  return segment_combine(o, x, mix_minimum, extreme_of(x, true), true);
}
static mix_tensor *segment_prod(const mix_operands *o, mix_tensor *x) {
  return segment_combine(o, x, mix_multiply, 1, false);
}

/* ---- the table ---- */

#define SEGMENT(name, function)                                                                              \
  MIX_KERAS_OPERATION(name, "math", "data segment_ids", "num_segments sorted", .build = function)

const mix_keras_operation mix_keras_scatter_operations[] = {
    MIX_KERAS_OPERATION("TakeAlongAxis", "numpy", "x indices", "axis", .build = take_along_axis),
    MIX_KERAS_OPERATION("Scatter", "core", "indices values", "shape", .build = scatter),
    MIX_KERAS_OPERATION("ScatterUpdate", "core", "inputs indices updates", "reduction",
                        .build = scatter_update),
    MIX_KERAS_OPERATION("SliceUpdate", "core", "inputs start_indices updates", "", .build = slice_update),
    SEGMENT("SegmentSum", segment_sum),
    SEGMENT("SegmentMax", segment_max),
    SEGMENT("SegmentMin", segment_min),
    SEGMENT("SegmentProd", segment_prod),
    {.operation = {0}}};
