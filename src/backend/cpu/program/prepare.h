/* The CPU's executor of element-wise programs: over tiles that stay in the first-level cache, vectorised for each instruction set.
 * Used by the kernel of fused steps, and by products for their epilogues. */
#ifndef MIX_BACKEND_CPU_PROGRAM_PREPARE_H
#define MIX_BACKEND_CPU_PROGRAM_PREPARE_H

#include "backend/host/kernel.h"

/* A program made ready: physical tile registers, the instruction functions of the instruction set in force. Freed with mix_free. */
typedef struct mix_tile_program mix_tile_program;
mix_tile_program *mix_tile_prepare(const mix_program *program);
/* Why a program cannot be prepared (static text); NULL: it can. What a product's kernel asks before it takes an epilogue. */
const char *mix_tile_unsupported_reason(const mix_program *program);

/* Are finite numbers of that 16-bit dtype, times the factor, finite float32 numbers? Then they may be tested as they are. */
static inline bool mix_tile_factor_keeps(mix_dtype dtype, float factor) {
  const float most = dtype == MIX_FLOAT16 ? 0x1p111f : 1; /* 65504 and the largest bfloat16 times it are float32 numbers */
  return factor >= -most && factor <= most;
}

/* Epilogue of a product with a (rows, columns) result, rank 2 or merged to it: runs the program over rows [row, row + rows) and
 * columns [column, column + columns). False where the finite test that ends the program fails there. accumulator[i * stride + j]
 * (float, or double when the product is float64) is the raw result of element (row + i, column + j), not yet rounded to the product's
 * dtype: the load rounds it to the load's dtype. Inputs and outputs are those of the step (args->inputs, args->outputs). Callable from
 * any thread of the team for disjoint blocks. `more`: the rows below come next, and what the first of them needs of memory is fetched
 * meanwhile. */
bool mix_tile_run_block(const mix_tile_program *prepared, const mix_kernel_args *args, const void *accumulator, int64_t stride,
                        int64_t row, int64_t rows, int64_t column, int64_t columns, bool more);

#endif
