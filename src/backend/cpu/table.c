/* The kernel table of the device "cpu": the fast kernels of each op. If an op has none, or if all of them
 * refuse a step, the reference kernel runs it (backend/ref/table.c). */
#include "backend/cpu/gemm/kernels.h"
#include "backend/cpu/kernels.h"
#include "ops/table.h"

#define ROW(name)                                                                                            \
  { &mix_op_##name, mix_cpu_##name##_kernels }

const mix_kernel_row mix_cpu_kernels[] = {
    ROW(fused),
    ROW(reduce_sum),
    ROW(reduce_mean),
    ROW(reduce_max),
    ROW(reduce_min),
    ROW(bias_add_grad),
    ROW(add_n),
    ROW(all_finite),
    ROW(magnitudes),
    ROW(row_moments),
    ROW(matmul_finite_bound),
    ROW(softmax),
    ROW(log_softmax),
    ROW(softmax_cross_entropy),
    ROW(sparse_softmax_cross_entropy),
    ROW(argmax),
    ROW(argmin),
    ROW(reshape),
    ROW(transpose),
    ROW(fill),
    ROW(concat),
    ROW(slice),
    ROW(combine_rows),
    ROW(gather_rows),
    ROW(replace_rows),
    ROW(random_uniform),
    ROW(random_normal),
    ROW(max_pool),
    {&mix_op_max_pool3d, mix_cpu_max_pool_kernels},
    ROW(max_pool_grad),
    {&mix_op_max_pool_grad3d, mix_cpu_max_pool_grad_kernels},
    ROW(avg_pool),
    {&mix_op_avg_pool3d, mix_cpu_avg_pool_kernels},
    ROW(avg_pool_grad),
    {&mix_op_avg_pool_grad3d, mix_cpu_avg_pool_grad_kernels},
    ROW(matmul),
    {&mix_op_matmul_downcast, mix_cpu_matmul_kernels},
    {&mix_op_batch_matmul, mix_cpu_matmul_kernels},
    ROW(conv),
    {&mix_op_conv_input_gradient, mix_cpu_conv_kernels},
    {&mix_op_conv_kernel_gradient, mix_cpu_conv_kernels},
    {&mix_op_conv3d, mix_cpu_conv_kernels},
    {&mix_op_conv3d_input_gradient, mix_cpu_conv_kernels},
    {&mix_op_conv3d_kernel_gradient, mix_cpu_conv_kernels},
    {&mix_op_depthwise_conv, mix_cpu_conv_kernels},
    {&mix_op_depthwise_conv_input_gradient, mix_cpu_conv_kernels},
    {&mix_op_depthwise_conv_kernel_gradient, mix_cpu_conv_kernels},
    {NULL, NULL},
};
