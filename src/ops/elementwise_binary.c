/* Element-wise functions of two operands, with NumPy broadcasting. Gradients are TensorFlow's
 * (python/ops/math_grad.py): each is computed in the broadcast shape and summed over the broadcast axes. */
#include "ops/rules.h"

static mix_tensor *a_of(mix_node *node) { return mix_node_input(node, 0); }
static mix_tensor *b_of(mix_node *node) { return mix_node_input(node, 1); }

static void set_gradients(mix_node *node, mix_tensor *da, mix_tensor *db, mix_tensor **input_gradients) {
  input_gradients[0] = mix_unbroadcast(node, 0, da);
  input_gradients[1] = mix_unbroadcast(node, 1, db);
}

static void add_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  set_gradients(node, output_gradients[0], output_gradients[0], input_gradients);
}

static void subtract_gradient(mix_node *node, mix_tensor *const *output_gradients,
                              mix_tensor **input_gradients) {
  set_gradients(node, output_gradients[0], mix_negative(output_gradients[0]), input_gradients);
}

static void multiply_gradient(mix_node *node, mix_tensor *const *output_gradients,
                              mix_tensor **input_gradients) {
  mix_tensor *dy = output_gradients[0];
  set_gradients(node, mix_multiply(dy, b_of(node)), mix_multiply(a_of(node), dy), input_gradients);
}

/* db = dy ((-a / b) / b) in this order, so that b^2, which could overflow, is never formed. */
static void divide_gradient(mix_node *node, mix_tensor *const *output_gradients,
                            mix_tensor **input_gradients) {
  mix_tensor *a = a_of(node), *b = b_of(node), *dy = output_gradients[0];
  set_gradients(node, mix_divide(dy, b), mix_multiply(dy, mix_divide(mix_divide(mix_negative(a), b), b)),
                input_gradients);
}

/* mod(a, b) = a - floor(a / b) b. */
static void floor_mod_gradient(mix_node *node, mix_tensor *const *output_gradients,
                               mix_tensor **input_gradients) {
  mix_tensor *dy = output_gradients[0];
  set_gradients(node, dy, mix_multiply(dy, mix_negative(mix_floor_divide(a_of(node), b_of(node)))),
                input_gradients);
}

/* da = dy b a^(b - 1); db = dy a^b log(a) where a > 0, and 0 elsewhere (real powers). */
static void power_gradient(mix_node *node, mix_tensor *const *output_gradients,
                           mix_tensor **input_gradients) {
  mix_tensor *a = a_of(node), *b = b_of(node), *dy = output_gradients[0];
  mix_tensor *zero = mix_scalar_like(a, 0), *one = mix_scalar_like(a, 1);
  mix_tensor *positive = mix_greater(a, zero);
  mix_tensor *log_a = mix_select(positive, mix_log(mix_select(positive, a, one)), zero);
  mix_tensor *da = mix_multiply(mix_multiply(dy, b), mix_power(a, mix_subtract(b, one)));
  mix_tensor *db = mix_multiply(mix_multiply(dy, mix_tensor_of(node, 0)), log_a);
  set_gradients(node, da, db, input_gradients);
}

/* Ties go to a, as in TensorFlow. */
static void extreme_gradient(mix_node *node, mix_tensor *chosen, mix_tensor *dy,
                             mix_tensor **input_gradients) {
  mix_tensor *zero = mix_scalar_like(dy, 0);
  set_gradients(node, mix_select(chosen, dy, zero), mix_select(chosen, zero, dy), input_gradients);
}
static void maximum_gradient(mix_node *node, mix_tensor *const *output_gradients,
                             mix_tensor **input_gradients) {
  extreme_gradient(node, mix_greater_equal(a_of(node), b_of(node)), output_gradients[0], input_gradients);
}
static void minimum_gradient(mix_node *node, mix_tensor *const *output_gradients,
                             mix_tensor **input_gradients) {
  extreme_gradient(node, mix_less_equal(a_of(node), b_of(node)), output_gradients[0], input_gradients);
}

static void squared_difference_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                        mix_tensor **input_gradients) {
  mix_tensor *dy = output_gradients[0];
  mix_tensor *da =
      mix_multiply(mix_multiply(mix_scalar_like(dy, 2), dy), mix_subtract(a_of(node), b_of(node)));
  set_gradients(node, da, mix_negative(da), input_gradients);
}

/* da = dy b / (a^2 + b^2); db = -dy a / (a^2 + b^2). */
static void atan2_gradient(mix_node *node, mix_tensor *const *output_gradients,
                           mix_tensor **input_gradients) {
  mix_tensor *a = a_of(node), *b = b_of(node);
  mix_tensor *inverse = mix_divide(output_gradients[0], mix_add(mix_square(b), mix_square(a)));
  set_gradients(node, mix_multiply(b, inverse), mix_multiply(mix_negative(a), inverse), input_gradients);
}

