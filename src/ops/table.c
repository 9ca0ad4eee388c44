/* The table of all operations. */
#include "ops/table.h"

#include "ops/collective.h"
#include "graph/node.h"
#include <string.h>

const mix_op *const mix_all_ops[] = {
    &mix_op_constant, &mix_op_placeholder, &mix_op_read,
    /* dtype and identity */
    &mix_op_identity, &mix_op_stop_gradient, &mix_op_gradient, &mix_op_cast,
    /* element-wise, one operand */
    &mix_op_negative, &mix_op_abs, &mix_op_sign, &mix_op_floor, &mix_op_ceil, &mix_op_round, &mix_op_sqrt,
    &mix_op_rsqrt, &mix_op_square, &mix_op_reciprocal, &mix_op_exp, &mix_op_expm1, &mix_op_log, &mix_op_log1p,
    &mix_op_sin, &mix_op_cos, &mix_op_tanh, &mix_op_sigmoid, &mix_op_erf, &mix_op_erfc, &mix_op_relu,
    &mix_op_relu6, &mix_op_elu, &mix_op_selu, &mix_op_softplus, &mix_op_softsign, &mix_op_leaky_relu,
    &mix_op_is_finite, &mix_op_is_inf, &mix_op_is_nan, &mix_op_logical_not,
    /* element-wise, several operands; add must precede bias_add, which has the same opcode */
    &mix_op_add, &mix_op_subtract, &mix_op_multiply, &mix_op_divide, &mix_op_floor_divide, &mix_op_floor_mod,
    &mix_op_power, &mix_op_maximum, &mix_op_minimum, &mix_op_squared_difference, &mix_op_equal,
    &mix_op_not_equal, &mix_op_less, &mix_op_less_equal, &mix_op_greater, &mix_op_greater_equal,
    &mix_op_logical_and, &mix_op_logical_or, &mix_op_select, &mix_op_clip, &mix_op_bias_add, &mix_op_add_n,
    /* gradients of element-wise operations */
    &mix_op_relu_grad, &mix_op_relu6_grad, &mix_op_leaky_relu_grad, &mix_op_softplus_grad,
    &mix_op_softsign_grad, &mix_op_elu_grad, &mix_op_selu_grad, &mix_op_tanh_grad, &mix_op_sigmoid_grad,
    &mix_op_sqrt_grad, &mix_op_rsqrt_grad, &mix_op_reciprocal_grad,
    /* reductions */
    &mix_op_reduce_sum, &mix_op_reduce_mean, &mix_op_reduce_prod, &mix_op_reduce_max, &mix_op_reduce_min,
    &mix_op_reduce_all, &mix_op_reduce_any, &mix_op_bias_add_grad, &mix_op_argmax, &mix_op_argmin,
    &mix_op_all_finite, &mix_op_magnitudes, &mix_op_row_moments,
    /* products, softmax, cross-entropies */
    &mix_op_matmul, &mix_op_batch_matmul, &mix_op_matmul_downcast, &mix_op_einsum, &mix_op_attention,
    &mix_op_attention_grad, &mix_op_softmax, &mix_op_log_softmax, &mix_op_softmax_cross_entropy,
    &mix_op_sparse_softmax_cross_entropy,
    /* convolutions */
    &mix_op_conv, &mix_op_conv_input_gradient, &mix_op_conv_kernel_gradient, &mix_op_conv3d,
    &mix_op_conv3d_input_gradient, &mix_op_conv3d_kernel_gradient, &mix_op_depthwise_conv,
    &mix_op_depthwise_conv_input_gradient, &mix_op_depthwise_conv_kernel_gradient,
    /* indices and shapes */
    &mix_op_gather, &mix_op_segment_sum, &mix_op_rows, &mix_op_combine_rows, &mix_op_gather_rows,
    &mix_op_replace_rows, &mix_op_one_hot, &mix_op_concat, &mix_op_slice, &mix_op_pad, &mix_op_reshape,
    &mix_op_broadcast_to, &mix_op_transpose,
    /* pooling, images */
    &mix_op_max_pool, &mix_op_max_pool3d, &mix_op_max_pool_grad, &mix_op_max_pool_grad3d,
    &mix_op_max_pool_grad_grad, &mix_op_max_pool_grad_grad3d, &mix_op_avg_pool, &mix_op_avg_pool3d,
    &mix_op_avg_pool_grad, &mix_op_avg_pool_grad3d, &mix_op_resize_axis, &mix_op_projective_transform,
    /* sources of values */
    &mix_op_fill, &mix_op_range, &mix_op_random_uniform, &mix_op_random_normal,
    &mix_op_random_truncated_normal,
    /* loops */
    &mix_op_scan,
    /* collectives */
    &mix_op_all_reduce_start, &mix_op_all_reduce_done, &mix_op_broadcast, &mix_op_all_gather, NULL};

const mix_op *mix_op_by_name(const char *name) {
  for (int i = 0; name && mix_all_ops[i]; i++)
    if (strcmp(mix_all_ops[i]->name, name) == 0) return mix_all_ops[i];
  return NULL;
}

int mix_opcode_operands(mix_opcode opcode) {
  static const int operands[MIX_OPCODE_COUNT] = {
#define OPERANDS(code, count, kind) [MIX_OPCODE_##code] = count,
      MIX_OPCODE_LIST(OPERANDS)
#undef OPERANDS
  };
  return opcode > MIX_OPCODE_NONE && opcode < MIX_OPCODE_COUNT ? operands[opcode] : 0;
}

/* The name of the first op with that opcode. */
const char *mix_opcode_name(mix_opcode opcode) {
  for (int i = 0; mix_all_ops[i]; i++)
    if ((mix_all_ops[i]->flags & MIX_OP_ELEMENTWISE) && mix_all_ops[i]->opcode == (int)opcode)
      return mix_all_ops[i]->name;
  return "none";
}
