/* The fast kernels of the CPU: arrays that ops/list.h gives to the ops, best first, ended by NULL. The last
 * kernel of an array runs on every processor. If all refuse a layout or a dtype, dispatch falls back on the
 * reference kernel (backend/cpu/table.c). */
#pragma once

#include "backend/host/kernel.h"
#include "ops/decompositions.h"

#define MIX_DECLARE_KERNELS(name, reference, form, kernels)                                                  \
  extern const mix_kernel *const mix_cpu_##kernels##_kernels[];
MIX_KERNEL_OPS(MIX_DECLARE_KERNELS)
MIX_DECOMPOSITION_OPS(MIX_DECLARE_KERNELS)
MIX_PLAN_OPS(MIX_DECLARE_KERNELS)
#undef MIX_DECLARE_KERNELS
extern const mix_kernel mix_cpu_transpose_lines;  /* of any permutation */
extern const mix_kernel mix_cpu_depthwise_kernel; /* of convolutions, those of each channel by itself */
