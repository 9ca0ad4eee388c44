/* Products of int8 on each instruction set against sums in 64 bits: random and extreme numbers, sizes around
 * those of tiles and blocks, every layout, leading dimensions, several threads. */
/* Holds docs/NUMERICS.md: Stored integers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/instruction_sets.h"
#include "backend/run_op.h"
#include "backend/cpu/gemm/integer/integer.h"
#include "base/alloc.h"

extern const mix_integer_engine mix_integer_emulated_tiles; /* support/integer_tiles_avx2.c */

static uint64_t drawn;
static int8_t draw(void) {
  drawn = drawn * 6364136223846793005u + 1442695040888963407u;
  return (int8_t)(drawn >> 56);
}

enum { RANDOM, SMALLEST, MIXED, KINDS };
static void fill(operand *x, int kind) {
  int8_t *data = x->data;
  for (int64_t i = 0; i < mix_shape_size(x->shape); i++)
    data[i] = kind == RANDOM ? draw() : kind == SMALLEST ? -128 : draw() & 1 ? 127 : -128;
}

static int64_t at(const operand *x, int64_t matrix, int64_t i, int64_t j, bool transposed) {
  const int64_t rows = x->shape.dims[x->shape.rank - 2], columns = x->shape.dims[x->shape.rank - 1];
  return ((const int8_t *)x->data)[(matrix * rows + (transposed ? j : i)) * columns + (transposed ? i : j)];
}

/* Elements of C for which sums are made anew: all, or one of `step`. */
static void check(const operand *a, const operand *b, const operand *c, mix_matmul_attributes flags,
                  const int64_t *a_matrix, const int64_t *b_matrix, int64_t matrices) {
  const int64_t m = c->shape.dims[c->shape.rank - 2], n = c->shape.dims[c->shape.rank - 1];
  const int64_t k = a->shape.dims[a->shape.rank - 1 - flags.transpose_a];
  const int64_t step = 1 + m * n * k / (1 << 21);
  for (int64_t matrix = 0; matrix < matrices; matrix++)
    for (int64_t e = 0; e < m * n; e += step) {
      uint64_t sum = 0;
      for (int64_t p = 0; p < k; p++)
        sum += (uint64_t)(at(a, a_matrix[matrix], e / n, p, flags.transpose_a) *
                          at(b, b_matrix[matrix], p, e % n, flags.transpose_b));
      const int32_t got = ((const int32_t *)c->data)[matrix * m * n + e];
      if (got != (int32_t)(uint32_t)sum)
        fail_msg("(%lld, %lld, %lld), element %lld: %d; expected %d", (long long)m, (long long)n,
                 (long long)k, (long long)e, got, (int32_t)(uint32_t)sum);
    }
}

/* The kernel of an engine that the dispatch does not know, each thread's share after the other's. */
static mix_status run_engine(const mix_integer_engine *engine, int threads,
                             const mix_matmul_attributes *flags, const operand *in, operand *c) {
  const mix_type types[] = {{in[0].dtype, in[0].shape}, {in[1].dtype, in[1].shape}, {c->dtype, c->shape}};
  const void *inputs[] = {in[0].data, in[1].data};
  void *outputs[] = {c->data};
  mix_kernel_args args = {.op = &mix_op_matmul_integer,
                          .attributes = flags,
                          .input_count = 2,
                          .output_count = 1,
                          .input_types = types,
                          .output_types = types + 2,
                          .inputs = inputs,
                          .outputs = outputs};
  if (!mix_integer_prepare(engine, &args, threads)) return mix_error();
  const size_t bytes = mix_integer_workspace(engine, &args, threads);
  args.workspace = mix_alloc_buffer(bytes);
  if (mix_integer_serial(&args)) threads = 1;
  for (int rank = 0; rank < threads; rank++)
    mix_integer_run(&args, &(const mix_team){.rank = rank, .size = threads});
  mix_free_buffer(args.workspace, bytes);
  mix_free(args.prepared);
  return MIX_OK;
}

static bool emulates;

static mix_status run(int threads, const mix_matmul_attributes *flags, const operand *in, operand *c) {
  if (emulates) return run_engine(&mix_integer_emulated_tiles, threads, flags, in, c);
  return run_step(&mix_backend_cpu, threads, &mix_op_matmul_integer, flags, NULL, 2, in, 1, c);
}

static void multiply(int64_t m, int64_t n, int64_t k, mix_matmul_attributes flags, int threads, int kind) {
  operand a = operand_of(MIX_INT8, flags.transpose_a ? MIX_SHAPE(k, m) : MIX_SHAPE(m, k), NULL);
  operand b = operand_of(MIX_INT8, flags.transpose_b ? MIX_SHAPE(n, k) : MIX_SHAPE(k, n), NULL);
  operand c = operand_of(MIX_INT32, MIX_SHAPE(m, n), NULL);
  fill(&a, kind), fill(&b, kind);
  for (int64_t i = 0; i < m * n; i++) ((int32_t *)c.data)[i] = 99;
  const operand in[] = {a, b};
  assert_int_equal(run(threads, &flags, in, &c), MIX_OK);
  check(&a, &b, &c, flags, (const int64_t[]){0}, (const int64_t[]){0}, 1);
  free(a.data), free(b.data), free(c.data);
}

