#include "tensor/shape.h"

#include "base/error.h"
#include <stdio.h>

static inline bool valid_rank(int rank) { return rank >= 0 && rank <= MIX_MAX_RANK; }

bool mix_shape_is_known(mix_shape shape) {
  if (!valid_rank(shape.rank)) return false;
  for (int i = 0; i < shape.rank; i++)
    if (shape.dims[i] == MIX_UNKNOWN) return false;
  return true;
}

bool mix_shape_option(mix_shape shape, const char *call, const char *option) {
  if (!valid_rank(shape.rank))
    mix_fail_value("%s: %s has rank %d; expected 0 to %d", call, option, shape.rank, MIX_MAX_RANK);
  return valid_rank(shape.rank);
}

int64_t mix_shape_size(mix_shape shape) {
  if (!mix_shape_is_known(shape)) return MIX_UNKNOWN;
  int64_t size = 1;
  for (int i = 0; i < shape.rank; i++) {
    if (shape.dims[i] == 0) return 0;
    if (__builtin_mul_overflow(size, shape.dims[i], &size)) size = INT64_MAX;
  }
  return size;
}

/* Dimensions after a 0 still count, because strides are products of them. */
int64_t mix_shape_checked_size(mix_shape shape) {
  if (!valid_rank(shape.rank)) return -1;
  int64_t bytes = sizeof(double);
  bool empty = false;
  for (int i = 0; i < shape.rank; i++) {
    if (shape.dims[i] < 0) return -1;
    if (shape.dims[i] == 0)
      empty = true;
    else if (__builtin_mul_overflow(bytes, shape.dims[i], &bytes))
      return -1;
  }
  return empty ? 0 : bytes / (int64_t)sizeof(double);
}

size_t mix_value_bytes(mix_dtype dtype, mix_shape shape) {
  int64_t size = mix_shape_checked_size(shape);
  return size < 0 ? 0 : (size_t)size * mix_dtype_size(dtype);
}

bool mix_shape_equal(mix_shape a, mix_shape b) {
  if (a.rank != b.rank || !valid_rank(a.rank)) return false;
  for (int i = 0; i < a.rank; i++)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}

bool mix_shape_compatible(mix_shape a, mix_shape b) {
  if (a.rank != b.rank || !valid_rank(a.rank)) return false;
  for (int i = 0; i < a.rank; i++)
    if (a.dims[i] != b.dims[i] && a.dims[i] != MIX_UNKNOWN && b.dims[i] != MIX_UNKNOWN) return false;
  return true;
}

/* Broadcasts two dimensions. Unknown with 1 stays unknown. Unknown with another number gives that number,
 * as it can only be that number or 1. */
static bool broadcast_dimension(int64_t a, int64_t b, int64_t *result) {
  if (a == 1 || a == b)
    *result = b;
  else if (b == 1 || b == MIX_UNKNOWN)
    *result = a;
  else if (a == MIX_UNKNOWN)
    *result = b;
  else
    return false;
  return true;
}

bool mix_shape_broadcast(mix_shape a, mix_shape b, mix_shape *result) {
  if (!valid_rank(a.rank) || !valid_rank(b.rank)) return false;
  mix_shape joined = {.rank = a.rank > b.rank ? a.rank : b.rank};
  for (int i = 1; i <= joined.rank; i++) {
    int64_t dim_a = i <= a.rank ? a.dims[a.rank - i] : 1, dim_b = i <= b.rank ? b.dims[b.rank - i] : 1;
    if (!broadcast_dimension(dim_a, dim_b, &joined.dims[joined.rank - i])) return false;
  }
  if (result) *result = joined;
  return true;
}

bool mix_shape_broadcasts_to(mix_shape from, mix_shape to) {
  if (from.rank > to.rank) return false;
  for (int i = 1; i <= from.rank; i++) {
    int64_t dim = from.dims[from.rank - i], wanted = to.dims[to.rank - i];
    if (dim != 1 && dim != wanted && dim != MIX_UNKNOWN && wanted != MIX_UNKNOWN) return false;
  }
  return true;
}

int mix_axis_normal(int axis, int rank) {
  if (axis < -rank || axis >= rank) return -1;
  return axis < 0 ? axis + rank : axis;
}

const char *mix_shape_text(mix_shape shape, char *text, size_t size) {
  if (!text || size == 0) return "";
  if (!valid_rank(shape.rank)) {
    snprintf(text, size, "(a shape of rank %d)", shape.rank);
    return text;
  }
  size_t length = 0;
  for (int i = 0; i < shape.rank && length < size; i++) {
    const char *before = i ? ", " : "(";
    if (shape.dims[i] == MIX_UNKNOWN)
      length += (size_t)snprintf(text + length, size - length, "%sNone", before);
    else
      length += (size_t)snprintf(text + length, size - length, "%s%lld", before, (long long)shape.dims[i]);
  }
  if (length < size) snprintf(text + length, size - length, "%s", shape.rank ? ")" : "()");
  return text;
}
