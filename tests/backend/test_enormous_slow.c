/* Kernels other than products and programs over more than 2^31 elements: reductions, softmax,
 * cross-entropies, argmax, copies, fills. Uses at most 0.3 GB of memory. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/enormous.h"
#include "base/philox.h"
#include "ops/magnitudes.h"
#include <math.h>

enum { WIDTH = 1027 };
static const int64_t ROWS = (INT64_C(1) << 21) + 3; /* of WIDTH: 2^31 + 6 million elements */
#define ALL (ROWS * WIDTH)

static void set(operand x, int64_t i, double value) { mix_store_double(x.data, x.dtype, i, value); }
static operand scalar_of(mix_dtype dtype) { return operand_of(dtype, MIX_SCALAR, NULL); }

static void reductions_of_all(void **state) {
  (void)state;
  FOR_EACH_DTYPE(d) {
    operand x = vast(dtypes[d], MIX_SHAPE(ROWS, WIDTH)), sum = scalar_of(dtypes[d]),
            finite = scalar_of(MIX_BOOL);
    mix_reduce_attributes all = {.axis_count = 2, .axes = {0, 1}};
    set(x, ALL - 1, 7);
    run(&mix_op_reduce_sum, &all, 1, &x, &sum);
    assert_true(element(sum, 0) == 7);
    run(&mix_op_all_finite, NULL, 1, &x, &finite);
    assert_true(*(bool *)finite.data);
    set(x, ALL - 1, INFINITY);
    run(&mix_op_all_finite, NULL, 1, &x, &finite);
    assert_false(*(bool *)finite.data);
    forget(x);
    free(sum.data);
    free(finite.data);
  }
}

static void reductions_of_rows_and_columns(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH)), rows = vast(MIX_FLOAT16, MIX_SHAPE(ROWS));
  operand columns = operand_of(MIX_FLOAT16, MIX_SHAPE(WIDTH), NULL);
  mix_reduce_attributes along = {.axis_count = 1, .axes = {1}}, down = {.axis_count = 1, .axes = {0}};
  set(x, ALL - 1, 7), set(x, ALL - WIDTH, -4);
  run(&mix_op_reduce_max, &along, 1, &x, &rows);
  for (int64_t i = 0; i < ROWS; i++) assert_true(element(rows, i) == (i == ROWS - 1 ? 7 : 0));
  run(&mix_op_reduce_sum, &down, 1, &x, &columns);
  for (int j = 0; j < WIDTH; j++) assert_true(element(columns, j) == (j == 0 ? -4 : j == WIDTH - 1 ? 7 : 0));
  forget(x), forget(rows);
  free(columns.data);
}

/* Positions in long rows, beyond int32, and in many rows. */
static void positions_of_extremes(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH)), at = operand_of(MIX_INT64, MIX_SHAPE(ROWS), NULL);
  mix_axis_attributes last = {1}, only = {0};
  set(x, ALL - 2, 3), set(x, ALL - 1, -3);
  run(&mix_op_argmin, &last, 1, &x, &at);
  for (int64_t i = 0; i < ROWS; i++) assert_int_equal(((int64_t *)at.data)[i], i < ROWS - 1 ? 0 : WIDTH - 1);
  operand row = {x.dtype, MIX_SHAPE(ALL), x.data}, one = {MIX_INT64, MIX_SCALAR, at.data};
  run(&mix_op_argmax, &only, 1, &row, &one);
  assert_int_equal(((int64_t *)at.data)[0], ALL - 2);
  forget(x);
  free(at.data);
}

/* Rows of equal logits, except the last row, whose last logit is large. */
static void softmax_of_many_rows(void **state) {
  (void)state;
  operand x = vast(MIX_BFLOAT16, MIX_SHAPE(ROWS, WIDTH)), y = written(MIX_BFLOAT16, MIX_SHAPE(ROWS, WIDTH));
  double equal;
  mix_store_double(&equal, MIX_BFLOAT16, 0, 1.0 / WIDTH);
  equal = mix_load_double(&equal, MIX_BFLOAT16, 0);
  set(x, ALL - 1, 80);
  run(&mix_op_softmax, NULL, 1, &x, &y);
  FOR_WRITTEN(y, i)
  assert_true(i < ALL - WIDTH ? element(y, i) == equal
              : i < ALL - 1   ? element(y, i) < 2e-35
                              : element(y, i) == 1);
  forget(x), forget(y);
}

