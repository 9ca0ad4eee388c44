/* Elements as stored to vectors of sums and back: widen_TYPE, widen_some_TYPE (the first `count` lanes, the rest zero; reads no
 * further), narrow_TYPE, narrow_some_TYPE, for TYPE f16, bf16, f32 where sums are float, f64 where they are double. */
#ifndef MIX_BACKEND_CPU_GEMM_STORAGE_H
#define MIX_BACKEND_CPU_GEMM_STORAGE_H

#include "backend/cpu/gemm/vector.h"
#include "tensor/convert.h"

#define widen_REAL load
GEMM_INLINE vector widen_some_REAL(const GEMM_REAL *p, int64_t count) { return load_some(p, (int)count, first_lanes(count)); }
GEMM_INLINE void narrow_REAL(GEMM_REAL *p, vector v) { store(p, v); }
GEMM_INLINE void narrow_some_REAL(GEMM_REAL *p, int64_t count, vector v) { store_lanes(p, first_lanes(count), v); }
#define widen_f32 widen_REAL
#define widen_some_f32 widen_some_REAL
#define narrow_f32 narrow_REAL
#define narrow_some_f32 narrow_some_REAL
#define stream_f32 stream
#define stream_f64 stream
#define widen_f64 widen_REAL
#define widen_some_f64 widen_some_REAL
#define narrow_f64 narrow_REAL
#define narrow_some_f64 narrow_some_REAL

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
GEMM_INLINE __m256i to_f16(vector v) { return _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* As mix_f32_to_bf16. */
GEMM_INLINE __m256i to_bf16(vector v) {
  const __m512i x = (__m512i)v, half = _mm512_add_epi32(x, _mm512_set1_epi32(0x7fff));
  const __mmask16 odd = _mm512_test_epi32_mask(x, _mm512_set1_epi32(0x10000));
  const __m512i rounded = _mm512_mask_add_epi32(half, odd, half, _mm512_set1_epi32(1));
  const __mmask16 nan = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_or_epi32(rounded, nan, x, _mm512_set1_epi32(0x400000)), 16));
}
GEMM_INLINE void stream_f16(uint16_t *p, vector v) { _mm256_stream_si256((__m256i *)p, to_f16(v)); }
GEMM_INLINE void stream_bf16(uint16_t *p, vector v) { _mm256_stream_si256((__m256i *)p, to_bf16(v)); }
GEMM_INLINE void narrow_f16(uint16_t *p, vector v) { _mm256_storeu_si256((__m256i *)p, to_f16(v)); }
GEMM_INLINE void narrow_bf16(uint16_t *p, vector v) { _mm256_storeu_si256((__m256i *)p, to_bf16(v)); }
GEMM_INLINE void narrow_some_f16(uint16_t *p, int64_t count, vector v) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), to_f16(v));
}
GEMM_INLINE void narrow_some_bf16(uint16_t *p, int64_t count, vector v) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), to_bf16(v));
}

/* The `narrow` of an engine with its own driver and float sums: narrow_rows_f16, narrow_rows_bf16. */
#define GEMM_NARROW_ROWS(type)                                                                                                          \
  static void narrow_rows_##type(const void *sums, int64_t stride, int64_t rows, int64_t columns, void *result,                    \
                                 int64_t result_stride) {                                                                          \
    for (int64_t i = 0; i < rows; i++) {                                                                                           \
      const float *from = (const float *)sums + i * stride;                                                                        \
      uint16_t *to = (uint16_t *)result + i * result_stride;                                                                       \
      int64_t j = 0;                                                                                                               \
      for (; j + LANES <= columns; j += LANES) narrow_##type(to + j, load(from + j));                                              \
      if (j < columns) narrow_some_##type(to + j, columns - j, load_lanes(from + j, first_lanes(columns - j)));                    \
    }                                                                                                                              \
  }

#else
#if defined(__AVX2__)

GEMM_INLINE vector widen_f16(const uint16_t *p) { return (vector)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
GEMM_INLINE vector widen_bf16(const uint16_t *p) {
  return (vector)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16);
}
GEMM_INLINE __m128i to_f16(vector v) { return _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* As mix_f32_to_bf16. */
GEMM_INLINE __m128i to_bf16(vector v) {
  const __m256i x = (__m256i)v, odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(x, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(x, _mm256_set1_epi32(0x400000));
  const __m256 nan = _mm256_cmp_ps((__m256)v, (__m256)v, _CMP_UNORD_Q);
  const __m256i u = _mm256_srli_epi32((__m256i)_mm256_blendv_ps((__m256)rounded, (__m256)quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
}
GEMM_INLINE void stream_f16(uint16_t *p, vector v) { _mm_stream_si128((__m128i *)p, to_f16(v)); }
GEMM_INLINE void stream_bf16(uint16_t *p, vector v) { _mm_stream_si128((__m128i *)p, to_bf16(v)); }
GEMM_INLINE void narrow_f16(uint16_t *p, vector v) { _mm_storeu_si128((__m128i *)p, to_f16(v)); }
GEMM_INLINE void narrow_bf16(uint16_t *p, vector v) { _mm_storeu_si128((__m128i *)p, to_bf16(v)); }

#else

/* float16 to float32 exactly, without float32 subnormals on the way, which a thread that flushes them would lose. */
GEMM_INLINE float f16_value(uint16_t h) {
  const uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
  if (magnitude >= 0x0f800000u) return mix_bits_float(sign | 0x70000000u | (magnitude + 0x70000000u));
  if (magnitude >= 0x00800000u) return mix_bits_float(sign | (magnitude + 0x38000000u));
  const float tiny = mix_bits_float(magnitude + 0x38800000u) - mix_bits_float(0x38800000u);
  return mix_bits_float(sign | mix_float_bits(tiny));
}
GEMM_INLINE vector widen_f16(const uint16_t *p) {
  float lanes[LANES];
  for (int i = 0; i < LANES; i++) lanes[i] = f16_value(p[i]);
  return load(lanes);
}
GEMM_INLINE vector widen_bf16(const uint16_t *p) {
  float lanes[LANES];
  for (int i = 0; i < LANES; i++) lanes[i] = mix_bf16_to_f32(p[i]);
  return load(lanes);
}
GEMM_INLINE void narrow_f16(uint16_t *p, vector v) {
  for (int i = 0; i < LANES; i++) p[i] = mix_f32_to_f16(v[i]);
}
GEMM_INLINE void narrow_bf16(uint16_t *p, vector v) {
  for (int i = 0; i < LANES; i++) p[i] = mix_f32_to_bf16(v[i]);
}

#endif

#define WIDEN_SOME(type)                                                                                                           \
  GEMM_INLINE vector widen_some_##type(const uint16_t *p, int64_t count) {                                                         \
    uint16_t some[LANES] = {0};                                                                                                    \
    memcpy(some, p, (size_t)count * sizeof *p);                                                                                    \
    return widen_##type(some);                                                                                                     \
  }                                                                                                                                \
  GEMM_INLINE void narrow_some_##type(uint16_t *p, int64_t count, vector v) {                                                      \
    uint16_t some[LANES];                                                                                                          \
    narrow_##type(some, v);                                                                                                        \
    memcpy(p, some, (size_t)count * sizeof *p);                                                                                    \
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
