/* The sizes of a convolution, for kernels. */
#pragma once

#include "ops/table.h"
#include "tensor/type.h"

enum { MIX_CONV_AXES = 3 };

/* Of three spatial axes: those that a convolution lacks come first and have one cell. A depthwise one is
 * grouped: its groups have one channel each, and its kernel lies as (spatial..., 1, filters). */
typedef struct mix_conv_geometry {
  int64_t batch, groups;
  int64_t channels, filters; /* of x and of y, in each group */
  int64_t in[MIX_CONV_AXES], kernel[MIX_CONV_AXES], out[MIX_CONV_AXES];
  int64_t stride[MIX_CONV_AXES], dilation[MIX_CONV_AXES], before[MIX_CONV_AXES];
} mix_conv_geometry;
typedef enum mix_conv_kind {
  MIX_CONV_FORWARD,         /* (x, kernel) -> y */
  MIX_CONV_INPUT_GRADIENT,  /* (dy, kernel) -> dx */
  MIX_CONV_KERNEL_GRADIENT, /* (x, dy) -> dk */
} mix_conv_kind;
mix_conv_kind mix_conv_kind_of(const mix_op *op);
/* Of an op of the three kinds, from the types of its two operands, whose shapes are known. */
mix_conv_geometry mix_conv_geometry_of(const mix_op *op, const mix_conv_attributes *attributes,
                                       const mix_type *operands);

/* Where the cell of the kernel lies in x for that cell of y; outside of x is padding. */
static inline int64_t mix_conv_position(const mix_conv_geometry *g, int axis, int64_t out, int64_t kernel) {
  return out * g->stride[axis] + kernel * g->dilation[axis] - g->before[axis];
}
static inline int64_t mix_conv_cells(const int64_t sizes[MIX_CONV_AXES]) {
  return sizes[0] * sizes[1] * sizes[2];
}
