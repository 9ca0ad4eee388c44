/* Conversions between element types. IEEE 754-2019, 4.3.1 (round to nearest, ties to even). The 16-bit
 * conversions use integer arithmetic and additions of normal numbers only, so flushing of float32
 * subnormals does not change their results. */
#include "tensor/convert.h"

#include <math.h>

/* Float16: 1 sign bit, 5 exponent bits (bias 15), 10 fraction bits. Branch-free, so that loops vectorize. */
static inline float widen_f16(uint16_t h) {
  uint32_t magnitude = h & 0x7fffu, rebiased = (magnitude << 13) + (112u << 23);
  uint32_t special = (rebiased + (112u << 23)) |
                     /* As F16C does: NaNs become quiet. */
                     (magnitude > 0x7c00u ? 0x400000u : 0u);
  uint32_t subnormal =
      /* One unit in the last place of 0.5 is 2^-24. */
      mix_float_bits(mix_bits_float(0x3f000000u + magnitude) - 0.5f);
  uint32_t bits = magnitude >= 0x7c00u ? special : magnitude < 0x400u ? subnormal : rebiased;
  return mix_bits_float(bits | (uint32_t)(h & 0x8000u) << 16);
}

static inline uint16_t narrow_f16(float x) {
  uint32_t u = mix_float_bits(x), magnitude = u & 0x7fffffffu;
  uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
  /* Below 2^-14: one unit in the last place of 0.5 is 2^-24, float16's smallest step, so adding 0.5 rounds
   * correctly. */
  float small = mix_bits_float(magnitude < 0x38800000u ? magnitude : 0u) + 0.5f;
  uint32_t subnormal = mix_float_bits(small) - 0x3f000000u;
  uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  uint32_t large =
      /* Infinity from 65520 on, the midpoint of 65504 and 65536. */
      magnitude > 0x7f800000u ? nan : 0x7c00u;
  return (uint16_t)((magnitude >= 0x477ff000u ? large : finite) | (u >> 16 & 0x8000u));
}

float mix_f16_to_f32(uint16_t h) { return widen_f16(h); }
uint16_t mix_f32_to_f16(float x) { return narrow_f16(x); }

/* float8_e5m2 is float16 with the two leading bits of its fraction. float8_e4m3fn: 1 sign bit, 4 exponent
 * bits (bias 7), 3 fraction bits; no infinities, and the one NaN has all bits set. One unit in the last place
 * of 2^14 is 2^-9, its smallest step. */
enum { REBIAS_E4M3 = 120 << 23, STEPS_E4M3 = 0x46800000, NAN_E4M3 = 0x7f };
enum { REBIAS_E5M2 = 112 << 23, STEPS_E5M2 = 0x43000000, INFINITY_E5M2 = 0x7c, NAN_E5M2 = 0x7e };

static inline float widen_e4m3(uint8_t code) {
  uint32_t magnitude = code & 0x7fu, normal = (magnitude << 20) + REBIAS_E4M3,
           subnormal = mix_float_bits(mix_bits_float(STEPS_E4M3 + magnitude) - 0x1p14f);
  uint32_t bits = magnitude == NAN_E4M3 ? 0x7fc00000u : magnitude < 8 ? subnormal : normal;
  return mix_bits_float(bits | (uint32_t)(code & 0x80u) << 24);
}
static inline float widen_e5m2(uint8_t code) { return widen_f16((uint16_t)(code << 8)); }

