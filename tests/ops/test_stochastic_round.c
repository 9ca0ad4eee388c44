/* Rounding of float32 to bfloat16 by random bits: its mean, what it never changes, and the same bits for any
 * number of threads and in any program. */
/* Holds docs/NUMERICS.md: State in bfloat16. */
#include "ops/stochastic_round.h"
#include "ops/support.h"
#include "tensor/shape.h"
#include <mixtape/device.h>
#include <mixtape/function.h>

static mix_tensor *whole(int64_t number) { return mix_tensor_from(&number, MIX_INT64, (mix_shape){0}); }

static mix_tensor *rounded(mix_tensor *x, int64_t seed, int64_t step, int stream) {
  return mix_stochastic_round(x, whole(seed), whole(step), stream);
}

static float *read(mix_tensor *x, int64_t count) {
  float *values = malloc((size_t)count * sizeof *values);
  assert_non_null(values);
  assert_int_equal(mix_tensor_read(x, MIX_FLOAT32, values, count), MIX_OK);
  return values;
}

/* Numbers that the tests round: about 1, small, large, of both signs, without a pattern. */
static mix_tensor *samples(mix_shape shape) {
  const int64_t count = mix_shape_size(shape);
  float *values = malloc((size_t)count * sizeof *values);
  uint32_t seed = 12345;
  for (int64_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = ldexpf((float)(int32_t)seed * 0x1p-31f, (int)(i % 41) - 20);
  }
  mix_tensor *x = mix_tensor_from(values, MIX_FLOAT32, shape);
  free(values);
  return x;
}

/* The mean of N draws of a number between neighbours has a standard deviation of at most half their distance
 * over the root of N; eight of these are met by chance once in 10^15. */
static void the_mean_is_the_number(void **state) {
  (void)state;
  enum { N = 1 << 18 };
  const double bound = 8 * 0.5 / sqrt(N);
  /* 2^-7 is the distance of numbers from 1 to 2: shares from the smallest to the largest */
  static const double shares[] = {0x1p-16, 0x1p-8, 0.25, 0.5, 0.7, 1 - 0x1p-16};
  for (int i = 0; i < COUNT(shares); i++)
    for (int sign = -1; sign <= 1; sign += 2) {
      const double number = sign * (1 + shares[i] * 0x1p-7);
      float *values = read(rounded(mix_fill(MIX_SHAPE(N), number, MIX_FLOAT32), 7, 3, i), N);
      double sum = 0;
      for (int64_t k = 0; k < N; k++) {
        assert_true(values[k] == sign || values[k] == sign * (1 + 0x1p-7));
        sum += (values[k] - sign) * sign * 0x1p7;
      }
      if (!(fabs(sum / N - shares[i]) <= bound)) fail_msg("%g: up in %g of the draws", shares[i], sum / N);
      free(values);
    }
}

static void exact_numbers_stay(void **state) {
  (void)state;
  static const float kept[] = {0, -0.0f, 1, -1.5f, 0x1.fep127f, 0x1p-126f, INFINITY, -INFINITY, 3.140625f};
  for (int step = 0; step < 64; step++) {
    float *values =
        read(rounded(mix_tensor_from(kept, MIX_FLOAT32, MIX_SHAPE(COUNT(kept))), 1, step, 0), COUNT(kept));
    assert_memory_equal(values, kept, sizeof kept);
    free(values);
  }
  float *values = read(rounded(mix_fill(MIX_SHAPE(100), NAN, MIX_FLOAT32), 1, 1, 1), 100);
  for (int i = 0; i < 100; i++) assert_true(isnan(values[i]));
  free(values);
  assert_true(isnan(mix_bits_float(mix_stochastic_bits(0x7f800001, 0xffff))));
  assert_true(isnan(mix_bits_float(mix_stochastic_bits(0xffffffff, 0xffff))));
}

/* Every element as ops/stochastic_round.h says, in shapes whose rows and tiles begin anywhere. */
static void elements_draw_by_their_place(void **state) {
  (void)state;
  const mix_shape shapes[] = {MIX_SHAPE(1),      MIX_SHAPE(7),        MIX_SHAPE(8),
                              MIX_SHAPE(1037),   MIX_SHAPE(5, 7),     MIX_SHAPE(3, 700),
                              MIX_SHAPE(600, 9), MIX_SHAPE(4, 3, 50), MIX_SHAPE(40001)};
  for (int s = 0; s < COUNT(shapes); s++)
    for (int threads = 1; threads <= 3; threads++)
      MIX_SCOPE {
        const int64_t count = mix_shape_size(shapes[s]);
        assert_int_equal(mix_set_threads(threads), MIX_OK);
        mix_tensor *x = samples(shapes[s]);
        float *values = read(rounded(x, -5, 1 + s, 77), count), *given = read(x, count);
        for (int64_t i = 0; i < count; i++) {
          const uint32_t draw = mix_stochastic_draw(-5, 1 + s, 77, i);
          if (mix_float_bits(values[i]) != mix_stochastic_bits(mix_float_bits(given[i]), draw))
            fail_msg("element %d of %s with %d threads", (int)i, MIX_SHAPE_TEXT(shapes[s]), threads);
        }
        free(values);
        free(given);
      }
  mix_set_threads(0);
}

