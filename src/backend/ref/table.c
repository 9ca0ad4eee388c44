/* The kernel table of the device "ref": the reference kernel of every op. */
#include "backend/ref/ref.h"
#include "ops/collective.h"
#include "ops/table.h"

#define ROW(name, kernel)                                                                                    \
  {                                                                                                          \
    &mix_op_##name, (const mix_kernel *const[]) { &mix_ref_##kernel, NULL }                                  \
  }
#define SAME(name) ROW(name, name),

const mix_kernel_row mix_ref_kernels[] = {
    MIX_REF_KERNELS(SAME) /* and the ops that share a kernel */
    ROW(batch_matmul, matmul),
    ROW(matmul_downcast, matmul),
    ROW(rows, segment_sum),
    ROW(conv3d, conv),
    ROW(conv3d_input_gradient, conv_input_gradient),
    ROW(conv3d_kernel_gradient, conv_kernel_gradient),
    ROW(depthwise_conv, conv),
    ROW(depthwise_conv_input_gradient, conv_input_gradient),
    ROW(depthwise_conv_kernel_gradient, conv_kernel_gradient),
    ROW(max_pool3d, max_pool),
    ROW(max_pool_grad3d, max_pool_grad),
    ROW(max_pool_grad_grad3d, max_pool_grad_grad),
    ROW(avg_pool3d, avg_pool),
    ROW(avg_pool_grad3d, avg_pool_grad),
    {&mix_op_scan, (const mix_kernel *const[]){&mix_host_scan, NULL}},
    {&mix_op_all_reduce_start, (const mix_kernel *const[]){&mix_host_all_reduce_start, NULL}},
    {&mix_op_all_reduce_done, (const mix_kernel *const[]){&mix_host_all_reduce_done, NULL}},
    {&mix_op_broadcast, (const mix_kernel *const[]){&mix_host_broadcast, NULL}},
    {&mix_op_all_gather, (const mix_kernel *const[]){&mix_host_all_gather, NULL}},
    {NULL, NULL},
};
