/* Weights stored as integers: packing, numbers, products and the gradient. The rows are those of Keras 3's
 * behaviour that a comment names: values that real Keras gave. */
/* Holds docs/NUMERICS.md: Stored integers. */
#include "ops/support.h"
#include "tensor/convert.h"

static mix_tensor *bytes_of(const int8_t *numbers, mix_shape shape) {
  return mix_tensor_from(numbers, MIX_INT8, shape);
}

static void assert_bytes(mix_tensor *x, mix_shape shape, const int8_t *expected) {
  no_error();
  int8_t got[64];
  assert_true(mix_shape_equal(mix_tensor_shape(x), shape));
  assert_int_equal(mix_tensor_dtype(x), MIX_INT8);
  assert_int_equal(mix_tensor_read(x, MIX_INT8, got, mix_shape_size(shape)), MIX_OK);
  for (int64_t i = 0; i < mix_shape_size(shape); i++) assert_int_equal(got[i], expected[i]);
}

/* Q14 */
static void Q14_packs_low_nibbles_first(void **state) {
  static const int8_t row[] = {7, 7, 7}, matrix[] = {-3, 7, 2, -8, 1, 0};
  mix_tensor *x = bytes_of(row, MIX_SHAPE(3)), *y = bytes_of(matrix, MIX_SHAPE(2, 3));
  assert_bytes(mix_pack_int4(x, -1), MIX_SHAPE(2), (const int8_t[]){0x77, 0x07});
  assert_bytes(mix_pack_int4(y, 1), MIX_SHAPE(2, 2), (const int8_t[]){125, 2, 24, 0});
  assert_bytes(mix_pack_int4(y, 0), MIX_SHAPE(1, 3), (const int8_t[]){-115, 23, 2});
  assert_bytes(mix_unpack_int4(mix_pack_int4(x, 0), 0, 3), MIX_SHAPE(3), row);
  for (int axis = 0; axis < 2; axis++)
    assert_bytes(mix_unpack_int4(mix_pack_int4(y, axis), axis, axis ? 3 : 2), MIX_SHAPE(2, 3), matrix);
}

static void packs_all_numbers_and_no_number(void **state) {
  int8_t all[16], wide[16];
  for (int i = 0; i < 16; i++) all[i] = (int8_t)(i - 8), wide[i] = (int8_t)(i - 8 + 16 * (i % 3));
  mix_tensor *x = bytes_of(all, MIX_SHAPE(16));
  assert_bytes(mix_unpack_int4(mix_pack_int4(x, 0), 0, 16), MIX_SHAPE(16), all);
  assert_bytes(mix_unpack_int4(mix_pack_int4(bytes_of(wide, MIX_SHAPE(16)), 0), 0, 16), MIX_SHAPE(16), all);
  assert_bytes(mix_pack_int4(bytes_of(all, MIX_SHAPE(0, 3)), 0), MIX_SHAPE(0, 3), NULL);
  assert_bytes(mix_unpack_int4(bytes_of(all, MIX_SHAPE(2, 0)), 1, 0), MIX_SHAPE(2, 0), NULL);
}

#define OPTIONS(...) (&(mix_stored_options){.size = sizeof(mix_stored_options), __VA_ARGS__})
#define F32(shape, ...) tensor(MIX_FLOAT32, shape, NUMBERS(__VA_ARGS__))

static void assert_close(mix_tensor *x, mix_dtype dtype, mix_shape shape, const double *expected,
                         double ulps) {
  no_error();
  double got[64];
  assert_true(mix_shape_equal(mix_tensor_shape(x), shape));
  assert_int_equal(mix_tensor_dtype(x), dtype);
  assert_int_equal(mix_tensor_read(x, MIX_FLOAT64, got, mix_shape_size(shape)), MIX_OK);
  for (int64_t i = 0; i < mix_shape_size(shape); i++)
    if (!(fabs(got[i] - expected[i]) <= ulps * unit_roundoff(dtype) * fabs(expected[i])))
      fail_msg("element %d is %.9g; expected %.9g", (int)i, got[i], expected[i]);
}

