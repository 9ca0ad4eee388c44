/* The tile executor against the reference interpreter: bit for bit for arithmetic, within a stated distance
 * for transcendental functions. */
/* Holds docs/NUMERICS.md: Rounding; Element-wise operations. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/cpu_kernels.h"

#include "backend/cpu/program/prepared_program.h"
#include "backend/ref/ref.h"

enum { LOADS = 24, INSTRUCTIONS = 120, STORES = 16, OPERANDS = 24 };

/* A program with its operands. */
typedef struct sample {
  mix_program program;
  mix_program_load loads[LOADS];
  mix_instruction instructions[INSTRUCTIONS];
  mix_program_store stores[STORES];
  void *operands[OPERANDS];
  mix_dtype operand_dtypes[OPERANDS];
  int64_t operand_sizes[OPERANDS];
  int operand_count;
} sample;

static void begin(sample *s, int rank, const int64_t *dims) {
  memset(s, 0, sizeof *s);
  s->program =
      (mix_program){.rank = rank, .loads = s->loads, .instructions = s->instructions, .stores = s->stores};
  memcpy(s->program.dims, dims, (size_t)rank * sizeof *dims);
}
static int64_t space(const sample *s) {
  int64_t n = 1;
  for (int d = 0; d < s->program.rank; d++) n *= s->program.dims[d];
  return n;
}
static void end(sample *s) {
  for (int i = 0; i < s->operand_count; i++) free(s->operands[i]);
}
/* Memory of exact size, so that the address sanitizer sees an overrun of one byte. */
static int operand(sample *s, mix_dtype dtype, int64_t n) {
  s->operands[s->operand_count] = malloc((size_t)n * mix_dtype_size(dtype));
  assert_non_null(s->operands[s->operand_count]);
  s->operand_dtypes[s->operand_count] = dtype;
  s->operand_sizes[s->operand_count] = n;
  return s->operand_count++;
}
/* Loads an operand through the strides; call it before adding instructions. Returns the register. */
static int load(sample *s, mix_dtype dtype, const int64_t *strides) {
  mix_program_load *l = &s->loads[s->program.load_count];
  *l = (mix_program_load){.input = -2, .dtype = dtype};
  int64_t size = 1;
  for (int d = 0; d < s->program.rank; d++) {
    l->strides[d] = strides[d];
    size += (s->program.dims[d] - 1) * strides[d];
  }
  l->input = operand(s, dtype, size);
  return s->program.load_count++;
}
static int load_all(sample *s, mix_dtype dtype) {
  int64_t strides[MIX_MAX_RANK], stride = 1;
  for (int d = s->program.rank - 1; d >= 0; stride *= s->program.dims[d--]) strides[d] = stride;
  return load(s, dtype, strides);
}
static int load_scalar(sample *s, mix_dtype dtype) {
  return load(s, dtype, (const int64_t[MIX_MAX_RANK]){0});
}
static int compute(sample *s, mix_opcode opcode, mix_dtype dtype, int a, int b, int c) {
  s->instructions[s->program.instruction_count] = (mix_instruction){opcode, dtype, {a, b, c}, 0.3};
  return s->program.load_count + s->program.instruction_count++;
}
/* Stores a register to result `output`. */
static void store(sample *s, int reg) {
  s->stores[s->program.store_count] = (mix_program_store){s->program.store_count, reg};
  s->program.store_count++;
}

typedef struct results {
  void *data[STORES + 1];
  mix_type types[STORES + 1];
  int count;
} results;

static void allocate_results(const sample *s, results *r) {
  const mix_program *p = &s->program;
  *r = (results){.count = p->store_count + (p->reduction != MIX_REDUCE_NOTHING)};
  const int64_t n = space(s);
  for (int i = 0; i < p->store_count; i++) {
    r->types[i] = (mix_type){mix_program_register_dtype(p, p->stores[i].reg), {.rank = p->rank}};
    memcpy(r->types[i].shape.dims, p->dims, (size_t)p->rank * sizeof *p->dims);
    r->data[i] = malloc((size_t)n * mix_dtype_size(r->types[i].dtype));
    assert_non_null(r->data[i]);
  }
  if (p->reduction == MIX_REDUCE_NOTHING) return;
  r->types[p->reduction_output].dtype =
      p->reduction == MIX_REDUCE_ALL_FINITE ? MIX_BOOL : mix_program_register_dtype(p, p->reduced);
  r->data[p->reduction_output] = malloc(8);
}
static void free_results(results *r) {
  for (int i = 0; i < r->count; i++) free(r->data[i]);
}

static void run_sample(const sample *s, const mix_kernel *kernel, void **inputs, results *r, int threads) {
  mix_kernel_args args = {.op = &mix_op_fused,
                          .program = &s->program,
                          .input_count = s->operand_count,
                          .output_count = r->count,
                          .output_types = r->types,
                          .inputs = (const void **)inputs,
                          .outputs = r->data};
  assert_non_null(kernel);
  if (kernel->unsupported_reason) assert_null(kernel->unsupported_reason(&args));
  assert_null(run_kernel(kernel, &args, threads));
}

/* Compares all stores of the best kernel of the enabled instruction set with the interpreter's. */
static void check_sample(const char *what, sample *s, int threads, int64_t bound) {
  results expected, result;
  allocate_results(s, &expected);
  allocate_results(s, &result);
  run_sample(s, &mix_ref_fused, s->operands, &expected, 1);
  run_sample(s, best_kernel(mix_cpu_fused_kernels), s->operands, &result, threads);
  for (int i = 0; i < s->program.store_count; i++) {
    flush_subnormals(expected.data[i], result.types[i].dtype, space(s));
    assert_close(what, result.data[i], expected.data[i], result.types[i].dtype, space(s), bound);
  }
  free_results(&expected);
  free_results(&result);
}

static void fill_operands(sample *s, uint64_t seed) {
  for (int i = 0; i < s->operand_count; i++)
    fill_wild(s->operands[i], s->operand_dtypes[i], s->operand_sizes[i], seed + (uint64_t)i);
}

static const mix_dtype all_dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT8,
                                       MIX_INT16,   MIX_INT32,    MIX_INT64,   MIX_UINT8,   MIX_BOOL};
enum { DTYPES = sizeof all_dtypes / sizeof *all_dtypes };

/* ---- every opcode in every dtype ---- */

/* Distance in float32 ulp to the correctly rounded result. The interpreter computes a whole formula in double
 * if it contains a libm function or a double constant. The tile executor rounds each operation, by half an
 * ulp, or one just above a power of two: a formula of k roundings may differ by k ulp. vector_math.inc.h
 * states the errors of the polynomials; without fused multiply-add they are up to one ulp larger. */