static void log_softmax_of_a_long_row(void **state) {
  (void)state;
  operand x = vast(MIX_BFLOAT16, MIX_SHAPE(1, ALL)), y = written(MIX_BFLOAT16, MIX_SHAPE(1, ALL));
  set(x, ALL - 1, 64);
  run(&mix_op_log_softmax, NULL, 1, &x, &y);
  FOR_WRITTEN(y, i)
  assert_true(element(y, i) == (i < ALL - 1 ? -64 : 0)); /* exp(64) is 3e18 times their number */
  forget(x), forget(y);
}

static void cross_entropies(void **state) {
  (void)state;
  operand logits = vast(MIX_BFLOAT16, MIX_SHAPE(ROWS, WIDTH)), labels = vast(MIX_INT32, MIX_SHAPE(ROWS));
  operand losses = operand_of(MIX_BFLOAT16, MIX_SHAPE(ROWS), NULL),
          backprop = written(MIX_BFLOAT16, MIX_SHAPE(ROWS, WIDTH));
  ((int32_t *)labels.data)[ROWS - 1] = WIDTH - 1;
  set(logits, ALL - 1, 64);
  run_on(2, &mix_op_sparse_softmax_cross_entropy, NULL, NULL, 2, (operand[]){logits, labels}, 2,
         (operand[]){losses, backprop});
  for (int64_t i = 0; i < ROWS; i++)
    assert_true(fabs(element(losses, i) - (i < ROWS - 1 ? log(WIDTH) : 0)) < log(WIDTH) * 0x1p-8);
  FOR_WRITTEN(backprop, i) {
    const double share = i < ALL - WIDTH ? 1.0 / WIDTH : i < ALL - 1 ? exp(-64) : 1;
    const bool label = i < ALL - WIDTH ? i % WIDTH == 0 : i == ALL - 1;
    assert_true(fabs(element(backprop, i) - (share - label)) <= 0x1p-8 * fabs(share - label) + 1e-6 * label);
  }
  forget(logits), forget(labels), forget(backprop);
  free(losses.data);
}

static void rows_and_slices_of_the_far_end(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH)),
          index = operand_of(MIX_INT64, MIX_SHAPE(2), NUMBERS(0, (double)(ROWS - 1)));
  operand rows = operand_of(MIX_FLOAT16, MIX_SHAPE(2, WIDTH), NULL),
          part = operand_of(MIX_FLOAT16, MIX_SHAPE(1, 2), NULL);
  set(x, ALL - 1, 9);
  mix_axis_attributes axis = {0};
  run(&mix_op_gather, &axis, 2, (operand[]){x, index}, &rows);
  for (int i = 0; i < 2 * WIDTH; i++) assert_true(element(rows, i) == (i == 2 * WIDTH - 1 ? 9 : 0));
  mix_slice_attributes corner = {.begin = MIX_SHAPE(ROWS - 1, WIDTH - 2), .size = MIX_SHAPE(1, 2)};
  run(&mix_op_slice, &corner, 1, &x, &part);
  assert_true(element(part, 0) == 0 && element(part, 1) == 9);
  forget(x);
  free(index.data);
  free(rows.data);
  free(part.data);
}

/* All but a few elements: one long range, and a range of each row. */
static void slices(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(ALL)), y = written(MIX_FLOAT16, MIX_SHAPE(ALL - 5));
  mix_slice_attributes behind = {.begin = MIX_SHAPE(3), .size = y.shape};
  set(x, ALL - 3, 5); /* the last one that is kept */
  run(&mix_op_slice, &behind, 1, &x, &y);
  FOR_WRITTEN(y, i) assert_true(element(y, i) == (i == ALL - 6 ? 5 : 0));
  forget(y);
  operand wide = {x.dtype, MIX_SHAPE(ROWS, WIDTH), x.data},
          narrow = written(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH - 1));
  mix_slice_attributes columns = {.begin = MIX_SHAPE(0, 1), .size = narrow.shape};
  run(&mix_op_slice, &columns, 1, &wide, &narrow);
  FOR_WRITTEN(narrow, i) assert_true(element(narrow, i) == (i == ROWS * (WIDTH - 1) - 3 ? 5 : 0));
  forget(x), forget(narrow);
}

