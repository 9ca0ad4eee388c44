/* Products whose program ends in a finite test, each kernel with the shapes that it serves: the trace is that
 * of the result as it is stored, wherever one number of it is not finite, and on the edge where rounding
 * makes it infinite. */
/* Holds docs/NUMERICS.md: Sums; Products. */
#include "backend/gemm_products.h"

#include <mixtape/device.h>

/* What the program does with the product r0, rounded: RAW tests r0 and stores it; UNSCALED tests r0 * factor
 * in float32 and stores r0; RELU stores and tests relu(r0); ONLY tests r0 and stores nothing. */
enum form { RAW, UNSCALED, RELU, ONLY, FORMS };

typedef struct tested {
  product x;
  mix_dtype dtype; /* of the result */
  float factor;
  mix_program_load loads[2];
  mix_instruction instructions[2];
  mix_program_store store;
  mix_program program;
} tested;

static void make(tested *t, mix_dtype dtype, mix_dtype result, const int64_t *shape, int transposes,
                 enum form form) {
  *t = (tested){.x = make_product(dtype, shape[0], shape[1], shape[2], transposes),
                .dtype = result,
                .factor = 0x1p-15f};
  product *x = &t->x;
  if (result != dtype) {
    x->op = &mix_op_matmul_downcast, x->attributes.dtype = result;
    store_result_as(x, result);
  }
  const bool wide = result == MIX_FLOAT64;
  t->loads[0] = (mix_program_load){.input = MIX_FROM_ACCUMULATOR, .dtype = result, .strides = {x->n, 1}};
  t->loads[1] = (mix_program_load){.input = 2, .dtype = MIX_FLOAT32};
  t->store = (mix_program_store){.output = 1};
  t->program = (mix_program){.rank = 2,
                             .dims = {x->m, x->n},
                             .load_count = 1,
                             .store_count = form != ONLY,
                             .loads = t->loads,
                             .instructions = t->instructions,
                             .stores = &t->store,
                             .reduction = MIX_REDUCE_ALL_FINITE};
  if (form == UNSCALED && !wide) {
    const bool cast = result != MIX_FLOAT32;
    t->instructions[0] = (mix_instruction){.opcode = MIX_OPCODE_CAST, .dtype = MIX_FLOAT32, .operands = {0}};
    t->instructions[cast] =
        (mix_instruction){.opcode = MIX_OPCODE_MULTIPLY, .dtype = MIX_FLOAT32, .operands = {cast ? 2 : 0, 1}};
    t->program.load_count = 2;
    t->program.instruction_count = 1 + cast;
    t->program.reduced = 2 + cast;
    x->inputs[2] = (mix_type){MIX_FLOAT32, MIX_SCALAR};
  } else if (form == RELU) {
    t->instructions[0] = (mix_instruction){.opcode = MIX_OPCODE_RELU, .dtype = result, .operands = {0}};
    t->program.instruction_count = 1;
    t->program.reduced = t->store.reg = 1;
  }
}

/* Runs it as a step of a plan, once for each factor; the trace of the last run. */
static bool run_tested(const mix_kernel *kernel, tested *t, int threads, int count, const float *factors) {
  product *x = &t->x;
  uint8_t trace = 2;
  const void *inputs[3] = {x->in[0], x->in[1], &factors[0]};
  void *outputs[2] = {&trace, x->out};
  mix_type types[2] = {{MIX_BOOL, MIX_SCALAR}, {t->dtype, x->output.shape}};
  mix_kernel_args args = {.op = x->op,
                          .attributes = &x->attributes,
                          .program = &t->program,
                          .precision = mix_matmul_precision_default(),
                          .input_count = 1 + t->program.load_count,
                          .output_count = 1 + t->program.store_count,
                          .input_types = x->inputs,
                          .output_types = types,
                          .inputs = inputs,
                          .outputs = outputs};
  const size_t bytes = kernel->workspace ? kernel->workspace(&args, threads) : 0;
  unsigned char *workspace = mix_alloc_buffer(bytes + 64);
  assert_non_null(workspace);
  args.workspace = workspace;
  assert_true(kernel->prepare(&args, threads));
  const int size = kernel->serial && kernel->serial(&args) ? 1 : threads;
  for (int run = 0; run < count; run++) {
    inputs[2] = &factors[run];
    trace = 2;
    run_team(kernel, &args, size);
  }
  kernel->release(args.prepared);
  mix_free_buffer(workspace, bytes + 64);
  assert_true(trace == 0 || trace == 1);
  return trace;
}

