/* Part of the template blocked/pack.h: products with few rows. B is read once, in place, a few of its rows at
 * a time, while the sums of all rows of C stay in a cache. */

/* `steps` of k for all columns. `first`: the sums start from zero; `prefetch`: the rows of B that come next.
 * `steps` and `prefetch` are constants after inlining. */
SIMD_INLINE void PASTE(small_m_steps, STORAGE)(const int steps, const bool prefetch, int64_t rows,
                                               const real *a, int64_t a_stride, const ELEMENT *b,
                                               int64_t b_stride, int64_t columns, real *sums,
                                               int64_t sums_stride, bool first) {
  for (int64_t j = 0; j < columns; j += NR) {
    const ELEMENT *from = b + j;
    const int64_t left = columns - j;
    vec x[SMALL_M_STEPS][2];
    SIMD_UNROLL
    for (int k = 0; k < steps; k++, from += b_stride) {
      x[k][0] = left >= LANES ? WIDEN(from) : WIDEN_PART(from, left);
      x[k][1] = left >= NR     ? WIDEN(from + LANES)
                : left > LANES ? WIDEN_PART(from + LANES, left - LANES)
                               : (vec){0};
      if (prefetch)
        __builtin_prefetch(from + steps * b_stride, 0, 2),
            __builtin_prefetch(from + steps * b_stride + LANES, 0, 2);
    }
    const real *factor = a;
    real *sum = sums + j;
#pragma GCC unroll 1
    for (int64_t i = 0; i < rows; i++, factor += a_stride, sum += sums_stride) {
      vec s0 = {0}, s1 = {0};
      if (!first) s0 = v_load(sum), s1 = v_load(sum + LANES);
      SIMD_UNROLL
      for (int k = 0; k < steps; k++) {
        const vec y = v_set(factor[k]);
        s0 = v_fma(y, x[k][0], s0), s1 = v_fma(y, x[k][1], s1);
      }
      v_store(sum, s0), v_store(sum + LANES, s1);
    }
  }
}

/* One row, of `vectors` vectors of B (a constant after inlining); of a single one `part`. The sums stay in
 * registers for all of k. */
SIMD_INLINE void PASTE(small_m_chains, STORAGE)(const int vectors, v_part part, int64_t depth, const real *a,
                                                const ELEMENT *b, int64_t stride, real *sums) {
  vec s[SMALL_M_CHAINS] = {{0}};
#pragma GCC unroll 1
  for (int64_t k = 0; k < depth; k++, b += stride) {
    const vec y = v_set(a[k]);
    SIMD_UNROLL
    for (int v = 0; v < vectors; v++) {
      __builtin_prefetch(b + SMALL_M_AHEAD * stride + v * LANES);
      s[v] =
          v_fma(y, vectors > 1 ? WIDEN(b + v * LANES) : PASTE(PASTE(v_load, STORAGE), part)(b, part), s[v]);
    }
  }
  SIMD_UNROLL
  for (int v = 0; v < vectors; v++) v_store(sums + v * LANES, s[v]);
}

static void PASTE(small_m_row, STORAGE)(int64_t depth, const real *a, const ELEMENT *b, int64_t stride,
                                        int64_t columns, real *sums) {
  int64_t j = 0;
  for (; j + SMALL_M_CHAINS * LANES <= columns; j += SMALL_M_CHAINS * LANES)
    PASTE(small_m_chains, STORAGE)(SMALL_M_CHAINS, v_first(LANES), depth, a, b + j, stride, sums + j);
  for (; j < columns; j += LANES) {
    const v_part part = v_first(columns - j < LANES ? columns - j : LANES);
    PASTE(small_m_chains, STORAGE)(1, part, depth, a, b + j, stride, sums + j);
  }
}

#define SMALL_M(steps, prefetch)                                                                             \
  PASTE(small_m_steps, STORAGE)                                                                              \
  (steps, prefetch, rows, factors + k, a_stride, b + k * stride, stride, columns, to, sums_stride, k == 0)
static void PASTE(small_m, STORAGE)(int64_t rows, int64_t depth, const void *a, int64_t a_stride,
                                    const void *source, int64_t stride, int64_t columns, bool prefetch,
                                    void *sums, int64_t sums_stride, void *spare) {
  const real *factors = a;
  const ELEMENT *b = source;
  real *to = spare ? spare : sums;
  int64_t k = 0;
  if (rows == 1 && columns <= SMALL_M_ROW_VECTORS * LANES) {
    PASTE(small_m_row, STORAGE)(depth, factors, b, stride, columns, to);
    k = depth;
  }
  for (; k + SMALL_M_STEPS <= depth; k += SMALL_M_STEPS) {
    if (prefetch && sizeof(ELEMENT) == sizeof(real)) /* 16 bits: never */
      SMALL_M(SMALL_M_STEPS, true);
    else
      SMALL_M(SMALL_M_STEPS, false);
  }
  for (; k < depth; k++) SMALL_M(1, false);
  for (int64_t i = 0; spare && i < rows; i++)
    for (int64_t j = i * sums_stride; j < i * sums_stride + columns; j += LANES)
      v_store((real *)sums + j, v_load((real *)sums + j) + v_load(to + j));
}
#undef SMALL_M