static int64_t ulp_bound(mix_opcode opcode) {
  switch (opcode) {
  case MIX_OPCODE_SIN:
  case MIX_OPCODE_COS:
  case MIX_OPCODE_ATAN2:
  case MIX_OPCODE_POWER: return 1; /* libm */
  case MIX_OPCODE_RSQRT:
  case MIX_OPCODE_RECIPROCAL: /* an estimate and a Newton step, as in TensorFlow's kernels */
  case MIX_OPCODE_SOFTSIGN:
  case MIX_OPCODE_EXP:
  case MIX_OPCODE_EXPM1:
  case MIX_OPCODE_LOG1P:
  case MIX_OPCODE_TANH:
  case MIX_OPCODE_SIGMOID:
  case MIX_OPCODE_ERF:
  case MIX_OPCODE_ELU: return 2;
  /* TensorFlow's own; its bits are in tests/ops/test_values.c. Up to 3 ulp, in one of a million numbers. */
  case MIX_OPCODE_LOG:
  case MIX_OPCODE_SELU:          /* expm1 and a product with a rounded constant */
  case MIX_OPCODE_SELU_GRAD:     /* two sums, a product */
  case MIX_OPCODE_SOFTPLUS:      /* log1p of exp, and a sum */
  case MIX_OPCODE_SOFTPLUS_GRAD: /* sigmoid and a product */
  case MIX_OPCODE_RSQRT_GRAD: return 3;
  case MIX_OPCODE_SOFTSIGN_GRAD:
    return 4; /* a sum (the square doubles its error), the square, the quotient */
  default: return 0;
  }
}
/* After rounding to 16 bits a difference shows as one ulp if the exact value is near a midpoint. Double uses
 * the same library. */
static int64_t bound_in(mix_opcode opcode, mix_dtype dtype) {
  const int64_t bound = ulp_bound(opcode);
  if (dtype == MIX_FLOAT32) return bound;
  return dtype == MIX_FLOAT64 ? 0 : bound ? 1 : 0;
}

static bool gives_bool(mix_opcode opcode) {
  return (opcode >= MIX_OPCODE_IS_FINITE && opcode <= MIX_OPCODE_LOGICAL_NOT) ||
         (opcode >= MIX_OPCODE_EQUAL && opcode <= MIX_OPCODE_LOGICAL_OR);
}

static void opcodes_in_all_dtypes(void **state) {
  NEED_INSTRUCTION_SET(state);
  int checked = 0, partial = 0;
  for (int code = MIX_OPCODE_NONE + 1; code < MIX_OPCODE_COUNT; code++) {
    if (code == MIX_OPCODE_CAST) continue;
    for (int d = 0; d < DTYPES; d++) {
      const mix_opcode opcode = (mix_opcode)code;
      const mix_dtype dtype = all_dtypes[d];
      sample s;
      begin(&s, 1, (const int64_t[]){1037});
      int operands[3] = {0};
      for (int k = 0; k < mix_opcode_operands(opcode); k++)
        operands[k] = load_all(&s, opcode == MIX_OPCODE_SELECT && k == 0 ? MIX_BOOL : dtype);
      store(&s, compute(&s, opcode, gives_bool(opcode) ? MIX_BOOL : dtype, operands[0], operands[1],
                        operands[2]));
      if (!mix_ref_program_unsupported_reason(&s.program)) {
        const bool can_fail =
            mix_dtype_is_integer(dtype) && (opcode == MIX_OPCODE_FLOOR_DIVIDE ||
                                            opcode == MIX_OPCODE_FLOOR_MOD || opcode == MIX_OPCODE_POWER);
        const mix_kernel *kernel = best_kernel(mix_cpu_fused_kernels);
        const mix_kernel_args args = {.program = &s.program};
        if (can_fail) {
          assert_string_equal(kernel->unsupported_reason(&args), "integer division and power can fail");
          partial++;
        } else {
          char what[64];
          snprintf(what, sizeof what, "%s %s", mix_opcode_name(opcode), mix_dtype_name(dtype));
          fill_operands(&s, 1000);
          check_sample(what, &s, 2, bound_in(opcode, dtype));
          /* the same with an operand that is a single number */
          if (mix_opcode_operands(opcode) == 2) {
            memset(s.loads[1].strides, 0, sizeof s.loads[1].strides);
            check_sample(what, &s, 1, bound_in(opcode, dtype));
          }
          checked++;
        }
      }
      end(&s);
    }
  }
  assert_int_equal(partial, 3 * 5);
  assert_true(checked > 4 * 50);
}

/* Rows that begin anywhere, of a space that a broadcast operand cuts into rows, with short and long ones. */
static void draws_follow_the_place(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int columns = 1; columns < 1400; columns = columns * 3 + 2)
    for (int threads = 1; threads <= 3; threads++) {
      sample s;
      begin(&s, 2, (const int64_t[]){23, columns});
      const int x = load_all(&s, MIX_FLOAT32), bias = load(&s, MIX_FLOAT32, (const int64_t[]){0, 1}),
                seed = load_scalar(&s, MIX_INT64), step = load_scalar(&s, MIX_INT64),
                sum = compute(&s, MIX_OPCODE_ADD, MIX_FLOAT32, x, bias, 0);
      store(&s, compute(&s, MIX_OPCODE_STOCHASTIC_ROUND, MIX_BFLOAT16, sum, seed, step));
      store(&s, compute(&s, MIX_OPCODE_STOCHASTIC_ROUND, MIX_BFLOAT16, bias, seed, step));
      store(&s, compute(&s, MIX_OPCODE_STOCHASTIC_ROUND, MIX_BFLOAT16, x, seed, step));
      s.instructions[2].immediate = 3;
      s.instructions[3].immediate = MIX_ROUND_NEAREST;
      fill_operands(&s, 400);
      check_sample("stochastic_round", &s, threads, 0);
      end(&s);
    }
}

/* Every function in float32, densely over its range. */
static void transcendental_functions_are_close(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const struct {
    mix_opcode opcode;
    double low, high;
  } ranges[] = {
      {MIX_OPCODE_EXP, -105, 90},     {MIX_OPCODE_EXP, -1, 1},         {MIX_OPCODE_EXPM1, -20, 89},
      {MIX_OPCODE_EXPM1, -1, 1},      {MIX_OPCODE_EXPM1, -1e-4, 1e-4}, {MIX_OPCODE_LOG, 0, 4},
      {MIX_OPCODE_LOG, 0.9, 1.1},     {MIX_OPCODE_LOG, 0, 1e30},       {MIX_OPCODE_LOG, 0, 1e-37},
      {MIX_OPCODE_LOG1P, -1, 4},      {MIX_OPCODE_LOG1P, -1e-3, 1e-3}, {MIX_OPCODE_LOG1P, 0, 1e20},
      {MIX_OPCODE_TANH, -10, 10},     {MIX_OPCODE_TANH, -1, 1},        {MIX_OPCODE_SIGMOID, -100, 100},
      {MIX_OPCODE_SIGMOID, -4, 4},    {MIX_OPCODE_ERF, -4.5, 4.5},     {MIX_OPCODE_ERF, -1, 1},
      {MIX_OPCODE_SOFTPLUS, -30, 30}, {MIX_OPCODE_ELU, -5, 5},         {MIX_OPCODE_SELU, -5, 5}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    sample s;
    begin(&s, 1, (const int64_t[]){20011});
    store(&s, compute(&s, ranges[i].opcode, MIX_FLOAT32, load_all(&s, MIX_FLOAT32), 0, 0));
    fill_between(s.operands[0], MIX_FLOAT32, 20011, 77 + i, ranges[i].low, ranges[i].high);
    flush_subnormals(s.operands[0], MIX_FLOAT32, 20011);
    check_sample(mix_opcode_name(ranges[i].opcode), &s, 1, ulp_bound(ranges[i].opcode));
    end(&s);
  }
}

