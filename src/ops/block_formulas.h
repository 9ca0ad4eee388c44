/* What block_quantize computes, for its kernels: the numbers of the formats, their scales, and rounding. All
 * of it is float32 arithmetic in one order, so that kernels have the same bits. */
#pragma once

#include "base/philox.h"
#include "ops/block_quantize.h"
#include "tensor/convert.h"

#include <float.h>
#include <math.h>

/* The numbers that a scale is shared for. */
typedef struct mix_block_numbers {
  int fraction_bits, min_exponent;
  float max, limit; /* limit: the midpoint above the largest number */
} mix_block_numbers;

static inline mix_block_numbers mix_block_numbers_of(const mix_block_attributes *a) {
  if (a->format == MIX_BLOCK_NVFP4) return (mix_block_numbers){1, 0, 6, 7};
  if (a->format == MIX_BLOCK_FLOAT8_CURRENT && a->gradient) return (mix_block_numbers){2, -14, 57344, 61440};
  return (mix_block_numbers){3, -6, 448, 464};
}

/* The elements of a block; 0: the whole tensor. */
static inline int64_t mix_block_size_of(const mix_block_attributes *a) {
  return a->format == MIX_BLOCK_FLOAT8_CURRENT ? 0 : a->format == MIX_BLOCK_NVFP4 ? 16 : 32;
}

/* What a product sums over are `depth` elements, `inner` apart. */
typedef struct mix_block_layout {
  int64_t outer, depth, inner;
} mix_block_layout;

static inline mix_block_layout mix_block_layout_of(const mix_block_attributes *a, mix_shape shape) {
  mix_block_layout l = {1, 1, 1};
  for (int d = 0; d < shape.rank; d++)
    *(d < a->axis ? &l.outer : d < a->axis + a->count ? &l.depth : &l.inner) *= shape.dims[d];
  l.outer *= a->groups, l.depth /= a->groups;
  return l;
}

static inline float mix_block_power_of_two(int exponent) {
  return mix_bits_float((uint32_t)(exponent + 127) << 23);
}
static inline int mix_block_exponent_of(float magnitude) {
  return (int)(mix_float_bits(magnitude) >> 23) - 127;
}

/* A magnitude in the format. random: NULL, or bits that round it up or down. */
static inline float mix_block_round(const mix_block_numbers *numbers, float a, const uint32_t *random) {
  const int own = mix_block_exponent_of(a),
            exponent = own > numbers->min_exponent ? own : numbers->min_exponent;
  const float step = mix_block_power_of_two(exponent - numbers->fraction_bits),
              steps = a * mix_block_power_of_two(numbers->fraction_bits - exponent);
  /* At most 16, if finite: this addition leaves no bit below 1. */
  const float drawn = random ? steps + (float)(*random >> 8) * 0x1p-24f : 0,
              whole = random ? (float)(int)(drawn < 32 ? drawn : 32) : (steps + 0x1.8p23f) - 0x1.8p23f;
  const float size = whole * step;
  return size > numbers->max ? numbers->max : size;
}

/* What becomes of a block: magnitudes times `encode` are rounded and multiplied by `decode`. A negative
 * decode: its numbers stay as they are. */
typedef struct mix_block_scales {
  float encode, decode;
} mix_block_scales;

/* Of the tensor, which moves its largest magnitude to the largest that the format and its blocks have. */
static inline mix_block_scales mix_block_scales_of_tensor(const mix_block_attributes *a, float largest) {
  if (a->format == MIX_BLOCK_MXFP8) return (mix_block_scales){1, 1};
  if (!isfinite(largest) || largest == 0) return (mix_block_scales){0, -1};
  const float whole = a->format == MIX_BLOCK_NVFP4 ? 448 * 6 : mix_block_numbers_of(a).max,
              encode = fminf(whole / largest, FLT_MAX);
  return (mix_block_scales){encode, 1 / encode};
}

/* Of a block. The shared scale of MX is the power of two at or below the largest magnitude, over that of the
 * largest number, 2^8. It ends at 2^-126 instead of 2^-127, which float32 has as a subnormal number. */
static inline mix_block_scales mix_block_scales_of(const mix_block_attributes *a, mix_block_scales tensor,
                                                   float largest) {
  if (!isfinite(largest) || largest == 0 || tensor.decode < 0) return (mix_block_scales){0, -1};
  if (a->format == MIX_BLOCK_MXFP8) {
    const int exponent = mix_block_exponent_of(largest) - 8;
    const float scale = mix_block_power_of_two(exponent > -126 ? exponent : -126);
    return (mix_block_scales){1 / scale, scale};
  }
  if (a->format == MIX_BLOCK_NVFP4) {
    const float scale = mix_round_to(fminf(largest / 6 * tensor.encode, 448), MIX_FLOAT8_E4M3FN);
    return (mix_block_scales){scale == 0 ? 0 : tensor.encode / scale, scale * tensor.decode};
  }
  return tensor;
}

/* Philox's counter: other numbers are rounded by other draws. A sum over elements, in any order. */
static inline uint64_t mix_block_counter(uint16_t bits, int64_t index) {
  return (bits + UINT64_C(1)) * ((uint64_t)index * UINT64_C(0x9e3779b97f4a7c15) | 1);
}

/* Of numbers other than 0: all, saturated, flushed. */
static inline void mix_block_count(mix_quantized_count *to, const int64_t counts[3]) {
  if (!to) return;
  atomic_fetch_add_explicit(&to->numbers, counts[0], memory_order_relaxed);
  atomic_fetch_add_explicit(&to->saturated, counts[1], memory_order_relaxed);
  atomic_fetch_add_explicit(&to->flushed, counts[2], memory_order_relaxed);
}
