/* Four elements as stored, widened to float32: parts of transpositions. 128-bit shuffles run on two ports,
 * 512-bit ones on one. */
#ifndef MIX_BACKEND_CPU_GEMM_BLOCKED_LOAD_FOUR_H
#define MIX_BACKEND_CPU_GEMM_BLOCKED_LOAD_FOUR_H

#include <immintrin.h>
#include <stdint.h>

static inline __m128 load_four_f32(const float *p) { return _mm_loadu_ps(p); }
static inline __m128 load_four_f16(const uint16_t *p) {
  return _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)p));
}
static inline __m128 load_four_bf16(const uint16_t *p) {
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)p)), 16));
}

#endif
