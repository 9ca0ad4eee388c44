/* Template: functions over rows of float32: reductions, softmax, cross-entropies, random words. Included
 * after a simd_*.h and vector_math.inc.h. */

/* Lanes of a sum. Fixed, so that each instruction set adds in the same order. */
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
    const vf y = v_load_part(x + i, v_first(n - i));
    sum[1] = sum[1] + (y - y);
  }
  const vf all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  return !m_any(v_unordered(all, all));
}

/* Without their signs 16-bit floats compare as integers. Compilers vectorize this form. */
static bool row_all_finite_stored(const uint16_t *x, int64_t n, uint16_t infinity) {
  int16_t largest = 0;
  for (int64_t i = 0; i < n; i++) {
    const int16_t magnitude = (int16_t)(x[i] & 0x7fff);
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest < (int16_t)infinity;
}

/* Without their signs floats compare as integers; NaN is above all others. */
static inline vi magnitude(vf x) { return (vi)x & v_set_integer(0x7fffffff); }
#define ROWS_STORE(type)                                                                                     \
  static bool rows_store_##type(uint16_t *r, int64_t r_stride, const float *x, int64_t stride, int64_t rows, \
                                int64_t n, float limit, bool past_caches) {                                  \
    vi even = v_set_integer(0), odd = even;                                                                  \
    for (int64_t row = 0; row < rows; row++, x += stride, r += r_stride) {                                   \
      const bool stream = past_caches && (uintptr_t)r % 64 == 0;                                             \
      int64_t i = 0;                                                                                         \
      for (; i + 2 * LANES <= n; i += 2 * LANES) {                                                           \
        const vf a = v_load(x + i), b = v_load(x + i + LANES);                                               \
        even = vi_max(even, magnitude(a)), odd = vi_max(odd, magnitude(b));                                  \
        if (stream)                                                                                          \
          v_stream_##type##_pair(r + i, a, b);                                                               \
        else                                                                                                 \
          v_store_##type##_pair(r + i, a, b);                                                                \
      }                                                                                                      \
      for (; i < n; i += LANES) {                                                                            \
        const v_part part = v_first(n - i < LANES ? n - i : LANES);                                          \
        const vf a = v_load_part(x + i, part);                                                               \
        even = vi_max(even, magnitude(a));                                                                   \
        v_store_##type##_part(r + i, a, part);                                                               \
      }                                                                                                      \
    }                                                                                                        \
    return m_all(v_lt((vf)vi_max(even, odd), v_set(limit)));                                                 \
  }
ROWS_STORE(f16)
ROWS_STORE(bf16)

/* The order of a sum is that of TensorFlow's CPU kernels (Eigen's reduction over packets of eight):
 *   1. whole groups of 32 elements go to 32 lanes, four packets of eight;
 *   2. the four packets are added one after the other, then the packets behind the last whole group;
 *   3. the eight lanes are added by halving;
 *   4. elements behind the last whole packet are a chain of their own, added last. */
static float add_packet_lanes(const float *packet) {
  return ((packet[0] + packet[4]) + (packet[2] + packet[6])) +
         ((packet[1] + packet[5]) + (packet[3] + packet[7]));
}
static float row_sum_end(const float *lanes, const float *tail, int64_t n) {
  float packet[8], scalar_tail = 0;
  for (int j = 0; j < 8; j++) packet[j] = ((lanes[j] + lanes[8 + j]) + lanes[16 + j]) + lanes[24 + j];
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; j++) packet[j] += tail[i + j];
  for (; i < n; i++) scalar_tail += tail[i];
  return scalar_tail + add_packet_lanes(packet);
}
static float end_of_sum(const vf *sum, const float *tail, int64_t n) {
  float lanes[SUM_LANES];
  for (int j = 0; j < SUM_VECTORS; j++) v_store(lanes + j * LANES, sum[j]);
  return row_sum_end(lanes, tail, n);
}

