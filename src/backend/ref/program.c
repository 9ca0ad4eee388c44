/* The interpreter of element-wise programs (ir/program.h), one element at a time. */
#include "backend/ref/ref.h"
#include "base/alloc.h"
#include "ops/formulas.h"
#include "ops/stochastic_round.h"
#include "tensor/convert.h"

/* ---- the formulas as tables of functions ---- */

typedef struct operands {
  mix_ref_value a, b, c;
  double alpha;
} operands;
typedef mix_ref_value formula(const operands *x);

#define REAL_FORMULAS(X) MIX_REAL_UNARY(X) MIX_REAL_BINARY(X) MIX_REAL_TERNARY(X)
#define INTEGER_FORMULAS(X) MIX_INTEGER_UNARY(X) MIX_INTEGER_BINARY(X) MIX_INTEGER_TERNARY(X)
#define LOGICAL_FORMULAS(X) MIX_LOGICAL_UNARY(X) MIX_LOGICAL_BINARY(X)

#define REAL_FUNCTION(type, code, expression)                                                                \
  static mix_ref_value type##_##code(const operands *x) {                                                    \
    type a = (type)x->a.real, b = (type)x->b.real, c = (type)x->c.real, alpha = (type)x->alpha;              \
    (void)b, (void)c, (void)alpha;                                                                           \
    type result = (type)(expression);                                                                        \
    return (mix_ref_value){.real = result};                                                                  \
  }
#define FLOAT_FUNCTION(code, expression) REAL_FUNCTION(float, code, expression)
#define DOUBLE_FUNCTION(code, expression) REAL_FUNCTION(double, code, expression)
#define INTEGER_FUNCTION(code, expression)                                                                   \
  static mix_ref_value integer_##code(const operands *x) {                                                   \
    int64_t a = x->a.integer, b = x->b.integer, c = x->c.integer;                                            \
    (void)b, (void)c;                                                                                        \
    return (mix_ref_value){.integer = (int64_t)(expression)};                                                \
  }
#define LOGICAL_FUNCTION(code, expression)                                                                   \
  static mix_ref_value logical_##code(const operands *x) {                                                   \
    int64_t a = x->a.integer, b = x->b.integer;                                                              \
    (void)a, (void)b;                                                                                        \
    return (mix_ref_value){.integer = (expression)};                                                         \
  }
#define COMPARE_FUNCTION(code, expression)                                                                   \
  static mix_ref_value real_##code(const operands *x) {                                                      \
    double a = x->a.real, b = x->b.real;                                                                     \
    return (mix_ref_value){.integer = (expression)};                                                         \
  }                                                                                                          \
  static mix_ref_value integer_##code(const operands *x) {                                                   \
    int64_t a = x->a.integer, b = x->b.integer;                                                              \
    return (mix_ref_value){.integer = (expression)};                                                         \
  }
#define CLASSIFY_FUNCTION(code, expression)                                                                  \
  static mix_ref_value real_##code(const operands *x) {                                                      \
    double a = x->a.real;                                                                                    \
    return (mix_ref_value){.integer = (expression)};                                                         \
  }
REAL_FORMULAS(FLOAT_FUNCTION)
REAL_FORMULAS(DOUBLE_FUNCTION)
INTEGER_FORMULAS(INTEGER_FUNCTION)
LOGICAL_FORMULAS(LOGICAL_FUNCTION)
MIX_COMPARISONS(COMPARE_FUNCTION)
MIX_CLASSIFICATIONS(CLASSIFY_FUNCTION)

#define FLOAT_ROW(code, expression) [MIX_OPCODE_##code] = float_##code,
#define DOUBLE_ROW(code, expression) [MIX_OPCODE_##code] = double_##code,
#define INTEGER_ROW(code, expression) [MIX_OPCODE_##code] = integer_##code,
#define LOGICAL_ROW(code, expression) [MIX_OPCODE_##code] = logical_##code,
#define REAL_ROW(code, expression) [MIX_OPCODE_##code] = real_##code,

