/* The reference's element-wise programs: every opcode in every dtype against independently written formulas
 * in long double or 128-bit integers; then strides, aliasing and reductions. */
/* Holds docs/NUMERICS.md: Element-wise operations. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/run_op.h"
#include "base/philox.h"
#include <float.h>
#include <math.h>

typedef long double wide;

/* ---- one instruction ---- */

typedef struct instruction_run {
  mix_status status;
  double real[8];
  int64_t integer[8];
} instruction_run;

/* Runs opcode(operands) element-wise over `count` <= 8 elements. */
static instruction_run run_instruction(mix_opcode opcode, mix_dtype result, double immediate, int count,
                                       int arity, const operand *in) {
  mix_program_load loads[3];
  mix_instruction instruction = {.opcode = opcode, .dtype = result, .immediate = immediate};
  for (int i = 0; i < arity; i++) {
    loads[i] = (mix_program_load){.input = i, .dtype = in[i].dtype, .strides = {1}};
    instruction.operands[i] = i;
  }
  mix_program_store store = {0, arity};
  mix_program program = {.rank = 1,
                         .dims = {count},
                         .load_count = arity,
                         .instruction_count = 1,
                         .store_count = 1,
                         .loads = loads,
                         .instructions = &instruction,
                         .stores = &store};
  operand out = operand_of(result, MIX_SHAPE(count), NULL);
  instruction_run run = {
      .status = run_step(&mix_backend_ref, 1, &mix_op_fused, NULL, &program, arity, in, 1, &out)};
  for (int i = 0; i < count; i++) {
    if (mix_dtype_is_floating(result))
      run.real[i] = mix_load_double(out.data, result, i);
    else
      run.integer[i] = mix_load_integer(out.data, result, i);
  }
  free(out.data);
  return run;
}

static const mix_dtype floats[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
static const mix_dtype integers[] = {MIX_INT8, MIX_INT16, MIX_INT32, MIX_INT64, MIX_UINT8};
enum { FLOATS = 4, INTEGERS = 5 };

/* Half an ulp of 1: the relative error of one rounding. */
static double unit(mix_dtype dtype) {
  return dtype == MIX_FLOAT16    ? 0x1p-11
         : dtype == MIX_BFLOAT16 ? 0x1p-8
         : dtype == MIX_FLOAT32  ? 0x1p-24
                                 : 0x1p-53;
}

/* The formulas again, written differently from the reference. */
static wide sigmoid_wide(wide x) { return 0.5L * (1 + tanhl(x / 2)); }
static const wide selu_scale = 1.0507009873554804934193349852946L,
                  selu_alpha = 1.6732632423543772848170429916717L;
static wide modulus(wide a, wide b) { return a - b * floorl(a / b); }

typedef struct real_case {
  mix_opcode opcode;
  int arity;
  bool positive; /* the domain of operand a */
  wide (*expected)(wide a, wide b, wide c, wide alpha);
} real_case;

/* clang-format off */
#define REAL_CASES(X)                                                                                        \
  X(IDENTITY, 1, 0, a) X(NEGATIVE, 1, 0, 0 - a) X(ABS, 1, 0, a < 0 ? -a : a)                                 \
  X(SIGN, 1, 0, a == 0 ? 0 : copysignl(1, a)) X(FLOOR, 1, 0, floorl(a)) X(CEIL, 1, 0, -floorl(-a))           \
  X(ROUND, 1, 0, nearbyintl(a)) X(SQRT, 1, 1, powl(a, 0.5L)) X(RSQRT, 1, 1, powl(a, -0.5L))                  \
  X(SQUARE, 1, 0, a * a) X(RECIPROCAL, 1, 0, 1 / a) X(EXP, 1, 0, expl(a)) X(EXPM1, 1, 0, expm1l(a))          \
  X(LOG, 1, 1, logl(a)) X(LOG1P, 1, 1, logl(1 + a)) X(SIN, 1, 0, sinl(a)) X(COS, 1, 0, cosl(a))              \
  X(TANH, 1, 0, 1 - 2 / (expl(2 * a) + 1)) X(SIGMOID, 1, 0, sigmoid_wide(a)) X(ERF, 1, 0, erfl(a))           \
  X(ERFC, 1, 0, 1 - erfl(a)) X(RELU, 1, 0, (a + fabsl(a)) / 2) X(RELU6, 1, 0, fminl((a + fabsl(a)) / 2, 6))  \
  X(ELU, 1, 0, a > 0 ? a : expm1l(a))                                                                        \
  X(SELU, 1, 0, a > 0 ? selu_scale * a : selu_scale * selu_alpha * expm1l(a))                                \
  X(SOFTPLUS, 1, 0, logl(1 + expl(a))) X(SOFTSIGN, 1, 0, a / (1 + fabsl(a)))                                 \
  X(LEAKY_RELU, 1, 0, a > 0 ? a : alpha * a) X(ADD, 2, 0, a + b) X(SUBTRACT, 2, 0, a - b)                    \
  X(MULTIPLY, 2, 0, a * b) X(DIVIDE, 2, 0, a / b) X(FLOOR_DIVIDE, 2, 0, floorl(a / b))                       \
  X(FLOOR_MOD, 2, 0, modulus(a, b)) X(POWER, 2, 1, expl(b * logl(a)))                             \
  X(ATAN2, 2, 0, 2 * atanl(a / (sqrtl(a * a + b * b) + b))) X(MAXIMUM, 2, 0, fmaxl(a, b))          \
  X(MINIMUM, 2, 0, fminl(a, b)) X(SQUARED_DIFFERENCE, 2, 0, a * a - 2 * a * b + b * b)                       \
  X(RELU_GRAD, 2, 0, a * (b > 0)) X(RELU6_GRAD, 2, 0, a * (b > 0 && b < 6))                                  \
  X(LEAKY_RELU_GRAD, 2, 0, a * (b > 0 ? 1 : alpha)) X(SOFTPLUS_GRAD, 2, 0, a * sigmoid_wide(b))              \
  X(SOFTSIGN_GRAD, 2, 0, a * powl(1 + fabsl(b), -2)) X(ELU_GRAD, 2, 0, a * (b < 0 ? b + 1 : 1))              \
  X(SELU_GRAD, 2, 0, a * (b < 0 ? b + selu_scale * selu_alpha : selu_scale))                                 \
  X(TANH_GRAD, 2, 0, b * (1 - a) * (1 + a)) X(SIGMOID_GRAD, 2, 0, b * (a - a * a))                           \
  X(SQRT_GRAD, 2, 1, b / (2 * a)) X(RSQRT_GRAD, 2, 1, -(b / 2) * powl(a, 3))                                 \
  X(RECIPROCAL_GRAD, 2, 0, -b * powl(a, 2)) X(CLIP, 3, 0, fminl(fmaxl(a, b), c))
/* clang-format on */

#define EXPECTED(code, arity, positive, formula)                                                             \
  static wide expected_##code(wide a, wide b, wide c, wide alpha) {                                          \
    (void)b, (void)c, (void)alpha;                                                                           \
    return formula;                                                                                          \
  }
