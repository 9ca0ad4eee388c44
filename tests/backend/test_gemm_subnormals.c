/* Subnormal numbers in products, every kernel called by name, in threads that flush them as those of a plan
 * do (backend/host/executor.c). float16 keeps its own. Those of the other dtypes count as zero; a product or
 * sum below the normal numbers is zero, so that an element of k terms errs by at most k times twice the
 * smallest normal number more. (docs/NUMERICS.md, subnormal numbers.) */
/* Holds docs/NUMERICS.md: Subnormal numbers; Products. */
#include "backend/gemm_products.h"

/* The exponents of the smallest normal and subnormal numbers; a factor that takes the subnormals to the
 * middle of the range. Stored sums have `unit`, half a unit of the dtype, beside that of the sums themselves.
 */
typedef struct range {
  int normal, subnormal, back;
  double unit, sums;
} range;
static range range_of(mix_dtype dtype) {
  switch (dtype) {
  case MIX_FLOAT16: return (range){-14, -24, 10, 0x1p-11, 0x1p-24};
  case MIX_BFLOAT16: return (range){-126, -133, 120, 0x1p-8, 0x1p-24};
  case MIX_FLOAT32: return (range){-126, -149, 120, 0, 0x1p-24};
  default: return (range){-1022, -1074, 1000, 0, 0x1p-53};
  }
}
static bool keeps(mix_dtype dtype) { return dtype == MIX_FLOAT16; }
static bool flushes(const mix_kernel *kernel) { return !keeps(kernel->operands); }
/* Where two such numbers are multiplied exactly in every dtype. */
static double of_eight_bits(int exponent) {
  return ldexp(1 + (next_random() & 127) / 128.0, exponent) * (next_random() & 1 ? 1 : -1);
}

#define FAIL(x, i, got, want)                                                                                \
  fail_msg("%s %lldx%lldx%lld transposes %d%d: element %lld is %a, not %a", kernel->name, (long long)(x).m,  \
           (long long)(x).n, (long long)(x).k, (x).attributes.transpose_a, (x).attributes.transpose_b,       \
           (long long)(i), got, want)

