/* Functions over rows of float32: reductions, softmax, cross-entropies, random words. Written once for every instruction set.
 * Included after a lanes_*.h and vector_math.inc.h. */

/* Lanes of a sum: fixed, so that each instruction set adds in the same order. */
#define SUM_LANES 32
#define SUM_VECTORS (SUM_LANES / LANES)

static bool row_all_finite(const float *x, int64_t n) {
  /* x - x is 0 for a finite x, else NaN */
  vf sum[4] = {v_set(0), v_set(0), v_set(0), v_set(0)};
  int64_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    for (int j = 0; j < 4; j++) {
      const vf y = v_load(x + i + j * LANES);
      sum[j] = sum[j] + (y - y);
    }
  for (; i + LANES <= n; i += LANES) {
    const vf y = v_load(x + i);
    sum[0] = sum[0] + (y - y);
  }
  if (i < n) {
    const vf y = v_load_part(x + i, n - i, 0);
    sum[1] = sum[1] + (y - y);
  }
  const vf all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  return !m_any(v_unordered(all, all));
}

/* Without their signs such numbers compare as integers. In a form that compilers turn into vectors. */
static bool row_all_finite_stored(const uint16_t *x, int64_t n, uint16_t infinity) {
  int16_t largest = 0;
  for (int64_t i = 0; i < n; i++) {
    const int16_t magnitude = (int16_t)(x[i] & 0x7fff);
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest < (int16_t)infinity;
}

/* Without their signs floats compare as integers, NaN above all. */
static inline vi magnitude(vf x) { return (vi)x & v_set_integer(0x7fffffff); }
#define ROWS_STORE(type)                                                                                                    \
  static bool rows_store_##type(uint16_t *r, int64_t r_stride, const float *x, int64_t stride, int64_t rows, int64_t n,     \
                                       float limit, bool past_caches) {                                                            \
    vi even = v_set_integer(0), odd = even;                                                                                        \
    for (int64_t row = 0; row < rows; row++, x += stride, r += r_stride) {                                                         \
      const bool stream = past_caches && (uintptr_t)r % 64 == 0;                                                                   \
      int64_t i = 0;                                                                                                               \
      for (; i + 2 * LANES <= n; i += 2 * LANES) {                                                                                 \
        const vf a = v_load(x + i), b = v_load(x + i + LANES);                                                                     \
        even = vi_max(even, magnitude(a)), odd = vi_max(odd, magnitude(b));                                                        \
        if (stream)                                                                                                                \
          v_stream_##type##_pair(r + i, a, b);                                                                                     \
        else                                                                                                                       \
          v_store_##type##_pair(r + i, a, b);                                                                                      \
      }                                                                                                                            \
      for (; i < n; i += LANES) {                                                                                                  \
        const int64_t left = n - i < LANES ? n - i : LANES;                                                                        \
        const vf a = v_load_part(x + i, left, 0);                                                                                  \
        even = vi_max(even, magnitude(a));                                                                                         \
        v_store_##type##_part(r + i, a, left);                                                                                     \
      }                                                                                                                            \
    }                                                                                                                              \
    return m_all(v_lt((vf)vi_max(even, odd), v_set(limit)));                                                                       \
  }
ROWS_STORE(f16)
ROWS_STORE(bf16)

static float fold_lanes(const vf *sum) {
  float lane[SUM_LANES];
  for (int j = 0; j < SUM_VECTORS; j++) v_store(lane + j * LANES, sum[j]);
  for (int width = SUM_LANES / 2; width; width /= 2)
    for (int j = 0; j < width; j++) lane[j] += lane[j + width];
  return lane[0];
}

/* The part of a row after its last whole group of SUM_LANES, `other` behind it. */
#define FOR_TAIL(i, n, j) for (int j = 0; j < SUM_VECTORS && (i) + j * LANES < (n); j++)
static inline vf tail_lanes(const float *x, int64_t i, int64_t n, float other) {
  return n - i >= LANES ? v_load(x + i) : v_load_part(x + i, n - i, other);
}

static float row_sum(const float *x, int64_t n) {
  vf sum[SUM_VECTORS];
  for (int j = 0; j < SUM_VECTORS; j++) sum[j] = v_set(0);
  int64_t i = 0;
  for (; i + SUM_LANES <= n; i += SUM_LANES)
    for (int j = 0; j < SUM_VECTORS; j++) sum[j] = sum[j] + v_load(x + i + j * LANES);
  FOR_TAIL(i, n, j) sum[j] = sum[j] + tail_lanes(x, i + j * LANES, n, 0);
  return fold_lanes(sum);
}

static void row_sum_into(float *lanes, const float *x, int64_t n) {
  vf sum[SUM_VECTORS];
  for (int j = 0; j < SUM_VECTORS; j++) sum[j] = v_load(lanes + j * LANES);
  int64_t i = 0;
  for (; i + SUM_LANES <= n; i += SUM_LANES)
    for (int j = 0; j < SUM_VECTORS; j++) sum[j] = sum[j] + v_load(x + i + j * LANES);
  FOR_TAIL(i, n, j) sum[j] = sum[j] + tail_lanes(x, i + j * LANES, n, 0);
  for (int j = 0; j < SUM_VECTORS; j++) v_store(lanes + j * LANES, sum[j]);
}

