/* The statistics of the numerics report on both host backends: exact counts for hand-made bits and all 65,536
 * values of the 16-bit dtypes; the fast kernel against the reference for every number of threads. */
/* Holds docs/NUMERICS.md: Numerics report. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/run_op.h"
#include "ops/magnitudes.h"

static const mix_dtype floating[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
static const mix_backend *const backends[] = {&mix_backend_ref, &mix_backend_cpu};

enum { PLACES = MIX_MAGNITUDE_BINS + 2098 };

static void count(const mix_backend *backend, int threads, mix_dtype dtype, int64_t n, void *data,
                  int64_t *counts) {
  operand x = {dtype, {.rank = 1, .dims = {n}}, data};
  operand y = {MIX_INT64, {.rank = 1, .dims = {MIX_MAGNITUDE_BINS + mix_magnitude_bins(dtype)}}, counts};
  memset(counts, 0x55, sizeof *counts * PLACES);
  assert_int_equal(run_step(backend, threads, &mix_op_magnitudes, NULL, NULL, 1, &x, 1, &y), MIX_OK);
}

static void put_bits(void *data, mix_dtype dtype, int64_t i, uint64_t bits) {
  switch (mix_dtype_size(dtype)) {
  case 2: ((uint16_t *)data)[i] = (uint16_t)bits; break;
  case 4: ((uint32_t *)data)[i] = (uint32_t)bits; break;
  default: ((uint64_t *)data)[i] = bits;
  }
}

/* Both zeros, the extremes of both ranges with either sign, infinities, quiet and signalling NaN, 1, 1.5 and
 * -3. */
static void hand_made_values(void **state) {
  (void)state;
  static int64_t counts[PLACES];
  for (int d = 0; d < 4; d++) {
    const mix_dtype dtype = floating[d];
    const mix_float_format f = mix_float_format_of(dtype);
    const uint64_t sign = UINT64_C(1) << (8 * mix_dtype_size(dtype) - 1), smallest_subnormal = 1,
                   one = (uint64_t)f.bias << f.fraction_bits;
    const uint64_t normal = UINT64_C(1) << f.fraction_bits,
                   infinity = (uint64_t)f.exponents << f.fraction_bits;
    const uint64_t half = normal >> 1;
    const uint64_t values[] = {0,
                               sign,
                               smallest_subnormal,
                               sign | smallest_subnormal,
                               normal - 1,
                               normal,
                               sign | normal,
                               infinity - 1,
                               sign | (infinity - 1),
                               infinity,
                               sign | infinity,
                               infinity,
                               infinity | 1,
                               infinity | half,
                               sign | infinity | half | 1,
                               infinity | (normal - 1),
                               one,
                               one | half,
                               sign | (one + normal) | half};
    const int n = sizeof values / sizeof *values;
    uint64_t data[32];
    for (int i = 0; i < n; i++) put_bits(data, dtype, i, values[i]);
    for (int b = 0; b < 2; b++) {
      count(backends[b], 1, dtype, n, data, counts);
      assert_int_equal(counts[MIX_MAGNITUDE_ELEMENTS], n);
      assert_int_equal(counts[MIX_MAGNITUDE_ZEROS], 2);
      assert_int_equal(counts[MIX_MAGNITUDE_SUBNORMALS], 3);
      assert_int_equal(counts[MIX_MAGNITUDE_INFINITIES], 3);
      assert_int_equal(counts[MIX_MAGNITUDE_NANS], 4);
      const double smallest = dtype == MIX_FLOAT16    ? 0x1p-24
                              : dtype == MIX_BFLOAT16 ? 0x1p-133
                              : dtype == MIX_FLOAT32  ? 0x1p-149
                                                      : 0x1p-1074;
      const double largest = dtype == MIX_FLOAT16    ? 65504
                             : dtype == MIX_BFLOAT16 ? 0x1.fep127
                             : dtype == MIX_FLOAT32  ? 0x1.fffffep127
                                                     : 0x1.fffffffffffffp1023;
      assert_true(mix_magnitude_value(counts[MIX_MAGNITUDE_SMALLEST]) == smallest);
      assert_true(mix_magnitude_value(counts[MIX_MAGNITUDE_LARGEST]) == largest);
      const int64_t *bins = counts + MIX_MAGNITUDE_BINS - mix_magnitude_lowest(dtype);
      int64_t binned = 0;
      for (int e = mix_magnitude_lowest(dtype); e <= mix_magnitude_highest(dtype); e++) binned += bins[e];
      assert_int_equal(binned, n - 2 - 3 - 4);
      assert_int_equal(bins[mix_magnitude_lowest(dtype)], 2);
      assert_int_equal(bins[mix_magnitude_normal(dtype) - 1], 1);
      assert_int_equal(bins[mix_magnitude_normal(dtype)], 2);
      assert_int_equal(bins[0], 2);
      assert_int_equal(bins[1], 1);
      assert_int_equal(bins[mix_magnitude_highest(dtype)], 2);
    }
  }
  assert_int_equal(mix_magnitude_lowest(MIX_FLOAT16), -24);
  assert_int_equal(mix_magnitude_normal(MIX_FLOAT16), -14);
  assert_int_equal(mix_magnitude_highest(MIX_FLOAT16), 15);
}

/* Each normal exponent has 2^fraction_bits numbers of each sign, a subnormal one 2^position. */
static void every_16_bit_value(void **state) {
  (void)state;
  static uint16_t data[65536];
  static int64_t counts[PLACES];
  for (int i = 0; i < 65536; i++) data[i] = (uint16_t)i;
  for (int d = 0; d < 2; d++)
    for (int b = 0; b < 2; b++) {
      const mix_float_format f = mix_float_format_of(floating[d]);
      const int64_t fractions = INT64_C(1) << f.fraction_bits;
      count(backends[b], 2, floating[d], 65536, data, counts);
      assert_int_equal(counts[MIX_MAGNITUDE_ZEROS], 2);
      assert_int_equal(counts[MIX_MAGNITUDE_INFINITIES], 2);
      assert_int_equal(counts[MIX_MAGNITUDE_NANS], 2 * (fractions - 1));
      assert_int_equal(counts[MIX_MAGNITUDE_SUBNORMALS], 2 * (fractions - 1));
      for (int e = 0; e < mix_magnitude_bins(floating[d]); e++)
        assert_int_equal(counts[MIX_MAGNITUDE_BINS + e],
                         2 * (e < f.fraction_bits ? INT64_C(1) << e : fractions));
    }
}

static void the_fast_kernel_counts_as_the_reference_does(void **state) {
  (void)state;
  static const int64_t sizes[] = {0, 1, 7, 4097, 65535, 65536, 200001};
  static int64_t expected[PLACES], got[PLACES];
  uint64_t *data = malloc(200001 * 8), noise = 9;
  assert_non_null(data);
  for (int64_t i = 0; i < 200001; i++) {
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    data[i] = noise ^ noise >> 29;
  }
  for (int d = 0; d < 4; d++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      count(&mix_backend_ref, 1, floating[d], sizes[s], data, expected);
      for (int threads = 1; threads <= 3; threads++) {
        count(&mix_backend_cpu, threads, floating[d], sizes[s], data, got);
        assert_memory_equal(got, expected,
                            sizeof *got * (size_t)(MIX_MAGNITUDE_BINS + mix_magnitude_bins(floating[d])));
      }
    }
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hand_made_values),
      cmocka_unit_test(every_16_bit_value),
      cmocka_unit_test(the_fast_kernel_counts_as_the_reference_does),
  };
  return cmocka_run_group_tests_name("backend/magnitudes", tests, NULL, NULL);
}
