/* The engine in NEON: tiles of 6 x 8. Two products of int8 fit into 16 bits only one by one, so that pairs of
 * products (SMULL) are added to sums of 32 bits (SADALP): two for each column. */
#include "backend/cpu/simd/attributes.h"
#include <arm_neon.h>

typedef struct pairs {
  int32x4_t low, high; /* of two columns each */
} pairs;
SIMD_INLINE pairs begin_pairs(uint32_t start) {
  const int32x4_t x = vsetq_lane_s32((int32_t)start, vsetq_lane_s32((int32_t)start, vdupq_n_s32(0), 0), 2);
  return (pairs){x, x};
}
SIMD_INLINE pairs add_products(pairs sums, int8x16_t a, int8x16_t b) {
  sums.low = vpadalq_s16(sums.low, vmull_s8(vget_low_s8(a), vget_low_s8(b)));
  sums.high = vpadalq_s16(sums.high, vmull_high_s8(a, b));
  return sums;
}
/* The rows of a tile one after the other: else compilers compute products of several before they add them,
 * and spill sums. */
SIMD_INLINE int8x16_t broadcast(uint32_t group) {
  __asm__ volatile("" ::: "memory");
  return vreinterpretq_s8_u32(vdupq_n_u32(group));
}

#define SIMD_BYTES 16
#define VECTORS 2
#define GROUP 4
#define OFFSET 0
#define FACTOR int8x16_t
#define BROADCAST(x) broadcast(x)
#define SUMS pairs
#define BEGIN_SUMS(x) begin_pairs(x)
#define END_SUMS(sums) ((lanes)vpaddq_s32((sums).low, (sums).high))
#define MULTIPLY_ADD(sums, a, b) add_products(sums, a, (int8x16_t)(b))
#define PACKING "backend/cpu/gemm/integer/pack_neon.h"
#define ENGINE mix_integer_neon
#include "backend/cpu/gemm/integer/engine.h"
