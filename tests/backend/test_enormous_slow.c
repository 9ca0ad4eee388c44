/* Operands of more than 2^31 elements. They are pages that nobody has written, which all read as one page of zeros and take no memory;
 * a few numbers stand at the far end, where an index of 32 bits would not find them. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/run_op.h"
#include "base/cpu.h"
#include <math.h>
#include <sys/mman.h>

enum { WIDTH = 1027 };
static const int64_t ROWS = (INT64_C(1) << 21) + 3; /* of WIDTH: 2^31 + 6 million elements */

static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32};
#define FOR_EACH_DTYPE(name) for (size_t name = 0; name < sizeof dtypes / sizeof *dtypes; name++)

/* Zeros in (rows, columns); skips the test where the machine promises no such range of addresses. */
static operand vast(mix_dtype dtype, int64_t rows, int64_t columns) {
  const size_t bytes = (size_t)(rows * columns) * mix_dtype_size(dtype);
  void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) skip();
  madvise(data, bytes, MADV_HUGEPAGE); /* fewer page faults, where the kernel likes */
  return (operand){dtype, MIX_SHAPE(rows, columns), data};
}
static void forget(operand x) { munmap(x.data, (size_t)mix_shape_size(x.shape) * mix_dtype_size(x.dtype)); }

static void run(const mix_op *op, const void *attributes, int count, const operand *inputs, operand *output) {
  mix_status status = run_step(&mix_backend_cpu, 2, op, attributes, NULL, count, inputs, 1, output);
  if (status != MIX_OK) print_message("%s\n", mix_error_message());
  assert_int_equal(status, MIX_OK);
}

/* A (ROWS, WIDTH), or its transpose, times ones, or integers in as many columns as tiles want. */
static void check_product(mix_dtype dtype, bool transposed) {
  const int columns = mix_cpu_features() & MIX_CPU_AVX512 ? 16 : 1;
  mix_matmul_attributes attributes = {.transpose_a = transposed};
  operand inputs[2] = {transposed ? vast(dtype, WIDTH, ROWS) : vast(dtype, ROWS, WIDTH),
                       operand_of(dtype, MIX_SHAPE(WIDTH, columns), NULL)};
  operand output = operand_of(dtype, MIX_SHAPE(ROWS, columns), NULL);
  for (int64_t i = 0; i < WIDTH * columns; i++) mix_store_double(inputs[1].data, dtype, i, 1 + (double)(i % columns));
  for (int64_t i = 0; i < 3; i++) {
    const int64_t row = ROWS - 1 - i, k = WIDTH - 1 - i;
    mix_store_double(inputs[0].data, dtype, transposed ? k * ROWS + row : row * WIDTH + k, (double)(i + 1));
  }
  run(&mix_op_matmul, &attributes, 2, inputs, &output);
  for (int64_t row = 0; row < ROWS; row++)
    for (int j = 0; j < columns; j++)
      assert_true(element(output, row * columns + j) == (row < ROWS - 3 ? 0 : (double)(ROWS - row) * (j + 1)));
  forget(inputs[0]);
  free(inputs[1].data);
  free(output.data);
}

static void products(void **state) {
  (void)state;
  FOR_EACH_DTYPE(d) check_product(dtypes[d], false);
}
static void products_of_transposed_operands(void **state) {
  (void)state;
  check_product(MIX_FLOAT16, true);
}

/* The gradient of a kernel of so many rows of data: the sum of an element runs over all of them. */
static void products_of_depth(void **state) {
  (void)state;
  mix_matmul_attributes attributes = {.transpose_a = true};
  FOR_EACH_DTYPE(d) {
    operand inputs[2] = {vast(dtypes[d], ROWS, WIDTH), vast(dtypes[d], ROWS, 1)};
    operand output = operand_of(dtypes[d], MIX_SHAPE(WIDTH, 1), NULL);
    mix_store_double(inputs[0].data, dtypes[d], ROWS * WIDTH - 1, 3);
    mix_store_double(inputs[1].data, dtypes[d], ROWS - 1, 5);
    run(&mix_op_matmul, &attributes, 2, inputs, &output);
    for (int64_t i = 0; i < WIDTH; i++) assert_true(element(output, i) == (i == WIDTH - 1 ? 15 : 0));
    forget(inputs[0]);
    forget(inputs[1]);
    free(output.data);
  }
}

static void reductions(void **state) {
  (void)state;
  FOR_EACH_DTYPE(d) {
    operand x = vast(dtypes[d], ROWS, WIDTH), sum = operand_of(dtypes[d], MIX_SCALAR, NULL),
            finite = operand_of(MIX_BOOL, MIX_SCALAR, NULL);
    mix_reduce_attributes all = {.axis_count = 2, .axes = {0, 1}};
    mix_store_double(x.data, dtypes[d], ROWS * WIDTH - 1, 7);
    run(&mix_op_reduce_sum, &all, 1, &x, &sum);
    assert_true(element(sum, 0) == 7);
    run(&mix_op_all_finite, NULL, 1, &x, &finite);
    assert_true(*(bool *)finite.data);
    mix_store_double(x.data, dtypes[d], ROWS * WIDTH - 1, INFINITY);
    run(&mix_op_all_finite, NULL, 1, &x, &finite);
    assert_false(*(bool *)finite.data);
    forget(x);
    free(sum.data);
    free(finite.data);
  }
}

static void rows_and_pieces_of_the_far_end(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, ROWS, WIDTH), index = operand_of(MIX_INT64, MIX_SHAPE(2), NUMBERS(0, (double)(ROWS - 1)));
  operand rows = operand_of(MIX_FLOAT16, MIX_SHAPE(2, WIDTH), NULL), piece = operand_of(MIX_FLOAT16, MIX_SHAPE(1, 2), NULL);
  mix_store_double(x.data, MIX_FLOAT16, ROWS * WIDTH - 1, 9);
  mix_axis_attributes axis = {0};
  run(&mix_op_gather, &axis, 2, (operand[]){x, index}, &rows);
  for (int i = 0; i < 2 * WIDTH; i++) assert_true(element(rows, i) == (i == 2 * WIDTH - 1 ? 9 : 0));
  mix_slice_attributes corner = {.begin = MIX_SHAPE(ROWS - 1, WIDTH - 2), .size = MIX_SHAPE(1, 2)};
  run(&mix_op_slice, &corner, 1, &x, &piece);
  assert_true(element(piece, 0) == 0 && element(piece, 1) == 9);
  forget(x);
  free(index.data);
  free(rows.data);
  free(piece.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products),   cmocka_unit_test(products_of_transposed_operands), cmocka_unit_test(products_of_depth),
      cmocka_unit_test(reductions), cmocka_unit_test(rows_and_pieces_of_the_far_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
