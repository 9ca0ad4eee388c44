/* The vector vocabulary (simd.h) for AVX-512 (F, BW, DQ, VL): 16 floats or 8 doubles. */
#pragma once

#include "backend/cpu/simd/simd.h"
#include <immintrin.h>

#define SIMD_BYTES 64
#define SIMD_REGISTERS 32
#define SIMD_MASKS 1

#if SIMD_DOUBLE

#define SIMD_FEW 0
#define LANES 8
typedef __m512d vec;
typedef __mmask8 v_part;

SIMD_INLINE vec v_set(double x) { return _mm512_set1_pd(x); }
SIMD_INLINE vec v_load(const double *p) { return _mm512_loadu_pd(p); }
SIMD_INLINE void v_store(double *p, vec x) { _mm512_storeu_pd(p, x); }
SIMD_INLINE void v_stream(double *p, vec x) { _mm512_stream_pd(p, x); }
SIMD_INLINE vec v_fma(vec a, vec b, vec c) { return _mm512_fmadd_pd(a, b, c); }
SIMD_INLINE v_part v_first(int64_t n) { return (v_part)((1u << n) - 1); }
SIMD_INLINE vec v_load_part(const double *p, v_part part) { return _mm512_maskz_loadu_pd(part, p); }
SIMD_INLINE void v_store_part(double *p, vec x, v_part part) { _mm512_mask_storeu_pd(p, part, x); }
SIMD_INLINE double v_horizontal_sum(vec x) {
  const __m256d a = _mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd(x, 1));
  const __m128d b = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
  return _mm_cvtsd_f64(_mm_add_sd(b, _mm_unpackhi_pd(b, b)));
}

/* In assembly: no compiler broadcasts from memory in the instruction that multiplies where the element is
 * used twice, and among such instructions compilers move sums from register to register. */
#define V_ACCUMULATE(c, a, b) __asm__("vfmadd231pd %2, %1, %0" : "+v"(c) : "v"(b), "v"(a))
#define V_ACCUMULATE_BROADCAST(c, p, b)                                                                      \
  __asm__("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(c) : "v"(b), "m"(*(p)))

#else

/* Keeps a product from being contracted with the addition that takes it, whatever the compiler's options. */
#define KEEP(x) __asm__("" : "+v"(x))
#define LANES 16
typedef __m512 vf;
typedef vf vec;
typedef int32_t vi __attribute__((vector_size(64)));
typedef uint32_t vu __attribute__((vector_size(64)));
typedef __mmask16 vm;
typedef __mmask16 v_part;

SIMD_INLINE vf v_set(float x) { return _mm512_set1_ps(x); }
SIMD_INLINE vi v_set_integer(int32_t x) { return (vi)_mm512_set1_epi32(x); }
SIMD_INLINE vf v_load(const float *p) { return _mm512_loadu_ps(p); }
SIMD_INLINE void v_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
SIMD_INLINE void v_stream(float *p, vf x) { _mm512_stream_ps(p, x); }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
/* In assembly for the reason above. */
#define V_ACCUMULATE(c, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(b), "v"(a))
#define V_ACCUMULATE_BROADCAST(c, p, b)                                                                      \
  __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*(p)))

SIMD_INLINE v_part v_first(int64_t n) { return (v_part)((1u << n) - 1); }
SIMD_INLINE vf v_load_part(const float *p, v_part part) { return _mm512_maskz_loadu_ps(part, p); }
SIMD_INLINE vf v_load_part_or(const float *p, v_part part, float other) {
  return _mm512_mask_loadu_ps(_mm512_set1_ps(other), part, p);
}
SIMD_INLINE void v_store_part(float *p, vf x, v_part part) { _mm512_mask_storeu_ps(p, part, x); }

