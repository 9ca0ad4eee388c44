/* The engine with BFMLALT and BFMLALB: tiles of 8 x 8. */
#include "backend/cpu/simd/simd_neon.h"

#include "backend/cpu/gemm/bf16/pack_neon.h"

SIMD_INLINE vec pair_fma(vec a, vec b, vec c) {
  const bfloat16x8_t x = vreinterpretq_bf16_f32(a), y = vreinterpretq_bf16_f32(b);
  return vbfmlalbq_f32(vbfmlaltq_f32(c, x, y), x, y);
}
/* A pair of A for all lanes, one after the other: else compilers load those of several rows before they use
 * them, and spill. (As an element of the instructions gcc 12 puts it into registers they cannot name.) */
SIMD_INLINE vec next_pair(const float *pair) {
  __asm__ volatile("" ::: "memory");
  return v_set(*pair);
}
#undef V_ACCUMULATE
#define V_ACCUMULATE(c, a, b) ((c) = pair_fma(a, b, c))
#define TILE_BROADCAST(p) next_pair(p)
#define TILE_MULTIPLIES_FROM_MEMORY 0
#define ENGINE mix_gemm_f32_neonbf16
#define WIDENING mix_gemm_f32_neon
#include "backend/cpu/gemm/bf16/engine.h"