/* Vectors of a row behind its last whole group of SUM_LANES; lanes behind the row are `other`. */
#define FOR_TAIL(i, n, j) for (int j = 0; j < SUM_VECTORS && (i) + j * LANES < (n); j++)
static inline vf tail_lanes(const float *x, int64_t i, int64_t n, float other) {
  return n - i >= LANES ? v_load(x + i) : v_load_part_or(x + i, v_first(n - i), other);
}

static float row_sum(const float *x, int64_t n) {
  vf sum[SUM_VECTORS];
  for (int j = 0; j < SUM_VECTORS; j++) sum[j] = v_set(0);
  int64_t i = 0;
  for (; i + SUM_LANES <= n; i += SUM_LANES)
    for (int j = 0; j < SUM_VECTORS; j++) sum[j] = sum[j] + v_load(x + i + j * LANES);
  return end_of_sum(sum, x + i, n - i);
}

static void row_sum_into(float *lanes, const float *x, int64_t n) {
  vf sum[SUM_VECTORS];
  for (int j = 0; j < SUM_VECTORS; j++) sum[j] = v_load(lanes + j * LANES);
  for (int64_t i = 0; i < n; i += SUM_LANES)
    for (int j = 0; j < SUM_VECTORS; j++) sum[j] = sum[j] + v_load(x + i + j * LANES);
  for (int j = 0; j < SUM_VECTORS; j++) v_store(lanes + j * LANES, sum[j]);
}

static float row_maximum(const float *x, int64_t n) {
  vf r = v_set(-INFINITY);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) r = v_max(r, v_load(x + i));
  if (i < n) r = v_max(r, v_load_part_or(x + i, v_first(n - i), -INFINITY));
  return m_any(v_unordered(r, r)) ? NAN : v_horizontal_max(r);
}
static float row_minimum(const float *x, int64_t n) {
  vf r = v_set(INFINITY);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) r = v_min(r, v_load(x + i));
  if (i < n) r = v_min(r, v_load_part_or(x + i, v_first(n - i), INFINITY));
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
  float tail[SUM_LANES];
  const int64_t left = n - i;
  FOR_TAIL(i, n, j) v_store(tail + j * LANES, v_exp(tail_lanes(x, i + j * LANES, n, shift) - s));
  if (result) memcpy(result + i, tail, (size_t)left * sizeof *tail);
  return end_of_sum(sum, tail, left);
}

/* Rows of at most LANES classes stay in one vector from load to store: 10 classes are common. */
static inline vf short_exp(vf x, int64_t n, float *maximum, float *sum) {
  const vm nan = v_unordered(x, x);
  *maximum = m_any(nan) ? NAN : v_horizontal_max(x);
  vf e = v_exp(x - v_set(*maximum));
  if (n < LANES) {
    /* lanes behind the row are not 0 where the maximum is infinite or NaN */
    e = v_select(v_lt(v_load(lane_numbers), v_set((float)n)), e, v_set(0));
  }
  *sum = v_horizontal_sum(e);
  return e;
}
static inline vf short_load(const float *x, int64_t n) {
  return n < LANES ? v_load_part_or(x, v_first(n), -INFINITY) : v_load(x);
}
static inline void short_store(float *r, vf x, int64_t n) {
  if (n < LANES)
    v_store_part(r, x, v_first(n));
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
  const v_part tail = v_first(n - i);
  if (i < n) v_store_part(r + i, v_load_part(x + i, tail) / d, tail);
}
/* (x - shift) - offset */
static void shift_row(float *r, const float *x, float shift, float offset, int64_t n) {
  const vf s = v_set(shift), o = v_set(offset);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) v_store(r + i, (v_load(x + i) - s) - o);
  const v_part tail = v_first(n - i);
  if (i < n) v_store_part(r + i, (v_load_part(x + i, tail) - s) - o, tail);
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