/* Q12, Q13: a number over its scale. */
static void Q13_channels_are_divided_by_their_scale(void **state) {
  static const int8_t numbers[] = {127, -3, 0, 5, -127, 64}, packed[] = {125, 2, 24, 0};
  mix_tensor *scale = F32(MIX_SHAPE(3), 3, 0.1, 7);
  const double s[] = {3, 0.1f, 7};
  double expected[6], expected4[] = {-3 / s[0], 7 / s[1], 2 / s[2], -8 / s[0], 1 / s[1], 0 / s[2]};
  for (int i = 0; i < 6; i++) expected[i] = numbers[i] / s[i % 3];
  mix_tensor *stored = bytes_of(numbers, MIX_SHAPE(2, 3));
  assert_close(mix_dequantize_stored(stored, scale, NULL, NULL), MIX_FLOAT32, MIX_SHAPE(2, 3), expected, 1);
  assert_close(
      mix_dequantize_stored(bytes_of(packed, MIX_SHAPE(2, 2)), scale, NULL, OPTIONS(.bits = 4, .columns = 3)),
      MIX_FLOAT32, MIX_SHAPE(2, 3), expected4, 1);
  /* the scale in bfloat16 is 0.10009765625 */
  double rounded[6];
  for (int i = 0; i < 6; i++) rounded[i] = numbers[i] / (i % 3 == 1 ? 0.10009765625 : s[i % 3]);
  assert_close(mix_dequantize_stored(stored, scale, NULL, OPTIONS(.dtype = MIX_BFLOAT16)), MIX_BFLOAT16,
               MIX_SHAPE(2, 3), rounded, 1);
}

/* Q15, Q17: (q - z) s, a group of rows with a scale and a zero, the last group short. */
static void Q15_blocks_have_scale_and_zero(void **state) {
  static const int8_t numbers[] = {-8, 7, 1, 0, 3, 5}, zeros[] = {2, -8, -1, 7};
  const double s[] = {0.5, 0.3f, 2, 0.7f};
  double expected[6];
  for (int i = 0; i < 6; i++) {
    const int group = i / 4 * 2 + i % 2;
    expected[i] = (numbers[i] - zeros[group]) * s[group];
  }
  mix_tensor *scale = F32(MIX_SHAPE(2, 2), 0.5, 0.3, 2, 0.7), *zero = bytes_of(zeros, MIX_SHAPE(2, 2));
  mix_tensor *stored = bytes_of(numbers, MIX_SHAPE(3, 2));
  assert_close(mix_dequantize_stored(mix_pack_int4(stored, -1), scale, zero, OPTIONS(.bits = 4, .block = 2)),
               MIX_FLOAT32, MIX_SHAPE(3, 2), expected, 1);
  assert_close(mix_dequantize_stored(stored, scale, mix_cast(zero, MIX_FLOAT32), OPTIONS(.block = 2)),
               MIX_FLOAT32, MIX_SHAPE(3, 2), expected, 1);
}

/* Q20: rows of an embedding have groups along the last axis, also after they were gathered. */
static void Q20_rows_have_groups_of_their_own(void **state) {
  static const int8_t numbers[] = {-8, 7, 1, 0, 3, 5}, zeros[] = {2, -8, -1, 7};
  const double s[] = {0.5, 0.3f, 2, 0.7f};
  double expected[6], of_rows[6];
  for (int i = 0; i < 6; i++) {
    const int group = i / 3 * 2 + i % 3 / 2;
    expected[i] = (numbers[i] - zeros[group]) * s[group];
    of_rows[i] = numbers[i] / s[i / 3];
  }
  mix_tensor *stored = bytes_of(numbers, MIX_SHAPE(2, 3));
  const mix_stored_options *options = OPTIONS(.bits = 4, .columns = 3, .block = 2, .transposed = true);
  mix_tensor *scale = F32(MIX_SHAPE(2, 2), 0.5, 0.3, 2, 0.7), *zero = bytes_of(zeros, MIX_SHAPE(2, 2));
  mix_tensor *packed = mix_pack_int4(stored, -1);
  assert_close(mix_dequantize_stored(packed, scale, zero, options), MIX_FLOAT32, MIX_SHAPE(2, 3), expected,
               1);
  assert_close(mix_dequantize_stored(mix_reshape(packed, MIX_SHAPE(2, 1, 2)),
                                     mix_reshape(scale, MIX_SHAPE(2, 1, 2)),
                                     mix_reshape(zero, MIX_SHAPE(2, 1, 2)), options),
               MIX_FLOAT32, MIX_SHAPE(2, 1, 3), expected, 1);
  assert_close(mix_dequantize_stored(packed, F32(MIX_SHAPE(2), 0.5, 0.3), NULL,
                                     OPTIONS(.bits = 4, .columns = 3, .transposed = true)),
               MIX_FLOAT32, MIX_SHAPE(2, 3), of_rows, 1);
}

