/* Template: the functions of one instruction set, over its vector vocabulary. Its file may define
 * LOAD_NUMBERS(p), and LOAD_PACKED(p) of an even column on: LANES numbers as floats. Or instead of the latter
 * LOAD_PACKED_PAIR(p, w): 2 LANES numbers in two vectors, in an order of its own and with PACKED_BIAS(vector)
 * added, and FROM_PAIR(w), TO_PAIRS and FROM_PAIRS. */
#include "backend/cpu/gemm/stored/stored.h"

enum { STEPS = 8, ROUND_NOT = 0, ROUND_BF16, ROUND_F16 };
enum { NUMBERS, DIFFERENCES, VALUES }; /* what a weight is decoded to */

SIMD_INLINE int nibble(const int8_t *packed, int64_t i) {
  const int byte = packed[i / 2];
  return i % 2 ? byte >> 4 : (int8_t)((uint32_t)byte << 4) >> 4;
}

#ifndef LOAD_NUMBERS
SIMD_INLINE vf load_packed(const int8_t *p) {
  float x[LANES];
  for (int i = 0; i < LANES; i++) x[i] = (float)nibble(p, i);
  return v_load(x);
}
SIMD_INLINE vf load_numbers(const int8_t *p) {
  float x[LANES];
  for (int i = 0; i < LANES; i++) x[i] = p[i];
  return v_load(x);
}
#define LOAD_PACKED load_packed
#define LOAD_NUMBERS load_numbers
#endif

static void unpack(const int8_t *packed, int64_t count, int8_t *numbers) {
  int64_t i = 0;
  for (; i + 2 <= count; i += 2) {
    const int byte = packed[i / 2];
    numbers[i] = (int8_t)((int8_t)((uint32_t)byte << 4) >> 4);
    numbers[i + 1] = (int8_t)(byte >> 4);
  }
  if (i < count) numbers[i] = (int8_t)nibble(packed, i);
}

static void widen(const int8_t *numbers, int64_t count, float *values) {
  for (int64_t i = 0; i < count; i++) values[i] = numbers[i];
}
static void scale_blocks(const int8_t *numbers, const float *restrict scale, const float *restrict zero,
                         int64_t count, float *restrict values) {
  for (int64_t i = 0; i < count; i++) values[i] = ((float)numbers[i] - zero[i]) * scale[i];
}
static void scale_channels(const int8_t *numbers, const float *restrict scale, int64_t count,
                           float *restrict values) {
  for (int64_t i = 0; i < count; i++) values[i] = (float)numbers[i] / scale[i];
}

/* ---- two vectors of columns at a time ---- */

#ifndef LOAD_PACKED_PAIR
SIMD_INLINE void load_packed_pair(const int8_t *p, vf w[2]) {
  w[0] = LOAD_PACKED(p), w[1] = LOAD_PACKED(p + LANES / 2);
}
#define LOAD_PACKED_PAIR load_packed_pair
#define PACKED_BIAS(v)                                                                                       \
  (vf) { 0 }
#define FROM_PAIR(w) ((void)0)
#define TO_PAIRS NULL
#define FROM_PAIRS NULL
#endif

/* `packed`, `what` and `rounding` are constants after inlining. Of the last numbers of a
 * row no byte behind them is read. */
SIMD_INLINE void load_pair(const bool packed, const int what, const int rounding, const int8_t *from,
                           int64_t left, const vf scale[2], const vf zero[2], vf w[2]) {
  int8_t bytes[2 * LANES];
  if (left < 2 * LANES) {
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, from, (size_t)(packed ? (left + 1) / 2 : left));
    from = bytes;
  }
  if (packed)
    LOAD_PACKED_PAIR(from, w);
  else
    w[0] = LOAD_NUMBERS(from), w[1] = LOAD_NUMBERS(from + LANES);
  SIMD_UNROLL
  for (int v = 0; v < 2; v++) {
    if (what != NUMBERS)
      w[v] = w[v] - zero[v];
    else if (packed)
      w[v] = w[v] - PACKED_BIAS(v);
    if (what == VALUES) w[v] = w[v] * scale[v];
    if (rounding == ROUND_BF16) w[v] = v_round_bf16(w[v]);
    if (rounding == ROUND_F16) w[v] = v_round_f16(w[v]);
  }
}

SIMD_INLINE void decode_columns(const bool packed, const mix_stored_part *weight, void *values,
                                int64_t stride) {
  for (int64_t j = 0; j < weight->columns; j += 2 * LANES) {
    const int8_t *from = weight->numbers + (packed ? j / 2 : j);
    const vf scale[2] = {v_load(weight->scale + j), v_load(weight->scale + j + LANES)},
             zero[2] = {v_load(weight->zero + j), v_load(weight->zero + j + LANES)};
    for (int64_t k = 0; k < weight->rows; k++, from += weight->row_bytes) {
      vf w[2];
      load_pair(packed, VALUES, ROUND_NOT, from, 2 * LANES, scale, zero, w);
      if (packed) FROM_PAIR(w);
      if (weight->dtype == MIX_BFLOAT16) {
        uint16_t *const to = (uint16_t *)values + k * stride + j;
        v_store_bf16(to, w[0]), v_store_bf16(to + LANES, w[1]);
      } else if (weight->dtype == MIX_FLOAT16) {
        uint16_t *const to = (uint16_t *)values + k * stride + j;
        v_store_f16(to, w[0]), v_store_f16(to + LANES, w[1]);
      } else {
        float *const to = (float *)values + k * stride + j;
        v_store(to, w[0]), v_store(to + LANES, w[1]);
      }
    }
  }
}
static void decode(const mix_stored_part *weight, void *values, int64_t stride) {
  if (weight->packed)
    decode_columns(true, weight, values, stride);
  else
    decode_columns(false, weight, values, stride);
}

