/* Matrix products of the CPU with exact accumulation: every engine against plain loops. Oracles: integer data whose products and sums are exact in every
 * dtype (tolerance 0); the identity (A B) x = A (B x) for a big product; the bound k eps |A||B| on random data. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/cpu/gemm/kernels.h"
#include "backend/gemm_team.h"
#include "base/alloc.h"
#include "ops/table.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <math.h>
#include <mixtape/device.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PRODUCTS = 8 };

static uint64_t state = 1;
static uint32_t next_random(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}
static int small_integer(void) { return (int)(next_random() % 5) - 2; }

/* A product and its operands; `batch` leading dimensions of A, B where it is a batch. */
typedef struct product {
  const mix_op *op;
  mix_dtype dtype;
  mix_matmul_attributes attributes;
  mix_kernel_value inputs[4], output;
  const void *in[4];
  void *out;
  const mix_program *program;
} product;

static const mix_kernel *kernel_for(const mix_kernel_args *args) {
  const mix_kernel *const *rows = args->op == &mix_op_batch_matmul ? mix_cpu_batch_matmul_kernels : mix_cpu_matmul_kernels;
  for (; *rows; rows++)
    if (((*rows)->needs & mix_cpu_features()) == (*rows)->needs && !(*rows)->refuses(args)) return *rows;
  return NULL;
}

/* Runs as the executor does: workspace asked for, prepared, then called by every thread, or by one where the kernel is serial. */
static void run(product *x, int threads) {
  mix_kernel_args args = {.op = x->op,
                          .attributes = &x->attributes,
                          .program = x->program,
                          .input_count = x->program ? 3 : 2,
                          .output_count = 1,
                          .input_types = x->inputs,
                          .output_types = &x->output,
                          .inputs = x->in,
                          .outputs = &x->out};
  const mix_kernel *kernel = kernel_for(&args);
  assert_non_null(kernel);
  const size_t bytes = kernel->workspace(&args, threads);
  unsigned char *workspace = mix_alloc_buffer(bytes + 64);
  assert_non_null(workspace);
  memset(workspace, 0xff, bytes + 64); /* NaNs: contents of a workspace are undefined */
  args.workspace = workspace;
  assert_true(kernel->prepare(&args, threads));
  const int size = kernel->serial(&args) ? 1 : threads;
  run_team(kernel, &args, size);
  kernel->unprepare(args.prepared);
  for (int i = 0; i < 64; i++) assert_int_equal(workspace[bytes + (size_t)i], 0xff); /* stays inside what it asked for */
  mix_free_buffer(workspace, bytes + 64);
}

/* A buffer that ends exactly where the data end would hide overreads only from a checker: the suite runs under ASan too. */
static void *matrix(mix_dtype dtype, int64_t count, bool integers) {
  void *data = malloc((size_t)count * mix_dtype_size(dtype) + (count == 0));
  assert_non_null(data);
  for (int64_t i = 0; i < count; i++)
    mix_store_double(data, dtype, i, integers ? small_integer() : (double)next_random() / (1u << 30) - 1);
  return data;
}

static product make_product(mix_dtype dtype, int64_t m, int64_t n, int64_t k, int transposes, bool integers) {
  product x = {.op = &mix_op_matmul, .dtype = dtype};
  x.attributes.transpose_a = transposes & 1, x.attributes.transpose_b = transposes & 2;
  x.inputs[0] = (mix_kernel_value){dtype, transposes & 1 ? MIX_SHAPE(k, m) : MIX_SHAPE(m, k)};
  x.inputs[1] = (mix_kernel_value){dtype, transposes & 2 ? MIX_SHAPE(n, k) : MIX_SHAPE(k, n)};
  x.output = (mix_kernel_value){dtype, MIX_SHAPE(m, n)};
  x.in[0] = matrix(dtype, m * k, integers), x.in[1] = matrix(dtype, k * n, integers);
  assert_int_equal(posix_memalign(&x.out, 64, (size_t)(m * n) * mix_dtype_size(dtype) + 1),
                   0); /* as buffers are: streamed results need it */
  memset(x.out, 0x7f, (size_t)(m * n) * mix_dtype_size(dtype));
  return x;
}

