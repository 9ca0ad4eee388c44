/* The kernel table of the device "ref": the reference kernel of every op. */
#include "backend/ref/ref.h"
#include "ops/table.h"

#define ROW(name, kernel)                                                                                    \
  {                                                                                                          \
    &mix_op_##name, (const mix_kernel *const[]) { &mix_ref_##kernel, NULL }                                  \
  }
#define SAME(name) ROW(name, name)

const mix_kernel_row mix_ref_kernels[] = {
    SAME(fused),
    SAME(matmul),
    ROW(batch_matmul, matmul),
    ROW(matmul_downcast, matmul),
    SAME(reduce_sum),
    SAME(reduce_mean),
    SAME(reduce_prod),
    SAME(reduce_max),
    SAME(reduce_min),
    SAME(reduce_all),
    SAME(reduce_any),
    SAME(bias_add_grad),
    SAME(add_n),
    SAME(argmax),
    SAME(argmin),
    SAME(all_finite),
    SAME(magnitudes),
    SAME(matmul_finite_bound),
    SAME(softmax),
    SAME(log_softmax),
    SAME(softmax_cross_entropy),
    SAME(sparse_softmax_cross_entropy),
    SAME(gather),
    SAME(segment_sum),
    SAME(one_hot),
    SAME(reshape),
    SAME(transpose),
    SAME(broadcast_to),
    SAME(concat),
    SAME(slice),
    SAME(pad),
    SAME(fill),
    SAME(range),
    SAME(random_uniform),
    SAME(random_normal),
    SAME(random_truncated_normal),
    {NULL, NULL},
};
