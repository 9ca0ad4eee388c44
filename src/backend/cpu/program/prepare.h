/* The tile executor: runs element-wise programs (ir/program.h) on the CPU. A tile is up to 512 elements that
 * stay in the first-level cache. Each instruction is one vectorised loop over a tile.
 *
 * A program is prepared once, while the plan is compiled:
 *   1. prepare.c merges dimensions of the iteration space, classifies the loads (uniform, contiguous,
 *      periodic, ...), and finds the uniform values: those that are the same for all elements.
 *   2. choose_functions.c selects the vector function of each instruction, and whether its result is rounded.
 *   3. superinstructions.c fuses instructions into one loop: first fused chains (an optimizer's update), then
 *      superinstructions (pairs).
 *   4. steps.c emits the steps and assigns registers to tiles in the thread's memory.
 *
 * Each thread runs the prepared program on its share of the elements (run.c). The preamble computes the
 * uniform values once. Then, for each tile, the body runs its steps in order (loads, instructions, chains),
 * the reduction that may end the program takes the tile (run_reduction.c), and the stores write it to memory.
 *
 * Used by fused steps (fused.c), add_n (add_n.c) and the epilogues of products (gemm/). */
#pragma once

#include "backend/host/kernel.h"

/* A prepared program (prepared_program.h), for the instruction set in force. Freed with mix_free. */
typedef struct mix_tile_program mix_tile_program;
mix_tile_program *mix_tile_prepare(const mix_program *program);
/* The reason why a program cannot be prepared (static text); NULL: it can. Kernels of products call it before
 * they accept an epilogue. */
const char *mix_tile_unsupported_reason(const mix_program *program);

/* Is every finite number of this 16-bit dtype, times the factor, a finite float32 number? Then the finite
 * test can read the numbers as stored. */
static inline bool mix_tile_factor_keeps(mix_dtype dtype, float factor) {
  const float max = dtype == MIX_FLOAT16 ? 0x1p111f : 1; /* times 65504, or the largest bfloat16: finite */
  return factor >= -max && factor <= max;
}

/* Runs the epilogue of a product on rows [row, row + rows) and columns [column, column + columns) of its
 * result, which is a matrix or merged to one. accumulator[i * stride + j] is the raw result of element
 * (row + i, column + j): float, or double if the product is float64. The load rounds it to its dtype.
 * Inputs and outputs are those of the step (args->inputs, args->outputs). Threads may call this for
 * disjoint blocks. `more`: the rows below follow next, and memory that the first of them needs is
 * prefetched. False if the program ends with the finite test, and the test fails in this block. */
bool mix_tile_run_block(const mix_tile_program *prepared, const mix_kernel_args *args,
                        const void *accumulator, int64_t stride, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, bool more);

/* An epilogue that only adds a bias to each row, perhaps with ReLU: where bias and result lie, of a dtype.
 * `result` NULL: it does something else. */
typedef struct mix_tile_bias {
  const void *bias;
  void *result;
  bool relu;
} mix_tile_bias;
mix_tile_bias mix_tile_find_bias(const mix_tile_program *prepared, const mix_kernel_args *args);