static void casts_between_all_dtypes(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int from = 0; from < DTYPES; from++)
    for (int to = 0; to < DTYPES; to++) {
      char what[64];
      snprintf(what, sizeof what, "cast %s to %s", mix_dtype_name(all_dtypes[from]),
               mix_dtype_name(all_dtypes[to]));
      sample s;
      begin(&s, 1, (const int64_t[]){1301});
      const int x = load_all(&s, all_dtypes[from]);
      const int y = compute(&s, MIX_OPCODE_CAST, all_dtypes[to], x, 0, 0);
      store(&s, y);
      fill_operands(&s, 5);
      check_sample(what, &s, 2, 0);
      end(&s);
      /* and with the result used in registers */
      begin(&s, 1, (const int64_t[]){1301});
      const int a = load_all(&s, all_dtypes[from]), b = compute(&s, MIX_OPCODE_CAST, all_dtypes[to], a, 0, 0);
      store(&s, compute(&s, MIX_OPCODE_EQUAL, MIX_BOOL, b, b, 0));
      store(&s, compute(&s, MIX_OPCODE_CAST, MIX_FLOAT64, b, 0, 0));
      store(&s, compute(&s, MIX_OPCODE_CAST, MIX_FLOAT16, b, 0, 0));
      fill_operands(&s, 6);
      check_sample(what, &s, 2, 0);
      end(&s);
    }
}

/* ---- layouts ---- */

static void broadcasts(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t shapes[][2] = {{1, 7},  {37, 10}, {129, 64}, {5, 513}, {3, 1000},
                                      {64, 1}, {1, 1},   {200, 3},  {9, 512}, {2, 4099}};
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_FLOAT64, MIX_INT32, MIX_UINT8, MIX_BOOL};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
      for (int threads = 1; threads <= 3; threads++) {
        const int64_t rows = shapes[i][0], columns = shapes[i][1];
        const mix_dtype dtype = dtypes[d];
        const mix_opcode add = dtype == MIX_BOOL ? MIX_OPCODE_LOGICAL_OR : MIX_OPCODE_ADD;
        char what[96];
        snprintf(what, sizeof what, "%s (%lld, %lld) on %d threads", mix_dtype_name(dtype), (long long)rows,
                 (long long)columns, threads);
        sample s;
        begin(&s, 2, (const int64_t[]){rows, columns});
        const int x = load(&s, dtype, (const int64_t[]){columns, 1}),
                  row = load(&s, dtype, (const int64_t[]){0, 1});
        const int column = load(&s, dtype, (const int64_t[]){1, 0}), scalar = load_scalar(&s, dtype);
        const int transposed = load(&s, dtype, (const int64_t[]){1, rows}),
                  wide = load(&s, dtype, (const int64_t[]){columns + 3, 1});
        const int a = compute(&s, add, dtype, x, row, 0), b = compute(&s, add, dtype, a, column, 0);
        const int c = compute(&s, add, dtype, b, scalar, 0), e = compute(&s, add, dtype, transposed, wide, 0);
        const int same = compute(&s, add, dtype, scalar, scalar, 0);
        store(&s, c);
        store(&s, e);
        store(&s, same);
        store(&s, row);
        store(&s, compute(&s, MIX_OPCODE_EQUAL, MIX_BOOL, column, row, 0));
        fill_operands(&s, 40 + i);
        check_sample(what, &s, threads, 0);
        end(&s);
      }
}

static void broadcasts_of_higher_rank(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t shapes[][4] = {{4, 3, 5, 7}, {2, 1, 30, 20}, {3, 4, 1, 600}, {2, 2, 2, 2}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const int64_t *d = shapes[i];
    sample s;
    begin(&s, 4, d);
    const int x = load_all(&s, MIX_FLOAT32),
              middle = load(&s, MIX_BFLOAT16, (const int64_t[]){0, d[2] * d[3], 0, 1});
    const int outer = load(&s, MIX_FLOAT16, (const int64_t[]){d[1], 1, 0, 0}),
              last = load(&s, MIX_FLOAT32, (const int64_t[]){0, 0, d[3], 1});
    const int m = compute(&s, MIX_OPCODE_CAST, MIX_FLOAT32, middle, 0, 0),
              o = compute(&s, MIX_OPCODE_CAST, MIX_FLOAT32, outer, 0, 0);
    const int a = compute(&s, MIX_OPCODE_MULTIPLY, MIX_FLOAT32, x, m, 0),
              b = compute(&s, MIX_OPCODE_MAXIMUM, MIX_FLOAT32, a, o, 0);
    store(&s, compute(&s, MIX_OPCODE_SUBTRACT, MIX_FLOAT32, b, last, 0));
    store(&s, compute(&s, MIX_OPCODE_CAST, MIX_FLOAT16, b, 0, 0));
    fill_operands(&s, 60 + i);
    for (int threads = 1; threads <= 3; threads++) check_sample("rank 4", &s, threads, 0);
    end(&s);
  }
}

/* ---- an optimizer's update, in place ---- */

/* v = rho v + (1 - rho) g^2; w = w - rate g / (sqrt(v) + epsilon); and the 16-bit copy of w. Operands: g, v,
 * w, four scalars. */
static void build_rmsprop(sample *s, int64_t n) {
  const mix_dtype f = MIX_FLOAT32;
  begin(s, 1, &n);
  const int g = load_all(s, f), v = load_all(s, f), w = load_all(s, f);
  const int rho = load_scalar(s, f), complement = load_scalar(s, f), rate = load_scalar(s, f),
            epsilon = load_scalar(s, f);
  const int square = compute(s, MIX_OPCODE_SQUARE, f, g, 0, 0),
            kept = compute(s, MIX_OPCODE_MULTIPLY, f, v, rho, 0);
  const int added = compute(s, MIX_OPCODE_MULTIPLY, f, square, complement, 0),
            next = compute(s, MIX_OPCODE_ADD, f, kept, added, 0);
  const int root = compute(s, MIX_OPCODE_SQRT, f, next, 0, 0),
            below = compute(s, MIX_OPCODE_ADD, f, root, epsilon, 0);
  const int scaled = compute(s, MIX_OPCODE_MULTIPLY, f, g, rate, 0),
            step = compute(s, MIX_OPCODE_DIVIDE, f, scaled, below, 0);
  const int weight = compute(s, MIX_OPCODE_SUBTRACT, f, w, step, 0);
  store(s, next);
  store(s, weight);
  store(s, compute(s, MIX_OPCODE_CAST, MIX_FLOAT16, weight, 0, 0));
  fill_operands(s, 9);
  for (int i = 0; i < 4; i++)
    ((float *)s->operands[3 + i])[0] = (const float[]){0.9f, 0.1f, 0.001f, 1e-7f}[i];
}

