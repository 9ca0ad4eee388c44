/* Float weights as integers of 8 or 4 bits, with the results of Keras's NumPy code: each step is rounded to
 * the dtype of the weight, for bfloat16, which becomes float32 with Python's first number, to that. A step in
 * float64, rounded once more, is the step in a narrower dtype, because float64 has more than twice its
 * digits. */
#include "nn/layers/stored_weight.h"

#include "base/alloc.h"
#include "graph/unfilled_tensor.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <math.h>

/* The groups of elements that have one scale, numbered in the order of the scale. */
typedef struct groups {
  mix_shape shape, counts;                           /* of the value; of the groups, along each axis */
  int64_t stride[MIX_MAX_RANK], block[MIX_MAX_RANK]; /* elements of one group along the axis */
  int64_t count;
  int padded; /* the axis whose last group lacks elements, which count as zeros; -1: none */
} groups;

static groups groups_of(mix_shape shape, mix_axes reduced, int64_t block) {
  groups g = {.shape = shape, .counts = shape, .count = 1, .padded = -1};
  for (int i = 0; i < shape.rank; i++) g.block[i] = 1;
  for (int i = 0; i < reduced.count; i++) {
    const int axis = reduced.axis[i];
    const int64_t size = shape.dims[axis] ? shape.dims[axis] : 1;
    g.block[axis] = block ? block : size;
    g.counts.dims[axis] = (size - 1) / g.block[axis] + 1;
    if (size % g.block[axis]) g.padded = axis;
  }
  for (int i = shape.rank - 1; i >= 0; i--) {
    g.stride[i] = g.count;
    g.count *= g.counts.dims[i];
  }
  return g;
}

/* The group of the first element of a row along the last axis, and the next row. */
static int64_t next_row(const groups *g, int64_t at[MIX_MAX_RANK]) {
  int64_t group = 0;
  const int last = g->shape.rank - 1;
  for (int i = 0; i < last; i++) group += at[i] / g->block[i] * g->stride[i];
  for (int i = last - 1; i >= 0 && ++at[i] == g->shape.dims[i]; i--) at[i] = 0;
  return group;
}

static int64_t row_length(const groups *g) { return g->shape.rank ? g->shape.dims[g->shape.rank - 1] : 1; }

static int64_t group_in_row(const groups *g, int64_t j) {
  const int last = g->shape.rank - 1;
  return last < 0 ? 0 : j / g->block[last] * g->stride[last];
}

static double rounded(double x, mix_dtype dtype) {
  switch (dtype) {
  case MIX_FLOAT16: return mix_f16_to_f32(mix_f64_to_f16(x));
  case MIX_BFLOAT16:
  case MIX_FLOAT32: return (float)x;
  default: return x;
  }
}

static double clipped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* NaN stays, as in numpy.max. */
static void keep_larger(double *largest, double x) {
  if (x > *largest || x != x) *largest = x;
}

/* The largest of sign times the value, or of its magnitude, for each group. */
static void find_largest(const groups *g, const void *data, mix_dtype dtype, int sign, double *largest) {
  const int64_t length = row_length(g), elements = mix_shape_size(g->shape);
  int64_t at[MIX_MAX_RANK] = {0};
  for (int64_t i = 0; i < g->count; i++) largest[i] = -INFINITY;
  for (int64_t row = 0; row < elements; row += length) {
    double *of_row = largest + next_row(g, at);
    for (int64_t j = 0; j < length; j++) {
      const double x = mix_load_double(data, dtype, row + j);
      keep_larger(&of_row[group_in_row(g, j)], sign ? sign * x : fabs(x));
    }
  }
}

/* The zeros after the end are in the last groups. */
static void include_padding(const groups *g, double *largest) {
  if (g->padded < 0) return;
  const int64_t stride = g->stride[g->padded], count = g->counts.dims[g->padded];
  for (int64_t i = 0; i < g->count; i++)
    if (i / stride % count == count - 1) keep_larger(&largest[i], 0);
}

/* The numbers of each group. */
typedef struct numbers {
  double *scale, *zero;
  double low, high;
} numbers;