/* Q13: x q first, then the division. 3 / 3 is exact, 1 / 3 + 1 / 3 + 1 / 3 in bfloat16 is not. */
static void Q13_the_product_is_divided_after_the_sum(void **state) {
  static const int8_t ones[] = {1, 1, 1};
  mix_tensor *x = tensor(MIX_BFLOAT16, MIX_SHAPE(1, 3), NUMBERS(1, 1, 1));
  mix_tensor *stored = bytes_of(ones, MIX_SHAPE(3, 1)), *scale = F32(MIX_SHAPE(1), 3);
  assert_close(mix_matmul_stored(x, stored, scale, NULL, NULL), MIX_BFLOAT16, MIX_SHAPE(1, 1), NUMBERS(1), 0);
}

/* Q17: the weight is rounded to the compute dtype before the product. */
static void Q17_blocks_are_rounded_before_the_product(void **state) {
  static const int8_t numbers[] = {1, -1}, zeros[] = {0, 0};
  mix_tensor *x = tensor(MIX_BFLOAT16, MIX_SHAPE(1, 2), NUMBERS(1, 1));
  mix_tensor *scale = F32(MIX_SHAPE(2, 1), 1.0009765625, 1); /* 1 in bfloat16 */
  assert_close(mix_matmul_stored(x, bytes_of(numbers, MIX_SHAPE(2, 1)), scale,
                                 bytes_of(zeros, MIX_SHAPE(2, 1)), OPTIONS(.block = 1)),
               MIX_BFLOAT16, MIX_SHAPE(1, 1), NUMBERS(0), 0);
}

/* Q11, Q17: g times the transpose of the dequantized weight, for both ways to store it. */
static void Q11_the_gradient_takes_the_dequantized_weight(void **state) {
  static const int8_t numbers[] = {3, -8, 7, 0, 1, -2}, zeros[] = {1, -2};
  for (int blocks = 0; blocks < 2; blocks++)
    for (int transposed = 0; transposed < 2; transposed++)
      for (int d = 0; d < COUNT(floating); d++) {
        const mix_dtype dtype = floating[d];
        mix_tensor *stored = bytes_of(numbers, transposed ? MIX_SHAPE(2, 3) : MIX_SHAPE(3, 2));
        mix_tensor *scale = F32(!blocks      ? MIX_SHAPE(2)
                                : transposed ? MIX_SHAPE(2, 1)
                                             : MIX_SHAPE(1, 2),
                                3, 0.7);
        mix_tensor *zero = blocks ? bytes_of(zeros, mix_tensor_shape(scale)) : NULL;
        const mix_stored_options *options =
            OPTIONS(.block = blocks ? 3 : 0, .transposed = transposed, .dtype = dtype);
        mix_tensor *x = tensor(dtype, MIX_SHAPE(1, 3), NUMBERS(1, 2, 3));
        mix_tensor *g = tensor(dtype, MIX_SHAPE(1, 2), NUMBERS(0.5, -1.25));
        mix_tape *tape = mix_tape_begin();
        mix_tape_watch(tape, x);
        mix_tensor *y = mix_matmul_stored(x, stored, scale, zero, options);
        mix_list *gradients = mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(g), mix_list_of(x));
        no_error();
        mix_tensor *weight = mix_dequantize_stored(stored, scale, zero, options);
        double expected[3], got[3];
        mix_tensor_read(mix_matmul(g, weight, false, !transposed), MIX_FLOAT64, expected, 3);
        mix_tensor_read(mix_list_get(gradients, 0), MIX_FLOAT64, got, 3);
        no_error();
        for (int i = 0; i < 3; i++) assert_true(got[i] == expected[i]);
      }
}