static void updates_in_place(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[] = {1, 7, 511, 512, 513, 100003};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int threads = 1; threads <= 3; threads++) {
      const int64_t n = sizes[i];
      sample s;
      build_rmsprop(&s, n);
      results expected, result;
      allocate_results(&s, &expected);
      run_sample(&s, &mix_ref_fused, s.operands, &expected, 1);
      allocate_results(&s, &result);
      void *copy = result.data[0], *other = result.data[1];
      result.data[0] = s.operands[1];
      result.data[1] = s.operands[2];
      run_sample(&s, best_kernel(mix_cpu_fused_kernels), s.operands, &result, threads);
      for (int k = 0; k < 3; k++)
        assert_close("rmsprop", result.data[k], expected.data[k], result.types[k].dtype, n, 0);
      result.data[0] = copy;
      result.data[1] = other;
      free_results(&expected);
      free_results(&result);
      end(&s);
    }
}

/* A store over an operand must wait if the operand is read after the stored value is computed. */
static void a_store_waits_for_later_readers(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[] = {16, 511, 4096};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    sample s;
    begin(&s, 1, &sizes[i]);
    const int x = load_all(&s, MIX_FLOAT32), y = load_all(&s, MIX_FLOAT32);
    const int sum = compute(&s, MIX_OPCODE_ADD, MIX_FLOAT32, x, y, 0);
    store(&s, sum);
    store(&s, compute(&s, MIX_OPCODE_MULTIPLY, MIX_FLOAT32, sum, x, 0));
    store(&s, y);
    fill_operands(&s, 3);
    results expected, result;
    allocate_results(&s, &expected);
    run_sample(&s, &mix_ref_fused, s.operands, &expected, 1);
    allocate_results(&s, &result);
    void *first = result.data[0], *third = result.data[2];
    result.data[0] = s.operands[0];
    result.data[2] = s.operands[1];
    run_sample(&s, best_kernel(mix_cpu_fused_kernels), s.operands, &result, 2);
    for (int k = 0; k < 3; k++)
      assert_close("in place", result.data[k], expected.data[k], MIX_FLOAT32, sizes[i], 0);
    result.data[0] = first;
    result.data[2] = third;
    free_results(&expected);
    free_results(&result);
    end(&s);
  }
}

/* An operand is stored unchanged, or rounded by the store only, after a store over it: the tile loop must not
 * read the overwritten memory. Results 0 and, if `over` says so, 1 are in the memory of that operand. */
static void check_overwritten(sample *s, int64_t n, int first, int over) {
  fill_operands(s, 5);
  for (int threads = 1; threads <= 2; threads++) {
    results expected, result;
    allocate_results(s, &expected);
    run_sample(s, &mix_ref_fused, s->operands, &expected, 1);
    allocate_results(s, &result);
    void *own[2] = {result.data[0], result.data[1]}, *inputs[2];
    for (int i = 0; i < 2; i++) {
      const size_t bytes = (size_t)n * mix_dtype_size(s->operand_dtypes[i]);
      inputs[i] = malloc(bytes);
      memcpy(inputs[i], s->operands[i], bytes);
    }
    result.data[0] = inputs[first];
    if (over >= 0) result.data[1] = inputs[over];
    run_sample(s, best_kernel(mix_cpu_fused_kernels), inputs, &result, threads);
    for (int k = 0; k < 2; k++)
      assert_close("overwritten", result.data[k], expected.data[k], result.types[k].dtype, n, 0);
    for (int i = 0; i < 2; i++) free(inputs[i]), result.data[i] = own[i];
    free_results(&expected);
    free_results(&result);
  }
  end(s);
}
static void operands_are_stored_before_they_are_overwritten(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[] = {1, 16, 511, 512, 4096, 20000};
  static const mix_dtype from[] = {MIX_FLOAT32, MIX_FLOAT32, MIX_FLOAT32, MIX_FLOAT64,
                                   MIX_INT64,   MIX_INT64,   MIX_INT64},
                         to[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64,
                                 MIX_INT8,    MIX_INT32,    MIX_INT64};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t d = 0; d < sizeof from / sizeof *from; d++) {
      sample s;
      begin(&s, 1, &sizes[i]); /* x = x + y, and the old x */
      int x = load_all(&s, from[d]), y = load_all(&s, from[d]);
      store(&s, compute(&s, MIX_OPCODE_ADD, from[d], x, y, 0));
      store(&s, compute(&s, MIX_OPCODE_CAST, to[d], x, 0, 0));
      check_overwritten(&s, sizes[i], 0, -1);
      begin(&s, 1, &sizes[i]); /* y = x, and the old y, which may be stored over x */
      x = load_all(&s, from[d]), y = load_all(&s, from[d]);
      store(&s, compute(&s, MIX_OPCODE_IDENTITY, from[d], x, 0, 0));
      store(&s, compute(&s, MIX_OPCODE_CAST, to[d], y, 0, 0));
      check_overwritten(&s, sizes[i], 1, from[d] == to[d] ? 0 : -1);
    }
}

/* ---- fused and unfused ---- */

static void build_chain(sample *s, mix_dtype dtype, int64_t n) {
  begin(s, 1, &n);
  const int x = load_all(s, dtype), y = load_all(s, dtype), scalar = load_scalar(s, dtype);
  int r = compute(s, MIX_OPCODE_MULTIPLY, dtype, x, y, 0);
  r = compute(s, MIX_OPCODE_ADD, dtype, r, scalar, 0); /* a compiler might contract these two */
  r = compute(s, MIX_OPCODE_TANH, dtype, r, 0, 0);
  const int t = compute(s, MIX_OPCODE_TANH_GRAD, dtype, r, y, 0);
  r = compute(s, MIX_OPCODE_SUBTRACT, dtype, t, r, 0);
  r = compute(s, MIX_OPCODE_EXP, dtype, r, 0, 0);
  r = compute(s, MIX_OPCODE_DIVIDE, dtype, r, scalar, 0);
  const int positive = compute(s, MIX_OPCODE_GREATER, MIX_BOOL, x, y, 0);
  r = compute(s, MIX_OPCODE_SELECT, dtype, positive, r, t);
  r = compute(s, MIX_OPCODE_SIGMOID, dtype, r, 0, 0);
  r = compute(s, MIX_OPCODE_SQUARED_DIFFERENCE, dtype, r, y, 0);
  r = compute(s, MIX_OPCODE_LOG1P, dtype, r, 0, 0);
  store(s, r);
}