REAL_CASES(EXPECTED)
#define CASE(code, arity, positive, formula) {MIX_OPCODE_##code, arity, positive, expected_##code},
static const real_case real_cases[] = {REAL_CASES(CASE)};

/* Exactly representable in all four dtypes. */
static const double points_a[8] = {0.5, -1.25, 2, -0.375, 7, 3.5, -2.5, 0.015625};
static const double points_b[8] = {1.5, 0.75, -3, 2, 1.5, -0.5, 6.5, 0.25};
static const double points_c[8] = {2, 1, 4, 3, 1.75, 3, 7, 0.5};

/* One rounding to the dtype, and before it at most four operations rounded to float (double for float64).
 * Their operands are no larger than |result| + |a b| + |a| + |b| + 1 in these cases. A step function (floor)
 * must be exact. */
static void real_formulas(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof real_cases / sizeof *real_cases; n++)
    for (int d = 0; d < FLOATS; d++) {
      const real_case *row = &real_cases[n];
      double a[8];
      for (int i = 0; i < 8; i++) a[i] = row->positive ? fabs(points_a[i]) : points_a[i];
      operand in[3] = {operand_of(floats[d], MIX_SHAPE(8), a), operand_of(floats[d], MIX_SHAPE(8), points_b),
                       operand_of(floats[d], MIX_SHAPE(8), points_c)};
      instruction_run run = run_instruction(row->opcode, floats[d], 0.125, 8, row->arity, in);
      assert_int_equal(run.status, MIX_OK);
      for (int i = 0; i < 8; i++) {
        double b = row->arity > 1 ? points_b[i] : 0,
               expected = (double)row->expected(a[i], points_b[i], points_c[i], 0.125L);
        double inner = floats[d] == MIX_FLOAT64 ? 0x1p-53 : 0x1p-24;
        double bound = unit(floats[d]) * fabs(expected) +
                       4 * inner * (fabs(expected) + fabs(a[i] * b) + fabs(a[i]) + fabs(b) + 1);
        if (!(fabs(run.real[i] - expected) <= bound))
          fail_msg("%s %s (%g, %g): %.9g, expected %.9g", mix_opcode_name(row->opcode),
                   mix_dtype_name(floats[d]), a[i], b, run.real[i], expected);
      }
      free_operands(3, in);
    }
}

/* Every opcode that is not tested as a real formula is tested by name below. */
static void no_opcode_is_left_out(void **state) {
  (void)state;
  bool seen[MIX_OPCODE_COUNT] = {[MIX_OPCODE_NONE] = true};
  for (size_t n = 0; n < sizeof real_cases / sizeof *real_cases; n++) seen[real_cases[n].opcode] = true;
  static const mix_opcode others[] = {
      MIX_OPCODE_CAST,          MIX_OPCODE_IS_FINITE,   MIX_OPCODE_IS_INF,      MIX_OPCODE_IS_NAN,
      MIX_OPCODE_LOGICAL_NOT,   MIX_OPCODE_LOGICAL_AND, MIX_OPCODE_LOGICAL_OR,  MIX_OPCODE_EQUAL,
      MIX_OPCODE_NOT_EQUAL,     MIX_OPCODE_LESS,        MIX_OPCODE_LESS_EQUAL,  MIX_OPCODE_GREATER,
      MIX_OPCODE_GREATER_EQUAL, MIX_OPCODE_SELECT,      MIX_OPCODE_BITWISE_AND, MIX_OPCODE_BITWISE_OR,
      MIX_OPCODE_BITWISE_XOR,   MIX_OPCODE_SHIFT_LEFT,  MIX_OPCODE_SHIFT_RIGHT, MIX_OPCODE_STOCHASTIC_ROUND};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) seen[others[i]] = true;
  for (int code = 0; code < MIX_OPCODE_COUNT; code++)
    if (!seen[code]) fail_msg("%s is not tested", mix_opcode_name((mix_opcode)code));
}

