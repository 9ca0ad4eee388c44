/* Element-wise operations and casts. 16-bit values are widened for all that is not one exact operation, and
 * each node is rounded once. */
#include "backend/xla/emit_inside.h"

/* Klambauer et al.: Self-normalizing neural networks, 2017. */
#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_ALPHA 1.6732632423543772848170429916717

/* ---- casts ---- */

/* Toward zero, saturating at 64 bits, NaN gives 0; then cut to the width. */
static mix_hlo to_integer(mix_emitter *e, mix_hlo x, mix_dtype dtype) {
  mix_hlo_writer *w = &e->w;
  x = mix_emit_widen(e, x);
  const mix_type type = mix_type_of(MIX_INT64, x.shape);
  const mix_hlo high = mix_hlo_compare(w, "GE", x, mix_hlo_like(w, x, 0x1p63)),
                low = mix_hlo_compare(w, "LT", x, mix_hlo_like(w, x, -0x1p63)),
                nan = mix_hlo_compare(w, "NE", x, x),
                outside = mix_hlo_binary(w, "or", mix_hlo_binary(w, "or", high, low), nan),
                inside = mix_hlo_select(w, outside, mix_hlo_like(w, x, 0), x);
  mix_hlo y = mix_hlo_convert(w, inside, MIX_INT64);
  y = mix_hlo_select(w, high, mix_hlo_whole(w, type, INT64_MAX), y);
  y = mix_hlo_select(w, low, mix_hlo_whole(w, type, INT64_MIN), y);
  return mix_hlo_convert(w, y, dtype);
}

/* int64 with 53 digits: rounded to odd, as to_float32_odd. */
static mix_hlo to_53_bits_odd(mix_emitter *e, mix_hlo x) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo largest = mix_hlo_whole(w, x.type, INT64_C(1) << 53),
                smallest = mix_hlo_whole(w, x.type, -(INT64_C(1) << 53)),
                above = mix_hlo_compare(w, "GE", x, largest), below = mix_hlo_compare(w, "LE", x, smallest),
                is_long = mix_hlo_binary(w, "or", above, below), mask = mix_hlo_whole(w, x.type, 2047),
                tail = mix_hlo_and(w, x, mask), zero = mix_hlo_whole(w, x.type, 0),
                inexact = mix_hlo_compare(w, "NE", tail, zero), place = mix_hlo_whole(w, x.type, 2048),
                cut = mix_hlo_subtract(w, x, tail), odd = mix_hlo_binary(w, "or", cut, place),
                moves = mix_hlo_and(w, is_long, inexact);
  return mix_hlo_select(w, moves, odd, x);
}

/* Rounded to odd, so that a second rounding to 16 bits is as if it were the only one. */
static mix_hlo to_float32_odd(mix_emitter *e, mix_hlo x) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo near = mix_hlo_convert(w, x, MIX_FLOAT32), back = mix_hlo_convert(w, near, MIX_FLOAT64),
                bits = mix_hlo_bits(w, near, MIX_INT32), one = mix_hlo_like(w, bits, 1),
                last = mix_hlo_and(w, bits, one),
                even = mix_hlo_compare(w, "EQ", last, mix_hlo_like(w, bits, 0)),
                differs = mix_hlo_compare(w, "NE", back, x),
                inexact = mix_hlo_and(w, differs, mix_hlo_is_finite(w, x)),
                near_size = mix_hlo_unary(w, "abs", back), size = mix_hlo_unary(w, "abs", x),
                above = mix_hlo_compare(w, "GT", near_size, size), lower = mix_hlo_subtract(w, bits, one),
                higher = mix_hlo_add(w, bits, one), moved = mix_hlo_select(w, above, lower, higher),
                odd = mix_hlo_bits(w, moved, MIX_FLOAT32);
  return mix_hlo_select(w, mix_hlo_and(w, even, inexact), odd, near);
}

