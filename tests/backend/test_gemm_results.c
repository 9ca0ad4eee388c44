/* Results of products that leave the ordinary way: larger than the caches, of weights that lie packed. */
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

/* B packed by one run and taken as it lies there by the next: the same bits, though B itself has become NaN.
 */
static void weights_that_lie_packed(const mix_kernel *kernel) {
  static const int64_t shapes[][3] = {{70, 130, 300}, {33, 1100, 40}, {600, 64, 600}, {1, 32, 64}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int transposes = 0; transposes < 4; transposes += 2)
      for (int threads = 1; threads <= MAX_THREADS; threads++) {
        product x = make_product(kernel->operands, shapes[i][0], shapes[i][1], shapes[i][2], transposes);
        fill(&x, 0, 0), fill(&x, 1, 0);
        mix_kernel_args args = args_of(&x);
        const void *inputs[3] = {x.in[0], x.in[1]};
        args.inputs = inputs, args.outputs = &x.out;
        assert_true(kernel->prepare(&args, threads));
        const size_t bytes = mix_gemm_keep_packed(&args, threads, false);
        const size_t size = (size_t)(x.m * x.n) * mix_dtype_size(x.output.dtype);
        if (!strstr(kernel->name, "_amx")) {
          assert_int_equal(bytes, 0);
        } else {
          assert_true(bytes > 0);
          args.workspace = mix_alloc_buffer(bytes);
          run_team(kernel, &args, threads);
          void *first = memcpy(matrix(x.output.dtype, x.m * x.n), x.out, size);
          memset(x.in[1], 0xff, (size_t)(x.k * x.n) * mix_dtype_size(kernel->operands));
          memset(x.out, 0, size);
          assert_int_equal(mix_gemm_keep_packed(&args, threads, true), bytes);
          run_team(kernel, &args, threads);
          assert_memory_equal(x.out, first, size);
          free(first);
          mix_free_buffer(args.workspace, bytes);
        }
        kernel->release(args.prepared);
        free_product(&x);
      }
}

int main(void) {
  static const kernel_test tests[] = {{"larger_than_the_caches", larger_than_the_caches},
                                      {"weights_that_lie_packed", weights_that_lie_packed}};
  return WITH_EACH_KERNEL(tests);
}