/* losses[row] = sum of labels * (log sum - (x - maximum)); gradient = softmax - labels. */
static void rows_cross_entropy(float *losses, float *gradient, const float *logits, const float *labels,
                               int64_t rows, int64_t n) {
  for (int64_t row = 0; row < rows; row++, gradient += n, logits += n, labels += n) {
    const float maximum = row_maximum(logits, n);
    const float total = row_exp_sum(NULL, logits, maximum, n), logarithm = log_float(total);
    const vf m = v_set(maximum), l = v_set(logarithm), t = v_set(total);
    vf sum[SUM_VECTORS];
    float tail[SUM_LANES];
    for (int j = 0; j < SUM_VECTORS; j++) sum[j] = v_set(0);
    for (int64_t i = 0; i < n; i += SUM_LANES) {
      const bool whole = n - i >= SUM_LANES;
      FOR_TAIL(i, n, j) {
        const int64_t k = i + j * LANES, left = n - k;
        const vf shifted = tail_lanes(logits, k, n, 0) - m, y = tail_lanes(labels, k, n, 0);
        const vf p = v_exp(shifted) / t - y;
        vf loss = y * (l - shifted);
        KEEP(loss);
        if (left >= LANES)
          v_store(gradient + k, p);
        else
          v_store_part(gradient + k, p, v_first(left));
        if (whole)
          sum[j] = sum[j] + loss;
        else
          v_store(tail + j * LANES, loss);
      }
    }
    losses[row] = end_of_sum(sum, tail, n % SUM_LANES);
  }
}

/* Exponentials of a row and their sum as in TensorFlow's kernel: whole packets of eight by Eigen's exp,
 * elements behind them by the C library's. For the sum these are the packets of the row; for the gradient
 * those of the whole tensor, which end before element `end` of the row. `exponentials` may be `logits`. */
static float sparse_row(float *exponentials, const float *logits, int64_t n, float maximum, int64_t end) {
  const int64_t packets = n - n % 8;
  float tail = 0, last[8];
  for (int64_t i = packets; i < n; i++) tail += expf(logits[i] - maximum);
  for (int64_t i = end; i < n; i++) last[i - end] = expf(logits[i] - maximum);
  if (n <= LANES)
    short_store(exponentials, v_exp(short_load(logits, n) - v_set(maximum)), n);
  else
    row_exp_sum(exponentials, logits, maximum, n);
  const float sum = tail + row_sum(exponentials, packets);
  for (int64_t i = end; i < n; i++) exponentials[i] = last[i - end];
  return sum;
}
static bool rows_sparse_cross_entropy(float *losses, float *gradient, const float *logits,
                                      const int64_t *labels, int64_t rows, int64_t n, int64_t packets) {
  bool valid = true;
  for (int64_t row = 0; row < rows; row++, gradient += n, logits += n, packets -= n) {
    const int64_t label = labels[row];
    if (label < 0 || label >= n) {
      valid = false;
      losses[row] = NAN;
      for (int64_t j = 0; j < n; j++) gradient[j] = NAN;
      continue;
    }
    const float maximum = row_maximum(logits, n), shifted = logits[label] - maximum;
    const float sum = sparse_row(gradient, logits, n, maximum, packets < 0 ? 0 : packets < n ? packets : n);
    divide_row(gradient, gradient, sum, n);
    gradient[label] -= 1.0f;
    losses[row] = logf(sum) - shifted;
  }
  return valid;
}

/* Philox 4x32-10 blocks (base/philox.h): the four words of each, one in a 64-bit lane, whose upper half is
 * never read. */
typedef struct philox_blocks {
  vl a, b, c, d;
} philox_blocks;
static inline philox_blocks make_philox_blocks(vl index, uint64_t key, uint64_t counter) {
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
  return (philox_blocks){a, b, c, d};
}

