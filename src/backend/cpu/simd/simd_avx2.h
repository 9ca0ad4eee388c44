/* The vocabulary of lanes for AVX2 with FMA and F16C: 8 floats. */
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Keeps a product from being contracted with the addition that takes it: the kernel files allow the compiler to. */
#define KEEP(x) __asm__("" : "+v"(x))
#define LANES 8
typedef __m256 vf;
typedef int32_t vi __attribute__((vector_size(32)));
typedef uint32_t vu __attribute__((vector_size(32))); /* where sums may overflow */
typedef __m256 vm;                                    /* all bits of a lane set or clear */

static inline vf v_set(float x) { return _mm256_set1_ps(x); }
static inline vi v_set_integer(int32_t x) { return (vi)_mm256_set1_epi32(x); }
static inline vf v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
static inline __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
/* The first n < LANES lanes; the others are `other`. */
static inline vf v_load_part(const float *p, int64_t n, float other) {
  const __m256i mask = first_lanes(n);
  return _mm256_blendv_ps(_mm256_set1_ps(other), _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}
static inline void v_store_part(float *p, vf x, int64_t n) { _mm256_maskstore_ps(p, first_lanes(n), x); }

static inline __m128i load_part_16(const uint16_t *p, int64_t n) {
  uint16_t part[8] = {0};
  for (int64_t i = 0; i < n; i++) part[i] = p[i];
  return _mm_loadu_si128((const __m128i *)part);
}
static inline void store_part_16(uint16_t *p, __m128i x, int64_t n) {
  uint16_t part[8];
  _mm_storeu_si128((__m128i *)part, x);
  for (int64_t i = 0; i < n; i++) p[i] = part[i];
}
static inline __m128i narrow_f16(vf x) { return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
static inline vf widen_bf16(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
/* In the upper halves; of what is not NaN. */
static inline __m256i round_bf16_numbers(vf x) {
  const __m256i u = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  return _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
}
static inline __m256i round_bf16_bits(vf x) {
  const __m256i quiet = _mm256_or_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x400000));
  return _mm256_blendv_epi8(round_bf16_numbers(x), quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
static inline vf v_round_bf16(vf x) {
  return _mm256_castsi256_ps(_mm256_and_si256(round_bf16_bits(x), _mm256_set1_epi32((int32_t)0xffff0000)));
}
static inline __m128i narrow_bf16(vf x) {
  const __m256i u = _mm256_srli_epi32(round_bf16_bits(x), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
}
static inline vf v_load_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
static inline vf v_load_f16_part(const uint16_t *p, int64_t n) { return _mm256_cvtph_ps(load_part_16(p, n)); }
static inline void v_store_f16(uint16_t *p, vf x) { _mm_storeu_si128((__m128i *)p, narrow_f16(x)); }
static inline void v_store_f16_pair(uint16_t *p, vf x, vf y) { v_store_f16(p, x), v_store_f16(p + LANES, y); }
static inline void v_stream_f16_pair(uint16_t *p, vf x, vf y) {
  _mm_stream_si128((__m128i *)p, narrow_f16(x)), _mm_stream_si128((__m128i *)(p + LANES), narrow_f16(y));
}
static inline void v_store_f16_part(uint16_t *p, vf x, int64_t n) { store_part_16(p, narrow_f16(x), n); }
static inline vf v_load_bf16(const uint16_t *p) { return widen_bf16(_mm_loadu_si128((const __m128i *)p)); }
static inline vf v_load_bf16_part(const uint16_t *p, int64_t n) { return widen_bf16(load_part_16(p, n)); }
static inline void v_store_bf16(uint16_t *p, vf x) { _mm_storeu_si128((__m128i *)p, narrow_bf16(x)); }
/* NaN is rare, and one comparison tells of both. */
static inline __m256i narrow_bf16_pair(vf x, vf y) {
  __m256i a = round_bf16_numbers(x), b = round_bf16_numbers(y);
  if (_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q))) a = round_bf16_bits(x), b = round_bf16_bits(y);
  const __m256i both = _mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16)); /* in each half of the vector */
  return _mm256_permute4x64_epi64(both, 0xd8);
}
static inline void v_store_bf16_pair(uint16_t *p, vf x, vf y) { _mm256_storeu_si256((__m256i *)p, narrow_bf16_pair(x, y)); }
static inline void v_stream_bf16_pair(uint16_t *p, vf x, vf y) { _mm256_stream_si256((__m256i *)p, narrow_bf16_pair(x, y)); }
static inline void v_round_bf16_pair(float *p, vf x, vf y) {
  const __m256i upper = _mm256_set1_epi32((int32_t)0xffff0000);
  __m256i a = round_bf16_numbers(x), b = round_bf16_numbers(y);
  if (_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q))) a = round_bf16_bits(x), b = round_bf16_bits(y);
  v_store(p, _mm256_castsi256_ps(_mm256_and_si256(a, upper)));
  v_store(p + LANES, _mm256_castsi256_ps(_mm256_and_si256(b, upper)));
}
static inline void v_store_bf16_part(uint16_t *p, vf x, int64_t n) { store_part_16(p, narrow_bf16(x), n); }
static inline vf v_round_f16(vf x) { return _mm256_cvtph_ps(narrow_f16(x)); }
static inline vf v_load_u8(const uint8_t *p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

static inline vf v_sqrt(vf x) { return _mm256_sqrt_ps(x); }
/* Twelve bits of 1 / sqrt(x). */
static inline vf v_rsqrt_estimate(vf x) { return _mm256_rsqrt_ps(x); }
static inline vf v_reciprocal_estimate(vf x) { return _mm256_rcp_ps(x); }
static inline vf v_floor(vf x) { return _mm256_floor_ps(x); }
static inline vf v_ceil(vf x) { return _mm256_ceil_ps(x); }
static inline vf v_rint(vf x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vi v_to_integer(vf x) { return (vi)_mm256_cvtps_epi32(x); }
static inline vf v_from_integer(vi x) { return _mm256_cvtepi32_ps((__m256i)x); }
/* x * 2^n for integral |n| <= 252, in two factors so that subnormal results and 2^128 come out right. */
static inline vf v_scale(vf x, vf n) {
  const vi whole = v_to_integer(n), half = whole >> 1;
  const vf a = (vf)((vu)(half + 127) << 23), b = (vf)((vu)(whole - half + 127) << 23);
  return x * a * b;
}

static inline vi vi_max(vi a, vi b) { return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b); }
static inline vm v_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
static inline vm v_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
static inline vm v_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
static inline vm v_unordered(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
static inline vm m_and(vm a, vm b) { return _mm256_and_ps(a, b); }
static inline vm m_or(vm a, vm b) { return _mm256_or_ps(a, b); }
static inline vm m_not(vm a) { return (vm) ~(vi)a; }
static inline vf v_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
static inline bool m_all(vm m) { return _mm256_movemask_ps(m) == 0xff; }
static inline bool m_any(vm m) { return _mm256_movemask_ps(m) != 0; }
static inline vm m_load(const uint32_t *p) {
  return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_loadu_si256((const __m256i *)p), _mm256_setzero_si256()));
}
static inline void m_store(uint32_t *p, vm m) {
  _mm256_storeu_si256((__m256i *)p, _mm256_and_si256(_mm256_castps_si256(m), _mm256_set1_epi32(1)));
}

static inline float v_horizontal_sum(vf x) {
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)), c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
}
static inline float v_horizontal_max(vf x) { /* no NaN among the lanes */
  const __m128 b = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)), c = _mm_max_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_shuffle_ps(c, c, 1)));
}

/* Lanes of 64 bits, half as many. */
typedef uint64_t vl __attribute__((vector_size(32)));
static inline vl l_set(uint64_t x) { return (vl){x, x, x, x}; }
/* Of the lower halves of each lane. */
static inline vl l_multiply(vl a, vl b) { return (vl)_mm256_mul_epu32((__m256i)a, (__m256i)b); }
