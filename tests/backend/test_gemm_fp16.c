/* Products in blocked accumulation (AVX512-FP16, NEON with float16), called by name whatever the dispatch
 * would choose, so that every shape is tried. Oracles: integer data whose products and partial sums float16
 * holds (tolerance 0); the documented order of sums, step by step; the reference kernel for numbers that are
 * not finite; bounds derived where they are used. */
/* Holds docs/NUMERICS.md: Accumulation. */
#include "support/skip.h"
#include "backend/gemm_plans.h"
#include "backend/gemm_products.h"

#include <mixtape/device.h>
#include <stdio.h>

static const mix_dtype storages[] = {MIX_BFLOAT16, MIX_FLOAT16};

/* Four chains of so many products, whose sums are added in two levels. Chains of 32 are for large products
 * under auto. */
enum { CHAINS = 4, LEVELS = 2 };
typedef struct sums {
  const char *name;
  int chain;
} sums;
enum { USUAL, LONG, VARIANTS };
static const sums variants[VARIANTS] = {[USUAL] = {"t4x16", 16}, [LONG] = {"t4x32", 32}};
static int block_of(const sums *how) { return CHAINS * how->chain; }

/* The instruction set, of this processor, and its engine of chains of 16; NULL: it has none. */
static const char *set_here(void) {
  return engine_here("t4x16_avx512fp16") ? "avx512fp16" : engine_here("t4x16_neonfp16") ? "neonfp16" : NULL;
}
static const mix_gemm_engine *engine(void) {
  const mix_gemm_engine *avx512 = engine_here("t4x16_avx512fp16");
  return avx512 ? avx512 : engine_here("t4x16_neonfp16");
}
/* Chains of 32 are for large products under auto, which takes none on arm64. */
static size_t variants_here(void) { return engine_here("t4x32_avx512fp16") ? VARIANTS : USUAL + 1; }

static void need_float16(void) {
  mix_cpu_override(UINT32_MAX);
  if (!set_here()) SKIP("this processor lacks float16 arithmetic");
}
static const mix_kernel *blocked(mix_dtype dtype, const sums *how) {
  char name[64];
  snprintf(name, sizeof name, "gemm_%s_%s_%s", dtype == MIX_FLOAT16 ? "f16" : "bf16", how->name, set_here());
  return kernel_named(mix_cpu_matmul_kernels, name);
}
/* Is case i tried? All are, but for NEON, which has run under an emulator alone, one of eight: there a
 * product of float16 takes a hundred times as long. */
static bool tried(size_t i) { return engine_here("t4x16_avx512fp16") || i % 8 == 0; }
/* Nor there a product of more multiplications. */
static bool few_enough(const int64_t *size) {
  return engine_here("t4x16_avx512fp16") || size[0] * size[1] * size[2] <= 1 << 26;
}
/* Where one form is enough, they take turns. */
static const sums *in_turn(int64_t i) { return &variants[(size_t)i % variants_here()]; }

static const int64_t shapes[][3] = {
    {1, 1, 1},      {1, 40, 70},     {40, 1, 70},     {0, 5, 3},      {5, 0, 3},      {40, 33, 0},
    {14, 64, 64},   {15, 65, 65},    {13, 63, 63},    {28, 32, 4},    {29, 33, 5},    {31, 31, 31},
    {64, 48, 64},   {49, 80, 65},    {100, 130, 257}, {10, 300, 512}, {300, 10, 512}, {96, 64, 7},
    {70, 70, 9},    {130, 96, 300},  {2, 600, 40},    {600, 2, 40},   {545, 70, 20},  {70, 1700, 20},
    {33, 530, 300}, {225, 450, 290}, {30, 70, 1700},  {2100, 20, 30}, {20, 800, 800},
};

/* Integers up to 4 and 8 (4 in blocks of 128) in magnitude: a block's partial sums are at most 2048 times a
 * power of two, which float16's 11 bits hold, scaled or not. */