static inline uint8_t narrow_e4m3(float x) {
  uint32_t u = mix_float_bits(x), magnitude = u & 0x7fffffffu;
  uint32_t normal = (magnitude + 0x7ffffu + (magnitude >> 20 & 1) - REBIAS_E4M3) >> 20;
  float small = mix_bits_float(magnitude < 0x3c800000u ? magnitude : 0u) + 0x1p14f;
  uint32_t finite = magnitude < 0x3c800000u ? mix_float_bits(small) - STEPS_E4M3 : normal;
  /* NaN above 464, the midpoint of 448 and what would be 480. */
  return (uint8_t)((magnitude > 0x43e80000u ? (uint32_t)NAN_E4M3 : finite) | (u >> 24 & 0x80u));
}
static inline uint8_t narrow_e5m2(float x) {
  uint32_t u = mix_float_bits(x), magnitude = u & 0x7fffffffu;
  uint32_t normal = (magnitude + 0xfffffu + (magnitude >> 21 & 1) - REBIAS_E5M2) >> 21;
  float small = mix_bits_float(magnitude < 0x38800000u ? magnitude : 0u) + 0x1p7f;
  uint32_t finite = magnitude < 0x38800000u ? mix_float_bits(small) - STEPS_E5M2 : normal;
  /* Infinity from 61440 on, the midpoint of 57344 and 65536. */
  uint32_t large = magnitude > 0x7f800000u ? NAN_E5M2 : INFINITY_E5M2;
  return (uint8_t)((magnitude >= 0x47700000u ? large : finite) | (u >> 24 & 0x80u));
}

float mix_e4m3_to_f32(uint8_t code) { return widen_e4m3(code); }
float mix_e5m2_to_f32(uint8_t code) { return widen_e5m2(code); }
uint8_t mix_f32_to_e4m3(float x) { return narrow_e4m3(x); }
uint8_t mix_f32_to_e5m2(float x) { return narrow_e5m2(x); }

/* Converts a double to a narrow format with one rounding: its magnitude, which beyond the format's largest
 * exponent goes on to the next. `bias` and `fraction_bits` describe the format. */
static uint32_t round_magnitude(double x, int fraction_bits, int bias, int max_exponent) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  uint64_t fraction = u & ((UINT64_C(1) << 52) - 1);
  int exponent = (int)(u >> 52 & 0x7ff) + bias - 1023;
  if (exponent > max_exponent) return (uint32_t)(max_exponent + 1) << fraction_bits;
  if (exponent < -fraction_bits) return 0; /* less than half the smallest subnormal */
  /* The implicit bit carries into the exponent field. For a subnormal result the significand is shifted
   * right by the missing exponent range. */
  uint64_t significand = fraction | UINT64_C(1) << 52;
  int shift = 52 - fraction_bits;
  if (exponent < 1)
    shift += 1 - exponent;
  else
    significand += (uint64_t)(exponent - 1) << 52;
  uint64_t kept = significand >> shift, rest = significand & ((UINT64_C(1) << shift) - 1),
           half = UINT64_C(1) << (shift - 1);
  if (rest > half || (rest == half && (kept & 1)))
    kept++; /* a carry out of the largest finite number gives infinity */
  return (uint32_t)kept;
}

static uint16_t narrow_f64(double x, int fraction_bits, int bias) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  uint16_t sign = (uint16_t)(u >> 48 & 0x8000u),
           infinity = (uint16_t)((2u * (uint32_t)bias + 1) << fraction_bits);
  uint64_t fraction = u & ((UINT64_C(1) << 52) - 1);
  if (isnan(x)) /* a NaN stays a NaN: set the quiet bit */
    return (uint16_t)(sign | infinity | 1u << (fraction_bits - 1) | fraction >> (52 - fraction_bits));
  return (uint16_t)(sign | round_magnitude(x, fraction_bits, bias, 2 * bias));
}

uint8_t mix_f64_to_e4m3(double x) {
  const uint32_t sign = signbit(x) ? 0x80 : 0, magnitude = isnan(x) ? NAN_E4M3 : round_magnitude(x, 3, 7, 15);
  return (uint8_t)(sign | (magnitude > NAN_E4M3 ? NAN_E4M3 : magnitude));
}
uint8_t mix_f64_to_e5m2(double x) {
  const uint32_t sign = signbit(x) ? 0x80 : 0;
  return (uint8_t)(sign | (isnan(x) ? NAN_E5M2 : round_magnitude(x, 2, 15, 30)));
}

