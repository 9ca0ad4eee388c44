/* The vector vocabulary (simd.h) for AVX2 with FMA and F16C: 8 floats or 4 doubles. */
#pragma once

#include "backend/cpu/simd/simd.h"
#include <immintrin.h>

#define SIMD_BYTES 32
#define SIMD_REGISTERS 16
#define SIMD_MASKS 0
#define V_ACCUMULATE(c, a, b) ((c) = v_fma(a, b, c))
#define V_ACCUMULATE_BROADCAST(c, p, b) ((c) = v_fma(v_set(*(p)), b, c))

typedef int64_t v_part;
SIMD_INLINE v_part v_first(int64_t n) { return n; }

#if SIMD_DOUBLE

#define SIMD_FEW 0
#define LANES 4
typedef __m256d vec;

SIMD_INLINE vec v_set(double x) { return _mm256_set1_pd(x); }
SIMD_INLINE vec v_load(const double *p) { return _mm256_loadu_pd(p); }
SIMD_INLINE void v_store(double *p, vec x) { _mm256_storeu_pd(p, x); }
SIMD_INLINE void v_stream(double *p, vec x) { _mm256_stream_pd(p, x); }
SIMD_INLINE vec v_fma(vec a, vec b, vec c) { return _mm256_fmadd_pd(a, b, c); }
SIMD_INLINE __m256i part_mask(v_part part) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(part), _mm256_setr_epi64x(0, 1, 2, 3));
}
SIMD_INLINE vec v_load_part(const double *p, v_part part) { return _mm256_maskload_pd(p, part_mask(part)); }
SIMD_INLINE void v_store_part(double *p, vec x, v_part part) { _mm256_maskstore_pd(p, part_mask(part), x); }
SIMD_INLINE double v_horizontal_sum(vec x) {
  const __m128d a = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
  return _mm_cvtsd_f64(_mm_add_sd(a, _mm_unpackhi_pd(a, a)));
}

#else

/* Keeps a product from being contracted with the addition that takes it, whatever the compiler's options. */
#define KEEP(x) __asm__("" : "+v"(x))
#define LANES 8
typedef __m256 vf;
typedef vf vec;
typedef int32_t vi __attribute__((vector_size(32)));
typedef uint32_t vu __attribute__((vector_size(32)));
typedef __m256 vm; /* all bits of a lane set or clear */