/* name, TensorFlow's name, signature, dtypes, opcode, gradient */
#define BINARY(X)                                                                                            \
  X(add, "AddV2", "T,T->T", "number", ADD, add_gradient)                                                     \
  X(subtract, "Sub", "T,T->T", "number", SUBTRACT, subtract_gradient)                                        \
  X(multiply, "Mul", "T,T->T", "number", MULTIPLY, multiply_gradient)                                        \
  X(divide, "RealDiv", "T,T->T", "float", DIVIDE, divide_gradient)                                           \
  X(floor_divide, "FloorDiv", "T,T->T", "number", FLOOR_DIVIDE, NULL)                                        \
  X(floor_mod, "FloorMod", "T,T->T", "number", FLOOR_MOD, floor_mod_gradient)                                \
  X(power, "Pow", "T,T->T", "number", POWER, power_gradient)                                                 \
  X(maximum, "Maximum", "T,T->T", "number", MAXIMUM, maximum_gradient)                                       \
  X(minimum, "Minimum", "T,T->T", "number", MINIMUM, minimum_gradient)                                       \
  X(squared_difference, "SquaredDifference", "T,T->T", "number", SQUARED_DIFFERENCE,                         \
    squared_difference_gradient)                                                                             \
  X(equal, "Equal", "T,T->b", "any", EQUAL, NULL)                                                            \
  X(not_equal, "NotEqual", "T,T->b", "any", NOT_EQUAL, NULL)                                                 \
  X(less, "Less", "T,T->b", "number", LESS, NULL)                                                            \
  X(less_equal, "LessEqual", "T,T->b", "number", LESS_EQUAL, NULL)                                           \
  X(greater, "Greater", "T,T->b", "number", GREATER, NULL)                                                   \
  X(greater_equal, "GreaterEqual", "T,T->b", "number", GREATER_EQUAL, NULL)                                  \
  X(logical_and, "LogicalAnd", "b,b->b", "", LOGICAL_AND, NULL)                                              \
  X(logical_or, "LogicalOr", "b,b->b", "", LOGICAL_OR, NULL)                                                 \
  X(atan2, "Atan2", "T,T->T", "float", ATAN2, atan2_gradient)                                                \
  X(bitwise_and, "BitwiseAnd", "T,T->T", "int", BITWISE_AND, NULL)                                           \
  X(bitwise_or, "BitwiseOr", "T,T->T", "int", BITWISE_OR, NULL)                                              \
  X(bitwise_xor, "BitwiseXor", "T,T->T", "int", BITWISE_XOR, NULL)                                           \
  X(shift_left, "LeftShift", "T,T->T", "int", SHIFT_LEFT, NULL)                                              \
  X(shift_right, "RightShift", "T,T->T", "int", SHIFT_RIGHT, NULL)

#define OP(called, tf, letters, dtypes, code, rule)                                                          \
  const mix_op mix_op_##called = {                                                                           \
      .name = #called,                                                                                       \
      .tf_name = tf,                                                                                         \
      .signature = letters,                                                                                  \
      .types = dtypes,                                                                                       \
      .flags = MIX_OP_ELEMENTWISE | (MIX_OPCODE_##code == MIX_OPCODE_ADD ? MIX_OP_SUM : 0),                  \
      .opcode = MIX_OPCODE_##code,                                                                           \
      .infer = mix_rule_broadcast,                                                                           \
      .row_independent = mix_rows_elementwise,                                                               \
      .gradient = rule,                                                                                      \
      .accumulator = MIX_OPCODE_##code == MIX_OPCODE_ADD ? MIX_FLOAT32 : MIX_DTYPE_NONE};                    \
  mix_tensor *mix_##called(mix_tensor *a, mix_tensor *b) { return mix_apply2(&mix_op_##called, a, b); }
BINARY(OP)

/* ---- add_n ---- */

static void add_n_gradient(mix_node *node, mix_tensor *const *output_gradients,
                           mix_tensor **input_gradients) {
  for (int i = 0; i < node->input_count; i++) input_gradients[i] = output_gradients[0];
}

const mix_op mix_op_add_n = {.name = "add_n",
                             .tf_name = "AddN",
                             .signature = "T*->T",
                             .types = "number",
                             .flags = MIX_OP_SUM,
                             .infer = mix_rule_one_shape,
                             .row_independent = mix_rows_elementwise,
                             .gradient = add_n_gradient,
                             .accumulator = MIX_FLOAT32,
                             .elementwise = &mix_op_add};

mix_tensor *mix_add_n(int count, mix_tensor *const *tensors) {
  if (mix_failed()) return NULL;
  if (count < 1)
    return mix_call_fail(MIX_VALUE_ERROR, "add_n", NULL, "got %d tensors; expected at least one", count);
  if (!mix_given(tensors, NULL, "add_n", "an array of tensors")) return NULL;
  return count == 1 && mix_operand_ready("add_n", tensors[0])
             ? tensors[0]
             : mix_apply(&mix_op_add_n, NULL, count, tensors);
}
