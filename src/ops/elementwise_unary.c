/* Element-wise functions of one operand, and the gradient operations of square root and reciprocal.
 * Gradients are TensorFlow's (python/ops/math_grad.py). Each rule below maps (node, incoming gradient dy)
 * to the gradient of x. */
#include "ops/rules.h"

static mix_tensor *x_of(mix_node *node) { return mix_node_input(node, 0); }
static mix_tensor *y_of(mix_node *node) { return mix_tensor_of(node, 0); }

static mix_tensor *negative_rule(mix_node *node, mix_tensor *dy) { return mix_negative(dy); }
static mix_tensor *abs_rule(mix_node *node, mix_tensor *dy) { return mix_multiply(dy, mix_sign(x_of(node))); }
static mix_tensor *sign_rule(mix_node *node, mix_tensor *dy) { return mix_zeros_like(dy); }
static mix_tensor *sqrt_rule(mix_node *node, mix_tensor *dy) {
  return mix_apply2(&mix_op_sqrt_grad, y_of(node), dy);
}
static mix_tensor *rsqrt_rule(mix_node *node, mix_tensor *dy) {
  return mix_apply2(&mix_op_rsqrt_grad, y_of(node), dy);
}
static mix_tensor *square_rule(mix_node *node, mix_tensor *dy) {
  return mix_multiply(dy, mix_times(x_of(node), 2));
}
static mix_tensor *reciprocal_rule(mix_node *node, mix_tensor *dy) {
  return mix_apply2(&mix_op_reciprocal_grad, y_of(node), dy);
}
static mix_tensor *exp_rule(mix_node *node, mix_tensor *dy) { return mix_multiply(dy, y_of(node)); }
static mix_tensor *expm1_rule(mix_node *node, mix_tensor *dy) {
  return mix_multiply(dy, mix_exp(x_of(node)));
}
static mix_tensor *log_rule(mix_node *node, mix_tensor *dy) {
  return mix_multiply(dy, mix_reciprocal(x_of(node)));
}
static mix_tensor *log1p_rule(mix_node *node, mix_tensor *dy) {
  return mix_multiply(dy, mix_reciprocal(mix_add(mix_scalar_like(dy, 1), x_of(node))));
}
static mix_tensor *sin_rule(mix_node *node, mix_tensor *dy) { return mix_multiply(dy, mix_cos(x_of(node))); }
static mix_tensor *cos_rule(mix_node *node, mix_tensor *dy) {
  return mix_multiply(mix_negative(dy), mix_sin(x_of(node)));
}

/* d erf(x) / dx = 2 / sqrt(pi) exp(-x^2); erfc has the opposite sign. */
static const double two_over_root_pi = 1.1283791670955125739;
static mix_tensor *gauss(mix_node *node, mix_tensor *dy, double factor) {
  return mix_multiply(dy, mix_times(mix_exp(mix_negative(mix_square(x_of(node)))), factor));
}
static mix_tensor *erf_rule(mix_node *node, mix_tensor *dy) { return gauss(node, dy, two_over_root_pi); }
static mix_tensor *erfc_rule(mix_node *node, mix_tensor *dy) { return gauss(node, dy, -two_over_root_pi); }

/* name, TensorFlow's name, dtypes, opcode */
#define DIFFERENTIABLE(X)                                                                                    \
  X(negative, "Neg", "number", NEGATIVE)                                                                     \
  X(abs, "Abs", "number", ABS)                                                                               \
  X(sign, "Sign", "number", SIGN)                                                                            \
  X(sqrt, "Sqrt", "float", SQRT)                                                                             \
  X(rsqrt, "Rsqrt", "float", RSQRT)                                                                          \
  X(square, "Square", "number", SQUARE)                                                                      \
  X(reciprocal, "Reciprocal", "float", RECIPROCAL)                                                           \
  X(exp, "Exp", "float", EXP)                                                                                \
  X(expm1, "Expm1", "float", EXPM1)                                                                          \
  X(log, "Log", "float", LOG)                                                                                \
  X(log1p, "Log1p", "float", LOG1P)                                                                          \
  X(sin, "Sin", "float", SIN)                                                                                \
  X(cos, "Cos", "float", COS)                                                                                \
  X(erf, "Erf", "float", ERF)                                                                                \
  X(erfc, "Erfc", "float", ERFC)
