/* Kernels of matrix products on the CPU: rows for backend/cpu/table.c, best first, without the reference. */
#ifndef MIX_BACKEND_CPU_GEMM_KERNELS_H
#define MIX_BACKEND_CPU_GEMM_KERNELS_H

#include "backend/host/kernel.h"

/* Of matmul, matmul_downcast and batch_matmul; ended by NULL. */
extern const mix_kernel *const mix_cpu_matmul_kernels[];

/* From the next run on the team packs all of B at once; once it has, and says `packed`, B is taken from the same workspace as it lies
 * there: weights that do not change. The size of that workspace; 0: this kernel does not. For measurements: no plan keeps weights so
 * (docs/PERFORMANCE.md). */
size_t mix_gemm_keep_packed(const mix_kernel_args *args, int threads, bool packed);

#endif