mix_hlo mix_emit_cast(mix_emitter *e, mix_hlo x, mix_dtype dtype) {
  const bool real = mix_dtype_is_floating(x.dtype);
  const bool narrow = mix_emit_wide(dtype) != dtype;
  if (x.dtype == dtype) return x;
  const bool wider = mix_dtype_is_float8(x.dtype) && mix_dtype_is_16_bit(dtype); /* exact */
  if (!wider && (mix_dtype_is_float8(x.dtype) || mix_dtype_is_float8(dtype))) x = mix_emit_widen(e, x);
  if (dtype == MIX_BOOL) {
    x = mix_emit_widen(e, x);
    return mix_hlo_compare(&e->w, "NE", x, mix_hlo_like(&e->w, x, 0));
  }
  if (real && !mix_dtype_is_floating(dtype)) return to_integer(e, x, dtype);
  if (x.dtype == MIX_FLOAT64 && narrow) x = to_float32_odd(e, x);
  if (!real && x.dtype != MIX_BOOL && narrow) {
    if (x.dtype == MIX_INT64) x = to_53_bits_odd(e, x);
    x = to_float32_odd(e, mix_hlo_convert(&e->w, x, MIX_FLOAT64));
  }
  return mix_hlo_convert(&e->w, x, dtype);
}

/* ---- numbers ---- */

typedef struct operands {
  mix_emitter *e;
  mix_hlo a, b, c;
  double alpha;
} operands;

static mix_hlo number(const operands *o, double x) { return mix_hlo_like(&o->e->w, o->a, x); }
static mix_hlo unary(const operands *o, const char *op, mix_hlo x) { return mix_hlo_unary(&o->e->w, op, x); }
static mix_hlo add(const operands *o, mix_hlo x, mix_hlo y) { return mix_hlo_add(&o->e->w, x, y); }
static mix_hlo subtract(const operands *o, mix_hlo x, mix_hlo y) { return mix_hlo_subtract(&o->e->w, x, y); }
static mix_hlo multiply(const operands *o, mix_hlo x, mix_hlo y) { return mix_hlo_multiply(&o->e->w, x, y); }
static mix_hlo divide(const operands *o, mix_hlo x, mix_hlo y) { return mix_hlo_divide(&o->e->w, x, y); }
static mix_hlo binary(const operands *o, const char *op, mix_hlo x, mix_hlo y) {
  return mix_hlo_binary(&o->e->w, op, x, y);
}
/* x how bound ? yes : no */
static mix_hlo choose(const operands *o, mix_hlo x, const char *how, double bound, mix_hlo yes, mix_hlo no) {
  return mix_hlo_select(&o->e->w, mix_hlo_compare(&o->e->w, how, x, number(o, bound)), yes, no);
}
static mix_hlo square(const operands *o, mix_hlo x) { return multiply(o, x, x); }
static mix_hlo one_plus(const operands *o, mix_hlo x) { return add(o, number(o, 1), x); }
static mix_hlo exponential_less_one(const operands *o) { return unary(o, "exponential_minus_one", o->a); }
/* XLA's quotient for float64, from Cephes, holds from 1/sqrt(2) - 1 on but is used below it, where 1 + x
 * loses nothing that counts. */
static mix_hlo logarithm_of_one_plus(const operands *o) {
  const mix_hlo near = unary(o, "log_plus_one", o->a);
  if (o->a.dtype != MIX_FLOAT64) return near;
  return choose(o, o->a, "LT", -0.29, unary(o, "log", one_plus(o, o->a)), near);
}

static mix_hlo softplus(const operands *o) {
  const mix_hlo small = unary(o, "exponential", unary(o, "negate", unary(o, "abs", o->a))),
                positive = binary(o, "maximum", o->a, number(o, 0));
  return add(o, positive, unary(o, "log_plus_one", small));
}

