/* Template: elementary functions of vectors of float32. Errors are at most 4 units in the last place (ulp),
 * stated at each. Polynomials of exp, log and tanh: S. Moshier, Cephes mathematical library (single
 * precision); erf: N. Juffa. Included after a simd_*.h. */

static inline vf v_abs(vf x) { return (vf)((vi)x & v_set_integer(0x7fffffff)); }
static inline vf v_copysign(vf magnitude, vf sign) {
  return (vf)(((vi)magnitude & v_set_integer(0x7fffffff)) | ((vi)sign & v_set_integer((int32_t)0x80000000)));
}
static inline vm v_finite(vf x) { return v_lt(v_abs(x), v_set(INFINITY)); }
/* A NaN operand gives NaN. */
static inline vf v_max(vf a, vf b) { return v_select(m_or(v_lt(b, a), v_unordered(a, a)), a, b); }
static inline vf v_min(vf a, vf b) { return v_select(m_or(v_lt(a, b), v_unordered(a, a)), a, b); }

/* 3 ulp: the processor's estimate and one Newton step, each operation rounded, as in TensorFlow's CPU kernels
 * (Eigen), so that RMSprop has their bits. The last bits depend on the maker of the processor. 0 gives
 * infinity, infinity 0. */
static inline vf v_rsqrt(vf x) {
  const vf estimate = v_rsqrt_estimate(x), r = x * estimate, half = estimate * v_set(-0.5f);
  const vf y = half * (r * estimate + v_set(-1.0f)) + estimate;
  return v_select(v_unordered(y, y), estimate, y);
}
/* The same for 1 / x: 2 ulp. 0 gives infinity, infinity 0. */
static inline vf v_reciprocal(vf x) {
  const vf estimate = v_reciprocal_estimate(x);
  const vf y = estimate * (v_set(1.0f) - x * estimate) + estimate;
  return v_select(v_unordered(y, y), estimate, y);
}
static const float lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
/* v_rsqrt of elements [i, i + LANES) of a tile. Its first `packets` elements lie in whole packets of eight of
 * their tensor; for the others TensorFlow's kernels divide 1 by the root. */
static inline vf v_rsqrt_at(vf x, int64_t i, double packets) {
  const int64_t left = (int64_t)packets - i;
  if (left >= LANES) return v_rsqrt(x);
  return v_select(v_lt(v_load(lane_numbers), v_set((float)left)), v_rsqrt(x), v_set(1.0f) / v_sqrt(x));
}
static inline vf v_reciprocal_at(vf x, int64_t i, double packets) {
  const int64_t left = (int64_t)packets - i;
  if (left >= LANES) return v_reciprocal(x);
  return v_select(v_lt(v_load(lane_numbers), v_set((float)left)), v_reciprocal(x), v_set(1.0f) / x);
}

/* x = n ln 2 + r with |r| <= ln 2 / 2: sets *r, returns n. The high part of ln 2 has few bits, so that its
 * product with n is exact. */
static inline vf reduce_by_ln2(vf x, vf *r) {
  const vf n = v_rint(x * v_set(1.44269504f));
  *r = v_fma(n, v_set(2.12194440e-4f), v_fma(n, v_set(-0.693359375f), x));
  return n;
}
/* (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2 */
static inline vf exp_tail(vf r) {
  vf p = v_fma(v_set(1.9875691500e-4f), r, v_set(1.3981999507e-3f));
  p = v_fma(p, r, v_set(8.3334519073e-3f));
  p = v_fma(p, r, v_set(4.1665795894e-2f));
  p = v_fma(p, r, v_set(1.6666665459e-1f));
  return v_fma(p, r, v_set(5.0000001201e-1f));
}
/* 1 ulp. Overflow gives infinity; results below 2^-126 are rounded to a subnormal. Where the result is 0
 * (masked logits) no subnormal arithmetic is done, which is slow. The minimax polynomial and the order of
 * operations (each rounded) are those of TensorFlow's CPU kernels (Eigen's exp of 2023), so that the gradient
 * of a cross-entropy has their bits. */