static bool takes(const mix_kernel *kernel, const tested *t) {
  const mix_type types[2] = {{MIX_BOOL, MIX_SCALAR}, {t->dtype, t->x.output.shape}};
  const mix_kernel_args args = {.op = t->x.op,
                                .attributes = &t->x.attributes,
                                .program = &t->program,
                                .precision = mix_matmul_precision_default(),
                                .input_count = 1 + t->program.load_count,
                                .output_count = 1 + t->program.store_count,
                                .input_types = t->x.inputs,
                                .output_types = types};
  return !shapes_of(kernel)->unsupported_reason(&args);
}

/* Of what is stored, in the program's own arithmetic. */
static bool stored_is_finite(const tested *t) {
  for (int64_t i = 0; i < t->x.m * t->x.n; i++) {
    const double value = mix_load_double(t->x.out, t->dtype, i);
    if (!isfinite(t->program.load_count == 2 ? (double)((float)value * t->factor) : value)) return false;
  }
  return true;
}

/* The largest number of the dtype; half the distance to the next one, which makes it infinite, and a little
 * less, which does not. */
static void edge_of(mix_dtype dtype, double *largest, double *half, double *less) {
  switch (dtype) {
  case MIX_FLOAT16: *largest = 65504, *half = 16, *less = 15.9921875; return;
  case MIX_BFLOAT16: *largest = 0x1.fep127, *half = 0x1p119, *less = 0x1.fcp118; return;
  case MIX_FLOAT32: *largest = 0x1.fffffep127, *half = 0x1.fffffep127, *less = 0x1p90; return;
  default: *largest = 0x1.fffffffffffffp1023, *half = 0x1.fffffffffffffp1023, *less = 0x1p900; return;
  }
}

static const int64_t shapes[]
                           [3] = {
                               {33, 70, 50},   {130, 64, 270}, {400, 64, 128}, {2, 3, 2},
                               {1, 1, 2},      {64, 96, 40},   {70, 64, 600},  {33, 12, 1030},
                               {12, 33, 1031}, {40, 24, 1032}, /* the forms of deep products: test_gemm.c */
};
static const struct {
  mix_dtype operands, result;
} storages[] = {{MIX_FLOAT16, MIX_FLOAT16}, {MIX_BFLOAT16, MIX_BFLOAT16}, {MIX_FLOAT32, MIX_FLOAT32},
                {MIX_FLOAT64, MIX_FLOAT64}, {MIX_FLOAT32, MIX_FLOAT16},   {MIX_FLOAT32, MIX_BFLOAT16}};

/* One element of the product at `row`, `column` is `largest` + `more`, all others are 0. Exact in every
 * kernel that sums in float32. */
static void spike(product *x, int64_t row, int64_t column, double largest, double more) {
  const size_t size = mix_dtype_size(x->inputs[0].dtype);
  memset(x->in[0], 0, (size_t)(x->m * x->k) * size);
  memset(x->in[1], 0, (size_t)(x->k * x->n) * size);
  set(x, 0, row, 0, largest), set(x, 0, row, 1, more);
  set(x, 1, 0, column, 1), set(x, 1, 1, column, 1);
}

/* The settings under which the kernel serves: AMX takes float32 on request. */
static void ask_for(const mix_kernel *kernel) {
  ask_for_sums_of(kernel);
  mix_set_float32_precision(strstr(kernel->name, "amx") ? "high" : "highest");
}

/* Every layout where the sums themselves are tested; else that of a gradient of a kernel, whose test it is,
 * and the others by turns. */