/* Subnormals of every size from either side, times one and times what makes them normal. */
static void subnormal_operands(const mix_kernel *kernel) {
  enum { LINES = 64, DEPTH = 32 };
  const mix_dtype dtype = kernel->operands;
  const range r = range_of(dtype);
  for (int side = 0; side < 2; side++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (int back = 0; back < 2; back++) {
        product x = make_product(dtype, side ? DEPTH : LINES, side ? LINES : DEPTH, DEPTH, transposes);
        for (int i = 0; i < DEPTH; i++) set(&x, !side, i, i, back ? ldexp(1, r.back) : 1);
        for (int i = 0; i < LINES; i++)
          for (int l = 0; l < DEPTH; l++) {
            const int bits = r.normal - r.subnormal, lost = (i * DEPTH + l) % bits;
            const uint64_t word = (uint64_t)next_random() << 31 | next_random(), leading = UINT64_C(1)
                                                                                           << (bits - 1);
            const uint64_t number =
                i % 8 == 0 ? leading + (leading - 1) : (leading | (word & (leading - 1))) >> lost;
            set(&x, side, side ? l : i, side ? i : l, ldexp((double)number, r.subnormal) * (l % 3 ? 1 : -1));
          }
        double *expected = naive(&x, NULL);
        run_with(kernel, &x, 2);
        for (int64_t i = 0; i < x.m * x.n; i++) {
          assert_true(expected[i] != 0);
          if (result(&x, i) != (keeps(dtype) ? expected[i] : 0))
            FAIL(x, i, result(&x, i), keeps(dtype) ? expected[i] : 0);
        }
        free(expected);
        free_product(&x);
      }
}

/* The same bits as with zeros in their places. Tiles that split float32 lose the lower parts of numbers so
 * near to them: 2^-9 of each. */
static void subnormals_beside_normals(const mix_kernel *kernel) {
  static const int64_t shapes[][3] = {{33, 40, 70}, {20, 9, 1040}, {9, 20, 1040}, {26, 14, 1030}};
  const mix_dtype dtype = kernel->operands;
  const range r = range_of(dtype);
  const bool split = dtype == MIX_FLOAT32 && strstr(kernel->name, "amx");
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int how = 0; how < 8; how++) {
      const int transposes = how & 3, side = how >> 2;
      product x = make_product(dtype, shapes[s][0], shapes[s][1], shapes[s][2], transposes);
      const int64_t counts[2] = {x.m * x.k, x.k * x.n};
      const size_t bytes = (size_t)counts[side] * mix_dtype_size(dtype);
      for (int64_t i = 0; i < counts[!side]; i++)
        mix_store_double(x.in[!side], dtype, i, of_eight_bits(r.back - 20));
      for (int64_t i = 0; i < counts[side]; i++)
        mix_store_double(x.in[side], dtype, i, of_eight_bits(r.normal - 4 + (int)(next_random() % 8)));
      double *absolute;
      free(naive(&x, &absolute));
      run_with(kernel, &x, 2);
      void *with = x.out, *original = memcpy(matrix(dtype, counts[side]), x.in[side], bytes);
      for (int64_t i = 0; i < counts[side]; i++)
        if (fabs(mix_load_double(x.in[side], dtype, i)) < ldexp(1, r.normal))
          mix_store_double(x.in[side], dtype, i, 0);
      assert_memory_not_equal(original, x.in[side], bytes);
      x.out = new_result(&x);
      run_with(kernel, &x, 2);
      for (int64_t i = 0; i < x.m * x.n; i++) {
        const double got = mix_load_double(with, dtype, i), want = result(&x, i);
        if (split ? !(fabs(got - want) <= absolute[i] * 0x1p-8) : got != want) FAIL(x, i, got, want);
      }
      free(with), free(original), free(absolute);
      free_product(&x);
    }
}

/* One term: zero where the exact product is below the normal numbers, else correctly rounded. Blocked sums
 * round it to float16's bits before. */
static void single_products(const mix_kernel *kernel) {
  const mix_dtype dtype = kernel->operands;
  const range r = range_of(dtype);
  const double least = ldexp(1, r.normal), unit = is_blocked(kernel) ? 0x1p-10 : 0;
  for (int transposes = 0; transposes < 4; transposes++) {
    product x = make_product(dtype, 45, 70, 1, transposes);
    for (int64_t i = 0; i < x.m; i++)
      set(&x, 0, i, 0, of_eight_bits(keeps(dtype) ? -14 : r.normal / 2 - 3 + (int)(i % 4)));
    for (int64_t j = 0; j < x.n; j++)
      set(&x, 1, 0, j, of_eight_bits(keeps(dtype) ? -13 + (int)(j % 16) : r.normal / 2 + 1 - (int)(j % 4)));
    double *expected = naive(&x, NULL);
    run_with(kernel, &x, 2);
    int below = 0, above = 0;
    for (int64_t i = 0; i < x.m * x.n; i++) {
      const bool flushed = fabs(expected[i]) < least && !keeps(dtype);
      const double want = flushed ? 0 : rounded_to(dtype, expected[i]), got = result(&x, i);
      const double slack = unit > 0 && !flushed ? unit * fabs(expected[i]) + 2 * r.unit * fabs(expected[i]) +
                                                      ldexp(1, r.subnormal)
                                                : 0;
      const bool near = unit > 0 && fabs(fabs(expected[i]) - least) <
                                        2 * unit * least; /* rounded before, either may happen */
      if (!near && !(fabs(got - want) <= slack)) FAIL(x, i, got, want);
      *(fabs(expected[i]) < least ? &below : &above) += 1;
    }
    assert_true(below > 100 && above > 100);
    free(expected);
    free_product(&x);
  }
}

