/* Template: sums of a product normalized by channel, the epilogue of a convolution before a batch
 * normalization. Included after biased_rows.inc.h. Every operation rounds, as the program's instructions do.
 */

/* NaN stays. */
SIMD_INLINE vf v_between(vf x, vf least, vf most) {
  x = v_select(v_lt(x, least), least, x);
  return v_select(v_lt(most, x), most, x);
}

/* The numbers of a channel stay in registers for all rows. */
#define NORMALIZED_ROWS(type, element, round, load, load_part, store)                                        \
  SIMD_INLINE void normalize_rows_##type(                                                                    \
      element *r, int64_t r_stride, const float *x, int64_t stride, int64_t rows, v_part part, vf mean,      \
      vf scale, vf offset, const mix_normalization *by, const element *added, const bool whole) {            \
    const vf least = v_set(by->least), most = v_set(by->most);                                               \
    for (int64_t row = 0; row < rows; row++, r += r_stride, x += stride) {                                   \
      const vf sum = whole ? v_load(x) : v_load_part(x, part);                                               \
      vf y = round((round(sum) - mean) * scale + offset);                                                    \
      if (added) {                                                                                           \
        y = round(y + (whole ? load(added) : load_part(added, part)));                                       \
        added += by->added_stride;                                                                           \
      }                                                                                                      \
      y = v_between(y, least, most);                                                                         \
      if (whole)                                                                                             \
        store(r, y);                                                                                         \
      else                                                                                                   \
        store##_part(r, y, part);                                                                            \
    }                                                                                                        \
  }                                                                                                          \
  static void rows_normalized_##type(void *result, int64_t r_stride, const float *x, int64_t stride,         \
                                     int64_t rows, int64_t n, const mix_normalization *by) {                 \
    element *r = result;                                                                                     \
    const element *added = by->added;                                                                        \
    int64_t i = 0;                                                                                           \
    for (; i + LANES <= n; i += LANES)                                                                       \
      normalize_rows_##type(r + i, r_stride, x + i, stride, rows, v_first(LANES), v_load(by->mean + i),      \
                            v_load(by->scale + i), v_load(by->offset + i), by, added ? added + i : NULL,     \
                            true);                                                                           \
    if (i == n) return;                                                                                      \
    const v_part part = v_first(n - i);                                                                      \
    normalize_rows_##type(r + i, r_stride, x + i, stride, rows, part, v_load_part(by->mean + i, part),       \
                          v_load_part(by->scale + i, part), v_load_part(by->offset + i, part), by,           \
                          added ? added + i : NULL, false);                                                  \
  }
NORMALIZED_ROWS(f32, float, v_same, v_load_numbers, v_load_part, v_store_numbers)
NORMALIZED_ROWS(f16, uint16_t, v_round_f16, v_load_f16, v_load_f16_part, v_store_f16)
NORMALIZED_ROWS(bf16, uint16_t, v_round_bf16, v_load_bf16, v_load_bf16_part, v_store_bf16)