uint16_t mix_f64_to_f16(double x) { return narrow_f64(x, 10, 15); }
uint16_t mix_f64_to_bf16(double x) { return narrow_f64(x, 7, 127); }

int64_t mix_f64_to_i64(double x) {
  if (isnan(x)) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  if (x < -0x1p63) return INT64_MIN;
  return (int64_t)x;
}

int64_t mix_wrap_integer(int64_t x, mix_dtype dtype) {
  switch (dtype) {
  case MIX_INT8: return (int8_t)x;
  case MIX_INT16: return (int16_t)x;
  case MIX_INT32: return (int32_t)x;
  case MIX_UINT8: return (uint8_t)x;
  case MIX_BOOL: return x != 0;
  default: return x;
  }
}

int64_t mix_dtype_lowest(mix_dtype dtype) {
  if (dtype == MIX_UINT8 || dtype == MIX_BOOL) return 0;
  return -(INT64_C(1) << (8 * mix_dtype_size(dtype) - 2)) * 2;
}

int64_t mix_dtype_highest(mix_dtype dtype) {
  if (dtype == MIX_BOOL) return 1;
  return dtype == MIX_UINT8 ? UINT8_MAX : ~mix_dtype_lowest(dtype);
}

/* Round to odd: the bits below float64's last place are ORed into it, so that only the later rounding to 8
 * or 11 bits counts. Boldo and Melquiond, Emulation of a FMA and correctly rounded sums, IEEE Transactions
 * on Computers 57(4), 2008. */
static double integer_to_odd(int64_t x) {
  uint64_t magnitude = x < 0 ? -(uint64_t)x : (uint64_t)x;
  if (magnitude >> 53) magnitude = (magnitude | ((magnitude & 0x7ff) != 0 ? 0x800u : 0u)) & ~UINT64_C(0x7ff);
  return x < 0 ? -(double)magnitude : (double)magnitude;
}

/* ---- single elements: load as double or integer, store from either ---- */

typedef struct element {
  double (*load)(const void *data, int64_t i);
  int64_t (*load_integer)(const void *data, int64_t i);
  void (*store)(void *data, int64_t i, double x);
  void (*store_integer)(void *data, int64_t i, int64_t x);
} element;

#define ELEMENT(name, type, widened, narrowed, integer)                                                      \
  static double name##_load(const void *data, int64_t i) {                                                   \
    type x = ((const type *)data)[i];                                                                        \
    return widened;                                                                                          \
  }                                                                                                          \
  static int64_t name##_load_integer(const void *data, int64_t i) {                                          \
    return mix_f64_to_i64(name##_load(data, i));                                                             \
  }                                                                                                          \
  static void name##_store(void *data, int64_t i, double x) { ((type *)data)[i] = narrowed; }                \
  static void name##_store_integer(void *data, int64_t i, int64_t x) { ((type *)data)[i] = integer; }

/* Via int64, then wrapped to the width, as in the integer registers of fused programs. */
#define INTEGER_ELEMENT(name, type)                                                                          \
  static double name##_load(const void *data, int64_t i) { return (double)((const type *)data)[i]; }         \
  static int64_t name##_load_integer(const void *data, int64_t i) {                                          \
    return (int64_t)((const type *)data)[i];                                                                 \
  }                                                                                                          \
  static void name##_store(void *data, int64_t i, double x) { ((type *)data)[i] = (type)mix_f64_to_i64(x); } \
  static void name##_store_integer(void *data, int64_t i, int64_t x) { ((type *)data)[i] = (type)x; }