static void for_each_shape(const mix_kernel *kernel, enum form form,
                           void (*check)(const mix_kernel *kernel, tested *t, int threads)) {
  int met = 0;
  ask_for(kernel);
  for (size_t d = 0; d < sizeof storages / sizeof *storages; d++)
    for (size_t s = 0; storages[d].operands == kernel->operands && s < sizeof shapes / sizeof *shapes; s++)
      for (int transposes = 0; transposes < 4; transposes++) {
        if (form != RAW && transposes != 1 && transposes != (int)s % 4) continue;
        tested t;
        make(&t, storages[d].operands, storages[d].result, shapes[s], transposes, form);
        const int fewest = transposes == 1 ? 1 : 2, most = transposes == 1 ? MAX_THREADS : 2;
        for (int threads = fewest; threads <= most && takes(kernel, &t); threads++, met++)
          check(kernel, &t, threads);
        free_product(&t.x);
      }
  assert_true(met > 0);
}

static void check_edges(const mix_kernel *kernel, tested *t, int threads) {
  product *x = &t->x;
  const int64_t places[][2] = {{0, 0}, {x->m - 1, x->n - 1}, {x->m / 2, x->n - 1}, {x->m - 1, x->n / 2}};
  double largest, half, less;
  edge_of(t->dtype, &largest, &half, &less);
  const bool blocked = is_blocked(kernel); /* sums in float16 may round either way there */
  for (int p = (threads + x->attributes.transpose_a + x->attributes.transpose_b) % 2; p < 4;
       p += 2) /* by turns */
    for (int over = 0; over < 2; over++) {
      spike(x, places[p][0], places[p][1], largest, over ? half : less);
      const bool finite = run_tested(kernel, t, threads, 1, &t->factor);
      if (finite != stored_is_finite(t) || (!blocked && finite != !over))
        fail_msg("%s (%lld, %lld, %lld), transposes %d%d, %d threads, place %d: %s", kernel->name,
                 (long long)x->m, (long long)x->n, (long long)x->k, x->attributes.transpose_a,
                 x->attributes.transpose_b, threads, p, finite ? "finite" : "not finite");
    }
}

static void rounding_to_infinity_is_seen_and_nothing_short_of_it(const mix_kernel *kernel) {
  for_each_shape(kernel, RAW, check_edges);
  for_each_shape(kernel, UNSCALED, check_edges);
  for_each_shape(kernel, RELU, check_edges);
}

static void check_nan(const mix_kernel *kernel, tested *t, int threads) {
  product *x = &t->x;
  static const double bad[] = {NAN, INFINITY, -INFINITY};
  fill(x, 0, 4), fill(x, 1, 4);
  for (int b = 0; b < 3; b++) {
    const int side = b % 2;
    const int64_t row = (side ? x->k : x->m) - 1, column = (side ? x->n : x->k) - 1;
    set(x, side, row, column, bad[b]);
    assert_false(run_tested(kernel, t, threads, 1, &t->factor));
    set(x, side, row, column, 1);
  }
  assert_true(run_tested(kernel, t, threads, 1, &t->factor));
}

static void what_is_not_finite_in_an_operand_is_seen(const mix_kernel *kernel) {
  for_each_shape(kernel, RAW, check_nan);
  for_each_shape(kernel, UNSCALED, check_nan);
}

/* Sums that nothing stores: the trace is that of the form that does. */
static void check_only(const mix_kernel *kernel, tested *t, int threads) {
  double largest, half, less;
  edge_of(t->dtype, &largest, &half, &less);
  spike(&t->x, t->x.m - 1, t->x.n - 1, largest, less / 4);
  assert_true(run_tested(kernel, t, threads, 1, &t->factor));
  spike(&t->x, t->x.m - 1, t->x.n - 1, largest, 2 * half > largest ? half : 2 * half);
  assert_false(run_tested(kernel, t, threads, 1, &t->factor));
}

static void a_product_may_be_tested_and_not_stored(const mix_kernel *kernel) {
  for_each_shape(kernel, ONLY, check_only);
}

/* Factors that keep finite numbers finite, and those that do not: infinite, NaN, or so large that some
 * numbers overflow. */
static void check_factors(const mix_kernel *kernel, tested *t, int threads) {
  static const float factors[] = {1, 0, -0x1p-15f, 0x1p111f, 0x1p113f, -0x1p127f, INFINITY, -INFINITY, NAN};
  fill(&t->x, 0, 40), fill(&t->x, 1, 40);
  for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
    t->factor = factors[f];
    const bool finite = run_tested(kernel, t, threads, 1, &t->factor);
    if (finite != stored_is_finite(t))
      fail_msg("%s (%lld, %lld, %lld), %d threads, times %g: %s", kernel->name, (long long)t->x.m,
               (long long)t->x.n, (long long)t->x.k, threads, (double)factors[f],
               finite ? "finite" : "not finite");
  }
}