static void free_product(product *x) {
  for (int i = 0; i < 4; i++) free((void *)x->in[i]);
  free(x->out);
}

static double operand(const product *x, int which, int64_t row, int64_t column) {
  const mix_shape *s = &x->inputs[which].shape;
  const bool turned = which ? x->attributes.transpose_b : x->attributes.transpose_a;
  const int64_t i = turned ? column * s->dims[1] + row : row * s->dims[1] + column;
  return mix_load_double(x->in[which], x->dtype, i);
}

/* Product, and with `absolute` the product of absolute values, as doubles. */
static void naive(const product *x, double *sums, double *absolute) {
  const int64_t m = x->output.shape.dims[0], n = x->output.shape.dims[1];
  const int64_t k = x->inputs[0].shape.dims[!x->attributes.transpose_a];
  double *b = malloc(sizeof *b * (size_t)(k * n + 1));
  for (int64_t l = 0; l < k; l++)
    for (int64_t j = 0; j < n; j++) b[l * n + j] = operand(x, 1, l, j);
  for (int64_t i = 0; i < m * n; i++) sums[i] = 0;
  for (int64_t i = 0; absolute && i < m * n; i++) absolute[i] = 0;
  for (int64_t i = 0; i < m; i++)
    for (int64_t l = 0; l < k; l++) {
      const double a = operand(x, 0, i, l);
      for (int64_t j = 0; j < n; j++) sums[i * n + j] += a * b[l * n + j];
      for (int64_t j = 0; absolute && j < n; j++) absolute[i * n + j] += fabs(a * b[l * n + j]);
    }
  free(b);
}

static void check_exact(mix_dtype dtype, int64_t m, int64_t n, int64_t k, int transposes, int threads) {
  product x = make_product(dtype, m, n, k, transposes, true);
  double *expected = malloc(sizeof *expected * (size_t)(m * n + 1));
  naive(&x, expected, NULL);
  run(&x, threads);
  for (int64_t i = 0; i < m * n; i++) {
    /* |sum| can pass 2^11 (float16), 2^8 (bfloat16) only by rounding at the store: compare what the exact sum rounds to. */
    unsigned char rounded[8];
    mix_store_double(rounded, dtype, 0, expected[i]);
    if (memcmp(rounded, (char *)x.out + (size_t)i * mix_dtype_size(dtype), mix_dtype_size(dtype)) &&
        !(expected[i] == 0 && mix_load_double(x.out, dtype, i) == 0))
      fail_msg("%s %lldx%lldx%lld transposes %d threads %d features %#x: element %lld is %g, not %g", mix_dtype_name(dtype),
               (long long)m, (long long)n, (long long)k, transposes, threads, mix_cpu_features(), (long long)i,
               mix_load_double(x.out, dtype, i), expected[i]);
  }
  free(expected);
  free_product(&x);
}

static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT64};

static void check_all_shapes(uint32_t features) {
  mix_cpu_override(UINT32_MAX); /* a failed test may have left its own */
  if ((mix_cpu_found() & features) != features) skip();
  mix_cpu_override(features);
  /* Around the edges of tiles (14x32, 6x16, 4x8, and half of the columns for float64), of vectors, of blocks of k, of the
   * thresholds of the dot and the swapped form (12 and 28 columns, k 256); every dimension zero and one. */
  static const int64_t shapes[][3] = {
      {1, 1, 1},     {0, 5, 3},     {5, 0, 3},     {5, 3, 0},     {40, 40, 0},   {14, 32, 8},    {15, 33, 9},
      {13, 31, 7},   {28, 64, 16},  {29, 65, 17},  {6, 16, 3},    {7, 17, 5},    {4, 8, 4},      {5, 9, 64},
      {3, 100, 65},  {100, 3, 65},  {64, 64, 64},  {57, 10, 300}, {10, 57, 300}, {33, 12, 257},  {33, 13, 257},
      {40, 28, 270}, {41, 29, 270}, {1, 70, 300},  {70, 1, 300},  {2, 2, 1000},  {61, 170, 410}, {130, 161, 33},
      {128, 10, 64}, {64, 10, 128}, {200, 16, 10}, {37, 1030, 5}, {2100, 9, 3},  {60, 300, 801},
  };
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
          state = s * 100 + (size_t)transposes + 7; /* the failing case's own seed */
          check_exact(dtypes[d], shapes[s][0], shapes[s][1], shapes[s][2], transposes, threads);
        }
  mix_cpu_override(UINT32_MAX);
}