SIMD_INLINE vf v_set(float x) { return _mm256_set1_ps(x); }
SIMD_INLINE vi v_set_integer(int32_t x) { return (vi)_mm256_set1_epi32(x); }
SIMD_INLINE vf v_load(const float *p) { return _mm256_loadu_ps(p); }
SIMD_INLINE void v_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
SIMD_INLINE void v_stream(float *p, vf x) { _mm256_stream_ps(p, x); }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
SIMD_INLINE __m256i part_mask(v_part part) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)part), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
SIMD_INLINE vf v_load_part(const float *p, v_part part) { return _mm256_maskload_ps(p, part_mask(part)); }
SIMD_INLINE vf v_load_part_or(const float *p, v_part part, float other) {
  const __m256i mask = part_mask(part);
  return _mm256_blendv_ps(_mm256_set1_ps(other), _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}
SIMD_INLINE void v_store_part(float *p, vf x, v_part part) { _mm256_maskstore_ps(p, part_mask(part), x); }

SIMD_INLINE __m128i load_16(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)p); }
/* In registers: a copy of a variable size through memory would wait for its own stores. */
SIMD_INLINE __m128i load_part_16(const uint16_t *p, v_part part) {
  uint64_t low = 0, high = 0, last = 0;
  if (part >= 4) {
    memcpy(&low, p, sizeof low);
    memcpy(&last, p + part - 4, sizeof last);
    if (part > 4) high = last >> (8 - part) * 16;
  } else if (part > 0) {
    /* The first, the middle and the last of up to three. */
    low = p[0] | (uint64_t)p[part / 2] << part / 2 * 16 | (uint64_t)p[part - 1] << (part - 1) * 16;
  }
  return _mm_set_epi64x((int64_t)high, (int64_t)low);
}
SIMD_INLINE void store_part_16(uint16_t *p, __m128i x, v_part part) {
  uint16_t some[8];
  _mm_storeu_si128((__m128i *)some, x);
  memcpy(p, some, (size_t)part * sizeof *p);
}
SIMD_INLINE vf widen_f16(__m128i h) { return _mm256_cvtph_ps(h); }
SIMD_INLINE __m128i narrow_f16(vf x) { return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
SIMD_INLINE vf widen_bf16(__m128i h) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
/* To bfloat16 in the upper halves of lanes that are not NaN. */
SIMD_INLINE __m256i round_bf16_numbers(vf x) {
  const __m256i u = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  return _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
}
SIMD_INLINE __m256i round_bf16_bits(vf x) {
  const __m256i quiet = _mm256_or_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(round_bf16_numbers(x), quiet, nan);
}
SIMD_INLINE vf v_round_bf16(vf x) {
  return _mm256_castsi256_ps(_mm256_and_si256(round_bf16_bits(x), _mm256_set1_epi32((int32_t)0xffff0000)));
}
SIMD_INLINE __m128i narrow_bf16(vf x) {
  const __m256i u = _mm256_srli_epi32(round_bf16_bits(x), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
}

SIMD_INLINE vf v_load_f16(const uint16_t *p) { return widen_f16(load_16(p)); }
SIMD_INLINE vf v_load_f16_part(const uint16_t *p, v_part part) { return widen_f16(load_part_16(p, part)); }
SIMD_INLINE void v_store_f16(uint16_t *p, vf x) { _mm_storeu_si128((__m128i *)p, narrow_f16(x)); }
SIMD_INLINE void v_store_f16_part(uint16_t *p, vf x, v_part part) { store_part_16(p, narrow_f16(x), part); }
SIMD_INLINE void v_store_f16_pair(uint16_t *p, vf x, vf y) { v_store_f16(p, x), v_store_f16(p + LANES, y); }
SIMD_INLINE void v_stream_f16_pair(uint16_t *p, vf x, vf y) {
  _mm_stream_si128((__m128i *)p, narrow_f16(x)), _mm_stream_si128((__m128i *)(p + LANES), narrow_f16(y));
}
SIMD_INLINE vf v_round_f16(vf x) { return widen_f16(narrow_f16(x)); }

SIMD_INLINE vf v_load_bf16(const uint16_t *p) { return widen_bf16(load_16(p)); }
SIMD_INLINE vf v_load_bf16_part(const uint16_t *p, v_part part) { return widen_bf16(load_part_16(p, part)); }
SIMD_INLINE void v_store_bf16(uint16_t *p, vf x) { _mm_storeu_si128((__m128i *)p, narrow_bf16(x)); }
SIMD_INLINE void v_store_bf16_part(uint16_t *p, vf x, v_part part) { store_part_16(p, narrow_bf16(x), part); }
/* One comparison tests both vectors for NaN, which is rare. */
SIMD_INLINE __m256i narrow_bf16_pair(vf x, vf y) {
  __m256i a = round_bf16_numbers(x), b = round_bf16_numbers(y);
  if (_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q))) a = round_bf16_bits(x), b = round_bf16_bits(y);
  /* Packs inside each half of the vector. */
  const __m256i both = _mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16));
  return _mm256_permute4x64_epi64(both, 0xd8);
}
SIMD_INLINE void v_store_bf16_pair(uint16_t *p, vf x, vf y) {
  _mm256_storeu_si256((__m256i *)p, narrow_bf16_pair(x, y));
}
SIMD_INLINE void v_stream_bf16_pair(uint16_t *p, vf x, vf y) {
  _mm256_stream_si256((__m256i *)p, narrow_bf16_pair(x, y));
}
SIMD_INLINE void v_round_bf16_pair(float *p, vf x, vf y) {
  const __m256i upper = _mm256_set1_epi32((int32_t)0xffff0000);
  __m256i a = round_bf16_numbers(x), b = round_bf16_numbers(y);
  if (_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q))) a = round_bf16_bits(x), b = round_bf16_bits(y);
  v_store(p, _mm256_castsi256_ps(_mm256_and_si256(a, upper)));
  v_store(p + LANES, _mm256_castsi256_ps(_mm256_and_si256(b, upper)));
}

