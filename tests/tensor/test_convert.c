/* The number format rows N01 to N14 of the specification (docs/spec/mixed_precision.md, 9.9), integers, and
 * arrays between every two dtypes. */
/* Holds docs/NUMERICS.md: Rounding. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/philox.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdlib.h>

static float f16(double x) { return mix_f16_to_f32(mix_f64_to_f16(x)); }
static float bf16(double x) { return mix_bf16_to_f32(mix_f64_to_bf16(x)); }

/* Through float64, and through float32 if the number is one, with both conversion functions. */
static void assert_rounds(double x, double as_f16, double as_bf16) {
  assert_true(f16(x) == as_f16);
  assert_true(bf16(x) == as_bf16);
  if ((double)(float)x != x) return;
  assert_true(mix_round_to((float)x, MIX_FLOAT16) == as_f16);
  assert_true(mix_round_to((float)x, MIX_BFLOAT16) == as_bf16);
}

static void N01_the_largest_float16(void **state) {
  (void)state;
  assert_rounds(65504, 65504, 65536);
}
static void N02_below_the_overflow_midpoint(void **state) {
  (void)state;
  assert_rounds(65519.996, 65504, 65536);
  assert_rounds(65519.996f, 65504, 65536);
}
static void N03_the_overflow_midpoint(void **state) {
  (void)state;
  assert_rounds(65520, INFINITY, 65536);
}
static void N04_a_product_that_overflows(void **state) {
  (void)state;
  assert_rounds((double)f16(256) * f16(256), INFINITY, 65536);
}
static void N05_a_subnormal(void **state) {
  (void)state;
  assert_true(f16(1e-5) == 168 * 0x1p-24);
  assert_true(fabs(f16(1e-5) - 1.0014e-5) < 0.5e-9); /* the row's five digits */
  assert_true(fabs(bf16(1e-5) - 1.0014e-5) < 0.5e-9);
  assert_true(bf16(1e-5) == 168 * 0x1p-24); /* 168 has eight bits: bfloat16 gives the same number */
}
static void N06_a_product_that_underflows(void **state) {
  (void)state;
  assert_true(f16((double)f16(1e-5) * f16(1e-5)) == 0);
  /* Two factors and one product, each rounded with a relative error of 2^-9. */
  assert_true(fabs(bf16((double)bf16(1e-5) * bf16(1e-5)) / 1e-10 - 1) < 3.01 * 0x1p-9);
}
static void N07_half_the_smallest_goes_to_zero(void **state) {
  (void)state;
  assert_rounds(0x1p-25, 0, 0x1p-25);
}
static void N08_more_than_half_the_smallest(void **state) {
  (void)state;
  assert_rounds(0x1p-25 * 1.0001, 0x1p-24, 0x1p-25);
  assert_rounds(0x1p-25f * 1.0001f, 0x1p-24, 0x1p-25);
}
static void N09_a_tie_to_even_below(void **state) {
  (void)state;
  assert_rounds(1 + 0x1p-11, 1, 1);
}
static void N10_a_tie_to_even_above(void **state) {
  (void)state;
  assert_rounds(1 + 3 * 0x1p-11, 1 + 0x1p-9, 1);
}
static void N11_the_first_integer_that_is_lost(void **state) {
  (void)state;
  assert_rounds(2049, 2048, 2048);
}
static void N12_a_nan_of_low_bits_stays_one(void **state) {
  (void)state;
  float x = mix_bits_float(0x7f800001u);
  assert_true(isnan(mix_f16_to_f32(mix_f32_to_f16(x))));
  assert_true(isnan(mix_bf16_to_f32(mix_f32_to_bf16(x))));
  assert_true(isnan(f16(x)));
  assert_true(isnan(bf16(x)));
}
static void N13_a_negative_overflow(void **state) {
  (void)state;
  assert_rounds(-1e9, -INFINITY, -238 * 0x1p22); /* 1e9 / 2^22 = 238.4, of eight bits */
}
static void N14_two_steps_above_zero(void **state) {
  (void)state;
  assert_true(f16(1e-7) == 0x1p-23);
  assert_true(f16(1e-7) == 1.1920929e-7f);
  assert_true(bf16(1e-7) == 215 * 0x1p-31); /* 1e-7 * 2^31 = 214.7, of eight bits */
}

static int64_t i64(double x) { return mix_f64_to_i64(x); }

static void floats_become_integers_toward_zero(void **state) {
  (void)state;
  assert_int_equal(i64(2.9), 2);
  assert_int_equal(i64(-2.9), -2);
  assert_int_equal(i64(-0.5), 0);
  assert_int_equal(i64(NAN), 0);
  assert_true(i64(INFINITY) == INT64_MAX);
  assert_true(i64(-INFINITY) == INT64_MIN);
  assert_true(i64(0x1p63) == INT64_MAX);
  assert_true(i64(-0x1p63) == INT64_MIN);
  assert_true(i64(0x1.fffffffffffffp62) == INT64_MAX - 1023);
}

