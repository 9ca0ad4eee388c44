/* Matrix products of the CPU with exact accumulation, as the dispatch chooses them: every instruction set
 * against plain loops. Oracles: integer data whose products and sums are exact in every dtype (tolerance 0);
 * the identity (A B) x = A (B x) for a big product; the bound k eps |A||B| on random data. */
/* Holds docs/NUMERICS.md: Products. */
#include "support/share.h"
#include "backend/gemm_plans.h"
#include "backend/instruction_sets.h"

#include <mixtape/device.h>

static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT64};
enum {
  DTYPES = sizeof dtypes / sizeof *dtypes,
  SMALL = 3 /* integers below it in magnitude: sums of 1,100 products are exact */
};

static void run(product *x, int threads) { run_with(dispatched(x), x, threads); }

/* |sum| can pass 2^11 (float16), 2^8 (bfloat16) only by rounding at the store: compares with what the exact
 * sum rounds to. */
static void assert_exact(const product *x, int threads) {
  double *expected = naive(x, NULL);
  const mix_dtype dtype = x->output.dtype;
  for (int64_t i = 0; i < x->m * x->n; i++)
    if (result(x, i) != rounded_to(dtype, expected[i]))
      fail_msg("%s %lldx%lldx%lld transposes %d%d threads %d features %#x: element %lld is %g, not %g",
               mix_dtype_name(dtype), (long long)x->m, (long long)x->n, (long long)x->k,
               x->attributes.transpose_a, x->attributes.transpose_b, threads, mix_cpu_features(),
               (long long)i, result(x, i), expected[i]);
  free(expected);
}

static void check_exact(mix_dtype dtype, const int64_t *shape, int transposes, int threads) {
  random_state = (uint64_t)(shape[0] + shape[1] + shape[2] + transposes); /* the failing case's own seed */
  product x = make_product(dtype, shape[0], shape[1], shape[2], transposes);
  fill(&x, 0, SMALL), fill(&x, 1, SMALL);
  run(&x, threads);
  assert_exact(&x, threads);
  free_product(&x);
}

/* Around the edges of tiles (14x32, 6x16, 4x8, and half of the columns for float64), of vectors, of blocks of
 * k; every dimension zero and one. */
static void exact_on_integers(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t shapes[][3] = {
      {1, 1, 1},     {0, 5, 3},     {5, 0, 3},      {5, 3, 0},      {40, 40, 0},   {14, 32, 8},
      {15, 33, 9},   {13, 31, 7},   {28, 64, 16},   {29, 65, 17},   {6, 16, 3},    {7, 17, 5},
      {4, 8, 4},     {5, 9, 64},    {3, 100, 65},   {100, 3, 65},   {64, 64, 64},  {57, 10, 300},
      {10, 57, 300}, {33, 13, 383}, {13, 33, 385},  {40, 28, 767},  {41, 29, 769}, {1, 70, 300},
      {70, 1, 300},  {2, 2, 1000},  {61, 170, 410}, {130, 161, 33}, {128, 10, 64}, {64, 10, 128},
      {200, 16, 10}, {37, 1030, 5}, {2100, 9, 3},   {60, 300, 801},
  };
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t d = 0; d < DTYPES; d++)
        if (!left_out())
          check_exact(dtypes[d], shapes[s], transposes, 1 + (int)(s + d + (size_t)transposes) % MAX_THREADS);
}

/* ---- products deeper than the order of sums that TensorFlow has ---- */

enum form { BLOCKS, SMALL_N, SMALL_N_TRANSPOSED, TRANSPOSED, SMALL_M_TRANSPOSED };

/* How the kernel does it: by blocks along k, by vectors of k (small_n), either for the transposed product, or
 * with few rows (small_m) for the transposed product. (small_m without transposing has the order of blocks:
 * test_small_m.c.) */
