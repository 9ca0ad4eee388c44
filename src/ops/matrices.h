/* Matrices (..., rows, columns) in the formulas of linear algebra. */
#pragma once

#include "ops/rules.h"

static inline int mix_rank_of(const mix_tensor *x) { return mix_tensor_shape(x).rank; }
/* The size of an axis counted from the end, -1 or -2; 0 of what has no such axis, as after an error. */
static inline int64_t mix_size_from_end(const mix_tensor *x, int axis) {
  const mix_shape shape = mix_tensor_shape(x);
  return shape.rank + axis < 0 ? 0 : shape.dims[shape.rank + axis];
}
static inline mix_tensor *mix_as_column(mix_tensor *vector) { return mix_expand_dims(vector, -1); }
static inline mix_tensor *mix_as_row(mix_tensor *vector) { return mix_expand_dims(vector, -2); }
static inline mix_tensor *mix_outer(mix_tensor *a, mix_tensor *b) {
  return mix_multiply(mix_as_column(a), mix_as_row(b));
}
static inline mix_tensor *mix_sum_last(mix_tensor *x, bool keep) {
  return mix_reduce_sum(x, MIX_AXES(-1), keep);
}
static inline mix_tensor *mix_sum_rows(mix_tensor *x) { return mix_reduce_sum(x, MIX_AXES(-2), false); }
/* (steps, n): row k is 1 at k. */
static inline mix_tensor *mix_unit_rows(int64_t steps, int64_t n, mix_dtype dtype) {
  return mix_one_hot(mix_range(0, (double)steps, 1, MIX_INT64), n, dtype);
}
/* 1 where the column is behind the step, (steps, n). */
static inline mix_tensor *mix_behind(int64_t n, mix_dtype dtype) {
  mix_tensor *step = mix_range(0, (double)n, 1, MIX_INT64);
  return mix_cast(mix_greater(step, mix_reshape(step, MIX_SHAPE(n, 1))), dtype);
}
/* x with an axis, counted from the front, at another place. */
static inline mix_tensor *mix_with_axis_at(mix_tensor *x, int from, int to) {
  mix_axes order = {.count = mix_rank_of(x)};
  for (int i = 0, next = 0; i < order.count; i++) {
    next += next == from;
    order.axis[i] = i == to ? from : next++;
  }
  return mix_transpose(x, order);
}
static inline mix_tensor *mix_transposed(mix_tensor *x) {
  return mix_with_axis_at(x, mix_rank_of(x) - 1, mix_rank_of(x) - 2);
}
/* The items from `begin` on along an axis. */
static inline mix_tensor *mix_range_of(mix_tensor *x, int axis, int64_t begin, int64_t count) {
  mix_shape from = {.rank = mix_rank_of(x)}, size = from;
  if (axis < 0 || axis >= from.rank) return NULL; /* after an error */
  for (int i = 0; i < size.rank; i++) size.dims[i] = MIX_UNKNOWN;
  from.dims[axis] = begin;
  size.dims[axis] = count;
  return mix_slice(x, from, size);
}
/* True for matrices of known sizes and a floating dtype, square ones if `square`; else records what the call
 * expected. */
bool mix_call_matrices(const char *call, const mix_tensor *x, bool square);
