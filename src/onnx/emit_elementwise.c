/* Element-wise operations: an operator of ONNX each, or a few. */
#include "onnx/emit.h"

#include <math.h>

typedef struct operands {
  mix_onnx_emitter *e;
  const mix_ir_node *node;
  const char *a, *b, *c;
  mix_dtype dtype; /* of operand 0, as written */
} operands;

static const char *number(const operands *o, double x) { return mix_onnx_scalar(o->e, o->dtype, x); }
static const char *unary(const operands *o, const char *op, const char *x) {
  return mix_onnx_node1(o->e, op, x);
}
static const char *binary(const operands *o, const char *op, const char *x, const char *y) {
  return mix_onnx_node2(o->e, op, x, y);
}
static const char *choose(const operands *o, const char *which, const char *yes, const char *no) {
  return mix_onnx_node3(o->e, "Where", which, yes, no);
}

/* By opcode: the operator that computes just that. */
static const struct {
  mix_opcode opcode;
  const char *op;
} same[] = {
    {MIX_OPCODE_NEGATIVE, "Neg"},      {MIX_OPCODE_ABS, "Abs"},
    {MIX_OPCODE_SIGN, "Sign"},         {MIX_OPCODE_FLOOR, "Floor"},
    {MIX_OPCODE_CEIL, "Ceil"},         {MIX_OPCODE_ROUND, "Round"},
    {MIX_OPCODE_SQRT, "Sqrt"},         {MIX_OPCODE_RECIPROCAL, "Reciprocal"},
    {MIX_OPCODE_EXP, "Exp"},           {MIX_OPCODE_LOG, "Log"},
    {MIX_OPCODE_SIN, "Sin"},           {MIX_OPCODE_COS, "Cos"},
    {MIX_OPCODE_TANH, "Tanh"},         {MIX_OPCODE_SIGMOID, "Sigmoid"},
    {MIX_OPCODE_ERF, "Erf"},           {MIX_OPCODE_RELU, "Relu"},
    {MIX_OPCODE_ELU, "Elu"},           {MIX_OPCODE_SELU, "Selu"},
    {MIX_OPCODE_SOFTPLUS, "Softplus"}, {MIX_OPCODE_SOFTSIGN, "Softsign"},
    {MIX_OPCODE_IS_NAN, "IsNaN"},      {MIX_OPCODE_LOGICAL_NOT, "Not"},
    {MIX_OPCODE_ADD, "Add"},           {MIX_OPCODE_SUBTRACT, "Sub"},
    {MIX_OPCODE_MULTIPLY, "Mul"},      {MIX_OPCODE_DIVIDE, "Div"},
    {MIX_OPCODE_POWER, "Pow"},         {MIX_OPCODE_MAXIMUM, "Max"},
    {MIX_OPCODE_MINIMUM, "Min"},       {MIX_OPCODE_EQUAL, "Equal"},
    {MIX_OPCODE_LESS, "Less"},         {MIX_OPCODE_LESS_EQUAL, "LessOrEqual"},
    {MIX_OPCODE_GREATER, "Greater"},   {MIX_OPCODE_GREATER_EQUAL, "GreaterOrEqual"},
    {MIX_OPCODE_LOGICAL_AND, "And"},   {MIX_OPCODE_LOGICAL_OR, "Or"},
    {MIX_OPCODE_SELECT, "Where"},      {MIX_OPCODE_CLIP, "Clip"},
};
static const char *same_as(mix_opcode opcode) {
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    if (same[i].opcode == opcode) return same[i].op;
  return NULL;
}

/* exp(x) - 1 as 2 t / (1 - t), t = tanh(x / 2), where the difference would lose digits. */
static const char *expm1_of(const operands *o) {
  const char *half = binary(o, "Mul", o->a, number(o, 0.5)), *t = unary(o, "Tanh", half),
             *twice = binary(o, "Add", t, t), *rest = binary(o, "Sub", number(o, 1), t),
             *near = binary(o, "Div", twice, rest),
             *far = binary(o, "Sub", unary(o, "Exp", o->a), number(o, 1)),
             *is_near = binary(o, "Less", unary(o, "Abs", o->a), number(o, 1));
  return choose(o, is_near, near, far);
}

/* IsInf has 16 bits from opset 20 on alone. */
static const char *is_inf(const operands *o) {
  return binary(o, "Equal", unary(o, "Abs", o->a), number(o, INFINITY));
}

/* log(u) x / (u - 1), u = 1 + x: what u loses of x is lost in u - 1 too (Kahan; HP-15C Advanced Functions
 * Handbook, 1982). */
static const char *log1p_of(const operands *o) {
  const char *one = number(o, 1), *u = binary(o, "Add", one, o->a), *rest = binary(o, "Sub", u, one),
             *is_one = binary(o, "Equal", rest, number(o, 0)), *divisor = choose(o, is_one, one, rest),
             *ratio = binary(o, "Div", o->a, divisor), *product = binary(o, "Mul", unary(o, "Log", u), ratio);
  const char *is_large = binary(o, "Equal", o->a, number(o, INFINITY));
  return choose(o, is_large, o->a, choose(o, is_one, o->a, product));
}