static void exact_on_integers_generic(void **unused) {
  (void)unused;
  check_all_shapes(0);
}
static void exact_on_integers_avx2(void **unused) {
  (void)unused;
  check_all_shapes(MIX_CPU_AVX2);
}
static void exact_on_integers_avx512(void **unused) {
  (void)unused;
  check_all_shapes(MIX_CPU_AVX2 | MIX_CPU_AVX512);
}
static void exact_on_integers_here(void **unused) {
  (void)unused;
  mix_cpu_override(UINT32_MAX);
  check_all_shapes(mix_cpu_found());
}

/* Results larger than the caches of shallow products are streamed past them, in whole lines where they are aligned. The bytes of such a
 * store meet those of the threads' other ones at the edges of their shares. */
static void shallow_products_stream_their_result(void **unused) {
  (void)unused;
  static const uint32_t sets[] = {MIX_CPU_AVX2, MIX_CPU_AVX2 | MIX_CPU_AVX512};
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    mix_cpu_override(UINT32_MAX);
    if ((mix_cpu_found() & sets[i]) != sets[i]) continue;
    mix_cpu_override(sets[i]);
    for (size_t d = 1; d < 3; d++) {
      check_exact(dtypes[d], 2063, 4128, 3, 2, 2); /* 16 MiB and more, rows of whole lines */
      check_exact(dtypes[d], 2063, 4129, 2, 0, 2); /* rows that no line begins at: not streamed */
    }
  }
  mix_cpu_override(UINT32_MAX);
}

/* Operands that share memory, at addresses aligned to their elements alone: B begins at the second element of A. */
static void overlapping_and_unaligned_operands(void **unused) {
  (void)unused;
  static const uint32_t sets[] = {0, MIX_CPU_AVX2, MIX_CPU_AVX2 | MIX_CPU_AVX512, UINT32_MAX};
  static const int64_t shapes[][3] = {{70, 70, 70}, {33, 65, 130}, {40, 10, 300}, {1, 90, 80}};
  for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
    if (sets[set] != UINT32_MAX && (mix_cpu_found() & sets[set]) != sets[set]) continue;
    mix_cpu_override(sets[set]);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (int transposes = 0; transposes < 4; transposes++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
          const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2], most = m > n ? m * k : n * k;
          product x = make_product(dtypes[d], m, n, k, transposes, true);
          char *shared = matrix(dtypes[d], most + 2, true);
          free((void *)x.in[0]), free((void *)x.in[1]);
          x.in[0] = shared + mix_dtype_size(dtypes[d]), x.in[1] = shared + 2 * mix_dtype_size(dtypes[d]);
          double *expected = malloc(sizeof *expected * (size_t)(m * n));
          naive(&x, expected, NULL);
          run(&x, 2);
          for (int64_t i = 0; i < m * n; i++) {
            unsigned char rounded[8];
            mix_store_double(rounded, dtypes[d], 0, expected[i]);
            assert_true(mix_load_double(rounded, dtypes[d], 0) == mix_load_double(x.out, dtypes[d], i));
          }
          x.in[0] = shared, x.in[1] = NULL;
          free(expected);
          free_product(&x);
        }
  }
  mix_cpu_override(UINT32_MAX);
}

/* C bounded away from its exact value by (k + 2) eps(sums) |A||B| (Higham, Accuracy and Stability of Numerical Algorithms, 3.5:
 * any order of summation) plus half a unit of the storage dtype. */
