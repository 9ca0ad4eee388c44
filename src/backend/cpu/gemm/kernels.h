/* The kernels of matrix products on the CPU: rows of backend/cpu/table.c, best first, without the
 * reference. */
#ifndef MIX_BACKEND_CPU_GEMM_KERNELS_H
#define MIX_BACKEND_CPU_GEMM_KERNELS_H

#include "backend/host/kernel.h"

/* Of matmul, matmul_downcast and batch_matmul; ended by NULL. */
extern const mix_kernel *const mix_cpu_matmul_kernels[];

/* Weights that do not change: from the next run on the team packs all of B at once; with `packed` it uses
 * what an earlier run has packed in the same workspace. Returns the size of that workspace, or 0 where the
 * kernel cannot. For measurements: no plan keeps weights packed (docs/PERFORMANCE.md). */
size_t mix_gemm_keep_packed(const mix_kernel_args *args, int threads, bool packed);

#endif
