/* Template: sums of products of rows, for convolutions channel by channel. Included after a simd_*.h. */

/* Blocks of four vectors: as many sums are under way as the multiply-adds need to overlap. */
#define SUM_PRODUCTS(type, element)                                                                          \
  static void sum_products_##type(float *sums, const void *a, const void *b, const mix_row_products *p,      \
                                  int64_t n) {                                                               \
    enum { VECTORS = 4 };                                                                                    \
    const element *x = a, *y = b;                                                                            \
    int64_t i = 0;                                                                                           \
    for (; i + VECTORS * LANES <= n; i += VECTORS * LANES) {                                                 \
      vf c[VECTORS] = {v_set(0), v_set(0), v_set(0), v_set(0)};                                              \
      for (int64_t o = 0; o < p->outer; o++)                                                                 \
        for (int64_t t = 0; t < p->inner; t++) {                                                             \
          const element *from = x + o * p->a_outer + t * p->a_inner + i,                                     \
                        *with = y + o * p->b_outer + t * p->b_inner + i;                                     \
          for (int j = 0; j < VECTORS; j++)                                                                  \
            V_ACCUMULATE(c[j], v_load_##type(from + j * LANES), v_load_##type(with + j * LANES));            \
        }                                                                                                    \
      for (int j = 0; j < VECTORS; j++) v_store(sums + i + j * LANES, c[j]);                                 \
    }                                                                                                        \
    for (; i < n; i += LANES) {                                                                              \
      const v_part part = v_first(n - i < LANES ? n - i : LANES);                                            \
      vf c = v_set(0);                                                                                       \
      for (int64_t o = 0; o < p->outer; o++)                                                                 \
        for (int64_t t = 0; t < p->inner; t++)                                                               \
          V_ACCUMULATE(c, v_load_##type##_part(x + o * p->a_outer + t * p->a_inner + i, part),               \
                       v_load_##type##_part(y + o * p->b_outer + t * p->b_inner + i, part));                 \
      v_store_part(sums + i, c, part);                                                                       \
    }                                                                                                        \
  }
SUM_PRODUCTS(f32, float)
SUM_PRODUCTS(f16, uint16_t)
SUM_PRODUCTS(bf16, uint16_t)
