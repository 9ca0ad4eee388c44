/* Template: the engine of one instruction set. Its file defines ENGINE; SIMD_BYTES and VECTORS, of a row of a
 * tile; GROUP; MULTIPLY_ADD(sums, a, b), which adds the products of each lane's group; and PACKING, a header,
 * or nothing. OFFSET is 0, or 128 where B is unsigned: b + 128, and a row's sums start from -128 times its
 * sum. FACTOR and BROADCAST(x), SUMS, BEGIN_SUMS(x) and END_SUMS(sums) are for sets that keep A's lane or the
 * sums of a vector's lanes in another form. */
#include "backend/cpu/gemm/integer/integer.h"
#include "backend/cpu/simd/attributes.h"
#include <string.h>

typedef uint32_t lanes __attribute__((vector_size(SIMD_BYTES)));
enum { LANES = SIMD_BYTES / 4, NR = VECTORS * LANES, MR = 6, STEP = 1 };

#include "backend/cpu/gemm/integer/packing.h"

SIMD_INLINE lanes load_lanes(const int32_t *p) {
  lanes x;
  memcpy(&x, p, sizeof x);
  return x;
}
SIMD_INLINE void store_lanes(int32_t *p, lanes x) { memcpy(p, &x, sizeof x); }

#ifndef BROADCAST
#define FACTOR lanes
#define BROADCAST(x) ((lanes){0} + (x))
#endif
#ifndef SUMS
#define SUMS lanes
#define BEGIN_SUMS(x) ((lanes){0} + (x))
#define END_SUMS(sums) (sums)
#endif

/* `rows` is a constant after inlining. */
SIMD_INLINE void multiply_tile(const int rows, int64_t groups, const char *a, int64_t a_stride,
                               const int32_t *b, const int32_t *start, int32_t *c, int64_t c_stride,
                               bool add) {
  SUMS sums[MR][VECTORS];
  const char *row[MR];
  SIMD_UNROLL
  for (int i = 0; i < rows; i++) {
    row[i] = a + i * a_stride;
    SIMD_UNROLL
    for (int v = 0; v < VECTORS; v++) sums[i][v] = BEGIN_SUMS((uint32_t)start[i]);
  }
#pragma GCC unroll 2
  for (int64_t g = 0; g < groups; g++, b += NR) {
    lanes x[VECTORS];
    SIMD_UNROLL
    for (int v = 0; v < VECTORS; v++) x[v] = load_lanes(b + v * LANES);
    SIMD_UNROLL
    for (int i = 0; i < rows; i++) {
      const FACTOR y = BROADCAST(lane_at(row[i] + 4 * g));
      SIMD_UNROLL
      for (int v = 0; v < VECTORS; v++) sums[i][v] = MULTIPLY_ADD(sums[i][v], y, x[v]);
    }
  }
  SIMD_UNROLL
  for (int i = 0; i < rows; i++) SIMD_UNROLL
  for (int v = 0; v < VECTORS; v++) {
    int32_t *const to = c + i * c_stride + v * LANES;
    store_lanes(to, add ? load_lanes(to) + END_SUMS(sums[i][v]) : END_SUMS(sums[i][v]));
  }
}

#define MICRO_KERNEL(rows)                                                                                   \
  static void micro_##rows(int64_t groups, const void *a, int64_t a_stride, const int32_t *b,                \
                           const int32_t *start, int32_t *c, int64_t c_stride, bool add) {                   \
    multiply_tile(rows, groups, a, a_stride, b, start, c, c_stride, add);                                    \
  }
#define MICRO_KERNELS(X) X(1) X(2) X(3) X(4) X(5) X(6)
MICRO_KERNELS(MICRO_KERNEL)

#define MICRO_NAME(rows) micro_##rows,
static mix_integer_micro *const micro_kernels[MR] = {MICRO_KERNELS(MICRO_NAME)};

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

const mix_integer_engine ENGINE = {.mr = MR,
                                   .nr = NR,
                                   .group = GROUP,
                                   .step = STEP,
                                   .rows = 1,
                                   .micro = micro_kernels,
                                   .pack_b = {pack_b_plain, pack_b_transposed},
                                   .pack_a = pack_a,
                                   .start = start_of};