static void check_exact(const sums *how, mix_dtype dtype, const int64_t *shape, int transposes, int threads) {
  product x = make_product(dtype, shape[0], shape[1], shape[2], transposes);
  fill(&x, 0, 5), fill(&x, 1, block_of(how) == 128 ? 5 : 9);
  sums_as_float32(&x);
  double *expected = naive(&x, NULL);
  run_with(blocked(dtype, how), &x, threads);
  for (int64_t i = 0; i < x.m * x.n; i++)
    if (result(&x, i) != expected[i])
      fail_msg("%s %s %lldx%lldx%lld transposes %d threads %d: element %lld is %g, not %g", how->name,
               mix_dtype_name(dtype), (long long)x.m, (long long)x.n, (long long)x.k, transposes, threads,
               (long long)i, result(&x, i), expected[i]);
  free(expected);
  free_product(&x);
}

static void exact_on_integers(void **unused) {
  (void)unused;
  need_float16();
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t v = 0; v < variants_here() && tried(3 * s + (size_t)transposes); v++) {
        const int threads = 1 + (int)(s + v + (size_t)transposes) % MAX_THREADS;
        check_exact(&variants[v], MIX_BFLOAT16, shapes[s], transposes, threads);
        check_exact(&variants[v], MIX_FLOAT16, shapes[s], transposes, threads);
      }
}

/* Without a program: sums rounded to the storage dtype. */
static void stores_rounded(void **unused) {
  (void)unused;
  need_float16();
  for (size_t d = 0; d < 2; d++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
      product x = make_product(storages[d], shapes[s][0], shapes[s][1], shapes[s][2], (int)s % 4);
      fill(&x, 0, 5), fill(&x, 1, 9);
      double *expected = naive(&x, NULL);
      run_with(blocked(storages[d], variants), &x, 2);
      for (int64_t i = 0; i < x.m * x.n; i++)
        assert_true(rounded_to(storages[d], expected[i]) == result(&x, i));
      free(expected);
      free_product(&x);
    }
}

/* All numbers of one exponent, subnormals among them, times one, or times what takes them to the other end of
 * the range: scales are exact. bfloat16 subnormals count as zero, whatever they are multiplied with. */
static void every_exponent(void **unused) {
  (void)unused;
  need_float16();
  for (size_t d = 0; d < 2; d++) {
    const bool half = storages[d] == MIX_FLOAT16;
    const int mantissas = half ? 1024 : 128, exponents = half ? 31 : 255, bits = half ? 10 : 7;
    for (int exponent = 0; exponent < exponents; exponent++)
      for (int side = 0; side < 2; side++)
        for (int back = 0; back < 2; back++) {
          enum { WIDTH = 32 };
          const int64_t lines = mantissas / WIDTH;
          product x = side ? make_product(storages[d], WIDTH, lines, WIDTH, 2)
                           : make_product(storages[d], lines, WIDTH, WIDTH, 0);
          /* For float16 from 2^-14 to 2^15, for bfloat16 from 2^-126 to 2^126. */
          const double factor = !back  ? 1
                                : half ? ldexp(1, exponent < 15 ? 14 : -14)
                                       : ldexp(1, exponent < 127 ? 120 : -120);
          for (int i = 0; i < WIDTH; i++) set(&x, !side, i, i, factor);
          uint16_t *numbers = x.in[side]; /* rows along k */
          for (int i = 0; i < mantissas; i++)
            numbers[i] = (uint16_t)(exponent << bits | i | (i % 3 == 0) << 15);
          sums_as_float32(&x);
          double *expected = naive(&x, NULL);
          run_with(blocked(storages[d], in_turn(exponent)), &x, 1);
          for (int64_t i = 0; i < x.m * x.n; i++)
            if (result(&x, i) != (fabs(expected[i]) < 0x1p-126 || (!half && !exponent) ? 0 : expected[i]))
              fail_msg("%s exponent %d side %d times %g: %a, not %a", mix_dtype_name(storages[d]), exponent,
                       side, factor, result(&x, i), expected[i]);
          free(expected);
          free_product(&x);
        }
  }
}

/* ---- the order of sums (fp16.h) ---- */

/* The scale of a step that brings its largest number just below 2^limit. */
static double scale_of(const product *x, int which, int64_t first, int64_t end, int64_t k, int64_t k_end,
                       int limit) {
  double most = 0;
  for (int64_t line = first; line < end; line++)
    for (int64_t l = k; l < k_end; l++)
      most = fmax(most, fabs(get(x, which, which ? l : line, which ? line : l)));
  return most > 0 ? ldexp(1, limit - 1 - ilogb(most)) : 1;
}

/* One element, of these rows' and columns' panels: chains of float16 products and sums, each rounded once (a
 * product and a float16 number are exact in double), added in pairs; then blocks in float32. Numbers of a few
 * binades: no scale takes one below float16's normal numbers. */
