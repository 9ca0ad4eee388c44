/* Products in which an operand, the result or the depth has more than 2^31 elements, for each kind of kernel.
 * Uses at most 0.4 GB of memory. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/enormous.h"
#include "tensor/convert.h"
#include <mixtape/device.h>

enum { FAR = 3 }; /* nonzero rows, columns or numbers of k at the far end */
#define TWO_31 (INT64_C(1) << 31)

typedef struct kind {
  const char *name;
  mix_dtype dtype;
  uint32_t features; /* features that must be present, */
  uint32_t without;  /* and features that are masked */
  const char *accumulate;
} kind;
#define AMX (MIX_CPU_AVX512_BF16 | MIX_CPU_AMX_BF16)
enum { FLOAT16, BFLOAT16, FLOAT16_SUMS, FLOAT16_WIDENED, FLOAT32, FLOAT32_AVX2, KINDS };
static const kind kinds[KINDS] = {
    [FLOAT16] = {"float16", MIX_FLOAT16, 0, 0, "exact"}, /* on AMX tiles if the processor has them */
    [BFLOAT16] = {"bfloat16", MIX_BFLOAT16, 0, 0, "exact"},
    [FLOAT16_SUMS] = {"float16 in float16 sums", MIX_FLOAT16, MIX_CPU_AVX512_FP16, AMX, "blocked"},
    [FLOAT16_WIDENED] = {"float16 widened beside tiles", MIX_FLOAT16, AMX, AMX, "exact"},
    [FLOAT32] = {"float32", MIX_FLOAT32, 0, 0, "exact"},
    [FLOAT32_AVX2] = {"float32 with AVX2 beside AVX-512", MIX_FLOAT32, MIX_CPU_AVX512,
                      AMX | MIX_CPU_AVX512 | MIX_CPU_AVX512_FP16, "exact"},
};

/* Which of m, n and k is enormous. Along it only the last FAR numbers are nonzero. */
typedef enum along { ALONG_M, ALONG_N, ALONG_K } along;
typedef struct product {
  int64_t m, n, k;
  along far;
  bool transpose_a, transpose_b;
} product;

static bool is_far(int64_t i, int64_t count) { return i >= count - FAR; }
static double a_at(const product *p, int64_t i, int64_t k) {
  if (p->far != ALONG_N && !(p->far == ALONG_M ? is_far(i, p->m) : is_far(k, p->k))) return 0;
  return (double)((i + 2 * k) % 5 - 2);
}
static double b_at(const product *p, int64_t k, int64_t j) {
  if (p->far != ALONG_M && !(p->far == ALONG_N ? is_far(j, p->n) : is_far(k, p->k))) return 0;
  return (double)((k + j) % 3 + 1);
}
static double sum_at(const product *p, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = p->far == ALONG_K ? p->k - FAR : 0; k < p->k; k++) sum += a_at(p, i, k) * b_at(p, k, j);
  return sum;
}

static double rounded(mix_dtype dtype, double value) {
  double element;
  mix_store_double(&element, dtype, 0, value);
  return mix_load_double(&element, dtype, 0);
}

/* Writes the nonzero part of an operand (rows, columns). Uses small pages, because the numbers are few and
 * scattered. */
static void set_far(operand x, bool transposed, int64_t rows, int64_t columns, const product *p,
                    double (*value)(const product *, int64_t, int64_t), bool far_rows, bool far_columns) {
  madvise(x.data, bytes_of(x), MADV_NOHUGEPAGE);
  for (int64_t i = far_rows ? rows - FAR : 0; i < rows; i++)
    for (int64_t j = far_columns ? columns - FAR : 0; j < columns; j++)
      mix_store_double(x.data, x.dtype, transposed ? j * rows + i : i * columns + j, value(p, i, j));
  madvise(x.data, bytes_of(x), MADV_HUGEPAGE);
}

static void check(const kind *kind, product p) {
  mix_matmul_attributes attributes = {.transpose_a = p.transpose_a, .transpose_b = p.transpose_b};
  operand inputs[2] = {vast(kind->dtype, p.transpose_a ? MIX_SHAPE(p.k, p.m) : MIX_SHAPE(p.m, p.k)),
                       vast(kind->dtype, p.transpose_b ? MIX_SHAPE(p.n, p.k) : MIX_SHAPE(p.k, p.n))};
  const bool small = p.m * p.n * 2 <= 2 * (int64_t)WINDOW;
  operand output = small ? vast(kind->dtype, MIX_SHAPE(p.m, p.n)) : written(kind->dtype, MIX_SHAPE(p.m, p.n));
  if (small) memset(output.data, UNTOUCHED, bytes_of(output));
  set_far(inputs[0], p.transpose_a, p.m, p.k, &p, a_at, p.far == ALONG_M, p.far == ALONG_K);
  set_far(inputs[1], p.transpose_b, p.k, p.n, &p, b_at, p.far == ALONG_K, p.far == ALONG_N);
  run(&mix_op_matmul, &attributes, 2, inputs, &output);
  if (small)
    for (int64_t i = 0; i < p.m * p.n; i++) assert_true(element(output, i) == sum_at(&p, i / p.n, i % p.n));
  else
    FOR_WRITTEN(output, i) {
      const int64_t row = i / p.n, column = i % p.n;
      const bool zero = p.far == ALONG_M ? !is_far(row, p.m) : p.far == ALONG_N && !is_far(column, p.n);
      assert_true(element(output, i) == (zero ? 0 : sum_at(&p, row, column)));
    }
  for (int i = 0; i < 2; i++) forget(inputs[i]);
  forget(output);
}