/* Q06, Q07, Q10: the rows of inputs, of plain operations: s = 127 / (largest magnitude + 1e-7), the product
 * with s rounded to the dtype, then to an integer, ties to even. */
static mix_tensor *quantize_rows(mix_tensor *x, mix_tensor **scale) {
  mix_tensor *largest = mix_reduce_max(mix_abs(x), MIX_AXES(-1), true);
  *scale = mix_divide(mix_scalar_like(x, 127), mix_add(largest, mix_scalar_like(x, 1e-7)));
  mix_tensor *rounded = mix_round(mix_multiply(x, *scale));
  return mix_cast(mix_clip(rounded, mix_scalar_like(x, -127), mix_scalar_like(x, 127)), MIX_INT8);
}

static float round_bf16(float x, bool rounds) { return rounds ? mix_bf16_to_f32(mix_f32_to_bf16(x)) : x; }

static void Q10_rows_of_inputs_have_numpys_bits(void **state) {
  enum { ROWS = 5, COLUMNS = 333 };
  static float x[ROWS * COLUMNS];
  uint32_t drawn = 7;
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    drawn = drawn * 1664525u + 1013904223u;
    x[i] = i / COLUMNS == 3 ? 0 : ((float)(drawn >> 8) * 0x1p-23f - 1) * (float)(1 << 3 * (i / COLUMNS));
  }
  x[5] = 0.5f, x[6] = 127, x[7] = -127; /* a scale of about 1: ties */
  for (int i = 8; i < COLUMNS; i++) x[i] = (float)(i % 250 - 125) + 0.5f;
  for (int narrow = 0; narrow < 2; narrow++) {
    mix_tensor *scale, *parts[2];
    mix_tensor *rows = mix_cast(mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(ROWS, COLUMNS)),
                                narrow ? MIX_BFLOAT16 : MIX_FLOAT32);
    parts[0] = quantize_rows(rows, &scale), parts[1] = mix_cast(scale, MIX_FLOAT32);
    assert_int_equal(mix_evaluate(2, parts), MIX_OK);
    static int8_t got[ROWS * COLUMNS];
    float scales[ROWS];
    mix_tensor_read(parts[0], MIX_INT8, got, ROWS * COLUMNS);
    mix_tensor_read(parts[1], MIX_FLOAT32, scales, ROWS);
    no_error();
    for (int i = 0; i < ROWS; i++) {
      float largest = 0;
      for (int j = 0; j < COLUMNS; j++)
        largest = fmaxf(largest, fabsf(round_bf16(x[i * COLUMNS + j], narrow)));
      const float sum = round_bf16(largest + round_bf16(1e-7f, narrow), narrow),
                  s = round_bf16(127 / sum, narrow);
      assert_true(scales[i] == s);
      for (int j = 0; j < COLUMNS; j++) {
        const float product = round_bf16(round_bf16(x[i * COLUMNS + j], narrow) * s, narrow);
        const float number = fminf(fmaxf(rintf(product), -127), 127);
        assert_int_equal(got[i * COLUMNS + j], (int)number);
      }
    }
  }
}

static void products_of_integers_are_exact(void **state) {
  enum { M = 3, N = 4, K = 1000 };
  int8_t a[M * K], b[K * N];
  int32_t got[M * N];
  uint32_t draw = 1;
  for (int extreme = 0; extreme < 2; extreme++) {
    for (int i = 0; i < M * K; i++)
      a[i] = extreme ? -128 : (int8_t)((draw = draw * 1664525u + 1013904223u) >> 24);
    for (int i = 0; i < K * N; i++)
      b[i] = extreme ? i % 2 ? 127 : -128 : (int8_t)((draw = draw * 1664525u + 1013904223u) >> 24);
    mix_tensor *y =
        mix_matmul_integer(bytes_of(a, MIX_SHAPE(M, K)), bytes_of(b, MIX_SHAPE(K, N)), false, false);
    no_error();
    assert_int_equal(mix_tensor_dtype(y), MIX_INT32);
    assert_int_equal(mix_tensor_read(y, MIX_INT32, got, M * N), MIX_OK);
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        int64_t sum = 0;
        for (int k = 0; k < K; k++) sum += a[i * K + k] * b[k * N + j];
        assert_int_equal(got[i * N + j], sum);
      }
  }
}

