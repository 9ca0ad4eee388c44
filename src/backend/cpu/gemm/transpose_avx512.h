/* Transposition of 32-bit lanes in AVX-512. */
#pragma once

#include "backend/cpu/simd/attributes.h"
#include <immintrin.h>

/* Transposes 16 x 16 lanes. */
SIMD_INLINE void transpose_lanes(__m512i *x) {
  __m512i y[16];
  SIMD_UNROLL
  for (int i = 0; i < 8; i++) {
    y[2 * i] = _mm512_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
    y[2 * i + 1] = _mm512_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
  }
  SIMD_UNROLL
  for (int i = 0; i < 4; i++) {
    x[4 * i] = _mm512_unpacklo_epi64(y[4 * i], y[4 * i + 2]);
    x[4 * i + 1] = _mm512_unpackhi_epi64(y[4 * i], y[4 * i + 2]);
    x[4 * i + 2] = _mm512_unpacklo_epi64(y[4 * i + 1], y[4 * i + 3]);
    x[4 * i + 3] = _mm512_unpackhi_epi64(y[4 * i + 1], y[4 * i + 3]);
  }
  SIMD_UNROLL
  for (int i = 0; i < 4; i++) {
    y[i] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0x88);
    y[i + 4] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0xdd);
    y[i + 8] = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0x88);
    y[i + 12] = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0xdd);
  }
  SIMD_UNROLL
  for (int i = 0; i < 8; i++) {
    x[i] = _mm512_shuffle_i32x4(y[i], y[i + 8], 0x88);
    x[i + 8] = _mm512_shuffle_i32x4(y[i], y[i + 8], 0xdd);
  }
}