static enum form form_of(const instruction_set *set, const product *x, int threads, mix_gemm_plan *plan) {
#define ENGINES(set, ...) {&mix_gemm_f32_##set, &mix_gemm_f64_##set},
  static const mix_gemm_engine *const engines[][2] = {MIX_VECTOR_SETS(ENGINES)};
  const mix_dtype dtype = x->inputs[0].dtype;
  const ptrdiff_t level = set - instruction_sets;
  const mix_gemm_engine *engine = engines[level < VECTOR_SETS ? level : BEST_SET][dtype == MIX_FLOAT64];
  *plan = plan_of(engine, x, threads);
  if (plan->algorithm == &mix_gemm_small_m) return plan->compute_transposed ? SMALL_M_TRANSPOSED : BLOCKS;
  return plan->algorithm == &mix_gemm_small_n ? plan->compute_transposed ? SMALL_N_TRANSPOSED : SMALL_N
         : plan->compute_transposed           ? TRANSPOSED
                                              : BLOCKS;
}

/* The form of each layout (A transposed 1, B transposed 2): a threshold that moves leaves a form without its
 * tests, and fails here. Sums of whole and of part vectors, of one and of several blocks and chunks of rows.
 */
static const struct {
  int64_t shape[3];
  enum form forms[4];
} deep[] = {
    {{33, 12, 1024}, {BLOCKS, BLOCKS, BLOCKS, BLOCKS}},
    {{33, 12, 1025}, {SMALL_N, SMALL_M_TRANSPOSED, SMALL_N, SMALL_M_TRANSPOSED}},
    {{33, 12, 1030}, {SMALL_N, SMALL_M_TRANSPOSED, SMALL_N, SMALL_M_TRANSPOSED}},
    {{12, 33, 1031}, {BLOCKS, BLOCKS, SMALL_N_TRANSPOSED, SMALL_N_TRANSPOSED}},
    {{13, 33, 1031}, {BLOCKS, BLOCKS, BLOCKS, BLOCKS}},
    {{33, 13, 1031}, {BLOCKS, SMALL_M_TRANSPOSED, BLOCKS, SMALL_M_TRANSPOSED}},
    {{65, 64, 1037}, {BLOCKS, TRANSPOSED, BLOCKS, TRANSPOSED}},
    {{72, 40, 1040}, {BLOCKS, TRANSPOSED, BLOCKS, TRANSPOSED}},
    {{66, 65, 1037}, {BLOCKS, BLOCKS, BLOCKS, BLOCKS}},
    {{1, 7, 1100}, {SMALL_N, BLOCKS, SMALL_N, SMALL_N_TRANSPOSED}},
    {{7, 1, 1100}, {SMALL_N, SMALL_M_TRANSPOSED, SMALL_N, SMALL_N_TRANSPOSED}},
    {{1, 1, 1100}, {SMALL_N, BLOCKS, SMALL_N, SMALL_N_TRANSPOSED}},
    {{201, 5, 1027}, {SMALL_N, SMALL_M_TRANSPOSED, SMALL_N, SMALL_M_TRANSPOSED}},
    {{5, 201, 1027}, {BLOCKS, BLOCKS, SMALL_N_TRANSPOSED, SMALL_N_TRANSPOSED}},
};
enum { DEEP = sizeof deep / sizeof *deep };

static void deep_products_take_every_form(void **state) {
  const instruction_set *set = needed_instruction_set(state);
  int prefetched = 0, packed = 0;
  for (size_t s = 0; s < DEEP; s++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t d = 0; d < DTYPES; d++) {
        product x = make_product(dtypes[d], deep[s].shape[0], deep[s].shape[1], deep[s].shape[2], transposes);
        const char *name = dispatched(&x)->name;
        if (!strstr(name, "amx")) {
          assert_non_null(strstr(
              name, instruction_sets[set < instruction_sets + VECTOR_SETS ? set - instruction_sets : BEST_SET]
                        .name));
          for (int threads = 1; threads <= MAX_THREADS; threads++) {
            mix_gemm_plan plan;
            assert_int_equal(form_of(set, &x, threads, &plan), deep[s].forms[transposes]);
            if (deep[s].forms[transposes] == TRANSPOSED)
              *(mix_blocked_plan_of(&plan)->prefetch_b ? &prefetched : &packed) += 1;
          }
        }
        free_product(&x);
      }
  const bool tiles =
      set->features & MIX_CPU_AMX_BF16; /* serve the 16-bit ones, whose operands would be packed */
  assert_true(prefetched > 0 && (packed > 0) == !tiles);
}