SIMD_INLINE vi v_load_bytes(const uint8_t *p) {
  return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
SIMD_INLINE void v_store_bytes(uint8_t *p, vi x) {
  const __m256i y = (__m256i)x;
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
  _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(words, words));
}
SIMD_INLINE vf v_load_u8(const uint8_t *p) { return _mm256_cvtepi32_ps((__m256i)v_load_bytes(p)); }

SIMD_INLINE vf v_sqrt(vf x) { return _mm256_sqrt_ps(x); }
SIMD_INLINE vf v_rsqrt_estimate(vf x) { return _mm256_rsqrt_ps(x); }
SIMD_INLINE vf v_reciprocal_estimate(vf x) { return _mm256_rcp_ps(x); }
SIMD_INLINE vf v_floor(vf x) { return _mm256_floor_ps(x); }
SIMD_INLINE vf v_ceil(vf x) { return _mm256_ceil_ps(x); }
SIMD_INLINE vf v_rint(vf x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
SIMD_INLINE vi v_to_integer(vf x) { return (vi)_mm256_cvtps_epi32(x); }
SIMD_INLINE vf v_from_integer(vi x) { return _mm256_cvtepi32_ps((__m256i)x); }
SIMD_INLINE vf v_permute(vf x, vi lanes) { return _mm256_permutevar8x32_ps(x, (__m256i)lanes); }
/* In two factors, so that subnormal results and 2^128 come out right. */
SIMD_INLINE vf v_scale(vf x, vf n) {
  const vi whole = v_to_integer(n), half = whole >> 1;
  const vf a = (vf)((vu)(half + 127) << 23), b = (vf)((vu)(whole - half + 127) << 23);
  return x * a * b;
}

SIMD_INLINE vi vi_max(vi a, vi b) { return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b); }
SIMD_INLINE vm v_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
SIMD_INLINE vm v_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
SIMD_INLINE vm v_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
SIMD_INLINE vm v_unordered(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
SIMD_INLINE vm m_and(vm a, vm b) { return _mm256_and_ps(a, b); }
SIMD_INLINE vm m_or(vm a, vm b) { return _mm256_or_ps(a, b); }
SIMD_INLINE vm m_not(vm a) { return (vm) ~(vi)a; }
SIMD_INLINE vf v_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
SIMD_INLINE bool m_all(vm m) { return _mm256_movemask_ps(m) == 0xff; }
SIMD_INLINE bool m_any(vm m) { return _mm256_movemask_ps(m) != 0; }
SIMD_INLINE vm m_load(const uint32_t *p) {
  const __m256i x = _mm256_loadu_si256((const __m256i *)p);
  return _mm256_castsi256_ps(_mm256_cmpgt_epi32(x, _mm256_setzero_si256()));
}
SIMD_INLINE void m_store(uint32_t *p, vm m) {
  _mm256_storeu_si256((__m256i *)p, _mm256_and_si256(_mm256_castps_si256(m), _mm256_set1_epi32(1)));
}

SIMD_INLINE float v_horizontal_sum(vf x) {
  const __m128 a = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 b = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
SIMD_INLINE float v_horizontal_max(vf x) {
  const __m128 a = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 b = _mm_max_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}

typedef uint64_t vl __attribute__((vector_size(32)));
SIMD_INLINE vl l_set(uint64_t x) { return (vl){x, x, x, x}; }
SIMD_INLINE vl l_multiply(vl a, vl b) { return (vl)_mm256_mul_epu32((__m256i)a, (__m256i)b); }

#define SIMD_FEW 4
typedef __m128 few; /* 128-bit shuffles run on two ports, 512-bit ones on one */
SIMD_INLINE void few_store(float *p, few x) { _mm_storeu_ps(p, x); }
SIMD_INLINE void few_transpose(few r[4]) { _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]); }

#endif
