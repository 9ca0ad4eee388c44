/* Products of bfloat16 in pairs: by VDPBF16PS, or BFMLALT and BFMLALB, where the processor has them, called
 * by name whatever the dispatch would choose, and emulated on every processor with AVX-512 or NEON. Oracles:
 * integer data whose products and sums are exact (tolerance 0); the documented order of sums, step by step;
 * the bits of the kernel that widens. Subnormals and what is not finite, in every kernel:
 * test_gemm_subnormals.c, test_gemm_not_finite.c. */
/* Holds docs/NUMERICS.md: Pairs of bfloat16. */
#include "support/skip.h"
#include "backend/cpu/gemm/bf16/bf16.h"
#include "backend/gemm_plans.h"
#include "base/machine.h"

extern const mix_gemm_engine mix_gemm_emulated_pairs;

/* Of this processor; NULL: it has none. */
static const mix_gemm_engine *pair_engine(void) {
  const mix_gemm_engine *engine = engine_here("f32_avx512bf16");
  return engine ? engine : engine_here("f32_neonbf16");
}
static const mix_gemm_engine *widening_engine(void) {
  const mix_gemm_engine *engine = engine_here("f32_avx512");
  return engine ? engine : engine_here("f32_neon");
}
static bool has_pairs(void) { return pair_engine() != NULL; }
static void need_pairs(void) {
  if (!has_pairs()) SKIP("this processor has no instructions for pairs of bfloat16");
}
static const mix_kernel *pairs(void) {
  return kernel_named(mix_cpu_matmul_kernels, engine_here("f32_avx512bf16") ? "gemm_bf16_acc32_avx512bf16"
                                                                            : "gemm_bf16_acc32_neonbf16");
}
static const mix_kernel *widening(void) {
  return kernel_named(mix_cpu_matmul_kernels,
                      engine_here("f32_avx512") ? "gemm_bf16_acc32_avx512" : "gemm_bf16_acc32_neon");
}

/* Around the edges of tiles (14 x 32), of vectors, of blocks of k (384, halves), odd depths, strips of
 * panels; every dimension zero and one. */
static const int64_t shapes[][3] = {
    {1, 1, 1},      {1, 40, 70},    {40, 1, 70},    {0, 5, 3},       {5, 0, 3},      {40, 33, 0},
    {14, 32, 2},    {15, 33, 3},    {13, 31, 1},    {28, 64, 32},    {29, 65, 33},   {16, 17, 31},
    {15, 47, 63},   {64, 48, 64},   {49, 80, 65},   {100, 130, 257}, {60, 300, 383}, {33, 170, 385},
    {20, 200, 769}, {70, 161, 783}, {130, 96, 391}, {8, 600, 40},    {600, 8, 41},   {545, 70, 20},
    {70, 1100, 21}, {33, 530, 300}, {20, 9, 1040},  {9, 20, 1040},   {66, 13, 1031}, {400, 33, 1153},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- the instruction ---- */

static float of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static uint32_t random_word(void) { return next_random() << 16 ^ next_random(); }

/* The same bits, or NaN both. */
static bool alike(float x, float y) { return bits_of(x) == bits_of(y) || (isnan(x) && isnan(y)); }

/* Ranges of operands: any bits; near one, so that roundings count; products and sums around the smallest
 * normal number; subnormals; near the largest number; infinities and NaN. */
static const struct {
  uint32_t keep, set;
} ranges[] = {{0xffffffff, 0},          {0x83ff83ff, 0x3c003c00}, {0x80ff80ff, 0x1f801f80},
              {0x807f807f, 0x20002000}, {0x81ff81ff, 0x1e001e00}, {0xe07fe07f, 0},
              {0x83ff83ff, 0x5c005c00}, {0xffffffff, 0x7f800000}};

/* A tile of one row and one vector, of a few pairs: each pair adds the product of its upper halves first,
 * then that of its lower ones, each fused, subnormals flushed on the way in and out. */
static void check_pairs(const mix_gemm_engine *engine) {
  enum { PAIRS = 3 };
  const int lanes = engine->lanes;
  const mix_float_control control = mix_float_control_get();
  mix_float_control_set(control | MIX_FLUSH_SUBNORMALS);
  for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++)
    for (int i = 0; i < 5000; i++) {
      _Alignas(64) uint32_t a[PAIRS], b[PAIRS][32];
      _Alignas(64) float sums[16];
      for (int k = 0; k < PAIRS; k++) {
        a[k] = (random_word() & ranges[r].keep) | ranges[r].set;
        for (int j = 0; j < lanes; j++) b[k][j] = (random_word() & ranges[r].keep) | ranges[r].set;
      }
      engine->micro[MIX_GEMM_ALONG_K][0](PAIRS, a, PAIRS, b, 32, sums, 16, lanes, MIX_GEMM_WRITE,
                                         (const char *)a, 0);
      for (int j = 0; j < lanes; j++) {
        float sum = 0;
        for (int k = 0; k < PAIRS; k++) {
          sum = fmaf(of_bits(a[k] & 0xffff0000u), of_bits(b[k][j] & 0xffff0000u), sum);
          sum = fmaf(of_bits(a[k] << 16), of_bits(b[k][j] << 16), sum);
        }
        if (!alike(sums[j], sum))
          fail_msg("range %zu: the sum is %08x, not %08x", r, bits_of(sums[j]), bits_of(sum));
      }
    }
  mix_float_control_set(control);
}

