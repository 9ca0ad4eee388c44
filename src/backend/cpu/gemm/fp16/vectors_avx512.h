/* The vectors of float16 sums (fp16.h) on AVX512-FP16. vectors_neon.h has the same names:
 *
 *   WORDS                  16-bit words of a vector
 *   words, halves          a vector of words, of float16 numbers
 *   w_zero, w_set(x)
 *   w_load, w_store        an address aligned to vectors; w_load_any: any
 *   w_part, w_first(n)     the first n words; all or none if n is out of range
 *   w_load_part(p, part)   reads these words alone; the others are zero
 *   w_max                  unsigned
 *   w_largest(x)           the largest word
 *   w_magnitudes(x), w_below(x, limit)
 *                          without signs; words that are not below the limit become zero
 *   h_zero, h_load, h_store, h_add
 *   h_accumulate(sum, b, a)
 *                          sum + b * *a, rounded once
 *   h_power_of_two(n)      all lanes 2^n
 *   FLOATS, floats         float32 numbers of a vector, and that vector
 *   f_set, f_zero, f_load, f_store (aligned), f_multiply, f_fma
 *   f_widen(p)             FLOATS float16 numbers */
#pragma once

#include "backend/cpu/simd/attributes.h"
#include <immintrin.h>
#include <stdint.h>

enum { WORDS = 32, FLOATS = 16 };
typedef __m512i words;
typedef __m512h halves;
typedef __m512 floats;
typedef __mmask32 w_part;

SIMD_INLINE words w_zero(void) { return _mm512_setzero_si512(); }
SIMD_INLINE words w_set(int x) { return _mm512_set1_epi16((short)x); }
SIMD_INLINE words w_load(const uint16_t *p) { return _mm512_load_si512(p); }
SIMD_INLINE words w_load_any(const uint16_t *p) { return _mm512_loadu_si512(p); }
SIMD_INLINE void w_store(uint16_t *p, words x) { _mm512_store_si512(p, x); }
SIMD_INLINE w_part w_first(int64_t count) {
  return count >= WORDS ? 0xffffffffu : count <= 0 ? 0 : (w_part)((1u << count) - 1);
}
SIMD_INLINE words w_load_part(const uint16_t *p, w_part part) { return _mm512_maskz_loadu_epi16(part, p); }
SIMD_INLINE words w_max(words x, words y) { return _mm512_max_epu16(x, y); }
SIMD_INLINE words w_magnitudes(words x) { return _mm512_and_si512(x, w_set(0x7fff)); }
SIMD_INLINE words w_below(words x, words limit) {
  return _mm512_maskz_mov_epi16(_mm512_cmplt_epu16_mask(x, limit), x);
}
SIMD_INLINE unsigned w_largest(words x) {
  const __m256i a = _mm256_max_epu16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  const __m128i b = _mm_max_epu16(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  /* The instruction finds the minimum: of the complements. */
  return 0xffffu - (unsigned)_mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(b, _mm_set1_epi16(-1))), 0);
}

SIMD_INLINE halves h_zero(void) { return _mm512_setzero_ph(); }
SIMD_INLINE halves h_load(const uint16_t *p) { return _mm512_load_ph(p); }
SIMD_INLINE void h_store(uint16_t *p, halves x) { _mm512_store_ph(p, x); }
SIMD_INLINE halves h_add(halves x, halves y) { return _mm512_add_ph(x, y); }
/* The broadcast of a 16-bit number is free as part of this instruction, but takes a slot of the multiplier as
 * an instruction of its own, which is what compilers make of the intrinsic. */
SIMD_INLINE halves h_accumulate(halves sum, halves b, const uint16_t *a) {
  __asm__("vfmadd231ph %2%{1to32%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*a));
  return sum;
}
SIMD_INLINE halves h_power_of_two(int exponent) {
  return _mm512_castsi512_ph(_mm512_set1_epi16((short)((exponent + 15) << 10)));
}

SIMD_INLINE floats f_zero(void) { return _mm512_setzero_ps(); }
SIMD_INLINE floats f_set(float x) { return _mm512_set1_ps(x); }
SIMD_INLINE floats f_load(const float *p) { return _mm512_load_ps(p); }
SIMD_INLINE void f_store(float *p, floats x) { _mm512_store_ps(p, x); }
SIMD_INLINE floats f_multiply(floats x, floats y) { return _mm512_mul_ps(x, y); }
SIMD_INLINE floats f_fma(floats x, floats y, floats z) { return _mm512_fmadd_ps(x, y, z); }
SIMD_INLINE floats f_widen(const uint16_t *p) {
  return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)p));
}
