/* Operations that sort, take along an axis, run along an axis, and transform: values and errors. */
/* Holds docs/NUMERICS.md: Sums. */
#include "ops/support.h"

#include <math.h>

static mix_tensor *floats(mix_shape shape, const double *values) {
  return mix_tensor_from_doubles(values, MIX_FLOAT32, shape);
}
static void has_numbers(mix_tensor *x, int count, const double *expected) {
  double got[64];
  assert_int_equal(mix_shape_size(mix_tensor_shape(x)), count);
  assert_int_equal(mix_tensor_read(x, MIX_FLOAT64, got, count), MIX_OK);
  for (int i = 0; i < count; i++)
    if (!(got[i] == expected[i] || (got[i] != got[i] && expected[i] != expected[i])))
      fail_msg("element %d is %g; expected %g", i, got[i], expected[i]);
}

/* Equal elements keep their order, both ways; NaN is the largest, and -0 equals 0. */
static void places(void **state) {
  (void)state;
  mix_tensor *x = floats(MIX_SHAPE(2, 4), NUMBERS(2, 1, 2, 1, NAN, 0, -0.0, INFINITY));
  has_numbers(mix_argsort(x, -1, false), 8, NUMBERS(1, 3, 0, 2, 1, 2, 3, 0));
  has_numbers(mix_argsort(x, 1, true), 8, NUMBERS(0, 2, 1, 3, 0, 3, 1, 2));
  has_numbers(mix_argsort(x, 0, false), 8, NUMBERS(0, 1, 1, 0, 1, 0, 0, 1));
  has_numbers(mix_sort(x, 1, false), 8, NUMBERS(1, 1, 2, 2, 0, -0.0, INFINITY, NAN));
  mix_tensor *whole = mix_tensor_from_doubles(NUMBERS(-3, 200, 7, -3), MIX_INT16, MIX_SHAPE(4));
  has_numbers(mix_argsort(whole, 0, false), 4, NUMBERS(0, 3, 2, 1));
}

/* A sequence that is long enough for all levels of merging, of an odd length. */
static void long_rows(void **state) {
  (void)state;
  enum { COUNT_OF_ELEMENTS = 1001 };
  static double values[COUNT_OF_ELEMENTS], sorted[COUNT_OF_ELEMENTS], places_of[COUNT_OF_ELEMENTS];
  for (int i = 0; i < COUNT_OF_ELEMENTS; i++) values[i] = (double)((i * 7919) % 97);
  mix_tensor *x = floats(MIX_SHAPE(COUNT_OF_ELEMENTS), values);
  for (int descending = 0; descending < 2; descending++) {
    assert_int_equal(mix_tensor_read(mix_sort(x, 0, descending), MIX_FLOAT64, sorted, COUNT_OF_ELEMENTS),
                     MIX_OK);
    assert_int_equal(
        mix_tensor_read(mix_argsort(x, 0, descending), MIX_FLOAT64, places_of, COUNT_OF_ELEMENTS), MIX_OK);
    for (int i = 0; i < COUNT_OF_ELEMENTS; i++) {
      assert_true(sorted[i] == values[(int)places_of[i]]);
      if (!i) continue;
      assert_true(descending ? sorted[i] <= sorted[i - 1] : sorted[i] >= sorted[i - 1]);
      if (sorted[i] == sorted[i - 1]) assert_true(places_of[i] > places_of[i - 1]);
    }
  }
}

static void largest(void **state) {
  (void)state;
  mix_tensor *x = floats(MIX_SHAPE(2, 3), NUMBERS(1, 3, 3, 5, 4, 6));
  mix_list *top = mix_top_k(x, 2);
  has_numbers(mix_list_get(top, 0), 4, NUMBERS(3, 3, 6, 5));
  has_numbers(mix_list_get(top, 1), 4, NUMBERS(1, 2, 2, 0));
  refused((void *)mix_top_k(x, 4), MIX_VALUE_ERROR, "top_k", "k is 4", "0 to 3");
  refused(mix_argsort(mix_scalar(1, MIX_FLOAT32), 0, false), MIX_VALUE_ERROR, "argsort", "axis");
}

static void along_axes(void **state) {
  (void)state;
  mix_tensor *x = floats(MIX_SHAPE(2, 3), NUMBERS(0, 1, 2, 3, 4, 5));
  mix_tensor *indices = mix_tensor_from_doubles(NUMBERS(2, 0, 1, 1), MIX_INT32, MIX_SHAPE(2, 2));
  has_numbers(mix_take_along_axis(x, indices, 1), 4, NUMBERS(2, 0, 4, 4));
  mix_tensor *rows = mix_tensor_from_doubles(NUMBERS(1, 0, 1), MIX_INT64, MIX_SHAPE(1, 3));
  has_numbers(mix_take_along_axis(x, rows, 0), 3, NUMBERS(3, 1, 5));
  refused(mix_take_along_axis(x, mix_cast(rows, MIX_FLOAT32), 0), MIX_VALUE_ERROR, "take_along_axis",
          "float32");
  refused(mix_take_along_axis(x, rows, 1), MIX_VALUE_ERROR, "take_along_axis", "(1, 3)");
  double got[4];
  mix_tensor *outside = mix_take_along_axis(x, mix_add(indices, mix_scalar(1, MIX_INT32)), 1);
  assert_int_not_equal(mix_tensor_read(outside, MIX_FLOAT64, got, 4), MIX_OK);
  mix_error_clear();
}

