/* The CPU's updates of rows against the reference, to the bit, on one thread and several. */
/* Holds docs/NUMERICS.md: Optimizers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/host/host.h"
#include "backend/run_op.h"

enum { TABLE_ROWS = 50 };

typedef struct example {
  operand table, indices, values;
} example;

/* Indices that repeat, and one that is negative where `gaps`. */
static example example_of(mix_dtype dtype, mix_dtype index_dtype, int64_t count, int64_t width, bool gaps) {
  const int64_t numbers = (TABLE_ROWS + count) * width;
  double *table = malloc(sizeof *table * (size_t)numbers), *values = table + TABLE_ROWS * width;
  double *indices = malloc(sizeof *indices * (size_t)(count + 1));
  uint64_t state = 12345;
  for (int64_t i = 0; i < numbers; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    table[i] = (double)(int64_t)(state >> 33) * 0x1p-29 - 2;
  }
  for (int64_t i = 0; i < count; i++) indices[i] = (double)((i * i * 7 + i) % TABLE_ROWS);
  if (gaps && count > 2) indices[count / 2] = -1;
  example e = {operand_of(dtype, MIX_SHAPE(TABLE_ROWS, width), table),
               operand_of(index_dtype, MIX_SHAPE(count), indices),
               operand_of(dtype, MIX_SHAPE(count, width), values)};
  free(table);
  free(indices);
  return e;
}

static void free_example(example *e) {
  free(e->table.data);
  free(e->indices.data);
  free(e->values.data);
}

static void compare(const mix_op *op, const void *attributes, int inputs, const operand *in, int outputs,
                    const operand *types) {
  operand expected[2], got[2];
  for (int o = 0; o < outputs; o++) expected[o] = operand_of(types[o].dtype, types[o].shape, NULL);
  assert_int_equal(run_step(&mix_backend_ref, 1, op, attributes, NULL, inputs, in, outputs, expected),
                   MIX_OK);
  for (int threads = 1; threads <= 3; threads++) {
    for (int o = 0; o < outputs; o++) got[o] = operand_of(types[o].dtype, types[o].shape, NULL);
    assert_int_equal(run_step(&mix_backend_cpu, threads, op, attributes, NULL, inputs, in, outputs, got),
                     MIX_OK);
    for (int o = 0; o < outputs; o++)
      assert_memory_equal(got[o].data, expected[o].data, mix_value_bytes(types[o].dtype, types[o].shape));
    free_operands(outputs, got);
  }
  free_operands(outputs, expected);
}

static const struct {
  int64_t count, width;
} sizes[] = {{1, 1}, {7, 3}, {40, 17}, {300, 64}, {900, 129}, {0, 4}, {5, 0}};
static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
static const mix_dtype index_dtypes[] = {MIX_INT32, MIX_INT64};

static void rows_are_combined_as_by_the_reference(void **state) {
  (void)state;
  for (int s = 0; s < 7; s++)
    for (int d = 0; d < 4; d++)
      for (int i = 0; i < 2; i++) {
        example e = example_of(dtypes[d], index_dtypes[i], sizes[s].count, sizes[s].width, false);
        const operand in[2] = {e.values, e.indices}, types[2] = {e.values, e.indices};
        compare(&mix_op_combine_rows, &(mix_segment_attributes){TABLE_ROWS}, 2, in, 2, types);
        free_example(&e);
      }
}

static void rows_are_gathered_and_replaced_as_by_the_reference(void **state) {
  (void)state;
  for (int s = 0; s < 7; s++)
    for (int d = 0; d < 4; d++)
      for (int i = 0; i < 2; i++) {
        const int64_t count = sizes[s].count < TABLE_ROWS ? sizes[s].count : TABLE_ROWS;
        example e = example_of(dtypes[d], index_dtypes[i], count, sizes[s].width, true);
        /* no index twice, as the op demands */
        for (int64_t k = 0; k < count; k++)
          mix_store_integer(e.indices.data, e.indices.dtype, k, k == count / 2 ? -1 : (k * 7) % TABLE_ROWS);
        const operand in[3] = {e.table, e.indices, e.values}, rows = e.values, table = e.table;
        compare(&mix_op_gather_rows, NULL, 2, in, 1, &rows);
        compare(&mix_op_replace_rows, NULL, 3, in, 1, &table);
        free_example(&e);
      }
}

static void an_index_outside_is_an_error(void **state) {
  (void)state;
  const mix_backend *backends[] = {&mix_backend_ref, &mix_backend_cpu};
  for (int b = 0; b < 2; b++)
    for (int i = 0; i < 2; i++) {
      operand in[2] = {operand_of(MIX_FLOAT32, MIX_SHAPE(2, 1), NUMBERS(1, 2)),
                       operand_of(MIX_INT32, MIX_SHAPE(2), i ? NUMBERS(0, 3) : NUMBERS(-1, 2))};
      operand out[2] = {operand_of(MIX_FLOAT32, MIX_SHAPE(2, 1), NULL),
                        operand_of(MIX_INT32, MIX_SHAPE(2), NULL)};
      assert_int_equal(
          run_step(backends[b], 1, &mix_op_combine_rows, &(mix_segment_attributes){3}, NULL, 2, in, 2, out),
          MIX_VALUE_ERROR);
      mix_error_clear();
      assert_true(element(out[0], i ? 1 : 0) == 0 && element(out[0], i ? 0 : 1) == (i ? 1 : 2));
      free_operands(2, in);
      free_operands(2, out);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_combined_as_by_the_reference),
      cmocka_unit_test(rows_are_gathered_and_replaced_as_by_the_reference),
      cmocka_unit_test(an_index_outside_is_an_error),
  };
  return cmocka_run_group_tests_name("cpu_rows", tests, NULL, NULL);
}