static void fused_equals_unfused(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int d = 0; d < 4; d++) {
    enum { N = 2601 };
    sample s;
    build_chain(&s, all_dtypes[d], N);
    for (int i = 0; i < 3; i++)
      fill_between(s.operands[i], all_dtypes[d], s.operand_sizes[i], 90 + (uint64_t)i, -3, 3);
    results fused;
    allocate_results(&s, &fused);
    run_sample(&s, best_kernel(mix_cpu_fused_kernels), s.operands, &fused, 2);
    /* each instruction as a program of its own, from memory to memory */
    void *values[LOADS + INSTRUCTIONS] = {s.operands[0], s.operands[1], s.operands[2]};
    const int registers = s.program.load_count + s.program.instruction_count;
    for (int r = s.program.load_count; r < registers; r++) {
      const mix_instruction *instruction = &s.instructions[r - s.program.load_count];
      sample one;
      begin(&one, 1, (const int64_t[]){N});
      void *inputs[3] = {0};
      const int count = mix_opcode_operands(instruction->opcode);
      for (int k = 0; k < count; k++) {
        const mix_dtype dtype = mix_program_register_dtype(&s.program, instruction->operands[k]);
        if (instruction->operands[k] == 2)
          load_scalar(&one, dtype);
        else
          load_all(&one, dtype);
        inputs[k] = values[instruction->operands[k]];
      }
      store(&one, compute(&one, instruction->opcode, instruction->dtype, 0, 1, 2));
      results result;
      allocate_results(&one, &result);
      run_sample(&one, best_kernel(mix_cpu_fused_kernels), inputs, &result, 1);
      values[r] = result.data[0];
      end(&one);
    }
    assert_memory_equal(values[registers - 1], fused.data[0], N * mix_dtype_size(all_dtypes[d]));
    for (int r = s.program.load_count; r < registers; r++) free(values[r]);
    free_results(&fused);
    end(&s);
  }
}

/* ---- reductions ---- */

static void all_finite_sees_every_element(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[] = {1, 7, 511, 513, 70001};
  for (int d = 0; d < 4; d++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      const int64_t n = sizes[i];
      sample s;
      begin(&s, 1, &n);
      const int x = load_all(&s, all_dtypes[d]);
      store(&s, compute(&s, MIX_OPCODE_NEGATIVE, all_dtypes[d], x, 0, 0));
      s.program.reduction = MIX_REDUCE_ALL_FINITE;
      s.program.reduced = 1;
      s.program.reduction_output = 1;
      fill_between(s.operands[0], all_dtypes[d], n, 4, -1000, 1000);
      results result;
      allocate_results(&s, &result);
      const int64_t places[] = {-1, 0, n / 2, n - 1, n * 2 / 3};
      for (int k = 0; k < 5; k++)
        for (int threads = 1; threads <= 3; threads++) {
          if (places[k] >= 0)
            mix_store_double(s.operands[0], all_dtypes[d], places[k], k % 2 ? INFINITY : NAN);
          run_sample(&s, best_kernel(mix_cpu_fused_kernels), s.operands, &result, threads);
          assert_int_equal(*(uint8_t *)result.data[1], places[k] < 0);
          if (places[k] >= 0) mix_store_double(s.operands[0], all_dtypes[d], places[k], 1);
        }
      free_results(&result);
      end(&s);
    }
}

/* A 16-bit gradient times a float32 factor, as in unscaling. The finite test runs on the stored 16-bit values
 * if the factor allows it, else on the product. Its result must be the product's, also for factors that make
 * finite numbers infinite or infinite ones NaN. */
static void all_finite_of_scaled_halves(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const mix_dtype halves[] = {MIX_FLOAT16, MIX_BFLOAT16};
  static const float factors[] = {1, 0x1p-15f, 0, -0x1p-15f, 2, 0x1p111f, 0x1p112f, 0x1p120f, INFINITY, NAN};
  static const double values[] = {1,        65504,     -65504, 0x1p127,
                                  INFINITY, -INFINITY, NAN}; /* the fourth is infinite in float16 */
  enum { N = 1500 };
  for (int form = 0; form < 4; form++) /* by the dtype, with the factor as either operand */
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++)
      for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        const mix_dtype dtype = halves[form / 2];
        sample s;
        begin(&s, 1, (const int64_t[]){N});
        const int x = load_all(&s, dtype), factor = load_scalar(&s, MIX_FLOAT32);
        const int wide = compute(&s, MIX_OPCODE_IDENTITY, MIX_FLOAT32, x, 0, 0);
        s.program.reduced = form % 2 ? compute(&s, MIX_OPCODE_MULTIPLY, MIX_FLOAT32, factor, wide, 0)
                                     : compute(&s, MIX_OPCODE_MULTIPLY, MIX_FLOAT32, wide, factor, 0);
        s.program.reduction = MIX_REDUCE_ALL_FINITE;
        for (int i = 0; i < N; i++) mix_store_double(s.operands[0], dtype, i, i % 7 - 3);
        mix_store_double(s.operands[0], dtype, (int64_t)(f * 131 + v * 17) % N, values[v]);
        *(float *)s.operands[1] = factors[f];
        results expected, result;
        allocate_results(&s, &expected);
        allocate_results(&s, &result);
        run_sample(&s, &mix_ref_fused, s.operands, &expected, 1);
        run_sample(&s, best_kernel(mix_cpu_fused_kernels), s.operands, &result, 1 + (int)v % 3);
        assert_int_equal(*(uint8_t *)result.data[0], *(uint8_t *)expected.data[0]);
        free_results(&expected);
        free_results(&result);
        end(&s);
      }
}

/* Integer data, whose sums are exact in any order. The same number of threads gives the same bits again. */
static void sums_in_programs(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32,
                                     MIX_FLOAT64, MIX_INT32,    MIX_INT64};
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
    for (int threads = 1; threads <= 3; threads++) {
      enum { N = 40009 };
      sample s;
      begin(&s, 1, (const int64_t[]){N});
      const int x = load_all(&s, dtypes[d]);
      s.program.reduction = MIX_REDUCE_TO_SUM;
      s.program.reduced = compute(&s, MIX_OPCODE_ADD, dtypes[d], x, x, 0);
      s.program.reduction_output = 0;
      double expected = 0;
      for (int64_t i = 0; i < N; i++) {
        const int64_t value = (int64_t)(mix_philox_word(8, 0, (uint64_t)i) % 7) - 3;
        mix_store_integer(s.operands[0], dtypes[d], i, value);
        expected += 2 * (double)value;
      }
      results result;
      allocate_results(&s, &result);
      run_sample(&s, best_kernel(mix_cpu_fused_kernels), s.operands, &result, threads);
      double rounded[1];
      mix_store_double(rounded, dtypes[d], 0, expected);
      assert_close("sum", result.data[0], rounded, dtypes[d], 1, 0);
      free_results(&result);
      end(&s);
    }
}

/* ---- size ---- */

/* A hundred instructions whose values all stay alive need smaller tiles. More registers than the executor has
 * are rejected. */
