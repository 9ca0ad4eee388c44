/* Rounding to and from float16 and bfloat16, exhaustively over their 65,536 patterns and around every
 * midpoint. The reference decodes a pattern with ldexp and rounds by comparing with the exact midpoint in
 * double. It shares nothing with the tested code. */
/* Holds docs/NUMERICS.md: Rounding. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/skip.h"
#include "base/philox.h"
#include "tensor/convert.h"

#include <float.h>
#include <math.h>
#include "base/machine.h"

typedef struct format {
  mix_dtype dtype;
  int fraction_bits, bias;
  uint16_t infinity;
  uint16_t (*from_f32)(float);
  uint16_t (*from_f64)(double);
  float (*to_f32)(uint16_t);
} format;

static uint16_t bf16_from_f32(float x) { return mix_f32_to_bf16(x); }
static float bf16_to_f32(uint16_t b) { return mix_bf16_to_f32(b); }

static const format formats[] = {
    {MIX_FLOAT16, 10, 15, 0x7c00, mix_f32_to_f16, mix_f64_to_f16, mix_f16_to_f32},
    {MIX_BFLOAT16, 7, 127, 0x7f80, bf16_from_f32, mix_f64_to_bf16, bf16_to_f32},
};
enum { FORMATS = 2 };

/* The value of a magnitude below infinity. Infinity itself decodes to the power of two that would follow the
 * largest number. */
static double decode(const format *f, unsigned magnitude) {
  unsigned exponent = magnitude >> f->fraction_bits, fraction = magnitude & ((1u << f->fraction_bits) - 1);
  if (exponent == 0) return ldexp(fraction, 1 - f->bias - f->fraction_bits);
  return ldexp(1.0 + ldexp(fraction, -f->fraction_bits), (int)exponent - f->bias);
}

/* The pattern nearest to x: bisection finds the neighbours, then their midpoint, exact in double, decides;
 * ties to the even pattern. */
static unsigned nearest(const format *f, double x) {
  unsigned sign = signbit(x) ? 0x8000 : 0, low = 0, high = f->infinity;
  x = fabs(x);
  if (x >= decode(f, high)) return sign | high;
  while (high - low > 1) {
    unsigned middle = (low + high) / 2;
    if (decode(f, middle) <= x)
      low = middle;
    else
      high = middle;
  }
  double midpoint = (decode(f, low) + decode(f, high)) / 2;
  if (x == midpoint) return sign | (low & 1 ? high : low);
  return sign | (x < midpoint ? low : high);
}

static bool is_nan(const format *f, unsigned pattern) { return (pattern & 0x7fff) > f->infinity; }

static void every_pattern_widens_to_its_value(void **state) {
  (void)state;
  for (int k = 0; k < FORMATS; k++) {
    const format *f = &formats[k];
    for (unsigned p = 0; p < 65536; p++) {
      float x = f->to_f32((uint16_t)p);
      assert_int_equal(signbit(x) != 0, p >> 15);
      if (is_nan(f, p))
        assert_true(isnan(x));
      else if ((p & 0x7fff) == f->infinity)
        assert_true(isinf(x));
      else
        assert_true(fabs((double)x) == decode(f, p & 0x7fff));
    }
  }
}

static void every_pattern_survives_a_round_trip(void **state) {
  (void)state;
  for (int k = 0; k < FORMATS; k++) {
    const format *f = &formats[k];
    unsigned quiet = 1u << (f->fraction_bits - 1);
    for (unsigned p = 0; p < 65536; p++) {
      unsigned expected = is_nan(f, p) ? p | quiet : p; /* NaNs keep sign and payload and become quiet */
      float x = f->to_f32((uint16_t)p);
      assert_int_equal(f->from_f32(x), expected);
      assert_int_equal(f->from_f64(x), expected);
    }
  }
}

static void assert_both(const format *f, double x, unsigned expected) {
  assert_int_equal(f->from_f64(x), expected);
  assert_int_equal(f->from_f64(-x), expected | 0x8000);
  if ((double)(float)x != x) return;
  assert_int_equal(f->from_f32((float)x), expected);
  assert_int_equal(f->from_f32(-(float)x), expected | 0x8000);
}

/* The midpoint above each number, its two float32 neighbours and its two float64 neighbours. The last
 * midpoint decides about infinity. */
static void every_midpoint_goes_to_even_and_its_neighbours_to_their_side(void **state) {
  (void)state;
  for (int k = 0; k < FORMATS; k++) {
    const format *f = &formats[k];
    for (unsigned p = 0; p < f->infinity; p++) {
      double midpoint = (decode(f, p) + decode(f, p + 1)) / 2;
      float single = (float)midpoint;
      assert_true(single == midpoint); /* both formats have at least one bit less than float32 */
      assert_both(f, midpoint, p & 1 ? p + 1 : p);
      assert_both(f, nextafterf(single, 0), p);
      assert_both(f, nextafterf(single, INFINITY), p + 1);
      assert_both(f, nextafter(midpoint, 0), p);
      assert_both(f, nextafter(midpoint, INFINITY), p + 1);
    }
  }
}

