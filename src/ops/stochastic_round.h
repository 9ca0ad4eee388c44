/* Stochastic rounding of float32 to bfloat16: up with the probability of what rounding down would lose, so
 * that the mean is the number itself (Gupta et al.: Deep learning with limited numerical precision, 2015). */
#pragma once

#include "base/philox.h"
#include "tensor/convert.h"
#include <stdbool.h>

/* In place of a stream: to nearest even, in integer arithmetic, which no excess precision leaves out. */
#define MIX_ROUND_NEAREST (-1)
static inline bool mix_stream_exists(double stream) {
  return stream == MIX_ROUND_NEAREST || (stream >= 0 && stream < 0x1p24);
}

/* The counter of the Philox blocks of a stream in a step: 2^40 steps, 2^24 streams. */
static inline uint64_t mix_stochastic_counter(int64_t step, double stream) {
  return (uint64_t)step ^ (uint64_t)stream << 40;
}
/* The 16 random bits of an element: eight elements share a block. */
static inline uint32_t mix_stochastic_draw(int64_t seed, int64_t step, double stream, int64_t element) {
  const uint64_t counter = mix_stochastic_counter(step, stream);
  const mix_philox block = mix_philox_block((uint64_t)seed, counter, (uint64_t)element / 8);
  return block.v[element % 8 / 2] >> (element % 2 ? 16 : 0) & 0xffff;
}

/* x, a float32 number's bits, rounded to a bfloat16 number by 16 random bits. Infinity stays, and NaN. */
static inline uint32_t mix_stochastic_bits(uint32_t x, uint32_t draw) {
  const uint32_t nan = (x & 0x7fffffff) > 0x7f800000;
  return (nan ? x | 0x400000 : x + draw) & 0xffff0000;
}
static inline uint32_t mix_nearest_bits(uint32_t x) { return mix_stochastic_bits(x, 0x7fff + (x >> 16 & 1)); }
