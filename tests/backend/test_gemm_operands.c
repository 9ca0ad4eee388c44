/* Where operands of products lie, every kernel called by name: at addresses aligned to their elements alone,
 * in memory that they share with each other, and in one buffer for both. Operands are only read; the result
 * shares memory with neither. Small integers, whose sums every kernel has exactly. */
/* Holds docs/NUMERICS.md: Products. */
#include "backend/gemm_products.h"

static const int64_t shapes[][3] = {{70, 70, 70},  {33, 65, 130}, {40, 10, 300}, {1, 90, 80},
                                    {61, 131, 67}, {20, 9, 1040}, {9, 20, 1040}, {40, 33, 1030}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void check(const mix_kernel *kernel, product *x, const char *what) {
  double *expected = naive(x, NULL);
  run_with(kernel, x, 2);
  for (int64_t i = 0; i < x->m * x->n; i++)
    if (result(x, i) != rounded_to(x->output.dtype, expected[i]))
      fail_msg("%s %lldx%lldx%lld transposes %d%d, %s: element %lld is %g, not %g", kernel->name,
               (long long)x->m, (long long)x->n, (long long)x->k, x->attributes.transpose_a,
               x->attributes.transpose_b, what, (long long)i, result(x, i), expected[i]);
  free(expected);
}

static void fill_with_integers(void *data, mix_dtype dtype, int64_t count) {
  for (int64_t i = 0; i < count; i++) mix_store_double(data, dtype, i, integer_below(3));
}

/* Both operands and the result one element behind an aligned address. */
static void unaligned(const mix_kernel *kernel) {
  const mix_dtype dtype = kernel->operands;
  const size_t size = mix_dtype_size(dtype);
  for (size_t s = 0; s < SHAPES; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = make_product(dtype, shapes[s][0], shapes[s][1], shapes[s][2], transposes), y = x;
      const int64_t counts[3] = {x.m * x.k, x.k * x.n, x.m * x.n};
      char *memory[3];
      for (int i = 0; i < 3; i++)
        fill_with_integers(memory[i] = matrix(dtype, counts[i] + 1), dtype, counts[i] + 1);
      y.in[0] = memory[0] + size, y.in[1] = memory[1] + size, y.out = memory[2] + size;
      const double before = mix_load_double(memory[2], dtype, 0);
      check(kernel, &y, "unaligned");
      assert_true(mix_load_double(memory[2], dtype, 0) == before);
      for (int i = 0; i < 3; i++) free(memory[i]);
      free_product(&x);
    }
}

/* B begins at the second element of A, which is not aligned either. */
static void overlapping(const mix_kernel *kernel) {
  const mix_dtype dtype = kernel->operands;
  const size_t size = mix_dtype_size(dtype);
  for (size_t s = 0; s < SHAPES; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = make_product(dtype, shapes[s][0], shapes[s][1], shapes[s][2], transposes), y = x;
      const int64_t most = x.m > x.n ? x.m * x.k : x.k * x.n;
      char *shared = matrix(dtype, most + 2);
      fill_with_integers(shared, dtype, most + 2);
      y.in[0] = shared + size, y.in[1] = shared + 2 * size;
      check(kernel, &y, "overlapping");
      free(shared);
      free_product(&x);
    }
}

/* X X, X^T X, X X^T, X^T X^T. */
static void by_itself(const mix_kernel *kernel) {
  static const int64_t sides[] = {1, 9, 33, 70, 129};
  const mix_dtype dtype = kernel->operands;
  for (size_t s = 0; s < sizeof sides / sizeof *sides; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = make_product(dtype, sides[s], sides[s], sides[s], transposes), y = x;
      fill(&x, 0, 3);
      y.in[1] = x.in[0];
      check(kernel, &y, "by itself");
      free_product(&x);
    }
  /* Gram matrices of tall and of flat ones. */
  for (int flat = 0; flat < 2; flat++)
    for (int deep = 0; deep < 2; deep++) {
      const int64_t side = deep ? 11 : 45, k = deep ? 1040 : 30;
      product x = make_product(dtype, side, side, k, flat ? 2 : 1), y = x;
      fill(&x, 0, 3);
      y.in[1] = x.in[0];
      check(kernel, &y, "by itself transposed");
      free_product(&x);
    }
}

int main(void) {
  static const kernel_test tests[] = {
      {"unaligned", unaligned}, {"overlapping", overlapping}, {"by_itself", by_itself}};
  return WITH_EACH_KERNEL(tests);
}