static void bound_on_random_data(void **unused) {
  (void)unused;
  static const int64_t shapes[][3] = {{67, 90, 830}, {130, 10, 900}, {90, 20, 700}, {10, 70, 1100}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        product x = make_product(dtypes[d], m, n, k, transposes, false);
        double *expected = malloc(sizeof *expected * (size_t)(m * n)), *absolute = malloc(sizeof *absolute * (size_t)(m * n));
        naive(&x, expected, absolute);
        run(&x, 2);
        const double unit = dtypes[d] == MIX_FLOAT64 ? 0x1p-53 : 0x1p-24;
        const double half = dtypes[d] == MIX_FLOAT16 ? 0x1p-11 : dtypes[d] == MIX_BFLOAT16 ? 0x1p-8 : 0;
        for (int64_t i = 0; i < m * n; i++) {
          const double bound =
              (double)(k + 2) * unit * absolute[i] * (1 + half) + half * fabs(expected[i]) + (half > 0 ? 0x1p-24 : 0);
          if (!(fabs(mix_load_double(x.out, dtypes[d], i) - expected[i]) <= bound))
            fail_msg("%s shape %zu transposes %d element %lld", mix_dtype_name(dtypes[d]), s, transposes, (long long)i);
        }
        free(expected), free(absolute);
        free_product(&x);
      }
}

/* (A B) x against A (B x), x of ones and minus ones: a big product at the price of matrix-vector products. Each side is within
 * (k + n + 2) eps |A||B||x| of the exact value. */
static void residual_of_a_big_product(void **unused) {
  (void)unused;
  const int64_t m = 700, n = 1500, k = 1300;
  for (int transposes = 0; transposes < 4; transposes++) {
    product x = make_product(MIX_FLOAT32, m, n, k, transposes, false);
    run(&x, 2);
    double *bx = calloc((size_t)k, sizeof *bx), *ax = calloc((size_t)k, sizeof *ax);
    for (int64_t l = 0; l < k; l++)
      for (int64_t j = 0; j < n; j++) {
        const double b = operand(&x, 1, l, j);
        bx[l] += j % 3 ? b : -b, ax[l] += fabs(b);
      }
    for (int64_t i = 0; i < m; i++) {
      double left = 0, right = 0, scale = 0;
      for (int64_t j = 0; j < n; j++) left += (j % 3 ? 1 : -1) * (double)((float *)x.out)[i * n + j];
      for (int64_t l = 0; l < k; l++) right += operand(&x, 0, i, l) * bx[l], scale += fabs(operand(&x, 0, i, l)) * ax[l];
      assert_true(fabs(left - right) <= (double)(k + 2) * 0x1p-24 * scale);
      assert_true(fabs(right) > 0);
    }
    free(bx), free(ax);
    free_product(&x);
  }
}

/* Bits are a function of the operands: not of the run, nor of the number of threads. */
static void same_bits_for_any_number_of_threads(void **unused) {
  (void)unused;
  static const int64_t shapes[][3] = {{130, 257, 900}, {300, 10, 900}, {90, 20, 700}, {10, 300, 900}, {64, 64, 64}, {37, 530, 410}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        product x = make_product(dtypes[d], shapes[s][0], shapes[s][1], shapes[s][2], transposes, false);
        const size_t bytes = mix_value_bytes(x.output.dtype, x.output.shape);
        run(&x, 1);
        void *first = malloc(bytes);
        memcpy(first, x.out, bytes);
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
          memset(x.out, 0, bytes);
          run(&x, threads);
          assert_memory_equal(first, x.out, bytes);
        }
        free(first);
        free_product(&x);
      }
}

/* A NaN or an infinity reaches every element that it belongs to, and no other. */
static void not_finite_propagates(void **unused) {
  (void)unused;
  static const int64_t shapes[][3] = {{31, 40, 50}, {40, 10, 300}, {40, 20, 300}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int infinite = 0; infinite < 2; infinite++) {
          const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2], row = 17, depth = k - 1;
          product x = make_product(dtypes[d], m, n, k, transposes, true);
          for (int64_t i = 0; i < k * n; i++) mix_store_double((void *)x.in[1], dtypes[d], i, 1);
          mix_store_double((void *)x.in[0], dtypes[d], transposes & 1 ? depth * m + row : row * k + depth,
                           infinite ? (double)INFINITY : (double)NAN);
          run(&x, 2);
          for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
              const double value = mix_load_double(x.out, dtypes[d], i * n + j);
              if (i != row)
                assert_true(isfinite(value));
              else if (infinite)
                assert_true(isinf(value) && value > 0);
              else
                assert_true(isnan(value));
            }
          free_product(&x);
        }
}