ELEMENT(f16, uint16_t, widen_f16(x), narrow_f64(x, 10, 15), narrow_f64(integer_to_odd(x), 10, 15))
ELEMENT(bf16, uint16_t, mix_bf16_to_f32(x), narrow_f64(x, 7, 127), narrow_f64(integer_to_odd(x), 7, 127))
ELEMENT(e4m3, uint8_t, widen_e4m3(x), mix_f64_to_e4m3(x), mix_f64_to_e4m3(integer_to_odd(x)))
ELEMENT(e5m2, uint8_t, widen_e5m2(x), mix_f64_to_e5m2(x), mix_f64_to_e5m2(integer_to_odd(x)))
ELEMENT(f32, float, x, (float)x, (float)x)
ELEMENT(f64, double, x, x, (double)x)
INTEGER_ELEMENT(i8, int8_t)
INTEGER_ELEMENT(i16, int16_t)
INTEGER_ELEMENT(i32, int32_t)
INTEGER_ELEMENT(i64, int64_t)
INTEGER_ELEMENT(u8, uint8_t)

static double bool_load(const void *data, int64_t i) { return ((const uint8_t *)data)[i] != 0; }
static int64_t bool_load_integer(const void *data, int64_t i) { return ((const uint8_t *)data)[i] != 0; }
static void bool_store(void *data, int64_t i, double x) { ((uint8_t *)data)[i] = x != 0; }
static void bool_store_integer(void *data, int64_t i, int64_t x) { ((uint8_t *)data)[i] = x != 0; }

