/* Part of the template blocked/pack.h: products with few columns, as sums along vectors of k. Each row of A
 * is read once, in place; the columns of B lie packed as rows. */

/* `rows` and `columns` are constants after inlining, so that `sums` lives in registers. */
SIMD_INLINE void PASTE(small_n, STORAGE)(const int rows, const int columns, int64_t depth, const ELEMENT *a,
                                         int64_t a_stride, const real *b, int64_t b_stride, real *lanes,
                                         bool first, real *out) {
  vec sums[SMALL_N_ROWS][SMALL_N_MAX_COLUMNS];
  SIMD_UNROLL
  for (int r = 0; r < rows; r++) {
    SIMD_UNROLL
    for (int j = 0; j < columns; j++)
      sums[r][j] = first ? (vec){0} : v_load(lanes + (r * columns + j) * LANES);
  }
  /* Four pointers for up to 16 rows, as in blocked/micro_kernel.h. */
  const real *group[4] = {b, b + 4 * b_stride, b + 8 * b_stride, b + 12 * b_stride};
  for (int64_t k = 0; k < depth; k += LANES) {
    vec x[SMALL_N_ROWS];
    const bool whole = k + LANES <= depth;
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
      x[r] = whole ? WIDEN(a + r * a_stride + k) : WIDEN_PART(a + r * a_stride + k, depth - k);
      __builtin_prefetch(a + r * a_stride + k + 2048 / sizeof(ELEMENT));
    }
    SIMD_UNROLL
    for (int j = 0; j < columns; j++) {
      const vec y = v_load(group[j / 4] + j % 4 * b_stride);
      SIMD_UNROLL
      for (int r = 0; r < rows; r++) sums[r][j] = v_fma(x[r], y, sums[r][j]);
    }
    SIMD_UNROLL
    for (int g = 0; g < (columns + 3) / 4; g++) {
      group[g] += LANES;
      SIMD_OPAQUE(group[g]);
    }
  }
  if (out) {
    store_horizontal_sums(rows, columns, sums, out);
    return;
  }
  SIMD_UNROLL
  for (int r = 0; r < rows; r++) {
    SIMD_UNROLL
    for (int j = 0; j < columns; j++) v_store(lanes + (r * columns + j) * LANES, sums[r][j]);
  }
}
#define SMALL_N_CASE(n)                                                                                      \
  case n: PASTE(small_n, STORAGE)(rows, n, depth, source, stride, b, b_stride, lanes, first, out); break;
SIMD_INLINE void PASTE(small_n_by_columns, STORAGE)(const int rows, int64_t depth, const void *source,
                                                    int64_t stride, const void *b, int64_t b_stride,
                                                    int columns, void *lanes, bool first, void *out) {
  switch (columns) {
    SMALL_N_CASE(1)
    SMALL_N_CASE(2)
    SMALL_N_CASE(3)
    SMALL_N_CASE(4)
    SMALL_N_CASE(5)
    SMALL_N_CASE(6)
    SMALL_N_CASE(7)
    SMALL_N_CASE(8)
    SMALL_N_CASE(9)
    SMALL_N_CASE(10)
    SMALL_N_CASE(11)
    SMALL_N_CASE(12)
    SMALL_N_CASE(13)
    SMALL_N_CASE(14)
    SMALL_N_CASE(15)
  }
}
#undef SMALL_N_CASE
static void PASTE(small_n_rows, STORAGE)(int64_t depth, const void *source, int64_t stride, const void *b,
                                         int64_t b_stride, int columns, void *lanes, bool first, void *out) {
  PASTE(small_n_by_columns, STORAGE)
  (SMALL_N_ROWS, depth, source, stride, b, b_stride, columns, lanes, first, out);
}
static void PASTE(small_n_row, STORAGE)(int64_t depth, const void *source, int64_t stride, const void *b,
                                        int64_t b_stride, int columns, void *lanes, bool first, void *out) {
  PASTE(small_n_by_columns, STORAGE)(1, depth, source, stride, b, b_stride, columns, lanes, first, out);
}