static void integers_wrap_to_their_width(void **state) {
  (void)state;
  assert_int_equal(mix_wrap_integer(127, MIX_INT8), 127);
  assert_true(mix_wrap_integer(128, MIX_INT8) == -128);
  assert_true(mix_wrap_integer(-129, MIX_INT8) == 127);
  assert_true(mix_wrap_integer(40000, MIX_INT16) == -25536);
  assert_true(mix_wrap_integer(INT64_C(1) << 31, MIX_INT32) == INT32_MIN);
  assert_true(mix_wrap_integer(-1, MIX_UINT8) == 255);
  assert_true(mix_wrap_integer(256, MIX_UINT8) == 0);
  assert_true(mix_wrap_integer(256, MIX_BOOL) == 1);
  assert_true(mix_wrap_integer(INT64_MIN, MIX_INT64) == INT64_MIN);
}

/* One further wraps to the other end. */
static void limits_of_integers(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_INT8, MIX_INT16, MIX_INT32, MIX_INT64, MIX_UINT8};
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    const int64_t low = mix_dtype_lowest(dtypes[i]), high = mix_dtype_highest(dtypes[i]);
    assert_true(low < high && mix_wrap_integer(low, dtypes[i]) == low);
    assert_true(mix_wrap_integer(high, dtypes[i]) == high);
    assert_true(mix_wrap_integer((int64_t)((uint64_t)high + 1), dtypes[i]) == low);
  }
  assert_true(mix_dtype_lowest(MIX_BOOL) == 0 && mix_dtype_highest(MIX_BOOL) == 1);
}

static uint16_t stored_integer(int64_t x, mix_dtype dtype) {
  uint16_t bits;
  mix_store_integer(&bits, dtype, 0, x);
  return bits;
}

/* float64 has 53 bits. A conversion to 8 or 11 bits through it must not decide a tie that the integer's last
 * bits decide. */
static void integers_are_rounded_once(void **state) {
  (void)state;
  int64_t tie =
      (INT64_C(1) << 62) + (INT64_C(1) << 54); /* between two bfloat16 numbers, the lower one even */
  assert_int_equal(stored_integer(tie, MIX_BFLOAT16), 0x5e80);
  assert_int_equal(stored_integer(tie + 1, MIX_BFLOAT16), 0x5e81);
  assert_int_equal(stored_integer(tie - 1, MIX_BFLOAT16), 0x5e80);
  assert_int_equal(stored_integer(-tie - 1, MIX_BFLOAT16), 0xde81);
  int64_t odd = tie + (INT64_C(1) << 55); /* the lower one odd */
  assert_int_equal(stored_integer(odd, MIX_BFLOAT16), 0x5e82);
  assert_int_equal(stored_integer(odd - 1, MIX_BFLOAT16), 0x5e81);
  assert_int_equal(stored_integer(INT64_MIN, MIX_BFLOAT16), 0xdf00);
  assert_int_equal(stored_integer(INT64_MAX, MIX_BFLOAT16), 0x5f00);
  assert_int_equal(stored_integer(2049, MIX_FLOAT16), 0x6800);
  assert_int_equal(stored_integer(65519, MIX_FLOAT16), 0x7bff);
  assert_int_equal(stored_integer(65520, MIX_FLOAT16), 0x7c00);
  assert_int_equal(stored_integer(INT64_MIN, MIX_FLOAT16), 0xfc00);
  float single;
  mix_store_integer(&single, MIX_FLOAT32, 0,
                    (INT64_C(1) << 54) + (INT64_C(1) << 30) + 1); /* just above a tie of float32 */
  assert_true(single == 0x1p54f + 0x1p31f);
  double twice;
  mix_store_integer(&twice, MIX_FLOAT64, 0, (INT64_C(1) << 53) + 1);
  assert_true(twice == 0x1p53);
}

static void bools_are_zero_or_one(void **state) {
  (void)state;
  uint8_t stored[4];
  mix_store_double(stored, MIX_BOOL, 0, 0.25);
  mix_store_double(stored, MIX_BOOL, 1, NAN);
  mix_store_double(stored, MIX_BOOL, 2, -0.0);
  mix_store_integer(stored, MIX_BOOL, 3, 256);
  assert_memory_equal(stored, "\1\1\0\1", 4);
  stored[0] = 7; /* foreign data */
  assert_true(mix_load_double(stored, MIX_BOOL, 0) == 1);
  assert_int_equal(mix_load_integer(stored, MIX_BOOL, 0), 1);
}

static void names_only_hold_nothing(void **state) {
  (void)state;
  double value = 3;
  assert_true(isnan(mix_load_double(&value, MIX_STRING, 0)));
  assert_int_equal(mix_load_integer(&value, MIX_DTYPE_NONE, 0), 0);
  mix_store_double(&value, MIX_COMPLEX64, 0, 1);
  mix_store_integer(&value, MIX_UINT32, 0, 1);
  mix_convert(&value, MIX_FLOAT64, &value, MIX_STRING, 1);
  assert_true(value == 3);
}