/* The sign of the divisor. */
static mix_hlo floor_mod(const operands *o) {
  mix_hlo_writer *w = &o->e->w;
  const mix_hlo remainder = binary(o, "remainder", o->a, o->b), zero = number(o, 0),
                below = mix_hlo_compare(w, "LT", o->b, zero),
                remainder_below = mix_hlo_compare(w, "LT", remainder, zero),
                signs = mix_hlo_compare(w, "NE", below, remainder_below),
                wrong = mix_hlo_and(w, mix_hlo_compare(w, "NE", remainder, zero), signs);
  return mix_hlo_select(w, wrong, add(o, remainder, o->b), remainder);
}

static mix_hlo relu6_grad(const operands *o) {
  mix_hlo_writer *w = &o->e->w;
  const mix_hlo above = mix_hlo_compare(w, "GT", o->b, number(o, 0)),
                below = mix_hlo_compare(w, "LT", o->b, number(o, 6)), inside = mix_hlo_and(w, above, below);
  return mix_hlo_select(w, inside, o->a, multiply(o, o->a, number(o, 0)));
}

static mix_hlo between(const operands *o, double low, double high) {
  const mix_hlo raised = binary(o, "maximum", o->a, number(o, low));
  return binary(o, "minimum", raised, number(o, high));
}
static mix_hlo one_minus(const operands *o, mix_hlo x) {
  const mix_hlo one = number(o, 1);
  return subtract(o, one, x);
}

static mix_hlo selu(const operands *o) {
  const mix_hlo alpha = number(o, SELU_ALPHA), low = multiply(o, alpha, exponential_less_one(o)),
                scale = number(o, SELU_SCALE);
  return multiply(o, scale, choose(o, o->a, "LT", 0, low, o->a));
}

static mix_hlo selu_grad(const operands *o) {
  const mix_hlo low = multiply(o, o->a, add(o, o->b, number(o, SELU_SCALE * SELU_ALPHA))),
                high = multiply(o, o->a, number(o, SELU_SCALE));
  return choose(o, o->b, "LT", 0, low, high);
}

static mix_hlo sigmoid_grad(const operands *o) {
  const mix_hlo product = multiply(o, o->b, o->a);
  return multiply(o, product, one_minus(o, o->a));
}

