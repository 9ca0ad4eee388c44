/* Template: sums of a product normalized by channel, the epilogue of a convolution before a batch
 * normalization. Included after elementwise.inc.h. Every operation rounds, as the program's instructions do.
 */

SIMD_INLINE vf activated(vf x, mix_opcode activation) {
  if (activation == MIX_OPCODE_RELU) return zero_if(v_lt(x, v_set(0)), x);
  if (activation == MIX_OPCODE_RELU6)
    return zero_if(v_lt(x, v_set(0)), v_select(v_lt(v_set(6), x), v_set(6), x));
  return x;
}

/* Of two vectors of channels at a time, whose numbers stay in registers for all rows. */
SIMD_INLINE void normalize_rows(float *r, int64_t r_stride, const float *x, int64_t stride, int64_t rows,
                                int64_t n, const mix_normalization *by, bool adds, mix_opcode activation) {
  const int64_t added = by->added_stride;
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
      v_store(r + row * r_stride + i, activated(y, activation));
      v_store(r + row * r_stride + i + LANES, activated(next, activation));
    }
  }
  for (; i < n; i += LANES) {
    const v_part part = v_first(n - i < LANES ? n - i : LANES);
    const vf mean = v_load_part(by->mean + i, part), scale = v_load_part(by->scale + i, part),
             offset = v_load_part(by->offset + i, part);
    for (int64_t row = 0; row < rows; row++) {
      vf y = (v_load_part(x + row * stride + i, part) - mean) * scale + offset;
      if (adds) y = y + v_load_part(by->added + row * added + i, part);
      v_store_part(r + row * r_stride + i, activated(y, activation), part);
    }
  }
}

static void rows_normalized(float *r, int64_t r_stride, const float *x, int64_t stride, int64_t rows,
                            int64_t n, const mix_normalization *by) {
#define NORMALIZED(adds)                                                                                     \
  do {                                                                                                       \
    if (by->activation == MIX_OPCODE_RELU)                                                                   \
      normalize_rows(r, r_stride, x, stride, rows, n, by, adds, MIX_OPCODE_RELU);                            \
    else if (by->activation == MIX_OPCODE_RELU6)                                                             \
      normalize_rows(r, r_stride, x, stride, rows, n, by, adds, MIX_OPCODE_RELU6);                           \
    else                                                                                                     \
      normalize_rows(r, r_stride, x, stride, rows, n, by, adds, MIX_OPCODE_IDENTITY);                        \
  } while (0)
  if (by->added)
    NORMALIZED(true);
  else
    NORMALIZED(false);
#undef NORMALIZED
}
