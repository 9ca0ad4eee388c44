/* Products for tests of single kernels: operands, runs as the executor does them, a naive reference, a test
 * for each kernel. */
#ifndef TESTS_BACKEND_GEMM_PRODUCTS_H
#define TESTS_BACKEND_GEMM_PRODUCTS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/emulated_kernels.h"
#include "support/skip.h"
#include "backend/cpu/gemm/kernels.h"
#include "backend/gemm_team.h"
#include "base/alloc.h"
#include "ops/table.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <math.h>
#include <mixtape/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 1;
static inline uint32_t next_random(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33);
}
/* Uniform in [-1, 1), and integers of magnitude below the limit. */
static inline double uniform(void) { return (double)next_random() / (1u << 30) - 1; }
static inline int integer_below(int limit) {
  return (int)(next_random() % (2u * (unsigned)limit - 1)) - limit + 1;
}

static inline const mix_kernel *kernel_named(const mix_kernel *const *rows, const char *name) {
  for (; *rows; rows++)
    if (!strcmp((*rows)->name, name)) return *rows;
  return NULL;
}
static inline const mix_kernel *reference(void) {
  for (const mix_kernel_row *row = mix_ref_kernels; row->op; row++)
    if (row->op == &mix_op_matmul) return row->kernels[0];
  return NULL;
}

typedef struct product {
  const mix_op *op;
  int64_t m, n, k;
  mix_matmul_attributes attributes;
  mix_type inputs[3], output;
  void *in[3], *out;
  const mix_program *program;
} product;

static inline void *zeros(int64_t count) {
  void *data = calloc((size_t)count + 1, sizeof(double));
  assert_non_null(data);
  return data;
}

/* Zeros of exact size, so that the address sanitizer sees an overrun, with the alignment of buffers. */
static inline void *matrix(mix_dtype dtype, int64_t count) {
  const size_t bytes = (size_t)count * mix_dtype_size(dtype);
  void *data = NULL;
  assert_int_equal(posix_memalign(&data, 64, bytes + (bytes == 0)), 0);
  return memset(data, 0, bytes);
}
/* A result filled with a pattern that every element must overwrite. */
static inline void *new_result(const product *x) {
  const int64_t count = mix_shape_size(x->output.shape);
  return memset(matrix(x->output.dtype, count), 0x7f, (size_t)count * mix_dtype_size(x->output.dtype));
}
static inline void store_result_as(product *x, mix_dtype dtype) {
  free(x->out);
  x->output.dtype = dtype;
  x->out = new_result(x);
}

/* Operands are zero. */
static inline product make_product(mix_dtype dtype, int64_t m, int64_t n, int64_t k, int transposes) {
  product x = {.op = &mix_op_matmul, .m = m, .n = n, .k = k};
  x.attributes.transpose_a = transposes & 1, x.attributes.transpose_b = transposes & 2;
  x.inputs[0] = (mix_type){dtype, transposes & 1 ? MIX_SHAPE(k, m) : MIX_SHAPE(m, k)};
  x.inputs[1] = (mix_type){dtype, transposes & 2 ? MIX_SHAPE(n, k) : MIX_SHAPE(k, n)};
  x.output = (mix_type){dtype, MIX_SHAPE(m, n)};
  x.in[0] = matrix(dtype, m * k), x.in[1] = matrix(dtype, k * n);
  x.out = new_result(&x);
  return x;
}

static inline void free_product(product *x) {
  for (int i = 0; i < 3; i++) free(x->in[i]);
  free(x->out);
}

static inline int64_t place(const product *x, int which, int64_t row, int64_t column) {
  const bool transposed = which ? x->attributes.transpose_b : x->attributes.transpose_a;
  return transposed ? column * x->inputs[which].shape.dims[1] + row
                    : row * x->inputs[which].shape.dims[1] + column;
}
static inline void set(product *x, int which, int64_t row, int64_t column, double value) {
  mix_store_double(x->in[which], x->inputs[which].dtype, place(x, which, row, column), value);
}
static inline double get(const product *x, int which, int64_t row, int64_t column) {
  return mix_load_double(x->in[which], x->inputs[which].dtype, place(x, which, row, column));
}
static inline double result(const product *x, int64_t i) {
  return mix_load_double(x->out, x->output.dtype, i);
}

