/* Products with few rows, which read B in place along its rows: the bits of the same rows among many if B is
 * not transposed, sums of k blocks if the transposed product is computed, and NaN and infinity at the
 * edges. */
/* Holds docs/NUMERICS.md: Products. */
#include "backend/gemm_plans.h"
#include "backend/instruction_sets.h"

static const struct {
  mix_dtype dtype;
  const char *type;
} dtypes[] = {{MIX_FLOAT16, "f16_acc32"},
              {MIX_BFLOAT16, "bf16_acc32"},
              {MIX_FLOAT32, "f32_acc32"},
              {MIX_FLOAT64, "f64_acc64"}};
enum { DTYPES = sizeof dtypes / sizeof *dtypes, SHORT = 300, BLOCKS = 777, MORE_BLOCKS = 1250 };

static const mix_kernel *kernel_of(int dtype, const instruction_set *set) {
  char name[64];
  snprintf(name, sizeof name, "gemm_%s_%s", dtypes[dtype].type, set->name);
  return kernel_named(mix_cpu_matmul_kernels, name);
}

/* Does an engine without a kernel for these dtypes read B along its rows? */
static bool is_small_m(const product *x) {
  const bool wide = x->inputs[0].dtype == MIX_FLOAT64;
  const mix_gemm_engine *engine = wide ? &mix_gemm_f64_generic : &mix_gemm_f32_generic;
  return plan_of(engine, x, 1).algorithm == &mix_gemm_small_m;
}

/* The first of 40 rows alone; A as stored or transposed. */
static void few_rows_have_the_bits_of_many(void **state) {
  const instruction_set *isa = needed_instruction_set(state);
  static const int64_t depths[] = {SHORT, BLOCKS, MORE_BLOCKS}, heights[] = {1, 2, 7, 16};
  enum { MANY = 40, COLUMNS = 1061 };
  for (int d = 0; d < DTYPES; d++)
    for (int i = 0; i < 3; i++)
      for (int transposes = 0; transposes < 2; transposes++) {
        product many = make_product(dtypes[d].dtype, MANY, COLUMNS, depths[i], transposes);
        fill(&many, 0, 0), fill(&many, 1, 0);
        assert_false(is_small_m(&many));
        run_with(kernel_of(d, isa), &many, 2);
        for (int h = 0; h < 4; h++) {
          product few = make_product(dtypes[d].dtype, heights[h], COLUMNS, depths[i], transposes);
          fill(&few, 1, 0);
          for (int64_t row = 0; row < few.m; row++)
            for (int64_t k = 0; k < few.k; k++) set(&few, 0, row, k, get(&many, 0, row, k));
          memcpy(few.in[1], many.in[1], (size_t)(few.k * few.n) * mix_dtype_size(few.output.dtype));
          assert_true(is_small_m(&few));
          check_same_bits(kernel_of(d, isa), &few);
          assert_memory_equal(few.out, many.out, (size_t)(few.m * few.n) * mix_dtype_size(few.output.dtype));
          free_product(&few);
        }
        free_product(&many);
      }
}

/* Deep products of a transposed A and few columns: C^T is computed. */
static void transposed_products_of_integers(void **state) {
  const instruction_set *isa = needed_instruction_set(state);
  static const int64_t columns[] = {1, 7, 16};
  for (int d = 0; d < DTYPES; d++)
    for (int i = 0; i < 3; i++) {
      product x = make_product(dtypes[d].dtype, 333, columns[i], 1100, 1);
      fill(&x, 0, 2), fill(&x, 1, 2);
      double *expected = naive(&x, NULL);
      check_same_bits(kernel_of(d, isa), &x);
      for (int64_t j = 0; j < x.m * x.n; j++)
        assert_true(rounded_to(dtypes[d].dtype, expected[j]) == result(&x, j));
      free(expected);
      free_product(&x);
    }
}

/* A NaN or an infinity in A or B, at the corners of vectors, tiles and steps of k. */
static void not_finite(void **state) {
  const instruction_set *isa = needed_instruction_set(state);
  static const double values[] = {NAN, INFINITY, -INFINITY};
  enum { ROWS = 3, COLUMNS = 1031, DEPTH = 389 };
  static const int64_t ks[] = {0, 7, 194, DEPTH - 1}, columns[] = {0, 15, 1024, COLUMNS - 1};
  for (int d = 0; d < DTYPES; d++)
    for (int v = 0; v < 3; v++)
      for (int which = 0; which < 2; which++)
        for (int i = 0; i < 4; i++) {
          product x = make_product(dtypes[d].dtype, ROWS, COLUMNS, DEPTH, 0);
          fill(&x, 0, 3), fill(&x, 1, 3);
          if (which)
            set(&x, 1, ks[i], columns[i], values[v]);
          else
            set(&x, 0, i % ROWS, ks[i], values[v]);
          assert_true(is_small_m(&x));
          double *expected = naive(&x, NULL);
          run_with(kernel_of(d, isa), &x, 2);
          for (int64_t j = 0; j < x.m * x.n; j++) {
            assert_int_equal(kind_of(expected[j]), kind_of(result(&x, j)));
            if (isfinite(expected[j])) assert_true(rounded_to(dtypes[d].dtype, expected[j]) == result(&x, j));
          }
          free(expected);
          free_product(&x);
        }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_SET(few_rows_have_the_bits_of_many),
      ON_EACH_SET(transposed_products_of_integers),
      ON_EACH_SET(not_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