/* A bias along rows: the program has rows of its own, or of a broadcast operand. */
static mix_list *with_bias(void *context, mix_list *arguments) {
  mix_tensor *x = mix_add(mix_list_get(arguments, 0), mix_list_get(arguments, 1));
  mix_tensor *y = mix_stochastic_round(x, mix_list_get(arguments, 2), mix_list_get(arguments, 3), 5);
  mix_tensor *of_row = mix_stochastic_round(mix_list_get(arguments, 1), mix_list_get(arguments, 2),
                                            mix_list_get(arguments, 3), 6);
  return mix_list_of(y, mix_multiply(mix_cast(of_row, MIX_FLOAT32), x));
}

/* The second result needs the rounded bias in each row: one draw for an element of the bias, not of the
 * product. */
static void programs_keep_the_places(void **state) {
  (void)state;
  enum { ROWS = 37 };
  for (int columns = 3; columns < 1500; columns = columns * 5 + 2)
    for (int threads = 1; threads <= 3; threads++)
      MIX_SCOPE {
        assert_int_equal(mix_set_threads(threads), MIX_OK);
        const int64_t count = (int64_t)ROWS * columns;
        mix_tensor *x = samples(MIX_SHAPE(ROWS, columns)), *bias = samples(MIX_SHAPE(columns));
        mix_function *function = mix_function_new(with_bias, NULL, .name = "bias");
        mix_list *results = mix_function_call(function, mix_list_of(x, bias, whole(9), whole(4)));
        no_error();
        float *sum = read(mix_add(x, bias), count), *y = read(mix_list_get(results, 0), count),
              *product = read(mix_list_get(results, 1), count), *row = read(bias, columns);
        for (int64_t i = 0; i < count; i++) {
          const uint32_t bits = mix_float_bits(sum[i]), own = mix_float_bits(row[i % columns]);
          assert_int_equal(mix_float_bits(y[i]), mix_stochastic_bits(bits, mix_stochastic_draw(9, 4, 5, i)));
          const float drawn =
              mix_bits_float(mix_stochastic_bits(own, mix_stochastic_draw(9, 4, 6, i % columns)));
          assert_true(product[i] == drawn * sum[i]);
        }
        free(sum), free(y), free(product), free(row);
      }
  mix_set_threads(0);
}

static void nearest_is_that_of_casts(void **state) {
  (void)state;
  mix_tensor *x = samples(MIX_SHAPE(5000));
  float *values = read(rounded(x, 0, 0, MIX_ROUND_NEAREST), 5000),
        *cast = read(mix_cast(x, MIX_BFLOAT16), 5000);
  assert_memory_equal(values, cast, 5000 * sizeof *cast);
  free(values);
  free(cast);
}

static void other_operands_are_refused(void **state) {
  (void)state;
  assert_null(rounded(mix_fill(MIX_SHAPE(2), 1, MIX_FLOAT16), 1, 1, 0));
  assert_int_equal(mix_error(), MIX_TYPE_ERROR);
  mix_error_clear();
  mix_tensor *seeds = mix_range(0, 2, 1, MIX_INT64);
  assert_null(mix_stochastic_round(mix_fill(MIX_SHAPE(2), 1, MIX_FLOAT32), seeds, whole(1), 0));
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  mix_error_clear();
  for (int stream = -2; stream <= 1 << 24; stream += (1 << 24) + 2) {
    assert_null(rounded(mix_fill(MIX_SHAPE(2), 1, MIX_FLOAT32), 1, 1, stream));
    assert_int_equal(mix_error(), MIX_VALUE_ERROR);
    mix_error_clear();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(the_mean_is_the_number),       TEST(exact_numbers_stay),
                                     TEST(elements_draw_by_their_place), TEST(programs_keep_the_places),
                                     TEST(nearest_is_that_of_casts),     TEST(other_operands_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
