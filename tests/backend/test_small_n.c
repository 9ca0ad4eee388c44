/* Products with few columns: the bits that docs/NUMERICS.md promises (a chain of fused multiply-adds for each
 * lane, then the lanes by halving), for any number of chunks that the narrow operand is widened in; and its
 * memory use. */
/* Holds docs/NUMERICS.md: Products. */
#include "support/skip.h"
#include "backend/gemm_products.h"
#include "backend/instruction_sets.h"

static const struct {
  mix_dtype dtype;
  const char *type;
  bool wide;
} dtypes[] = {{MIX_FLOAT16, "f16_acc32", false},
              {MIX_BFLOAT16, "bf16_acc32", false},
              {MIX_FLOAT32, "f32_acc32", false},
              {MIX_FLOAT64, "f64_acc64", true}};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static const mix_kernel *kernel_of(int dtype, const instruction_set *set) {
  char name[64];
  snprintf(name, sizeof name, "gemm_%s_%s", dtypes[dtype].type, set->name);
  return kernel_named(mix_cpu_matmul_kernels, name);
}

/* `a` and `b` as rows along k, as doubles. */
static double sum_of_lanes(const double *a, const double *b, int64_t k, int lanes, bool wide, bool fused) {
  double sums[16] = {0};
  for (int64_t i = 0; i < k; i++) {
    double *sum = &sums[i % lanes];
    if (wide)
      *sum = fused ? fma(a[i], b[i], *sum) : a[i] * b[i] + *sum;
    else
      *sum = fused ? fmaf((float)a[i], (float)b[i], (float)*sum) : (float)a[i] * (float)b[i] + (float)*sum;
  }
  for (int half = lanes / 2; half; half /= 2)
    for (int l = 0; l < half; l++)
      sums[l] = wide ? sums[l] + sums[l + half] : (float)sums[l] + (float)sums[l + half];
  return sums[0];
}

static double *rows_along_k(const product *x, int which) {
  const int64_t count = which ? x->n : x->m;
  double *rows = zeros(count * x->k);
  for (int64_t i = 0; i < count; i++)
    for (int64_t l = 0; l < x->k; l++) rows[i * x->k + l] = which ? get(x, 1, l, i) : get(x, 0, i, l);
  return rows;
}

static void check_bits_of(int first, int end, const instruction_set *set, int64_t m, int64_t n, int64_t k,
                          int transposes) {
  const int vector = set->features & MIX_CPU_AVX512 ? 64 : set->features & MIX_CPU_AVX2 ? 32 : 16; /* bytes */
  const bool fused = set->features != 0;
  for (int d = first; d < end; d++) {
    product x = make_product(dtypes[d].dtype, m, n, k, transposes);
    const size_t size = mix_dtype_size(dtypes[d].dtype);
    const int lanes = vector / (dtypes[d].wide ? 8 : 4);
    fill(&x, 0, 0), fill(&x, 1, 0);
    double *a = rows_along_k(&x, 0), *b = rows_along_k(&x, 1);
    for (int threads = 1; threads <= 3; threads += 2) {
      memset(x.out, 0x7f, (size_t)(m * n) * size);
      run_with(kernel_of(d, set), &x, threads);
      const int64_t count = m * n,
                    samples = count < 64 ? count : 64; /* the first and the last element are included */
      for (int64_t j = 0; j < samples; j++) {
        const int64_t i = samples > 1 ? j * (count - 1) / (samples - 1) : 0;
        double wanted;
        mix_store_double(&wanted, dtypes[d].dtype, 0,
                         sum_of_lanes(a + i / n * k, b + i % n * k, k, lanes, dtypes[d].wide, fused));
        assert_memory_equal((char *)x.out + (size_t)i * size, &wanted, size);
      }
    }
    free(a), free(b);
    free_product(&x);
  }
}

static void check_bits(const instruction_set *set, int64_t m, int64_t n, int64_t k, int transposes) {
  check_bits_of(0, DTYPES, set, m, n, k, transposes);
}

/* k so large that the second-level cache does not hold that many rows of float32, whatever share of it a
 * chunk takes. */
static int64_t more_than_the_cache(int64_t columns) { return mix_cpu_cache(2) / 4 / columns + 1003; }

static void bits_of_products_in_chunks(void **state) {
  const instruction_set *set = needed_instruction_set(state);
  check_bits(set, 3, 12, more_than_the_cache(12), 0);
  check_bits(set, 2, 5, more_than_the_cache(5), 2);
  check_bits(set, 3, 1, more_than_the_cache(2), 0); /* a single column is contiguous along k */
  check_bits(set, 1, 1, more_than_the_cache(2), 3);
  check_bits(set, 7, 19, more_than_the_cache(7), 2); /* the few rows of A are the narrow operand */
}

static void bits_of_products_in_one_chunk(void **state) {
  const instruction_set *set = needed_instruction_set(state);
  check_bits(set, 5, 12, 1025, 0);
  check_bits(set, 66, 3, 1039, 2);
  check_bits(set, 1, 1, 1100, 0);
}

/* More rows than one chunk holds. */
static void bits_of_many_rows(void **state) {
  const instruction_set *set = needed_instruction_set(state);
  check_bits(set, 515, 12, 8 + more_than_the_cache(12) / 2, 0);
}

/* The form of oneDNN's AVX-512 sgemm, and so TensorFlow's, for 2 to 15 rows times a transposed operand. */
static void bits_of_few_rows_in_float32(void **state) {
  const instruction_set *set = needed_instruction_set(state);
  static const int64_t columns[] = {1, 10, 33, 64}, depths[] = {1, 10, 64, 700, 1024};
  if (!(set->features & MIX_CPU_AVX512)) SKIP("it is a form of AVX-512 alone");
  for (int64_t m = 2; m <= 15; m++)
    for (int n = 0; n < 4; n++)
      for (int k = 0; k < 5; k++) check_bits_of(2, 3, set, m, columns[n], depths[k], 2);
}

/* k = 2^40 and up to 12 columns: a few mebibytes a thread. */
static void workspace_does_not_grow_with_depth(void **state) {
  const instruction_set *set = needed_instruction_set(state);
  const int64_t k = INT64_C(1) << 40;
  for (int d = 0; d < DTYPES; d++)
    for (int64_t n = 1; n <= 12; n++) {
      const mix_matmul_attributes attributes = {.transpose_b = n % 2 == 0};
      const mix_type inputs[] = {
          {dtypes[d].dtype, MIX_SHAPE(1, k)},
          {dtypes[d].dtype, attributes.transpose_b ? MIX_SHAPE(n, k) : MIX_SHAPE(k, n)}};
      const mix_type output = {dtypes[d].dtype, MIX_SHAPE(1, n)};
      const mix_kernel_args args = {.op = &mix_op_matmul,
                                    .attributes = &attributes,
                                    .input_count = 2,
                                    .output_count = 1,
                                    .input_types = inputs,
                                    .output_types = &output};
      const size_t bytes = kernel_of(d, set)->workspace(&args, 2);
      assert_true(bytes > 0 && bytes < 2 * ((size_t)mix_cpu_cache(2) + (4u << 20)));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_SET(bits_of_products_in_chunks),
      ON_EACH_SET(bits_of_products_in_one_chunk),
      ON_EACH_SET(bits_of_many_rows),
      ON_EACH_SET(bits_of_few_rows_in_float32),
      ON_EACH_SET(workspace_does_not_grow_with_depth),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
