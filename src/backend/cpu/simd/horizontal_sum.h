/* Sums of the lanes of vectors, by halving: lane l takes lane l + half, for half the lanes, then a quarter, down to one. With AVX-512 sixteen
 * vectors of floats together, which takes a fifth of the instructions of one after the other, and makes the same additions. */
#ifndef MIX_BACKEND_CPU_SIMD_HORIZONTAL_SUM_H
#define MIX_BACKEND_CPU_SIMD_HORIZONTAL_SUM_H

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/vector.h"

#if defined(__AVX512F__) && !GEMM_DOUBLE
/* Lane i: the sum of the lanes of v[i]. */
GEMM_INLINE vector fold_sixteen(const vector *v) {
  __m512 x[8], y[4], z[2];
  GEMM_UNROLL
  for (int i = 0; i < 8; i++) { /* 8 lanes of v[2 i], 8 of v[2 i + 1] */
    const __m512 a = (__m512)v[2 * i], b = (__m512)v[2 * i + 1];
    x[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  }
  GEMM_UNROLL
  for (int i = 0; i < 4; i++) /* 4 of each of four */
    y[i] = _mm512_add_ps(_mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0x88), _mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0xdd));
  GEMM_UNROLL
  for (int i = 0; i < 2; i++) { /* 2 of each of eight: in 128 bits those of one of y[2 i], then one of y[2 i + 1] */
    const __m512d a = _mm512_castps_pd(y[2 * i]), b = _mm512_castps_pd(y[2 * i + 1]);
    z[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  const __m512 sums = _mm512_add_ps(_mm512_shuffle_ps(z[0], z[1], 0x88), _mm512_shuffle_ps(z[0], z[1], 0xdd));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15); /* lane 4 b + i is of v[4 i + b] */
  return (vector)_mm512_permutexvar_ps(order, sums);
}
#endif

/* out[r * MIX_GEMM_SMALL_N_STRIDE + j]: the sum of the lanes of sums[r][j]; what is behind `columns` there is overwritten. `rows`, 1 or 2, and
 * `columns` are constants where it is inlined. */
GEMM_INLINE void fold_rows(const int rows, const int columns, vector (*sums)[SMALL_N_MAX_COLUMNS], GEMM_REAL *out) {
#if defined(__AVX512F__) && !GEMM_DOUBLE
  const int share = rows == 2 && columns <= LANES / 2 ? LANES / 2 : LANES; /* of a vector, for a row */
  vector v[LANES] = {{0}};
  GEMM_UNROLL
  for (int r = 0; r < rows; r++) {
    GEMM_UNROLL
    for (int j = 0; j < columns; j++) v[r * share % LANES + j] = sums[r][j];
    if (share == LANES || r == 1) store(out + (share == LANES ? r * MIX_GEMM_SMALL_N_STRIDE : 0), fold_sixteen(v));
  }
  if (share < LANES) memcpy(out + MIX_GEMM_SMALL_N_STRIDE, out + share, (size_t)columns * sizeof *out);
#else
  GEMM_UNROLL
  for (int r = 0; r < rows; r++) {
    GEMM_UNROLL
    for (int j = 0; j < columns; j++) {
      GEMM_REAL lanes[LANES];
      store(lanes, sums[r][j]);
      for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];
      out[r * MIX_GEMM_SMALL_N_STRIDE + j] = lanes[0];
    }
  }
#endif
}

#endif
