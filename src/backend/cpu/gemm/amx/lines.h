/* Products with patches of images on tiles, without writing patches down. As in gemm/lines/lines.h a thread
 * packs the lines of the image that a block of lines of cells sees, each once and with its padding. A row of
 * a tile is a cell: TILELOADD reads 32 numbers of k of 16 cells side by side from such a line, in which they
 * are as far apart as the stride. Steps whose numbers lie in several places, and one of fewer numbers, are
 * gathered into a tile. All of B is packed once by all threads.
 *
 * Steps and order of k are those of a matrix in which the patches are written out, and so are the bits.
 * float16 and float32 numbers are split as lines are packed, once for all patches; a step of theirs pairs
 * numbers that are 16 apart, so that all steps must begin where those of a pixel's channels do. */
#pragma once

#include "backend/cpu/gemm/amx/amx.h"

typedef struct mix_amx_lines_plan {
  int64_t pitch, cell, line; /* packed numbers from pixel to pixel, from cell to cell, from line to line */
  int64_t cell_lines;        /* lines of cells of a block */
  int64_t gathered, pieces;  /* steps that are gathered, and of how many pieces */
  int64_t nc;                /* columns of a block of B, which stays in the second-level cache */
  int64_t c_stride;          /* of sums in the workspace */
  int64_t part;              /* bytes from the upper parts of packed numbers to the lower ones */
  bool b_kept;               /* packed before the run */
  size_t table_bytes, slab_bytes; /* the first parts of a thread's workspace */
} mix_amx_lines_plan;
MIX_GEMM_OWN_PLAN(mix_amx_lines_plan)

/* Numbers of a step that is gathered. */
typedef struct mix_amx_piece {
  int64_t at;       /* bytes from the cell's first number to where the step would begin */
  uint32_t numbers; /* bit i: number i of the step is one of them */
  bool last;        /* of its step */
} mix_amx_piece;

static inline int64_t mix_amx_steps(const mix_gemm_plan *plan) {
  return (plan->problem.k + AMX_STEP - 1) / AMX_STEP;
}
/* Pixels or lines that are packed from one cell to the next: fewer than the step where cells see no more. */
static inline int64_t mix_amx_packed_step(const mix_gemm_patches *p, int axis, int64_t seen) {
  return p->step[axis] < seen ? p->step[axis] : seen;
}
/* Writes the steps of a patch, and the pieces of those that are gathered, where one more has space. */
void mix_amx_cut_patch(const mix_gemm_problem *problem, const mix_amx_lines_plan *own, mix_amx_step *steps,
                       mix_amx_piece *pieces);

const char *mix_amx_lines_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                             const mix_gemm_problem *problem);
void mix_amx_make_lines_plan(mix_gemm_plan *plan);
mix_gemm_workspace mix_amx_lines_workspace(const mix_gemm_plan *plan);
size_t mix_amx_lines_kept_bytes(const mix_gemm_plan *plan);
void mix_amx_keep_lines(const mix_gemm_plan *plan, const mix_gemm_view *b, int rank, int threads, void *kept);
void mix_amx_run_lines(const mix_amx_tiles *tiles, const mix_gemm_plan *plan,
                       const mix_gemm_operands *operands, const mix_team *team, void *shared,
                       void *workspace);