static void deep_products_are_exact_on_integers(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (size_t s = 0; s < DEEP; s++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t d = 0; d < DTYPES; d++)
        if (!left_out())
          check_exact(dtypes[d], deep[s].shape, transposes,
                      1 + (int)(s + d + (size_t)transposes) % MAX_THREADS);
}

/* NT, up to 12 rows, 16 products of a sum for each: B is not transposed for so few. */
static void few_rows_of_16_bits_are_summed_along_vectors(void **state) {
  const instruction_set *set = needed_instruction_set(state);
  enum { B_TRANSPOSED = 2 };
  static const struct {
    int64_t shape[3];
    enum form form;
  } cases[] = {{{1, 70, 16}, SMALL_N_TRANSPOSED},
               {{1, 70, 15}, BLOCKS},
               {{7, 33, 300}, SMALL_N_TRANSPOSED},
               {{12, 33, 192}, SMALL_N_TRANSPOSED},
               {{12, 33, 191}, BLOCKS},
               {{12, 33, 1024}, SMALL_N_TRANSPOSED},
               {{13, 33, 1024}, BLOCKS},
               {{2, 1, 33}, SMALL_N_TRANSPOSED},
               {{5, 1031, 90}, SMALL_N_TRANSPOSED}};
  for (size_t s = 0; s < sizeof cases / sizeof *cases; s++)
    for (int d = 0; d < 2; d++)
      for (int threads = 1; threads <= MAX_THREADS; threads++) {
        const mix_dtype dtype = d ? MIX_BFLOAT16 : MIX_FLOAT16;
        product x =
            make_product(dtype, cases[s].shape[0], cases[s].shape[1], cases[s].shape[2], B_TRANSPOSED);
        mix_gemm_plan plan;
        assert_int_equal(form_of(set, &x, threads, &plan), cases[s].form);
        free_product(&x);
        check_exact(dtype, cases[s].shape, B_TRANSPOSED, threads);
      }
}

/* More rows of A^T than a block of the transposed product has columns. */
static void transposed_products_of_several_blocks(void **state) {
  const instruction_set *set = needed_instruction_set(state);
  static const int64_t shapes[][3] = {{4133, 3, 1030}, {4133, 17, 1030}};
  for (size_t d = 0; d < DTYPES; d += 2)
    for (int s = 0; s < 2; s++) {
      product x = make_product(dtypes[d], shapes[s][0], shapes[s][1], shapes[s][2], 1);
      mix_gemm_plan plan;
      assert_int_equal(form_of(set, &x, 1, &plan), s ? TRANSPOSED : SMALL_M_TRANSPOSED);
      assert_true(plan.nc < x.m);
      free_product(&x);
      check_exact(dtypes[d], shapes[s], 1, 1);
    }
}

/* ---- what holds for every shape ---- */

/* Results larger than the caches of shallow products are streamed past them, in whole lines where they are
 * aligned. The bytes of such a store meet those of the threads' other ones at the edges of their shares. */
static void shallow_products_stream_their_result(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (size_t d = 1; d < 3; d++) {
    check_exact(dtypes[d], (const int64_t[]){2063, 4128, 3}, 2, 2); /* 16 MiB and more, rows of whole lines */
    check_exact(dtypes[d], (const int64_t[]){2063, 4129, 2}, 0,
                2); /* rows that no line begins at: not streamed */
  }
}

/* C bounded away from its exact value by (k + 2) eps(sums) |A||B| (Higham, Accuracy and Stability of
 * Numerical Algorithms, 3.5: any order of summation) plus half a unit of the storage dtype. */