static void exact_around_tiles(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[] = {0, 1, 2, 5, 6, 7, 15, 16, 17, 33, 64, 65};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  for (int layout = 0; layout < 4; layout++)
    for (int i = 0; i < SIZES; i++)
      for (int j = 0; j < SIZES; j++)
        for (int k = 0; k < SIZES; k++)
          multiply(sizes[i], sizes[j], sizes[k],
                   (mix_matmul_attributes){.transpose_a = layout & 1, .transpose_b = layout >> 1}, 1,
                   (i + j + k) % KINDS);
}

/* Blocks are 2048 numbers of k, 240 rows and 128 columns. */
static void exact_around_blocks(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[][3] = {{3, 200, 4099}, {250, 7, 33}, {61, 130, 2051}, {1, 300, 2048}};
  for (int layout = 0; layout < 4; layout++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (int threads = 1; threads <= 3; threads++)
        multiply(sizes[i][0], sizes[i][1], sizes[i][2],
                 (mix_matmul_attributes){.transpose_a = layout & 1, .transpose_b = layout >> 1}, threads,
                 threads % KINDS);
}

/* 131,072 products of -128 and -128 are 2^31, which wraps. */
static void sums_wrap_beyond_int32(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int64_t k = 131071; k <= 131073; k++) multiply(2, 17, k, (mix_matmul_attributes){0}, 1, SMALLEST);
}

static void leading_dimensions_broadcast(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int threads = 1; threads <= 2; threads++) {
    operand a = operand_of(MIX_INT8, MIX_SHAPE(2, 1, 7, 70), NULL);
    operand b = operand_of(MIX_INT8, MIX_SHAPE(3, 70, 19), NULL);
    operand c = operand_of(MIX_INT32, MIX_SHAPE(2, 3, 7, 19), NULL);
    fill(&a, RANDOM), fill(&b, RANDOM);
    const mix_matmul_attributes flags = {0};
    assert_int_equal(run(threads, &flags, (const operand[]){a, b}, &c), MIX_OK);
    check(&a, &b, &c, flags, (const int64_t[]){0, 0, 0, 1, 1, 1}, (const int64_t[]){0, 1, 2, 0, 1, 2}, 6);
    /* one matrix B for all rows */
    b.shape = MIX_SHAPE(70, 19), c.shape = MIX_SHAPE(2, 1, 7, 19);
    assert_int_equal(run(threads, &flags, (const operand[]){a, b}, &c), MIX_OK);
    check(&a, &b, &c, flags, (const int64_t[]){0, 1}, (const int64_t[]){0, 0}, 2);
    free(a.data), free(b.data), free(c.data);
  }
}

/* ---- tiles that are emulated ---- */

static int emulate(void **state) {
  emulates = true;
  mix_cpu_override(MIX_CPU_AVX2);
  return 0;
}
static int end_emulation(void **state) {
  emulates = false;
  mix_cpu_override(UINT32_MAX);
  return 0;
}

static void emulated(void (*test)(void **state)) {
  static const instruction_set packing = {"tiles", MIX_CPU_AVX2};
  if (!(mix_cpu_features() & MIX_CPU_AVX2)) SKIP("packing for tiles takes AVX2");
  void *set = (void *)&packing;
  test(&set);
}
static void emulated_around_tiles(void **state) { emulated(exact_around_tiles); }
static void emulated_around_blocks(void **state) { emulated(exact_around_blocks); }
static void emulated_sums_wrap(void **state) { emulated(sums_wrap_beyond_int32); }
static void emulated_broadcast(void **state) { emulated(leading_dimensions_broadcast); }

#define EMULATED(test) cmocka_unit_test_setup_teardown(test, emulate, end_emulation)

int main(void) {
  const struct CMUnitTest tests[] = {ON_EACH_SET_OF_INTEGERS(exact_around_tiles),
                                     ON_EACH_SET_OF_INTEGERS(exact_around_blocks),
                                     ON_EACH_SET_OF_INTEGERS(sums_wrap_beyond_int32),
                                     ON_EACH_SET_OF_INTEGERS(leading_dimensions_broadcast),
                                     EMULATED(emulated_around_tiles),
                                     EMULATED(emulated_around_blocks),
                                     EMULATED(emulated_sums_wrap),
                                     EMULATED(emulated_broadcast)};
  return cmocka_run_group_tests_name("backend/gemm_integer", tests, NULL, NULL);
}