/* Sums about the smallest normal number, of terms above and below it. (Those of float16 numbers are normal
 * float32 ones.) */
static void sums_of_small_products(const mix_kernel *kernel) {
  static const int64_t shapes[][3] = {
      {33, 40, 60}, {17, 70, 257}, {20, 9, 1040}, {9, 20, 1040}, {26, 14, 1030}};
  const mix_dtype dtype = kernel->operands;
  const range r = range_of(dtype);
  const double least = ldexp(1, r.normal);
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = make_product(dtype, shapes[s][0], shapes[s][1], shapes[s][2], transposes);
      for (int which = 0; which < 2; which++)
        for (int64_t i = 0; i < mix_shape_size(x.inputs[which].shape); i++)
          mix_store_double(x.in[which], dtype, i, of_eight_bits(r.normal / 2 - 3 + (int)(next_random() % 4)));
      double *absolute, *expected = naive(&x, &absolute);
      run_with(kernel, &x, 2);
      /* (k + 2) eps |A||B|, or that of blocked sums (test_gemm_fp16.c), whose held numbers are at most
       * 2^-25 of the largest product. */
      const double largest = ldexp(1, 2 * (r.normal / 2 + 1)), k = (double)x.k;
      const double sums =
          is_blocked(kernel) ? 1.01 * 34 * 0x1p-11 + (k / 32 + 1) * 0x1p-24 : (k + 2) * r.sums;
      const double flushed = 2 * k * least, held = is_blocked(kernel) ? k * 0x1p-25 * largest : 0;
      int lost = 0;
      for (int64_t i = 0; i < x.m * x.n; i++) {
        const double got = result(&x, i), error = fabs(got - expected[i]);
        if (!(error <= (sums * absolute[i] + flushed + held) * (1 + r.unit) + r.unit * fabs(expected[i])))
          FAIL(x, i, got, expected[i]);
        if (got != 0 && fabs(got) < least) FAIL(x, i, got, 0.0);
        lost += error > sums * absolute[i] + held + 2 * r.unit * fabs(expected[i]);
      }
      /* What blocked sums lose is far below their own error. */
      if (!lost && !is_blocked(kernel))
        fail_msg("%s flushes nothing: the bound is for nothing", kernel->name);
      free(expected), free(absolute);
      free_product(&x);
    }
}

/* Terms below the normal numbers are lost one by one, though their sum would be normal; but for blocked sums,
 * which are scaled. */
static void sums_of_terms_too_small(const mix_kernel *kernel) {
  static const int64_t shapes[][3] = {{33, 40, 64}, {20, 9, 1040}, {9, 20, 1040}, {26, 14, 1030}};
  const mix_dtype dtype = kernel->operands;
  const range r = range_of(dtype);
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = make_product(dtype, shapes[s][0], shapes[s][1], shapes[s][2], transposes);
      for (int which = 0; which < 2; which++)
        for (int64_t i = 0; i < mix_shape_size(x.inputs[which].shape); i++)
          mix_store_double(x.in[which], dtype, i, ldexp(1, r.normal / 2 - 2));
      run_with(kernel, &x, 2);
      const double want = is_blocked(kernel) ? rounded_to(dtype, ldexp((double)x.k, r.normal - 4)) : 0;
      for (int64_t i = 0; i < x.m * x.n; i++)
        if (!(fabs(result(&x, i) - want) <= want * 0x1p-6)) FAIL(x, i, result(&x, i), want);
      free_product(&x);
    }
}

int main(void) {
  static const kernel_test tests[] = {{"subnormal_operands", subnormal_operands},
                                      {"subnormals_beside_normals", subnormals_beside_normals, flushes},
                                      {"single_products", single_products},
                                      {"sums_of_small_products", sums_of_small_products, flushes},
                                      {"sums_of_terms_too_small", sums_of_terms_too_small, flushes}};
  return WITH_EACH_KERNEL(tests);
}
