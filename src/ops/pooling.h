/* The windows of pooling ops, for shape rules and kernels. */
#pragma once

#include "ops/table.h"

enum { MIX_POOL_AXES = 3 }; /* spatial axes, at most */

/* Windows over x (batch, spatial..., channels), as of three spatial axes: missing ones have one element. */
typedef struct mix_pool {
  int64_t batch, channels;
  int64_t in[MIX_POOL_AXES], out[MIX_POOL_AXES], size[MIX_POOL_AXES], stride[MIX_POOL_AXES],
      before[MIX_POOL_AXES];
  int64_t in_cells, out_cells;
} mix_pool;
/* Does the gradient of the maximum go to each of the largest elements, and not to the first alone? As in
 * TensorFlow's kernel of MaxPool3D. */
static inline bool mix_pool_gives_each(mix_shape x) { return x.rank == MIX_POOL_AXES + 2; }
mix_pool mix_pool_of(const mix_pool_attributes *attributes, mix_shape x, mix_shape y);

/* The elements [begin, end) of x along each axis that a window reads; the padding is left out. */
typedef struct mix_pool_range {
  int64_t begin[MIX_POOL_AXES], end[MIX_POOL_AXES];
  int64_t count;
} mix_pool_range;
static inline mix_pool_range mix_pool_range_of(const mix_pool *pool, int64_t window) {
  mix_pool_range range = {.count = 1};
  for (int d = MIX_POOL_AXES - 1; d >= 0; d--) {
    const int64_t first = window % pool->out[d] * pool->stride[d] - pool->before[d];
    const int64_t end = first + pool->size[d];
    window /= pool->out[d];
    range.begin[d] = first > 0 ? first : 0;
    range.end[d] = end < pool->in[d] ? end : pool->in[d];
    range.count *= range.end[d] - range.begin[d];
  }
  return range;
}
/* Cells of x in the order of memory: for (int64_t cell = mix_pool_first(..); cell >= 0; cell =
 * mix_pool_next(..)). `at` is the position. */
static inline int64_t mix_pool_cell(const mix_pool *pool, const int64_t *at) {
  return (at[0] * pool->in[1] + at[1]) * pool->in[2] + at[2];
}
static inline int64_t mix_pool_first(const mix_pool *pool, const mix_pool_range *range, int64_t *at) {
  for (int d = 0; d < MIX_POOL_AXES; d++) at[d] = range->begin[d];
  return range->count > 0 ? mix_pool_cell(pool, at) : -1;
}
static inline int64_t mix_pool_next(const mix_pool *pool, const mix_pool_range *range, int64_t *at) {
  for (int d = MIX_POOL_AXES - 1; d >= 0; d--) {
    if (++at[d] < range->end[d]) return mix_pool_cell(pool, at);
    at[d] = range->begin[d];
  }
  return -1;
}
