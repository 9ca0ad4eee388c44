/* One or four elements as stored, widened: the tails of transpositions, and parts of them. Included after a
 * simd_*.h. */
#ifndef MIX_BACKEND_CPU_GEMM_BLOCKED_LOAD_FEW_H
#define MIX_BACKEND_CPU_GEMM_BLOCKED_LOAD_FEW_H

#include "backend/cpu/simd/simd.h"

#if SIMD_DOUBLE
SIMD_INLINE double load_one_f64(const double *p) { return *p; }
#else
SIMD_INLINE float load_one_f32(const float *p) { return *p; }
SIMD_INLINE float load_one_f16(const uint16_t *p) { return v_load_f16_part(p, v_first(1))[0]; }
SIMD_INLINE float load_one_bf16(const uint16_t *p) { return v_load_bf16_part(p, v_first(1))[0]; }
#endif

/* 128-bit shuffles run on two ports, 512-bit ones on one. */
#if SIMD_BYTES >= 32 && !SIMD_DOUBLE
SIMD_INLINE __m128 load_four_f32(const float *p) { return _mm_loadu_ps(p); }
SIMD_INLINE __m128 load_four_f16(const uint16_t *p) {
  return _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)p));
}
SIMD_INLINE __m128 load_four_bf16(const uint16_t *p) {
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)p)), 16));
}
#endif

#endif