SIMD_INLINE vf widen_f16(__m256i h) { return _mm512_cvtph_ps(h); }
SIMD_INLINE __m256i narrow_f16(vf x) { return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
SIMD_INLINE vf widen_bf16(__m256i h) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
/* To bfloat16 in the upper halves of lanes that are not NaN. Not vcvtneps2bf16, which flushes subnormals. */
SIMD_INLINE __m512i round_bf16_numbers(vf x) {
  const __m512i u = _mm512_castps_si512(x), half = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
  const __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
  return _mm512_mask_add_epi32(half, odd, half, _mm512_set1_epi32(1));
}
SIMD_INLINE __m512i round_bf16_bits(vf x) {
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(round_bf16_numbers(x), nan, _mm512_castps_si512(x),
                              _mm512_set1_epi32(0x400000));
}
SIMD_INLINE __m256i narrow_bf16(vf x) {
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(round_bf16_bits(x), 16));
}

SIMD_INLINE vf v_load_f16(const uint16_t *p) { return widen_f16(_mm256_loadu_si256((const __m256i *)p)); }
SIMD_INLINE vf v_load_f16_part(const uint16_t *p, v_part part) {
  return widen_f16(_mm256_maskz_loadu_epi16(part, p));
}
SIMD_INLINE void v_store_f16(uint16_t *p, vf x) { _mm256_storeu_si256((__m256i *)p, narrow_f16(x)); }
SIMD_INLINE void v_store_f16_part(uint16_t *p, vf x, v_part part) {
  _mm256_mask_storeu_epi16(p, part, narrow_f16(x));
}
SIMD_INLINE __m512i narrow_f16_pair(vf x, vf y) { /* one line of memory */
  return _mm512_inserti64x4(_mm512_castsi256_si512(narrow_f16(x)), narrow_f16(y), 1);
}
SIMD_INLINE void v_store_f16_pair(uint16_t *p, vf x, vf y) { _mm512_storeu_si512(p, narrow_f16_pair(x, y)); }
SIMD_INLINE void v_stream_f16_pair(uint16_t *p, vf x, vf y) {
  _mm512_stream_si512((__m512i *)p, narrow_f16_pair(x, y));
}
SIMD_INLINE vf v_round_f16(vf x) { return widen_f16(narrow_f16(x)); }

SIMD_INLINE vf v_load_bf16(const uint16_t *p) { return widen_bf16(_mm256_loadu_si256((const __m256i *)p)); }
SIMD_INLINE vf v_load_bf16_part(const uint16_t *p, v_part part) {
  return widen_bf16(_mm256_maskz_loadu_epi16(part, p));
}
SIMD_INLINE void v_store_bf16(uint16_t *p, vf x) { _mm256_storeu_si256((__m256i *)p, narrow_bf16(x)); }
SIMD_INLINE void v_store_bf16_part(uint16_t *p, vf x, v_part part) {
  _mm256_mask_storeu_epi16(p, part, narrow_bf16(x));
}
/* One comparison tests both vectors for NaN, which is rare. */
SIMD_INLINE __m512i narrow_bf16_pair(vf x, vf y) {
  const __m512i upper = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31,
                                         29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  __m512i a = round_bf16_numbers(x), b = round_bf16_numbers(y);
  if (_mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q)) a = round_bf16_bits(x), b = round_bf16_bits(y);
  return _mm512_permutex2var_epi16(a, upper, b);
}
SIMD_INLINE void v_store_bf16_pair(uint16_t *p, vf x, vf y) {
  _mm512_storeu_si512(p, narrow_bf16_pair(x, y));
}
SIMD_INLINE void v_stream_bf16_pair(uint16_t *p, vf x, vf y) {
  _mm512_stream_si512((__m512i *)p, narrow_bf16_pair(x, y));
}
/* To two places. */
SIMD_INLINE void v_store_bf16_both(uint16_t *p, uint16_t *q, vf x, vf y) {
  const __m512i both = narrow_bf16_pair(x, y);
  _mm256_storeu_si256((__m256i *)p, _mm512_castsi512_si256(both));
  _mm256_storeu_si256((__m256i *)q, _mm512_extracti64x4_epi64(both, 1));
}
SIMD_INLINE void v_round_bf16_both(vf *x, vf *y) {
  const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
  __m512i a = round_bf16_numbers(*x), b = round_bf16_numbers(*y);
  if (_mm512_cmp_ps_mask(*x, *y, _CMP_UNORD_Q)) a = round_bf16_bits(*x), b = round_bf16_bits(*y);
  *x = _mm512_castsi512_ps(_mm512_and_si512(a, upper)), *y = _mm512_castsi512_ps(_mm512_and_si512(b, upper));
}
SIMD_INLINE void v_round_bf16_pair(float *p, vf x, vf y) {
  v_round_bf16_both(&x, &y);
  _mm512_storeu_ps(p, x), _mm512_storeu_ps(p + LANES, y);
}
SIMD_INLINE vf v_round_bf16(vf x) {
  return _mm512_castsi512_ps(_mm512_and_si512(round_bf16_bits(x), _mm512_set1_epi32((int)0xffff0000)));
}