static void long_programs(void **state) {
  NEED_INSTRUCTION_SET(state);
  sample s;
  begin(&s, 2, (const int64_t[]){30, 100});
  enum { ALIVE = 30 };
  const int x = load_all(&s, MIX_FLOAT32), bias = load(&s, MIX_FLOAT32, (const int64_t[]){0, 1});
  int alive[ALIVE], all = bias;
  for (int i = 0; i < ALIVE; i++)
    alive[i] = compute(&s, MIX_OPCODE_ADD, MIX_FLOAT32, i ? alive[i - 1] : x, bias, 0);
  for (int i = 0; i < ALIVE; i++)
    all = compute(&s, MIX_OPCODE_MAXIMUM, MIX_FLOAT32, all,
                  compute(&s, MIX_OPCODE_NEGATIVE, MIX_FLOAT32, alive[i], 0, 0), 0);
  store(&s, all);
  fill_operands(&s, 70);
  check_sample("long", &s, 2, 0);
  while (s.program.instruction_count < INSTRUCTIONS)
    all = compute(&s, MIX_OPCODE_NEGATIVE, MIX_FLOAT32, all, 0, 0);
  for (int i = 0; i < 10; i++) store(&s, all);
  const mix_kernel_args args = {.program = &s.program};
  assert_string_equal(best_kernel(mix_cpu_fused_kernels)->unsupported_reason(&args),
                      "more registers than the tile executor holds");
  end(&s);
}

static void empty_programs(void **state) {
  NEED_INSTRUCTION_SET(state);
  sample s;
  begin(&s, 2, (const int64_t[]){3, 0});
  const int x = load(&s, MIX_FLOAT32, (const int64_t[]){0, 1});
  store(&s, compute(&s, MIX_OPCODE_EXP, MIX_FLOAT32, x, 0, 0));
  s.program.reduction = MIX_REDUCE_ALL_FINITE;
  s.program.reduced = x;
  s.program.reduction_output = 1;
  results result;
  allocate_results(&s, &result);
  *(uint8_t *)result.data[1] = 7;
  run_sample(&s, best_kernel(mix_cpu_fused_kernels), s.operands, &result, 2);
  assert_int_equal(*(uint8_t *)result.data[1], 1);
  free_results(&result);
  end(&s);
}

/* ---- epilogues ---- */

static void epilogue_blocks(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t shapes[][2] = {{13, 10}, {33, 64}, {20, 300}, {7, 1100}, {1, 1}, {50, 17}};
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT64};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t d = 0; d < 4; d++)
      for (int form = 0; form < 4; form++) { /* a bias in all but the first; 2: alone, 3: with ReLU alone */
        const int64_t rows = shapes[i][0], columns = shapes[i][1], stride = columns + 5;
        const mix_dtype dtype = dtypes[d];
        sample s;
        begin(&s, 2, (const int64_t[]){rows, columns});
        s.loads[s.program.load_count++] = (mix_program_load){.input = MIX_FROM_ACCUMULATOR, .dtype = dtype};
        int other = 0;
        if (form) other = load(&s, dtype, (const int64_t[]){0, 1});
        const int residual = form < 2 ? load_all(&s, dtype) : 0;
        const int sum = compute(&s, MIX_OPCODE_ADD, dtype, 0, other, 0),
                  relu = form == 2 ? sum : compute(&s, MIX_OPCODE_RELU, dtype, sum, 0, 0);
        store(&s, relu);
        if (form < 2) store(&s, compute(&s, MIX_OPCODE_GREATER, MIX_BOOL, relu, residual, 0));
        fill_operands(&s, 21);
        const size_t raw = dtype == MIX_FLOAT64 ? 8 : 4;
        char *accumulator = malloc((size_t)(rows * stride) * raw);
        fill_wild(accumulator, raw == 8 ? MIX_FLOAT64 : MIX_FLOAT32, rows * stride, 12);
        results expected, result;
        allocate_results(&s, &expected);
        allocate_results(&s, &result);
        for (int k = 0; k < s.program.store_count; k++) result.types[k].shape = MIX_SHAPE(rows, columns);
        mix_kernel_args args = {.program = &s.program,
                                .inputs = (const void **)s.operands,
                                .outputs = expected.data,
                                .output_types = result.types};
        assert_true(mix_ref_program_prepare(&args, 1));
        mix_ref_program_begin(&args);
        for (int64_t e = 0; e < rows * columns; e++) {
          const double value = mix_load_double(accumulator, raw == 8 ? MIX_FLOAT64 : MIX_FLOAT32,
                                               e / columns * stride + e % columns);
          mix_ref_program_element(&args, e, (mix_ref_value){.real = value});
        }
        mix_ref_program_end(&args);
        mix_free(args.prepared);
        mix_tile_program *prepared = mix_tile_prepare(&s.program);
        assert_non_null(prepared);
        args.outputs = result.data;
        /* blocks of odd sizes */
        for (int64_t row = 0; row < rows; row += 6)
          for (int64_t column = 0; column < columns; column += 48) {
            const int64_t height = rows - row < 6 ? rows - row : 6,
                          width = columns - column < 48 ? columns - column : 48;
            mix_tile_run_block(prepared, &args, accumulator + (size_t)(row * stride + column) * raw, stride,
                               row, height, column, width, row + height < rows);
          }
        for (int k = 0; k < s.program.store_count; k++)
          assert_close("blocks", result.data[k], expected.data[k], result.types[k].dtype, rows * columns, 0);
        /* and all at once */
        for (int k = 0; k < s.program.store_count; k++)
          memset(result.data[k], 0, (size_t)(rows * columns) * mix_dtype_size(result.types[k].dtype));
        mix_tile_run_block(prepared, &args, accumulator, stride, 0, rows, 0, columns, false);
        for (int k = 0; k < s.program.store_count; k++)
          assert_close("whole", result.data[k], expected.data[k], result.types[k].dtype, rows * columns, 0);
        mix_free(prepared);
        free(accumulator);
        free_results(&expected);
        free_results(&result);
        end(&s);
      }
}

/* The elements after the last whole packet of eight are computed differently. This depends on the element's
 * position only, not on the block, nor on whether its operand is a scalar. */