/* Sums beyond float16's largest become infinite, and float16's subnormals are kept, both ways. */
static void float16_range(void **unused) {
  (void)unused;
  product x = make_product(MIX_FLOAT16, 20, 40, 8, 0, true);
  for (int64_t i = 0; i < 160; i++) mix_store_double((void *)x.in[0], MIX_FLOAT16, i, i < 80 ? 300 : 0x1p-24);
  for (int64_t i = 0; i < 320; i++) mix_store_double((void *)x.in[1], MIX_FLOAT16, i, i < 320 ? 300 : 1);
  for (int64_t i = 0; i < 320; i++)
    if (i % 40 >= 20) mix_store_double((void *)x.in[1], MIX_FLOAT16, i, 0.25);
  run(&x, 1);
  assert_true(isinf(mix_load_double(x.out, MIX_FLOAT16, 0)));                     /* 8 * 300 * 300 */
  assert_true(mix_load_double(x.out, MIX_FLOAT16, 39) == 600);                    /* 8 * 300 / 4 */
  assert_true(mix_load_double(x.out, MIX_FLOAT16, 19 * 40) == 8 * 300 * 0x1p-24); /* subnormal operands */
  assert_true(mix_load_double(x.out, MIX_FLOAT16, 19 * 40 + 39) == 2 * 0x1p-24);  /* subnormal result */
  free_product(&x);
}

/* bias + relu as the program of the product, stored in the product's dtype: relu(round(round(A B) + bias)), exact on integers. */
static void epilogue_bias_relu(void **unused) {
  (void)unused;
  static const int64_t shapes[][3] = {{33, 70, 50},  {130, 64, 784}, {70, 10, 300}, {60, 20, 300},
                                      {9, 100, 300}, {1, 1, 1},      {50, 40, 0}};
  static const uint32_t sets[] = {0, MIX_CPU_AVX2, MIX_CPU_AVX2 | MIX_CPU_AVX512};
  for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
    if ((mix_cpu_found() & sets[set]) != sets[set]) continue; /* their own tests skip visibly */
    mix_cpu_override(sets[set]);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (int transposes = 0; transposes < 4; transposes++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
          const mix_dtype dtype = dtypes[d];
          const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
          product x = make_product(dtype, m, n, k, transposes, true);
          x.inputs[2] = (mix_kernel_value){dtype, MIX_SHAPE(n)};
          x.in[2] = matrix(dtype, n, true);
          mix_program_load loads[2] = {{.input = MIX_FROM_ACCUMULATOR, .dtype = dtype, .strides = {n, 1}},
                                       {.input = 2, .dtype = dtype, .strides = {0, 1}}};
          mix_instruction instructions[2] = {{.opcode = MIX_OPCODE_ADD, .dtype = dtype, .operands = {0, 1}},
                                             {.opcode = MIX_OPCODE_RELU, .dtype = dtype, .operands = {2}}};
          mix_program_store store = {.output = 0, .reg = 3};
          const mix_program program = {.rank = 2,
                                       .dims = {m, n},
                                       .load_count = 2,
                                       .instruction_count = 2,
                                       .store_count = 1,
                                       .loads = loads,
                                       .instructions = instructions,
                                       .stores = &store};
          x.program = &program;
          double *expected = malloc(sizeof *expected * (size_t)(m * n));
          naive(&x, expected, NULL);
          run(&x, 2);
          for (int64_t i = 0; i < m * n; i++) {
            double value;
            mix_store_double(&value, dtype, 0, expected[i]);
            value = mix_load_double(&value, dtype, 0) + mix_load_double(x.in[2], dtype, i % n);
            double rounded;
            mix_store_double(&rounded, dtype, 0, value > 0 ? value : 0);
            if (mix_load_double(&rounded, dtype, 0) != mix_load_double(x.out, dtype, i))
              fail_msg("%s shape %zu transposes %d features %#x element %lld: %g, not %g", mix_dtype_name(dtype), s, transposes,
                       sets[set], (long long)i, mix_load_double(x.out, dtype, i), mix_load_double(&rounded, dtype, 0));
          }
          free(expected);
          free_product(&x);
        }
  }
  mix_cpu_override(UINT32_MAX);
}

/* matmul_rounded on float32 matrices of 16-bit numbers against the product of those numbers in 16 bits, not finite ones and subnormals
 * among them: the very same bits, with an epilogue and without. */
