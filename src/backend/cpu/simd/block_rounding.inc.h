/* Template: rounding to the numbers of block formats, as mix_block_round (ops/block_formulas.h). */

/* Round down: numbers of at most 17, not negative. */
SIMD_INLINE vf floor_of_steps(vf x, vf magic) {
  const vf nearest = (x + magic) - magic;
  return v_select(v_lt(x, nearest), nearest - v_set(1), nearest);
}

static void row_round_blocks(float *x, const float *encode, const float *decode, const uint32_t *random,
                             const struct mix_block_numbers *numbers, int64_t n, int64_t counts[3]) {
  const uint32_t fraction = (uint32_t)numbers->fraction_bits, largest_exponent = 254;
  const vf zero = v_set(0), one = v_set(1), magic = v_set(0x1.8p23f), max = v_set(numbers->max),
           limit = v_set(numbers->limit), smallest = v_set(ldexpf(1, numbers->min_exponent)),
           down = v_set(ldexpf(1, -numbers->fraction_bits));
  vf all = zero, saturated = zero, flushed = zero;
  for (int64_t i = 0; i < n; i += LANES) {
    const vf from = v_load(x + i), back = v_load(decode + i);
    const vi sign = (vi)from & INT32_MIN;
    const vf a = (vf)((vi)from ^ sign) * v_load(encode + i), own = (vf)((vi)a & 0x7f800000),
             unit = v_select(v_lt(own, smallest), smallest, own);
    const vu inverse = ((largest_exponent + fraction) << 23) - (vu)unit; /* 2^fraction / unit */
    vf whole = a * (vf)inverse;
    if (random) {
      vi words;
      memcpy(&words, random + i, sizeof words);
      whole =
          floor_of_steps(whole + __builtin_convertvector((vi)((vu)words >> 8), vf) * v_set(0x1p-24f), magic);
    } else {
      whole = (whole + magic) - magic;
    }
    const vf steps = whole * (unit * down), size = v_select(v_lt(max, steps), max, steps),
             to = (vf)((vi)(size * back) | sign);
    const vm counted = v_le(zero, back), other = m_and(counted, m_not(v_eq(from, zero)));
    all = all + v_select(other, one, zero);
    saturated = saturated + v_select(m_and(counted, v_lt(limit, a)), one, zero);
    flushed = flushed + v_select(m_and(other, v_eq(size, zero)), one, zero);
    v_store(x + i, v_select(counted, to, from));
  }
  counts[0] += (int64_t)v_horizontal_sum(all);
  counts[1] += (int64_t)v_horizontal_sum(saturated);
  counts[2] += (int64_t)v_horizontal_sum(flushed);
}
