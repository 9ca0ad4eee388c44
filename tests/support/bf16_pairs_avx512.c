/* The engine that multiplies pairs of bfloat16, with VDPBF16PS emulated by two fused multiply-adds, for
 * processors that have AVX-512 without it: mix_gemm_emulated_pairs. Threads flush subnormals, as those of
 * plans do. */
#include "backend/cpu/simd/simd_avx512.h"

#include "backend/cpu/gemm/bf16/pack_avx512.h"

SIMD_INLINE vec upper_half(vec x) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32((int)0xffff0000u)));
}
SIMD_INLINE vec lower_half(vec x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(x), 16));
}
SIMD_INLINE vec pair_fma(vec a, vec b, vec c) {
  return v_fma(lower_half(a), lower_half(b), v_fma(upper_half(a), upper_half(b), c));
}
#undef V_ACCUMULATE
#undef V_ACCUMULATE_BROADCAST
#define V_ACCUMULATE(c, a, b) (c) = pair_fma(a, b, c)
#define V_ACCUMULATE_BROADCAST(c, p, b) (c) = pair_fma(v_set(*(p)), b, c)
#define ENGINE mix_gemm_emulated_pairs
#define WIDENING mix_gemm_f32_avx512
#include "backend/cpu/gemm/bf16/engine.h"
