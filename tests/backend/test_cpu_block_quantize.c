/* Rounding to simulated formats on the CPU: the bits and counts of the reference kernel on every instruction
 * set, for any number of threads. The reference is compared with blocks by hand in
 * tests/passes/test_simulate_formats.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/instruction_sets.h"
#include "backend/plan.h"
#include "backend/run_op.h"
#include "ops/block_quantize.h"
#include <math.h>

enum { VARIANTS = 7, LAYOUTS = 7 };

static const mix_block_attributes variants[VARIANTS] = {
    {.format = MIX_BLOCK_MXFP8},
    {.format = MIX_BLOCK_MXFP8, .gradient = true, .stochastic = true, .seed = 3},
    {.format = MIX_BLOCK_NVFP4},
    {.format = MIX_BLOCK_NVFP4, .gradient = true, .stochastic = true},
    {.format = MIX_BLOCK_FLOAT8_CURRENT},
    {.format = MIX_BLOCK_FLOAT8_CURRENT, .gradient = true},
    {.format = MIX_BLOCK_FLOAT8_CURRENT, .gradient = true, .stochastic = true}};

/* Rows and columns of matrices with short last blocks, small ones, kernels and groups of convolutions. */
static const struct {
  mix_shape shape;
  int axis, count;
  int64_t groups;
} layouts[LAYOUTS] = {{{.rank = 2, .dims = {53, 601}}, 1, 1, 1},
                      {{.rank = 2, .dims = {75, 301}}, 0, 1, 1},
                      {{.rank = 2, .dims = {9, 33}}, 1, 1, 1},
                      {{.rank = 3, .dims = {2, 40, 5}}, 1, 1, 1},
                      {{.rank = 4, .dims = {3, 3, 20, 130}}, 0, 3, 1},
                      {{.rank = 4, .dims = {4, 9, 9, 72}}, 3, 1, 3},
                      {{.rank = 1, .dims = {1}}, 0, 1, 1}};

/* Numbers of both signs over many powers of two. Of kind 1 some are zeros, of kind 2 some are not finite, and
 * of kind 3 all are 0. */
static operand sample(mix_dtype dtype, mix_shape shape, int kind) {
  operand x = operand_of(dtype, shape, NULL);
  uint64_t noise = 11;
  for (int64_t i = 0; i < mix_shape_size(shape); i++) {
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    const double mantissa = (double)(noise >> 40) / 0x1p23 - 1;
    double value = ldexp(mantissa, 5 - (int)(noise >> 20 & 15));
    if (kind == 3 || (kind == 1 && noise >> 33 & 1)) value = 0;
    if (kind == 2 && i % 97 == 5) value = i % 2 ? NAN : -INFINITY;
    mix_store_double(x.data, dtype, i, value);
  }
  return x;
}

static void quantize(const mix_backend *backend, int threads, const mix_block_attributes *given,
                     const operand *x, void *result, int64_t counts[3]) {
  mix_quantized_count counted = {.layer = "layer"};
  mix_block_attributes attributes = *given;
  attributes.counted = &counted;
  operand y = {x->dtype, x->shape, result};
  memset(result, 0x55, 2 * (size_t)mix_shape_size(x->shape));
  assert_int_equal(run_step(backend, threads, &mix_op_block_quantize, &attributes, NULL, 1, x, 1, &y),
                   MIX_OK);
  counts[0] = counted.numbers, counts[1] = counted.saturated, counts[2] = counted.flushed;
}

static void check(const mix_block_attributes *attributes, const operand *x) {
  static uint16_t expected[1 << 16], got[1 << 16];
  static const int teams[] = {1, 2, 5};
  const size_t bytes = 2 * (size_t)mix_shape_size(x->shape);
  int64_t wanted[3], counts[3];
  quantize(&mix_backend_ref, 1, attributes, x, expected, wanted);
  for (int t = 0; t < 3; t++) {
    quantize(&mix_backend_cpu, teams[t], attributes, x, got, counts);
    assert_memory_equal(got, expected, bytes);
    assert_memory_equal(counts, wanted, sizeof counts);
  }
}

static void bits_of_the_reference(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int l = 0; l < LAYOUTS; l++)
    for (int kind = 0; kind < 4; kind++)
      for (int d = 0; d < 2; d++) {
        operand x = sample(d ? MIX_FLOAT16 : MIX_BFLOAT16, layouts[l].shape, kind);
        for (int v = 0; v < VARIANTS; v++) {
          mix_block_attributes attributes = variants[v];
          attributes.axis = layouts[l].axis, attributes.count = layouts[l].count;
          attributes.groups = layouts[l].groups;
          check(&attributes, &x);
        }
        free_operands(1, &x);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {ON_EACH_SET(bits_of_the_reference)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