static void a_pair_is_two_fused_multiply_adds(void **unused) {
  (void)unused;
  if (!widening_engine()) SKIP("this processor lacks AVX-512 and NEON");
  check_pairs(&mix_gemm_emulated_pairs);
  need_pairs();
  check_pairs(pair_engine());
}

/* ---- an engine, without the kernel table ---- */

/* Sums as float32 by one thread, which flushes. */
static void run_engine(const mix_gemm_engine *engine, product *x) {
  static const mix_team alone = {.size = 1};
  mix_gemm_plan plan = plan_of(engine, x, 1);
  plan.result = MIX_FLOAT32;
  const size_t bytes = plan.workspace.shared + plan.workspace.thread;
  unsigned char *workspace = mix_alloc_buffer(bytes + 64);
  memset(workspace, 0xff, bytes + 64);
  const mix_matmul_attributes *attributes = &x->attributes;
  const mix_gemm_view a = {x->in[0], 2, x->inputs[0].shape.dims[1], attributes->transpose_a};
  const mix_gemm_view b = {x->in[1], 2, x->inputs[1].shape.dims[1], attributes->transpose_b};
  const bool transposed = plan.compute_transposed;
  const mix_gemm_operands operands = {.a = transposed ? mix_gemm_view_transposed(&b) : a,
                                      .b = transposed ? mix_gemm_view_transposed(&a) : b,
                                      .c = x->out};
  const mix_float_control control = mix_float_control_get();
  mix_float_control_set(control | MIX_FLUSH_SUBNORMALS);
  assert_int_equal(plan.barriers, 0);
  mix_gemm_run(&plan, &operands, &alone, workspace, workspace + plan.workspace.shared);
  mix_float_control_set(control);
  for (int i = 0; i < 64; i++) assert_int_equal(workspace[bytes + (size_t)i], 0xff);
  mix_free_buffer(workspace, bytes + 64);
}

/* Element (i, j) in the documented order: blocks of k from zero, each a chain of fused multiply-adds in
 * order; blocks added in order. */
static float documented_sum(const product *x, const mix_gemm_plan *plan, int64_t i, int64_t j) {
  float sum = 0;
  for (int64_t k = 0, depth; k < x->k; k += depth) {
    float block = 0;
    depth = mix_gemm_next_depth(plan, x->k - k);
    for (int64_t l = k; l < k + depth; l++)
      block = fmaf((float)get(x, 0, i, l), (float)get(x, 1, l, j), block);
    sum = k ? sum + block : block;
  }
  return sum;
}

static void check_order(const mix_gemm_engine *engine, const int64_t *shape, int transposes) {
  product x = make_product(MIX_BFLOAT16, shape[0], shape[1], shape[2], transposes);
  fill(&x, 0, 0), fill(&x, 1, 0);
  store_result_as(&x, MIX_FLOAT32);
  const mix_gemm_plan plan = plan_of(engine, &x, 1);
  run_engine(engine, &x);
  for (int64_t i = 0; i < x.m * x.n; i++) {
    const float sum = documented_sum(&x, &plan, i / x.n, i % x.n), got = ((const float *)x.out)[i];
    if (bits_of(sum) != bits_of(got))
      fail_msg("%lldx%lldx%lld transposes %d: element %lld is %a, not %a", (long long)x.m, (long long)x.n,
               (long long)x.k, transposes, (long long)i, (double)got, (double)sum);
  }
  free_product(&x);
}

static void sums_have_the_documented_order(void **unused) {
  (void)unused;
  if (!widening_engine()) SKIP("this processor lacks AVX-512 and NEON");
  for (int s = 0; s < SHAPES; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      check_order(&mix_gemm_emulated_pairs, shapes[s], transposes);
      if (has_pairs()) check_order(pair_engine(), shapes[s], transposes);
    }
}

/* ---- the kernel ---- */

static void exact_on_integers(void **unused) {
  (void)unused;
  need_pairs();
  for (int s = 0; s < SHAPES; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = make_product(MIX_BFLOAT16, shapes[s][0], shapes[s][1], shapes[s][2], transposes);
      fill(&x, 0, 100), fill(&x, 1, 100); /* sums stay below 2^24 */
      sums_as_float32(&x);
      double *expected = naive(&x, NULL);
      run_with(pairs(), &x, 1 + (s + transposes) % MAX_THREADS);
      for (int64_t i = 0; i < x.m * x.n; i++) assert_true(result(&x, i) == expected[i]);
      free(expected);
      free_product(&x);
    }
}