static inline vf v_exp(vf x) {
  const vm vanishes = v_lt(x, v_set(-103.98f));
  vf y = v_select(v_lt(v_set(89.0f), x), v_set(89.0f), x);
  y = v_select(vanishes, v_set(0.0f), y);
  const vf n = v_floor(y * v_set(1.44269504f) + v_set(0.5f));
  vf r = n * v_set(-0.693359375f) + y;
  r = n * v_set(2.12194440e-4f) + r;
  const vf square = r * r;
  vf even = square * v_set(1.37449637986719608e-3f) + v_set(4.166965186595916748e-2f);
  even = square * even + v_set(0.49999988079071044921875f);
  const vf odd = square * v_set(8.36894474923610687e-3f) + v_set(0.16666518151760101318359375f);
  const vf p = square * (r * odd + even) + (r + v_set(1.0f));
  return v_select(vanishes, v_set(0.0f), v_scale(p, n));
}
/* 2 ulp: with t = 2^(n-1), exp(x) - 1 = 2 (t (exp(r) - 1) + (t - 1/2)); the scalings are exact. */
static inline vf v_expm1(vf x) {
  vf r, y = v_select(v_lt(v_set(89.0f), x), v_set(89.0f), x);
  y = v_select(v_lt(y, v_set(-30.0f)), v_set(-30.0f), y);
  const vf n = reduce_by_ln2(y, &r);
  const vf p = v_fma(exp_tail(r) * r, r, r);
  const vf t = v_scale(v_set(1.0f), n - v_set(1.0f));
  const vf sum = v_fma(t, p, t - v_set(0.5f));
  return v_select(v_eq(n, v_set(0.0f)), v_select(v_eq(x, v_set(0.0f)), x, p), sum + sum);
}
/* x = (1 + *m) 2^result with 1 + *m in [sqrt(1/2), sqrt(2)), for finite x > 0. */
static inline vf log_parts(vf x, vf *m) {
  const vm small = v_lt(x, v_set(0x1p-126f));
  const vi bits = (vi)v_select(small, x * v_set(0x1p23f), x);
  const vi offset = (vi)((vu)bits - (vu)v_set_integer(0x3f3504f3));
  const vf e = v_from_integer(offset >> 23);
  *m = (vf)((offset & v_set_integer(0x7fffff)) + v_set_integer(0x3f3504f3)) - v_set(1.0f);
  return v_select(small, e - v_set(23.0f), e);
}
/* y where x is finite and > 0; log(0) = -inf, log(x < 0) = NaN. */
static inline vf log_ends(vf x, vf y) {
  y = v_select(v_lt(x, v_set(INFINITY)), y, x); /* infinity and NaN are their own logarithm */
  y = v_select(v_eq(x, v_set(0.0f)), v_set(-INFINITY), y);
  return v_select(v_lt(x, v_set(0.0f)), v_set(NAN), y);
}
/* 1 ulp */
static inline vf v_log_close(vf x) {
  vf m;
  const vf e = log_parts(x, &m);
  vf p = v_fma(v_set(7.0376836292e-2f), m, v_set(-1.1514610310e-1f));
  p = v_fma(p, m, v_set(1.1676998740e-1f));
  p = v_fma(p, m, v_set(-1.2420140846e-1f));
  p = v_fma(p, m, v_set(1.4249322787e-1f));
  p = v_fma(p, m, v_set(-1.6668057665e-1f));
  p = v_fma(p, m, v_set(2.0000714765e-1f));
  p = v_fma(p, m, v_set(-2.4999993993e-1f));
  p = v_fma(p, m, v_set(3.3333331174e-1f));
  const vf square = m * m;
  vf y = v_fma(e, v_set(-2.12194440e-4f), p * m * square);
  y = v_fma(square, v_set(-0.5f), y);
  return log_ends(x, v_fma(e, v_set(0.693359375f), m + y));
}
/* 3.2 ulp: the rational function and the order of operations (each rounded) of TensorFlow's CPU kernels
 * (Eigen's log), so that the losses of Keras 3 have their bits. */
