/* The fast kernels of the CPU: one array for each op, best first, ended by NULL. The last kernel of an
 * array runs on plain x86-64. If all refuse a layout or a dtype, dispatch falls back on the reference
 * kernel (backend/cpu/table.c). */
#ifndef MIX_BACKEND_CPU_KERNELS_H
#define MIX_BACKEND_CPU_KERNELS_H

#include "backend/host/kernel.h"

extern const mix_kernel *const mix_cpu_fused_kernels[];
extern const mix_kernel *const mix_cpu_reduce_sum_kernels[];
extern const mix_kernel *const mix_cpu_reduce_mean_kernels[];
extern const mix_kernel *const mix_cpu_reduce_max_kernels[];
extern const mix_kernel *const mix_cpu_reduce_min_kernels[];
extern const mix_kernel *const mix_cpu_bias_add_grad_kernels[];
extern const mix_kernel *const mix_cpu_add_n_kernels[];
extern const mix_kernel *const mix_cpu_all_finite_kernels[];
extern const mix_kernel *const mix_cpu_magnitudes_kernels[];
extern const mix_kernel *const mix_cpu_row_moments_kernels[];
extern const mix_kernel *const mix_cpu_matmul_finite_bound_kernels[];
extern const mix_kernel *const mix_cpu_softmax_kernels[];
extern const mix_kernel *const mix_cpu_log_softmax_kernels[];
extern const mix_kernel *const mix_cpu_softmax_cross_entropy_kernels[];
extern const mix_kernel *const mix_cpu_sparse_softmax_cross_entropy_kernels[];
extern const mix_kernel *const mix_cpu_argmax_kernels[];
extern const mix_kernel *const mix_cpu_argmin_kernels[];
extern const mix_kernel *const mix_cpu_reshape_kernels[];
extern const mix_kernel mix_cpu_transpose_lines; /* of any permutation */
extern const mix_kernel *const mix_cpu_transpose_kernels[];
extern const mix_kernel *const mix_cpu_broadcast_to_kernels[];
extern const mix_kernel *const mix_cpu_fill_kernels[];
extern const mix_kernel *const mix_cpu_concat_kernels[];
extern const mix_kernel *const mix_cpu_slice_kernels[];
extern const mix_kernel *const mix_cpu_pad_kernels[];
extern const mix_kernel *const mix_cpu_combine_rows_kernels[];
extern const mix_kernel *const mix_cpu_gather_rows_kernels[];
extern const mix_kernel *const mix_cpu_replace_rows_kernels[];
extern const mix_kernel mix_cpu_depthwise_kernel;      /* of those of each channel by itself */
extern const mix_kernel *const mix_cpu_conv_kernels[]; /* of all convolutions and their gradients */
extern const mix_kernel *const mix_cpu_attention_kernels[];
extern const mix_kernel *const mix_cpu_attention_grad_kernels[];
extern const mix_kernel *const mix_cpu_random_uniform_kernels[];
extern const mix_kernel *const mix_cpu_random_normal_kernels[];
extern const mix_kernel *const mix_cpu_max_pool_kernels[];
extern const mix_kernel *const mix_cpu_max_pool_grad_kernels[];
extern const mix_kernel *const mix_cpu_avg_pool_kernels[];
extern const mix_kernel *const mix_cpu_avg_pool_grad_kernels[];

#endif
