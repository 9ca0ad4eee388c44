/* Packing by NEON, of groups of four bytes. */
#pragma once

#include "backend/cpu/simd/attributes.h"
#include <arm_neon.h>
#include <stdint.h>

enum { PACKED = 8 }; /* columns that pack_columns takes */

/* 8 columns of four rows: the four bytes of a column become its lane. */
SIMD_INLINE void pack_columns(const int8_t *source, int64_t stride, int32_t *to) {
  const int8x8_t r0 = vld1_s8(source), r1 = vld1_s8(source + stride), r2 = vld1_s8(source + 2 * stride),
                 r3 = vld1_s8(source + 3 * stride);
  const int16x8_t first = vreinterpretq_s16_s8(vzip1q_s8(vcombine_s8(r0, r0), vcombine_s8(r1, r1))),
                  second = vreinterpretq_s16_s8(vzip1q_s8(vcombine_s8(r2, r2), vcombine_s8(r3, r3)));
  vst1q_s32(to, vreinterpretq_s32_s16(vzip1q_s16(first, second)));
  vst1q_s32(to + 4, vreinterpretq_s32_s16(vzip2q_s16(first, second)));
}

/* 16 numbers of k of four columns: four lanes of four rows of groups, NR apart. */
SIMD_INLINE void transpose_4(const int8_t *source, int64_t stride, int32_t *to) {
  int32x4_t c[4];
  SIMD_UNROLL
  for (int i = 0; i < 4; i++) c[i] = vreinterpretq_s32_s8(vld1q_s8(source + i * stride));
  const int32x4x2_t low = vtrnq_s32(c[0], c[1]), high = vtrnq_s32(c[2], c[3]);
  vst1q_s32(to, vcombine_s32(vget_low_s32(low.val[0]), vget_low_s32(high.val[0])));
  vst1q_s32(to + NR, vcombine_s32(vget_low_s32(low.val[1]), vget_low_s32(high.val[1])));
  vst1q_s32(to + 2 * NR, vcombine_s32(vget_high_s32(low.val[0]), vget_high_s32(high.val[0])));
  vst1q_s32(to + 3 * NR, vcombine_s32(vget_high_s32(low.val[1]), vget_high_s32(high.val[1])));
}