static void concatenations(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH)),
          few = operand_of(MIX_FLOAT16, MIX_SHAPE(3, WIDTH), NULL);
  operand column = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, 1));
  operand longer = written(MIX_FLOAT16, MIX_SHAPE(ROWS + 3, WIDTH)),
          wider = written(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH + 1));
  mix_axis_attributes first = {0}, second = {1};
  set(x, ALL - 1, 2), set(few, 3 * WIDTH - 1, 3), set(column, ROWS - 1, 4);
  run(&mix_op_concat, &first, 2, (operand[]){x, few}, &longer);
  FOR_WRITTEN(longer, i)
  assert_true(element(longer, i) == (i == ALL - 1 ? 2 : i == ALL + 3 * WIDTH - 1 ? 3 : 0));
  run(&mix_op_concat, &second, 2, (operand[]){x, column}, &wider);
  FOR_WRITTEN(wider, i)
  assert_true(element(wider, i) == (i == ALL + ROWS - 2 ? 2 : i == ALL + ROWS - 1 ? 4 : 0));
  forget(x), forget(column), forget(longer), forget(wider);
  free(few.data);
}

static void copies(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH)), y = written(MIX_FLOAT16, MIX_SHAPE(WIDTH, ROWS));
  set(x, ALL - 1, 2), set(x, ALL - WIDTH, 3);
  run(&mix_op_reshape, &(mix_shape_attributes){.shape = y.shape}, 1, &x, &y);
  FOR_WRITTEN(y, i) assert_true(element(y, i) == (i == ALL - 1 ? 2 : i == ALL - WIDTH ? 3 : 0));
  run(&mix_op_transpose, &(mix_transpose_attributes){.permutation = {1, 0}}, 1, &x, &y);
  FOR_WRITTEN(y, i) assert_true(element(y, i) == (i == ALL - 1 ? 2 : i == ROWS - 1 ? 3 : 0));
  forget(x), forget(y);
}

static void sums_of_tensors(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH)), y = written(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH));
  set(x, ALL - 1, 2);
  run(&mix_op_add_n, NULL, 2, (operand[]){x, x}, &y);
  FOR_WRITTEN(y, i) assert_true(element(y, i) == (i == ALL - 1 ? 4 : 0));
  forget(x), forget(y);
}

static void sources(void **state) {
  (void)state;
  operand y = written(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH)),
          seed = operand_of(MIX_INT64, MIX_SHAPE(2), NUMBERS(12345, 67));
  run(&mix_op_fill, &(mix_shape_attributes){.shape = y.shape, .dtype = y.dtype, .value = 3}, 0, NULL, &y);
  FOR_WRITTEN(y, i) assert_true(element(y, i) == 3);
  run(&mix_op_random_uniform, &(mix_shape_attributes){.shape = y.shape, .dtype = y.dtype}, 1, &seed, &y);
  FOR_WRITTEN(y, i) {
    if (i % 61) continue;
    const double exact = (double)(mix_philox_block(12345, 67, (uint64_t)i).v[0] >> 8) * 0x1p-24,
                 got = element(y, i);
    assert_true(got <= exact && exact - got <= 0x1p-10 * exact + 0x1p-24); /* rounded down */
  }
  forget(y);
  free(seed.data);
}

static void counts_of_magnitudes(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH));
  operand counts =
      operand_of(MIX_INT64, MIX_SHAPE(MIX_MAGNITUDE_BINS + mix_magnitude_bins(MIX_FLOAT16)), NULL);
  set(x, ALL - 1, INFINITY), set(x, ALL - 2, 6);
  run(&mix_op_magnitudes, NULL, 1, &x, &counts);
  const int64_t *count = counts.data;
  assert_int_equal(count[MIX_MAGNITUDE_ELEMENTS], ALL);
  assert_int_equal(count[MIX_MAGNITUDE_ZEROS], ALL - 2);
  assert_int_equal(count[MIX_MAGNITUDE_INFINITIES], 1);
  assert_int_equal(count[MIX_MAGNITUDE_BINS + 2 - mix_magnitude_lowest(MIX_FLOAT16)], 1); /* 6 is in [4, 8) */
  forget(x);
  free(counts.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reductions_of_all),
      cmocka_unit_test(reductions_of_rows_and_columns),
      cmocka_unit_test(positions_of_extremes),
      cmocka_unit_test(softmax_of_many_rows),
      cmocka_unit_test(log_softmax_of_a_long_row),
      cmocka_unit_test(cross_entropies),
      cmocka_unit_test(rows_and_slices_of_the_far_end),
      cmocka_unit_test(slices),
      cmocka_unit_test(concatenations),
      cmocka_unit_test(copies),
      cmocka_unit_test(sums_of_tensors),
      cmocka_unit_test(sources),
      cmocka_unit_test(counts_of_magnitudes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
