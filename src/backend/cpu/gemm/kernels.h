/* Kernels of matrix products on the CPU: rows for backend/cpu/table.c, best first, without the reference. */
#ifndef MIX_BACKEND_CPU_GEMM_KERNELS_H
#define MIX_BACKEND_CPU_GEMM_KERNELS_H

#include "backend/kernel.h"

/* Ended by NULL. */
extern const mix_kernel *const mix_cpu_matmul_kernels[];
extern const mix_kernel *const mix_cpu_batch_matmul_kernels[];

#endif