static void the_verdict_is_that_of_the_unscaled_numbers(const mix_kernel *kernel) {
  for_each_shape(kernel, UNSCALED, check_factors);
}

/* Same bits as without a program, and the same trace each time that a plan runs the step. */
static void check_stored(const mix_kernel *kernel, tested *t, int threads) {
  fill(&t->x, 0, 0), fill(&t->x, 1, 0);
  assert_true(run_tested(kernel, t, threads, 3, (const float[]){1, NAN, 0.5f}));
  product plain = make_product(t->x.inputs[0].dtype, t->x.m, t->x.n, t->x.k,
                               t->x.attributes.transpose_a + 2 * t->x.attributes.transpose_b);
  void *own[2] = {plain.in[0], plain.in[1]};
  plain.op = t->x.op, plain.attributes = t->x.attributes;
  store_result_as(&plain, t->dtype);
  plain.in[0] = t->x.in[0], plain.in[1] = t->x.in[1];
  run_with(kernel, &plain, threads);
  assert_memory_equal(plain.out, t->x.out, (size_t)(plain.m * plain.n) * mix_dtype_size(t->dtype));
  plain.in[0] = own[0], plain.in[1] = own[1];
  free_product(&plain);
}

static void the_test_changes_no_bit_of_the_product(const mix_kernel *kernel) {
  for_each_shape(kernel, RAW, check_stored);
  for_each_shape(kernel, UNSCALED, check_stored);
}

/* 16 MiB and more, rows of whole lines: stored past the caches. */
static bool streams(const mix_kernel *kernel) {
  return mix_dtype_size(kernel->operands) == 2 &&
         (strstr(kernel->name, "_acc32_avx2") || strstr(kernel->name, "_acc32_avx512"));
}
static void shallow_products_stream_what_they_test(const mix_kernel *kernel) {
  static const int64_t shape[] = {2063, 4128, 3};
  tested t;
  ask_for(kernel);
  make(&t, kernel->operands, kernel->operands, shape, 1, UNSCALED);
  assert_true(takes(kernel, &t));
  double largest, half, less;
  edge_of(t.dtype, &largest, &half, &less);
  check_stored(kernel, &t, 2);
  for (int over = 0; over < 2; over++) {
    spike(&t.x, shape[0] - 1, shape[1] - 1, largest, over ? half : less);
    assert_int_equal(run_tested(kernel, &t, 2, 1, &t.factor), !over);
  }
  free_product(&t.x);
}

/* Several threads find out together, each whatever pieces it comes to take. */
static void pieces_that_threads_take_are_tested(const mix_kernel *kernel) {
  static const int64_t shape[] = {130, 2050, 1030};
  tested t;
  ask_for(kernel);
  make(&t, kernel->operands, kernel->operands, shape, 0, RAW);
  assert_true(takes(kernel, &t));
  check_stored(kernel, &t, 2);
  check_nan(kernel, &t, 2);
  free_product(&t.x);
}

int main(void) {
  static const kernel_test tests[] = {
      {"rounding_to_infinity_is_seen_and_nothing_short_of_it",
       rounding_to_infinity_is_seen_and_nothing_short_of_it},
      {"what_is_not_finite_in_an_operand_is_seen", what_is_not_finite_in_an_operand_is_seen},
      {"a_product_may_be_tested_and_not_stored", a_product_may_be_tested_and_not_stored},
      {"the_verdict_is_that_of_the_unscaled_numbers", the_verdict_is_that_of_the_unscaled_numbers},
      {"the_test_changes_no_bit_of_the_product", the_test_changes_no_bit_of_the_product},
      {"pieces_that_threads_take_are_tested", pieces_that_threads_take_are_tested},
      {"shallow_products_stream_what_they_test", shallow_products_stream_what_they_test, streams},
  };
  return WITH_EACH_KERNEL(tests);
}
