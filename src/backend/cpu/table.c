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
    ROW(attention),
    ROW(attention_grad),
    ROW(random_uniform),
    ROW(random_normal),
    ROW(matmul),
    {&mix_op_matmul_downcast, mix_cpu_matmul_kernels},
    {&mix_op_batch_matmul, mix_cpu_matmul_kernels},
    {NULL, NULL},
};
