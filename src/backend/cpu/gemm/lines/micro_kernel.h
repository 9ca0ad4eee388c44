/* Part of the templates of engines: micro-kernels for lines of cells (lines.h), after those of blocked
 * products. Sums stay in registers over all segments of a block of k. */
#if SIMD_DOUBLE || (SIMD_BYTES == 16 && SIMD_REGISTERS == 16)
#define LINES_MICRO {NULL}
#else
#include <string.h>

#ifdef TILE_OF_PAIRS
/* Elements of A, `step` from one to the next, whose second numbers are no terms: -0, which with the +0 of B
 * leaves every sum as it is (bf16.h). */
static __attribute__((noinline)) void lines_single(int rows, const real *a, int64_t step, real *to) {
  for (int i = 0; i < rows; i++) {
    uint32_t bits;
    memcpy(&bits, a + i * step, sizeof bits);
    bits = (bits & 0xffff0000u) | 0x8000u;
    memcpy(to + i, &bits, sizeof bits);
  }
}
#endif

/* `rows`, `vectors` and `layout` are constants after inlining, as in multiply_tile. */
SIMD_INLINE void lines_step(const int rows, const int vectors, const int layout, const real *const group[4],
                            int64_t a_stride, const real *b, vec sums[MR][2]) {
  const vec b0 = v_load(b), b1 = vectors == 2 ? v_load(b + LANES) : b0;
  SIMD_UNROLL
  for (int i = 0; i < rows; i++) {
    const vec x = v_set(layout == MIX_GEMM_ALONG_K ? group[i / 4][i % 4 * a_stride] : group[0][i]);
    sums[i][0] = TILE_FMA(x, b0, sums[i][0]);
    if (vectors == 2) sums[i][1] = TILE_FMA(x, b1, sums[i][1]);
  }
}

/* Where chains begin: loads alone take less space than loads and zeros. */
static const real lines_zero[2 * LANES];

SIMD_INLINE void multiply_segments(const int rows, const int vectors, const int layout,
                                   const mix_gemm_segment *segments, int64_t count, const real *a,
                                   int64_t a_stride, const real *b, const real *from, real *c,
                                   int64_t c_stride, bool add) {
  vec sums[MR][2];
  const int64_t from_stride = from ? c_stride : 0;
  if (!from) from = lines_zero;
  SIMD_UNROLL
  for (int i = 0; i < rows; i++, from += from_stride) {
    SIMD_OPAQUE(from);
    sums[i][0] = v_load(from);
    if (vectors == 2) sums[i][1] = v_load(from + LANES);
  }
#pragma GCC unroll 1
  for (; count > 0; count--, segments++) {
    const real *first = a + segments->offset;
    int64_t k = segments->depth, stride = a_stride;
#ifdef TILE_OF_PAIRS
    real single[MR];
    k -= segments->odd;
#pragma GCC unroll 1
    for (int64_t part = 0; part <= segments->odd; part++, first = single, stride = 1, k = 1)
#endif
    {
      const real *group[4] = {first, first + 4 * stride, first + 8 * stride, first + 12 * stride};
#pragma GCC unroll 1
      for (; k > 0; k--, b += NR) {
        lines_step(rows, vectors, layout, group, stride, b, sums);
        if (layout == MIX_GEMM_ALONG_M) {
          group[0] += stride;
          continue;
        }
        SIMD_UNROLL
        for (int g = 0; g < (rows + 3) / 4; g++) {
          group[g]++;
          SIMD_OPAQUE(group[g]);
        }
      }
#ifdef TILE_OF_PAIRS
      if (segments->odd && first != single)
        lines_single(rows, group[0], layout == MIX_GEMM_ALONG_K ? stride : 1, single);
#endif
    }
  }
  if (add) {
    const real *row = c;
    SIMD_UNROLL
    for (int i = 0; i < rows; i++, row += c_stride) {
      SIMD_OPAQUE(row);
      sums[i][0] += v_load(row);
      if (vectors == 2) sums[i][1] += v_load(row + LANES);
    }
  }
  SIMD_UNROLL
  for (int i = 0; i < rows; i++, c += c_stride) {
    SIMD_OPAQUE(c);
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
static mix_gemm_lines_micro *const lines_along_k[MR] = {EACH_MR(MICRO_KERNEL_NAME, lines_along_k)};
/* Along m more rows than asked for do no harm, and fewer functions take less space: the next of these. */
#if SIMD_REGISTERS == 32 && SIMD_MASKS
LINES_MICRO_KERNEL(4, MIX_GEMM_ALONG_M, lines_along_m)
LINES_MICRO_KERNEL(8, MIX_GEMM_ALONG_M, lines_along_m)
LINES_MICRO_KERNEL(11, MIX_GEMM_ALONG_M, lines_along_m)
LINES_MICRO_KERNEL(13, MIX_GEMM_ALONG_M, lines_along_m)
LINES_MICRO_KERNEL(14, MIX_GEMM_ALONG_M, lines_along_m)
static mix_gemm_lines_micro *const lines_along_m[MR] = {
    lines_along_m_4,  lines_along_m_4,  lines_along_m_4,  lines_along_m_4,  lines_along_m_8,
    lines_along_m_8,  lines_along_m_8,  lines_along_m_8,  lines_along_m_11, lines_along_m_11,
    lines_along_m_11, lines_along_m_13, lines_along_m_13, lines_along_m_14};
#else
EACH_MR(LINES_MICRO_KERNEL, MIX_GEMM_ALONG_M, lines_along_m)
static mix_gemm_lines_micro *const lines_along_m[MR] = {EACH_MR(MICRO_KERNEL_NAME, lines_along_m)};
#endif
#define LINES_MICRO {lines_along_k, lines_along_m}
#endif
