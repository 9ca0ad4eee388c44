/* The kernel table of the device "ref": the reference kernel of every op. */
#include "backend/ref/ref.h"
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
    {&mix_op_scan, (const mix_kernel *const[]){&mix_host_scan, NULL}},
    {NULL, NULL},
};
