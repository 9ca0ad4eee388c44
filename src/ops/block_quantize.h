/* block_quantize: rounds a 16-bit tensor to a narrow format with shared scales and back, as an operand of a
 * product that sums over `count` axes from `axis` on, or over each of `groups` parts of them. Blocks of
 * consecutive elements along these axes share a scale. What is not finite stays as it is, with the numbers of
 * its block. */
#pragma once

#include "graph/op.h"
#include <stdatomic.h>

/* mxfp8: OCP Microscaling Formats (MX) specification 1.0: 32 numbers of float8_e4m3fn and a power of two.
 * nvfp4: NVIDIA, Pretraining large language models with NVFP4, 2025: 16 numbers of 4 bits (E2M1), a scale of
 * float8_e4m3fn, and one of float32 for the tensor. float8-current: one scale for the tensor by its largest
 * magnitude; float8_e4m3fn, gradients float8_e5m2. */
typedef enum mix_block_format {
  MIX_BLOCK_NONE,
  MIX_BLOCK_MXFP8,
  MIX_BLOCK_NVFP4,
  MIX_BLOCK_FLOAT8_CURRENT,
  MIX_BLOCK_FORMATS
} mix_block_format;

/* What became of the numbers of one kind of operand of a layer, in all runs so far. */
typedef struct mix_quantized_count {
  const char *layer, *operand; /* interned; constant: "input", "kernel", "gradient" */
  atomic_llong numbers, saturated, flushed;
  struct mix_quantized_count *next;
} mix_quantized_count;

typedef struct mix_block_attributes {
  int format; /* mix_block_format */
  int axis, count;
  int64_t groups;            /* of the channels of a convolution; else 1 */
  bool gradient, stochastic; /* stochastic: rounded up with the probability of the remainder */
  int64_t seed;
  mix_quantized_count *counted; /* NULL: by nobody */
} mix_block_attributes;

/* Sets the axes of operand 0 or 1 that a contraction sums over, and their groups. False: it sums over the
 * windows of each channel by itself, so there are no blocks. */
bool mix_contracted_axes(const mix_op *op, const void *attributes, const mix_shape operands[2], int operand,
                         mix_block_attributes *axes);
