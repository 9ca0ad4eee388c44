/* The kernel table of the device "cpu": the fast kernels of each op. If an op has none, or if all of them
 * refuse a step, the reference kernel runs it (backend/ref/table.c). */
#include "backend/cpu/kernels.h"

#define ROW(name, reference, form, kernels) {&mix_op_##name, mix_cpu_##kernels##_kernels},

const mix_kernel *const mix_cpu_none_kernels[] = {NULL};
const mix_kernel_row mix_cpu_kernels[] = {MIX_KERNEL_OPS(ROW) MIX_DECOMPOSITION_OPS(ROW)
                                              MIX_PLAN_OPS(ROW){NULL, NULL}};
