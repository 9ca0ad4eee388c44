/* Products by AMX tiles, called by name whatever the dispatch would choose, so that every shape is tried; and
 * by tiles that are emulated, on every processor with AVX-512. Oracles: integer data whose products and sums
 * are exact (tolerance 0); bounds derived where they are used. What is not finite: test_gemm_not_finite.c. */
/* Holds docs/NUMERICS.md: AMX; float32 on tiles. */
#include "support/skip.h"
#include "backend/gemm_products.h"
#include "backend/cpu/gemm/gemm.h"
#include <mixtape/device.h>

enum { NEEDS = MIX_CPU_AVX512 | MIX_CPU_AVX512_BF16 | MIX_CPU_AMX_BF16 };

enum { STORAGES = 3 };
static const mix_dtype storages[STORAGES] = {MIX_BFLOAT16, MIX_FLOAT16, MIX_FLOAT32};

static bool emulates;

static void need_tiles(void) {
  mix_cpu_override(UINT32_MAX);
  if (emulates && (mix_cpu_features() & EMULATED_TILES_NEED) != EMULATED_TILES_NEED)
    SKIP("this processor cannot emulate tiles");
  if (!emulates && (mix_cpu_features() & NEEDS) != NEEDS) SKIP("this processor lacks AMX");
  random_state = 1; /* the same numbers if the test runs alone */
}

static const mix_kernel *tiles_for(mix_dtype dtype) {
  char name[64];
  snprintf(name, sizeof name, "gemm_%s_acc32_amx%s",
           dtype == MIX_FLOAT16    ? "f16"
           : dtype == MIX_BFLOAT16 ? "bf16"
                                   : "f32",
           emulates ? "_emulated" : "");
  return kernel_named(emulates ? mix_emulated_matmul_kernels : mix_cpu_matmul_kernels, name);
}
static const mix_gemm_engine *tiles(void) { return emulates ? &mix_gemm_emulated_tiles : &mix_gemm_f32_amx; }
static void run(product *x, int threads) { run_with(tiles_for(x->inputs[0].dtype), x, threads); }

static const int64_t shapes[][3] = {
    {1, 1, 1},      {1, 40, 70},    {40, 1, 70},     {0, 5, 3},       {5, 0, 3},      {40, 33, 0},
    {16, 16, 32},   {17, 16, 31},   {16, 17, 33},    {15, 47, 63},    {32, 32, 32},   {33, 65, 97},
    {31, 31, 31},   {64, 48, 64},   {49, 80, 65},    {100, 130, 257}, {10, 300, 512}, {300, 10, 512},
    {96, 64, 7},    {70, 70, 9},    {130, 96, 300},  {2, 600, 40},    {600, 2, 40},   {545, 70, 20},
    {70, 1100, 20}, {33, 530, 300}, {545, 530, 290}, {100, 64, 700},  {33, 130, 530}, {0, 40, 600},
    {16, 20, 512},
};

/* Integers below `a` and `b` in magnitude, so that products are exact, and sums where a * b * k <= 2^24. */
static void check_exact(mix_dtype dtype, const int64_t *shape, int transposes, int threads, int a, int b) {
  product x = make_product(dtype, shape[0], shape[1], shape[2], transposes);
  fill(&x, 0, a), fill(&x, 1, b);
  sums_as_float32(&x);
  double *expected = naive(&x, NULL);
  run(&x, threads);
  for (int64_t i = 0; i < x.m * x.n; i++)
    if (result(&x, i) != expected[i])
      fail_msg("%s %lldx%lldx%lld transposes %d threads %d integers below %d, %d: element %lld is %g, not %g",
               mix_dtype_name(dtype), (long long)x.m, (long long)x.n, (long long)x.k, transposes, threads, a,
               b, (long long)i, result(&x, i), expected[i]);
  free(expected);
  free_product(&x);
}