static void bits_depend_on_the_position_only(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t shapes[][2] = {{13, 10}, {1, 7}, {5, 3}, {50, 17}, {3, 1101}, {31, 33}};
  static const int64_t heights[] = {1, 4, 6, 50}, widths[] = {1, 3, 16, 48, 1101};
  static const mix_opcode opcodes[] = {MIX_OPCODE_RSQRT, MIX_OPCODE_RECIPROCAL, MIX_OPCODE_LOG};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t o = 0; o < 3; o++) {
      const int64_t rows = shapes[i][0], columns = shapes[i][1];
      sample whole, block, one;
      begin(&whole, 1, (const int64_t[]){rows * columns});
      store(&whole, compute(&whole, opcodes[o], MIX_FLOAT32, load_all(&whole, MIX_FLOAT32), 0, 0));
      float *x = whole.operands[0];
      fill_between(x, MIX_FLOAT32, rows * columns, 40 + o, 0.1, 3);
      results expected, result;
      allocate_results(&whole, &expected);
      allocate_results(&whole, &result);
      run_sample(&whole, best_kernel(mix_cpu_fused_kernels), whole.operands, &expected, 1);
      begin(&block, 2, (const int64_t[]){rows, columns});
      block.loads[block.program.load_count++] =
          (mix_program_load){.input = MIX_FROM_ACCUMULATOR, .dtype = MIX_FLOAT32};
      store(&block, compute(&block, opcodes[o], MIX_FLOAT32, 0, 0, 0));
      mix_tile_program *prepared = mix_tile_prepare(&block.program);
      assert_non_null(prepared);
      mix_kernel_args args = {
          .program = &block.program, .outputs = result.data, .output_types = result.types};
      for (size_t h = 0; h < sizeof heights / sizeof *heights; h++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
          memset(result.data[0], 0, (size_t)(rows * columns) * sizeof(float));
          for (int64_t row = 0; row < rows; row += heights[h])
            for (int64_t column = 0; column < columns; column += widths[w])
              mix_tile_run_block(prepared, &args, x + row * columns + column, columns, row,
                                 rows - row < heights[h] ? rows - row : heights[h], column,
                                 columns - column < widths[w] ? columns - column : widths[w], false);
          assert_memory_equal(result.data[0], expected.data[0], (size_t)(rows * columns) * sizeof(float));
        }
      mix_free(prepared);
      /* one number for all, and as many equal numbers */
      for (int64_t e = 1; e < rows * columns; e++) x[e] = x[0];
      run_sample(&whole, best_kernel(mix_cpu_fused_kernels), whole.operands, &expected, 1);
      begin(&one, 1, (const int64_t[]){rows * columns});
      store(&one, compute(&one, opcodes[o], MIX_FLOAT32, load_scalar(&one, MIX_FLOAT32), 0, 0));
      *(float *)one.operands[0] = x[0];
      run_sample(&one, best_kernel(mix_cpu_fused_kernels), one.operands, &result, 1);
      assert_memory_equal(result.data[0], expected.data[0], (size_t)(rows * columns) * sizeof(float));
      free_results(&expected);
      free_results(&result);
      end(&whole);
      end(&block);
      end(&one);
    }
}

/* ---- two instructions in one pass ---- */

/* Operand `uniform` of x, y, z (-1: none) is a single number; 3: an identity cast is between the two
 * instructions. `separate`: the first result is stored too, which prevents the superinstruction. */
static void make_pair(sample *s, const mix_superinstruction *superinstruction, int64_t n, int uniform,
                      bool separate) {
  int operands[3], next = 0;
  begin(s, 1, &n);
  for (int k = 0; k < 3; k++)
    operands[k] = k == uniform ? load_scalar(s, MIX_FLOAT32) : load_all(s, MIX_FLOAT32);
  int first[3] = {0}, second[3] = {0};
  for (int k = 0; k < mix_opcode_operands(superinstruction->first); k++) first[k] = operands[next++];
  int t = compute(s, superinstruction->first, MIX_FLOAT32, first[0], first[1], first[2]);
  if (uniform == 3) t = compute(s, MIX_OPCODE_CAST, MIX_FLOAT32, t, 0, 0);
  for (int k = 0; k < mix_opcode_operands(superinstruction->second); k++)
    second[k] = k == superinstruction->position ? t : operands[next++];
  store(s, compute(s, superinstruction->second, MIX_FLOAT32, second[0], second[1], second[2]));
  if (separate) store(s, t);
  fill_operands(s, 900);
}

static void superinstructions_round_both_instructions(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[] = {1, 16, 37, 512, 1037, 4096};
  const mix_vector *vector = mix_vector_current();
  int checked = 0;
  for (const mix_superinstruction *superinstruction = vector->superinstructions; superinstruction->function;
       superinstruction++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (int uniform = -1; uniform <= 3; uniform++) {
        sample joined, separate;
        results one, two;
        make_pair(&joined, superinstruction, sizes[i], uniform, false);
        make_pair(&separate, superinstruction, sizes[i], uniform, true);
        mix_tile_program *prepared = mix_tile_prepare_for(&joined.program, vector),
                         *other = mix_tile_prepare_for(&separate.program, vector);
        int passes[2] = {0};
        for (int k = 0; k < prepared->body_count; k++) passes[0] += prepared->body[k].function != NULL;
        for (int k = 0; k < other->body_count; k++) passes[1] += other->body[k].function != NULL;
        mix_free(prepared);
        mix_free(other);
        /* A single element is computed by single instructions, and so is the first of a pair if its operands
         * are all uniform. */
        const bool alone =
            sizes[i] == 1 || (uniform == 0 && mix_opcode_operands(superinstruction->first) == 1);
        if (!alone) assert_int_equal(passes[0], 1), assert_int_equal(passes[1], 2);
        allocate_results(&joined, &one);
        allocate_results(&separate, &two);
        run_sample(&joined, best_kernel(mix_cpu_fused_kernels), joined.operands, &one, 1);
        run_sample(&separate, best_kernel(mix_cpu_fused_kernels), separate.operands, &two, 1);
        /* Of two NaNs either may result. */
        assert_close("superinstruction", one.data[0], two.data[0], MIX_FLOAT32, sizes[i], 0);
        free_results(&one);
        free_results(&two);
        end(&joined);
        end(&separate);
        checked++;
      }
  assert_true(checked >= 20 * 6 * 5);
}

/* ---- chains of instructions in one pass ---- */

/* Results overwrite the last vector operands. `separate`: the intermediate value is stored too, which
 * prevents the fused chain. */
static void make_code(sample *s, const mix_fused_chain *chain, int64_t n, bool separate) {
  int registers[MIX_CHAIN_OPERANDS + MIX_CHAIN_CODE], count = 0;
  begin(s, 1, &n);
  for (; count < chain->vectors; count++) registers[count] = load_all(s, MIX_FLOAT32);
  for (; count < chain->vectors + chain->numbers; count++) registers[count] = load_scalar(s, MIX_FLOAT32);
  for (int i = 0; i < chain->count; i++, count++)
    registers[count] = compute(s, chain->code[i].opcode, MIX_FLOAT32, registers[chain->code[i].operands[0]],
                               registers[chain->code[i].operands[1]], 0);
  for (int i = 0; i < chain->result_count; i++) store(s, registers[chain->results[i]]);
  for (int i = chain->vectors + chain->numbers; i < count && separate; i++) store(s, registers[i]);
  fill_operands(s, 70);
}

static void run_in_place(const sample *s, const mix_fused_chain *chain, results *r) {
  void *inputs[OPERANDS];
  allocate_results(s, r);
  memcpy(inputs, s->operands, sizeof inputs);
  for (int i = 0; i < chain->result_count; i++) {
    const int operand = chain->vectors - chain->result_count + i;
    inputs[operand] = memcpy(r->data[i], s->operands[operand], (size_t)space(s) * sizeof(float));
  }
  run_sample(s, best_kernel(mix_cpu_fused_kernels), inputs, r, 2);
}

static int chains_in(const sample *s, const mix_vector *vector) {
  mix_tile_program *prepared = mix_tile_prepare_for(&s->program, vector);
  int count = 0;
  for (int i = 0; i < prepared->body_count; i++) count += prepared->body[i].chain != NULL;
  mix_free(prepared);
  return count;
}

static void chains_round_every_instruction(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[] = {1, 16, 37, 512, 1037, 300000}; /* the last is prefetched */
  const mix_vector *vector = mix_vector_current();
  int checked = 0;
  for (const mix_fused_chain *(*const *row)(void) = vector->chains; *row; row++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      const mix_fused_chain *chain = (*row)();
      sample whole, separate;
      results one, two;
      make_code(&whole, chain, sizes[i], false);
      make_code(&separate, chain, sizes[i], true);
      assert_int_equal(chains_in(&whole, vector), sizes[i] > 1);
      assert_int_equal(chains_in(&separate, vector), 0);
      run_in_place(&whole, chain, &one);
      run_in_place(&separate, chain, &two);
      for (int k = 0; k < chain->result_count; k++) /* Of two NaNs either may result. */
        assert_close("chain", one.data[k], two.data[k], MIX_FLOAT32, sizes[i], 0);
      free_results(&one);
      free_results(&two);
      end(&whole);
      end(&separate);
      checked++;
    }
  assert_true(checked >= 8 * 6);
}

/* Single instructions if a chain would have a scalar operand, or a value that is also read outside it. */
static void other_code_is_no_chain(void **state) {
  NEED_INSTRUCTION_SET(state);
  const mix_vector *vector = mix_vector_current();
  const mix_fused_chain *chain = (*vector->chains)();
  const int64_t n = 64;
  for (int changed = 0; changed < chain->count + 2; changed++) {
    sample s;
    make_code(&s, chain, n, false);
    if (changed < chain->count) {
      s.instructions[changed].opcode = MIX_OPCODE_MAXIMUM;
    } else {
      const int load = changed == chain->count ? 0 : chain->vectors;
      s.loads[load].strides[0] = !s.loads[load].strides[0];
    }
    assert_int_equal(chains_in(&s, vector), 0);
    end(&s);
  }
}

/* ---- larger than the caches ---- */

static void large_copies(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int threads = 1; threads <= 3; threads += 2)
    for (int d = 0; d < 2; d++) {
      sample s;
      begin(&s, 1, (const int64_t[]){(1 << 21) + 37});
      const int x = load_all(&s, MIX_FLOAT32), sum = compute(&s, MIX_OPCODE_ADD, MIX_FLOAT32, x, x, 0);
      store(&s, sum);
      store(&s, compute(&s, MIX_OPCODE_CAST, d ? MIX_BFLOAT16 : MIX_FLOAT16, sum, 0, 0));
      fill_operands(&s, 77);
      check_sample("large copies", &s, threads, 0);
      end(&s);
    }
}

