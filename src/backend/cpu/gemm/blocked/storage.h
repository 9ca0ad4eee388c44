/* Elements as stored to vectors of what is multiplied: widen_TYPE, widen_some_TYPE (the first `count` lanes, the rest zero; reads no
 * further), for TYPE f16, bf16, f32 where sums are float, f64 where they are double. (Back: store_rows of backend/cpu/vector.h.) */
#ifndef MIX_BACKEND_CPU_GEMM_BLOCKED_STORAGE_H
#define MIX_BACKEND_CPU_GEMM_BLOCKED_STORAGE_H

#include "backend/cpu/gemm/vector.h"
#include "tensor/convert.h"

#define widen_REAL load
GEMM_INLINE vector widen_some_REAL(const GEMM_REAL *p, int64_t count) { return load_some(p, (int)count, first_lanes(count)); }
#define widen_f32 widen_REAL
#define widen_some_f32 widen_some_REAL
#define widen_f64 widen_REAL
#define widen_some_f64 widen_some_REAL

#if !GEMM_DOUBLE
#if defined(__AVX512F__)

GEMM_INLINE vector widen_f16(const uint16_t *p) { return (vector)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
GEMM_INLINE vector widen_some_f16(const uint16_t *p, int64_t count) {
  return (vector)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(count), p));
}
GEMM_INLINE vector bf16_lanes(__m256i x) { return (vector)_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16); }
GEMM_INLINE vector widen_bf16(const uint16_t *p) { return bf16_lanes(_mm256_loadu_si256((const __m256i *)p)); }
GEMM_INLINE vector widen_some_bf16(const uint16_t *p, int64_t count) {
  return bf16_lanes(_mm256_maskz_loadu_epi16(first_lanes(count), p));
}

#else
#if defined(__AVX2__)

GEMM_INLINE vector widen_f16(const uint16_t *p) { return (vector)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
GEMM_INLINE vector widen_bf16(const uint16_t *p) {
  return (vector)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16);
}

#else

/* float16 to float32 exactly, without float32 subnormals on the way, which a thread that flushes them would lose. */
GEMM_INLINE vector widen_f16(const uint16_t *p) {
  enum { INFINITE = 0x0f800000, NORMAL = 0x00800000, SMALLEST = 0x38800000 };
  typedef int32_t lanes __attribute__((vector_size(VECTOR_BYTES)));
  const lanes h = {p[0], p[1], p[2], p[3]}, magnitude = (h & 0x7fff) << 13, zero = {0};
  const lanes finite = magnitude < INFINITE, normal = magnitude >= NORMAL;
  const lanes tiny = (lanes)((vector)(magnitude + SMALLEST) - (vector)(zero + SMALLEST));
  const lanes bits = (finite & (magnitude + 0x38000000)) | (~finite & (magnitude + 0x70000000));
  return (vector)((normal & bits) | (~normal & tiny) | (h & 0x8000) << 16);
}
GEMM_INLINE vector widen_bf16(const uint16_t *p) {
  float lanes[LANES];
  for (int i = 0; i < LANES; i++) lanes[i] = mix_bf16_to_f32(p[i]);
  return load(lanes);
}

#endif

#define WIDEN_SOME(type)                                                                                                           \
  GEMM_INLINE vector widen_some_##type(const uint16_t *p, int64_t count) {                                                         \
    uint16_t some[LANES] = {0};                                                                                                    \
    memcpy(some, p, (size_t)count * sizeof *p);                                                                                    \
    return widen_##type(some);                                                                                                     \
  }
WIDEN_SOME(f16)
WIDEN_SOME(bf16)
#undef WIDEN_SOME

#endif
#endif

/* Four consecutive elements of each of four rows, transposed: 128-bit shuffles run on two ports, 512-bit ones on one. */
#if defined(__AVX2__) && !GEMM_DOUBLE
GEMM_INLINE __m128 four_f32(const float *p) { return _mm_loadu_ps(p); }
GEMM_INLINE __m128 four_f16(const uint16_t *p) { return _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)p)); }
GEMM_INLINE __m128 four_bf16(const uint16_t *p) {
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)p)), 16));
}
#endif

#endif