/* ---- special values ---- */

static void assert_special(mix_opcode opcode, int arity, double a, double b, double expected) {
  for (int d = 0; d < FLOATS; d++) {
    operand in[2] = {operand_of(floats[d], MIX_SHAPE(1), &a), operand_of(floats[d], MIX_SHAPE(1), &b)};
    instruction_run run = run_instruction(opcode, floats[d], 0.5, 1, arity, in);
    free_operands(2, in);
    bool same = isnan(expected) ? isnan(run.real[0]) : run.real[0] == expected;
    if (!same)
      fail_msg("%s(%g, %g) in %s: %g, expected %g", mix_opcode_name(opcode), a, b, mix_dtype_name(floats[d]),
               run.real[0], expected);
  }
}

static void special_values(void **state) {
  (void)state;
  static const mix_opcode unary[] = {
      MIX_OPCODE_RELU,  MIX_OPCODE_RELU6,    MIX_OPCODE_ELU,      MIX_OPCODE_SELU,       MIX_OPCODE_ABS,
      MIX_OPCODE_SIGN,  MIX_OPCODE_SOFTPLUS, MIX_OPCODE_SOFTSIGN, MIX_OPCODE_LEAKY_RELU, MIX_OPCODE_SIGMOID,
      MIX_OPCODE_ROUND, MIX_OPCODE_EXP,      MIX_OPCODE_LOG,      MIX_OPCODE_TANH,       MIX_OPCODE_SQRT};
  for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) assert_special(unary[i], 1, NAN, 0, NAN);
  static const mix_opcode either[] = {MIX_OPCODE_MAXIMUM, MIX_OPCODE_MINIMUM};
  for (int i = 0; i < 2; i++) {
    assert_special(either[i], 2, NAN, 1, NAN);
    assert_special(either[i], 2, 1, NAN, NAN);
  }
  assert_special(MIX_OPCODE_SIGMOID, 1, 1000, 0, 1);
  assert_special(MIX_OPCODE_SIGMOID, 1, -1000, 0, 0);
  assert_special(MIX_OPCODE_SOFTPLUS, 1, 1000, 0, 1000);
  assert_special(MIX_OPCODE_SOFTPLUS, 1, -1000, 0, 0);
  assert_special(MIX_OPCODE_SOFTPLUS, 1, INFINITY, 0, INFINITY);
  assert_special(MIX_OPCODE_SQRT, 1, -1, 0, NAN);
  assert_special(MIX_OPCODE_DIVIDE, 2, 1, 0, INFINITY);
  assert_special(MIX_OPCODE_DIVIDE, 2, 0, 0, NAN);
  assert_special(MIX_OPCODE_SUBTRACT, 2, INFINITY, INFINITY, NAN);
  assert_special(MIX_OPCODE_FLOOR_MOD, 2, -7, 3, 2);
  assert_special(MIX_OPCODE_FLOOR_MOD, 2, 7, -3, -2);
  assert_special(MIX_OPCODE_FLOOR_MOD, 2, -6, 3, 0);
  assert_special(MIX_OPCODE_RELU_GRAD, 2, 5, 0, 0);
  assert_special(MIX_OPCODE_RELU6_GRAD, 2, 5, 6, 0);
  /* gates multiply, as in TensorFlow's CPU kernels */
  assert_special(MIX_OPCODE_RELU_GRAD, 2, INFINITY, -1, NAN);
  assert_special(MIX_OPCODE_RELU_GRAD, 2, INFINITY, 1, INFINITY);
  assert_special(MIX_OPCODE_RELU6_GRAD, 2, -INFINITY, 7, NAN);
  assert_special(MIX_OPCODE_LEAKY_RELU_GRAD, 2, 4, 0, 2);
  static const double halves[] = {0.5, 1.5, 2.5, -0.5, -1.5, -2.5}, even[] = {0, 2, 2, 0, -2, -2};
  for (int i = 0; i < 6; i++) assert_special(MIX_OPCODE_ROUND, 1, halves[i], 0, even[i]);
  double big[] = {40000, 3e38, 3e38, 1.5e308};
  for (int d = 0; d < FLOATS; d++) { /* overflow becomes infinity */
    operand in[2] = {operand_of(floats[d], MIX_SHAPE(1), &big[d]),
                     operand_of(floats[d], MIX_SHAPE(1), &big[d])};
    assert_true(run_instruction(MIX_OPCODE_ADD, floats[d], 0, 1, 2, in).real[0] == INFINITY);
    free_operands(2, in);
  }
}