SIMD_INLINE vi v_load_bytes(const uint8_t *p) {
  return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
SIMD_INLINE void v_store_bytes(uint8_t *p, vi x) {
  _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8((__m512i)x));
}
SIMD_INLINE vf v_load_u8(const uint8_t *p) { return _mm512_cvtepi32_ps((__m512i)v_load_bytes(p)); }

SIMD_INLINE vf v_sqrt(vf x) { return _mm512_sqrt_ps(x); }
/* By the older instruction, which every x86-64 has. */
SIMD_INLINE vf v_rsqrt_estimate(vf x) {
  const __m256 low = _mm256_rsqrt_ps(_mm512_castps512_ps256(x));
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), _mm256_rsqrt_ps(_mm512_extractf32x8_ps(x, 1)), 1);
}
SIMD_INLINE vf v_reciprocal_estimate(vf x) {
  const __m256 low = _mm256_rcp_ps(_mm512_castps512_ps256(x));
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), _mm256_rcp_ps(_mm512_extractf32x8_ps(x, 1)), 1);
}
SIMD_INLINE vf v_floor(vf x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
SIMD_INLINE vf v_ceil(vf x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
SIMD_INLINE vf v_rint(vf x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
SIMD_INLINE vi v_to_integer(vf x) { return (vi)_mm512_cvtps_epi32(x); }
SIMD_INLINE vf v_from_integer(vi x) { return _mm512_cvtepi32_ps((__m512i)x); }
SIMD_INLINE vf v_permute(vf x, vi lanes) { return _mm512_permutexvar_ps((__m512i)lanes, x); }
/* Subnormal results are rounded once. */
SIMD_INLINE vf v_scale(vf x, vf n) { return _mm512_scalef_ps(x, n); }

SIMD_INLINE vi vi_max(vi a, vi b) { return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b); }
SIMD_INLINE vm v_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
SIMD_INLINE vm v_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
SIMD_INLINE vm v_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
SIMD_INLINE vm v_unordered(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
SIMD_INLINE vm m_and(vm a, vm b) { return (vm)(a & b); }
SIMD_INLINE vm m_or(vm a, vm b) { return (vm)(a | b); }
SIMD_INLINE vm m_not(vm a) { return (vm)~a; }
SIMD_INLINE vf v_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
SIMD_INLINE bool m_all(vm m) { return m == 0xffff; }
SIMD_INLINE bool m_any(vm m) { return m != 0; }
SIMD_INLINE vm m_load(const uint32_t *p) {
  const __m512i x = _mm512_loadu_si512(p);
  return _mm512_test_epi32_mask(x, x);
}
SIMD_INLINE void m_store(uint32_t *p, vm m) { _mm512_storeu_si512(p, _mm512_maskz_set1_epi32(m, 1)); }

SIMD_INLINE float v_horizontal_sum(vf x) {
  const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
}
SIMD_INLINE float v_horizontal_max(vf x) { return _mm512_reduce_max_ps(x); }

typedef uint64_t vl __attribute__((vector_size(64)));
SIMD_INLINE vl l_set(uint64_t x) { return (vl){x, x, x, x, x, x, x, x}; }
SIMD_INLINE vl l_multiply(vl a, vl b) { return (vl)_mm512_mul_epu32((__m512i)a, (__m512i)b); }

#define SIMD_FEW 4
typedef __m128 few; /* 128-bit shuffles run on two ports, 512-bit ones on one */
SIMD_INLINE void few_store(float *p, few x) { _mm_storeu_ps(p, x); }
SIMD_INLINE void few_transpose(few r[4]) { _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]); }

#endif