/* `integers`: magnitude limit of the integers; 0: uniform in [-1, 1). */
static inline void fill(product *x, int which, int integers) {
  enum { CHUNK = 256 };
  const int64_t count = mix_shape_size(x->inputs[which].shape);
  const mix_dtype dtype = x->inputs[which].dtype;
  const size_t size = mix_dtype_size(dtype);
  for (int64_t i = 0; i < count; i += CHUNK) {
    double numbers[CHUNK];
    float narrow[CHUNK];
    const int64_t some = count - i < CHUNK ? count - i : CHUNK;
    for (int64_t j = 0; j < some; j++)
      narrow[j] = (float)(numbers[j] = integers ? integer_below(integers) : uniform());
    mix_convert(dtype == MIX_FLOAT64 ? (const void *)numbers : narrow,
                dtype == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32, (char *)x->in[which] + (size_t)i * size,
                dtype, some);
  }
}

/* What a kernel's selection sees: everything but the addresses. */
static inline mix_kernel_args args_of(const product *x) {
  return (mix_kernel_args){.op = x->op,
                           .attributes = &x->attributes,
                           .program = x->program,
                           .precision = mix_matmul_precision_default(),
                           .input_count = x->program && x->in[2] ? 3 : 2,
                           .output_count = 1,
                           .input_types = x->inputs,
                           .output_types = &x->output};
}
/* The kernel that the dispatch chooses; NULL: the reference. */
static inline const mix_kernel *dispatched(const product *x) {
  const mix_kernel_args args = args_of(x);
  const mix_kernel *const *rows = mix_cpu_matmul_kernels;
  while (*rows &&
         (((*rows)->needs & mix_cpu_features()) != (*rows)->needs || (*rows)->unsupported_reason(&args)))
    rows++;
  return *rows;
}

/* Runs as the executor does. The workspace starts as NaNs, and the bytes after it must not change. */
static inline void run_with(const mix_kernel *kernel, product *x, int threads) {
  const void *inputs[3] = {x->in[0], x->in[1], x->in[2]};
  mix_kernel_args args = args_of(x);
  args.inputs = inputs, args.outputs = &x->out;
  assert_non_null(kernel);
  const size_t bytes = kernel->workspace ? kernel->workspace(&args, threads) : 0;
  unsigned char *workspace = mix_alloc_buffer(bytes + 64);
  assert_non_null(workspace);
  memset(workspace, 0xff, bytes + 64);
  args.workspace = workspace;
  if (kernel->prepare) assert_true(kernel->prepare(&args, threads));
  const int size = kernel->serial && kernel->serial(&args) ? 1 : threads;
  run_team(kernel, &args, size);
  if (kernel->release) kernel->release(args.prepared);
  for (int i = 0; i < 64; i++) assert_int_equal(workspace[bytes + (size_t)i], 0xff);
  mix_free_buffer(workspace, bytes + 64);
}
/* The bits must depend on the operands only, not on the number of threads. */
static inline void check_same_bits(const mix_kernel *kernel, product *x) {
  const size_t bytes = mix_value_bytes(x->output.dtype, x->output.shape);
  run_with(kernel, x, 1);
  void *first = x->out;
  for (int threads = 2; threads <= MAX_THREADS; threads++) {
    x->out = new_result(x);
    run_with(kernel, x, threads);
    assert_memory_equal(first, x->out, bytes);
    free(x->out);
  }
  x->out = first;
}

/* A B, and |A| |B| unless `absolute` is NULL, as doubles. It works on arrays of its own, so the sanitizers
 * would only cost time: a third of a test. */
__attribute__((no_sanitize("address", "undefined"))) static inline double *naive(const product *x,
                                                                                 double **absolute) {
  double *a = zeros(x->m * x->k), *b = zeros(x->k * x->n), *sums = zeros(x->m * x->n);
  double *magnitudes = absolute ? zeros(x->m * x->n) : NULL;
  for (int64_t i = 0; i < x->m; i++)
    for (int64_t l = 0; l < x->k; l++) a[i * x->k + l] = get(x, 0, i, l);
  for (int64_t l = 0; l < x->k; l++)
    for (int64_t j = 0; j < x->n; j++) b[l * x->n + j] = get(x, 1, l, j);
  for (int64_t i = 0; i < x->m; i++)
    for (int64_t l = 0; l < x->k; l++) {
      const double factor = a[i * x->k + l], *row = b + l * x->n;
      for (int64_t j = 0; j < x->n; j++) sums[i * x->n + j] += factor * row[j];
      for (int64_t j = 0; absolute && j < x->n; j++) magnitudes[i * x->n + j] += fabs(factor * row[j]);
    }
  free(a), free(b);
  if (absolute) *absolute = magnitudes;
  return sums;
}