/* bfloat16: 8 bits on both sides. float16: 11 bits on one side, whose other side has no lower part; float32:
 * 16 bits. */
static void exact_on_integers(void **unused) {
  (void)unused;
  need_tiles();
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      const int threads = 1 + (int)(s + (size_t)transposes) % MAX_THREADS;
      check_exact(MIX_BFLOAT16, shapes[s], transposes, threads, 150, 150);
      check_exact(MIX_FLOAT16, shapes[s], transposes, threads, 2000, 8);
      check_exact(MIX_FLOAT16, shapes[s], transposes, threads, 8, 2000);
      check_exact(MIX_FLOAT32, shapes[s], transposes, threads, 20000, 2);
      check_exact(MIX_FLOAT32, shapes[s], transposes, threads, 2, 20000);
    }
}

/* Without a program: sums rounded to the storage dtype. */
static void stores_rounded(void **unused) {
  (void)unused;
  need_tiles();
  for (size_t d = 0; d < STORAGES; d++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s += 2) {
      product x = make_product(storages[d], shapes[s][0], shapes[s][1], shapes[s][2], (int)s / 2 % 4);
      fill(&x, 0, 12), fill(&x, 1, 12);
      double *expected = naive(&x, NULL);
      run(&x, 2);
      for (int64_t i = 0; i < x.m * x.n; i++) {
        unsigned char rounded[4];
        mix_store_double(rounded, storages[d], 0, expected[i]);
        assert_true(mix_load_double(rounded, storages[d], 0) == result(&x, i));
      }
      free(expected);
      free_product(&x);
    }
}

/* Every finite float16, its subnormals among them, is hi + lo: times one it comes out as it went in, from
 * either side. */
static void float16_split_is_exact(void **unused) {
  (void)unused;
  need_tiles();
  for (int side = 0; side < 2; side++)
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = side ? make_product(MIX_FLOAT16, 32, 2048, 32, transposes)
                       : make_product(MIX_FLOAT16, 2048, 32, 32, transposes);
      for (int i = 0; i < 32; i++) set(&x, !side, i, i, 1);
      for (int64_t i = 0; i < 2048; i++)
        for (int64_t l = 0; l < 32; l++) {
          const uint16_t bits = (uint16_t)(i * 32 + l);
          if (isfinite(mix_load_double(&bits, MIX_FLOAT16, 0)))
            memcpy((uint16_t *)x.in[side] + place(&x, side, side ? l : i, side ? i : l), &bits, sizeof bits);
        }
      run(&x, 2);
      for (int64_t i = 0; i < 2048; i++)
        for (int64_t l = 0; l < 32; l++)
          assert_true(result(&x, side ? l * 2048 + i : i * 32 + l) ==
                      get(&x, side, side ? l : i, side ? i : l));
      free_product(&x);
    }
}

/* bfloat16: products are exact in float32, which sums k of them: k eps |A||B|, eps = 2^-24, twice that for
 * the two chains and their sum. float16: besides, the products lo lo that are left out: |lo| <= 2^-8 |x|, as
 * hi keeps 8 bits, so 2^-16 |A||B|; and three additions for one. On average far less: lo is j 2^-10 of its
 * binade, j from -4 to 3 alike, whose mean square is 5.5 2^-20, that of x 7/3; the ratio of mean squares
 * is 2.36 2^-20 a side, so the root mean square of lo lo over that of x y is 2.36 2^-20 = 2.2e-6. Sums round
 * with at most 4e-7 (3 k / 16 additions, k 1000, at random). float32: lo loses what its rounding to 8 bits
 * loses, 2^-8 2^-8 |x| on each side, beside lo lo; on average a third of 2^-17 |x|, and of both sides and lo
 * lo together about 5e-6. */