static float row_maximum(const float *x, int64_t n) {
  vf r = v_set(-INFINITY);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) r = v_max(r, v_load(x + i));
  if (i < n) r = v_max(r, v_load_part(x + i, n - i, -INFINITY));
  return m_any(v_unordered(r, r)) ? NAN : v_horizontal_max(r);
}
static float row_minimum(const float *x, int64_t n) {
  vf r = v_set(INFINITY);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) r = v_min(r, v_load(x + i));
  if (i < n) r = v_min(r, v_load_part(x + i, n - i, INFINITY));
  return m_any(v_unordered(r, r)) ? NAN : -v_horizontal_max((vf)((vi)r ^ v_set_integer((int32_t)0x80000000)));
}

static float row_exp_sum(float *result, const float *x, float shift, int64_t n) {
  vf sum[SUM_VECTORS];
  const vf s = v_set(shift);
  for (int j = 0; j < SUM_VECTORS; j++) sum[j] = v_set(0);
  int64_t i = 0;
  for (; i + SUM_LANES <= n; i += SUM_LANES)
    for (int j = 0; j < SUM_VECTORS; j++) {
      const vf e = v_exp(v_load(x + i + j * LANES) - s);
      if (result) v_store(result + i + j * LANES, e);
      sum[j] = sum[j] + e;
    }
  FOR_TAIL(i, n, j) {
    const int64_t k = i + j * LANES, left = n - k;
    const vf e = v_exp(tail_lanes(x, k, n, shift) - s);
    if (left >= LANES) {
      if (result) v_store(result + k, e);
      sum[j] = sum[j] + e;
    } else {
      /* the lanes behind the end must not count */
      float part[LANES] = {0};
      v_store_part(part, e, left);
      if (result) memcpy(result + k, part, (size_t)left * sizeof(float));
      sum[j] = sum[j] + v_load(part);
    }
  }
  return fold_lanes(sum);
}

/* Rows of at most LANES classes stay in one vector from load to store: 10 classes are the usual case. */
static const float lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static inline vf short_exp(vf x, int64_t n, float *maximum, float *sum) {
  const vm nan = v_unordered(x, x);
  *maximum = m_any(nan) ? NAN : v_horizontal_max(x);
  vf e = v_exp(x - v_set(*maximum));
  if (n < LANES) {
    /* not zero by itself where the maximum is infinite or NaN */
    e = v_select(v_lt(v_load(lane_numbers), v_set((float)n)), e, v_set(0));
  }
  *sum = v_horizontal_sum(e);
  return e;
}
static inline vf short_load(const float *x, int64_t n) { return n < LANES ? v_load_part(x, n, -INFINITY) : v_load(x); }
static inline void short_store(float *r, vf x, int64_t n) {
  if (n < LANES)
    v_store_part(r, x, n);
  else
    v_store(r, x);
}
static inline float log_float(float x) {
  float r[LANES];
  v_store(r, v_log(v_set(x)));
  return r[0];
}

static void divide_row(float *r, const float *x, float divisor, int64_t n) {
  const vf d = v_set(divisor);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) v_store(r + i, v_load(x + i) / d);
  if (i < n) v_store_part(r + i, v_load_part(x + i, n - i, 0) / d, n - i);
}
/* (x - shift) - offset */
static void shift_row(float *r, const float *x, float shift, float offset, int64_t n) {
  const vf s = v_set(shift), o = v_set(offset);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) v_store(r + i, (v_load(x + i) - s) - o);
  if (i < n) v_store_part(r + i, (v_load_part(x + i, n - i, 0) - s) - o, n - i);
}

static void rows_softmax(float *result, const float *logits, int64_t rows, int64_t n, mix_softmax_kind kind) {
  for (int64_t row = 0; row < rows; row++, result += n, logits += n) {
    float maximum, sum;
    if (n <= LANES) {
      const vf x = short_load(logits, n), e = short_exp(x, n, &maximum, &sum);
      if (kind == MIX_ROWS_SOFTMAX)
        short_store(result, e / v_set(sum), n);
      else
        short_store(result, (x - v_set(maximum)) - v_set(log_float(sum)), n);
      continue;
    }
    maximum = row_maximum(logits, n);
    if (kind == MIX_ROWS_SOFTMAX) {
      sum = row_exp_sum(result, logits, maximum, n);
      divide_row(result, result, sum, n);
    } else {
      sum = row_exp_sum(NULL, logits, maximum, n);
      shift_row(result, logits, maximum, log_float(sum), n);
    }
  }
}