/* The sums themselves as float32: a program without instructions. */
static inline const mix_program *sums_as_float32(product *x) {
  static mix_program_load load;
  static mix_program_store store;
  static mix_program program;
  load = (mix_program_load){.input = MIX_FROM_ACCUMULATOR, .dtype = MIX_FLOAT32, .strides = {x->n, 1}};
  store = (mix_program_store){0};
  program = (mix_program){
      .rank = 2, .dims = {x->m, x->n}, .load_count = 1, .store_count = 1, .loads = &load, .stores = &store};
  store_result_as(x, MIX_FLOAT32);
  return x->program = &program;
}

enum kind { FINITE, NAN_, PLUS, MINUS };
static inline enum kind kind_of(double value) {
  return isfinite(value) ? FINITE : isnan(value) ? NAN_ : value > 0 ? PLUS : MINUS;
}

static inline double rounded_to(mix_dtype dtype, double value) {
  unsigned char bytes[8];
  mix_store_double(bytes, dtype, 0, value);
  return mix_load_double(bytes, dtype, 0);
}

/* relu(round(A B) + bias) of small integers, in the storage dtype or, if `wide`, cast to float32. */
static inline void check_bias_relu(const mix_kernel *kernel, mix_dtype dtype, const int64_t *shape,
                                   int transposes, int wide) {
  product x = make_product(dtype, shape[0], shape[1], shape[2], transposes);
  fill(&x, 0, 4), fill(&x, 1, 4);
  x.inputs[2] = (mix_type){dtype, MIX_SHAPE(x.n)};
  x.in[2] = matrix(dtype, x.n);
  for (int64_t j = 0; j < x.n; j++) mix_store_double(x.in[2], dtype, j, integer_below(9));
  mix_program_load loads[2] = {{.input = MIX_FROM_ACCUMULATOR, .dtype = dtype, .strides = {x.n, 1}},
                               {.input = 2, .dtype = dtype, .strides = {0, 1}}};
  mix_instruction instructions[3] = {{.opcode = MIX_OPCODE_ADD, .dtype = dtype, .operands = {0, 1}},
                                     {.opcode = MIX_OPCODE_RELU, .dtype = dtype, .operands = {2}},
                                     {.opcode = MIX_OPCODE_CAST, .dtype = MIX_FLOAT32, .operands = {3}}};
  mix_program_store store = {.output = 0, .reg = wide ? 4 : 3};
  const mix_program program = {.rank = 2,
                               .dims = {x.m, x.n},
                               .load_count = 2,
                               .instruction_count = 2 + wide,
                               .store_count = 1,
                               .loads = loads,
                               .instructions = instructions,
                               .stores = &store};
  x.program = &program;
  if (wide) store_result_as(&x, MIX_FLOAT32);
  double *expected = naive(&x, NULL);
  run_with(kernel, &x, 2);
  for (int64_t i = 0; i < x.m * x.n; i++) {
    const double sum =
        rounded_to(dtype, rounded_to(dtype, expected[i]) + mix_load_double(x.in[2], dtype, i % x.n));
    assert_true((sum > 0 ? sum : 0) == result(&x, i));
  }
  free(expected);
  free_product(&x);
}

/* A batch whose B broadcasts. The threads share each product (3 of 2), or each product has one thread (8 of
 * 2). */