/* 1 + k / 8 of the distance to the next number, which is taken where the element's 16 bits are enough. The
 * bits are words 0 to 3 of Philox block 0, of key 5 and counter 7 + 3 * 2^40, low half first. */
static void stochastic_rounding(void **state) {
  (void)state;
  double x[8], seed[8], step[8];
  for (int i = 0; i < 8; i++) x[i] = 1 + i / 8.0 * 0x1p-7, seed[i] = 5, step[i] = 7;
  operand in[3] = {operand_of(MIX_FLOAT32, MIX_SHAPE(8), x), operand_of(MIX_INT64, MIX_SHAPE(8), seed),
                   operand_of(MIX_INT64, MIX_SHAPE(8), step)};
  instruction_run run = run_instruction(MIX_OPCODE_STOCHASTIC_ROUND, MIX_BFLOAT16, 3, 8, 3, in);
  instruction_run nearest = run_instruction(MIX_OPCODE_STOCHASTIC_ROUND, MIX_BFLOAT16, -1, 8, 3, in);
  free_operands(3, in);
  assert_int_equal(run.status, MIX_OK);
  const mix_philox block = mix_philox_block(5, 7 + (UINT64_C(3) << 40), 0);
  for (int i = 0; i < 8; i++) {
    const uint32_t word = block.v[i / 2], bits = i % 2 ? word >> 16 : word & 0xffff;
    assert_true(run.real[i] == (i / 8.0 * 65536 + bits >= 65536 ? 1 + 0x1p-7 : 1));
    assert_true(nearest.real[i] == (i > 4 ? 1 + 0x1p-7 : 1));
  }
}

static void classification(void **state) {
  (void)state;
  const double x[5] = {1, INFINITY, -INFINITY, NAN, 0};
  static const int64_t expected[3][5] = {{1, 0, 0, 0, 1}, {0, 1, 1, 0, 0}, {0, 0, 0, 1, 0}};
  static const mix_opcode opcodes[] = {MIX_OPCODE_IS_FINITE, MIX_OPCODE_IS_INF, MIX_OPCODE_IS_NAN};
  for (int d = 0; d < FLOATS; d++) {
    operand in = operand_of(floats[d], MIX_SHAPE(5), x);
    for (int o = 0; o < 3; o++) {
      instruction_run run = run_instruction(opcodes[o], MIX_BOOL, 0, 5, 1, &in);
      for (int i = 0; i < 5; i++) assert_int_equal(run.integer[i], expected[o][i]);
    }
    free(in.data);
  }
}

static void comparisons(void **state) {
  (void)state;
  static const mix_dtype all[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT8,
                                  MIX_INT16,   MIX_INT32,    MIX_INT64,   MIX_UINT8,   MIX_BOOL};
  const double a[3] = {0, 1, 1}, b[3] = {1, 1, 0};
  static const mix_opcode opcodes[] = {MIX_OPCODE_EQUAL,      MIX_OPCODE_NOT_EQUAL, MIX_OPCODE_LESS,
                                       MIX_OPCODE_LESS_EQUAL, MIX_OPCODE_GREATER,   MIX_OPCODE_GREATER_EQUAL};
  static const int expected[6][3] = {{0, 1, 0}, {1, 0, 1}, {1, 0, 0}, {1, 1, 0}, {0, 0, 1}, {0, 1, 1}};
  for (size_t d = 0; d < sizeof all / sizeof *all; d++)
    for (int o = 0; o < 6; o++) {
      operand in[2] = {operand_of(all[d], MIX_SHAPE(3), a), operand_of(all[d], MIX_SHAPE(3), b)};
      instruction_run run = run_instruction(opcodes[o], MIX_BOOL, 0, 3, 2, in);
      for (int i = 0; i < 3; i++) assert_int_equal(run.integer[i], expected[o][i]);
      free_operands(2, in);
    }
  for (int o = 0; o < 6; o++) { /* a NaN is unequal to everything and has no order */
    operand in[2] = {operand_of(MIX_FLOAT16, MIX_SHAPE(1), NUMBERS(NAN)),
                     operand_of(MIX_FLOAT16, MIX_SHAPE(1), NUMBERS(NAN))};
    assert_int_equal(run_instruction(opcodes[o], MIX_BOOL, 0, 1, 2, in).integer[0],
                     opcodes[o] == MIX_OPCODE_NOT_EQUAL);
    free_operands(2, in);
  }
  int64_t near[2][1] = {{INT64_MAX}, {INT64_MAX - 1}}; /* equal as doubles */
  operand in[2] = {{MIX_INT64, MIX_SHAPE(1), near[0]}, {MIX_INT64, MIX_SHAPE(1), near[1]}};
  assert_int_equal(run_instruction(MIX_OPCODE_GREATER, MIX_BOOL, 0, 1, 2, in).integer[0], 1);
}

