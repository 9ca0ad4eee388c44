/* Template: sums of a product normalized by channel, the epilogue of a convolution before a batch
 * normalization. Included after elementwise.inc.h. Every operation rounds, as the program's instructions do.
 */

/* NaN stays. */
SIMD_INLINE vf v_between(vf x, vf least, vf most) {
  x = v_select(v_lt(x, least), least, x);
  return v_select(v_lt(most, x), most, x);
}

/* Of two vectors of channels at a time, whose numbers stay in registers for all rows. */
SIMD_INLINE void normalize_rows(float *r, int64_t r_stride, const float *x, int64_t stride, int64_t rows,
                                int64_t n, const mix_normalization *by, const bool adds) {
  const int64_t added = by->added_stride;
  const vf least = v_set(by->least), most = v_set(by->most);
  int64_t i = 0;
  for (; i + 2 * LANES <= n; i += 2 * LANES) {
    const vf mean = v_load(by->mean + i), next_mean = v_load(by->mean + i + LANES),
             scale = v_load(by->scale + i), next_scale = v_load(by->scale + i + LANES),
             offset = v_load(by->offset + i), next_offset = v_load(by->offset + i + LANES);
    for (int64_t row = 0; row < rows; row++) {
      vf y = (v_load(x + row * stride + i) - mean) * scale + offset,
         next = (v_load(x + row * stride + i + LANES) - next_mean) * next_scale + next_offset;
      if (adds) {
        y = y + v_load(by->added + row * added + i);
        next = next + v_load(by->added + row * added + i + LANES);
      }
      v_store(r + row * r_stride + i, v_between(y, least, most));
      v_store(r + row * r_stride + i + LANES, v_between(next, least, most));
    }
  }
  for (; i < n; i += LANES) {
    const v_part part = v_first(n - i < LANES ? n - i : LANES);
    const vf mean = v_load_part(by->mean + i, part), scale = v_load_part(by->scale + i, part),
             offset = v_load_part(by->offset + i, part);
    for (int64_t row = 0; row < rows; row++) {
      vf y = (v_load_part(x + row * stride + i, part) - mean) * scale + offset;
      if (adds) y = y + v_load_part(by->added + row * added + i, part);
      v_store_part(r + row * r_stride + i, v_between(y, least, most), part);
    }
  }
}

static void rows_normalized(float *r, int64_t r_stride, const float *x, int64_t stride, int64_t rows,
                            int64_t n, const mix_normalization *by) {
  if (by->added)
    normalize_rows(r, r_stride, x, stride, rows, n, by, true);
  else
    normalize_rows(r, r_stride, x, stride, rows, n, by, false);
}