/* Word 0 of block (key, counter, first + i). */
static void row_philox_words(uint32_t *words, uint64_t key, uint64_t counter, uint64_t first, int64_t n) {
  enum { LONGS = LANES / 2 };
  uint64_t lanes[LONGS];
  for (int j = 0; j < LONGS; j++) lanes[j] = (uint64_t)j;
  vl numbers;
  memcpy(&numbers, lanes, sizeof numbers);
  for (int64_t i = 0; i < n; i += LONGS) {
    const philox_blocks made = make_philox_blocks(numbers + l_set(first + (uint64_t)i), key, counter);
    memcpy(lanes, &made.a, sizeof lanes);
    for (int64_t j = 0; j < LONGS && i + j < n; j++) words[i + j] = (uint32_t)lanes[j];
  }
}

/* The random bits of n elements from `first` on (ops/stochastic_round.h): eight of each Philox block, whose
 * words lie in memory as in a little-endian processor. */
static void row_draws(uint16_t *draws, uint64_t key, uint64_t counter, uint64_t first, int64_t n) {
  enum { LONGS = LANES / 2, GROUP_DRAWS = 8 * LONGS };
  uint64_t lanes[LONGS], more_lanes[LONGS], group[2 * LONGS];
  for (int j = 0; j < LONGS; j++) lanes[j] = (uint64_t)j;
  vl numbers;
  memcpy(&numbers, lanes, sizeof numbers);
  for (int64_t i = -(int64_t)(first % 8); i < n; i += GROUP_DRAWS) {
    const philox_blocks made = make_philox_blocks(numbers + l_set((first + (uint64_t)i) / 8), key, counter);
    const vl low = l_set(0xffffffffu), words = (made.a & low) | (made.b << 32),
             more_words = (made.c & low) | (made.d << 32);
    memcpy(lanes, &words, sizeof words);
    memcpy(more_lanes, &more_words, sizeof more_words);
    for (int j = 0; j < LONGS; j++) group[2 * j] = lanes[j], group[2 * j + 1] = more_lanes[j];
    const int64_t skipped = i < 0 ? -i : 0, end = n - i < GROUP_DRAWS ? n - i : GROUP_DRAWS;
    if (end - skipped == GROUP_DRAWS)
      memcpy(draws + i, group, sizeof group);
    else
      memcpy(draws + i + skipped, (const uint16_t *)group + skipped, (size_t)(end - skipped) * sizeof *draws);
  }
}

/* r may be x. */
static void round_by_draws(float *r, const float *x, int64_t step, const uint16_t *draws, int64_t n) {
  enum { PART = 512 };
  uint32_t wide[PART];
  for (int64_t i = 0; i < n; i++) wide[i] = draws[i];
  int64_t i = 0;
  for (; step && i + LANES <= n; i += LANES) {
    const vi bits = (vi)v_load(x + i), size = bits & v_set_integer(0x7fffffff),
             nan = (vi)(size > v_set_integer(0x7f800000));
    vi draw;
    memcpy(&draw, wide + i, sizeof draw);
    const vi moved = (nan & (bits | v_set_integer(0x400000))) | (~nan & (bits + draw));
    v_store(r + i, (vf)(moved & v_set_integer((int32_t)0xffff0000)));
  }
  for (; i < n; i++) r[i] = mix_bits_float(mix_stochastic_bits(mix_float_bits(x[step ? i : 0]), wide[i]));
}

static void tile_stochastic_round(ARGUMENTS) {
  enum { PART = 512 };
  uint16_t draws[PART];
  const float *x = operands[0];
  float *const r = result;
  const int64_t seed = *(const int64_t *)operands[1], step = *(const int64_t *)operands[2],
                place = *(const int64_t *)operands[3];
  if (immediate == MIX_ROUND_NEAREST) {
    for (int64_t i = 0; i < n; i++)
      r[i] = mix_bits_float(mix_nearest_bits(mix_float_bits(x[steps[0] ? i : 0])));
    return;
  }
  for (int64_t i = 0; i < n; i += PART) {
    const int64_t count = n - i < PART ? n - i : PART;
    row_draws(draws, (uint64_t)seed, mix_stochastic_counter(step, immediate), (uint64_t)(place + i), count);
    round_by_draws(r + i, x + (steps[0] ? i : 0), steps[0], draws, count);
  }
}