static formula *const float_formulas[MIX_OPCODE_COUNT] = {REAL_FORMULAS(FLOAT_ROW) MIX_COMPARISONS(REAL_ROW)
                                                              MIX_CLASSIFICATIONS(REAL_ROW)};
static formula *const double_formulas[MIX_OPCODE_COUNT] = {REAL_FORMULAS(DOUBLE_ROW) MIX_COMPARISONS(REAL_ROW)
                                                               MIX_CLASSIFICATIONS(REAL_ROW)};
static formula *const integer_formulas[MIX_OPCODE_COUNT] = {INTEGER_FORMULAS(INTEGER_ROW)
                                                                MIX_COMPARISONS(INTEGER_ROW)};
static formula *const bool_formulas[MIX_OPCODE_COUNT] = {LOGICAL_FORMULAS(LOGICAL_ROW)
                                                             MIX_COMPARISONS(INTEGER_ROW)};

static formula *formula_of(mix_opcode opcode, mix_dtype dtype) {
  if (dtype == MIX_BOOL) return bool_formulas[opcode];
  if (dtype == MIX_FLOAT64) return double_formulas[opcode];
  return mix_dtype_is_floating(dtype) ? float_formulas[opcode] : integer_formulas[opcode];
}

/* ---- integer operations that can fail ---- */

typedef int64_t partial_function(int64_t a, int64_t b, const char **failure);