/* Random bit patterns for all exponents, and random significands in the range of each format. */
static void random_numbers_agree_with_the_oracle(void **state) {
  (void)state;
  for (int k = 0; k < FORMATS; k++) {
    const format *f = &formats[k];
    for (uint64_t i = 0; i < 50000; i++) {
      mix_philox random = mix_philox_block(2024, (uint64_t)k, i);
      float single = mix_bits_float(random.v[0]);
      double wide =
          ldexp(1 + random.v[1] * 0x1p-32 + (random.v[3] >> 12) * 0x1p-52, (int)(random.v[2] % 300) - 160);
      double narrow = ldexp(1 + random.v[1] * 0x1p-32, (int)(random.v[3] % 45) - 27);
      if (!isnan(single)) assert_int_equal(f->from_f32(single), nearest(f, single));
      if (!isnan(single)) assert_int_equal(f->from_f64(single), nearest(f, single));
      assert_int_equal(f->from_f64(wide), nearest(f, wide));
      assert_int_equal(f->from_f64(-narrow), nearest(f, -narrow));
      assert_int_equal(f->from_f32((float)narrow), nearest(f, (float)narrow));
    }
  }
}

static void extremes_of_double(void **state) {
  (void)state;
  for (int k = 0; k < FORMATS; k++) {
    const format *f = &formats[k];
    const double small[] = {0, 0x1p-1074, DBL_MIN, 0x1p-200, 0x1p-150};
    for (int i = 0; i < 5; i++) {
      assert_int_equal(f->from_f64(small[i]), 0);
      assert_int_equal(f->from_f64(-small[i]), 0x8000);
    }
    assert_int_equal(f->from_f64(DBL_MAX), f->infinity);
    assert_int_equal(f->from_f64(-INFINITY), f->infinity | 0x8000);
    const uint64_t nans[] = {0x7ff0000000000001, 0xfff0000000000001, 0x7fffffffffffffff, 0x7ff8000000000000};
    for (int i = 0; i < 4; i++) {
      double x;
      memcpy(&x, &nans[i], sizeof x);
      assert_true(is_nan(f, f->from_f64(x)));
      assert_int_equal(f->from_f64(x) >> 15, nans[i] >> 63);
    }
  }
}

/* A float64 that rounds to a float32 midpoint first: two roundings would give the other neighbour. */
static void doubles_are_rounded_once(void **state) {
  (void)state;
  double above = 1 + 0x1p-11 + 0x1p-40, below = 1 + 3 * 0x1p-11 - 0x1p-40;
  assert_int_equal(mix_f64_to_f16(above), 0x3c01);
  assert_int_equal(mix_f32_to_f16((float)above), 0x3c00);
  assert_int_equal(mix_f64_to_f16(below), 0x3c01);
  assert_int_equal(mix_f64_to_bf16(1 + 0x1p-8 + 0x1p-40), 0x3f81);
  assert_int_equal(mix_f32_to_bf16((float)(1 + 0x1p-8 + 0x1p-40)), 0x3f80);
  assert_int_equal(mix_f64_to_f16(0x1p-25 + 0x1p-70), 1);
}

/* The compiler's own _Float16, if it has one, for every pattern and a sample of all float32 exponents. */
static void the_compiler_agrees(void **state) {
  (void)state;
#ifdef __FLT16_MANT_DIG__
  for (unsigned p = 0; p < 65536; p++) {
    uint16_t h = (uint16_t)p;
    _Float16 native;
    memcpy(&native, &h, sizeof native);
    float widened = (float)native, ours = mix_f16_to_f32(h);
    assert_true(isnan(widened) ? isnan(ours) : mix_float_bits(widened) == mix_float_bits(ours));
  }
  for (uint64_t u = 0; u <= UINT32_MAX; u += 4099) {
    float x = mix_bits_float((uint32_t)u);
    _Float16 native = (_Float16)x;
    uint16_t h, ours = mix_f32_to_f16(x);
    memcpy(&h, &native, sizeof h);
    assert_true(isnan(x) ? is_nan(&formats[0], ours) : h == ours);
    double d = x * (1 + 0x1p-45); /* between the float32 numbers */
    native = (_Float16)d;
    memcpy(&h, &native, sizeof h);
    if (!isnan(d)) assert_int_equal(mix_f64_to_f16(d), h);
  }
#else
  SKIP("the compiler or the processor lacks what this compares with");
#endif
}

/* Holds docs/NUMERICS.md: Subnormal numbers. */
/* Conversions must not depend on whether the CPU flushes float32 subnormals. */
static void flushing_subnormals_changes_nothing(void **state) {
  (void)state;
  static float usual[65536], flushed[65536];
  static uint16_t narrowed[2][65536];
  for (int flush = 0; flush < 2; flush++) {
    const mix_float_control control = mix_float_control_get();
    if (flush) mix_float_control_set(control | MIX_FLUSH_SUBNORMALS);
    for (unsigned p = 0; p < 65536; p++) {
      (flush ? flushed : usual)[p] = mix_f16_to_f32((uint16_t)p);
      narrowed[flush][p] =
          mix_f32_to_f16(mix_bits_float(p << 13)); /* including 2^-15 and below: float16 subnormals */
    }
    mix_float_control_set(control);
  }
  assert_memory_equal(usual, flushed, sizeof usual);
  assert_memory_equal(narrowed[0], narrowed[1], sizeof narrowed[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pattern_widens_to_its_value),
      cmocka_unit_test(every_pattern_survives_a_round_trip),
      cmocka_unit_test(every_midpoint_goes_to_even_and_its_neighbours_to_their_side),
      cmocka_unit_test(random_numbers_agree_with_the_oracle),
      cmocka_unit_test(extremes_of_double),
      cmocka_unit_test(doubles_are_rounded_once),
      cmocka_unit_test(the_compiler_agrees),
      cmocka_unit_test(flushing_subnormals_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
