/* The kernels of matrix products on the CPU: rows of backend/cpu/table.c, best first, without the
 * reference. */
#ifndef MIX_BACKEND_CPU_GEMM_KERNELS_H
#define MIX_BACKEND_CPU_GEMM_KERNELS_H

#include "backend/host/kernel.h"

/* Of matmul, matmul_downcast and batch_matmul; ended by NULL. */
extern const mix_kernel *const mix_cpu_matmul_kernels[];

#endif