/* Tiles need a depth of 10 and float16 sums one of 32; both need more than 12 rows and columns. */
static int64_t depth_of(const kind *kind) { return strcmp(kind->accumulate, "blocked") ? 17 : 32; }

static void high_result(const kind *kind) {
  check(kind, (product){(1 << 21) + 3, 1027, depth_of(kind), ALONG_M, false, false});
}
static void wide_operand_and_result(const kind *kind) {
  check(kind, (product){16, (1 << 27) + 5, depth_of(kind), ALONG_N, false, false});
}
static void high_operand(const kind *kind) {
  check(kind, (product){(1 << 21) + 3, 16, 1027, ALONG_M, false, false});
}
static void wide_operand_transposed(const kind *kind) {
  check(kind, (product){(1 << 21) + 3, 16, 1027, ALONG_M, true, false});
}
static void high_operand_transposed(const kind *kind) {
  check(kind, (product){16, (1 << 21) + 3, 1027, ALONG_N, false, true});
}
/* The gradient of a one-unit kernel: computed transposed, and reads the rows of A. */
static void depth_of_a_gradient(const kind *kind) {
  check(kind, (product){1027, 1, (1 << 21) + 3, ALONG_K, true, false});
}
static void depth(const kind *kind) { check(kind, (product){16, 16, (1 << 27) + 5, ALONG_K, false, false}); }
/* The narrow operand is widened in chunks. */
static void depth_of_vectors(const kind *kind) {
  check(kind, (product){1, 1, TWO_31 + 5, ALONG_K, false, false});
}

/* Many products of ordinary size; only the last is nonzero. */
static void batch(const kind *kind) {
  const int64_t batches = (1 << 16) + 3, k = 1027;
  enum { M = 32, N = 16 };
  const product one = {M, N, k, ALONG_N, false, false}; /* all of A, the last columns of B */
  operand inputs[2] = {vast(kind->dtype, MIX_SHAPE(batches, M, k)),
                       operand_of(kind->dtype, MIX_SHAPE(k, N), NULL)};
  operand output = written(kind->dtype, MIX_SHAPE(batches, M, N));
  operand last = {kind->dtype, MIX_SHAPE(M, k),
                  (char *)inputs[0].data + (size_t)((batches - 1) * M * k) * mix_dtype_size(kind->dtype)};
  set_far(last, false, M, k, &one, a_at, false, false);
  set_far(inputs[1], false, k, N, &one, b_at, false, true);
  run(&mix_op_batch_matmul, &(mix_matmul_attributes){.transpose_a = false}, 2, inputs, &output);
  FOR_WRITTEN(output, i)
  assert_true(element(output, i) ==
              (i < (batches - 1) * M * N ? 0 : rounded(kind->dtype, sum_at(&one, i / N % M, i % N))));
  forget(inputs[0]), forget(output);
  free(inputs[1].data);
}

static void on_kinds(unsigned chosen, void (*check_kind)(const kind *)) {
  const uint32_t found = mix_cpu_features();
  for (int i = 0; i < KINDS; i++) {
    if (!(chosen >> i & 1)) continue;
    if ((kinds[i].features & found) != kinds[i].features) {
      print_message("no %s on this processor: skipped\n", kinds[i].name);
      continue;
    }
    mix_cpu_override(found & ~kinds[i].without);
    mix_set_accumulate(kinds[i].accumulate);
    check_kind(&kinds[i]);
  }
  mix_cpu_override(UINT32_MAX);
  mix_set_accumulate("auto");
}

/* The kinds differ in how they pack, multiply and store. Each does each of these once, but not in each
 * test. */
#define ON_KINDS(name, chosen)                                                                               \
  static void test_##name(void **state) {                                                                    \
    (void)state;                                                                                             \
    on_kinds(chosen, name);                                                                                  \
  }
ON_KINDS(high_result, 1 << FLOAT16 | 1 << FLOAT16_SUMS | 1 << FLOAT32)
ON_KINDS(wide_operand_and_result, 1 << BFLOAT16 | 1 << FLOAT16_SUMS | 1 << FLOAT32)
ON_KINDS(high_operand,
         1 << FLOAT16 | 1 << FLOAT16_SUMS | 1 << FLOAT16_WIDENED | 1 << FLOAT32 | 1 << FLOAT32_AVX2)
ON_KINDS(wide_operand_transposed, 1 << BFLOAT16 | 1 << FLOAT16_SUMS | 1 << FLOAT32)
ON_KINDS(high_operand_transposed, 1 << FLOAT16 | 1 << FLOAT16_SUMS | 1 << FLOAT32)
ON_KINDS(batch, 1 << FLOAT16 | 1 << FLOAT32)
ON_KINDS(depth, 1 << FLOAT16 | 1 << BFLOAT16 | 1 << FLOAT16_SUMS | 1 << FLOAT32)
ON_KINDS(depth_of_a_gradient, 1 << FLOAT16 | 1 << BFLOAT16 | 1 << FLOAT32)
ON_KINDS(depth_of_vectors, 1 << FLOAT16_WIDENED | 1 << BFLOAT16 | 1 << FLOAT32)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_high_result),
      cmocka_unit_test(test_wide_operand_and_result),
      cmocka_unit_test(test_high_operand),
      cmocka_unit_test(test_wide_operand_transposed),
      cmocka_unit_test(test_high_operand_transposed),
      cmocka_unit_test(test_batch),
      cmocka_unit_test(test_depth),
      cmocka_unit_test(test_depth_of_a_gradient),
      cmocka_unit_test(test_depth_of_vectors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
