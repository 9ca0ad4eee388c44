/* Part of pack.h. Products with few rows: B is read once, in place, along its rows, a few of them at a time, while the sums of all
 * rows wait in a cache. */

/* `steps` of k for all columns; `first`: the sums start from zero; `fetch`: the rows of B that come next. `steps` and `fetch` are
 * constants where it is inlined. */
GEMM_INLINE void PASTE(small_m_steps, STORAGE)(const int steps, const bool fetch, int64_t rows, const GEMM_REAL *a, int64_t a_stride,
                                             const ELEMENT *b, int64_t b_stride, int64_t columns, GEMM_REAL *sums,
                                             int64_t sums_stride, bool first) {
  for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
    const ELEMENT *from = b + j;
    const int64_t left = columns - j;
    vector x[SMALL_M_STEPS][2];
    GEMM_UNROLL
    for (int k = 0; k < steps; k++, from += b_stride) {
      x[k][0] = left >= LANES ? WIDEN(from) : WIDEN_SOME(from, left);
      x[k][1] = left >= TILE_COLUMNS ? WIDEN(from + LANES) : left > LANES ? WIDEN_SOME(from + LANES, left - LANES) : (vector){0};
      if (fetch) __builtin_prefetch(from + steps * b_stride, 0, 2), __builtin_prefetch(from + steps * b_stride + LANES, 0, 2);
    }
    const GEMM_REAL *factor = a;
    GEMM_REAL *sum = sums + j;
#pragma GCC unroll 1
    for (int64_t i = 0; i < rows; i++, factor += a_stride, sum += sums_stride) {
      vector s0 = {0}, s1 = {0};
      if (!first) s0 = load(sum), s1 = load(sum + LANES);
      GEMM_UNROLL
      for (int k = 0; k < steps; k++) {
        const vector y = broadcast(factor[k]);
        s0 = multiply_add(y, x[k][0], s0), s1 = multiply_add(y, x[k][1], s1);
      }
      store(sum, s0), store(sum + LANES, s1);
    }
  }
}

#define SMALL_M(steps, fetch)                                                                                                        \
  PASTE(small_m_steps, STORAGE)(steps, fetch, rows, factors + k, a_stride, b + k * stride, stride, columns, to, sums_stride, k == 0)
static void PASTE(small_m, STORAGE)(int64_t rows, int64_t depth, const void *a, int64_t a_stride, const void *source, int64_t stride,
                                  int64_t columns, bool fetch, void *sums, int64_t sums_stride, void *spare) {
  const GEMM_REAL *factors = a;
  const ELEMENT *b = source;
  GEMM_REAL *to = spare ? spare : sums;
  int64_t k = 0;
  for (; k + SMALL_M_STEPS <= depth; k += SMALL_M_STEPS) {
    if (fetch)
      SMALL_M(SMALL_M_STEPS, true);
    else
      SMALL_M(SMALL_M_STEPS, false);
  }
  for (; k < depth; k++) SMALL_M(1, false);
  for (int64_t i = 0; spare && i < rows; i++)
    for (int64_t j = i * sums_stride; j < i * sums_stride + columns; j += LANES)
      store((GEMM_REAL *)sums + j, load((GEMM_REAL *)sums + j) + load(to + j));
}
#undef SMALL_M