static void logic_and_select(void **state) {
  (void)state;
  operand in[2] = {operand_of(MIX_BOOL, MIX_SHAPE(4), NUMBERS(0, 0, 1, 1)),
                   operand_of(MIX_BOOL, MIX_SHAPE(4), NUMBERS(0, 1, 0, 1))};
  instruction_run both = run_instruction(MIX_OPCODE_LOGICAL_AND, MIX_BOOL, 0, 4, 2, in);
  instruction_run any = run_instruction(MIX_OPCODE_LOGICAL_OR, MIX_BOOL, 0, 4, 2, in);
  instruction_run not = run_instruction(MIX_OPCODE_LOGICAL_NOT, MIX_BOOL, 0, 4, 1, in);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(both.integer[i], i == 3);
    assert_int_equal(any.integer[i], i > 0);
    assert_int_equal(not .integer[i], i < 2);
  }
  static const mix_dtype all[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT8,
                                  MIX_INT32,   MIX_INT64,    MIX_UINT8,   MIX_BOOL};
  for (size_t d = 0; d < sizeof all / sizeof *all; d++) {
    operand three[3] = {in[0], operand_of(all[d], MIX_SHAPE(4), NUMBERS(1, 1, 1, 1)),
                        operand_of(all[d], MIX_SHAPE(4), NUMBERS(0, 0, 0, 0))};
    instruction_run run = run_instruction(MIX_OPCODE_SELECT, all[d], 0, 4, 3, three);
    for (int i = 0; i < 4; i++) assert_int_equal((int)(run.real[i] + (double)run.integer[i]), i >= 2);
    free_operands(2, three + 1);
  }
  free_operands(2, in);
}

/* ---- integers ---- */

typedef __int128 huge;

static int64_t wrapped(huge x, mix_dtype dtype) {
  switch (dtype) {
  case MIX_INT8: return (int8_t)x;
  case MIX_INT16: return (int16_t)x;
  case MIX_INT32: return (int32_t)x;
  case MIX_UINT8: return (uint8_t)x;
  default: return (int64_t)(unsigned __int128)x;
  }
}