static float element_step_by_step(const product *x, const sums *how, int64_t i, int64_t j,
                                  const int64_t *rows, const int64_t *columns) {
  const int block = block_of(how), step = block > 64 ? 128 : 64, bits = step == 128 ? 8 : 9;
  float sum = 0;
  for (int64_t k = 0; k < x->k; k += block) {
    const int64_t left = x->k - k < block ? x->k - k : block, from = k / step * step,
                  end = from + step < x->k ? from + step : x->k;
    const int length = left == block ? how->chain : (int)(left + CHAINS - 1) / CHAINS;
    const double up_a = scale_of(x, 0, rows[0], rows[1], from, end, (bits + 1) / 2),
                 up_b = scale_of(x, 1, columns[0], columns[1], from, end, bits / 2);
    double chains[CHAINS] = {0};
    for (int c = 0; c < CHAINS; c++)
      for (int64_t l = k + c * length; l < k + (c + 1) * length && l < x->k; l++)
        chains[c] = rounded_to(MIX_FLOAT16, chains[c] + get(x, 0, i, l) * up_a * get(x, 1, l, j) * up_b);
    const double pairs[] = {rounded_to(MIX_FLOAT16, chains[0] + chains[1]),
                            rounded_to(MIX_FLOAT16, chains[2] + chains[3])};
    const float all = (float)rounded_to(MIX_FLOAT16, pairs[0] + pairs[1]), undo = (float)(1 / (up_a * up_b));
    sum = k ? fmaf(all, undo, sum) : all * undo;
  }
  return sum;
}

