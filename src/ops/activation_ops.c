/* Activation functions and their gradient operations. Operand orders and formulas are TensorFlow's
 * (python/ops/nn_grad.py, core/kernels/relu_op_functor.h, softplus_op.h, softsign_op.h). */
#include "ops/rules.h"

static const mix_attribute_row alpha_fields[] = {
    {"alpha", MIX_ATTRIBUTE_DOUBLE, offsetof(mix_alpha_attributes, alpha)}, {NULL}};

/* ---- first gradients ---- */

/* relu, relu6: operands (dy, y). The gradient needs only the result, so the operand need not be kept. */
static void relu_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  input_gradients[0] = mix_apply2(&mix_op_relu_grad, output_gradients[0], mix_tensor_of(node, 0));
}
static void relu6_gradient(mix_node *node, mix_tensor *const *output_gradients,
                           mix_tensor **input_gradients) {
  input_gradients[0] = mix_apply2(&mix_op_relu6_grad, output_gradients[0], mix_tensor_of(node, 0));
}
/* leaky_relu: operands (dy, x). alpha may be negative, so the sign of y does not give that of x. */
static void leaky_relu_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                mix_tensor **input_gradients) {
  mix_tensor *operands[] = {output_gradients[0], mix_node_input(node, 0)};
  input_gradients[0] = mix_apply(&mix_op_leaky_relu_grad, node->attributes, 2, operands);
}
static void softplus_gradient(mix_node *node, mix_tensor *const *output_gradients,
                              mix_tensor **input_gradients) {
  input_gradients[0] = mix_apply2(&mix_op_softplus_grad, output_gradients[0], mix_node_input(node, 0));
}
static void softsign_gradient(mix_node *node, mix_tensor *const *output_gradients,
                              mix_tensor **input_gradients) {
  input_gradients[0] = mix_apply2(&mix_op_softsign_grad, output_gradients[0], mix_node_input(node, 0));
}
static void elu_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  input_gradients[0] = mix_apply2(&mix_op_elu_grad, output_gradients[0], mix_tensor_of(node, 0));
}
static void selu_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  input_gradients[0] = mix_apply2(&mix_op_selu_grad, output_gradients[0], mix_tensor_of(node, 0));
}
/* tanh, sigmoid: operands (y, dy). */
static void tanh_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  input_gradients[0] = mix_apply2(&mix_op_tanh_grad, mix_tensor_of(node, 0), output_gradients[0]);
}
static void sigmoid_gradient(mix_node *node, mix_tensor *const *output_gradients,
                             mix_tensor **input_gradients) {
  input_gradients[0] = mix_apply2(&mix_op_sigmoid_grad, mix_tensor_of(node, 0), output_gradients[0]);
}

/* ---- second gradients: of operations on (dy, features) or (y, dy); dz is the incoming gradient ---- */

/* Linear in dy and piecewise constant in the features. The features get zeros, as in TensorFlow. */
static void piecewise_gradient(mix_node *node, mix_tensor *const *output_gradients,
                               mix_tensor **input_gradients) {
  mix_tensor *features = mix_node_input(node, 1);
  mix_tensor *operands[] = {output_gradients[0], features};
  input_gradients[0] = mix_apply(node->op, node->op->attributes_size ? node->attributes : NULL, 2, operands);
  input_gradients[1] = mix_zeros_like(features);
}

/* elu_grad = dy (y + 1), selu_grad = dy (y + scale alpha) where y < 0. The derivative by y is dy there, 0
 * elsewhere. */
static void exponential_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                 mix_tensor **input_gradients) {
  mix_tensor *dy = mix_node_input(node, 0), *y = mix_node_input(node, 1), *dz = output_gradients[0];
  mix_tensor *zero = mix_scalar_like(y, 0);
  input_gradients[0] = mix_apply2(node->op, dz, y);
  input_gradients[1] = mix_select(mix_less(y, zero), mix_multiply(dz, dy), zero);
}

/* softplus_grad = dy sigmoid(x); sigmoid'(x) = 1 / (exp(-x) + 2 + exp(x)). */
static void softplus_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                   mix_tensor **input_gradients) {
  mix_tensor *dy = mix_node_input(node, 0), *x = mix_node_input(node, 1), *dz = output_gradients[0];
  mix_tensor *denominator = mix_add(mix_add(mix_exp(mix_negative(x)), mix_scalar_like(x, 2)), mix_exp(x));
  input_gradients[0] = mix_apply2(&mix_op_softplus_grad, dz, x);
  input_gradients[1] = mix_divide(mix_multiply(dz, dy), denominator);
}

/* softsign_grad = dy / (1 + |x|)^2; the derivative by x is -2 sign(x) dy / (1 + |x|)^3. TensorFlow has no
 * rule for it. */
static void softsign_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                   mix_tensor **input_gradients) {
  mix_tensor *dy = mix_node_input(node, 0), *x = mix_node_input(node, 1), *dz = output_gradients[0];
  mix_tensor *slope = mix_divide(mix_times(mix_sign(x), -2), mix_add(mix_abs(x), mix_scalar_like(x, 1)));
  mix_tensor *inner = mix_apply2(&mix_op_softsign_grad, dz, x);
  input_gradients[0] = inner;
  input_gradients[1] = mix_multiply(mix_multiply(inner, dy), slope);
}