/* ---- conversions ---- */

/* Conversions by the tile's loads and stores. */
static void convert(const void *source, mix_dtype from, void *result, mix_dtype to, int64_t count) {
  const mix_vector *vector = mix_vector_current();
  float *part = malloc((size_t)count * sizeof *part + MIX_TILE_PADDING);
  assert_non_null(part);
  vector->load[from](part, source, count);
  vector->store[to](result, part, count);
  free(part);
}

/* Holds docs/NUMERICS.md: Subnormal numbers. */
static void conversions_of_all_halves(void **state) {
  NEED_INSTRUCTION_SET(state);
  enum { ALL = 65536 };
  static uint16_t source[ALL], result[ALL], expected[ALL];
  static float wide[ALL], wide_expected[ALL];
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16};
  for (int i = 0; i < ALL; i++) source[i] = (uint16_t)i;
  for (int d = 0; d < 2; d++) {
    convert(source, dtypes[d], wide, MIX_FLOAT32, ALL);
    mix_convert(source, dtypes[d], wide_expected, MIX_FLOAT32, ALL);
    assert_memory_equal(wide, wide_expected, sizeof wide);
    convert(wide, MIX_FLOAT32, result, dtypes[d], ALL);
    mix_convert(wide, MIX_FLOAT32, expected, dtypes[d], ALL);
    assert_memory_equal(result, expected, sizeof result);
    convert(source, dtypes[d], result, dtypes[1 - d], ALL);
    mix_convert(source, dtypes[d], expected, dtypes[1 - d], ALL);
    assert_memory_equal(result, expected, sizeof result);
    /* every midpoint between neighbours, and one ulp to either side */
    for (int k = -1; k <= 1; k++) {
      for (int i = 0; i < ALL; i++) {
        const uint32_t half = d == 0 ? 0x1000u : 0x8000u;
        wide[i] = mix_bits_float(mix_float_bits(wide_expected[i]) + half + (uint32_t)k);
      }
      convert(wide, MIX_FLOAT32, result, dtypes[d], ALL);
      mix_convert(wide, MIX_FLOAT32, expected, dtypes[d], ALL);
      assert_memory_equal(result, expected, sizeof result);
    }
    for (int i = 0; i < ALL; i++) wide[i] = mix_bits_float(mix_philox_word(d + 1u, 0, (uint64_t)i));
    for (int n = 0; n < 70; n++) {
      memset(result, 0, sizeof result);
      convert(wide + n * 900, MIX_FLOAT32, result, dtypes[d], n);
      mix_convert(wide + n * 900, MIX_FLOAT32, expected, dtypes[d], n);
      assert_memory_equal(result, expected, (size_t)n * 2);
      assert_int_equal(result[n], 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_SET(opcodes_in_all_dtypes),
      ON_EACH_SET(draws_follow_the_place),
      ON_EACH_SET(transcendental_functions_are_close),
      ON_EACH_SET(casts_between_all_dtypes),
      ON_EACH_SET(broadcasts),
      ON_EACH_SET(broadcasts_of_higher_rank),
      ON_EACH_SET(updates_in_place),
      ON_EACH_SET(a_store_waits_for_later_readers),
      ON_EACH_SET(operands_are_stored_before_they_are_overwritten),
      ON_EACH_SET(fused_equals_unfused),
      ON_EACH_SET(all_finite_sees_every_element),
      ON_EACH_SET(all_finite_of_scaled_halves),
      ON_EACH_SET(sums_in_programs),
      ON_EACH_SET(long_programs),
      ON_EACH_SET(empty_programs),
      ON_EACH_SET(epilogue_blocks),
      ON_EACH_SET(bits_depend_on_the_position_only),
      ON_EACH_SET(superinstructions_round_both_instructions),
      ON_EACH_SET(chains_round_every_instruction),
      ON_EACH_SET(other_code_is_no_chain),
      ON_EACH_SET(large_copies),
      ON_EACH_SET(conversions_of_all_halves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
