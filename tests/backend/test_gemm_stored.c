/* Products with stored weights, and such weights as floats, on each instruction set against the reference:
 * both ways to store, 8 and 4 bits, channels and blocks, few rows and many, with the same bits on any number
 * of threads. */
/* Holds docs/NUMERICS.md: Stored integers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/instruction_sets.h"
#include "backend/run_op.h"
#include <math.h>

static uint64_t drawn;
static uint32_t draw(void) {
  drawn = drawn * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(drawn >> 32);
}
static double draw_real(double low, double high) { return low + (high - low) * draw() * 0x1p-32; }

static void fill(operand *x, double low, double high) {
  for (int64_t i = 0; i < mix_shape_size(x->shape); i++)
    if (x->dtype == MIX_INT8)
      ((int8_t *)x->data)[i] = (int8_t)(draw() >> 24);
    else
      mix_store_double(x->data, x->dtype, i, draw_real(low, high));
}

static bool float_zeros;
/* A stored weight of `rows` x `columns` and its operands of a step, from number `first` on. */
typedef struct example {
  mix_stored_attributes attributes;
  int count; /* of operands */
  operand operands[4];
} example;

static example make(mix_dtype dtype, int bits, int64_t block, bool transposed, int64_t m, int64_t n,
                    int64_t k, mix_dtype scale) {
  const int64_t rows = transposed ? n : k, columns = transposed ? k : n;
  example e = {.attributes = {.bits = bits, .columns = columns, .block = block, .transposed = transposed}};
  const int64_t groups = block ? ((transposed ? columns : rows) + block - 1) / block : 0;
  const mix_shape shared = !block       ? MIX_SHAPE(transposed ? rows : columns)
                           : transposed ? MIX_SHAPE(rows, groups)
                                        : MIX_SHAPE(groups, columns);
  e.operands[0] = operand_of(dtype, MIX_SHAPE(m, k), NULL);
  e.operands[1] = operand_of(MIX_INT8, MIX_SHAPE(rows, bits == 4 ? (columns + 1) / 2 : columns), NULL);
  e.operands[2] = operand_of(scale, shared, NULL);
  e.count = 3;
  if (block) e.operands[e.count++] = operand_of(float_zeros ? MIX_FLOAT32 : MIX_INT8, shared, NULL);
  for (int i = 0; i < e.count; i++) fill(&e.operands[i], i == 2 ? 0.01 : -2, i == 2 ? 3 : 2);
  return e;
}

static operand product(const mix_backend *backend, int threads, const example *e, mix_shape shape) {
  operand y = operand_of(e->operands[0].dtype, shape, NULL);
  memset(y.data, 0x7f, mix_value_bytes(y.dtype, shape));
  assert_int_equal(run_step(backend, threads,
                            e->attributes.block ? &mix_op_matmul_blocks : &mix_op_matmul_channels,
                            &e->attributes, NULL, e->count, e->operands, 1, &y),
                   MIX_OK);
  return y;
}

static operand dequantized(const mix_backend *backend, int threads, const example *e, mix_dtype dtype) {
  mix_stored_attributes attributes = e->attributes;
  attributes.dtype = dtype;
  operand y = operand_of(dtype, MIX_SHAPE(e->operands[1].shape.dims[0], attributes.columns), NULL);
  assert_int_equal(run_step(backend, threads,
                            attributes.block ? &mix_op_dequantize_blocks : &mix_op_dequantize_channels,
                            &attributes, NULL, e->count - 1, e->operands + 1, 1, &y),
                   MIX_OK);
  return y;
}

static double unit(mix_dtype dtype) {
  return dtype == MIX_BFLOAT16 ? 0x1p-8 : dtype == MIX_FLOAT16 ? 0x1p-11 : 0x1p-24;
}

/* Sums in float32 in any order are within (k + 2) 2^-24 of the sum of magnitudes (Higham, 3.5), rounding to
 * the dtype adds half a unit (of channels twice: the product's and the quotient's); the reference rounds once
 * more. float16's smallest numbers are 2^-24 apart. */
static void check_product(const example *e, int64_t m, int64_t n, int64_t k) {
  const mix_dtype dtype = e->operands[0].dtype;
  const mix_shape shape = MIX_SHAPE(m, n);
  operand expected = product(&mix_backend_ref, 1, e, shape),
          weight = dequantized(&mix_backend_ref, 1, e, dtype);
  for (int threads = 1; threads <= 3; threads++) {
    operand y = product(&mix_backend_cpu, threads, e, shape);
    for (int64_t i = 0; i < m * n; i++) {
      double magnitudes = 0;
      for (int64_t p = 0; p < k; p++)
        magnitudes += fabs(element(e->operands[0], i / n * k + p) *
                           element(weight, e->attributes.transposed ? i % n * k + p : p * n + i % n));
      const double want = element(expected, i), got = element(y, i),
                   bound = (double)(k + 2) * 0x1p-24 * magnitudes * (1 + 4 * unit(dtype)) +
                           4 * unit(dtype) * fabs(want) + 0x1p-22;
      if (!(fabs(got - want) <= bound) && !(isinf(want) && got == want))
        fail_msg("(%d, %d, %d) bits %d block %d transposed %d dtype %s: %g; expected %g, bound %g", (int)m,
                 (int)n, (int)k, e->attributes.bits, (int)e->attributes.block, e->attributes.transposed,
                 mix_dtype_name(dtype), got, want, bound);
    }
    if (threads > 1) {
      operand one = product(&mix_backend_cpu, 1, e, shape);
      assert_memory_equal(one.data, y.data, mix_value_bytes(dtype, shape));
      free(one.data);
    }
    free(y.data);
  }
  free(expected.data), free(weight.data);
}