static void sums_have_the_documented_order(void **unused) {
  (void)unused;
  need_float16();
  enum { MR = 14, NR = 64 };
  static const int64_t sizes[][3] = {{17, 70, 300}, {33, 40, 131}, {14, 130, 64}};
  for (size_t d = 0; d < 2; d++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      for (int transposes = 0; transposes < 4; transposes++) {
        if (!tried(4 * d + s + (size_t)transposes)) continue;
        product x = make_product(storages[d], sizes[s][0], sizes[s][1], sizes[s][2], transposes);
        const sums *how = in_turn((int64_t)s + transposes);
        const int64_t apart = engine_here("t4x16_avx512fp16") ? 7 : 37; /* columns that are computed anew */
        for (int which = 0; which < 2; which++)
          for (int64_t e = 0; e < mix_shape_size(x.inputs[which].shape); e++)
            mix_store_double(x.in[which], storages[d], e,
                             (1 + next_random() / 0x1p31) * (next_random() % 2 ? 1 : -0.5));
        sums_as_float32(&x);
        run_with(blocked(storages[d], how), &x, 2);
        const int64_t panels = (x.m + MR - 1) / MR;
        for (int64_t i = 0, panel = 0; i < x.m; i++) {
          if (i >= x.m * (panel + 1) / panels) panel++;
          const int64_t rows[2] = {x.m * panel / panels, x.m * (panel + 1) / panels};
          for (int64_t j = i % apart; j < x.n; j += apart) {
            const int64_t columns[2] = {j / NR * NR, j / NR * NR + NR < x.n ? j / NR * NR + NR : x.n};
            const float expected = element_step_by_step(&x, how, i, j, rows, columns);
            if (result(&x, i * x.n + j) != expected)
              fail_msg("%s %s %lldx%lldx%lld transposes %d: element (%lld, %lld) is %a, not %a", how->name,
                       mix_dtype_name(storages[d]), (long long)x.m, (long long)x.n, (long long)x.k,
                       transposes, (long long)i, (long long)j, result(&x, i * x.n + j), (double)expected);
          }
        }
        free_product(&x);
      }
}

static double normal(void) { /* Box and Muller */
  const double u = (next_random() + 1.0) / 0x1p31, v = next_random() / 0x1p31;
  return sqrt(-2 * log(u < 1 ? u : 1)) * cos(2 * 3.14159265358979323846 * v);
}

enum distribution {
  RANDOM,
  RECTIFIED,
  POSITIVE,
  HEAVY,
  SMALL,
  TINY,
  LARGE,
  LARGE_POSITIVE,
  MIXED,
  DISTRIBUTIONS
};
static double draw(enum distribution which, int64_t line) {
  const double x = normal();
  switch (which) {
  case RECTIFIED: return x > 0 ? x : 0;
  case POSITIVE: return fabs(x) + 0.5;
  case HEAVY: return exp(2 * x);
  case SMALL: return 1e-3 * x;
  case TINY: return 1e-5 * x;
  case LARGE: return 100 * x;
  case LARGE_POSITIVE: return 100 * fabs(x);
  case MIXED: return ldexp(x, -(int)(line % 12)); /* rows of different size in one panel */
  default: return x;
  }
}
static void fill_from(product *x, int which, enum distribution from) {
  const int64_t lines = which ? x->n : x->m;
  for (int64_t line = 0; line < lines; line++)
    for (int64_t l = 0; l < x->k; l++) set(x, which, which ? l : line, which ? line : l, draw(from, line));
}

/* Largest magnitude of each row of op(A), or column of op(B), and of all. */
static double largest(const product *x, int which) {
  double most = 0;
  const int64_t count = which ? x->k * x->n : x->m * x->k;
  for (int64_t i = 0; i < count; i++) {
    const double value = fabs(mix_load_double(x->in[which], x->inputs[which].dtype, i));
    if (value > most) most = value;
  }
  return most;
}

/* Of |A||B|. A chain of `chain` fused multiply-adds from zero rounds chain times, the tree of four twice: at
 * most (chain + 2) u to first order, u = 2^-11; the second order is below a hundredth of it. Sums of blocks
 * in float32: (k / 32 + 1) 2^-24. */
static double bound_of_sums(const sums *how, int64_t k) {
  return 1.01 * (how->chain + LEVELS) * 0x1p-11 + (double)(k / 32 + 1) * 0x1p-24;
}

/* The bound of NUMERICS.md: besides that of the sums, what a scale takes below float16's smallest number is
 * off by at most 2^-24, where the largest of the step is at least 2^4 in A and 2^3 in B (2^3 in blocks of
 * 128); subnormal partial sums by 2^-25: together at most 2^-25.8 of the largest product for each of k. And
 * on average far less: for zero-mean data the i-th sum of a chain has variance i, its rounding error a
 * variance (0.424 2 u)^2 / 4 of its own on average over a binade; 4 chains of 16 and their tree sum to 4 *
 * 136 + 64 + 64 of 64, so 3.26 * 0.424 * 2^-11 = 6.7e-4 of the whole, whatever k. */
static void check_bound(const sums *how, mix_dtype dtype, enum distribution a, enum distribution b, int64_t k,
                        double typical) {
  product x = make_product(dtype, 41, 83, k, (int)(k + a) % 4);
  fill_from(&x, 0, a), fill_from(&x, 1, b);
  sums_as_float32(&x);
  double *absolute, *expected = naive(&x, &absolute), error = 0, norm = 0;
  run_with(blocked(dtype, how), &x, 2);
  const double factor = bound_of_sums(how, k);
  const double held = (double)k * 0x1p-25 * largest(&x, 0) * largest(&x, 1);
  for (int64_t i = 0; i < x.m * x.n; i++) {
    const double e = fabs(result(&x, i) - expected[i]);
    if (!(e <= factor * absolute[i] + held))
      fail_msg("%s %s distributions %d, %d, k %lld: off by %g, bound %g", how->name, mix_dtype_name(dtype), a,
               b, (long long)k, e, factor * absolute[i] + held);
    error += e * e, norm += expected[i] * expected[i];
  }
  const double relative = sqrt(error / norm);
  if (!(relative <= typical))
    fail_msg("%s %s distributions %d, %d, k %lld: relative error %g, expected at most %g", how->name,
             mix_dtype_name(dtype), a, b, (long long)k, relative, typical);
  free(expected), free(absolute);
  free_product(&x);
}

/* 1.5 times what the derivation gives for zero-mean data; chains of 32 (4 * 528 + 256 of 128) in proportion,
 * since each level of the tree has the variance of the block. Data of one sign has less. */
static double typical_error(const sums *how) {
  const double chain = how->chain, block = block_of(how);
  const double variance = (CHAINS * chain * (chain + 1) / 2 + LEVELS * block) / block;
  return 1.5 * sqrt(variance) * 0.424 * 0x1p-11;
}

static void bound_on_any_data(void **unused) {
  (void)unused;
  need_float16();
  static const enum distribution pairs[][2] = {
      {RANDOM, RANDOM},   {RECTIFIED, RANDOM}, {RECTIFIED, RECTIFIED}, {POSITIVE, POSITIVE},
      {RECTIFIED, SMALL}, {RECTIFIED, TINY},   {LARGE, LARGE},         {LARGE_POSITIVE, LARGE_POSITIVE},
      {HEAVY, RANDOM},    {RANDOM, HEAVY},     {HEAVY, HEAVY},         {MIXED, RANDOM}};
  for (size_t v = 0; v < variants_here(); v++)
    for (size_t d = 0; d < 2; d++)
      for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
        if (tried(p + 4 * d))
          check_bound(&variants[v], storages[d], pairs[p][0], pairs[p][1], 1000, typical_error(&variants[v]));
}

static void no_growth_with_k(void **unused) {
  (void)unused;
  need_float16();
  static const int64_t depths[] = {64, 100, 784, 4096, 20000};
  for (size_t v = 0; v < variants_here(); v++)
    for (size_t d = 0; d < 2; d++)
      for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        if (!tried(2 * i + 4 * d)) continue;
        check_bound(&variants[v], storages[d], RANDOM, RANDOM, depths[i], typical_error(&variants[v]));
        check_bound(&variants[v], storages[d], POSITIVE, POSITIVE, depths[i], typical_error(&variants[v]));
      }
}

