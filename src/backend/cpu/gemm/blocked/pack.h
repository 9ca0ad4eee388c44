/* Template of the functions of one storage dtype, included once for each: STORAGE is f16, bf16, f32 or f64, ELEMENT its C type. */
#include "backend/cpu/simd/horizontal_sum.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/blocked/storage.h"

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define WIDEN PASTE(widen, STORAGE)
#define WIDEN_SOME PASTE(widen_some, STORAGE)

/* source[i * stride + k] -> packed[i * packed_stride + k]. */
static void PASTE(pack_a_rows, STORAGE)(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                                        int64_t packed_stride) {
  for (int i = 0; i < rows; i++) {
    const ELEMENT *from = (const ELEMENT *)source + i * stride;
    GEMM_REAL *to = (GEMM_REAL *)packed + i * packed_stride;
    int64_t k = 0;
    for (; k + LANES <= depth; k += LANES) store(to + k, WIDEN(from + k));
    if (k < depth) store(to + k, WIDEN_SOME(from + k, depth - k));
  }
}

/* source[k * stride + i] -> packed[k * packed_stride + i], in whole vectors. */
static void PASTE(pack_a_columns, STORAGE)(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                                           int64_t packed_stride) {
  const ELEMENT *from = source;
  GEMM_REAL *to = packed;
  for (int64_t k = 0; k < depth; k++, from += stride, to += packed_stride) {
    int i = 0;
    for (; i + LANES <= rows; i += LANES) store(to + i, WIDEN(from + i));
    if (i < rows) store(to + i, WIDEN_SOME(from + i, rows - i));
  }
}

#if defined(__AVX2__) && !GEMM_DOUBLE
/* source[j * stride + k] -> packed[k * packed_stride + j] for up to four columns j (what is stored behind them is any number) and k up to
 * `end`, as long as four are left; returns the next k. */
GEMM_INLINE int64_t PASTE(transpose_fours, STORAGE)(const int columns, const ELEMENT *from, int64_t stride, int64_t k, int64_t end,
                                               GEMM_REAL *to, int64_t packed_stride) {
  const ELEMENT *column[4] = {from};
  for (int j = 1; j < 4; j++) column[j] = j < columns ? column[j - 1] + stride : column[j - 1];
  for (; k + 4 <= end; k += 4) {
    __m128 r0 = PASTE(four, STORAGE)(column[0] + k), r1 = PASTE(four, STORAGE)(column[1] + k);
    __m128 r2 = PASTE(four, STORAGE)(column[2] + k), r3 = PASTE(four, STORAGE)(column[3] + k);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps(to + k * packed_stride, r0);
    _mm_storeu_ps(to + (k + 1) * packed_stride, r1);
    _mm_storeu_ps(to + (k + 2) * packed_stride, r2);
    _mm_storeu_ps(to + (k + 3) * packed_stride, r3);
  }
  return k;
}
#endif
#if defined(__AVX512F__) && !GEMM_DOUBLE
/* The same for up to 16 columns (a constant where it is inlined); stores 16. Column c + 4 g goes to lane g of vector c by masked
 * loads, which need no shuffle, and one transposition in the lanes serves all. */
GEMM_INLINE int64_t PASTE(transpose_vectors, STORAGE)(const int columns, const ELEMENT *from, int64_t stride, int64_t k, int64_t end,
                                                 GEMM_REAL *to, int64_t packed_stride) {
  for (; k + 4 <= end; k += 4) {
    __m512 r[4];
    GEMM_UNROLL
    for (int c = 0; c < 4; c++) {
      const ELEMENT *column = from + c * stride + k;
      r[c] = _mm512_zextps128_ps512(PASTE(four, STORAGE)(column));
      if (c + 4 < columns) r[c] = _mm512_mask_broadcast_f32x4(r[c], 0x00f0, PASTE(four, STORAGE)(column + 4 * stride));
      if (c + 8 < columns) r[c] = _mm512_mask_broadcast_f32x4(r[c], 0x0f00, PASTE(four, STORAGE)(column + 8 * stride));
      if (c + 12 < columns) r[c] = _mm512_mask_broadcast_f32x4(r[c], 0xf000, PASTE(four, STORAGE)(column + 12 * stride));
    }
    const __m512d low0 = _mm512_castps_pd(_mm512_unpacklo_ps(r[0], r[1])), low1 = _mm512_castps_pd(_mm512_unpacklo_ps(r[2], r[3]));
    const __m512d high0 = _mm512_castps_pd(_mm512_unpackhi_ps(r[0], r[1])),
                  high1 = _mm512_castps_pd(_mm512_unpackhi_ps(r[2], r[3]));
    store(to + k * packed_stride, (vector)_mm512_unpacklo_pd(low0, low1));
    store(to + (k + 1) * packed_stride, (vector)_mm512_unpackhi_pd(low0, low1));
    store(to + (k + 2) * packed_stride, (vector)_mm512_unpacklo_pd(high0, high1));
    store(to + (k + 3) * packed_stride, (vector)_mm512_unpackhi_pd(high0, high1));
  }
  return k;
}
#endif