static void bound_on_random_data(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t shapes[][3] = {{67, 90, 830}, {130, 10, 1100}, {90, 20, 1100}, {10, 70, 1100}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t d = 0; d < DTYPES; d++) {
        product x = make_product(dtypes[d], shapes[s][0], shapes[s][1], shapes[s][2], transposes);
        fill(&x, 0, 0), fill(&x, 1, 0);
        double *absolute, *expected = naive(&x, &absolute);
        run(&x, 2);
        const double unit = dtypes[d] == MIX_FLOAT64 ? 0x1p-53 : 0x1p-24;
        const double half = dtypes[d] == MIX_FLOAT16 ? 0x1p-11 : dtypes[d] == MIX_BFLOAT16 ? 0x1p-8 : 0;
        /* Tiles leave out the products of the lower parts of float16 numbers: test_gemm_amx.c. */
        const double left_out = dtypes[d] == MIX_FLOAT16 && strstr(dispatched(&x)->name, "amx") ? 0x1p-16 : 0;
        for (int64_t i = 0; i < x.m * x.n; i++) {
          const double bound = ((double)(x.k + 2) * unit + left_out) * absolute[i] * (1 + half) +
                               half * fabs(expected[i]) + (half > 0 ? 0x1p-24 : 0);
          if (!(fabs(result(&x, i) - expected[i]) <= bound))
            fail_msg("%s shape %zu transposes %d element %lld", mix_dtype_name(dtypes[d]), s, transposes,
                     (long long)i);
        }
        free(expected), free(absolute);
        free_product(&x);
      }
}

/* (A B) x against A (B x), x of ones and minus ones: a big product at the price of matrix-vector products.
 * Each side is within (k + n + 2) eps |A||B||x| of the exact value. */
static void residual_of_a_big_product(void **state) {
  NEED_INSTRUCTION_SET(state);
  const int64_t m = 400, n = 900, k = 1300;
  for (int transposes = 0; transposes < 4; transposes++) {
    product x = make_product(MIX_FLOAT32, m, n, k, transposes);
    fill(&x, 0, 0), fill(&x, 1, 0);
    run(&x, 2);
    double *bx = calloc((size_t)k, sizeof *bx), *ax = calloc((size_t)k, sizeof *ax);
    for (int64_t l = 0; l < k; l++)
      for (int64_t j = 0; j < n; j++) {
        const double b = ((float *)x.in[1])[place(&x, 1, l, j)];
        bx[l] += j % 3 ? b : -b, ax[l] += fabs(b);
      }
    for (int64_t i = 0; i < m; i++) {
      double left = 0, right = 0, scale = 0;
      for (int64_t j = 0; j < n; j++) left += (j % 3 ? 1 : -1) * (double)((float *)x.out)[i * n + j];
      for (int64_t l = 0; l < k; l++) {
        const double a = ((float *)x.in[0])[place(&x, 0, i, l)];
        right += a * bx[l], scale += fabs(a) * ax[l];
      }
      assert_true(fabs(left - right) <= (double)(k + 2) * 0x1p-24 * scale);
      assert_true(fabs(right) > 0);
    }
    free(bx), free(ax);
    free_product(&x);
  }
}

static void check_bits(mix_dtype dtype, const int64_t *shape, int transposes) {
  product x = make_product(dtype, shape[0], shape[1], shape[2], transposes);
  fill(&x, 0, 0), fill(&x, 1, 0);
  check_same_bits(dispatched(&x), &x);
  free_product(&x);
}

/* Holds docs/NUMERICS.md: The same bits again. */
static void same_bits_for_any_number_of_threads(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t shapes[][3] = {{130, 257, 900}, {64, 64, 64},    {37, 530, 410},
                                      {200, 10, 1040}, {10, 200, 1040}, {90, 20, 1040},
                                      {72, 40, 1040},  {65, 64, 1037}}; /* deep ones in each form */
  for (int transposes = 0; transposes < 4; transposes++)
    for (size_t d = 0; d < DTYPES; d++)
      for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        check_bits(dtypes[d], shapes[s], transposes);
}