static void store_integers(const groups *g, const void *data, mix_dtype dtype, const numbers *n,
                           int8_t *stored) {
  const int64_t length = row_length(g), elements = mix_shape_size(g->shape);
  int64_t at[MIX_MAX_RANK] = {0};
  for (int64_t row = 0; row < elements; row += length) {
    const int64_t first = next_row(g, at);
    for (int64_t j = 0; j < length; j++) {
      const int64_t group = first + group_in_row(g, j);
      const double x = mix_load_double(data, dtype, row + j), s = n->scale[group];
      const double q = n->zero ? rounded(nearbyint(rounded(x / s, dtype)) + n->zero[group], dtype)
                               : nearbyint(rounded(x * s, dtype));
      stored[row + j] = q == q ? (int8_t)clipped(q, n->low, n->high) : 0;
    }
  }
}

static mix_tensor *tensor_of(const double *numbers, mix_dtype dtype, mix_shape shape) {
  void *data;
  mix_tensor *tensor = mix_tensor_unfilled(dtype, shape, &data);
  const int64_t count = mix_shape_size(shape);
  for (int64_t i = 0; tensor && i < count; i++) mix_store_double(data, dtype, i, numbers[i]);
  return tensor;
}

static bool quantize(const groups *g, mix_tensor *value, const numbers *n, mix_quantized *result) {
  void *stored;
  result->stored = mix_tensor_unfilled(MIX_INT8, g->shape, &stored);
  const mix_dtype dtype = mix_tensor_dtype(value);
  result->scale = tensor_of(n->scale, dtype == MIX_BFLOAT16 ? MIX_FLOAT32 : dtype, g->counts);
  result->zero = n->zero ? tensor_of(n->zero, MIX_INT8, g->counts) : NULL;
  if (!result->stored || !result->scale || (n->zero && !result->zero)) return false;
  store_integers(g, mix_tensor_data(value), mix_tensor_dtype(value), n, stored);
  return true;
}

bool mix_quantize_abs_max(mix_tensor *value, mix_axes reduced, const mix_abs_max *how,
                          mix_quantized *result) {
  const void *data = mix_tensor_data(value);
  const mix_dtype dtype = mix_tensor_dtype(value);
  const groups g = groups_of(mix_tensor_shape(value), reduced, 0);
  numbers n = {
      .scale = data ? mix_calloc((size_t)g.count, sizeof(double)) : NULL, .low = how->low, .high = how->high};
  *result = (mix_quantized){0};
  if (!n.scale) return false;
  const double epsilon = rounded(how->epsilon, dtype);
  find_largest(&g, data, dtype, 0, n.scale);
  for (int64_t i = 0; i < g.count; i++)
    n.scale[i] = rounded(how->high / rounded(n.scale[i] + epsilon, dtype), dtype);
  const bool good = quantize(&g, value, &n, result);
  mix_free(n.scale);
  return good;
}

bool mix_quantize_blocks(mix_tensor *value, int axis, int64_t block, mix_quantized *result) {
  const void *data = mix_tensor_data(value);
  const mix_dtype dtype = mix_tensor_dtype(value);
  const groups g = groups_of(mix_tensor_shape(value), MIX_AXES(axis), block);
  numbers n = {.scale = data ? mix_calloc((size_t)g.count, 2 * sizeof(double)) : NULL, .low = -8, .high = 7};
  *result = (mix_quantized){0};
  if (!n.scale) return false;
  n.zero = n.scale + g.count;
  const double epsilon = rounded(1e-7, dtype);
  find_largest(&g, data, dtype, 1, n.scale);
  find_largest(&g, data, dtype, -1, n.zero);
  include_padding(&g, n.scale);
  include_padding(&g, n.zero);
  for (int64_t i = 0; i < g.count; i++) { /* the largest, and minus the smallest */
    double range = rounded(n.scale[i] + n.zero[i], dtype);
    if (dtype == MIX_BFLOAT16) range = mix_bf16_to_f32(mix_f32_to_bf16((float)range));
    n.scale[i] = rounded(rounded(range + epsilon, dtype) / 15, dtype);
    const double zero = rounded(nearbyint(rounded(n.zero[i] / n.scale[i], dtype)) - 8, dtype);
    n.zero[i] = clipped(zero, -8, 7);
  }
  const bool good = quantize(&g, value, &n, result);
  mix_free(n.scale);
  return good;
}
