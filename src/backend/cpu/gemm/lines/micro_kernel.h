/* Part of the templates of engines: micro-kernels for lines of cells (lines.h), after those of blocked
 * products. Sums stay in registers over all segments of a block of k. */
#if SIMD_DOUBLE
#define LINES_MICRO {NULL}
#else
#include <string.h>

/* An element of A for all lanes. single: its second number, of a pair, is -0, which with the +0 of B leaves
 * every sum as it is (bf16.h). */
SIMD_INLINE vec lines_element(const bool single, const real *p) {
  if (!single) return v_set(*p);
  uint32_t bits;
  memcpy(&bits, p, sizeof bits);
  bits = (bits & 0xffff0000u) | 0x8000u;
  real x;
  memcpy(&x, &bits, sizeof x);
  return v_set(x);
}

/* `rows`, `vectors`, `layout` and `single` are constants after inlining, as in multiply_tile. */
SIMD_INLINE void lines_step(const int rows, const int vectors, const int layout, const bool single,
                            const real *group[4], int64_t a_stride, const real *b, vec sums[MR][2]) {
  const vec b0 = v_load(b), b1 = vectors == 2 ? v_load(b + LANES) : b0;
  SIMD_UNROLL
  for (int i = 0; i < rows; i++) {
    const vec x = lines_element(
        single, layout == MIX_GEMM_ALONG_K ? group[i / 4] + i % 4 * a_stride : group[0] + i);
    sums[i][0] = TILE_FMA(x, b0, sums[i][0]);
    if (vectors == 2) sums[i][1] = TILE_FMA(x, b1, sums[i][1]);
  }
}

SIMD_INLINE void multiply_segments(const int rows, const int vectors, const int layout,
                                   const mix_gemm_segment *segments, int64_t count, const real *a,
                                   int64_t a_stride, const real *b, const real *from, real *c,
                                   int64_t c_stride, bool add) {
  vec sums[MR][2];
  SIMD_UNROLL
  for (int i = 0; i < rows; i++) sums[i][0] = sums[i][1] = (vec){0};
  if (from) {
    SIMD_UNROLL
    for (int i = 0; i < rows; i++, from += c_stride) {
      SIMD_OPAQUE(from);
      sums[i][0] = v_load(from);
      if (vectors == 2) sums[i][1] = v_load(from + LANES);
    }
  }
#pragma GCC unroll 1
  for (; count > 0; count--, segments++) {
    const real *first = a + segments->offset,
               *group[4] = {first, first + 4 * a_stride, first + 8 * a_stride, first + 12 * a_stride};
#pragma GCC unroll 1
    for (int64_t k = segments->depth - segments->odd; k > 0; k--, b += NR) {
      lines_step(rows, vectors, layout, false, group, a_stride, b, sums);
      if (layout == MIX_GEMM_ALONG_M) {
        group[0] += a_stride;
        continue;
      }
      SIMD_UNROLL
      for (int g = 0; g < (rows + 3) / 4; g++) {
        group[g]++;
        SIMD_OPAQUE(group[g]);
      }
    }
#ifdef TILE_OF_PAIRS
    if (segments->odd) lines_step(rows, vectors, layout, true, group, a_stride, b, sums), b += NR;
#endif
  }
  SIMD_UNROLL
  for (int i = 0; i < rows; i++, c += c_stride) {
    SIMD_OPAQUE(c);
    if (add) {
      sums[i][0] += v_load(c);
      if (vectors == 2) sums[i][1] += v_load(c + LANES);
    }
    v_store(c, sums[i][0]);
    if (vectors == 2) v_store(c + LANES, sums[i][1]);
  }
}

#define LINES_MICRO_KERNEL(rows, layout, name)                                                               \
  static void name##_##rows(const mix_gemm_segment *segments, int64_t count, const void *a,                  \
                            int64_t a_stride, const void *b, const void *from, void *c, int64_t c_stride,    \
                            int columns, bool add) {                                                         \
    if (columns > LANES)                                                                                     \
      multiply_segments(rows, 2, layout, segments, count, a, a_stride, b, from, c, c_stride, add);           \
    else                                                                                                     \
      multiply_segments(rows, 1, layout, segments, count, a, a_stride, b, from, c, c_stride, add);           \
  }
EACH_MR(LINES_MICRO_KERNEL, MIX_GEMM_ALONG_K, lines_along_k)
EACH_MR(LINES_MICRO_KERNEL, MIX_GEMM_ALONG_M, lines_along_m)
static mix_gemm_lines_micro *const lines_along_k[MR] = {EACH_MR(MICRO_KERNEL_NAME, lines_along_k)};
static mix_gemm_lines_micro *const lines_along_m[MR] = {EACH_MR(MICRO_KERNEL_NAME, lines_along_m)};
#define LINES_MICRO {lines_along_k, lines_along_m}
#endif
