/* Template: sums of products of rows, for convolutions channel by channel. Included after a simd_*.h. */

/* Blocks of four vectors: as many sums are under way as the multiply-adds need to overlap. */
#define SUM_PRODUCTS(name, type_a, element_a, type_b, element_b)                                             \
  static void name(float *sums, const void *a, const void *b, const mix_row_products *p, int64_t n) {        \
    enum { VECTORS = 4 };                                                                                    \
    const element_a *x = a;                                                                                  \
    const element_b *y = b;                                                                                  \
    int64_t i = 0;                                                                                           \
    for (; i + VECTORS * LANES <= n; i += VECTORS * LANES) {                                                 \
      vf c[VECTORS] = {v_set(0), v_set(0), v_set(0), v_set(0)};                                              \
      for (int64_t o = 0; o < p->outer; o++)                                                                 \
        for (int64_t t = 0; t < p->inner; t++) {                                                             \
          const element_a *from = x + o * p->a_outer + t * p->a_inner + i;                                   \
          const element_b *with = y + o * p->b_outer + t * p->b_inner + i;                                   \
          for (int j = 0; j < VECTORS; j++)                                                                  \
            V_ACCUMULATE(c[j], v_load_##type_a(from + j * LANES), v_load_##type_b(with + j * LANES));        \
        }                                                                                                    \
      for (int j = 0; j < VECTORS; j++) v_store(sums + i + j * LANES, c[j]);                                 \
    }                                                                                                        \
    for (; i + LANES <= n; i += LANES) {                                                                     \
      vf c = v_set(0);                                                                                       \
      for (int64_t o = 0; o < p->outer; o++)                                                                 \
        for (int64_t t = 0; t < p->inner; t++)                                                               \
          V_ACCUMULATE(c, v_load_##type_a(x + o * p->a_outer + t * p->a_inner + i),                          \
                       v_load_##type_b(y + o * p->b_outer + t * p->b_inner + i));                            \
      v_store(sums + i, c);                                                                                  \
    }                                                                                                        \
    if (i == n) return;                                                                                      \
    const v_part part = v_first(n - i);                                                                      \
    vf c = v_set(0);                                                                                         \
    for (int64_t o = 0; o < p->outer; o++)                                                                   \
      for (int64_t t = 0; t < p->inner; t++)                                                                 \
        V_ACCUMULATE(c, v_load_##type_a##_part(x + o * p->a_outer + t * p->a_inner + i, part),               \
                     v_load_##type_b##_part(y + o * p->b_outer + t * p->b_inner + i, part));                 \
    v_store_part(sums + i, c, part);                                                                         \
  }
SUM_PRODUCTS(sum_products_f32, f32, float, f32, float)
SUM_PRODUCTS(sum_products_f16, f16, uint16_t, f16, uint16_t)
SUM_PRODUCTS(sum_products_bf16, bf16, uint16_t, bf16, uint16_t)
SUM_PRODUCTS(sum_weighted_f16, f16, uint16_t, f32, float)
SUM_PRODUCTS(sum_weighted_bf16, bf16, uint16_t, f32, float)
