/* Addition of a bias along the last axis. */
#include "ops/rules.h"

/* x (..., units), bias (units). */
static bool bias_add_infer(mix_node *node) {
  mix_shape x = mix_input_value(node, 0)->shape, bias = mix_input_value(node, 1)->shape;
  if (x.rank < 1 || bias.rank != 1 ||
      !mix_dimension_merge(x.dims[x.rank - 1], bias.dims[0], &x.dims[x.rank - 1]))
    return mix_rule_fail(node, "expected x (..., units) and bias (units)");
  return mix_rule_output(node, 0, x);
}

static void bias_add_gradient(mix_node *node, mix_tensor *const *output_gradients,
                              mix_tensor **input_gradients) {
  input_gradients[0] = output_gradients[0];
  input_gradients[1] = mix_bias_add_gradient(output_gradients[0]);
}

const mix_op mix_op_bias_add = {.name = "bias_add",
                                .tf_name = "BiasAdd",
                                .signature = "T,T->T",
                                .types = "number",
                                .flags = MIX_OP_ELEMENTWISE,
                                .opcode = MIX_OPCODE_ADD,
                                .infer = bias_add_infer,
                                .row_independent = mix_rows_elementwise,
                                .gradient = bias_add_gradient,
                                .elementwise = &mix_op_add};

mix_tensor *mix_bias_add(mix_tensor *x, mix_tensor *bias) { return mix_apply2(&mix_op_bias_add, x, bias); }

static bool bias_add_grad_infer(mix_node *node) {
  mix_shape x = mix_input_value(node, 0)->shape;
  if (x.rank < 1) return mix_rule_fail(node, "expected (..., units)");
  return mix_rule_output(node, 0, (mix_shape){.rank = 1, .dims = {x.dims[x.rank - 1]}});
}

static void bias_add_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                   mix_tensor **input_gradients) {
  input_gradients[0] = mix_broadcast_to(output_gradients[0], mix_input_value(node, 0)->shape);
}

/* Of one vector it is the vector itself. */
static bool bias_add_grad_rows(const mix_row_query *query) { return query->inputs[0].rank == 1; }

const mix_op mix_op_bias_add_grad = {.name = "bias_add_grad",
                                     .tf_name = "BiasAddGrad",
                                     .signature = "T->T",
                                     .types = "number",
                                     .infer = bias_add_grad_infer,
                                     .row_independent = bias_add_grad_rows,
                                     .gradient = bias_add_grad_gradient};

mix_tensor *mix_bias_add_gradient(mix_tensor *output_gradient) {
  return mix_apply1(&mix_op_bias_add_grad, output_gradient);
}
