/* Template: sums of a product with a bias and ReLU, the epilogue that most layers have. Included after a
 * simd_*.h. Every operation rounds to the dtype, as the program's instructions do. */

SIMD_INLINE vf v_same(vf x) { return x; }
SIMD_INLINE vf v_load_numbers(const float *p) { return v_load(p); }
SIMD_INLINE void v_store_numbers(float *p, vf x) { v_store(p, x); }
SIMD_INLINE void v_store_numbers_part(float *p, vf x, v_part part) { v_store_part(p, x, part); }
SIMD_INLINE void v_store_numbers_pair(float *p, vf x, vf y) { v_store(p, x), v_store(p + LANES, y); }

#define BIASED_ROWS(type, element, round, load, load_part, store)                                            \
  SIMD_INLINE vf biased_##type(vf sum, vf bias, bool relu) {                                                 \
    const vf x = round(sum) + bias; /* rounded as it is stored, which commutes with ReLU */                  \
    return relu ? zero_if(v_lt(x, v_set(0)), x) : x;                                                         \
  }                                                                                                          \
  static void rows_biased_##type(void *result, int64_t r_stride, const float *x, int64_t stride,             \
                                 int64_t rows, int64_t n, const void *with, bool relu) {                     \
    const element *bias = with;                                                                              \
    element *r = result;                                                                                     \
    for (; rows > 0; rows--, r += r_stride, x += stride) {                                                   \
      int64_t i = 0;                                                                                         \
      for (; i + 2 * LANES <= n; i += 2 * LANES)                                                             \
        store##_pair(r + i, biased_##type(v_load(x + i), load(bias + i), relu),                              \
                     biased_##type(v_load(x + i + LANES), load(bias + i + LANES), relu));                    \
      for (; i + LANES <= n; i += LANES) store(r + i, biased_##type(v_load(x + i), load(bias + i), relu));   \
      if (i == n) continue;                                                                                  \
      const v_part part = v_first(n - i);                                                                    \
      store##_part(r + i, biased_##type(v_load_part(x + i, part), load_part(bias + i, part), relu), part);   \
    }                                                                                                        \
  }
BIASED_ROWS(f32, float, v_same, v_load_numbers, v_load_part, v_store_numbers)
BIASED_ROWS(f16, uint16_t, v_round_f16, v_load_f16, v_load_f16_part, v_store_f16)
BIASED_ROWS(bf16, uint16_t, v_round_bf16, v_load_bf16, v_load_bf16_part, v_store_bf16)