#define ROW(name)                                                                                            \
  { name##_load, name##_load_integer, name##_store, name##_store_integer }
static const element elements[MIX_DTYPE_COUNT] = {
    [MIX_FLOAT16] = ROW(f16),
    [MIX_BFLOAT16] = ROW(bf16),
    [MIX_FLOAT32] = ROW(f32),
    [MIX_FLOAT64] = ROW(f64),
    [MIX_INT8] = ROW(i8),
    [MIX_INT16] = ROW(i16),
    [MIX_INT32] = ROW(i32),
    [MIX_INT64] = ROW(i64),
    [MIX_UINT8] = ROW(u8),
    [MIX_BOOL] = ROW(bool),
    [MIX_FLOAT8_E4M3FN] = ROW(e4m3),
    [MIX_FLOAT8_E5M2] = ROW(e5m2),
};
#undef ROW

/* NULL for dtypes that exist only as names and have no data. */
static inline const element *element_of(mix_dtype dtype) {
  return (unsigned)dtype < MIX_DTYPE_COUNT && elements[dtype].load ? &elements[dtype] : NULL;
}

double mix_load_double(const void *data, mix_dtype dtype, int64_t index) {
  const element *e = element_of(dtype);
  return e ? e->load(data, index) : NAN;
}

int64_t mix_load_integer(const void *data, mix_dtype dtype, int64_t index) {
  const element *e = element_of(dtype);
  return e ? e->load_integer(data, index) : 0;
}

void mix_store_double(void *data, mix_dtype dtype, int64_t index, double value) {
  const element *e = element_of(dtype);
  if (e) e->store(data, index, value);
}

void mix_store_integer(void *data, mix_dtype dtype, int64_t index, int64_t value) {
  const element *e = element_of(dtype);
  if (e) e->store_integer(data, index, value);
}

/* ---- arrays ---- */

#define LOOP(name, from, to, expression)                                                                     \
  static void name(const void *restrict source, void *restrict result, int64_t count) {                      \
    const from *in = source;                                                                                 \
    to *out = result;                                                                                        \
    for (int64_t i = 0; i < count; i++) {                                                                    \
      from x = in[i];                                                                                        \
      out[i] = expression;                                                                                   \
    }                                                                                                        \
  }

LOOP(f16_to_f32, uint16_t, float, widen_f16(x))
LOOP(f32_to_f16, float, uint16_t, narrow_f16(x))
LOOP(bf16_to_f32, uint16_t, float, mix_bf16_to_f32(x))
LOOP(f32_to_bf16, float, uint16_t, mix_f32_to_bf16(x))
LOOP(f16_to_f64, uint16_t, double, widen_f16(x))
LOOP(bf16_to_f64, uint16_t, double, mix_bf16_to_f32(x))
LOOP(e4m3_to_f32, uint8_t, float, widen_e4m3(x))
LOOP(e5m2_to_f32, uint8_t, float, widen_e5m2(x))
LOOP(f32_to_e4m3, float, uint8_t, narrow_e4m3(x))
LOOP(f32_to_e5m2, float, uint8_t, narrow_e5m2(x))
LOOP(f32_to_f64, float, double, x)
LOOP(f64_to_f32, double, float, (float)x)
LOOP(f16_to_bf16, uint16_t, uint16_t, mix_f32_to_bf16(widen_f16(x)))
LOOP(bf16_to_f16, uint16_t, uint16_t, narrow_f16(mix_bf16_to_f32(x)))
LOOP(u8_to_f16, uint8_t, uint16_t, narrow_f16((float)x))
LOOP(u8_to_bf16, uint8_t, uint16_t, mix_f32_to_bf16((float)x))
LOOP(u8_to_f32, uint8_t, float, (float)x)
LOOP(i32_to_f32, int32_t, float, (float)x)
LOOP(i64_to_f32, int64_t, float, (float)x)
LOOP(i32_to_i64, int32_t, int64_t, x)
LOOP(i64_to_i32, int64_t, int32_t, (int32_t)x)

typedef void (*array_loop)(const void *restrict source, void *restrict result, int64_t count);

/* [source][result]: the pairs that occur in training. All others are converted element by element. */
static const array_loop loops[MIX_DTYPE_COUNT][MIX_DTYPE_COUNT] = {
    [MIX_FLOAT16] = {[MIX_FLOAT32] = f16_to_f32, [MIX_FLOAT64] = f16_to_f64, [MIX_BFLOAT16] = f16_to_bf16},
    [MIX_BFLOAT16] = {[MIX_FLOAT32] = bf16_to_f32, [MIX_FLOAT64] = bf16_to_f64, [MIX_FLOAT16] = bf16_to_f16},
    [MIX_FLOAT32] = {[MIX_FLOAT16] = f32_to_f16,
                     [MIX_BFLOAT16] = f32_to_bf16,
                     [MIX_FLOAT64] = f32_to_f64,
                     [MIX_FLOAT8_E4M3FN] = f32_to_e4m3,
                     [MIX_FLOAT8_E5M2] = f32_to_e5m2},
    [MIX_FLOAT8_E4M3FN] = {[MIX_FLOAT32] = e4m3_to_f32},
    [MIX_FLOAT8_E5M2] = {[MIX_FLOAT32] = e5m2_to_f32},
    [MIX_FLOAT64] = {[MIX_FLOAT32] = f64_to_f32},
    [MIX_UINT8] = {[MIX_FLOAT16] = u8_to_f16, [MIX_BFLOAT16] = u8_to_bf16, [MIX_FLOAT32] = u8_to_f32},
    [MIX_INT32] = {[MIX_FLOAT32] = i32_to_f32, [MIX_INT64] = i32_to_i64},
    [MIX_INT64] = {[MIX_FLOAT32] = i64_to_f32, [MIX_INT32] = i64_to_i32},
};

void mix_convert(const void *source, mix_dtype source_dtype, void *result, mix_dtype result_dtype,
                 int64_t count) {
  const element *from = element_of(source_dtype), *to = element_of(result_dtype);
  if (!from || !to || count <= 0) return;
  array_loop loop = loops[source_dtype][result_dtype];
  if (source_dtype == result_dtype) {
    memmove(result, source, (size_t)count * mix_dtype_size(source_dtype));
  } else if (loop) {
    loop(source, result, count);
  } else if (mix_dtype_is_floating(source_dtype)) {
    for (int64_t i = 0; i < count; i++) to->store(result, i, from->load(source, i));
  } else {
    for (int64_t i = 0; i < count; i++) to->store_integer(result, i, from->load_integer(source, i));
  }
}
