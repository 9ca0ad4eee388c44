/* Attention in pairs of bfloat16 has the bits of attention with operands that are widened to float32, forward
 * and backward: shapes that leave tiles, vectors and pairs incomplete, groups, masks and dropout. */
/* Holds docs/NUMERICS.md: Einstein sums and attention. */
#include "backend/cpu_kernels.h"
#include "ops/support.h"

enum { CASES = 24, RESULTS = 3, OPERANDS = 6 };

typedef struct shapes {
  int64_t batch, queries, keys, heads, groups, dim, value_dim;
  bool each; /* the mask has a value for each score, else one for all */
  mix_attention_attributes attributes;
} shapes;

static int64_t below(int which, int number, int64_t end) {
  return (int64_t)(mix_philox_word(23, (uint64_t)which, (uint64_t)number) % (uint64_t)end);
}

static shapes shapes_of(int i) {
  shapes s = {.batch = 1 + below(i, 0, 2),
              .queries = 1 + below(i, 1, 80),
              .keys = 1 + below(i, 2, 150),
              .groups = 1 + below(i, 3, 3),
              .dim = 1 + below(i, 4, 80),
              .value_dim = 1 + below(i, 5, 80),
              .each = below(i, 6, 2),
              .attributes = {.scale = below(i, 7, 2) ? 1 : 0.3,
                             .mask_value = -3e4,
                             .causal = below(i, 8, 2),
                             .mask_adds = below(i, 9, 2),
                             .mask_zeroes = below(i, 10, 2),
                             .rate = below(i, 11, 2) ? 0.25 : 0}};
  s.heads = s.groups * (1 + below(i, 12, 3));
  return s;
}

/* Of sizes that differ by 2^8, some subnormal. */
static uint16_t *numbers_of(int64_t count, int seed) {
  uint16_t *x = malloc((size_t)count * sizeof *x);
  for (int64_t i = 0; i < count; i++) {
    const uint32_t word = mix_philox_word(29, (uint64_t)seed, (uint64_t)i);
    const float one = (float)(word >> 8) * 0x1p-23f - 1;
    x[i] = mix_f32_to_bf16(one * (word % 16 ? 1 : word % 32 ? 0x1p-8f : 0x1p-128f));
  }
  return x;
}

static void run_on(const mix_kernel *kernel, const shapes *s, bool gradient, int threads,
                   uint16_t **results) {
  static const int64_t state[2] = {5, 9};
  const mix_shape query = MIX_SHAPE(s->batch, s->queries, s->heads, s->dim),
                  key = MIX_SHAPE(s->batch, s->keys, s->groups, s->dim),
                  value = MIX_SHAPE(s->batch, s->keys, s->groups, s->value_dim),
                  y = MIX_SHAPE(s->batch, s->queries, s->heads, s->value_dim),
                  mask = s->each ? MIX_SHAPE(s->batch, s->heads, s->queries, s->keys) : MIX_SHAPE(1, 1, 1, 1);
  const mix_type types[OPERANDS] = {{MIX_BFLOAT16, query}, {MIX_BFLOAT16, key},       {MIX_BFLOAT16, value},
                                    {MIX_BOOL, mask},      {MIX_INT64, MIX_SHAPE(2)}, {MIX_BFLOAT16, y}};
  void *operands[OPERANDS];
  for (int i = 0; i < OPERANDS; i++)
    operands[i] = i == 3 || i == 4 ? NULL : numbers_of(mix_shape_size(types[i].shape), i);
  bool *seen = malloc((size_t)mix_shape_size(mask));
  for (int64_t i = 0; i < mix_shape_size(mask); i++) seen[i] = !s->each || (i * 3 + 1) % 5;
  operands[3] = seen;
  const void *inputs[OPERANDS];
  for (int i = 0; i < OPERANDS; i++) inputs[i] = i == 4 ? state : operands[i];
  void *outputs[RESULTS];
  for (int r = 0; r < RESULTS; r++) {
    const mix_shape shape = gradient ? types[r].shape : y;
    outputs[r] = results[r] = calloc((size_t)mix_shape_size(shape), sizeof **results);
  }
  mix_kernel_args args = {.op = gradient ? &mix_op_attention_grad : &mix_op_attention,
                          .attributes = &s->attributes,
                          .input_count = gradient ? OPERANDS : OPERANDS - 1,
                          .output_count = gradient ? RESULTS : 1,
                          .input_types = types,
                          .output_types = gradient ? types : types + 5,
                          .inputs = inputs,
                          .outputs = outputs};
  assert_null(kernel->unsupported_reason(&args));
  assert_null(run_kernel(kernel, &args, threads));
  for (int i = 0; i < OPERANDS; i++) free(operands[i]);
}

static void compare(const mix_kernel *pairs, const mix_kernel *floats, const shapes *s, int number,
                    bool gradient) {
  const int64_t counts[RESULTS] = {
      gradient ? s->batch * s->queries * s->heads * s->dim : s->batch * s->queries * s->heads * s->value_dim,
      s->batch * s->keys * s->groups * s->dim, s->batch * s->keys * s->groups * s->value_dim};
  uint16_t *got[RESULTS], *wanted[RESULTS];
  run_on(floats, s, gradient, 1, wanted);
  for (int threads = 1; threads <= 3; threads += 2) {
    run_on(pairs, s, gradient, threads, got);
    for (int r = 0; r < (gradient ? RESULTS : 1); r++)
      for (int64_t i = 0; i < counts[r]; i++)
        if (got[r][i] != wanted[r][i])
          fail_msg("case %d, %s, %d threads, result %d: element %d is %g, not %g", number, pairs->name,
                   threads, r, (int)i, (double)mix_bf16_to_f32(got[r][i]),
                   (double)mix_bf16_to_f32(wanted[r][i]));
    for (int r = 0; r < RESULTS; r++) free(got[r]);
  }
  for (int r = 0; r < RESULTS; r++) free(wanted[r]);
}

static void only_the_first_kernel_has_pairs(void **state) {
  (void)state;
  const mix_kernel *const *const tables[] = {mix_cpu_attention_kernels, mix_cpu_attention_grad_kernels};
  for (int table = 0; table < 2; table++) {
    assert_true(tables[table][0]->needs & MIX_CPU_BF16_PAIRS);
    for (int i = 1; tables[table][i]; i++) assert_false(tables[table][i]->needs & MIX_CPU_BF16_PAIRS);
  }
}

static void pairs_have_the_bits_of_floats(void **state) {
  if (!(needed_instruction_set(state)->features & MIX_CPU_BF16_PAIRS)) SKIP("a set without pairs");
  for (int i = 0; i < 2 * CASES; i++) {
    const mix_kernel *const *kernels = i % 2 ? mix_cpu_attention_grad_kernels : mix_cpu_attention_kernels;
    const shapes s = shapes_of(i / 2);
    compare(kernels[0], kernels[1], &s, i / 2, i % 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(only_the_first_kernel_has_pairs)
                                         MIX_PRODUCT_SETS(AND_ON_PRODUCT_SET, pairs_have_the_bits_of_floats)};
  return cmocka_run_group_tests_name("attention in pairs", tests, NULL, NULL);
}