/* source[i * stride + k] -> packed[k * packed_stride + i], a tile's rows at most. */
static void PASTE(pack_a_transposed, STORAGE)(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                                          int64_t packed_stride) {
  const ELEMENT *from = source;
  GEMM_REAL *to = packed;
  int64_t k = 0;
  int done = 0; /* rows of which only k and what follows is left */
#if defined(__AVX512F__) && !GEMM_DOUBLE
  if (rows == TILE_ROWS) k = PASTE(transpose_vectors, STORAGE)(TILE_ROWS, from, stride, 0, depth, to, packed_stride), done = rows;
  if (rows == TILE_ROWS - 1)
    k = PASTE(transpose_vectors, STORAGE)(TILE_ROWS - 1, from, stride, 0, depth, to, packed_stride), done = rows;
#endif
#if defined(__AVX2__) && !GEMM_DOUBLE
  for (; done < rows; done += 4) /* a packed row has room for whole vectors */
    k = PASTE(transpose_fours, STORAGE)(rows - done, from + done * stride, stride, 0, depth, to + done, packed_stride);
#endif
  for (int i = 0; i < rows; i++)
    for (int64_t rest = i < done ? k : 0; rest < depth; rest++)
      to[rest * packed_stride + i] = WIDEN_SOME(from + i * stride + rest, 1)[0];
}

/* source[k * stride + j] -> panel j / TILE_COLUMNS, row k: whole rows of the source at a time, which the prefetcher follows. */
static void PASTE(pack_b_plain, STORAGE)(const void *source, int64_t stride, int64_t depth, int64_t columns, void *packed,
                                         int64_t panel) {
  for (int64_t k = 0; k < depth; k++) {
    const ELEMENT *from = (const ELEMENT *)source + k * stride;
    GEMM_REAL *to = (GEMM_REAL *)packed + k * TILE_COLUMNS;
    int64_t j = 0;
    for (; j + TILE_COLUMNS <= columns; j += TILE_COLUMNS, to += panel) {
      store(to, WIDEN(from + j));
      store(to + LANES, WIDEN(from + j + LANES));
    }
    for (; j < columns; j += LANES, to += LANES) {
      if (j + LANES <= columns)
        store(to, WIDEN(from + j));
      else
        store(to, WIDEN_SOME(from + j, columns - j));
    }
  }
}

/* source[j * stride + k] -> panel j / TILE_COLUMNS, row k. Chunks of k keep both sides in the first-level cache. */
static void PASTE(pack_b_transposed, STORAGE)(const void *source, int64_t stride, int64_t depth, int64_t columns, void *packed,
                                          int64_t panel) {
  enum { CHUNK = 64 };
  for (int64_t p = 0; p * TILE_COLUMNS < columns; p++) {
    const ELEMENT *rows = (const ELEMENT *)source + p * TILE_COLUMNS * stride;
    GEMM_REAL *to = (GEMM_REAL *)packed + p * panel;
    const int64_t width = columns - p * TILE_COLUMNS < TILE_COLUMNS ? columns - p * TILE_COLUMNS : TILE_COLUMNS;
    const int64_t padded = (width + LANES - 1) / LANES * LANES;
    for (int64_t first = 0; first < depth; first += CHUNK) {
      const int64_t end = depth - first < CHUNK ? depth : first + CHUNK;
      int64_t j = 0;
#if defined(__AVX512F__) && !GEMM_DOUBLE
      for (; j + LANES <= width; j += LANES) {
        const ELEMENT *from = rows + j * stride;
        int64_t k = PASTE(transpose_vectors, STORAGE)(LANES, from, stride, first, end, to + j, TILE_COLUMNS);
        for (; k < end; k++)
          for (int c = 0; c < LANES; c++) to[k * TILE_COLUMNS + j + c] = WIDEN_SOME(from + c * stride + k, 1)[0];
      }
#endif
#if defined(__AVX2__) && !GEMM_DOUBLE
      for (; j + 4 <= width; j += 4) {
        const ELEMENT *from = rows + j * stride;
        int64_t k = PASTE(transpose_fours, STORAGE)(4, from, stride, first, end, to + j, TILE_COLUMNS);
        for (; k < end; k++)
          for (int c = 0; c < 4; c++) to[k * TILE_COLUMNS + j + c] = WIDEN_SOME(from + c * stride + k, 1)[0];
      }
#endif
      for (; j < width; j++)
        for (int64_t k = first; k < end; k++) to[k * TILE_COLUMNS + j] = WIDEN_SOME(rows + j * stride + k, 1)[0];
      for (; j < padded; j++)
        for (int64_t k = first; k < end; k++) to[k * TILE_COLUMNS + j] = 0;
    }
  }
}