static void check_widened(mix_dtype dtype, const int64_t *shape, int transposes, int threads, bool epilogue) {
  static const double special[] = {INFINITY, -INFINITY, NAN, 0x1p-24, -0x1p-130, 65504, -0.0};
  const int64_t m = shape[0], n = shape[1], k = shape[2], counts[] = {m * k, k * n};
  product narrow = make_product(dtype, m, n, k, transposes, false), wide = make_product(MIX_FLOAT32, m, n, k, transposes, false);
  wide.op = &mix_op_matmul_rounded;
  wide.attributes.dtype = wide.output.dtype = dtype;
  for (int which = 0; which < 2; which++) {
    for (int i = 0; i < 7 && counts[which] > 50; i++)
      mix_store_double((void *)narrow.in[which], dtype, (int64_t)(next_random() % (uint64_t)counts[which]), special[i]);
    mix_convert(narrow.in[which], dtype, (void *)wide.in[which], MIX_FLOAT32, counts[which]);
  }
  mix_program_load load = {.input = MIX_FROM_ACCUMULATOR, .dtype = dtype, .strides = {n, 1}};
  mix_instruction relu = {.opcode = MIX_OPCODE_RELU, .dtype = dtype, .operands = {0}};
  mix_program_store store = {.output = 0, .reg = 1};
  const mix_program program = {.rank = 2,
                               .dims = {m, n},
                               .load_count = 1,
                               .instruction_count = 1,
                               .store_count = 1,
                               .loads = &load,
                               .instructions = &relu,
                               .stores = &store};
  if (epilogue) {
    narrow.program = wide.program = &program;
    narrow.inputs[2] = wide.inputs[2] = (mix_kernel_value){dtype, MIX_SHAPE(0)};
  }
  run(&narrow, threads), run(&wide, threads);
  for (int64_t i = 0; i < m * n; i++)
    if (((const uint16_t *)narrow.out)[i] != ((const uint16_t *)wide.out)[i] &&
        !(isnan(mix_load_double(narrow.out, dtype, i)) && isnan(mix_load_double(wide.out, dtype, i)))) /* of any sign */
      fail_msg("%s %lldx%lldx%lld transposes %d threads %d features %#x epilogue %d: element %lld is %g, not %g",
               mix_dtype_name(dtype), (long long)m, (long long)n, (long long)k, transposes, threads, mix_cpu_features(), epilogue,
               (long long)i, mix_load_double(wide.out, dtype, i), mix_load_double(narrow.out, dtype, i));
  free_product(&narrow), free_product(&wide);
}

static void widened_products_have_the_same_bits(void **unused) {
  (void)unused;
  static const uint32_t sets[] = {0, MIX_CPU_AVX2, MIX_CPU_AVX2 | MIX_CPU_AVX512};
  static const int64_t shapes[][3] = {{128, 64, 784}, {784, 64, 128}, {33, 70, 50},  {64, 10, 128},  {1, 1, 1},     {5, 3, 0},
                                      {40, 12, 1030}, {60, 20, 1030}, {9, 130, 800}, {12, 37, 1100}, {131, 33, 401}};
  for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
    if ((mix_cpu_found() & sets[set]) != sets[set]) continue; /* their own tests skip visibly */
    mix_cpu_override(sets[set]);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (int how = 0; how < 16; how++) {
        state = s * 100 + (size_t)how + 7; /* the failing case's own seed */
        check_widened(how & 8 ? MIX_FLOAT16 : MIX_BFLOAT16, shapes[s], how & 3, 1 + (how & 4 ? 1 : (int)s % 3),
                      (how + (int)s) % 3 == 0);
      }
  }
  mix_cpu_override(UINT32_MAX);
}