static int64_t integer_floor_divide(int64_t a, int64_t b, const char **failure) {
  if (b == 0) return *failure = "integer division by zero", 0;
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t integer_floor_mod(int64_t a, int64_t b, const char **failure) {
  if (b == 0) return *failure = "integer division by zero", 0;
  if (b == -1) return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t integer_power(int64_t a, int64_t b, const char **failure) {
  if (b < 0) return *failure = "integer raised to a negative power", 0;
  uint64_t result = 1;
  for (uint64_t square = (uint64_t)a; b; b >>= 1, square *= square)
    if (b & 1) result *= square;
  return (int64_t)result;
}

static partial_function *partial_of(mix_opcode opcode, mix_dtype dtype) {
  if (!mix_dtype_is_integer(dtype)) return NULL;
  if (opcode == MIX_OPCODE_FLOOR_DIVIDE) return integer_floor_divide;
  if (opcode == MIX_OPCODE_FLOOR_MOD) return integer_floor_mod;
  return opcode == MIX_OPCODE_POWER ? integer_power : NULL;
}

/* ---- the interpreter ---- */

typedef struct interpreter {
  bool finite;
  mix_ref_value sum;
  mix_ref_value *sums[MIX_PROGRAM_SUMS]; /* the sum of the current row, or those of all columns */
  mix_ref_value registers[];
} interpreter;

/* The dtype that an instruction computes in: that of its operands. */
static mix_dtype operand_dtype(const mix_program *program, const mix_instruction *instruction) {
  int operand = instruction->opcode == MIX_OPCODE_SELECT ? 1 : 0;
  return mix_program_register_dtype(program, instruction->operands[operand]);
}

/* A number of at most 32 bits, seed and step. */
static bool can_draw(const mix_program *program, const mix_instruction *instruction) {
  const int *operand = instruction->operands;
  const mix_dtype x = mix_program_register_dtype(program, operand[0]);
  return mix_dtype_is_floating(x) && x != MIX_FLOAT64 &&
         mix_program_register_dtype(program, operand[1]) == MIX_INT64 &&
         mix_program_register_dtype(program, operand[2]) == MIX_INT64;
}

const char *mix_ref_program_unsupported_reason(const mix_program *program) {
  for (int i = 0; i < program->instruction_count; i++) {
    const mix_instruction *instruction = &program->instructions[i];
    mix_dtype dtype = operand_dtype(program, instruction);
    bool known = instruction->opcode == MIX_OPCODE_CAST || instruction->opcode == MIX_OPCODE_SELECT ||
                 formula_of(instruction->opcode, dtype) || partial_of(instruction->opcode, dtype);
    if (mix_opcode_draws(instruction->opcode)) known = can_draw(program, instruction);
    if (!known) return "an instruction of the program has no meaning for its dtype";
  }
  return NULL;
}

bool mix_ref_program_prepare(mix_kernel_args *args, int threads) {
  (void)threads;
  const mix_program *program = args->program;
  size_t registers = (size_t)program->load_count + (size_t)program->instruction_count, count = registers;
  for (int i = 0; i < program->sum_count; i++)
    count += program->sums[i].column ? (size_t)program->sums[i].column : 1;
  interpreter *state = args->prepared = mix_calloc(1, sizeof *state + count * sizeof(mix_ref_value));
  mix_ref_value *next = state ? state->registers + registers : NULL;
  for (int i = 0; i < program->sum_count && state; i++) {
    state->sums[i] = next;
    next += program->sums[i].column ? program->sums[i].column : 1;
  }
  return state != NULL;
}

/* By the place of the element in the tensor. */
static mix_ref_value stochastic_round(const operands *x, int64_t element) {
  const uint32_t bits = mix_float_bits((float)x->a.real);
  const bool nearest = x->alpha == MIX_ROUND_NEAREST;
  const uint32_t rounded =
      nearest ? mix_nearest_bits(bits)
              : mix_stochastic_bits(bits, mix_stochastic_draw(x->b.integer, x->c.integer, x->alpha, element));
  return (mix_ref_value){.real = mix_bits_float(rounded)};
}

static mix_ref_value compute(const mix_kernel_args *args, const mix_instruction *instruction,
                             const mix_ref_value *registers, int64_t element) {
  static const mix_ref_value nothing;
  const int *operand = instruction->operands;
  int arity = mix_opcode_operands(instruction->opcode);
  operands x = {registers[operand[0]], arity > 1 ? registers[operand[1]] : nothing,
                arity > 2 ? registers[operand[2]] : nothing, instruction->immediate};
  mix_dtype dtype = operand_dtype(args->program, instruction);
  if (instruction->opcode == MIX_OPCODE_CAST) return mix_ref_cast(x.a, dtype, instruction->dtype);
  if (instruction->opcode == MIX_OPCODE_SELECT) return x.a.integer ? x.b : x.c;
  if (mix_opcode_draws(instruction->opcode)) return stochastic_round(&x, element);
  partial_function *partial = partial_of(instruction->opcode, dtype);
  if (!partial) return mix_ref_round(formula_of(instruction->opcode, dtype)(&x), instruction->dtype);
  const char *failure = NULL;
  mix_ref_value result = {.integer = partial(x.a.integer, x.b.integer, &failure)};
  if (failure) mix_kernel_fail(args, failure);
  return mix_ref_round(result, instruction->dtype);
}

void mix_ref_program_begin(const mix_kernel_args *args) {
  interpreter *state = args->prepared;
  state->finite = true;
  state->sum = (mix_ref_value){0};
}

/* Stores the sum so far, or its mean over `count`, as element `index` of the reduction's output. */
static void store_sum(const mix_kernel_args *args, int64_t index, double count) {
  const mix_program *program = args->program;
  mix_ref_value sum = ((const interpreter *)args->prepared)->sum;
  mix_dtype dtype = mix_program_register_dtype(program, program->reduced);
  if (program->reduction == MIX_REDUCE_TO_MEAN) sum.real /= count;
  mix_ref_store(args->outputs[program->reduction_output], dtype, index, mix_ref_round(sum, dtype));
}

static void store_one_of_sums(const mix_kernel_args *args, const mix_program_sum *sum, int64_t index,
                              mix_ref_value value, double count) {
  mix_dtype dtype = mix_program_register_dtype(args->program, sum->reg);
  if (sum->kind == MIX_REDUCE_TO_MEAN) value.real /= count;
  mix_ref_store(args->outputs[sum->output], dtype, index, mix_ref_round(value, dtype));
}

/* Adds the values of one element to the sums, and stores those of rows that it ends. */
static void add_to_sums(const mix_kernel_args *args, int64_t element) {
  const mix_program *program = args->program;
  interpreter *state = args->prepared;
  for (int i = 0; i < program->sum_count; i++) {
    const mix_program_sum *sum = &program->sums[i];
    mix_ref_value *to = &state->sums[i][sum->column ? element % sum->column : 0];
    const bool first = sum->column ? element < sum->column : element % sum->row == 0;
    if (first) *to = (mix_ref_value){0};
    to->real += state->registers[sum->reg].real;
    if (sum->row && (element + 1) % sum->row == 0)
      store_one_of_sums(args, sum, element / sum->row, *to, (double)sum->row);
  }
}

void mix_ref_program_element(const mix_kernel_args *args, int64_t element, mix_ref_value product) {
  const mix_program *program = args->program;
  interpreter *state = args->prepared;
  mix_ref_value *registers = state->registers;
  int64_t index[MIX_MAX_RANK];
  mix_ref_unravel(element, program->rank, program->dims, index);
  for (int i = 0; i < program->load_count; i++) {
    const mix_program_load *load = &program->loads[i];
    int64_t at = load->offset;
    for (int d = 0; d < program->rank; d++) at += index[d] * load->strides[d];
    registers[i] = load->input == MIX_FROM_ACCUMULATOR
                       ? mix_ref_round(product, load->dtype)
                       : mix_ref_load(args->inputs[load->input], load->dtype, at);
  }
  for (int i = 0; i < program->instruction_count; i++)
    registers[program->load_count + i] = compute(args, &program->instructions[i], registers, element);
  for (int i = 0; i < program->store_count; i++) {
    const mix_program_store *store = &program->stores[i];
    mix_ref_store(args->outputs[store->output], mix_program_register_dtype(program, store->reg), element,
                  registers[store->reg]);
  }
  add_to_sums(args, element);
  if (program->reduction == MIX_REDUCE_NOTHING) return;
  const mix_ref_value *value = &registers[program->reduced];
  state->finite = state->finite && isfinite(value->real);
  state->sum.real += value->real;
  state->sum.integer = (int64_t)((uint64_t)state->sum.integer + (uint64_t)value->integer);
  if (!program->row || (element + 1) % program->row) return;
  store_sum(args, element / program->row, (double)program->row);
  state->sum = (mix_ref_value){0};
}

void mix_ref_program_end(const mix_kernel_args *args) {
  const mix_program *program = args->program;
  const interpreter *state = args->prepared;
  void *output = program->reduction == MIX_REDUCE_NOTHING ? NULL : args->outputs[program->reduction_output];
  if (program->reduction == MIX_REDUCE_ALL_FINITE) *(bool *)output = state->finite;
  double count = 1;
  for (int d = 0; d < program->rank; d++) count *= (double)program->dims[d];
  if ((program->reduction == MIX_REDUCE_TO_SUM || program->reduction == MIX_REDUCE_TO_MEAN) && !program->row)
    store_sum(args, 0, count);
  for (int i = 0; i < program->sum_count; i++)
    for (int64_t k = 0; k < program->sums[i].column; k++)
      store_one_of_sums(args, &program->sums[i], k, state->sums[i][k],
                        count / (double)program->sums[i].column);
}

static const char *fused_unsupported_reason(const mix_kernel_args *args) {
  return mix_ref_program_unsupported_reason(args->program);
}

static void fused_run(const mix_kernel_args *args, const mix_team *team) {
  (void)team;
  int64_t count = 1;
  for (int d = 0; d < args->program->rank; d++) count *= args->program->dims[d];
  mix_ref_program_begin(args);
  for (int64_t i = 0; i < count; i++) mix_ref_program_element(args, i, (mix_ref_value){0});
  mix_ref_program_end(args);
}

const mix_kernel mix_ref_fused = {.name = "ref_fused",
                                  .unsupported_reason = fused_unsupported_reason,
                                  .prepare = mix_ref_program_prepare,
                                  .serial = mix_ref_serial,
                                  .run = fused_run};