/* `rows` and `columns` are constants where it is inlined. */
GEMM_INLINE void PASTE(small_n, STORAGE)(const int rows, const int columns, int64_t depth, const ELEMENT *a, int64_t a_stride,
                                     const GEMM_REAL *b, int64_t b_stride, GEMM_REAL *lanes, bool first, GEMM_REAL *out) {
  vector sums[SMALL_N_ROWS][SMALL_N_MAX_COLUMNS];
  GEMM_UNROLL
  for (int r = 0; r < rows; r++) {
    GEMM_UNROLL
    for (int j = 0; j < columns; j++) sums[r][j] = first ? (vector){0} : load(lanes + (r * columns + j) * LANES);
  }
  const GEMM_REAL *group[4] = {b, b + 4 * b_stride, b + 8 * b_stride, b + 12 * b_stride}; /* as in micro.h */
  for (int64_t k = 0; k < depth; k += LANES) {
    vector x[SMALL_N_ROWS];
    const bool whole = k + LANES <= depth;
    GEMM_UNROLL
    for (int r = 0; r < rows; r++) {
      x[r] = whole ? WIDEN(a + r * a_stride + k) : WIDEN_SOME(a + r * a_stride + k, depth - k);
      __builtin_prefetch(a + r * a_stride + k + 2048 / sizeof(ELEMENT));
    }
    GEMM_UNROLL
    for (int j = 0; j < columns; j++) {
      const vector y = load(group[j / 4] + j % 4 * b_stride);
      GEMM_UNROLL
      for (int r = 0; r < rows; r++) sums[r][j] = multiply_add(x[r], y, sums[r][j]);
    }
    GEMM_UNROLL
    for (int g = 0; g < (columns + 3) / 4; g++) {
      group[g] += LANES;
      GEMM_OPAQUE(group[g]);
    }
  }
  if (out) {
    fold_rows(rows, columns, sums, out);
    return;
  }
  GEMM_UNROLL
  for (int r = 0; r < rows; r++) {
    GEMM_UNROLL
    for (int j = 0; j < columns; j++) store(lanes + (r * columns + j) * LANES, sums[r][j]);
  }
}
#define SMALL_N_CASE(n)                                                                                                                \
  case n: PASTE(small_n, STORAGE)(rows, n, depth, source, stride, b, b_stride, lanes, first, out); break;
GEMM_INLINE void PASTE(small_n_by_columns, STORAGE)(const int rows, int64_t depth, const void *source, int64_t stride, const void *b,
                                                int64_t b_stride, int columns, void *lanes, bool first, void *out) {
  switch (columns) {
    SMALL_N_CASE(1)
    SMALL_N_CASE(2)
    SMALL_N_CASE(3) SMALL_N_CASE(4) SMALL_N_CASE(5) SMALL_N_CASE(6) SMALL_N_CASE(7) SMALL_N_CASE(8) SMALL_N_CASE(9) SMALL_N_CASE(10) SMALL_N_CASE(11) SMALL_N_CASE(12)
    SMALL_N_CASE(13) SMALL_N_CASE(14) SMALL_N_CASE(15)
  }
}
#undef SMALL_N_CASE
static void PASTE(small_n_rows, STORAGE)(int64_t depth, const void *source, int64_t stride, const void *b, int64_t b_stride,
                                     int columns, void *lanes, bool first, void *out) {
  PASTE(small_n_by_columns, STORAGE)(SMALL_N_ROWS, depth, source, stride, b, b_stride, columns, lanes, first, out);
}
static void PASTE(small_n_row, STORAGE)(int64_t depth, const void *source, int64_t stride, const void *b, int64_t b_stride, int columns,
                                    void *lanes, bool first, void *out) {
  PASTE(small_n_by_columns, STORAGE)(1, depth, source, stride, b, b_stride, columns, lanes, first, out);
}

#include "backend/cpu/gemm/small_m/small_m.h"

#undef PASTE_
#undef PASTE
#undef WIDEN
#undef WIDEN_SOME
#undef STORAGE
#undef ELEMENT
