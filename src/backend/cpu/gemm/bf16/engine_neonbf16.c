/* The engine with BFMLALT and BFMLALB: tiles of 8 x 8. */
#include "backend/cpu/simd/simd_neon.h"

#include "backend/cpu/gemm/bf16/pack_neon.h"

SIMD_INLINE vec pair_fma(vec a, vec b, vec c) {
  const bfloat16x8_t x = vreinterpretq_bf16_f32(a), y = vreinterpretq_bf16_f32(b);
  return vbfmlalbq_f32(vbfmlaltq_f32(c, x, y), x, y);
}
#undef V_ACCUMULATE
#undef V_ACCUMULATE_BROADCAST
#define V_ACCUMULATE(c, a, b) ((c) = pair_fma(a, b, c))
#define V_ACCUMULATE_BROADCAST(c, p, b) ((c) = pair_fma(v_set(*(p)), b, c))
#define ENGINE mix_gemm_f32_neonbf16
#define WIDENING mix_gemm_f32_neon
#include "backend/cpu/gemm/bf16/engine.h"
