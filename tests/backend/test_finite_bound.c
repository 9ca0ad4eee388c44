/* The bound that proves a product finite from its operands: the decision of each instruction set against the
 * reference, and against the product. */
/* Holds docs/NUMERICS.md: Loss scaling. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/instruction_sets.h"
#include "backend/plan.h"
#include "backend/run_op.h"
#include <math.h>

static const mix_dtype stored[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32};

/* 1: finite, 0: unknown. Both results must agree. */
static int decide(const mix_backend *backend, int threads, mix_dtype dtype, const operand *a,
                  const operand *b, const float *factor) {
  bool finite = false, unsure = false;
  operand inputs[3] = {*a, *b, {MIX_FLOAT32, MIX_SCALAR, (void *)(uintptr_t)factor}};
  operand outputs[2] = {{MIX_BOOL, MIX_SCALAR, &finite}, {MIX_BOOL, MIX_SCALAR, &unsure}};
  assert_int_equal(run_step(backend, threads, &mix_op_matmul_finite_bound,
                            &(mix_finite_bound_attributes){dtype}, NULL, 2 + (factor != NULL), inputs, 2,
                            outputs),
                   MIX_OK);
  assert_true(finite != unsure);
  return finite;
}

static int decided(mix_dtype dtype, const operand *a, const operand *b, const float *factor) {
  const int wanted = decide(&mix_backend_ref, 1, dtype, a, b, factor);
  for (int threads = 1; threads <= 3; threads++)
    assert_int_equal(decide(&mix_backend_cpu, threads, dtype, a, b, factor), wanted);
  return wanted;
}

/* All elements are `value`, which the dtype represents exactly. */
static operand filled(mix_dtype dtype, int64_t rows, int64_t columns, double value) {
  operand x = operand_of(dtype, MIX_SHAPE(rows, columns), NULL);
  for (int64_t i = 0; i < rows * columns; i++) mix_store_double(x.data, dtype, i, value);
  return x;
}

/* With 4 rows of 2 and of v, every element of the product is 8 v, and so is the bound. */
static void half_of_the_largest_number_is_the_limit(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t widths[] = {1, 3, 16, 37, 1024, 1500, 2049};
  for (int d = 0; d < 3; d++)
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
      operand a = filled(stored[d], 4, widths[w], 2), below = filled(stored[d], 4, 2050 - widths[w], 4064),
              above = filled(stored[d], 4, 2050 - widths[w], 4128);
      assert_int_equal(decided(MIX_FLOAT16, &a, &below, NULL), 1);
      assert_int_equal(decided(MIX_FLOAT16, &a, &above, NULL), 0);
      assert_int_equal(decided(MIX_BFLOAT16, &a, &above, NULL), 1);
      free_operands(3, (operand[]){a, below, above});
    }
  operand a = filled(MIX_BFLOAT16, 4, 70, 2), below = filled(MIX_BFLOAT16, 4, 70, 0x1p122),
          above = filled(MIX_BFLOAT16, 4, 70, 0x1p124);
  assert_int_equal(decided(MIX_BFLOAT16, &a, &above, NULL), 0);
  /* squares overflow float32 but not double */
  assert_int_equal(decide(&mix_backend_ref, 1, MIX_BFLOAT16, &a, &below, NULL), 1);
  free_operands(3, (operand[]){a, below, above});
}

static void a_factor_of_more_than_1_is_unsure(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const float factors[] = {0, 1, -1, 0x1p-16f, 0x1p-149f, 1.5f, -2, INFINITY, NAN};
  operand a = filled(MIX_FLOAT16, 3, 20, 1), b = filled(MIX_FLOAT16, 3, 30, 1);
  for (int i = 0; i < 9; i++) assert_int_equal(decided(MIX_FLOAT16, &a, &b, &factors[i]), i < 5);
  free_operands(2, (operand[]){a, b});
}

static void one_large_element_or_nan_anywhere_is_unsure(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const double bad[] = {INFINITY, -INFINITY, NAN, 40000};
  enum { ROWS = 3, COLUMNS = 21, WIDE = 1100 };
  for (int d = 0; d < 3; d++)
    for (int i = 0; i < 4; i++)
      for (int side = 0; side < 2; side++) {
        operand x[2] = {filled(stored[d], ROWS, COLUMNS, 1), filled(stored[d], ROWS, WIDE, 1)};
        const int64_t count = mix_shape_size(x[side].shape);
        for (int64_t at = 0; at < count; at += side ? 97 : 1) {
          mix_store_double(x[side].data, stored[d], at, bad[i]);
          assert_int_equal(decided(MIX_FLOAT16, &x[0], &x[1], NULL), 0);
          mix_store_double(x[side].data, stored[d], at, 1);
        }
        assert_int_equal(decided(MIX_FLOAT16, &x[0], &x[1], NULL), 1);
        free_operands(2, x);
      }
}

/* A product proved finite is finite, with a margin. Random operands near the limit give both answers. */
static void what_is_proved_is_finite(void **state) {
  NEED_INSTRUCTION_SET(state);
  enum { ROWS = 9, COLUMNS = 40 };
  int answers[2] = {0, 0};
  uint64_t noise = 5;
  for (int round = 0; round < 400; round++) {
    operand x[2] = {filled(MIX_FLOAT16, ROWS, COLUMNS, 0), filled(MIX_FLOAT16, ROWS, COLUMNS, 0)};
    for (int i = 0; i < 2; i++)
      for (int64_t j = 0; j < ROWS * COLUMNS; j++) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        mix_store_double(x[i].data, MIX_FLOAT16, j,
                         ((double)(noise >> 40) / 0x1p23 - 1) * 100 * (0.5 + round / 200.0));
      }
    const int finite = decided(MIX_FLOAT16, &x[0], &x[1], NULL);
    double largest = 0;
    for (int i = 0; i < COLUMNS; i++)
      for (int j = 0; j < COLUMNS; j++) {
        double sum = 0;
        for (int k = 0; k < ROWS; k++) sum += element(x[0], k * COLUMNS + i) * element(x[1], k * COLUMNS + j);
        largest = fmax(largest, fabs(sum));
      }
    if (finite) assert_true(largest <= 32752);
    answers[finite]++;
    free_operands(2, x);
  }
  assert_true(answers[0] > 20 && answers[1] > 20);
}

static void no_rows_are_finite(void **state) {
  NEED_INSTRUCTION_SET(state);
  operand a = filled(MIX_FLOAT16, 0, 5, 0), b = filled(MIX_FLOAT16, 0, 7, 0);
  assert_int_equal(decided(MIX_FLOAT16, &a, &b, NULL), 1);
  free_operands(2, (operand[]){a, b});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_SET(half_of_the_largest_number_is_the_limit),
      ON_EACH_SET(a_factor_of_more_than_1_is_unsure),
      ON_EACH_SET(one_large_element_or_nan_anywhere_is_unsure),
      ON_EACH_SET(what_is_proved_is_finite),
      ON_EACH_SET(no_rows_are_finite),
  };
  return cmocka_run_group_tests_name("backend/matmul_finite_bound", tests, NULL, NULL);
}