static huge floor_quotient(huge a, huge b) {
  huge quotient = a / b, leftover = a - quotient * b;
  return leftover != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

static huge integer_expected(mix_opcode opcode, huge a, huge b, huge c) {
  switch (opcode) {
  case MIX_OPCODE_IDENTITY: return a;
  case MIX_OPCODE_NEGATIVE: return -a;
  case MIX_OPCODE_ABS: return a < 0 ? -a : a;
  case MIX_OPCODE_SIGN: return a < 0 ? -1 : a > 0;
  case MIX_OPCODE_SQUARE: return a * a;
  case MIX_OPCODE_RELU: return a > 0 ? a : 0;
  case MIX_OPCODE_ADD: return a + b;
  case MIX_OPCODE_SUBTRACT: return a - b;
  case MIX_OPCODE_MULTIPLY: return a * b;
  case MIX_OPCODE_MAXIMUM: return a > b ? a : b;
  case MIX_OPCODE_MINIMUM: return a > b ? b : a;
  case MIX_OPCODE_FLOOR_DIVIDE: return floor_quotient(a, b);
  case MIX_OPCODE_FLOOR_MOD: return a - b * floor_quotient(a, b);
  case MIX_OPCODE_BITWISE_AND: return (int64_t)a & (int64_t)b;
  case MIX_OPCODE_BITWISE_OR: return a + b - ((int64_t)a & (int64_t)b);
  case MIX_OPCODE_BITWISE_XOR: return a + b - 2 * (huge)((int64_t)a & (int64_t)b);
  case MIX_OPCODE_SHIFT_LEFT: return a * ((huge)1 << (b < 0 ? 0 : b > 63 ? 63 : b));
  case MIX_OPCODE_SHIFT_RIGHT: return floor_quotient(a, (huge)1 << (b < 0 ? 0 : b > 63 ? 63 : b));
  case MIX_OPCODE_CLIP: return a < b ? (b < c ? b : c) : a > c ? c : a;
  case MIX_OPCODE_SQUARED_DIFFERENCE: return (huge)((unsigned __int128)(a - b) * (unsigned __int128)(a - b));
  default: return 0;
  }
}

static void integer_formulas(void **state) {
  (void)state;
  static const struct {
    mix_opcode opcode;
    int arity;
  } cases[] = {{MIX_OPCODE_IDENTITY, 1},    {MIX_OPCODE_NEGATIVE, 1},   {MIX_OPCODE_ABS, 1},
               {MIX_OPCODE_SIGN, 1},        {MIX_OPCODE_SQUARE, 1},     {MIX_OPCODE_RELU, 1},
               {MIX_OPCODE_ADD, 2},         {MIX_OPCODE_SUBTRACT, 2},   {MIX_OPCODE_MULTIPLY, 2},
               {MIX_OPCODE_MAXIMUM, 2},     {MIX_OPCODE_MINIMUM, 2},    {MIX_OPCODE_FLOOR_DIVIDE, 2},
               {MIX_OPCODE_FLOOR_MOD, 2},   {MIX_OPCODE_CLIP, 3},       {MIX_OPCODE_SQUARED_DIFFERENCE, 2},
               {MIX_OPCODE_BITWISE_AND, 2}, {MIX_OPCODE_BITWISE_OR, 2}, {MIX_OPCODE_BITWISE_XOR, 2},
               {MIX_OPCODE_SHIFT_LEFT, 2},  {MIX_OPCODE_SHIFT_RIGHT, 2}};
  for (int d = 0; d < INTEGERS; d++) {
    mix_dtype dtype = integers[d];
    int64_t largest = dtype == MIX_UINT8   ? 255
                      : dtype == MIX_INT64 ? INT64_MAX
                                           : (INT64_C(1) << (8 * mix_dtype_size(dtype) - 1)) - 1;
    int64_t smallest = dtype == MIX_UINT8 ? 0 : -largest - 1, low = dtype == MIX_UINT8 ? 0 : -20;
    int64_t minus_seven = dtype == MIX_UINT8 ? 9 : -7, minus_one = dtype == MIX_UINT8 ? 1 : -1;
    int64_t a[8] = {7, minus_seven, largest, smallest, largest, smallest, minus_seven, 42},
            b[8] = {3, 3, 2, minus_one, largest, 1, minus_one, 10};
    operand in[3];
    for (int k = 0; k < 3; k++) {
      in[k] = operand_of(dtype, MIX_SHAPE(8), NULL);
      for (int i = 0; i < 8; i++) mix_store_integer(in[k].data, dtype, i, k == 0 ? a[i] : k == 1 ? b[i] : 20);
    }
    for (size_t o = 0; o < sizeof cases / sizeof *cases; o++) {
      if (cases[o].opcode == MIX_OPCODE_CLIP) {
        for (int i = 0; i < 8; i++)
          mix_store_integer(in[1].data, dtype, i, low), mix_store_integer(in[2].data, dtype, i, 20);
      }
      instruction_run run = run_instruction(cases[o].opcode, dtype, 0, 8, cases[o].arity, in);
      assert_int_equal(run.status, MIX_OK);
      for (int i = 0; i < 8; i++) {
        int64_t right = cases[o].opcode == MIX_OPCODE_CLIP ? low : b[i];
        int64_t expected = wrapped(integer_expected(cases[o].opcode, a[i], right, 20), dtype);
        if (run.integer[i] != expected)
          fail_msg("%s %s (%lld, %lld): %lld, expected %lld", mix_opcode_name(cases[o].opcode),
                   mix_dtype_name(dtype), (long long)a[i], (long long)right, (long long)run.integer[i],
                   (long long)expected);
      }
      for (int i = 0; i < 8; i++) mix_store_integer(in[1].data, dtype, i, b[i]);
    }
    free_operands(3, in);
  }
}

static void integer_powers_wrap(void **state) {
  (void)state;
  operand in[2] = {operand_of(MIX_INT32, MIX_SHAPE(5), NUMBERS(3, -2, 0, 7, 2)),
                   operand_of(MIX_INT32, MIX_SHAPE(5), NUMBERS(4, 3, 0, 1, 32))};
  instruction_run run = run_instruction(MIX_OPCODE_POWER, MIX_INT32, 0, 5, 2, in);
  static const int64_t expected[] = {81, -8, 1, 7, 0};
  for (int i = 0; i < 5; i++) assert_int_equal(run.integer[i], expected[i]);
  free_operands(2, in);
}

static void integer_division_by_zero_is_an_error(void **state) {
  (void)state;
  static const mix_opcode opcodes[] = {MIX_OPCODE_FLOOR_DIVIDE, MIX_OPCODE_FLOOR_MOD};
  for (int d = 0; d < INTEGERS; d++)
    for (int o = 0; o < 2; o++) {
      operand in[2] = {operand_of(integers[d], MIX_SHAPE(2), NUMBERS(6, 6)),
                       operand_of(integers[d], MIX_SHAPE(2), NUMBERS(0, 4))};
      instruction_run run = run_instruction(opcodes[o], integers[d], 0, 2, 2, in);
      assert_int_equal(run.status, MIX_VALUE_ERROR);
      assert_non_null(strstr(mix_error_message(), "integer division by zero"));
      assert_non_null(strstr(mix_error_message(), "model/layer"));
      mix_error_clear();
      assert_int_equal(run.integer[0], 0);
      assert_int_equal(run.integer[1], opcodes[o] == MIX_OPCODE_FLOOR_DIVIDE ? 1 : 2);
      free_operands(2, in);
    }
}

static void meaningless_programs_are_rejected(void **state) {
  (void)state;
  operand in = operand_of(MIX_INT32, MIX_SHAPE(1), NUMBERS(1));
  assert_int_equal(run_instruction(MIX_OPCODE_EXP, MIX_INT32, 0, 1, 1, &in).status, MIX_UNSUPPORTED);
  assert_non_null(strstr(mix_error_message(), "ref_fused"));
  mix_error_clear();
  free(in.data);
}

/* ---- casts ---- */

static void casts(void **state) {
  (void)state;
  const double x[8] = {0, 1, 2.5, 3.75, 100, 127, 17, 64};
  static const mix_dtype all[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT8,
                                  MIX_INT16,   MIX_INT32,    MIX_INT64,   MIX_UINT8,   MIX_BOOL};
  for (size_t from = 0; from < 10; from++)
    for (size_t to = 0; to < 10; to++) {
      bool whole = !mix_dtype_is_floating(all[from]);
      operand in = operand_of(all[from], MIX_SHAPE(8), NULL);
      for (int i = 0; i < 8; i++) {
        double value = all[from] == MIX_BOOL ? x[i] != 0 : whole ? trunc(x[i]) : x[i];
        if (whole)
          mix_store_integer(in.data, all[from], i, (int64_t)value);
        else
          mix_store_double(in.data, all[from], i, value);
      }
      instruction_run run = run_instruction(MIX_OPCODE_CAST, all[to], 0, 8, 1, &in);
      for (int i = 0; i < 8; i++) {
        double value = all[from] == MIX_BOOL ? x[i] != 0 : whole ? trunc(x[i]) : x[i];
        double expected = all[to] == MIX_BOOL              ? value != 0
                          : mix_dtype_is_floating(all[to]) ? value
                                                           : trunc(value);
        assert_true(run.real[i] + (double)run.integer[i] == expected);
      }
      free(in.data);
    }
}

static int64_t cast_to_integer(double x, mix_dtype from, mix_dtype to) {
  operand in = operand_of(from, MIX_SHAPE(1), &x);
  int64_t result = run_instruction(MIX_OPCODE_CAST, to, 0, 1, 1, &in).integer[0];
  free(in.data);
  return result;
}

static void casts_round_once_and_wrap(void **state) {
  (void)state;
  assert_int_equal(cast_to_integer(-2.75, MIX_FLOAT16, MIX_INT8), -2);
  assert_int_equal(cast_to_integer(300, MIX_FLOAT32, MIX_INT8), 44);
  assert_int_equal(cast_to_integer(-1, MIX_FLOAT32, MIX_UINT8), 255);
  assert_int_equal(cast_to_integer(NAN, MIX_FLOAT32, MIX_INT32), 0);
  assert_int_equal(cast_to_integer(INFINITY, MIX_FLOAT64, MIX_INT64), INT64_MAX);
  assert_int_equal(cast_to_integer(NAN, MIX_BFLOAT16, MIX_BOOL), 1);
  assert_int_equal(cast_to_integer(0x1p-24, MIX_FLOAT16, MIX_BOOL), 1); /* a subnormal is not zero */
  /* 2^60 + 2^36 + 1 is just above the midpoint of two floats. Via double it would become the midpoint and
   * round to even, down. */
  int64_t odd = (INT64_C(1) << 60) + (INT64_C(1) << 36) + 1;
  operand in = {MIX_INT64, MIX_SHAPE(1), &odd};
  assert_true(run_instruction(MIX_OPCODE_CAST, MIX_FLOAT32, 0, 1, 1, &in).real[0] == 0x1p60 + 0x1p37);
  /* The midpoint of two float16 numbers, and a bit that float32 does not hold. */
  double middle = 1 + 0x1p-11 + 0x1p-40;
  in = (operand){MIX_FLOAT64, MIX_SHAPE(1), &middle};
  assert_true(run_instruction(MIX_OPCODE_CAST, MIX_FLOAT16, 0, 1, 1, &in).real[0] == 1 + 0x1p-10);
  double big = 65520; /* the first that rounds to infinity */
  in = (operand){MIX_FLOAT64, MIX_SHAPE(1), &big};
  assert_true(run_instruction(MIX_OPCODE_CAST, MIX_FLOAT16, 0, 1, 1, &in).real[0] == INFINITY);
}

/* ---- strides, aliasing, reductions ---- */

/* y (2, 3) = round16(a (2, 3) + row (3)) * column (2, 1), with the sum in float16 and stored over a. Also the
 * largest rounding steps. */
static void strides_and_stores_in_place(void **state) {
  (void)state;
  operand a = operand_of(MIX_FLOAT16, MIX_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 2048));
  operand in[3] = {a, operand_of(MIX_FLOAT16, MIX_SHAPE(3), NUMBERS(0.5, 0, 1)),
                   operand_of(MIX_FLOAT32, MIX_SHAPE(2, 1), NUMBERS(10, -1))};
  operand out[2] = {a, operand_of(MIX_FLOAT32, MIX_SHAPE(2, 3), NULL)};
  mix_program_load loads[] = {{0, MIX_FLOAT16, {3, 1}}, {1, MIX_FLOAT16, {0, 1}}, {2, MIX_FLOAT32, {1, 0}}};
  mix_instruction instructions[] = {{MIX_OPCODE_ADD, MIX_FLOAT16, {0, 1}, 0},
                                    {MIX_OPCODE_CAST, MIX_FLOAT32, {3}, 0},
                                    {MIX_OPCODE_MULTIPLY, MIX_FLOAT32, {4, 2}, 0}};
  mix_program_store stores[] = {{0, 3}, {1, 5}};
  mix_program program = {.rank = 2,
                         .dims = {2, 3},
                         .load_count = 3,
                         .instruction_count = 3,
                         .store_count = 2,
                         .loads = loads,
                         .instructions = instructions,
                         .stores = stores};
  assert_int_equal(run_step(&mix_backend_ref, 1, &mix_op_fused, NULL, &program, 3, in, 2, out), MIX_OK);
  static const double sums[] = {1.5, 2, 4, 4.5, 5, 2048 /* 2049 rounds to even */},
                      products[] = {15, 20, 40, -4.5, -5, -2048};
  for (int i = 0; i < 6; i++) {
    assert_true(element(out[0], i) == sums[i]);
    assert_true(element(out[1], i) == products[i]);
  }
  free_operands(3, in);
  free(out[1].data);
}

