/* Rounding to and from float8_e4m3fn and float8_e5m2 over all 256 codes, all float16 and bfloat16 numbers,
 * and around every midpoint. The reference decodes a code with ldexp and takes the nearest number by
 * comparing distances in double. It shares nothing with the tested code. */
/* Holds docs/NUMERICS.md: Rounding. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/philox.h"
#include "tensor/convert.h"
#include "tensor/float8_reference.h"

static void assert_code(const float8_format *f, double x, unsigned expected) {
  uint8_t code;
  assert_int_equal(f->from_f64(x), expected);
  mix_store_double(&code, f->dtype, 0, x);
  assert_int_equal(code, expected);
  if ((double)(float)x != x) return;
  assert_int_equal(f->from_f32((float)x), expected);
  const float single = (float)x;
  mix_convert(&single, MIX_FLOAT32, &code, f->dtype, 1);
  assert_int_equal(code, expected);
}

/* The number itself, and the midpoint above it with its neighbours in float32 and float64. */
static void every_code_and_every_midpoint(void **state) {
  (void)state;
  for (int k = 0; k < FLOAT8_FORMATS; k++) {
    const float8_format *f = &float8_formats[k];
    for (unsigned c = 0; c < 256; c++) {
      const double x = float8_decode(f, c);
      const float widened = f->to_f32((uint8_t)c);
      assert_true(isnan(x) ? isnan(widened) : (double)widened == x);
      assert_int_equal(signbit(widened) != 0, c >> 7);
      if (isnan(x)) {
        assert_int_equal(f->from_f32(widened), (c & 0x80) | f->nan);
        continue;
      }
      assert_code(f, x, c);
      if (isinf(x)) continue;
      const double end = (c & 0x7f) == f->largest ? f->limit : (x + float8_decode(f, c + 1)) / 2,
                   middle = copysign(end, x);
      assert_code(f, middle, float8_nearest(f, middle));
      for (int way = -1; way <= 1; way += 2) {
        const double toward = way < 0 ? 0 : copysign(INFINITY, x);
        assert_code(f, nextafter(middle, toward), float8_nearest(f, nextafter(middle, toward)));
        const float near = nextafterf((float)middle, (float)toward);
        assert_code(f, near, float8_nearest(f, near));
      }
    }
  }
}

static void numbers_beyond_the_largest(void **state) {
  (void)state;
  const float8_format *e4m3 = &float8_formats[0], *e5m2 = &float8_formats[1];
  assert_code(e4m3, 464, 0x7e); /* a tie goes to even, 448 */
  assert_code(e4m3, nextafter(464, 500), 0x7f);
  assert_code(e4m3, -465, 0xff);
  assert_code(e4m3, INFINITY, 0x7f);
  assert_code(e4m3, 1e300, 0x7f);
  assert_code(e5m2, 61440, 0x7c);
  assert_code(e5m2, nextafter(61440, 0), 0x7b);
  assert_code(e5m2, -INFINITY, 0xfc);
  assert_code(e5m2, 1e300, 0x7c);
  for (int k = 0; k < FLOAT8_FORMATS; k++) {
    const float8_format *f = &float8_formats[k];
    assert_int_equal(f->from_f64((double)NAN), f->nan);
    assert_int_equal(f->from_f32(-NAN), f->nan | 0x80);
    assert_true(mix_dtype_max(f->dtype) == float8_decode(f, f->largest));
    assert_code(f, 5e-324, 0);
    assert_code(f, -5e-324, 0x80);
  }
}

static void all_16_bit_numbers_and_random_ones(void **state) {
  (void)state;
  static const mix_dtype halves[] = {MIX_FLOAT16, MIX_BFLOAT16};
  static uint16_t every[65536];
  static uint8_t codes[65536];
  for (unsigned p = 0; p < 65536; p++) every[p] = (uint16_t)p;
  for (int k = 0; k < FLOAT8_FORMATS; k++) {
    const float8_format *f = &float8_formats[k];
    for (int h = 0; h < 2; h++) {
      mix_convert(every, halves[h], codes, f->dtype, 65536);
      for (unsigned p = 0; p < 65536; p++)
        assert_int_equal(codes[p], float8_nearest(f, mix_load_double(every, halves[h], p)));
    }
    for (uint64_t i = 0; i < 50000; i++) {
      const mix_philox random = mix_philox_block(8, (uint64_t)k, i);
      const float single = mix_bits_float(random.v[0]);
      const double wide =
          ldexp(1 + random.v[1] * 0x1p-32 + (random.v[3] >> 12) * 0x1p-52, (int)(random.v[2] % 40) - 22);
      assert_int_equal(f->from_f32(single), float8_nearest(f, single));
      assert_int_equal(f->from_f64(wide), float8_nearest(f, wide));
    }
  }
}

/* One rounding: from the integer itself, not from a float near it. */
static void integers_are_rounded_once(void **state) {
  (void)state;
  for (int k = 0; k < FLOAT8_FORMATS; k++)
    for (int64_t i = -70000; i <= 70000; i++) {
      uint8_t code;
      mix_store_integer(&code, float8_formats[k].dtype, 0, i);
      assert_int_equal(code, float8_nearest(&float8_formats[k], (double)i));
    }
  uint8_t code;
  mix_store_integer(&code, MIX_FLOAT8_E5M2, 0, (INT64_C(1) << 62) + 1);
  assert_int_equal(code, 0x7c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_code_and_every_midpoint),
      cmocka_unit_test(numbers_beyond_the_largest),
      cmocka_unit_test(all_16_bit_numbers_and_random_ones),
      cmocka_unit_test(integers_are_rounded_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