/* Holds docs/NUMERICS.md: Subnormal numbers. */
/* Sums beyond float16's largest become infinite, and float16's subnormals are kept, both ways. */
static void float16_range(void **state) {
  NEED_INSTRUCTION_SET(state);
  product x = make_product(MIX_FLOAT16, 20, 40, 8, 0);
  for (int64_t l = 0; l < 8; l++) {
    for (int64_t i = 0; i < 20; i++) set(&x, 0, i, l, i < 10 ? 300 : 0x1p-24);
    for (int64_t j = 0; j < 40; j++) set(&x, 1, l, j, j < 20 ? 300 : 0.25);
  }
  run(&x, 1);
  assert_true(isinf(result(&x, 0)));                     /* 8 * 300 * 300 */
  assert_true(result(&x, 39) == 600);                    /* 8 * 300 / 4 */
  assert_true(result(&x, 19 * 40) == 8 * 300 * 0x1p-24); /* subnormal operands */
  assert_true(result(&x, 19 * 40 + 39) == 2 * 0x1p-24);  /* subnormal result */
  free_product(&x);
}

/* Holds docs/NUMERICS.md: Element-wise operations. */
/* bias + relu as the program of the product, stored in the product's dtype: relu(round(round(A B) + bias)),
 * exact on integers. */
static void epilogue_bias_relu(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t shapes[][3] = {{33, 70, 50},   {130, 64, 784}, {70, 10, 1100}, {60, 20, 1100},
                                      {10, 60, 1100}, {9, 100, 300},  {1, 1, 1},      {50, 40, 0}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t d = 0; d < DTYPES; d++) {
        const mix_kernel *kernel = chosen(dtypes[d], shapes[s][0], shapes[s][1], shapes[s][2], transposes);
        check_bias_relu(kernel, dtypes[d], shapes[s], transposes, 0);
      }
}

/* matmul_downcast on float32 matrices of 16-bit numbers against the product of those numbers in 16 bits, not
 * finite ones and subnormals among them: the very same bits, with an epilogue and without. */