static double reduced(mix_reduction_kind reduction, mix_dtype dtype, int count, const double *x) {
  operand in = operand_of(dtype, MIX_SHAPE(count), x),
          out = operand_of(reduction == MIX_REDUCE_TO_SUM ? dtype : MIX_BOOL, MIX_SCALAR, NULL);
  mix_program_load load = {0, dtype, {1}};
  mix_program program = {.rank = 1,
                         .dims = {count},
                         .load_count = 1,
                         .loads = &load,
                         .reduction = reduction,
                         .reduced = 0,
                         .reduction_output = 0};
  assert_int_equal(run_step(&mix_backend_ref, 1, &mix_op_fused, NULL, &program, 1, &in, 1, &out), MIX_OK);
  double result =
      reduction == MIX_REDUCE_TO_SUM ? element(out, 0) : (double)mix_load_integer(out.data, MIX_BOOL, 0);
  free(in.data);
  free(out.data);
  return result;
}

static void reductions(void **state) {
  (void)state;
  for (int d = 0; d < FLOATS; d++) {
    assert_true(reduced(MIX_REDUCE_ALL_FINITE, floats[d], 3, NUMBERS(1, -2, 3)) == 1);
    assert_true(reduced(MIX_REDUCE_ALL_FINITE, floats[d], 3, NUMBERS(1, NAN, 3)) == 0);
    assert_true(reduced(MIX_REDUCE_ALL_FINITE, floats[d], 3, NUMBERS(1, -2, INFINITY)) == 0);
    assert_true(reduced(MIX_REDUCE_ALL_FINITE, floats[d], 0, NULL) == 1);
    assert_true(reduced(MIX_REDUCE_TO_SUM, floats[d], 4, NUMBERS(1, -2, 3, 0.5)) == 2.5);
  }
  double ones[4096]; /* a float16 sum would stay at 2048 */
  for (int i = 0; i < 4096; i++) ones[i] = 1;
  assert_true(reduced(MIX_REDUCE_TO_SUM, MIX_FLOAT16, 4096, ones) == 4096);
  assert_true(reduced(MIX_REDUCE_TO_SUM, MIX_BFLOAT16, 4096, ones) == 4096);
  double overflow[3] = {60000, 60000, -60000}; /* accumulates in float32: no overflow on the way */
  assert_true(reduced(MIX_REDUCE_TO_SUM, MIX_FLOAT16, 3, overflow) == 60000);
}

