/* The engine that multiplies pairs of bfloat16, with BFMLALT and BFMLALB emulated by two fused multiply-adds,
 * for processors that lack them: mix_gemm_emulated_pairs. Threads flush subnormals, as those of plans do. */
#include "backend/cpu/simd/simd_neon.h"

#include "backend/cpu/gemm/bf16/pack_neon.h"

SIMD_INLINE vec upper_half(vec x) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0xffff0000u)));
}
SIMD_INLINE vec lower_half(vec x) { return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(x), 16)); }
SIMD_INLINE vec pair_fma(vec a, vec b, vec c) {
  return v_fma(lower_half(a), lower_half(b), v_fma(upper_half(a), upper_half(b), c));
}
#undef V_ACCUMULATE
#undef V_ACCUMULATE_BROADCAST
#define V_ACCUMULATE(c, a, b) ((c) = pair_fma(a, b, c))
#define V_ACCUMULATE_BROADCAST(c, p, b) ((c) = pair_fma(v_set(*(p)), b, c))
#define ENGINE mix_gemm_emulated_pairs
#define WIDENING mix_gemm_f32_neon
#include "backend/cpu/gemm/bf16/engine.h"