static void bound_on_random_data(void **unused) {
  (void)unused;
  need_tiles();
  for (size_t d = 0; d < STORAGES; d++)
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = make_product(storages[d], 129, 131, 1000, transposes);
      fill(&x, 0, 0), fill(&x, 1, 0);
      sums_as_float32(&x);
      double *absolute, *expected = naive(&x, &absolute), error = 0, norm = 0;
      run(&x, 2);
      static const double left_out[] = {0, 0x1p-16, 3 * 0x1p-16};
      const double factor = left_out[d] + (d ? 3 : 1) * 2 * 1000 * 0x1p-24;
      for (int64_t i = 0; i < x.m * x.n; i++) {
        const double e = fabs(result(&x, i) - expected[i]);
        assert_true(e <= factor * absolute[i]);
        error += e * e, norm += expected[i] * expected[i];
      }
      static const double typical[] = {1e-6, 4e-6, 6e-6};
      assert_true(sqrt(error / norm) <= typical[d]);
      free(expected), free(absolute);
      free_product(&x);
    }
}

static void same_bits_for_any_number_of_threads(void **unused) {
  (void)unused;
  need_tiles();
  static const int64_t sizes[][3] = {
      {700, 600, 530}, {129, 1300, 400}, {1300, 40, 700}, {128, 64, 784}, {70, 33, 1500}};
  for (size_t d = 0; d < STORAGES; d++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      for (int transposes = 0; transposes < 4; transposes++) {
        product x = make_product(storages[d], sizes[s][0], sizes[s][1], sizes[s][2], transposes);
        fill(&x, 0, 0), fill(&x, 1, 0);
        sums_as_float32(&x);
        check_same_bits(tiles_for(storages[d]), &x);
        free_product(&x);
      }
}

static void epilogue_bias_relu(void **unused) {
  (void)unused;
  need_tiles();
  for (size_t d = 0; d < STORAGES; d++)
    for (int wide = 0; wide < 2; wide++)
      for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        check_bias_relu(tiles_for(storages[d]), storages[d], shapes[s], (int)s % 4, wide);
}

static void batches(void **unused) {
  (void)unused;
  need_tiles();
  for (size_t d = 0; d < STORAGES; d++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (int count = 3; count <= 8; count += 5)
        for (int64_t k = 50; k <= 550;
             k += 500) /* the deep ones are summed in halves, with a barrier inside */
          check_batch(tiles_for(storages[d]), storages[d], count, k, transposes);
}

/* Numbers that would round to an infinite upper part, and down to where lower parts vanish, times one: within
 * 2^-16 (2^-14 where both parts are cut) and 2^-126. */
static void float32_to_the_ends_of_its_range(void **unused) {
  (void)unused;
  need_tiles();
  for (int side = 0; side < 2; side++) {
    product x = side ? make_product(MIX_FLOAT32, 32, 64, 32, 0) : make_product(MIX_FLOAT32, 64, 32, 32, 0);
    for (int i = 0; i < 32; i++) set(&x, !side, i, i, 1);
    for (int i = 0; i < 64; i++)
      for (int l = 0; l < 32; l++) {
        double value = ldexp(1 + uniform() / 2, i * 4 - 126);
        if (i == 63) value = l % 2 ? -3.4028234663852886e38 : 3.4e38;
        set(&x, side, side ? l : i, side ? i : l, value);
      }
    run(&x, 2);
    for (int i = 0; i < 64; i++)
      for (int l = 0; l < 32; l++) {
        const double value = get(&x, side, side ? l : i, side ? i : l);
        assert_true(fabs(result(&x, side ? l * 64 + i : i * 32 + l) - value) <=
                    fabs(value) * (i == 63 ? 0x1p-14 : 0x1p-16) + 0x1p-126);
      }
    free_product(&x);
  }
}

/* An operand that takes more room than the team shares at once is packed in two parts: the same bits as by
 * the kernel that widens. */
static void shared_operand_in_parts(void **unused) {
  (void)unused;
  need_tiles();
  const int64_t m = 2560, n = 2304, k = 8192;
  const int threads = 2;
  for (int transposes = 0; transposes < 4; transposes += 3) {
    product x = make_product(MIX_BFLOAT16, m, n, k, transposes);
    fill(&x, 0, 4), fill(&x, 1, 4);
    mix_gemm_plan plan;
    const mix_gemm_problem problem = {
        .m = m, .n = n, .k = k, .transpose_a = transposes & 1, .transpose_b = transposes & 2};
    mix_gemm_make_plan(tiles(), mix_gemm_storage_of(tiles(), MIX_BFLOAT16), &problem, threads, &plan);
    assert_int_equal(plan.barriers, 2 * 2 - 1);
    run(&x, threads);
    void *shared = x.out;
    x.out = new_result(&x);
    run_with(kernel_named(mix_cpu_matmul_kernels, "gemm_bf16_acc32_avx512"), &x, threads);
    assert_memory_equal(shared, x.out, (size_t)(m * n) * mix_dtype_size(MIX_BFLOAT16));
    free(shared);
    free_product(&x);
  }
}

/* bfloat16 with few columns: tiles read A as it lies, where its rows fill tiles; one row more, and it is
 * packed. The bits are the same, and nothing is read behind the end of a row: the next one is not finite. */
static void rows_in_place(void **unused) {
  (void)unused;
  need_tiles();
  static const int64_t ms[] = {16, 48, 128}, ns[] = {1, 10, 64, 250}, ks[] = {32, 33, 95, 260, 520, 784};
  for (int i = 0; i < 3 * 4 * 6 * 2; i++) {
    const int64_t m = ms[i / 48], n = ns[i / 12 % 4], k = ks[i / 2 % 6];
    const int transposes = i % 2 * 2;
    product packed = make_product(MIX_BFLOAT16, m + 1, n, k, transposes),
            in_place = make_product(MIX_BFLOAT16, m, n, k, transposes);
    fill(&packed, 0, 0), fill(&packed, 1, 0);
    for (int64_t l = 0; l < k; l++) set(&packed, 0, m / 2, l, NAN);
    memcpy(in_place.in[0], packed.in[0], (size_t)(m * k) * sizeof(uint16_t));
    memcpy(in_place.in[1], packed.in[1], (size_t)(n * k) * sizeof(uint16_t));
    run(&packed, 2);
    check_same_bits(tiles_for(MIX_BFLOAT16), &in_place);
    for (int64_t j = 0; j < m * n; j++) assert_int_equal(j / n == m / 2, isnan(result(&in_place, j)));
    assert_memory_equal(in_place.out, packed.out, (size_t)(m * n) * sizeof(uint16_t));
    free_product(&packed), free_product(&in_place);
  }
}

/* Tiles serve the products of the guide's model but those of its ten classes, and only where the processor
 * has them. */
static void dispatch(void **unused) {
  (void)unused;
  need_tiles();
  assert_ptr_not_equal(chosen(MIX_FLOAT32, 512, 512, 512, 0), tiles_for(MIX_FLOAT32)); /* unless asked for */
  assert_int_equal(mix_set_float32_precision("high"), MIX_OK);
  for (size_t d = 0; d < STORAGES; d++) {
    const mix_kernel *tiles = tiles_for(storages[d]);
    assert_ptr_equal(chosen(storages[d], 128, 64, 784, 0), tiles);
    assert_ptr_equal(chosen(storages[d], 784, 64, 128, 1), tiles);
    assert_ptr_equal(chosen(storages[d], 256, 512, 256, 2), tiles);
    assert_ptr_not_equal(chosen(storages[d], 1, 512, 256, 2), tiles);
    assert_ptr_not_equal(chosen(storages[d], 512, 4, 256, 0), tiles);
    assert_ptr_not_equal(chosen(storages[d], 512, 512, 8, 0), tiles);
    assert_ptr_not_equal(chosen(storages[d], 16, 16, 16, 0), tiles);
    mix_cpu_override(MIX_CPU_AVX2 | MIX_CPU_AVX512 | MIX_CPU_AVX512_BF16);
    assert_ptr_not_equal(chosen(storages[d], 128, 64, 784, 0), tiles);
    mix_cpu_override(UINT32_MAX);
  }
  assert_int_equal(mix_set_float32_precision("highest"), MIX_OK);
}

static float of_bfloat16(uint16_t bits) {
  const uint32_t word = (uint32_t)bits << 16;
  float x;
  memcpy(&x, &word, sizeof x);
  return x;
}

/* A sum of bfloat16 terms over [k, end), a multiple of 32 but for the last: what NUMERICS.md says. */
static float sum_in_order(const product *x, int64_t row, int64_t column, int64_t k, int64_t end) {
  float sum = 0;
  for (; k < end; k += 32) {
    float chains[2] = {0, 0};
    for (int64_t l = k; l < k + 32 && l < end; l++)
      chains[l % 2] = fmaf(of_bfloat16(((const uint16_t *)x->in[0])[place(x, 0, row, l)]),
                           of_bfloat16(((const uint16_t *)x->in[1])[place(x, 1, l, column)]), chains[l % 2]);
    sum += chains[0] + chains[1];
  }
  return sum;
}

/* Every bit, with depths that end inside a step, more than one block of k, and k in halves. */
static void order_of_bfloat16_sums(void **unused) {
  (void)unused;
  need_tiles();
  static const struct {
    int64_t m, n, k, half; /* half: where the second half begins; 0: there is one sum */
  } sums[] = {{33, 40, 31, 0},  {40, 35, 64, 0},    {70, 65, 333, 0},
              {20, 18, 130, 0}, {20, 34, 900, 448}, {64, 64, 512, 256}};
  for (size_t s = 0; s < sizeof sums / sizeof *sums; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = make_product(MIX_BFLOAT16, sums[s].m, sums[s].n, sums[s].k, transposes);
      fill(&x, 0, 0), fill(&x, 1, 0);
      sums_as_float32(&x);
      run(&x, 1 + transposes % MAX_THREADS);
      for (int64_t i = 0; i < x.m * x.n; i++) {
        const int64_t row = i / x.n, column = i % x.n, half = sums[s].half;
        float expected = sum_in_order(&x, row, column, 0, half ? half : x.k);
        if (half) expected += sum_in_order(&x, row, column, half, x.k);
        if (memcmp(&expected, (const float *)x.out + i, sizeof expected))
          fail_msg("%lldx%lldx%lld transposes %d: element %lld is %a, not %a", (long long)x.m, (long long)x.n,
                   (long long)x.k, transposes, (long long)i, result(&x, i), (double)expected);
      }
      free_product(&x);
    }
}

static int by_processor(void **unused) {
  (void)unused;
  emulates = false;
  return 0;
}
static int by_emulation(void **unused) {
  (void)unused;
  emulates = true;
  return 0;
}

#define BY_PROCESSOR(test)                                                                                   \
  { #test, test, by_processor, NULL, NULL }
#define BY_BOTH(test)                                                                                        \
  BY_PROCESSOR(test), { #test "_emulated", test, by_emulation, NULL, NULL }

int main(void) {
  const struct CMUnitTest tests[] = {
      BY_BOTH(exact_on_integers),
      BY_BOTH(stores_rounded),
      BY_BOTH(float16_split_is_exact),
      BY_BOTH(float32_to_the_ends_of_its_range),
      BY_BOTH(bound_on_random_data),
      BY_BOTH(order_of_bfloat16_sums),
      BY_BOTH(same_bits_for_any_number_of_threads),
      BY_BOTH(epilogue_bias_relu),
      BY_BOTH(batches),
      BY_PROCESSOR(shared_operand_in_parts), /* large */
      BY_BOTH(rows_in_place),
      BY_PROCESSOR(dispatch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