static mix_hlo formula(const operands *o, mix_opcode opcode) {
  const mix_hlo a = o->a, b = o->b;
  switch (opcode) {
  case MIX_OPCODE_NEGATIVE: return unary(o, "negate", a);
  case MIX_OPCODE_ABS: return unary(o, "abs", a);
  case MIX_OPCODE_SIGN: return unary(o, "sign", a);
  case MIX_OPCODE_FLOOR: return unary(o, "floor", a);
  case MIX_OPCODE_CEIL: return unary(o, "ceil", a);
  case MIX_OPCODE_ROUND: return unary(o, "round_nearest_even", a);
  case MIX_OPCODE_SQRT: return unary(o, "sqrt", a);
  case MIX_OPCODE_RSQRT: return unary(o, "rsqrt", a);
  case MIX_OPCODE_SQUARE: return square(o, a);
  case MIX_OPCODE_RECIPROCAL: return divide(o, number(o, 1), a);
  case MIX_OPCODE_EXP: return unary(o, "exponential", a);
  case MIX_OPCODE_EXPM1: return exponential_less_one(o);
  case MIX_OPCODE_LOG: return unary(o, "log", a);
  case MIX_OPCODE_LOG1P: return logarithm_of_one_plus(o);
  case MIX_OPCODE_SIN: return unary(o, "sine", a);
  case MIX_OPCODE_COS: return unary(o, "cosine", a);
  case MIX_OPCODE_TANH: return unary(o, "tanh", a);
  case MIX_OPCODE_SIGMOID: return unary(o, "logistic", a);
  case MIX_OPCODE_ERF: return unary(o, "chlo.erf", a);
  case MIX_OPCODE_ERFC: return unary(o, "chlo.erfc", a);
  case MIX_OPCODE_RELU: return binary(o, "maximum", a, number(o, 0));
  case MIX_OPCODE_RELU6: return between(o, 0, 6);
  case MIX_OPCODE_ELU: return choose(o, a, "LT", 0, exponential_less_one(o), a);
  case MIX_OPCODE_SELU: return selu(o);
  case MIX_OPCODE_SOFTPLUS: return softplus(o);
  case MIX_OPCODE_SOFTSIGN: return divide(o, a, one_plus(o, unary(o, "abs", a)));
  case MIX_OPCODE_LEAKY_RELU: return choose(o, a, "GT", 0, a, multiply(o, number(o, o->alpha), a));
  case MIX_OPCODE_ADD: return add(o, a, b);
  case MIX_OPCODE_SUBTRACT: return subtract(o, a, b);
  case MIX_OPCODE_MULTIPLY: return multiply(o, a, b);
  case MIX_OPCODE_DIVIDE: return divide(o, a, b);
  case MIX_OPCODE_FLOOR_DIVIDE: return unary(o, "floor", divide(o, a, b));
  case MIX_OPCODE_FLOOR_MOD: return floor_mod(o);
  case MIX_OPCODE_POWER: return binary(o, "power", a, b);
  case MIX_OPCODE_ATAN2: return binary(o, "atan2", a, b);
  case MIX_OPCODE_MAXIMUM: return binary(o, "maximum", a, b);
  case MIX_OPCODE_MINIMUM: return binary(o, "minimum", a, b);
  case MIX_OPCODE_SQUARED_DIFFERENCE: return square(o, subtract(o, a, b));
  case MIX_OPCODE_RELU_GRAD: return choose(o, b, "GT", 0, a, multiply(o, a, number(o, 0)));
  case MIX_OPCODE_RELU6_GRAD: return relu6_grad(o);
  case MIX_OPCODE_LEAKY_RELU_GRAD: return choose(o, b, "GT", 0, a, multiply(o, number(o, o->alpha), a));
  case MIX_OPCODE_SOFTPLUS_GRAD: return multiply(o, a, unary(o, "logistic", b));
  case MIX_OPCODE_SOFTSIGN_GRAD: return divide(o, a, square(o, one_plus(o, unary(o, "abs", b))));
  case MIX_OPCODE_ELU_GRAD: return choose(o, b, "LT", 0, multiply(o, a, one_plus(o, b)), a);
  case MIX_OPCODE_SELU_GRAD: return selu_grad(o);
  case MIX_OPCODE_TANH_GRAD: return multiply(o, b, one_minus(o, square(o, a)));
  case MIX_OPCODE_SIGMOID_GRAD: return sigmoid_grad(o);
  case MIX_OPCODE_SQRT_GRAD: return divide(o, multiply(o, b, number(o, 0.5)), a);
  case MIX_OPCODE_RSQRT_GRAD:
    return multiply(o, multiply(o, multiply(o, multiply(o, number(o, -0.5), b), a), a), a);
  case MIX_OPCODE_RECIPROCAL_GRAD: return multiply(o, multiply(o, unary(o, "negate", b), a), a);
  case MIX_OPCODE_CLIP: return binary(o, "minimum", binary(o, "maximum", a, b), o->c);
  default: return a;
  }
}

/* One operation whose result in float32, rounded to 16 bits, is that in 16 bits. */
static bool is_exact(mix_opcode opcode) {
  switch (opcode) {
  case MIX_OPCODE_NEGATIVE:
  case MIX_OPCODE_ABS:
  case MIX_OPCODE_RELU:
  case MIX_OPCODE_ADD:
  case MIX_OPCODE_SUBTRACT:
  case MIX_OPCODE_MULTIPLY:
  case MIX_OPCODE_DIVIDE:
  case MIX_OPCODE_MAXIMUM:
  case MIX_OPCODE_MINIMUM: return true;
  default: return false;
  }
}