/* atan(a / b), moved by pi where b is negative; along the axis of b = 0 half of pi. */
static const char *atan2_of(const operands *o) {
  const char *zero = number(o, 0), *quotient = unary(o, "Atan", binary(o, "Div", o->a, o->b)),
             *below = binary(o, "Less", o->a, zero),
             *turn = choose(o, below, number(o, -M_PI), number(o, M_PI)),
             *moved = choose(o, binary(o, "Less", o->b, zero), binary(o, "Add", quotient, turn), quotient),
             *half = binary(o, "Mul", unary(o, "Sign", o->a), number(o, M_PI / 2));
  return choose(o, binary(o, "Equal", o->b, zero), half, moved);
}

static const char *floor_mod_of(const operands *o) {
  if (!mix_dtype_is_floating(o->dtype)) return binary(o, "Mod", o->a, o->b);
  const char *whole = unary(o, "Floor", binary(o, "Div", o->a, o->b));
  return binary(o, "Sub", o->a, binary(o, "Mul", whole, o->b));
}

static const char *floor_divide_of(const operands *o) {
  if (mix_dtype_is_floating(o->dtype)) return unary(o, "Floor", binary(o, "Div", o->a, o->b));
  return binary(o, "Div", binary(o, "Sub", o->a, binary(o, "Mod", o->a, o->b)), o->b);
}

/* By a product or a quotient with a power of two: shifts of ONNX are of numbers without a sign. */
static const char *shifted(const operands *o, mix_opcode opcode) {
  const operands by = {o->e, o->node, o->a, binary(o, "Pow", number(o, 2), o->b), NULL, o->dtype};
  return opcode == MIX_OPCODE_SHIFT_LEFT ? binary(o, "Mul", o->a, by.b) : floor_divide_of(&by);
}

static const char *bits_of(const operands *o, mix_opcode opcode) {
  return binary(o,
                opcode == MIX_OPCODE_BITWISE_AND  ? "BitwiseAnd"
                : opcode == MIX_OPCODE_BITWISE_OR ? "BitwiseOr"
                                                  : "BitwiseXor",
                o->a, o->b);
}

static const char *formula(const operands *o, mix_opcode opcode) {
  switch (opcode) {
  case MIX_OPCODE_IDENTITY: return o->a;
  case MIX_OPCODE_RSQRT: return unary(o, "Reciprocal", unary(o, "Sqrt", o->a));
  case MIX_OPCODE_SQUARE: return binary(o, "Mul", o->a, o->a);
  case MIX_OPCODE_EXPM1: return expm1_of(o);
  case MIX_OPCODE_LOG1P: return log1p_of(o);
  case MIX_OPCODE_ERFC: return binary(o, "Sub", number(o, 1), unary(o, "Erf", o->a));
  case MIX_OPCODE_RELU6: return mix_onnx_node3(o->e, "Clip", o->a, number(o, 0), number(o, 6));
  case MIX_OPCODE_LEAKY_RELU:
    mix_onnx_float(o->e, "alpha", ((const mix_alpha_attributes *)o->node->attributes)->alpha);
    return unary(o, "LeakyRelu", o->a);
  case MIX_OPCODE_IS_FINITE: return unary(o, "Not", binary(o, "Or", is_inf(o), unary(o, "IsNaN", o->a)));
  case MIX_OPCODE_IS_INF: return is_inf(o);
  case MIX_OPCODE_SQUARED_DIFFERENCE: {
    const char *difference = binary(o, "Sub", o->a, o->b);
    return binary(o, "Mul", difference, difference);
  }
  case MIX_OPCODE_NOT_EQUAL: return unary(o, "Not", binary(o, "Equal", o->a, o->b));
  case MIX_OPCODE_FLOOR_DIVIDE: return floor_divide_of(o);
  case MIX_OPCODE_FLOOR_MOD: return floor_mod_of(o);
  case MIX_OPCODE_ATAN2: return atan2_of(o);
  case MIX_OPCODE_SHIFT_LEFT:
  case MIX_OPCODE_SHIFT_RIGHT: return shifted(o, opcode);
  case MIX_OPCODE_BITWISE_AND:
  case MIX_OPCODE_BITWISE_OR:
  case MIX_OPCODE_BITWISE_XOR: return bits_of(o, opcode);
  default: return mix_onnx_refuse(o->e, o->node, "ONNX has no such operation");
  }
}

/* Extremes of bool are logical. */
static const char *logical(mix_opcode opcode) {
  return opcode == MIX_OPCODE_MAXIMUM ? "Or" : opcode == MIX_OPCODE_MINIMUM ? "And" : same_as(opcode);
}

void mix_onnx_elementwise(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_opcode opcode = node->op->opcode;
  const mix_dtype given = mix_onnx_operand_type(e, node, 0).dtype;
  const char *x[3] = {NULL, NULL, NULL}, *op, *y;
  if (node->op->flags & MIX_OP_READ) {
    mix_onnx_result(e, node, 0, mix_onnx_operand(e, node, 0));
    return;
  }
  for (int i = 0; i < node->input_count && i < 3; i++) x[i] = mix_onnx_operand(e, node, i);
  const operands o = {e, node, x[0], x[1], x[2], mix_onnx_written(e, given)};
  if (opcode == MIX_OPCODE_CAST) {
    mix_onnx_result(e, node, 0, mix_onnx_cast(e, x[0], given, mix_onnx_type(e, node, 0).dtype));
    return;
  }
  op = given == MIX_BOOL ? logical(opcode) : same_as(opcode);
  y = op ? mix_onnx_node(e, op, node->input_count, x) : formula(&o, opcode);
  mix_onnx_result(e, node, 0, y);
}
