/* float8 tensors: casts with and without saturation, quantize_dequantize and its gradient, what moves them
 * and what refuses them. F-numbers are the rows of the recordings of Keras. */
/* Holds docs/NUMERICS.md: Rounding. */
#include "ops/support.h"

#include "support/expect.h"
#include "tensor/float8_reference.h"
#include <mixtape/function.h>
#include <mixtape/variable.h>

static mix_tensor *float32_of(int count, const float *numbers) {
  return mix_tensor_from(numbers, MIX_FLOAT32, MIX_SHAPE(count));
}
#define FLOATS(...)                                                                                          \
  float32_of((int)(sizeof((const float[]){__VA_ARGS__}) / sizeof(float)), (const float[]){__VA_ARGS__})

static void assert_float32(mix_tensor *x, int count, const float *expected) {
  const float *is = mix_tensor_data(mix_cast(x, MIX_FLOAT32));
  no_error();
  for (int i = 0; i < count; i++)
    if (isnan(expected[i]) ? !isnan(is[i]) : is[i] != expected[i] || signbit(is[i]) != signbit(expected[i]))
      fail_msg("element %d is %.9g, not %.9g", i, (double)is[i], (double)expected[i]);
}
#define IS(x, ...)                                                                                           \
  assert_float32(x, (int)(sizeof((const float[]){__VA_ARGS__}) / sizeof(float)), (const float[]){__VA_ARGS__})

static void casts_overflow_as_ml_dtypes_or_saturate(void **state) {
  (void)state;
  mix_tensor *x = FLOATS(449, 464, 465, 1e30f, -INFINITY, NAN, -0.0f, 61440);
  IS(mix_cast(x, MIX_FLOAT8_E4M3FN), 448, 448, NAN, NAN, NAN, NAN, -0.0f, NAN);
  IS(mix_cast(x, MIX_FLOAT8_E5M2), 448, 448, 448, INFINITY, -INFINITY, NAN, -0.0f, INFINITY);
  IS(mix_cast_saturating(x, MIX_FLOAT8_E4M3FN), 448, 448, 448, 448, -448, NAN, -0.0f, 448);
  IS(mix_cast_saturating(x, MIX_FLOAT8_E5M2), 448, 448, 448, 57344, -57344, NAN, -0.0f, 57344);
  for (int d = 0; d < COUNT(numbers); d++) {
    mix_tensor *three = mix_fill(MIX_SHAPE(1), 3, numbers[d]);
    IS(mix_cast_saturating(three, MIX_FLOAT8_E4M3FN), 3);
    IS(mix_cast(mix_cast(three, MIX_FLOAT8_E5M2), numbers[d]), 3);
  }
  mix_tensor *wide = mix_cast(FLOATS(57344, 3), MIX_FLOAT8_E5M2);
  IS(mix_cast(wide, MIX_FLOAT8_E4M3FN), NAN, 3);
  IS(mix_cast_saturating(wide, MIX_FLOAT8_E4M3FN), 448, 3);
  assert_ptr_equal(mix_cast_saturating(wide, MIX_FLOAT8_E5M2), wide);
  expect_refused(mix_cast_saturating(x, MIX_FLOAT16), MIX_TYPE_ERROR,
                 "dtype float16; expected float8_e4m3fn");
}

/* Rows F02 and F03. */
static void F02_F03_quantize_dequantize(void **state) {
  (void)state;
  mix_tensor *one = FLOATS(1), *scale = mix_reshape(one, MIX_SCALAR),
             *x = FLOATS(17, 19, 1.0625f, 1.0625001f, 449, INFINITY, -INFINITY, NAN, 0x1p-10f, 0x1.01p-10f);
  IS(mix_quantize_dequantize(x, scale, MIX_FLOAT8_E4M3FN), 16, 20, 1, 1.125f, 448, 448, -448, NAN, 0,
     0x1p-9f);
  IS(mix_quantize_dequantize(x, mix_multiply(scale, mix_scalar_like(x, 2)), MIX_FLOAT8_E4M3FN), 16, 20, 1,
     1.125f, 448, 896, -896, NAN, 0, 0);
  IS(mix_quantize_dequantize(FLOATS(1e6f, 9), scale, MIX_FLOAT8_E5M2), 57344, 8);
  mix_tensor *small = mix_scalar_like(x, 0.005001993);
  IS(mix_quantize_dequantize(FLOATS(0.3f), small, MIX_FLOAT8_E4M3FN), 0.30011958f);
  mix_tensor *half = mix_quantize_dequantize(mix_cast(FLOATS(0.3f), MIX_BFLOAT16), small, MIX_FLOAT8_E4M3FN);
  assert_int_equal(mix_tensor_dtype(half), MIX_BFLOAT16);
  IS(half, 0.30078125f);
  expect_refused(mix_quantize_dequantize(x, one, MIX_FLOAT8_E4M3FN), MIX_VALUE_ERROR, "scalar");
  expect_refused(mix_quantize_dequantize(x, scale, MIX_INT8), MIX_TYPE_ERROR, "dtype int8");
  expect_refused(mix_quantize_dequantize(mix_fill(MIX_SHAPE(1), 3, MIX_INT32), scale, MIX_FLOAT8_E5M2),
                 MIX_TYPE_ERROR, "mix_cast");
}