static void operands_that_do_not_fit_are_refused(void **state) {
  static const int8_t zeros[12];
  mix_tensor *stored = bytes_of(zeros, MIX_SHAPE(3, 2)), *scale = F32(MIX_SHAPE(2), 1, 1);
  mix_tensor *x = F32(MIX_SHAPE(1, 3), 1, 2, 3), *zero = bytes_of(zeros, MIX_SHAPE(2, 2));
  mix_tensor *scales = F32(MIX_SHAPE(2, 2), 1, 1, 1, 1);
  refused(mix_unpack_int4(stored, 1, 5), MIX_VALUE_ERROR, "unpack_int4",
          "5 numbers of 4 bits along axis 1 are 3 bytes");
  refused(mix_unpack_int4(stored, 2, 4), MIX_VALUE_ERROR, "unpack_int4", "axis");
  refused(mix_pack_int4(x, 0), MIX_TYPE_ERROR, "pack_int4", "float32");
  refused(mix_dequantize_stored(stored, scale, NULL, OPTIONS(.bits = 3)), MIX_VALUE_ERROR, "bits is 3");
  refused(mix_dequantize_stored(stored, scale, NULL, OPTIONS(.bits = 4, .columns = 7)), MIX_VALUE_ERROR,
          "7 columns of 4 bits are 4 bytes");
  refused(mix_dequantize_stored(stored, scale, NULL, OPTIONS(.block = 2)), MIX_VALUE_ERROR, "block is 2");
  refused(mix_dequantize_stored(stored, scales, zero, NULL), MIX_VALUE_ERROR, "block is 0");
  refused(mix_dequantize_stored(stored, scale, zero, OPTIONS(.block = 2)), MIX_VALUE_ERROR,
          "the scale must have the shape (2, 2)");
  refused(mix_dequantize_stored(stored, scales, zero, OPTIONS(.block = 1)), MIX_VALUE_ERROR,
          "the scale must have the shape (3, 2)");
  refused(mix_dequantize_stored(stored, scale, NULL, OPTIONS(.dtype = MIX_INT8)), MIX_TYPE_ERROR,
          "dtype int8");
  refused(mix_dequantize_stored(x, scale, NULL, NULL), MIX_TYPE_ERROR, "float32");
  refused(mix_matmul_stored(stored, stored, scale, NULL, NULL), MIX_TYPE_ERROR, "int8");
  refused(mix_matmul_stored(F32(MIX_SHAPE(1, 2), 1, 2), stored, scale, NULL, NULL), MIX_VALUE_ERROR,
          "the inner dimensions differ: 2 and 3");
  refused(mix_matmul_stored(F32(MIX_SHAPE(3), 1, 2, 3), stored, scale, NULL, NULL), MIX_VALUE_ERROR,
          "two dimensions");
  refused(mix_matmul_integer(x, x, false, true), MIX_TYPE_ERROR, "matmul_integer", "float32");
  refused(mix_matmul_integer(stored, stored, false, false), MIX_VALUE_ERROR,
          "inner dimensions differ: 2 and 3");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(Q14_packs_low_nibbles_first),
                                     TEST(packs_all_numbers_and_no_number),
                                     TEST(Q13_channels_are_divided_by_their_scale),
                                     TEST(Q15_blocks_have_scale_and_zero),
                                     TEST(Q20_rows_have_groups_of_their_own),
                                     TEST(Q13_the_product_is_divided_after_the_sum),
                                     TEST(Q17_blocks_are_rounded_before_the_product),
                                     TEST(Q11_the_gradient_takes_the_dequantized_weight),
                                     TEST(Q10_rows_of_inputs_have_numpys_bits),
                                     TEST(products_of_integers_are_exact),
                                     TEST(operands_that_do_not_fit_are_refused)};
  return cmocka_run_group_tests_name("ops/stored", tests, NULL, NULL);
}