/* name, TensorFlow's name, dtypes, signature, opcode */
#define OTHERS(X)                                                                                            \
  X(floor, "Floor", "float", "T->T", FLOOR)                                                                  \
  X(ceil, "Ceil", "float", "T->T", CEIL)                                                                     \
  X(round, "Round", "float", "T->T", ROUND)                                                                  \
  X(is_finite, "IsFinite", "float", "T->b", IS_FINITE)                                                       \
  X(is_inf, "IsInf", "float", "T->b", IS_INF)                                                                \
  X(is_nan, "IsNan", "float", "T->b", IS_NAN)                                                                \
  X(logical_not, "LogicalNot", "", "b->b", LOGICAL_NOT)

typedef mix_tensor *(*rule)(mix_node *node, mix_tensor *dy);
static const rule rules[MIX_OPCODE_COUNT] = {
#define RULE(name, tf, types, opcode) [MIX_OPCODE_##opcode] = name##_rule,
    DIFFERENTIABLE(RULE)
#undef RULE
};

static void unary_gradient(mix_node *node, mix_tensor *const *output_gradients,
                           mix_tensor **input_gradients) {
  if (output_gradients[0]) input_gradients[0] = rules[node->op->opcode](node, output_gradients[0]);
}

#define OP(called, tf, dtypes, code)                                                                         \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = "T->T",                                                       \
                                  .types = dtypes,                                                           \
                                  .flags = MIX_OP_ELEMENTWISE,                                               \
                                  .opcode = MIX_OPCODE_##code,                                               \
                                  .infer = mix_rule_same,                                                    \
                                  .row_independent = mix_rows_elementwise,                                   \
                                  .gradient = unary_gradient};                                               \
  mix_tensor *mix_##called(mix_tensor *x) { return mix_apply1(&mix_op_##called, x); }
DIFFERENTIABLE(OP)
#undef OP

#define OP(called, tf, dtypes, letters, code)                                                                \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = letters,                                                      \
                                  .types = dtypes,                                                           \
                                  .flags = MIX_OP_ELEMENTWISE,                                               \
                                  .opcode = MIX_OPCODE_##code,                                               \
                                  .infer = mix_rule_same,                                                    \
                                  .row_independent = mix_rows_elementwise};                                  \
  mix_tensor *mix_##called(mix_tensor *x) { return mix_apply1(&mix_op_##called, x); }
OTHERS(OP)
#undef OP

/* ---- gradient operations: operands (y, dy), where y is the function's result ---- */

/* z = dy / (2 y): dz/dy = -z / y, dz/d(dy) = 1 / (2 y). */
static void sqrt_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                               mix_tensor **input_gradients) {
  mix_tensor *over_y = mix_divide(output_gradients[0], mix_node_input(node, 0));
  input_gradients[0] = mix_multiply(mix_negative(over_y), mix_tensor_of(node, 0));
  input_gradients[1] = mix_times(over_y, 0.5);
}

/* z = -dy y^3 / 2: dz/dy = -3/2 dy y^2. */
static void rsqrt_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                mix_tensor **input_gradients) {
  mix_tensor *y = mix_node_input(node, 0), *dy = mix_node_input(node, 1), *dz = output_gradients[0];
  input_gradients[0] = mix_multiply(mix_multiply(mix_times(dz, -1.5), dy), mix_square(y));
  input_gradients[1] = mix_apply2(&mix_op_rsqrt_grad, y, dz);
}

/* z = -dy y^2: dz/dy = -2 dy y. */
static void reciprocal_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                     mix_tensor **input_gradients) {
  mix_tensor *y = mix_node_input(node, 0), *dy = mix_node_input(node, 1), *dz = output_gradients[0];
  input_gradients[0] = mix_multiply(mix_multiply(mix_times(dz, -2), dy), y);
  input_gradients[1] = mix_apply2(&mix_op_reciprocal_grad, y, dz);
}

#define OP(called, tf, code)                                                                                 \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = "T,T->T",                                                     \
                                  .types = "float",                                                          \
                                  .flags = MIX_OP_ELEMENTWISE,                                               \
                                  .opcode = MIX_OPCODE_##code,                                               \
                                  .infer = mix_rule_one_shape,                                               \
                                  .row_independent = mix_rows_elementwise,                                   \
                                  .gradient = called##_gradient};
OP(sqrt_grad, "SqrtGrad", SQRT_GRAD)
OP(rsqrt_grad, "RsqrtGrad", RSQRT_GRAD)
OP(reciprocal_grad, "ReciprocalGrad", RECIPROCAL_GRAD)
