/* Which cells of a kernel reach a cell of x, for the gradient of the input. */
#pragma once

#include "backend/cpu/gemm/block_arithmetic.h"
#include "ops/convolution.h"

/* Along one axis: cell i of `count` is cell kernel + i * kernel_step of the kernel, and lies at `at` + i *
 * step of the other operand. */
typedef struct mix_conv_taps {
  int64_t kernel, kernel_step, at, step, count;
} mix_conv_taps;

static inline int64_t mix_greatest_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* Those cells k of the kernel for which the stride divides cell + before - k dilation; the quotient is a cell
 * of dy, or outside of it. */
static inline mix_conv_taps mix_conv_taps_of_dx(const mix_conv_geometry *g, int axis, int64_t cell) {
  const int64_t stride = g->stride[axis], dilation = g->dilation[axis],
                divisor = mix_greatest_divisor(stride, dilation), from = cell + g->before[axis];
  int64_t first = 0;
  while (first < g->kernel[axis] && (from - first * dilation) % stride) first++;
  const int64_t left = g->kernel[axis] - first, step = stride / divisor;
  return (mix_conv_taps){.kernel = first,
                         .kernel_step = step,
                         .at = left ? (from - first * dilation) / stride : 0,
                         .step = -(dilation / divisor),
                         .count = divide_up(left, step)};
}