/* ---- integers ---- */

static void check(const operands *o, mix_hlo bad, const char *reason) {
  mix_emit_check(o->e, bad, bad, (mix_bad_value){.what = reason});
}

/* The divisor, 1 in place of 0, which fails. Then the quotient rounded down, or 0. */
static mix_hlo integer_division(const operands *o, bool rest) {
  mix_hlo_writer *w = &o->e->w;
  const mix_hlo zero = number(o, 0), one = number(o, 1), none = mix_hlo_compare(w, "EQ", o->b, zero);
  check(o, none, "integer division by zero");
  const operands safe = {o->e, o->a, mix_hlo_select(w, none, one, o->b), o->c, 0};
  const mix_hlo mod = floor_mod(&safe);
  if (rest) return mod;
  if (o->a.dtype == MIX_UINT8)
    return mix_hlo_select(w, none, zero, binary(o, "divide", subtract(o, o->a, mod), safe.b));
  /* exact: but for the least number by -1, whose difference and quotient wrap to itself as they must */
  const mix_hlo minus = mix_hlo_compare(w, "EQ", safe.b, number(o, -1)),
                divisor = mix_hlo_select(w, minus, one, safe.b),
                quotient = binary(o, "divide", subtract(o, o->a, mod), divisor),
                signed_quotient = mix_hlo_select(w, minus, unary(o, "negate", quotient), quotient);
  return mix_hlo_select(w, none, zero, signed_quotient);
}

static mix_hlo integer_power(const operands *o) {
  mix_hlo_writer *w = &o->e->w;
  const mix_hlo zero = number(o, 0), negative = mix_hlo_compare(w, "LT", o->b, zero);
  check(o, negative, "integer raised to a negative power");
  const mix_hlo power = binary(o, "power", o->a, mix_hlo_select(w, negative, zero, o->b));
  return mix_hlo_select(w, negative, zero, power);
}

/* By 0 places for a negative number; by all of them, StableHLO's sign or 0 is ours. */
static mix_hlo shift(const operands *o, const char *op) {
  return binary(o, op, o->a, binary(o, "maximum", o->b, number(o, 0)));
}

static mix_hlo integer(const operands *o, mix_opcode opcode) {
  switch (opcode) {
  case MIX_OPCODE_FLOOR:
  case MIX_OPCODE_CEIL:
  case MIX_OPCODE_ROUND: return o->a;
  case MIX_OPCODE_ABS: return o->a.dtype == MIX_UINT8 ? o->a : unary(o, "abs", o->a);
  case MIX_OPCODE_SIGN:
    if (o->a.dtype == MIX_UINT8) return binary(o, "minimum", o->a, number(o, 1));
    return unary(o, "sign", o->a);
  case MIX_OPCODE_FLOOR_DIVIDE: return integer_division(o, false);
  case MIX_OPCODE_FLOOR_MOD: return integer_division(o, true);
  case MIX_OPCODE_POWER: return integer_power(o);
  case MIX_OPCODE_BITWISE_AND: return binary(o, "and", o->a, o->b);
  case MIX_OPCODE_BITWISE_OR: return binary(o, "or", o->a, o->b);
  case MIX_OPCODE_BITWISE_XOR: return binary(o, "xor", o->a, o->b);
  case MIX_OPCODE_SHIFT_LEFT: return shift(o, "shift_left");
  case MIX_OPCODE_SHIFT_RIGHT:
    return shift(o, o->a.dtype == MIX_UINT8 ? "shift_right_logical" : "shift_right_arithmetic");
  default: return formula(o, opcode);
  }
}

/* ---- all dtypes ---- */