/* Row F05: straight through, also where it was clipped, and without a rounding of its own. */
static void F05_the_gradient_goes_straight_through(void **state) {
  (void)state;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *x = FLOATS(0.3f, 1000, -2), *scale = mix_scalar_like(x, 0.7);
  mix_tape_watch(tape, x);
  mix_tape_watch(tape, scale);
  mix_tensor *y = mix_quantize_dequantize(x, scale, MIX_FLOAT8_E4M3FN);
  mix_list *gradients =
      mix_tape_gradient(tape, mix_list_of(mix_multiply(y, FLOATS(0.1f, 3, 7))), mix_list_of(x, scale));
  IS(mix_list_get(gradients, 0), 0.1f, 3, 7);
  assert_null(mix_list_get(gradients, 1));
}

static void no_gradient_flows_through_float8(void **state) {
  (void)state;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *x = FLOATS(3, 4);
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_cast(mix_cast(x, MIX_FLOAT8_E5M2), MIX_FLOAT32);
  mix_list *gradients = mix_tape_gradient(tape, mix_list_of(mix_square(y)), mix_list_of(x));
  assert_null(mix_list_get(gradients, 0));
  expect_refused(mix_tape_watch(mix_tape_begin(), mix_cast(x, MIX_FLOAT8_E5M2)) == MIX_OK, MIX_TYPE_ERROR,
                 "has no gradient");
}

static void arithmetic_on_float8_says_to_cast(void **state) {
  (void)state;
  mix_tensor *x = mix_cast(FLOATS(1, 2), MIX_FLOAT8_E4M3FN);
  static const char remedy[] = "nothing computes in float8, cast it with mix_cast";
  expect_refused(mix_add(x, x), MIX_TYPE_ERROR, remedy);
  expect_refused(mix_exp(x), MIX_TYPE_ERROR, remedy);
  expect_refused(mix_reduce_sum(x, MIX_ALL_AXES, false), MIX_TYPE_ERROR, remedy);
  expect_refused(mix_matmul(mix_reshape(x, MIX_SHAPE(1, 2)), mix_reshape(x, MIX_SHAPE(2, 1)), false, false),
                 MIX_TYPE_ERROR, remedy);
  expect_refused(mix_less(x, x), MIX_TYPE_ERROR, remedy);
  expect_refused(mix_add(x, FLOATS(1, 2)), MIX_TYPE_ERROR, "mix_cast");
}

static void float8_is_moved_read_and_printed(void **state) {
  (void)state;
  mix_tensor *x = mix_cast(FLOATS(1, 2, 3, 4, 5, 6), MIX_FLOAT8_E4M3FN),
             *t = mix_transpose(mix_reshape(x, MIX_SHAPE(2, 3)), MIX_AXES(1, 0)),
             *joined = mix_concat(2, (mix_tensor *[]){t, t}, 1);
  IS(joined, 1, 4, 1, 4, 2, 5, 2, 5, 3, 6, 3, 6);
  IS(mix_fill(MIX_SHAPE(3), 1.1, MIX_FLOAT8_E5M2), 1, 1, 1);
  IS(mix_select(mix_cast(FLOATS(1, 0, 1, 0, 0, 0), MIX_BOOL), x,
                mix_fill(MIX_SHAPE(6), 9, MIX_FLOAT8_E4M3FN)),
     1, 9, 3, 9, 9, 9);
  char text[200];
  assert_non_null(mix_tensor_data(x));
  assert_string_equal(mix_tensor_text(x, text, sizeof text), "<tensor float8_e4m3fn (6) [1, 2, 3, 4, 5, 6]>");
  assert_int_equal(((const uint8_t *)mix_tensor_data(x))[1], 0x40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(casts_overflow_as_ml_dtypes_or_saturate), TEST(F02_F03_quantize_dequantize),
      TEST(F05_the_gradient_goes_straight_through),  TEST(no_gradient_flows_through_float8),
      TEST(arithmetic_on_float8_says_to_cast),       TEST(float8_is_moved_read_and_printed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
