/* Template: packing for an engine (engine.h), whose file defines GROUP, OFFSET, PACKING or nothing, and NR
 * and STEP: panels have a multiple of so many groups. */
#include "backend/cpu/simd/attributes.h"
#include <stdint.h>
#include <string.h>

enum { AHEAD = 16 }; /* rows that are prefetched */

SIMD_INLINE uint32_t lane_at(const void *p) {
  uint32_t x;
  memcpy(&x, p, sizeof x);
  return x;
}

#ifdef PACKING
#include PACKING
#else
enum { PACKED = 16 };
SIMD_INLINE void pack_columns(const int8_t *source, int64_t stride, int32_t *to) {}
#endif

/* Of `depth` numbers of k, padded to whole steps. */
SIMD_INLINE int64_t whole_groups(int64_t depth) { return (depth + GROUP * STEP - 1) / (GROUP * STEP) * STEP; }

/* A lane of B from up to GROUP numbers, `stride` from one to the next. */
SIMD_INLINE uint32_t pack_lane(const int8_t *source, int64_t stride, int64_t count) {
#if GROUP == 4
  uint8_t bytes[4];
  for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)((i < count ? source[i * stride] : 0) + OFFSET);
  return lane_at(bytes);
#else
  const int16_t words[2] = {count > 0 ? source[0] : 0, count > 1 ? source[stride] : 0};
  return lane_at(words);
#endif
}

/* Lanes [first, end) of a panel's row of groups. */
SIMD_INLINE void pack_lanes(const int8_t *source, int64_t k_stride, int64_t j_stride, int64_t depth,
                            int64_t columns, int64_t first, int64_t end, int32_t *to) {
  for (int64_t j = first; j < end; j++)
    to[j] = (int32_t)pack_lane(source + j * j_stride, k_stride, j < columns ? depth : 0);
}

static void pack_b_plain(const int8_t *source, int64_t stride, int64_t depth, int64_t columns,
                         int32_t *packed) {
  const int64_t groups = whole_groups(depth);
  for (int64_t j = 0; j < columns; j += NR, source += NR, packed += groups * NR) {
    const int64_t count = columns - j < NR ? columns - j : NR;
    for (int64_t g = 0; g < groups; g++) {
      const int64_t left = depth - g * GROUP;
      int64_t done = 0;
      /* Rows are far apart: the hardware does not prefetch them. */
      for (int i = 0; i < GROUP && left > AHEAD + i; i++)
        __builtin_prefetch(source + (g * GROUP + AHEAD + i) * stride);
      if (left >= GROUP && NR % PACKED == 0)
        for (; done + PACKED <= count; done += PACKED)
          pack_columns(source + g * GROUP * stride + done, stride, packed + g * NR + done);
      pack_lanes(source + g * GROUP * stride, stride, 1, left, count, done, NR, packed + g * NR);
    }
  }
}

static void pack_b_transposed(const int8_t *source, int64_t stride, int64_t depth, int64_t columns,
                              int32_t *packed) {
  const int64_t groups = whole_groups(depth);
  for (int64_t j = 0; j < columns; j += NR, source += NR * stride, packed += groups * NR) {
    const int64_t count = columns - j < NR ? columns - j : NR;
    int64_t g = 0;
#if GROUP == 4
    for (; count == NR && g + 4 <= depth / GROUP; g += 4)
      for (int64_t i = 0; i < NR; i += 4)
        transpose_4(source + i * stride + g * GROUP, stride, packed + g * NR + i);
#endif
    for (; g < groups; g++)
      pack_lanes(source + g * GROUP, 1, stride, depth - g * GROUP, count, 0, NR, packed + g * NR);
  }
}

static void pack_a(const int8_t *source, int64_t stride, int64_t depth, void *packed) {
#if GROUP == 4
  int8_t *to = packed;
#else
  int16_t *to = packed;
#endif
  if (stride == 1)
    for (int64_t k = 0; k < depth; k++) to[k] = source[k];
  else
    for (int64_t k = 0; k < depth; k++) to[k] = source[k * stride];
  for (int64_t k = depth; k < whole_groups(depth) * GROUP; k++) to[k] = 0;
}