/* Leading dimensions broadcast; few batches (each shared) and many (each whole). */
static void batches_broadcast(void **unused) {
  (void)unused;
  static const mix_shape leading[][3] = {
      {{2, {3, 4}}, {2, {3, 4}}, {2, {3, 4}}}, {{2, {3, 1}}, {2, {1, 4}}, {2, {3, 4}}}, {{1, {5}}, {0, {0}}, {1, {5}}},
      {{0, {0}}, {2, {2, 3}}, {2, {2, 3}}},    {{1, {1}}, {1, {1}}, {1, {1}}},          {{2, {0, 4}}, {1, {4}}, {2, {0, 4}}},
  };
  for (size_t c = 0; c < sizeof leading / sizeof *leading; c++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
          const int64_t m = 17, n = 35, k = 21, sizes[3] = {m * k, k * n, m * n};
          product x = make_product(dtypes[d], 1, 1, 1, transposes, true);
          free_product(&x);
          mix_kernel_value *types[3] = {&x.inputs[0], &x.inputs[1], &x.output};
          const int64_t last[3][2] = {
              {transposes & 1 ? k : m, transposes & 1 ? m : k}, {transposes & 2 ? n : k, transposes & 2 ? k : n}, {m, n}};
          for (int v = 0; v < 3; v++) {
            mix_shape *s = &types[v]->shape;
            *s = leading[c][v];
            s->dims[s->rank] = last[v][0], s->dims[s->rank + 1] = last[v][1], s->rank += 2;
          }
          x.op = &mix_op_batch_matmul;
          for (int v = 0; v < 2; v++) x.in[v] = matrix(dtypes[d], mix_shape_size(types[v]->shape), true);
          const int64_t count = mix_shape_size(x.output.shape) / (m * n);
          const size_t size = mix_dtype_size(dtypes[d]);
          char *out = x.out = calloc((size_t)(count * m * n) + 1, size);
          run(&x, threads);
          for (int64_t b = 0; b < count; b++) {
            product one = x;
            int64_t index[3] = {0};
            for (int v = 0; v < 2; v++) { /* NumPy: dimensions aligned at the right, those of size one repeat */
              int64_t rest = b, stride = 1;
              for (int back = 1; back <= leading[c][2].rank; back++) {
                const int64_t dim = leading[c][2].dims[leading[c][2].rank - back], i = rest % dim;
                rest /= dim;
                const int at = leading[c][v].rank - back;
                if (at < 0) continue;
                index[v] += (leading[c][v].dims[at] == 1 ? 0 : i) * stride;
                stride *= leading[c][v].dims[at];
              }
              one.in[v] = (const char *)x.in[v] + (size_t)(index[v] * sizes[v]) * size;
              one.inputs[v].shape = MIX_SHAPE(last[v][0], last[v][1]);
            }
            one.output.shape = MIX_SHAPE(m, n);
            double expected[17 * 35];
            naive(&one, expected, NULL);
            for (int64_t i = 0; i < m * n; i++) assert_true(mix_load_double(out, dtypes[d], b * m * n + i) == expected[i]);
          }
          free_product(&x);
        }
}

/* Kernels say no to what they cannot do. */
static void refusals(void **unused) {
  (void)unused;
  product x = make_product(MIX_FLOAT32, 4, 4, 4, 0, true);
  x.inputs[1].dtype = MIX_FLOAT16;
  const mix_kernel_args args = {.op = x.op,
                                .attributes = &x.attributes,
                                .input_count = 2,
                                .output_count = 1,
                                .input_types = x.inputs,
                                .output_types = &x.output};
  assert_null(kernel_for(&args));
  x.inputs[0].dtype = x.inputs[1].dtype = MIX_INT32;
  assert_null(kernel_for(&args));
  x.inputs[0].dtype = x.inputs[1].dtype = MIX_FLOAT32;
  assert_non_null(kernel_for(&args));
  free_product(&x);
}

int main(void) {
  mix_set_accumulate("exact"); /* blocked sums: test_gemm_fp16.c */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exact_on_integers_generic),
      cmocka_unit_test(exact_on_integers_avx2),
      cmocka_unit_test(exact_on_integers_avx512),
      cmocka_unit_test(exact_on_integers_here),
      cmocka_unit_test(shallow_products_stream_their_result),
      cmocka_unit_test(overlapping_and_unaligned_operands),
      cmocka_unit_test(bound_on_random_data),
      cmocka_unit_test(residual_of_a_big_product),
      cmocka_unit_test(same_bits_for_any_number_of_threads),
      cmocka_unit_test(not_finite_propagates),
      cmocka_unit_test(float16_range),
      cmocka_unit_test(epilogue_bias_relu),
      cmocka_unit_test(widened_products_have_the_same_bits),
      cmocka_unit_test(batches_broadcast),
      cmocka_unit_test(refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