static const char *comparison(mix_opcode opcode) {
  switch (opcode) {
  case MIX_OPCODE_EQUAL: return "EQ";
  case MIX_OPCODE_NOT_EQUAL: return "NE";
  case MIX_OPCODE_LESS: return "LT";
  case MIX_OPCODE_LESS_EQUAL: return "LE";
  case MIX_OPCODE_GREATER: return "GT";
  case MIX_OPCODE_GREATER_EQUAL: return "GE";
  default: return NULL;
  }
}

static mix_hlo classify(mix_emitter *e, mix_opcode opcode, mix_hlo x) {
  if (opcode == MIX_OPCODE_IS_FINITE) return mix_hlo_is_finite(&e->w, x);
  if (opcode == MIX_OPCODE_IS_NAN) return mix_hlo_compare(&e->w, "NE", x, x);
  const mix_hlo size = mix_hlo_unary(&e->w, "abs", x);
  return mix_hlo_compare(&e->w, "EQ", size, mix_hlo_like(&e->w, x, 1.0 / 0.0));
}

static mix_hlo logical(const operands *o, mix_opcode opcode) {
  switch (opcode) {
  case MIX_OPCODE_LOGICAL_NOT: return unary(o, "not", o->a);
  case MIX_OPCODE_LOGICAL_AND:
  case MIX_OPCODE_MINIMUM: return binary(o, "and", o->a, o->b);
  case MIX_OPCODE_LOGICAL_OR:
  case MIX_OPCODE_MAXIMUM: return binary(o, "or", o->a, o->b);
  default: return o->a;
  }
}

/* The operands have the result's shape. */
static mix_hlo emit_opcode(mix_emitter *e, mix_opcode opcode, double alpha, const mix_hlo *x) {
  const int count = mix_opcode_operands(opcode);
  const mix_dtype dtype = x[0].dtype;
  operands o = {e, x[0], count > 1 ? x[1] : x[0], count > 2 ? x[2] : x[0], alpha};
  if (opcode == MIX_OPCODE_IDENTITY) return x[0];
  if (opcode == MIX_OPCODE_SELECT) return mix_hlo_select(&e->w, x[0], x[1], x[2]);
  if (mix_opcode_draws(opcode)) return mix_emit_stochastic_round(e, x, alpha);
  if (comparison(opcode)) return mix_hlo_compare(&e->w, comparison(opcode), x[0], x[1]);
  if (opcode == MIX_OPCODE_IS_FINITE || opcode == MIX_OPCODE_IS_INF || opcode == MIX_OPCODE_IS_NAN)
    return classify(e, opcode, x[0]);
  if (dtype == MIX_BOOL) return logical(&o, opcode);
  if (!mix_dtype_is_floating(dtype)) return integer(&o, opcode);
  if (is_exact(opcode)) return formula(&o, opcode);
  o.a = mix_emit_widen(e, o.a);
  if (count > 1) o.b = mix_emit_widen(e, o.b);
  if (count > 2) o.c = mix_emit_widen(e, o.c);
  return mix_hlo_convert(&e->w, formula(&o, opcode), dtype);
}

void mix_emit_elementwise(mix_emitter *e, const mix_ir_node *node) {
  const mix_type type = mix_emit_type(e, node, 0);
  const mix_opcode opcode = node->op->opcode;
  mix_hlo x[3];
  if (node->op->flags & MIX_OP_READ) {
    mix_emit_result(e, node, 0, mix_emit_operand(e, node, 0));
    return;
  }
  for (int i = 0; i < node->input_count && i < 3; i++)
    x[i] = mix_hlo_broadcast(&e->w, mix_emit_operand(e, node, i), type.shape);
  if (opcode == MIX_OPCODE_CAST) {
    mix_emit_result(e, node, 0, mix_emit_cast(e, x[0], type.dtype));
    return;
  }
  const double alpha =
      mix_opcode_has_immediate(opcode) ? ((const mix_alpha_attributes *)node->attributes)->alpha : 0;
  mix_emit_result(e, node, 0, emit_opcode(e, opcode, alpha, x));
}
