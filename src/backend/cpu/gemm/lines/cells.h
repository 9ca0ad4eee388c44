/* Gradients of kernels: products with transposed patches, of which k are the cells. As in lines.h a thread
 * packs the lines of the image that a block of k sees, each once; a tile of rows are channels side by side,
 * and a line of cells is a segment of k. Where elements are pairs of k, each number lies beside that of the
 * next cell, so that a pair may begin at every pixel. Blocks and order of k are those of blocked products. */
#pragma once

#include "backend/cpu/gemm/gemm.h"

typedef struct mix_cells_plan {
  int64_t pixels, line;     /* of a line: pixels, packed elements */
  int64_t parts, part_rows; /* rows of A whose channels lie side by side, and how many such parts there are */
  int64_t tiles, panels;    /* of rows in a part, of columns */
  int64_t units;            /* tiles of C, the largest share of a thread */
  int64_t cell_lines;       /* lines of cells whose part of the image is packed at once */
  size_t segment_bytes, scratch_bytes, slab_bytes, b_bytes; /* the first parts of a thread's workspace */
} mix_cells_plan;
MIX_GEMM_OWN_PLAN(mix_cells_plan)

extern const mix_gemm_algorithm mix_gemm_cells;
const char *mix_cells_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                         const mix_gemm_problem *problem);
void mix_cells_make_plan(mix_gemm_plan *plan);
mix_gemm_workspace mix_cells_workspace(const mix_gemm_plan *plan);
