/* Template: products of small matrices, for kernels that have matrices of their own in the cache. Included
 * after a simd_*.h. */

enum { PRODUCT_ROWS = 4, PRODUCT_VECTORS = 3 };

/* ROWS x VECTORS registers of C; behind `whole` vectors stand the lanes of `part`. */
static inline __attribute__((always_inline)) void
product_tile(float *c, int64_t c_stride, const float *a, int64_t a_row, int64_t a_depth, const float *b,
             int64_t b_stride, int64_t k, int rows, int vectors, int whole, v_part part, bool add) {
  vf sum[PRODUCT_ROWS][PRODUCT_VECTORS], factor[PRODUCT_VECTORS];
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < vectors; j++) {
      const float *from = c + i * c_stride + j * LANES;
      sum[i][j] = !add ? v_set(0) : j < whole ? v_load(from) : v_load_part(from, part);
    }
  for (int64_t p = 0; p < k; p++) {
    for (int j = 0; j < vectors; j++) {
      const float *from = b + p * b_stride + j * LANES;
      factor[j] = j < whole ? v_load(from) : v_load_part(from, part);
    }
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < vectors; j++)
        V_ACCUMULATE_BROADCAST(sum[i][j], a + i * a_row + p * a_depth, factor[j]);
  }
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < vectors; j++)
      if (j < whole)
        v_store(c + i * c_stride + j * LANES, sum[i][j]);
      else
        v_store_part(c + i * c_stride + j * LANES, sum[i][j], part);
}

#define PRODUCT_TILE(rows, vectors, whole)                                                                   \
  product_tile(c + i * c_stride + j, c_stride, a + i * a_row, a_row, a_depth, b + j, b_stride, k, rows,      \
               vectors, whole, part, add)

/* C (m, n) = A (m, k) B (k, n), or added to C. Element (i, p) of A is a[i * a_row + p * a_depth]. */
static void product(float *c, int64_t c_stride, const float *a, int64_t a_row, int64_t a_depth,
                    const float *b, int64_t b_stride, int64_t m, int64_t n, int64_t k, bool add) {
  const int64_t wide = PRODUCT_VECTORS * LANES;
  v_part part = v_first(0);
  for (int64_t j = 0; j < n; j += wide) {
    const int64_t columns = n - j < wide ? n - j : wide;
    const int vectors = (int)((columns + LANES - 1) / LANES), whole = (int)(columns / LANES);
    if (whole < vectors) part = v_first(columns % LANES);
    int64_t i = 0;
    for (; i + PRODUCT_ROWS <= m; i += PRODUCT_ROWS)
      if (whole == PRODUCT_VECTORS)
        PRODUCT_TILE(PRODUCT_ROWS, PRODUCT_VECTORS, PRODUCT_VECTORS);
      else if (vectors == 1 && whole == 1)
        PRODUCT_TILE(PRODUCT_ROWS, 1, 1);
      else if (vectors == 2 && whole == 2)
        PRODUCT_TILE(PRODUCT_ROWS, 2, 2);
      else
        PRODUCT_TILE(PRODUCT_ROWS, vectors, whole);
    for (; i < m; i++)
      if (whole == PRODUCT_VECTORS)
        PRODUCT_TILE(1, PRODUCT_VECTORS, PRODUCT_VECTORS);
      else
        PRODUCT_TILE(1, vectors, whole);
  }
}
#undef PRODUCT_TILE
