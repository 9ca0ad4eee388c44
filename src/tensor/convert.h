/* Conversions between element types. Rounding is to nearest, ties to even; overflow gives infinity, in
 * float8_e4m3fn, which has none, NaN; NaN stays NaN. */
#pragma once

#include <mixtape/dtype.h>
#include <string.h>

static inline uint32_t mix_float_bits(float x) { uint32_t u; memcpy(&u, &x, sizeof u); return u; }
static inline float mix_bits_float(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }

/* NaNs keep their sign and the leading bits of their payload and become quiet. The flushing of subnormals
 * does not affect the results. */
float mix_f16_to_f32(uint16_t h);
uint16_t mix_f32_to_f16(float x);
uint16_t mix_f64_to_f16(double x); /* one rounding, not two */
uint16_t mix_f64_to_bf16(double x);
static inline float mix_bf16_to_f32(uint16_t b) { return mix_bits_float((uint32_t)b << 16); }
static inline uint16_t mix_f32_to_bf16(float x) {
  uint32_t u = mix_float_bits(x);
  /* A NaN stays a NaN: set the quiet bit. */
  if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40);
  return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}
/* float8, as in Micikevicius et al., FP8 formats for deep learning, 2022. Every NaN becomes the quiet one
 * with the same sign. */
float mix_e4m3_to_f32(uint8_t code);
float mix_e5m2_to_f32(uint8_t code);
uint8_t mix_f32_to_e4m3(float x);
uint8_t mix_f32_to_e5m2(float x);
uint8_t mix_f64_to_e4m3(double x); /* one rounding */
uint8_t mix_f64_to_e5m2(double x);
/* float to integer as in the kernels: toward zero, saturating, NaN gives 0. */
int64_t mix_f64_to_i64(double x);
/* An integer truncated to the width of an integer dtype (two's complement). */
int64_t mix_wrap_integer(int64_t x, mix_dtype dtype);
/* The smallest and the largest number of an integer dtype or bool. */
int64_t mix_dtype_lowest(mix_dtype dtype);
int64_t mix_dtype_highest(mix_dtype dtype);

/* One element as double or int64, and back with one rounding. A floating value becomes an integer by
 * mix_f64_to_i64 and then mix_wrap_integer, as in a register of a fused program. It becomes a bool by != 0
 * (NaN is true). Dtypes that exist only as names load as NaN or 0. */
double mix_load_double(const void *data, mix_dtype dtype, int64_t index);
int64_t mix_load_integer(const void *data, mix_dtype dtype, int64_t index);
void mix_store_double(void *data, mix_dtype dtype, int64_t index, double value);
/* correctly rounded to floating dtypes */
void mix_store_integer(void *data, mix_dtype dtype, int64_t index, int64_t value);
/* Arrays, with the same results. Source and result must not overlap unless they have the same dtype. */
void mix_convert(const void *source, mix_dtype source_dtype, void *result, mix_dtype result_dtype,
                 int64_t count);
/* x rounded to a floating dtype of at most 32 bits, as float. */
static inline float mix_round_to(float x, mix_dtype dtype) {
  if (dtype == MIX_FLOAT16) return mix_f16_to_f32(mix_f32_to_f16(x));
  if (dtype == MIX_BFLOAT16) return mix_bf16_to_f32(mix_f32_to_bf16(x));
  if (dtype == MIX_FLOAT8_E4M3FN) return mix_e4m3_to_f32(mix_f32_to_e4m3(x));
  if (dtype == MIX_FLOAT8_E5M2) return mix_e5m2_to_f32(mix_f32_to_e5m2(x));
  return x;
}