static inline void check_batch(const mix_kernel *kernel, mix_dtype dtype, int count, int64_t k,
                               int transposes) {
  enum { M = 45, N = 70 };
  product x = make_product(dtype, count * M, N, k, transposes & 2);
  x.op = &mix_op_batch_matmul;
  x.attributes.transpose_a = transposes & 1;
  x.inputs[0].shape = transposes & 1 ? MIX_SHAPE(count, k, M) : MIX_SHAPE(count, M, k);
  x.output.shape = MIX_SHAPE(count, M, N);
  fill(&x, 0, 4), fill(&x, 1, 4);
  run_with(kernel, &x, 2);
  for (int b = 0; b < count; b++) {
    product one = x;
    one.op = &mix_op_matmul, one.m = M;
    one.in[0] = (char *)x.in[0] + (size_t)b * M * (size_t)k * mix_dtype_size(dtype);
    one.inputs[0].shape = transposes & 1 ? MIX_SHAPE(k, M) : MIX_SHAPE(M, k);
    double *expected = naive(&one, NULL);
    for (int i = 0; i < M * N; i++)
      assert_true(rounded_to(dtype, expected[i]) == result(&x, (int64_t)b * M * N + i));
    free(expected);
  }
  free_product(&x);
}

static inline const mix_kernel *chosen(mix_dtype dtype, int64_t m, int64_t n, int64_t k, int transposes) {
  product x = make_product(dtype, m, n, k, transposes);
  const mix_kernel *kernel = dispatched(&x);
  free_product(&x);
  return kernel;
}

/* ---- a test for each kernel ---- */

/* Called by name, whatever the dispatch would choose, so that every shape is tested. */
typedef struct kernel_test {
  const char *name;
  void (*check)(const mix_kernel *kernel);
  bool (*concerns)(const mix_kernel *kernel); /* NULL: every kernel */
} kernel_test;

static inline void run_kernel_test(void **state) {
  const void *const *both = *state;
  const mix_kernel *kernel = both[1];
  if (kernel->needs & ~mix_cpu_features()) SKIP("%s is not for this instruction set", kernel->name);
  random_state = 1; /* the same numbers if the test runs alone */
  ((const kernel_test *)both[0])->check(kernel);
}

/* Runs each test with each kernel of the table and each emulated one, as TEST_KERNEL. A kernel that the
 * processor lacks shows as a skipped test. */
static inline int run_with_each_kernel(int count, const kernel_test *tests) {
  enum { MAX = 200, LONGEST = 100 };
  static struct CMUnitTest all[MAX];
  static char names[MAX][LONGEST];
  static const void *states[MAX][2];
  int total = 0;
  for (int t = 0; t < 2 * count; t++) {
    const mix_kernel *const *row = t < count ? mix_cpu_matmul_kernels : mix_emulated_matmul_kernels;
    const kernel_test *test = &tests[t % count];
    for (; *row; row++) {
      if (test->concerns && !test->concerns(*row)) continue;
      if (total == MAX || snprintf(names[total], LONGEST, "%s_%s", test->name, (*row)->name) >= LONGEST)
        return 1;
      states[total][0] = test, states[total][1] = *row;
      all[total] = (struct CMUnitTest){names[total], run_kernel_test, NULL, NULL, states[total]};
      total++;
    }
  }
  return _cmocka_run_group_tests("products", all, (size_t)total, NULL, NULL);
}
#define WITH_EACH_KERNEL(tests) run_with_each_kernel((int)(sizeof(tests) / sizeof *(tests)), tests)

/* Does it sum in float16 blocks? */
static inline bool is_blocked(const mix_kernel *kernel) {
  return kernel->accumulation != MIX_ACCUMULATE_EXACT;
}

/* Selects the accumulation mode that the kernel implements. */
static inline void ask_for_sums_of(const mix_kernel *kernel) {
  mix_set_accumulate(mix_accumulation_name(kernel->accumulation));
}

/* The kernel whose unsupported_reason says which shapes this one can compute: itself, but for chains of 32.
 * Those serve large products under `auto` alone, and can compute the shapes of chains of 16. */
static inline const mix_kernel *shapes_in(const mix_kernel *const *table, const mix_kernel *kernel) {
  const char *chains = strstr(kernel->name, "_t4x32_");
  if (!chains) return kernel;
  char name[64];
  snprintf(name, sizeof name, "%.*s_t4x16_%s", (int)(chains - kernel->name), kernel->name, chains + 7);
  const mix_kernel *other = kernel_named(table, name);
  assert_non_null(other);
  return other;
}
static inline const mix_kernel *shapes_of(const mix_kernel *kernel) {
  return shapes_in(mix_cpu_matmul_kernels, kernel);
}

#endif