static void running(void **state) {
  (void)state;
  mix_tensor *x = floats(MIX_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
  has_numbers(mix_cumulative_sum(x, 1), 6, NUMBERS(1, 3, 6, 4, 9, 15));
  has_numbers(mix_cumulative_sum(x, 0), 6, NUMBERS(1, 2, 3, 5, 7, 9));
  has_numbers(mix_cumulative_product(x, -1), 6, NUMBERS(1, 2, 6, 4, 20, 120));
  has_numbers(mix_cumulative_sum(mix_cast(x, MIX_UINT8), 1), 6, NUMBERS(1, 3, 6, 4, 9, 15));
  /* 2048 + 1 + 1 in float16 is 2048 if each sum is rounded */
  mix_tensor *half = mix_cast(floats(MIX_SHAPE(3), NUMBERS(2048, 1, 1)), MIX_FLOAT16);
  has_numbers(mix_cumulative_sum(half, 0), 3, NUMBERS(2048, 2048, 2050));
  refused(mix_cumulative_sum(mix_cast(x, MIX_BOOL), 0), MIX_TYPE_ERROR, "cumulative_sum", "bool");
}

/* The sum of the definition in long double, of lengths with factors 1, 2, 3, 5, 7 and primes, of
 * which those from 64 on are computed as convolutions. */
static void transforms(void **state) {
  (void)state;
  static const int lengths[] = {1, 2, 3, 8, 12, 13, 30, 67, 127, 201};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int inverse = 0; inverse < 2; inverse++) {
      const int n = lengths[l];
      double x[2][256], got[2][256];
      for (int i = 0; i < n; i++) x[0][i] = sin(i + 1), x[1][i] = cos(3 * i);
      mix_tensor *parts[2];
      for (int k = 0; k < 2; k++) parts[k] = mix_tensor_from_doubles(x[k], MIX_FLOAT64, MIX_SHAPE(n));
      mix_list *y = mix_fft(parts[0], parts[1], inverse);
      for (int k = 0; k < 2; k++)
        assert_int_equal(mix_tensor_read(mix_list_get(y, k), MIX_FLOAT64, got[k], n), MIX_OK);
      for (int j = 0; j < n; j++) {
        long double sum[2] = {0, 0};
        for (int k = 0; k < n; k++) {
          const long double angle =
              (inverse ? 2 : -2) * 3.141592653589793238462643L * (long double)(j * k) / n;
          sum[0] += x[0][k] * cosl(angle) - x[1][k] * sinl(angle);
          sum[1] += x[0][k] * sinl(angle) + x[1][k] * cosl(angle);
        }
        for (int k = 0; k < 2; k++) /* n products and sums of numbers below 2, each rounded by 2^-53 */
          assert_true(fabsl((long double)got[k][j] - (inverse ? sum[k] / n : sum[k])) <= 8.0L * n * 0x1p-53L);
      }
    }
  refused((void *)mix_fft(mix_scalar(1, MIX_FLOAT32), mix_scalar(1, MIX_FLOAT32), false), MIX_VALUE_ERROR,
          "fourier", "axis");
}

/* One point of 16411, a prime, becomes the roots; n^2 steps would be 3e8. */
static void transform_of_a_large_prime(void **state) {
  (void)state;
  enum { POINTS = 16411 };
  mix_tensor *one = mix_one_hot(mix_scalar(1, MIX_INT32), POINTS, MIX_FLOAT64), *zero = mix_zeros_like(one);
  mix_list *y = mix_fft(one, zero, false);
  double *got = malloc(sizeof *got * POINTS);
  for (int part = 0; part < 2; part++) {
    assert_int_equal(mix_tensor_read(mix_list_get(y, part), MIX_FLOAT64, got, POINTS), MIX_OK);
    for (int k = 0; k < POINTS; k++) {
      const double angle = 2 * 3.14159265358979323846 * k / POINTS;
      assert_true(fabs(got[k] - (part ? -sin(angle) : cos(angle))) < 1e-12); /* 3 x 18 levels of 2^-53 */
    }
  }
  free(got);
}

/* Nothing to order, take or transform, of however many rows and points: no memory is asked for. */
static void empty(void **state) {
  (void)state;
  enum { MANY = 1 << 30 };
  mix_tensor *rows = mix_fill(MIX_SHAPE(MANY, 64, 0), 1, MIX_FLOAT32),
             *points = mix_fill(MIX_SHAPE(0, MANY), 1, MIX_FLOAT32);
  has_numbers(mix_argsort(rows, 2, false), 0, NULL);
  has_numbers(mix_sort(rows, 2, true), 0, NULL);
  has_numbers(mix_argsort(points, 1, false), 0, NULL);
  has_numbers(mix_list_get(mix_fft(points, points, false), 1), 0, NULL);
  has_numbers(mix_cumulative_sum(rows, 2), 0, NULL);
  mix_tensor *none = mix_fill(MIX_SHAPE(2, 0), 0, MIX_INT32), *x = mix_fill(MIX_SHAPE(2, 3), 1, MIX_FLOAT32);
  has_numbers(mix_take_along_axis(x, none, 1), 0, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(places),
                                     TEST(long_rows),
                                     TEST(largest),
                                     TEST(along_axes),
                                     TEST(running),
                                     TEST(transforms),
                                     TEST(transform_of_a_large_prime),
                                     TEST(empty)};
  return cmocka_run_group_tests_name("ops/order", tests, NULL, NULL);
}
