/* All operations, once: ops/table.h declares them from these lists, and the tables of opcodes, of reference
 * kernels, of the CPU's kernels and of forms in StableHLO are made from them. */
#pragma once

/* clang-format off */

/* X(name, opcode, operands, kind of the result, cost): the element-wise ops, in the order of their opcodes.
 * Kind: S same as the operands, I the same of integers alone, B bool, L bool of bools, C another dtype, R
 * bfloat16 of float32 and two int64. Cost of an element on the CPU: 1 a simple instruction, 8 a polynomial on
 * vectors, 100 a function of the C library.
 * Maximum and minimum: a NaN operand gives NaN. Gradients have TensorFlow's order of operands. select: bool,
 * then two of the result's dtype. leaky_relu has the immediate alpha, stochastic_round
 * its stream. */
#define MIX_ELEMENTWISE_OPS(X)                                                                               \
  X(identity, IDENTITY, 1, S, 1)                     X(cast, CAST, 1, C, 1)                                  \
  X(negative, NEGATIVE, 1, S, 1)                     X(abs, ABS, 1, S, 1)                                    \
  X(sign, SIGN, 1, S, 1)                             X(floor, FLOOR, 1, S, 1)                                \
  X(ceil, CEIL, 1, S, 1)                             X(round, ROUND, 1, S, 1)                                \
  X(sqrt, SQRT, 1, S, 1)                             X(rsqrt, RSQRT, 1, S, 1)                                \
  X(square, SQUARE, 1, S, 1)                         X(reciprocal, RECIPROCAL, 1, S, 1)                      \
  X(exp, EXP, 1, S, 8)                               X(expm1, EXPM1, 1, S, 8)                                \
  X(log, LOG, 1, S, 8)                               X(log1p, LOG1P, 1, S, 8)                                \
  X(sin, SIN, 1, S, 100)                             X(cos, COS, 1, S, 100)                                  \
  X(tanh, TANH, 1, S, 8)                             X(sigmoid, SIGMOID, 1, S, 8)                            \
  X(erf, ERF, 1, S, 8)                               X(erfc, ERFC, 1, S, 100)                                \
  X(relu, RELU, 1, S, 1)                             X(relu6, RELU6, 1, S, 1)                                \
  X(elu, ELU, 1, S, 8)                               X(selu, SELU, 1, S, 8)                                  \
  X(softplus, SOFTPLUS, 1, S, 8)                     X(softsign, SOFTSIGN, 1, S, 1)                          \
  X(leaky_relu, LEAKY_RELU, 1, S, 1)                 X(is_finite, IS_FINITE, 1, B, 1)                        \
  X(is_inf, IS_INF, 1, B, 1)                         X(is_nan, IS_NAN, 1, B, 1)                              \
  X(logical_not, LOGICAL_NOT, 1, L, 1)                                                                       \
  X(add, ADD, 2, S, 1)                               X(subtract, SUBTRACT, 2, S, 1)                          \
  X(multiply, MULTIPLY, 2, S, 1)                     X(divide, DIVIDE, 2, S, 1)                              \
  X(floor_divide, FLOOR_DIVIDE, 2, S, 1)             X(floor_mod, FLOOR_MOD, 2, S, 100)                      \
  X(power, POWER, 2, S, 100)                         X(maximum, MAXIMUM, 2, S, 1)                            \
  X(minimum, MINIMUM, 2, S, 1)                       X(squared_difference, SQUARED_DIFFERENCE, 2, S, 1)      \
  X(equal, EQUAL, 2, B, 1)                           X(not_equal, NOT_EQUAL, 2, B, 1)                        \
  X(less, LESS, 2, B, 1)                             X(less_equal, LESS_EQUAL, 2, B, 1)                      \
  X(greater, GREATER, 2, B, 1)                       X(greater_equal, GREATER_EQUAL, 2, B, 1)                \
  X(logical_and, LOGICAL_AND, 2, L, 1)               X(logical_or, LOGICAL_OR, 2, L, 1)                      \
  X(atan2, ATAN2, 2, S, 100)                         X(bitwise_and, BITWISE_AND, 2, I, 1)                    \
  X(bitwise_or, BITWISE_OR, 2, I, 1)                 X(bitwise_xor, BITWISE_XOR, 2, I, 1)                    \
  X(shift_left, SHIFT_LEFT, 2, I, 1)                 X(shift_right, SHIFT_RIGHT, 2, I, 1)                    \
  /* (dy, x) */                                                                                              \
  X(relu_grad, RELU_GRAD, 2, S, 1)                   X(relu6_grad, RELU6_GRAD, 2, S, 1)                      \
  X(leaky_relu_grad, LEAKY_RELU_GRAD, 2, S, 1)       X(softplus_grad, SOFTPLUS_GRAD, 2, S, 8)                \
  X(softsign_grad, SOFTSIGN_GRAD, 2, S, 1)                                                                   \
  /* (dy, y) */                                                                                              \
  X(elu_grad, ELU_GRAD, 2, S, 1)                     X(selu_grad, SELU_GRAD, 2, S, 1)                        \
  /* (y, dy) */                                                                                              \
  X(tanh_grad, TANH_GRAD, 2, S, 1)                   X(sigmoid_grad, SIGMOID_GRAD, 2, S, 1)                  \
  X(sqrt_grad, SQRT_GRAD, 2, S, 1)                   X(rsqrt_grad, RSQRT_GRAD, 2, S, 1)                      \
  X(reciprocal_grad, RECIPROCAL_GRAD, 2, S, 1)                                                               \
  X(select, SELECT, 3, S, 1)                         X(clip, CLIP, 3, S, 1)                                  \
  X(stochastic_round, STOCHASTIC_ROUND, 3, R, 8)

