/* Horizontal sums of many vectors at once. Included after a simd_*.h. */
#pragma once

#include "backend/cpu/simd/simd.h"

#if SIMD_BYTES == 64 && !SIMD_DOUBLE
/* Lane i: v_horizontal_sum(x[i]). The same additions in a fifth of the instructions. */
SIMD_INLINE vf v_horizontal_sum_16(const vf *x) {
  vf a[8], b[4], c[2];
  SIMD_UNROLL
  for (int i = 0; i < 8; i++) { /* 8 lanes of x[2 i], 8 of x[2 i + 1] */
    const vf p = x[2 * i], q = x[2 * i + 1];
    a[i] = _mm512_add_ps(_mm512_shuffle_f32x4(p, q, 0x44), _mm512_shuffle_f32x4(p, q, 0xee));
  }
  SIMD_UNROLL
  for (int i = 0; i < 4; i++) { /* 4 of each of four */
    const vf p = a[2 * i], q = a[2 * i + 1];
    b[i] = _mm512_add_ps(_mm512_shuffle_f32x4(p, q, 0x88), _mm512_shuffle_f32x4(p, q, 0xdd));
  }
  SIMD_UNROLL
  for (int i = 0; i < 2;
       i++) { /* 2 of each of eight: each 128 bits hold those of one of b[2 i] and of b[2 i + 1] */
    const __m512d p = _mm512_castps_pd(b[2 * i]), q = _mm512_castps_pd(b[2 * i + 1]);
    c[i] =
        _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(p, q)), _mm512_castpd_ps(_mm512_unpackhi_pd(p, q)));
  }
  const vf sums = _mm512_add_ps(_mm512_shuffle_ps(c[0], c[1], 0x88), _mm512_shuffle_ps(c[0], c[1], 0xdd));
  /* Lane 4 b + i of `sums` is of x[4 i + b]. */
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_ps(order, sums);
}
#endif
