/* Results of products that leave the ordinary way: larger than the caches. */
#include "backend/gemm_products.h"

/* Integers of magnitude below 3, so that every sum is a number of each dtype. */
enum { LIMIT = 3 };

/* A B in int32, one row of B after the other. */
static int32_t *whole_sums(const product *x) {
  int32_t *sums = calloc((size_t)(x->m * x->n), sizeof *sums);
  int8_t *row = malloc((size_t)x->n);
  assert_true(sums && row);
  for (int64_t k = 0; k < x->k; k++) {
    for (int64_t j = 0; j < x->n; j++) row[j] = (int8_t)get(x, 1, k, j);
    for (int64_t i = 0; i < x->m; i++) {
      const int32_t a = (int32_t)get(x, 0, i, k);
      for (int64_t j = 0; j < x->n; j++) sums[i * x->n + j] += a * row[j];
    }
  }
  free(row);
  return sums;
}

/* Larger than the second-level caches, rows in whole lines: written past the caches, float32 where the
 * product is shallow and larger still. A column less, and rows are not whole lines: written as ever. */
static void larger_than_the_caches(const mix_kernel *kernel) {
  const mix_dtype dtype = kernel->operands;
  static const int64_t columns_and_depths[][2] = {{1056, 33}, {1056, 70}, {1055, 33}, {4352, 33}};
  const int64_t m = (5 * mix_cpu_cache(2) / 2 / (int64_t)mix_dtype_size(dtype) + 1054) / 1055;
  for (size_t s = 0; s < sizeof columns_and_depths / sizeof *columns_and_depths; s++) {
    product x = make_product(dtype, m, columns_and_depths[s][0], columns_and_depths[s][1], 0);
    fill(&x, 0, LIMIT), fill(&x, 1, LIMIT);
    int32_t *expected = whole_sums(&x);
    for (int threads = 1; threads <= 3; threads += 2) {
      run_with(kernel, &x, threads);
      for (int64_t i = 0; i < x.m * x.n; i++)
        if (result(&x, i) != expected[i])
          fail_msg("(%lld, %lld): %g, not %d", (long long)(i / x.n), (long long)(i % x.n), result(&x, i),
                   expected[i]);
    }
    free(expected);
    free_product(&x);
  }
}

int main(void) {
  static const kernel_test tests[] = {{"larger_than_the_caches", larger_than_the_caches}};
  return WITH_EACH_KERNEL(tests);
}
