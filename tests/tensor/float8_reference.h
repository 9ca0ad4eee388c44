/* The float8 formats by their definition (Micikevicius et al., FP8 formats for deep learning, 2022), for
 * comparison. Include <cmocka.h> first. */
#ifndef TESTS_TENSOR_FLOAT8_REFERENCE_H
#define TESTS_TENSOR_FLOAT8_REFERENCE_H

#include "tensor/convert.h"
#include <math.h>

typedef struct float8_format {
  mix_dtype dtype;
  int fraction_bits, bias;
  unsigned largest, nan, beyond; /* codes; beyond: of what is larger than `limit` */
  double limit;                  /* the midpoint above the largest number */
  uint8_t (*from_f32)(float);
  uint8_t (*from_f64)(double);
  float (*to_f32)(uint8_t);
} float8_format;

static const float8_format float8_formats[] = {
    {MIX_FLOAT8_E4M3FN, 3, 7, 0x7e, 0x7f, 0x7f, 464, mix_f32_to_e4m3, mix_f64_to_e4m3, mix_e4m3_to_f32},
    {MIX_FLOAT8_E5M2, 2, 15, 0x7b, 0x7e, 0x7c, 61440, mix_f32_to_e5m2, mix_f64_to_e5m2, mix_e5m2_to_f32},
};
enum { FLOAT8_FORMATS = 2 };

static inline double float8_decode(const float8_format *f, unsigned code) {
  const unsigned magnitude = code & 0x7f, exponent = magnitude >> f->fraction_bits,
                 fraction = magnitude & ((1u << f->fraction_bits) - 1);
  double x = exponent ? ldexp(1 + ldexp(fraction, -f->fraction_bits), (int)exponent - f->bias)
                      : ldexp(fraction, 1 - f->bias - f->fraction_bits);
  if (magnitude > f->largest) x = magnitude == f->beyond && f->beyond != f->nan ? INFINITY : (double)NAN;
  return code & 0x80 ? -x : x;
}

/* The code of the nearest number, of two the even one. */
static inline unsigned float8_nearest(const float8_format *f, double x) {
  const unsigned sign = signbit(x) ? 0x80 : 0;
  const double size = fabs(x);
  if (isnan(x)) return sign | f->nan;
  if (size > f->limit || (size == f->limit && f->largest % 2)) return sign | f->beyond;
  static double numbers[FLOAT8_FORMATS][128]; /* decoded once */
  double *known = numbers[f - float8_formats];
  for (unsigned c = 1; c <= f->largest && !known[f->largest]; c++) known[c] = float8_decode(f, c);
  unsigned best = 0;
  for (unsigned c = 1; c <= f->largest; c++) {
    const double is = fabs(known[c] - size), was = fabs(known[best] - size);
    if (is < was || (is == was && c % 2 == 0)) best = c;
  }
  return sign | best;
}

#endif