static void check_widened(mix_dtype dtype, const int64_t *shape, int transposes, int threads, bool epilogue) {
  static const double special[] = {INFINITY, -INFINITY, NAN, 0x1p-24, -0x1p-130, 65504, -0.0};
  const int64_t m = shape[0], n = shape[1], k = shape[2], counts[] = {m * k, k * n};
  product narrow = make_product(dtype, m, n, k, transposes),
          wide = make_product(MIX_FLOAT32, m, n, k, transposes);
  wide.op = &mix_op_matmul_downcast;
  wide.attributes.dtype = dtype;
  store_result_as(&wide, dtype);
  for (int which = 0; which < 2; which++) {
    fill(&narrow, which, 0);
    for (int i = 0; i < 7 && counts[which] > 50; i++)
      mix_store_double(narrow.in[which], dtype, (int64_t)(next_random() % (uint64_t)counts[which]),
                       special[i]);
    mix_convert(narrow.in[which], dtype, wide.in[which], MIX_FLOAT32, counts[which]);
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
  if (epilogue) narrow.program = wide.program = &program;
  run(&narrow, threads), run(&wide, threads);
  for (int64_t i = 0; i < m * n; i++)
    if (((const uint16_t *)narrow.out)[i] != ((const uint16_t *)wide.out)[i] &&
        !(isnan(result(&narrow, i)) && isnan(result(&wide, i)))) /* of any sign */
      fail_msg(
          "%s %lldx%lldx%lld transposes %d threads %d features %#x epilogue %d: element %lld is %g, not %g",
          mix_dtype_name(dtype), (long long)m, (long long)n, (long long)k, transposes, threads,
          mix_cpu_features(), epilogue, (long long)i, result(&wide, i), result(&narrow, i));
  free_product(&narrow), free_product(&wide);
}

static void widened_products_have_the_same_bits(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t shapes[][3] = {{128, 64, 784}, {784, 64, 128}, {33, 70, 50},   {64, 10, 128},
                                      {1, 1, 1},      {5, 3, 0},      {40, 12, 1030}, {60, 20, 1030},
                                      {9, 130, 800},  {12, 37, 1100}, {131, 33, 401}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int how = 0; how < 16; how++) {
      random_state = s * 100 + (size_t)how + 7; /* the failing case's own seed */
      check_widened(how & 8 ? MIX_FLOAT16 : MIX_BFLOAT16, shapes[s], how & 3, 1 + (how & 4 ? 1 : (int)s % 3),
                    (how + (int)s) % 3 == 0);
    }
}

/* Leading dimensions broadcast; few batches (each shared) and many (each whole). */
static void batches_broadcast(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const mix_shape leading[][3] = {
      {{2, {3, 4}}, {2, {3, 4}}, {2, {3, 4}}}, {{2, {3, 1}}, {2, {1, 4}}, {2, {3, 4}}},
      {{1, {5}}, {0, {0}}, {1, {5}}},          {{0, {0}}, {2, {2, 3}}, {2, {2, 3}}},
      {{1, {1}}, {1, {1}}, {1, {1}}},          {{2, {0, 4}}, {1, {4}}, {2, {0, 4}}},
  };
  for (size_t c = 0; c < sizeof leading / sizeof *leading; c++)
    for (int transposes = 0; transposes < 4; transposes++)
      for (size_t d = 0; d < DTYPES; d++)
        for (int threads = 1; threads <= MAX_THREADS; threads++) {
          const int64_t m = 17, n = 35, k = 21, sizes[3] = {m * k, k * n, m * n};
          product x = make_product(dtypes[d], m, n, k, transposes);
          free_product(&x);
          mix_type *types[3] = {&x.inputs[0], &x.inputs[1], &x.output};
          const int64_t last[3][2] = {{transposes & 1 ? k : m, transposes & 1 ? m : k},
                                      {transposes & 2 ? n : k, transposes & 2 ? k : n},
                                      {m, n}};
          for (int v = 0; v < 3; v++) {
            mix_shape *s = &types[v]->shape;
            *s = leading[c][v];
            s->dims[s->rank] = last[v][0], s->dims[s->rank + 1] = last[v][1], s->rank += 2;
          }
          x.op = &mix_op_batch_matmul;
          for (int v = 0; v < 2; v++)
            x.in[v] = matrix(dtypes[d], mix_shape_size(types[v]->shape)), fill(&x, v, SMALL);
          const int64_t count = mix_shape_size(x.output.shape) / (m * n);
          const size_t size = mix_dtype_size(dtypes[d]);
          x.out = new_result(&x);
          run(&x, threads);
          for (int64_t b = 0; b < count; b++) {
            product one = x;
            int64_t index[3] = {0};
            for (int v = 0; v < 2;
                 v++) { /* NumPy: dimensions aligned at the right, those of size one repeat */
              int64_t rest = b, stride = 1;
              for (int back = 1; back <= leading[c][2].rank; back++) {
                const int64_t dim = leading[c][2].dims[leading[c][2].rank - back], i = rest % dim;
                rest /= dim;
                const int at = leading[c][v].rank - back;
                if (at < 0) continue;
                index[v] += (leading[c][v].dims[at] == 1 ? 0 : i) * stride;
                stride *= leading[c][v].dims[at];
              }
              one.in[v] = (char *)x.in[v] + (size_t)(index[v] * sizes[v]) * size;
              one.inputs[v].shape = MIX_SHAPE(last[v][0], last[v][1]);
            }
            one.out = (char *)x.out + (size_t)(b * m * n) * size;
            assert_exact(&one, threads);
          }
          free_product(&x);
        }
}

/* Kernels say no to what they cannot do. */
static void refusals(void **unused) {
  (void)unused;
  product x = make_product(MIX_FLOAT32, 4, 4, 4, 0);
  assert_non_null(dispatched(&x));
  x.inputs[1].dtype = MIX_FLOAT16;
  assert_null(dispatched(&x));
  x.inputs[0].dtype = x.inputs[1].dtype = MIX_INT32;
  assert_null(dispatched(&x));
  free_product(&x);
}

/* Rows of A that are packed are prefetched, except where rows of a transposed A share the sets of a cache, or
 * nothing is packed. */
static void packed_rows_are_prefetched(void **unused) {
  (void)unused;
  static const struct {
    int64_t m, n, k;
    int transposes;
    bool prefetched;
  } cases[] = {{2048, 4096, 4096, 0, true},  {2048, 4096, 4096, 2, true}, {784, 4096, 8192, 1, true},
               {4096, 4096, 2048, 1, false}, {128, 64, 784, 0, false},    {784, 64, 128, 1, false}};
  const mix_gemm_engine *engine = engine_here("f32_avx512");
  if (!engine) SKIP("this processor lacks AVX-512");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const mix_gemm_plan plan =
        plan_of_shape(engine, MIX_FLOAT32, cases[i].m, cases[i].n, cases[i].k, cases[i].transposes, 2);
    assert_int_equal(mix_blocked_plan_of(&plan)->prefetch_a_source, cases[i].prefetched);
  }
}