static void printing(void **state) {
  (void)state;
  mix_program_load loads[] = {{0, MIX_FLOAT16, {3, 1}}, {MIX_FROM_ACCUMULATOR, MIX_FLOAT16, {0}}};
  mix_instruction instructions[] = {{MIX_OPCODE_ADD, MIX_FLOAT16, {0, 1}, 0},
                                    {MIX_OPCODE_LEAKY_RELU, MIX_FLOAT16, {2}, 0.25}};
  mix_program_store store = {0, 3};
  mix_program program = {.rank = 2,
                         .dims = {2, 3},
                         .load_count = 2,
                         .instruction_count = 2,
                         .store_count = 1,
                         .loads = loads,
                         .instructions = instructions,
                         .stores = &store,
                         .reduction = MIX_REDUCE_ALL_FINITE,
                         .reduced = 3,
                         .reduction_output = 1};
  char text[512];
  mix_program_put(&program, "", &(mix_text){.text = text, .size = sizeof text});
  assert_non_null(strstr(text, "over (2, 3)"));
  assert_non_null(strstr(text, "r0 = float16 load 0 strides (3, 1)"));
  assert_non_null(strstr(text, "r1 = float16 product"));
  assert_non_null(strstr(text, "r0, r1"));
  assert_non_null(strstr(text, "r2, 0.25"));
  assert_non_null(strstr(text, "store r3 -> 0"));
  assert_non_null(strstr(text, "all_finite of r3 -> 1"));
  char small[8];
  mix_program_put(&program, "", &(mix_text){.text = small, .size = sizeof small});
  assert_true(strlen(small) < sizeof small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(real_formulas),
      cmocka_unit_test(no_opcode_is_left_out),
      cmocka_unit_test(special_values),
      cmocka_unit_test(classification),
      cmocka_unit_test(stochastic_rounding),
      cmocka_unit_test(comparisons),
      cmocka_unit_test(logic_and_select),
      cmocka_unit_test(integer_formulas),
      cmocka_unit_test(integer_powers_wrap),
      cmocka_unit_test(integer_division_by_zero_is_an_error),
      cmocka_unit_test(meaningless_programs_are_rejected),
      cmocka_unit_test(casts),
      cmocka_unit_test(casts_round_once_and_wrap),
      cmocka_unit_test(strides_and_stores_in_place),
      cmocka_unit_test(reductions),
      cmocka_unit_test(printing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