/* losses and softmax - labels, one row: labels * (log sum - (x - maximum)) */
static void rows_cross_entropy(float *losses, float *gradient, const float *logits, const float *labels, int64_t rows, int64_t n) {
  for (int64_t row = 0; row < rows; row++, gradient += n, logits += n, labels += n) {
    const float maximum = row_maximum(logits, n);
    const float total = row_exp_sum(NULL, logits, maximum, n), logarithm = log_float(total);
    const vf m = v_set(maximum), l = v_set(logarithm), t = v_set(total);
    vf sum[SUM_VECTORS];
    for (int j = 0; j < SUM_VECTORS; j++) sum[j] = v_set(0);
    for (int64_t i = 0; i < n; i += SUM_LANES)
      FOR_TAIL(i, n, j) {
        const int64_t k = i + j * LANES, left = n - k;
        const vf shifted = tail_lanes(logits, k, n, 0) - m, y = tail_lanes(labels, k, n, 0);
        const vf p = v_exp(shifted) / t - y;
        vf loss = y * (l - shifted);
        KEEP(loss);
        if (left >= LANES) {
          v_store(gradient + k, p);
        } else {
          float part[LANES] = {0};
          v_store_part(gradient + k, p, left);
          v_store_part(part, loss, left);
          loss = v_load(part);
        }
        sum[j] = sum[j] + loss;
      }
    losses[row] = fold_lanes(sum);
  }
}

/* The sum of a short row in the order of TensorFlow's CPU kernels (Eigen's reduction over packets of eight): eight chains, folded by
 * halves, and the rest behind them as a chain of its own. */
static float row_sum_of_eights(const float *x, int64_t n) {
  float lane[8] = {0}, rest = 0;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; j++) lane[j] += x[i + j];
  for (; i < n; i++) rest += x[i];
  return rest + (((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7])));
}
/* The softmax of a row, its maximum, and the sum of the exponentials less the maximum's own 1: the loss of a confident row is
 * log1p of that small remainder, which log of the whole sum would round away. */
static void sparse_row(float *gradient, const float *logits, int64_t n, float *maximum, float *remainder) {
  enum { SHORT = 64 };
  if (n > SHORT) {
    *maximum = row_maximum(logits, n);
    const float sum = row_exp_sum(gradient, logits, *maximum, n);
    divide_row(gradient, gradient, sum, n);
    *remainder = sum - 1.0f;
    return;
  }
  if (n <= LANES) {
    float unused;
    short_store(gradient, short_exp(short_load(logits, n), n, maximum, &unused), n);
  } else {
    *maximum = row_maximum(logits, n);
    row_exp_sum(gradient, logits, *maximum, n);
  }
  double whole = -1;
  for (int64_t i = 0; i < n; i++) whole += (double)gradient[i];
  *remainder = (float)whole;
  divide_row(gradient, gradient, row_sum_of_eights(gradient, n), n);
}
static bool rows_sparse_cross_entropy(float *losses, float *gradient, const float *logits, const int64_t *labels, int64_t rows,
                                      int64_t n) {
  bool valid = true;
  for (int64_t first = 0; first < rows; first += LANES) {
    const int64_t count = rows - first < LANES ? rows - first : LANES;
    float remainders[LANES] = {0}, shifted[LANES] = {0};
    for (int64_t i = 0; i < count; i++, gradient += n, logits += n) {
      const int64_t label = labels[first + i];
      if (label < 0 || label >= n) {
        valid = false;
        remainders[i] = NAN;
        for (int64_t j = 0; j < n; j++) gradient[j] = NAN;
        continue;
      }
      const float wanted = logits[label];
      float maximum;
      sparse_row(gradient, logits, n, &maximum, &remainders[i]);
      gradient[label] -= 1.0f;
      shifted[i] = wanted - maximum;
    }
    const vf loss = v_log1p(v_load(remainders)) - v_load(shifted);
    if (count < LANES)
      v_store_part(losses + first, loss, count);
    else
      v_store(losses + first, loss);
  }
  return valid;
}

/* Word 0 of Philox 4x32-10 block (key, counter, first + i) (base/philox.h). A word to a lane of 64 bits; what gathers in the upper
 * halves is never looked at. */
static void row_philox_words(uint32_t *words, uint64_t key, uint64_t counter, uint64_t first, int64_t n) {
  enum { LONGS = LANES / 2 };
  uint64_t lanes[LONGS];
  for (int j = 0; j < LONGS; j++) lanes[j] = (uint64_t)j;
  vl numbers;
  memcpy(&numbers, lanes, sizeof numbers);
  for (int64_t i = 0; i < n; i += LONGS) {
    const vl index = numbers + l_set(first + (uint64_t)i);
    vl a = index, b = index >> 32, c = l_set(counter), d = l_set(counter >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
      const vl p = l_multiply(a, l_set(0xD2511F53u)), q = l_multiply(c, l_set(0xCD9E8D57u));
      a = (q >> 32) ^ b ^ l_set(k0);
      c = (p >> 32) ^ d ^ l_set(k1);
      b = q;
      d = p;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    memcpy(lanes, &a, sizeof lanes);
    for (int64_t j = 0; j < LONGS && i + j < n; j++) words[i + j] = (uint32_t)lanes[j];
  }
}