/* Bits from one of the ranges; NaN would hide what else is in a row or column, so there are few. */
static void fill_bits(product *x, int which, size_t range) {
  uint16_t *numbers = x->in[which];
  const int64_t count = mix_shape_size(x->inputs[which].shape);
  for (int64_t i = 0; i < count; i++) {
    numbers[i] = (uint16_t)((random_word() & ranges[range].keep) | (ranges[range].set & 0xffff));
    if ((numbers[i] & 0x7f80) == 0x7f80 && next_random() % 512) numbers[i] &= 0xbfff;
  }
}

/* The bits of another kernel's result; NaNs may have other payloads. */
static void assert_same_bits(const product *x, const uint16_t *expected, int threads) {
  const uint16_t *got = x->out;
  for (int64_t i = 0; i < x->m * x->n; i++) {
    const bool nan = (got[i] & 0x7fff) > 0x7f80 && (expected[i] & 0x7fff) > 0x7f80;
    if (got[i] != expected[i] && !nan)
      fail_msg("%lldx%lldx%lld transposes %d%d threads %d: element %lld is %04x, not %04x", (long long)x->m,
               (long long)x->n, (long long)x->k, x->attributes.transpose_a, x->attributes.transpose_b,
               threads, (long long)i, got[i], expected[i]);
  }
}

/* The kernel that widens sums the same numbers in the same order, whatever they are, where it sums in
 * blocks. */
static void same_bits_as_widened(void **unused) {
  (void)unused;
  need_pairs();
  for (int s = 0; s < SHAPES; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      const size_t range = (size_t)(s + transposes) % (sizeof ranges / sizeof *ranges);
      product x = make_product(MIX_BFLOAT16, shapes[s][0], shapes[s][1], shapes[s][2], transposes);
      if (plan_of(widening_engine(), &x, 1).algorithm == &mix_gemm_blocked) {
        fill_bits(&x, 0, range), fill_bits(&x, 1, range);
        run_with(widening(), &x, 1);
        uint16_t *widened = x.out;
        x.out = new_result(&x);
        for (int threads = 1; threads <= MAX_THREADS; threads++) {
          run_with(pairs(), &x, threads);
          assert_same_bits(&x, widened, threads);
        }
        free(widened);
      }
      free_product(&x);
    }
}

static void epilogues(void **unused) {
  (void)unused;
  need_pairs();
  for (int s = 0; s < SHAPES; s++)
    for (int wide = 0; wide < 2; wide++) check_bias_relu(pairs(), MIX_BFLOAT16, shapes[s], s % 4, wide);
}

/* What the dispatch leaves to others, so that a product has the bits of the kernel that widens: sums along
 * vectors of k, few columns of deep TN products. Fewer than 8 rows are faster elsewhere. */
static void leaves_other_orders_to_others(void **unused) {
  (void)unused;
  need_pairs();
  static const struct {
    int64_t shape[3];
    int transposes;
    bool left;
  } rows[] = {
      {{128, 64, 784}, 0, false},  {{784, 64, 128}, 1, false},  {{128, 784, 64}, 2, false},
      {{8, 4096, 4096}, 0, false}, {{16, 16, 16}, 0, true},     {{32, 32, 32}, 0, false},
      {{7, 4096, 4096}, 0, true},  {{128, 10, 64}, 0, false},   {{8192, 10, 4096}, 0, true},
      {{4096, 10, 8192}, 1, true}, {{784, 64, 8192}, 1, false}, {{12, 64, 784}, 2, true},
      {{13, 64, 784}, 2, false},   {{12, 64, 784}, 0, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const int64_t *shape = rows[i].shape;
    product x = make_product(MIX_BFLOAT16, shape[0], shape[1], shape[2], rows[i].transposes);
    const mix_kernel_args args = args_of(&x);
    assert_int_equal(pairs()->unsupported_reason(&args) != NULL, rows[i].left);
    const mix_gemm_plan plan = plan_of(widening_engine(), &x, 1);
    if (!rows[i].left) {
      assert_ptr_equal(plan.algorithm == &mix_gemm_small_m ? &mix_gemm_blocked : plan.algorithm,
                       &mix_gemm_blocked);
      assert_int_equal(plan.compute_transposed, plan_of(pair_engine(), &x, 1).compute_transposed);
    }
    free_product(&x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_pair_is_two_fused_multiply_adds),
      cmocka_unit_test(sums_have_the_documented_order),
      cmocka_unit_test(exact_on_integers),
      cmocka_unit_test(same_bits_as_widened),
      cmocka_unit_test(epilogues),
      cmocka_unit_test(leaves_other_orders_to_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