/* Where the thread that has a weight in its cache is to update it, each has whole rows of the kernel;
 * forwards, and where multiplications are much more than the weights, the least work decides. */
static void gradients_of_kernels_of_few_examples_are_shared_by_whole_rows(void **unused) {
  (void)unused;
  static const struct {
    int64_t m, n, k;
    int transposes;
    bool whole;
  } cases[] = {{1024, 1024, 8, 1, true},   {1024, 1024, 1024, 1, true}, {784, 1024, 128, 1, true},
               {1000, 1003, 128, 1, true}, {4096, 4096, 128, 1, true},  {784, 4096, 8192, 1, false},
               {64, 4096, 128, 1, false},  {1024, 1024, 8, 0, false},   {1024, 1024, 128, 2, false}};
  static const struct {
    const char *name;
    mix_dtype dtype;
  } engines[] = {{"f32_generic", MIX_FLOAT32},    {"f32_avx512", MIX_FLOAT32},
                 {"f32_avx512", MIX_BFLOAT16},    {"t4x16_avx512fp16", MIX_FLOAT16},
                 {"t4x16_neonfp16", MIX_FLOAT16}, {"f32_neon", MIX_FLOAT32}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t e = 0; e < sizeof engines / sizeof *engines; e++) {
      const mix_gemm_engine *engine = engine_here(engines[e].name);
      if (!engine) continue;
      assert_int_equal(
          plan_of_shape(engine, engines[e].dtype, cases[i].m, cases[i].n, cases[i].k, cases[i].transposes, 2)
              .grid_rows,
          1 + cases[i].whole);
    }
}

int main(void) {
  mix_set_accumulate("exact"); /* blocked sums: test_gemm_fp16.c */
  const struct CMUnitTest tests[] = {
      ON_EACH_SET_OF_PRODUCTS(exact_on_integers),
      ON_EACH_SET_OF_PRODUCTS(deep_products_take_every_form),
      ON_EACH_SET_OF_PRODUCTS(deep_products_are_exact_on_integers),
      ON_EACH_SET(few_rows_of_16_bits_are_summed_along_vectors),
      ON_EACH_SET(transposed_products_of_several_blocks),
      ON_EACH_SET_OF_PRODUCTS(bound_on_random_data)
          AND_ON_EACH_SIMD_SET(shallow_products_stream_their_result),
      ON_EACH_SET(residual_of_a_big_product),
      ON_EACH_SET_OF_PRODUCTS(same_bits_for_any_number_of_threads),
      ON_EACH_SET(float16_range),
      ON_EACH_SET(epilogue_bias_relu),
      ON_EACH_SET(widened_products_have_the_same_bits),
      ON_EACH_SET(batches_broadcast),
      cmocka_unit_test(packed_rows_are_prefetched),
      cmocka_unit_test(gradients_of_kernels_of_few_examples_are_shared_by_whole_rows),
      cmocka_unit_test(refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
