/* The interpolation along an axis, for the kernels of resize_axis. */
#pragma once

#include "ops/table.h"

/* Element i of the longer or shorter axis is the sum of weights[i * span + k] times element first[i] + k of
 * the axis, k < count[i]. One allocation, freed with mix_free. */
typedef struct mix_resize_weights {
  int64_t span;
  int64_t *first, *count; /* `length` of each */
  double *weights;
} mix_resize_weights;
/* NULL with the error recorded. */
mix_resize_weights *mix_resize_weights_new(const mix_resize_attributes *attributes);