/* X(name): element-wise with the opcode of another. bias_add is ADD (the bias broadcasts along all but the
 * last axis); stop_gradient and gradient are IDENTITY. The gradients of optimizers pass `gradient`, which is
 * on none of the rewrite's lists. */
#define MIX_RENAMED_OPS(X) X(bias_add) X(stop_gradient) X(gradient)

/* X(name, reference kernel, form in StableHLO, fast kernels of the CPU or none). */
#define MIX_KERNEL_OPS(X)                                                                                    \
  X(add_n, add_n, add_n, add_n)                                                                              \
  /* reductions */                                                                                           \
  X(reduce_sum, reduce_sum, reduce_sum, reduce_sum)                                                          \
  X(reduce_mean, reduce_mean, reduce_mean, reduce_mean)                                                      \
  X(reduce_prod, reduce_prod, reduce_prod, none)                                                             \
  X(reduce_max, reduce_max, reduce_max, reduce_max)                                                          \
  X(reduce_min, reduce_min, reduce_min, reduce_min)                                                          \
  X(reduce_all, reduce_all, reduce_min, none)                                                                \
  X(reduce_any, reduce_any, reduce_max, none)                                                                \
  X(bias_add_grad, bias_add_grad, bias_add_grad, bias_add_grad)                                              \
  X(argmax, argmax, argmax, argmax)                                                                          \
  X(argmin, argmin, argmin, argmin)                                                                          \
  X(all_finite, all_finite, all_finite, all_finite)                                                          \
  X(magnitudes, magnitudes, magnitudes, magnitudes)                                                          \
  X(row_moments, row_moments, row_moments, row_moments)                                                      \
  /* products, softmax, cross-entropies */                                                                   \
  X(matmul, matmul, matmul, matmul)                                                                          \
  X(batch_matmul, matmul, matmul, matmul)                                                                    \
  X(matmul_downcast, matmul, matmul, matmul)                                                                 \
  X(matmul_integer, matmul, matmul_integer, matmul_integer)                                                  \
  X(matmul_channels, matmul_stored, matmul_stored, matmul_stored)                                            \
  X(matmul_blocks, matmul_stored, matmul_stored, matmul_stored)                                              \
  X(dequantize_channels, dequantize, dequantize, dequantize)                                                 \
  X(dequantize_blocks, dequantize, dequantize, dequantize)                                                   \
  X(unpack_int4, unpack_int4, unpack_int4, none)                                                             \
  X(pack_int4, pack_int4, pack_int4, none)                                                                   \
  X(einsum, einsum, einsum, none)                                                                            \
  X(attention, attention, attention, attention)                                                              \
  X(attention_grad, attention_grad, attention_grad, attention_grad)                                          \
  X(softmax, softmax, softmax, softmax)                                                                      \
  X(log_softmax, log_softmax, log_softmax, log_softmax)                                                      \
  X(softmax_cross_entropy, softmax_cross_entropy, softmax_cross_entropy, softmax_cross_entropy)              \
  X(sparse_softmax_cross_entropy, sparse_softmax_cross_entropy, sparse_softmax_cross_entropy,                \
    sparse_softmax_cross_entropy)                                                                            \
  /* convolutions */                                                                                         \
  X(conv, conv, conv, conv)                                                                                  \
  X(conv_input_gradient, conv_input_gradient, conv, conv)                                                    \
  X(conv_kernel_gradient, conv_kernel_gradient, conv, conv)                                                  \
  X(conv3d, conv, conv, conv)                                                                                \
  X(conv3d_input_gradient, conv_input_gradient, conv, conv)                                                  \
  X(conv3d_kernel_gradient, conv_kernel_gradient, conv, conv)                                                \
  X(depthwise_conv, conv, conv, conv)                                                                        \
  X(depthwise_conv_input_gradient, conv_input_gradient, conv, conv)                                          \
  X(depthwise_conv_kernel_gradient, conv_kernel_gradient, conv, conv)                                        \
  /* indices and shapes */                                                                                   \
  X(argsort, argsort, argsort, none)                                                                         \
  X(fourier, fourier, fourier, none)                                                                         \
  X(gather, gather, gather, none)                                                                            \
  X(segment_sum, segment_sum, segment_sum, none)                                                             \
  X(rows, segment_sum, segment_sum, none)                                                                    \
  X(combine_rows, combine_rows, combine_rows, combine_rows)                                                  \
  X(gather_rows, gather_rows, gather_rows, gather_rows)                                                      \
  X(replace_rows, replace_rows, replace_rows, replace_rows)                                                  \
  X(one_hot, one_hot, one_hot, none)                                                                         \
  X(concat, concat, concat, concat)                                                                          \
  X(slice, slice, slice, slice)                                                                              \
  X(pad, pad, pad, pad)                                                                                      \
  X(reshape, reshape, reshape, reshape)                                                                      \
  X(broadcast_to, broadcast_to, broadcast_to, broadcast_to)                                                  \
  X(transpose, transpose, transpose, transpose)                                                              \
  X(bitcast, reshape, bitcast, none)                                                                         \
  X(optimization_barrier, reshape, optimization_barrier, reshape)                                            \
  /* pooling, images */                                                                                      \
  X(max_pool, max_pool, max_pool, max_pool)                                                                  \
  X(max_pool3d, max_pool, max_pool, max_pool)                                                                \
  X(max_pool_grad, max_pool_grad, max_pool_grad, max_pool_grad)                                              \
  X(max_pool_grad3d, max_pool_grad, max_pool_grad, max_pool_grad)                                            \
  X(max_pool_grad_grad, max_pool_grad_grad, max_pool_grad_grad, none)                                        \
  X(max_pool_grad_grad3d, max_pool_grad_grad, max_pool_grad_grad, none)                                      \
  X(avg_pool, avg_pool, avg_pool, avg_pool)                                                                  \
  X(avg_pool3d, avg_pool, avg_pool, avg_pool)                                                                \
  X(avg_pool_grad, avg_pool_grad, avg_pool_grad, avg_pool_grad)                                              \
  X(avg_pool_grad3d, avg_pool_grad, avg_pool_grad, avg_pool_grad)                                            \
  X(resize_axis, resize_axis, resize_axis, resize_axis)                                                      \
  X(projective_transform, projective_transform, projective_transform, none)                                  \
  /* sources of values */                                                                                    \
  X(fill, fill, fill, fill)                                                                                  \
  X(range, range, range, none)                                                                               \
  X(random_uniform, random_uniform, random_uniform, random_uniform)                                          \
  X(random_normal, random_normal, random_normal, random_normal)                                              \
  X(random_truncated_normal, random_truncated_normal, random_truncated_normal, none)