/* tanh_grad = dy (1 - y^2). */
static void tanh_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                               mix_tensor **input_gradients) {
  mix_tensor *y = mix_node_input(node, 0), *dy = mix_node_input(node, 1), *dz = output_gradients[0];
  input_gradients[0] = mix_multiply(mix_multiply(mix_times(dz, -2), dy), y);
  input_gradients[1] = mix_apply2(&mix_op_tanh_grad, y, dz);
}

/* sigmoid_grad = dy y (1 - y); the derivative by y is dy - 2 dy y. */
static void sigmoid_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                  mix_tensor **input_gradients) {
  mix_tensor *y = mix_node_input(node, 0), *dy = mix_node_input(node, 1), *dz = output_gradients[0];
  mix_tensor *product = mix_multiply(dz, dy);
  input_gradients[0] = mix_subtract(product, mix_multiply(mix_times(product, 2), y));
  input_gradients[1] = mix_apply2(&mix_op_sigmoid_grad, y, dz);
}

/* name, TensorFlow's name, opcode, gradient */
#define ACTIVATIONS(X)                                                                                       \
  X(relu, "Relu", RELU, relu_gradient)                                                                       \
  X(relu6, "Relu6", RELU6, relu6_gradient)                                                                   \
  X(elu, "Elu", ELU, elu_gradient)                                                                           \
  X(selu, "Selu", SELU, selu_gradient)                                                                       \
  X(softplus, "Softplus", SOFTPLUS, softplus_gradient)                                                       \
  X(softsign, "Softsign", SOFTSIGN, softsign_gradient)                                                       \
  X(tanh, "Tanh", TANH, tanh_gradient)                                                                       \
  X(sigmoid, "Sigmoid", SIGMOID, sigmoid_gradient)
#define ACTIVATION_GRADS(X)                                                                                  \
  X(relu_grad, "ReluGrad", RELU_GRAD, piecewise_gradient)                                                    \
  X(relu6_grad, "Relu6Grad", RELU6_GRAD, piecewise_gradient)                                                 \
  X(elu_grad, "EluGrad", ELU_GRAD, exponential_gradient)                                                     \
  X(selu_grad, "SeluGrad", SELU_GRAD, exponential_gradient)                                                  \
  X(softplus_grad, "SoftplusGrad", SOFTPLUS_GRAD, softplus_grad_gradient)                                    \
  X(softsign_grad, "SoftsignGrad", SOFTSIGN_GRAD, softsign_grad_gradient)                                    \
  X(tanh_grad, "TanhGrad", TANH_GRAD, tanh_grad_gradient)                                                    \
  X(sigmoid_grad, "SigmoidGrad", SIGMOID_GRAD, sigmoid_grad_gradient)

#define OP(called, tf, code, rule)                                                                           \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = "T->T",                                                       \
                                  .types = "float",                                                          \
                                  .flags = MIX_OP_ELEMENTWISE,                                               \
                                  .opcode = MIX_OPCODE_##code,                                               \
                                  .infer = mix_rule_same,                                                    \
                                  .row_independent = mix_rows_elementwise,                                   \
                                  .gradient = rule};                                                         \
  mix_tensor *mix_##called(mix_tensor *x) { return mix_apply1(&mix_op_##called, x); }
ACTIVATIONS(OP)
#undef OP

#define OP(called, tf, code, rule)                                                                           \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = "T,T->T",                                                     \
                                  .types = "float",                                                          \
                                  .flags = MIX_OP_ELEMENTWISE,                                               \
                                  .opcode = MIX_OPCODE_##code,                                               \
                                  .infer = mix_rule_one_shape,                                               \
                                  .row_independent = mix_rows_elementwise,                                   \
                                  .gradient = rule};
ACTIVATION_GRADS(OP)

const mix_op mix_op_leaky_relu = {.name = "leaky_relu",
                                  .tf_name = "LeakyRelu",
                                  .signature = "T->T",
                                  .types = "float",
                                  .flags = MIX_OP_ELEMENTWISE,
                                  .opcode = MIX_OPCODE_LEAKY_RELU,
                                  .attributes_size = sizeof(mix_alpha_attributes),
                                  .infer = mix_rule_same,
                                  .row_independent = mix_rows_elementwise,
                                  .gradient = leaky_relu_gradient,
                                  .fields = alpha_fields};

const mix_op mix_op_leaky_relu_grad = {.name = "leaky_relu_grad",
                                       .tf_name = "LeakyReluGrad",
                                       .signature = "T,T->T",
                                       .types = "float",
                                       .flags = MIX_OP_ELEMENTWISE,
                                       .opcode = MIX_OPCODE_LEAKY_RELU_GRAD,
                                       .attributes_size = sizeof(mix_alpha_attributes),
                                       .infer = mix_rule_one_shape,
                                       .row_independent = mix_rows_elementwise,
                                       .gradient = piecewise_gradient,
                                       .fields = alpha_fields};

mix_tensor *mix_leaky_relu(mix_tensor *x, double alpha) {
  return mix_apply(&mix_op_leaky_relu, &(mix_alpha_attributes){alpha}, 1, &x);
}