/* Every block is as large as scales let it become: all terms of one sign, all numbers at the top of their
 * binade. The sums' bound, and half a unit of the dtype in which they are stored. */
static void check_full_blocks(const sums *how, product *x) {
  const mix_dtype dtype = x->inputs[0].dtype;
  const double top = dtype == MIX_FLOAT16 ? 0x1.ffcp0 : 0x1.fep0;
  const double bound = bound_of_sums(how, x->k) + (dtype == MIX_FLOAT16 ? 0x1p-11 : 0x1p-8);
  for (int64_t i = 0; i < x->m; i++)
    for (int64_t l = 0; l < x->k; l++) set(x, 0, i, l, ldexp(top, dtype == MIX_FLOAT16 ? 15 : 127));
  for (int64_t j = 0; j < x->n; j++)
    for (int64_t l = 0; l < x->k; l++) set(x, 1, l, j, ldexp(top, -9));
  double *expected = naive(x, NULL);
  run_with(blocked(dtype, how), x, 2);
  for (int64_t i = 0; i < x->m * x->n; i++)
    assert_true(fabs(result(x, i) - expected[i]) <= bound * expected[i]);
  free(expected);
}

/* Blocks of the largest numbers, whose sums float16 would not hold a few of; the result is finite where the
 * exact one is. */
static void check_large_numbers(const sums *how, mix_dtype dtype, int transposes) {
  const mix_kernel *kernel = blocked(dtype, how);
  const double most = dtype == MIX_FLOAT16 ? 65504 : ldexp(255, 120); /* 0x1.fep127 */
  product x = make_product(dtype, 30, 70, 128, transposes);
  check_full_blocks(how, &x);
  for (int64_t l = 0; l < x.k; l++) {
    for (int64_t i = 0; i < x.m; i++) set(&x, 0, i, l, (l & 1 ? -most : most) * (i % 5 ? 1 : 0.5));
    for (int64_t j = 0; j < x.n; j++) set(&x, 1, l, j, l < 64 ? 1 : 0.5);
  }
  double *expected = naive(&x, NULL);
  run_with(kernel, &x, 2);
  for (int64_t i = 0; i < x.m * x.n; i++) assert_true(result(&x, i) == expected[i]);
  free(expected);
  /* The largest numbers of both side by side, but never multiplied with each other: 2^100 * 2^-100 twice. */
  if (dtype == MIX_BFLOAT16) {
    for (int64_t l = 0; l < x.k; l++) {
      for (int64_t i = 0; i < x.m; i++) set(&x, 0, i, l, l > 1 ? 0 : l ? 0x1p100 : 0x1p-100);
      for (int64_t j = 0; j < x.n; j++) set(&x, 1, l, j, l > 1 ? 0 : l ? 0x1p-100 : 0x1p100);
    }
    run_with(kernel, &x, 2);
    for (int64_t i = 0; i < x.m * x.n; i++) assert_true(isfinite(result(&x, i)));
  }
  free_product(&x);
}