static inline vf v_log(vf x) {
  vf m;
  const vf e = log_parts(x, &m);
  const vf p =
      (v_set(0.18256296349849254f) * m + v_set(1.0000000190281063f)) * m + v_set(1.0000000190281136f);
  vf q = v_set(0.049616247954120038f) * m + v_set(0.59923249590823520f);
  q = (q * m + v_set(1.4999999999999927f)) * m + v_set(1.0f);
  return log_ends(x, e * v_set(0.693147180559945309f) + (m * p) / q);
}
/* v_log of elements [i, i + LANES) of a tile, as v_rsqrt_at: behind whole packets TensorFlow's kernels call
 * the C library. */
static inline vf v_log_at(vf x, int64_t i, double packets) {
  const vf y = v_log(x);
  const int64_t left = (int64_t)packets - i;
  if (left >= LANES) return y;
  float numbers[LANES], logarithms[LANES];
  v_store(numbers, x), v_store(logarithms, y);
  for (int64_t l = left < 0 ? 0 : left; l < LANES; l++) logarithms[l] = logf(numbers[l]);
  return v_load(logarithms);
}
/* 2 ulp: log(u) for u = round(1 + x), plus the rounding error of u divided by u. */
static inline vf v_log1p(vf x) {
  const vf one = v_set(1.0f), u = one + x;
  const vf correction = (x - (u - one)) / u;
  const vm usable = m_and(v_lt(v_set(0.0f), u), v_lt(u, v_set(0x1p60f)));
  const vf y = v_log_close(u) + v_select(usable, correction, v_set(0.0f));
  return v_select(v_eq(u, one), x, y);
}
/* 2 ulp */
static inline vf v_tanh(vf x) {
  const vf a = v_abs(x), square = x * x;
  vf p = v_fma(v_set(-5.70498872745e-3f), square, v_set(2.06390887954e-2f));
  p = v_fma(p, square, v_set(-5.37397155531e-2f));
  p = v_fma(p, square, v_set(1.33314422036e-1f));
  p = v_fma(p, square, v_set(-3.33332819422e-1f));
  const vf near_zero = v_fma(p * square, x, x);
  const vf far = v_set(1.0f) - v_set(2.0f) / (v_exp(a + a) + v_set(1.0f));
  return v_select(v_lt(a, v_set(0.625f)), near_zero, v_copysign(far, x));
}
/* 2 ulp: exp(-|x|) cannot overflow. */
static inline vf v_sigmoid(vf x) {
  const vf z = v_exp(v_set(0.0f) - v_abs(x));
  return v_select(v_lt(x, v_set(0.0f)), z, v_set(1.0f)) / (v_set(1.0f) + z);
}
/* 2 ulp: max(x, 0) + log(1 + exp(-|x|)) */
static inline vf v_softplus(vf x) {
  return v_select(v_lt(x, v_set(0.0f)), v_set(0.0f), x) + v_log1p(v_exp(v_set(0.0f) - v_abs(x)));
}
/* 1.5 ulp (2 without fused multiply-add) */
static inline vf v_erf(vf x) {
  const vf t = v_abs(x), s = x * x;
  vf p = v_fma(v_set(-1.72853470e-5f), t, v_set(3.83197126e-4f));
  const vf q = v_fma(v_set(-3.88396438e-3f), t, v_set(2.42546219e-2f));
  p = v_fma(p, s, q);
  p = v_fma(p, t, v_set(-1.06777877e-1f));
  p = v_fma(p, t, v_set(-6.34846687e-1f));
  p = v_fma(p, t, v_set(-1.28717512e-1f));
  p = v_fma(p, t, v_set(0.0f) - t);
  const vf far = v_copysign(v_set(1.0f) - v_exp(p), x);
  vf r = v_fma(v_set(-5.96761703e-4f), s, v_set(4.99119423e-3f));
  r = v_fma(r, s, v_set(-2.67681349e-2f));
  r = v_fma(r, s, v_set(1.12819925e-1f));
  r = v_fma(r, s, v_set(-3.76125336e-1f));
  r = v_fma(r, s, v_set(1.28379166e-1f));
  const vf near_zero = v_fma(r, x, x);
  /* from 4 on erf is 1 in float32, and the polynomial is NaN at infinity */
  const vf y = v_select(v_lt(v_set(0.927734375f), t), far, near_zero);
  return v_select(v_lt(v_set(4.0f), t), v_copysign(v_set(1.0f), x), y);
}
