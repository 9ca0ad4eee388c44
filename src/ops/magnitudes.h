/* The statistics of a tensor for the numerics report, in one vector of int64, so that counts are exact. */
#pragma once

#include "ops/table.h"
#include <string.h>

/* Indices into the vector. SMALLEST and LARGEST are over nonzero finite magnitudes, as the bits of a
 * double; 0 if there are none. From BINS on: the number of nonzero finite values in [2^e, 2^(e+1)), for
 * each e from mix_magnitude_lowest on. */
enum {
  MIX_MAGNITUDE_ELEMENTS,
  MIX_MAGNITUDE_ZEROS,
  MIX_MAGNITUDE_SUBNORMALS,
  MIX_MAGNITUDE_INFINITIES,
  MIX_MAGNITUDE_NANS,
  MIX_MAGNITUDE_SMALLEST,
  MIX_MAGNITUDE_LARGEST,
  MIX_MAGNITUDE_BINS
};

/* A format of IEEE 754: sign, exponent, fraction. */
typedef struct mix_float_format {
  int fraction_bits, bias, exponents; /* exponents: the field with all bits set, for infinity and NaN */
} mix_float_format;

static inline mix_float_format mix_float_format_of(mix_dtype dtype) {
  return dtype == MIX_FLOAT16    ? (mix_float_format){10, 15, 0x1f}
         : dtype == MIX_BFLOAT16 ? (mix_float_format){7, 127, 0xff}
         : dtype == MIX_FLOAT32  ? (mix_float_format){23, 127, 0xff}
                                 : (mix_float_format){52, 1023, 0x7ff};
}
/* Exponents of the smallest subnormal, the smallest normal and the largest finite number: -24, -14 and 15
 * in float16. */
static inline int mix_magnitude_lowest(mix_dtype dtype) {
  return 1 - mix_float_format_of(dtype).bias - mix_float_format_of(dtype).fraction_bits;
}
static inline int mix_magnitude_normal(mix_dtype dtype) { return 1 - mix_float_format_of(dtype).bias; }
static inline int mix_magnitude_highest(mix_dtype dtype) { return mix_float_format_of(dtype).bias; }
static inline int mix_magnitude_bins(mix_dtype dtype) {
  return mix_magnitude_highest(dtype) - mix_magnitude_lowest(dtype) + 1;
}

/* floor(log2) of a finite nonzero magnitude, from its bits. Floating arithmetic could flush subnormals. */
static inline int mix_magnitude_exponent(uint64_t bits, mix_float_format format) {
  int exponent = (int)(bits >> format.fraction_bits);
  return exponent ? exponent - format.bias
                  : 63 - __builtin_clzll(bits) + 1 - format.bias - format.fraction_bits;
}
/* The same magnitude as the bits of a double. */
static inline int64_t mix_magnitude_double(uint64_t bits, mix_float_format format) {
  if (!bits || format.fraction_bits == 52) return (int64_t)bits;
  int exponent = mix_magnitude_exponent(bits, format), top = 63 - __builtin_clzll(bits);
  int width = bits >> format.fraction_bits ? format.fraction_bits : top; /* bits below the leading one */
  uint64_t fraction = bits & ((UINT64_C(1) << width) - 1);
  return (int64_t)((uint64_t)(exponent + 1023) << 52 | fraction << (52 - width));
}
static inline double mix_magnitude_value(int64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