static void no_overflow_inside(void **unused) {
  (void)unused;
  need_float16();
  for (size_t v = 0; v < variants_here(); v++)
    for (size_t d = 0; d < 2; d++)
      for (int transposes = 0; transposes < 4; transposes++)
        check_large_numbers(&variants[v], storages[d], transposes);
}

/* Of the first shape each of three threads has few rows, and smaller blocks than one thread alone. */
static void same_bits_for_any_number_of_threads(void **unused) {
  (void)unused;
  need_float16();
  for (int threads = 1; threads <= 3; threads += 2)
    assert_int_equal(plan_of_shape(engine(), MIX_FLOAT16, 700, 600, 530, 0, threads).kc < 530, threads == 3);
  static const int64_t sizes[][3] = {{700, 600, 530}, {129, 1300, 400}, {1300, 40, 1700}};
  for (size_t d = 0; d < 2; d++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      for (int transposes = 0; transposes < 4; transposes++) {
        if (!few_enough(sizes[s]) || !tried(7 + s + 6 * d + (size_t)transposes)) continue;
        product x = make_product(storages[d], sizes[s][0], sizes[s][1], sizes[s][2], transposes);
        fill_from(&x, 0, MIXED), fill_from(&x, 1, HEAVY);
        sums_as_float32(&x);
        check_same_bits(blocked(storages[d], in_turn((int64_t)s + transposes)), &x);
        free_product(&x);
      }
}

/* Several blocks of columns use rows of A that are packed once; their sums are side by side where k has
 * several blocks. Two shapes of a few blocks are computed; for the guide's large ones the plan is tested. */
static void rows_are_packed_once_for_a_span(void **unused) {
  (void)unused;
  need_float16();
  static const int64_t computed[][3] = {{33, 1200, 90}, {33, 1200, 820}},
                       large[][3] = {{8192, 4096, 784}, {8192, 4096, 4096}};
  for (size_t d = 0; d < 2; d++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (int s = 0; s < 2; s++) {
        const int64_t *x = computed[s];
        const mix_gemm_plan plan = plan_of_shape(engine(), storages[d], x[0], x[1], x[2], transposes, 1);
        assert_true(mix_fp16_plan_of(&plan)->column_span > 2 * plan.nc &&
                    mix_fp16_plan_of(&plan)->a_panels * plan.engine->mr >= x[0]);
        assert_int_equal(plan.kc < x[2], s);
        if (tried(4 * d + (size_t)(2 * s + transposes)))
          check_exact(in_turn(s + transposes), storages[d], x, transposes, 1);
      }
  for (int s = 0; s < 2; s++) {
    const mix_gemm_plan plan =
        plan_of_shape(engine(), MIX_FLOAT16, large[s][0], large[s][1], large[s][2], 0, 2);
    assert_true(mix_fp16_plan_of(&plan)->column_span >= 4096 && mix_fp16_plan_of(&plan)->c_bytes <= 25 << 20);
  }
}

/* Where few rows use B, tiles prefetch the block of it that is packed next. Blocks are small then, whole and
 * ragged in both directions, and the last one has none behind it. */
static void blocks_of_b_are_prefetched(void **unused) {
  (void)unused;
  need_float16();
  static const struct {
    int64_t size[3];
    bool prefetched;
  } cases[] = {
      {{14, 1100, 600}, true}, {{97, 1024, 1030}, true}, {{256, 520, 514}, true}, {{257, 320, 300}, false}};
  for (size_t d = 0; d < 2; d++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t *x = cases[i].size;
        const mix_gemm_plan plan = plan_of_shape(engine(), storages[d], x[0], x[1], x[2], transposes, 1);
        assert_int_equal(mix_fp16_plan_of(&plan)->prefetch_b_source, cases[i].prefetched);
        assert_true(!mix_fp16_plan_of(&plan)->prefetch_b_source || (plan.kc < x[2] && plan.nc < x[1]));
        if (!few_enough(x) || !tried(4 * d + i + (size_t)transposes)) continue;
        check_exact(in_turn((int64_t)i + transposes), storages[d], x, transposes, 1);
        check_exact(in_turn((int64_t)i + transposes), storages[d], x, transposes, 2);
      }
}

/* Runs the reference and the blocked kernel; kinds must agree everywhere. Both results, to be freed. */
static void compare_kinds(const sums *how, product *x, void **expected, void **got) {
  x->out = new_result(x);
  run_with(reference(), x, 1);
  *expected = x->out;
  x->out = new_result(x);
  run_with(blocked(x->inputs[0].dtype, how), x, 3);
  *got = x->out;
  for (int64_t i = 0; i < x->m * x->n; i++) {
    const double want = mix_load_double(*expected, x->output.dtype, i);
    if (kind_of(result(x, i)) != kind_of(want))
      fail_msg("%s %lldx%lldx%lld: element %lld is %g, the reference's %g", mix_dtype_name(x->output.dtype),
               (long long)x->m, (long long)x->n, (long long)x->k, (long long)i, result(x, i), want);
  }
}

/* Every special number in every position of A beside every special number in every position of B, the layouts
 * taking turns, and beside numbers that a step of the panel scales far apart. Among small integers:
 * test_gemm_not_finite.c. */
static void not_finite_in_every_position(void **unused) {
  (void)unused;
  need_float16();
  static const double specials[] = {INFINITY, -INFINITY, NAN, 0, 1};
  enum { M = 2, N = 3, K = 5, SPECIALS = 5 };
  for (size_t d = 0; d < 2; d++) {
    const double tiny = storages[d] == MIX_FLOAT16 ? 0x1p-24 : 0x1p-126,
                 most = storages[d] == MIX_FLOAT16 ? 9984 : 0x1.fep60;
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = make_product(storages[d], M, N, K, transposes);
      for (int at = transposes; at < M * K * SPECIALS * K * N * SPECIALS; at += 4) {
        fill(&x, 0, 4), fill(&x, 1, 4);
        /* Beside them a large number (six make no 65504, two together far more) and the smallest: what the
         * scale takes below float16's range is still no zero. */
        if (at % 2) set(&x, 0, at % M, at % K, most), set(&x, 1, (at + 1) % K, at % N, tiny);
        if (at % 3 == 0) set(&x, 1, at % K, at % N, most), set(&x, 0, at % M, (at + 2) % K, tiny);
        const int a = at % (M * K * SPECIALS), b = at / (M * K * SPECIALS);
        set(&x, 0, a / SPECIALS / K, a / SPECIALS % K, specials[a % SPECIALS]);
        set(&x, 1, b / SPECIALS / N, b / SPECIALS % N, specials[b % SPECIALS]);
        if (!tried((size_t)(at / 4))) continue;
        void *expected, *got, *before = x.out;
        compare_kinds(in_turn(at / 4), &x, &expected, &got);
        free(expected), free(got);
        x.out = before;
      }
      free_product(&x);
    }
  }
}

static void epilogue_bias_relu(void **unused) {
  (void)unused;
  need_float16();
  for (size_t d = 0; d < 2; d++)
    for (int wide = 0; wide < 2; wide++)
      for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        if (tried(3 * s + 4 * d + 2 * (size_t)wide))
          check_bias_relu(blocked(storages[d], in_turn((int64_t)s / 4)), storages[d], shapes[s], (int)s % 4,
                          wide);
}

static void batches(void **unused) {
  (void)unused;
  need_float16();
  for (size_t d = 0; d < 2; d++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (int count = 3; count <= 8; count += 5)
        check_batch(blocked(storages[d], in_turn(transposes + count / 8)), storages[d], count, 50,
                    transposes);
}

/* Where nobody has measured what blocked sums gain. */
static void dispatch_on_request_alone(void) {
  for (size_t d = 0; d < 2; d++) {
    const mix_kernel *kernel = blocked(storages[d], &variants[USUAL]);
    mix_set_accumulate("blocked");
    assert_ptr_equal(chosen(storages[d], 128, 4096, 4096, 0), kernel);
    assert_int_equal(chosen(storages[d], 1, 512, 256, 2)->accumulation, MIX_ACCUMULATE_EXACT);
    assert_string_equal(mix_accumulate_in_force(storages[d]), "blocked");
    mix_cpu_override(MIX_CPU_NEON);
    assert_int_equal(chosen(storages[d], 128, 4096, 4096, 0)->accumulation, MIX_ACCUMULATE_EXACT);
    mix_cpu_override(UINT32_MAX);
    for (int exact = 0; exact < 2; exact++) {
      mix_set_accumulate(exact ? "exact" : "auto");
      assert_int_equal(chosen(storages[d], 128, 4096, 4096, 0)->accumulation, MIX_ACCUMULATE_EXACT);
      assert_string_equal(mix_accumulate_in_force(storages[d]), "exact");
    }
    mix_set_accumulate("auto");
  }
}

/* Blocked where it is asked for, in chains of 16 whatever the size, or by itself where there is AVX512-FP16
 * and no AMX: then in chains of 32 for large products, but not of few rows. Never where exact is asked for.
 */
static void dispatch(void **unused) {
  (void)unused;
  need_float16();
  if (!engine_here("t4x16_avx512fp16")) {
    dispatch_on_request_alone();
    return;
  }
  const uint32_t without_tiles = MIX_CPU_AVX2 | MIX_CPU_AVX512 | MIX_CPU_AVX512_BF16 | MIX_CPU_AVX512_FP16;
  const bool tiles = mix_cpu_features() & MIX_CPU_AMX_BF16;
  for (size_t d = 0; d < 2; d++) {
    const mix_kernel *kernel = blocked(storages[d], &variants[USUAL]);
    const mix_kernel *large = blocked(storages[d], &variants[LONG]);
    mix_set_accumulate("blocked");
    assert_ptr_equal(chosen(storages[d], 128, 64, 784, 0), kernel);
    assert_ptr_equal(chosen(storages[d], 128, 4096, 4096, 0), kernel);
    assert_string_equal(mix_accumulate_in_force(storages[d]), "blocked");
    mix_set_accumulate("auto");
    if (tiles) assert_int_equal(chosen(storages[d], 128, 64, 784, 0)->accumulation, MIX_ACCUMULATE_EXACT);
    if (tiles) assert_string_equal(mix_accumulate_in_force(storages[d]), "exact");
    mix_cpu_override(without_tiles);
    assert_ptr_equal(chosen(storages[d], 128, 4096, 4096, 0), large);
    assert_ptr_equal(chosen(storages[d], 4096, 784, 128, 1), large);
    assert_ptr_equal(chosen(storages[d], 256, 512, 256, 2), kernel);
    assert_ptr_equal(chosen(storages[d], 32, 4096, 512, 0), large);
    assert_ptr_equal(chosen(storages[d], 32, 4096, 511, 0), kernel);
    assert_ptr_equal(chosen(storages[d], 31, 4096, 4096, 0), kernel);
    assert_int_equal(chosen(storages[d], 1, 512, 256, 2)->accumulation, MIX_ACCUMULATE_EXACT);
    assert_int_equal(chosen(storages[d], 8192, 4, 4096, 0)->accumulation, MIX_ACCUMULATE_EXACT);
    assert_int_equal(chosen(storages[d], 4096, 4096, 8, 0)->accumulation, MIX_ACCUMULATE_EXACT);
    assert_int_equal(chosen(MIX_FLOAT32, 512, 512, 512, 0)->accumulation, MIX_ACCUMULATE_EXACT);
    assert_string_equal(mix_accumulate_in_force(storages[d]), "blocked");
    mix_set_accumulate("exact");
    assert_int_equal(chosen(storages[d], 128, 4096, 4096, 0)->accumulation, MIX_ACCUMULATE_EXACT);
    assert_string_equal(mix_accumulate_in_force(storages[d]), "exact");
    mix_set_accumulate("blocked");
    mix_cpu_override(MIX_CPU_AVX2 | MIX_CPU_AVX512);
    assert_int_equal(chosen(storages[d], 128, 4096, 4096, 0)->accumulation, MIX_ACCUMULATE_EXACT);
    assert_string_equal(mix_accumulate_in_force(storages[d]), "exact");
    mix_cpu_override(UINT32_MAX);
    mix_set_accumulate("auto");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exact_on_integers),
      cmocka_unit_test(stores_rounded),
      cmocka_unit_test(every_exponent),
      cmocka_unit_test(sums_have_the_documented_order),
      cmocka_unit_test(bound_on_any_data),
      cmocka_unit_test(no_growth_with_k),
      cmocka_unit_test(no_overflow_inside),
      cmocka_unit_test(same_bits_for_any_number_of_threads),
      cmocka_unit_test(rows_are_packed_once_for_a_span),
      cmocka_unit_test(blocks_of_b_are_prefetched),
      cmocka_unit_test(not_finite_in_every_position),
      cmocka_unit_test(epilogue_bias_relu),
      cmocka_unit_test(batches),
      cmocka_unit_test(dispatch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