static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_BFLOAT16, MIX_FLOAT16};

static void products_are_the_references(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[][3] = {{1, 1, 1},    {1, 37, 5},   {3, 130, 17}, {4, 16, 800}, {5, 129, 33},
                                     {17, 128, 9}, {2, 270, 50}, {1, 0, 3},    {0, 5, 3},    {9, 300, 40}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int form = 0; form < 12; form++) {
      const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2], block = form / 4 * (form / 4 * 17);
      float_zeros = (i + (size_t)form / 4) % 2;
      example e = make(dtypes[(i + (size_t)form) % 3], form & 1 ? 4 : 8, block, form & 2, m, n, k,
                       form % 3 ? MIX_FLOAT32 : MIX_BFLOAT16);
      check_product(&e, m, n, k);
      free_operands(e.count, e.operands);
    }
}

/* Few rows of whole zeros, 4 bits, groups smaller and larger than what a group's sum is worth, and numbers of
 * columns that end in either of a pair of vectors. */
static void few_rows_of_packed_blocks(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t columns[] = {2, 5, 16, 17, 32, 41, 100}, rows[] = {7, 70, 300},
                       blocks[] = {31, 32, 128};
  float_zeros = false;
  for (int d = 0; d < 3; d++)
    for (int n = 0; n < 7; n++)
      for (int k = 0; k < 3; k++)
        for (int b = 0; b < 3; b++) {
          const int64_t m = 1 + (n + k + b) % 4;
          example e = make(dtypes[d], 4, blocks[b], false, m, columns[n], rows[k], MIX_FLOAT32);
          check_product(&e, m, columns[n], rows[k]);
          free_operands(e.count, e.operands);
        }
}

/* To the bit: each operation is rounded as the reference rounds it. */
static void numbers_are_the_references(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[][2] = {{1, 1}, {3, 8}, {7, 600}, {130, 33}, {600, 257}, {0, 4}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int form = 0; form < 24; form++) {
      const mix_dtype dtype = dtypes[form % 3];
      example e = make(dtype, form & 1 ? 4 : 8, form / 8 * 5, form & 2, 1, sizes[i][1], sizes[i][0],
                       form & 4 ? MIX_FLOAT32 : MIX_BFLOAT16);
      operand expected = dequantized(&mix_backend_ref, 1, &e, dtype);
      for (int threads = 1; threads <= 2; threads++) {
        operand y = dequantized(&mix_backend_cpu, threads, &e, dtype);
        assert_memory_equal(y.data, expected.data, mix_value_bytes(dtype, y.shape));
        free(y.data);
      }
      free(expected.data);
      free_operands(e.count, e.operands);
    }
}

/* In 16 bits, and in float32 in groups of fewer than 32, few rows have the order of sums of plain products of
 * few rows with a large B: their bits. */
static void few_rows_have_the_bits_of_plain_products(void **state) {
  NEED_INSTRUCTION_SET(state);
  enum { N = 264, K = 1000 };
  float_zeros = false;
  for (int d = 0; d < 3; d++)
    for (int64_t m = 1; m <= 4; m++) {
      example e = make(dtypes[d], 4, dtypes[d] == MIX_FLOAT32 ? 31 : 128, false, m, N, K, MIX_FLOAT32);
      operand weight = dequantized(&mix_backend_cpu, 1, &e, dtypes[d]),
              y = product(&mix_backend_cpu, 1, &e, MIX_SHAPE(m, N)),
              plain = operand_of(dtypes[d], MIX_SHAPE(m, N), NULL);
      assert_int_equal(run_step(&mix_backend_cpu, 1, &mix_op_matmul, &(mix_matmul_attributes){0}, NULL, 2,
                                (const operand[]){e.operands[0], weight}, 1, &plain),
                       MIX_OK);
      assert_memory_equal(y.data, plain.data, mix_value_bytes(dtypes[d], y.shape));
      free(weight.data), free(y.data), free(plain.data);
      free_operands(e.count, e.operands);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_SET(products_are_the_references), ON_EACH_SET(few_rows_of_packed_blocks),
      ON_EACH_SET(numbers_are_the_references), ON_EACH_SET(few_rows_have_the_bits_of_plain_products)};
  return cmocka_run_group_tests_name("backend/gemm_stored", tests, NULL, NULL);
}