/* ---- products of few rows ---- */

/* `steps` rows of the weight for all columns; all but the pointers and counts is constant after inlining. */
SIMD_INLINE void multiply_steps(const int steps, const bool packed, const int what, const int rounding,
                                const mix_stored_part *weight, const int8_t *numbers, int64_t m,
                                const float *x, int64_t x_stride, float *sums, int64_t sums_stride,
                                bool first) {
  for (int64_t j = 0; j < weight->columns; j += 2 * LANES) {
    const int8_t *from = numbers + (packed ? j / 2 : j);
    vf scale[2] = {{0}}, zero[2] = {{0}}, w[STEPS][2];
    if (what == VALUES) scale[0] = v_load(weight->scale + j), scale[1] = v_load(weight->scale + j + LANES);
    if (what != NUMBERS) { zero[0] = v_load(weight->zero + j), zero[1] = v_load(weight->zero + j + LANES); }
    SIMD_UNROLL
    for (int k = 0; k < steps; k++, from += weight->row_bytes)
      load_pair(packed, what, rounding, from, weight->columns - j, scale, zero, w[k]);
    /* The rows that come next, each of their lines once while this line is used up: the hardware does not
     * prefetch so many short rows. */
    const int pairs = packed ? 64 / LANES : 32 / LANES, each = (steps + pairs - 1) / pairs;
    const int8_t *next = from + j / (2 * LANES) % pairs * each * weight->row_bytes;
    SIMD_UNROLL
    for (int k = 0; k < each; k++, next += weight->row_bytes) __builtin_prefetch(next);
    const float *factor = x;
    float *sum = sums + j;
#pragma GCC unroll 1
    for (int64_t i = 0; i < m; i++, factor += x_stride, sum += sums_stride) {
      vf s0 = {0}, s1 = {0};
      if (!first) s0 = v_load(sum), s1 = v_load(sum + LANES);
      SIMD_UNROLL
      for (int k = 0; k < steps; k++) {
        const vf y = v_set(factor[k]);
        s0 = v_fma(y, w[k][0], s0), s1 = v_fma(y, w[k][1], s1);
      }
      v_store(sum, s0), v_store(sum + LANES, s1);
    }
  }
}

#define MULTIPLY(steps, packed, what, rounding)                                                              \
  multiply_steps(steps, packed, what, rounding, weight, numbers, m, x + k, x_stride, sums, sums_stride,      \
                 first && k == 0)
#define MULTIPLY_ALL(name, packed, what, rounding)                                                           \
  static void name(const mix_stored_part *weight, int64_t m, const float *x, int64_t x_stride, float *sums,  \
                   int64_t sums_stride, bool first) {                                                        \
    const int8_t *numbers = weight->numbers;                                                                 \
    int64_t k = 0;                                                                                           \
    for (; k + STEPS <= weight->rows; k += STEPS, numbers += STEPS * weight->row_bytes)                      \
      MULTIPLY(STEPS, packed, what, rounding);                                                               \
    for (; k < weight->rows; k++, numbers += weight->row_bytes) MULTIPLY(1, packed, what, rounding);         \
  }
MULTIPLY_ALL(multiply_numbers, false, NUMBERS, ROUND_NOT) /* these are exact in 16 bits */
MULTIPLY_ALL(multiply_packed_numbers, true, NUMBERS, ROUND_NOT)
MULTIPLY_ALL(multiply_differences, false, DIFFERENCES, ROUND_NOT)
MULTIPLY_ALL(multiply_packed_differences, true, DIFFERENCES, ROUND_NOT)
MULTIPLY_ALL(multiply_f32, false, VALUES, ROUND_NOT)
MULTIPLY_ALL(multiply_packed_f32, true, VALUES, ROUND_NOT)
MULTIPLY_ALL(multiply_bf16, false, VALUES, ROUND_BF16)
MULTIPLY_ALL(multiply_packed_bf16, true, VALUES, ROUND_BF16)
MULTIPLY_ALL(multiply_f16, false, VALUES, ROUND_F16)
MULTIPLY_ALL(multiply_packed_f16, true, VALUES, ROUND_F16)

static void multiply(const mix_stored_part *weight, int64_t m, const float *x, int64_t x_stride, float *sums,
                     int64_t sums_stride, bool first) {
#define CHOOSE(kind) (weight->packed ? multiply_packed_##kind : multiply_##kind)
  (!weight->blocks                 ? CHOOSE(numbers)
   : weight->differences           ? CHOOSE(differences)
   : weight->dtype == MIX_BFLOAT16 ? CHOOSE(bf16)
   : weight->dtype == MIX_FLOAT16  ? CHOOSE(f16)
                                   : CHOOSE(f32))(weight, m, x, x_stride, sums, sums_stride, first);
}

static void add_scaled(float *sums, const float *part, const float *scale, int64_t columns, bool first) {
  for (int64_t j = 0; j < columns; j += LANES) {
    vf sum = v_load(part + j) * v_load(scale + j);
    if (!first) sum = v_load(sums + j) + sum;
    v_store(sums + j, sum);
  }
}

const mix_stored_functions FUNCTIONS = {.unpack = unpack,
                                        .widen = widen,
                                        .scale_blocks = scale_blocks,
                                        .scale_channels = scale_channels,
                                        .to_pairs = TO_PAIRS,
                                        .from_pairs = FROM_PAIRS,
                                        .decode = decode,
                                        .multiply = multiply,
                                        .add_scaled = add_scaled};
