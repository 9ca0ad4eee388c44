/* Template: the engine of one instruction set. Its file defines ENGINE; SIMD_BYTES and VECTORS, of a row of a
 * tile; GROUP; MULTIPLY_ADD(sums, a, b), which adds the products of each lane's group; and PACKING, a header,
 * or nothing. OFFSET is 0, or 128 where B is unsigned: b + 128, and a row's sums start from -128 times its
 * sum. */
#include "backend/cpu/gemm/integer/integer.h"
#include "backend/cpu/simd/attributes.h"
#include <string.h>

typedef uint32_t lanes __attribute__((vector_size(SIMD_BYTES)));
enum { LANES = SIMD_BYTES / 4, NR = VECTORS * LANES, MR = MIX_INTEGER_MR, AHEAD = 16 };

SIMD_INLINE uint32_t lane_at(const void *p) {
  uint32_t x;
  memcpy(&x, p, sizeof x);
  return x;
}
SIMD_INLINE lanes load_lanes(const int32_t *p) {
  lanes x;
  memcpy(&x, p, sizeof x);
  return x;
}
SIMD_INLINE void store_lanes(int32_t *p, lanes x) { memcpy(p, &x, sizeof x); }

/* `rows` is a constant after inlining. */
SIMD_INLINE void multiply_tile(const int rows, int64_t groups, const char *a, int64_t a_stride,
                               const int32_t *b, const int32_t *start, int32_t *c, int64_t c_stride,
                               bool add) {
  lanes sums[MR][VECTORS];
  const char *row[MR];
  SIMD_UNROLL
  for (int i = 0; i < rows; i++) {
    row[i] = a + i * a_stride;
    SIMD_UNROLL
    for (int v = 0; v < VECTORS; v++) sums[i][v] = (lanes){0} + (uint32_t)start[i];
  }
#pragma GCC unroll 2
  for (int64_t g = 0; g < groups; g++, b += NR) {
    lanes x[VECTORS];
    SIMD_UNROLL
    for (int v = 0; v < VECTORS; v++) x[v] = load_lanes(b + v * LANES);
    SIMD_UNROLL
    for (int i = 0; i < rows; i++) {
      const lanes y = (lanes){0} + lane_at(row[i] + 4 * g);
      SIMD_UNROLL
      for (int v = 0; v < VECTORS; v++) sums[i][v] = MULTIPLY_ADD(sums[i][v], y, x[v]);
    }
  }
  SIMD_UNROLL
  for (int i = 0; i < rows; i++) SIMD_UNROLL
  for (int v = 0; v < VECTORS; v++) {
    int32_t *const to = c + i * c_stride + v * LANES;
    store_lanes(to, add ? load_lanes(to) + sums[i][v] : sums[i][v]);
  }
}

#define MICRO_KERNEL(rows)                                                                                   \
  static void micro_##rows(int64_t groups, const void *a, int64_t a_stride, const int32_t *b,                \
                           const int32_t *start, int32_t *c, int64_t c_stride, bool add) {                   \
    multiply_tile(rows, groups, a, a_stride, b, start, c, c_stride, add);                                    \
  }
MICRO_KERNEL(1)
MICRO_KERNEL(2) MICRO_KERNEL(3) MICRO_KERNEL(4) MICRO_KERNEL(5)
    MICRO_KERNEL(6) static mix_integer_micro *const micro_kernels[MR] = {micro_1, micro_2, micro_3,
                                                                         micro_4, micro_5, micro_6};

/* ---- packing ---- */

#ifdef PACKING
#include PACKING
#else
SIMD_INLINE void pack_16(const int8_t *source, int64_t stride, int32_t *to) {}
#endif

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
  const int64_t groups = (depth + GROUP - 1) / GROUP;
  for (int64_t j = 0; j < columns; j += NR, source += NR, packed += groups * NR) {
    const int64_t count = columns - j < NR ? columns - j : NR;
    for (int64_t g = 0; g < groups; g++) {
      const int64_t left = depth - g * GROUP;
      int64_t done = 0;
      /* Rows are far apart: the hardware does not prefetch them. */
      for (int i = 0; i < GROUP && left > AHEAD + i; i++)
        __builtin_prefetch(source + (g * GROUP + AHEAD + i) * stride);
      if (left >= GROUP && NR % 16 == 0)
        for (; done + 16 <= count; done += 16)
          pack_16(source + g * GROUP * stride + done, stride, packed + g * NR + done);
      pack_lanes(source + g * GROUP * stride, stride, 1, left, count, done, NR, packed + g * NR);
    }
  }
}

static void pack_b_transposed(const int8_t *source, int64_t stride, int64_t depth, int64_t columns,
                              int32_t *packed) {
  const int64_t groups = (depth + GROUP - 1) / GROUP;
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
  for (int64_t k = depth; k % GROUP; k++) to[k] = 0;
}

#if OFFSET
/* -128 times the sum: each number times the 128 that is stored too much. */
static int32_t start_of(const void *a, int64_t groups) {
  const char *from = a;
  lanes sums = {0}, offsets = (lanes){0} + 0x80808080u;
  int64_t g = 0;
  for (; g + LANES <= groups; g += LANES) {
    lanes x;
    memcpy(&x, from + 4 * g, sizeof x);
    sums = MULTIPLY_ADD(sums, x, offsets);
  }
  uint32_t sum = 0;
  for (int i = 0; i < LANES; i++) sum += sums[i];
  for (int64_t k = 4 * g; k < 4 * groups; k++) sum += (uint32_t)(128 * (signed char)from[k]);
  return (int32_t)-sum;
}
#else
#define start_of NULL
#endif

const mix_integer_engine ENGINE = {.nr = NR,
                                   .group = GROUP,
                                   .micro = micro_kernels,
                                   .pack_b = {pack_b_plain, pack_b_transposed},
                                   .pack_a = pack_a,
                                   .start = start_of};
