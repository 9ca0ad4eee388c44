/* A value whose gradient is that of another tensor: what is quantized, and products of quantized operands,
 * have the gradient of what they stand for. The other one is computed only where its own gradient needs it.
 */
#include "ops/rules.h"

static void gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  input_gradients[1] = output_gradients[0];
}

const mix_op mix_op_surrogate_gradient = {.name = "surrogate_gradient",
                                          .signature = "T,T->T",
                                          .types = "float",
                                          .flags = MIX_OP_ALIAS,
                                          .infer = mix_rule_one_shape,
                                          .gradient = gradient};

mix_tensor *mix_surrogate_gradient(mix_tensor *value, mix_tensor *other) {
  return mix_apply2(&mix_op_surrogate_gradient, value, other);
}