static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT8,
                                   MIX_INT16,   MIX_INT32,    MIX_INT64,   MIX_UINT8,   MIX_BOOL};
enum { DTYPES = 10, COUNT = 1003 }; /* an odd number: vector loops have a tail */

static bool same_bits(const void *a, const void *b, mix_dtype dtype, int64_t index) {
  size_t size = mix_dtype_size(dtype);
  double x = mix_load_double(a, dtype, index), y = mix_load_double(b, dtype, index);
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  return memcmp((const char *)a + (size_t)index * size, (const char *)b + (size_t)index * size, size) == 0;
}

/* Random bit patterns of every dtype (including NaNs, infinities and subnormals) to every other. An array
 * converts as its elements do, through int64 from integers and through double from others. Nothing is written
 * past the end. */
static void arrays_agree_with_elements(void **state) {
  (void)state;
  static union {
    uint32_t words[2 * COUNT];
    uint8_t bytes[8 * COUNT];
    double align;
  } source;
  static union {
    uint8_t bytes[8 * COUNT + 8];
    double align;
  } array, single;
  for (uint64_t i = 0; i < 2 * COUNT; i++) source.words[i] = mix_philox_word(99, 0, i);
  for (int s = 0; s < DTYPES; s++)
    for (int r = 0; r < DTYPES; r++) {
      mix_dtype from = dtypes[s], to = dtypes[r];
      size_t end = COUNT * mix_dtype_size(to);
      memset(array.bytes, 0x5a, sizeof array.bytes);
      if (from == MIX_BOOL)
        for (int i = 0; i < COUNT; i++) source.bytes[i] &= 1;
      mix_convert(&source, from, &array, to, COUNT);
      for (int64_t i = 0; i < COUNT; i++) {
        if (mix_dtype_is_floating(from))
          mix_store_double(&single, to, i, mix_load_double(&source, from, i));
        else
          mix_store_integer(&single, to, i, mix_load_integer(&source, from, i));
        assert_true(same_bits(&array, &single, to, i));
      }
      for (size_t i = 0; i < 8; i++) assert_int_equal(array.bytes[end + i], 0x5a);
    }
}

static void the_same_dtype_copies_even_in_place(void **state) {
  (void)state;
  uint16_t values[5] = {0x7c01, 2, 3, 4, 5}; /* a signalling NaN is copied as it is */
  mix_convert(values, MIX_FLOAT16, values, MIX_FLOAT16, 5);
  mix_convert(values, MIX_FLOAT16, values + 1, MIX_FLOAT16, 4);
  const uint16_t expected[5] = {0x7c01, 0x7c01, 2, 3, 4};
  assert_memory_equal(values, expected, sizeof values);
  mix_convert(NULL, MIX_FLOAT16, NULL, MIX_FLOAT32, 0);
}

static void rounding_to_wider_formats_keeps(void **state) {
  (void)state;
  assert_true(mix_round_to(0.1f, MIX_FLOAT32) == 0.1f);
  assert_true(mix_round_to(0.1f, MIX_FLOAT16) == 1638 * 0x1p-14f); /* 0.1 * 2^14 = 1638.4, of eleven bits */
  assert_true(mix_round_to(0.1f, MIX_BFLOAT16) == 205 * 0x1p-11f); /* 0.1 * 2^11 = 204.8, of eight bits */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(N01_the_largest_float16),
      cmocka_unit_test(N02_below_the_overflow_midpoint),
      cmocka_unit_test(N03_the_overflow_midpoint),
      cmocka_unit_test(N04_a_product_that_overflows),
      cmocka_unit_test(N05_a_subnormal),
      cmocka_unit_test(N06_a_product_that_underflows),
      cmocka_unit_test(N07_half_the_smallest_goes_to_zero),
      cmocka_unit_test(N08_more_than_half_the_smallest),
      cmocka_unit_test(N09_a_tie_to_even_below),
      cmocka_unit_test(N10_a_tie_to_even_above),
      cmocka_unit_test(N11_the_first_integer_that_is_lost),
      cmocka_unit_test(N12_a_nan_of_low_bits_stays_one),
      cmocka_unit_test(N13_a_negative_overflow),
      cmocka_unit_test(N14_two_steps_above_zero),
      cmocka_unit_test(floats_become_integers_toward_zero),
      cmocka_unit_test(integers_wrap_to_their_width),
      cmocka_unit_test(limits_of_integers),
      cmocka_unit_test(integers_are_rounded_once),
      cmocka_unit_test(bools_are_zero_or_one),
      cmocka_unit_test(names_only_hold_nothing),
      cmocka_unit_test(arrays_agree_with_elements),
      cmocka_unit_test(the_same_dtype_copies_even_in_place),
      cmocka_unit_test(rounding_to_wider_formats_keeps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
