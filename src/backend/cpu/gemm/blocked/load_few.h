/* One element or few as stored, widened: the tails of transpositions, and parts of them. Included after a
 * simd_*.h. */
#pragma once

#include "backend/cpu/simd/simd.h"

#if SIMD_DOUBLE
SIMD_INLINE double load_one_f64(const double *p) { return *p; }
#else
SIMD_INLINE float load_one_f32(const float *p) { return *p; }
SIMD_INLINE float load_one_f16(const uint16_t *p) { return v_load_f16_part(p, v_first(1))[0]; }
SIMD_INLINE float load_one_bf16(const uint16_t *p) { return v_load_bf16_part(p, v_first(1))[0]; }
#endif

/* float32 numbers rounded to 16 bits: storages as_f16 and as_bf16. */
#if !SIMD_DOUBLE
#define LOAD_ROUNDED(type)                                                                                   \
  SIMD_INLINE vf v_load_as_##type(const float *p) { return v_round_##type(v_load_f32(p)); }                  \
  SIMD_INLINE vf v_load_as_##type##_part(const float *p, v_part part) {                                      \
    return v_round_##type(v_load_f32_part(p, part));                                                         \
  }                                                                                                          \
  SIMD_INLINE float load_one_as_##type(const float *p) { return v_load_as_##type##_part(p, v_first(1))[0]; }
LOAD_ROUNDED(f16)
LOAD_ROUNDED(bf16)
#undef LOAD_ROUNDED
#endif

/* load_few_TYPE: SIMD_FEW elements, widened. */
#if SIMD_FEW && SIMD_BYTES == 16
#define load_few_f64 v_load_f64
#define load_few_f32 v_load_f32
#define load_few_f16 v_load_f16
#define load_few_bf16 v_load_bf16
#define load_few_as_f16 v_load_as_f16
#define load_few_as_bf16 v_load_as_bf16
#elif SIMD_FEW
SIMD_INLINE few load_few_f32(const float *p) { return _mm_loadu_ps(p); }
SIMD_INLINE few load_few_f16(const uint16_t *p) { return _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)p)); }
SIMD_INLINE few load_few_bf16(const uint16_t *p) {
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)p)), 16));
}
SIMD_INLINE few load_few_as_f16(const float *p) {
  return _mm_cvtph_ps(_mm_cvtps_ph(_mm_loadu_ps(p), _MM_FROUND_TO_NEAREST_INT));
}
SIMD_INLINE few load_few_as_bf16(const float *p) {
#if SIMD_BYTES == 64
  return _mm512_castps512_ps128(v_round_bf16(_mm512_zextps128_ps512(_mm_loadu_ps(p))));
#else
  return _mm256_castps256_ps128(v_round_bf16(_mm256_zextps128_ps256(_mm_loadu_ps(p))));
#endif
}
#endif