/* X(name, reference kernel, none, fast kernels): decompositions of matrices (ops/decompositions.h), which
 * have no form in StableHLO. */
#define MIX_DECOMPOSITION_OPS(X)                                                                             \
  X(eigh, eigh, none, none)                                                                                  \
  X(svd, svd, none, none)                                                                                    \
  X(eig, eig, none, none)                                                                                    \
  X(matrix_solve, matrix_solve, none, none)

/* X(name): of the host whatever the kernels: loops (also with a form in StableHLO), and collectives. */
#define MIX_LOOP_OPS(X) X(scan)
#define MIX_COLLECTIVE_OPS(X)                                                                                \
  X(all_reduce_start)                                                                                        \
  X(all_reduce_done)                                                                                         \
  X(broadcast) X(all_gather) X(reduce_scatter_start) X(reduce_scatter_done) X(collect_shares)

/* X(name): what looks into a step (ops/debug_ops.h), of the host whatever the kernels; check_numerics also
 * has a form in StableHLO. */
#define MIX_DEBUG_OPS(X) X(check_numerics) X(print)

/* X(name): of graphs alone (MIX_OP_ALIAS). custom_gradient.c has one more. */
#define MIX_ALIAS_OPS(X) X(delayed_scaling_operand) X(delayed_scaling_result) X(surrogate_gradient)

/* X(name, reference kernel, none, fast kernels): made by passes for plans, and in no graph. */
#define MIX_PLAN_OPS(X)                                                                                      \
  X(fused, fused, none, fused)                                                                               \
  X(block_quantize, block_quantize, none, block_quantize)                                                    \
  X(matmul_finite_bound, matmul_finite_bound, none, matmul_finite_bound)

/* clang-format on */
