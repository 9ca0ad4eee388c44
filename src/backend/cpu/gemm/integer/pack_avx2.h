/* Packing by vectors of 16 bytes, for the engines of x86. */
#pragma once

#include "backend/cpu/simd/attributes.h"
#include <immintrin.h>
#include <stdint.h>

enum { PACKED = 16 }; /* columns that pack_columns takes */

#if GROUP == 4
/* 16 columns of four rows: the four bytes of a column become its lane, with the offset added. */
SIMD_INLINE void pack_columns(const int8_t *source, int64_t stride, int32_t *to) {
  const __m128i offset = _mm_set1_epi8((char)OFFSET);
  __m128i r[4];
  for (int i = 0; i < 4; i++)
    r[i] = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(source + i * stride)), offset);
  const __m128i low01 = _mm_unpacklo_epi8(r[0], r[1]), high01 = _mm_unpackhi_epi8(r[0], r[1]),
                low23 = _mm_unpacklo_epi8(r[2], r[3]), high23 = _mm_unpackhi_epi8(r[2], r[3]);
  _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi16(low01, low23));
  _mm_storeu_si128((__m128i *)(to + 4), _mm_unpackhi_epi16(low01, low23));
  _mm_storeu_si128((__m128i *)(to + 8), _mm_unpacklo_epi16(high01, high23));
  _mm_storeu_si128((__m128i *)(to + 12), _mm_unpackhi_epi16(high01, high23));
}

/* 16 numbers of k of four columns: four lanes of four rows of groups, NR apart. */
SIMD_INLINE void transpose_4(const int8_t *source, int64_t stride, int32_t *to) {
  const __m128i offset = _mm_set1_epi8((char)OFFSET);
  __m128i c[4];
  for (int i = 0; i < 4; i++)
    c[i] = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(source + i * stride)), offset);
  const __m128i low01 = _mm_unpacklo_epi32(c[0], c[1]), high01 = _mm_unpackhi_epi32(c[0], c[1]),
                low23 = _mm_unpacklo_epi32(c[2], c[3]), high23 = _mm_unpackhi_epi32(c[2], c[3]);
  _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi64(low01, low23));
  _mm_storeu_si128((__m128i *)(to + NR), _mm_unpackhi_epi64(low01, low23));
  _mm_storeu_si128((__m128i *)(to + 2 * NR), _mm_unpacklo_epi64(high01, high23));
  _mm_storeu_si128((__m128i *)(to + 3 * NR), _mm_unpackhi_epi64(high01, high23));
}
#else
/* 16 columns of two rows, widened: the pair of a column is its lane. */
SIMD_INLINE void pack_columns(const int8_t *source, int64_t stride, int32_t *to) {
  for (int i = 0; i < 16; i += 8) {
    const __m128i first = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(source + i))),
                  second = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(source + stride + i)));
    _mm_storeu_si128((__m128i *)(to + i), _mm_unpacklo_epi16(first, second));
    _mm_storeu_si128((__m128i *)(to + i + 4), _mm_unpackhi_epi16(first, second));
  }
}
#endif
