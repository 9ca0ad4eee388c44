/* The vectors of float16 sums on NEON with float16 arithmetic: the names of vectors_avx512.h. FPCR.FZ, which
 * threads that run plans set, leaves subnormal float16 numbers alone. */
#pragma once

#include "backend/cpu/simd/attributes.h"
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

enum { WORDS = 8, FLOATS = 4 };
typedef uint16x8_t words;
typedef float16x8_t halves;
typedef float32x4_t floats;
typedef int64_t w_part;

SIMD_INLINE words w_zero(void) { return vdupq_n_u16(0); }
SIMD_INLINE words w_set(int x) { return vdupq_n_u16((uint16_t)x); }
SIMD_INLINE words w_load(const uint16_t *p) { return vld1q_u16(p); }
SIMD_INLINE words w_load_any(const uint16_t *p) { return vld1q_u16(p); }
SIMD_INLINE void w_store(uint16_t *p, words x) { vst1q_u16(p, x); }
SIMD_INLINE w_part w_first(int64_t count) { return count; }
SIMD_INLINE words w_load_part(const uint16_t *p, w_part part) {
  if (part >= WORDS) return vld1q_u16(p);
  uint16_t some[WORDS] = {0};
  for (int64_t i = 0; i < part; i++) some[i] = p[i];
  return vld1q_u16(some);
}
SIMD_INLINE words w_max(words x, words y) { return vmaxq_u16(x, y); }
SIMD_INLINE words w_magnitudes(words x) { return vandq_u16(x, w_set(0x7fff)); }
SIMD_INLINE words w_below(words x, words limit) { return vandq_u16(x, vcltq_u16(x, limit)); }
SIMD_INLINE unsigned w_largest(words x) { return vmaxvq_u16(x); }

SIMD_INLINE halves h_zero(void) { return vreinterpretq_f16_u16(w_zero()); }
SIMD_INLINE halves h_load(const uint16_t *p) { return vreinterpretq_f16_u16(vld1q_u16(p)); }
SIMD_INLINE void h_store(uint16_t *p, halves x) { vst1q_u16(p, vreinterpretq_u16_f16(x)); }
SIMD_INLINE halves h_add(halves x, halves y) { return vaddq_f16(x, y); }
SIMD_INLINE halves h_accumulate(halves sum, halves b, const uint16_t *a) {
  float16_t x;
  memcpy(&x, a, sizeof x);
  return vfmaq_n_f16(sum, b, x);
}
SIMD_INLINE halves h_power_of_two(int exponent) {
  return vreinterpretq_f16_u16(w_set((exponent + 15) << 10));
}

SIMD_INLINE floats f_zero(void) { return vdupq_n_f32(0); }
SIMD_INLINE floats f_set(float x) { return vdupq_n_f32(x); }
SIMD_INLINE floats f_load(const float *p) { return vld1q_f32(p); }
SIMD_INLINE void f_store(float *p, floats x) { vst1q_f32(p, x); }
SIMD_INLINE floats f_multiply(floats x, floats y) { return vmulq_f32(x, y); }
SIMD_INLINE floats f_fma(floats x, floats y, floats z) { return vfmaq_f32(z, x, y); }
SIMD_INLINE floats f_widen(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
