/* Products with patches of images whose cells are read where they lie: for a block of lines of cells a thread
 * packs the lines of the image that they see, each once and with its padding, as the micro-kernels read them.
 * A patch is then some segments of these lines. All of B is packed once by all threads. Blocks and order of k
 * are those of blocked products, and so are the bits. */
#pragma once

#include "backend/cpu/gemm/gemm.h"

enum { MIX_LINES_SEGMENTS = 256 }; /* of a patch, at most */

typedef struct mix_lines_plan {
  int64_t pitch, line;   /* packed elements of a pixel, of a line */
  int64_t cell_lines;    /* lines of cells of a block */
  int64_t nc;            /* columns of a block of B, which stays in the second-level cache */
  int64_t depth;         /* packed elements of all k */
  int64_t segment_count; /* of a patch */
  int64_t sums_cells;    /* whose sums are stored at once */
  int64_t c_stride;      /* of these */
  bool whole_lines;      /* a window's line is one segment */
  bool c_in_place;
  bool b_kept;                      /* packed before the run */
  size_t segment_bytes, slab_bytes; /* the first parts of a thread's workspace */
} mix_lines_plan;
MIX_GEMM_OWN_PLAN(mix_lines_plan)

/* Pixels of a line of the image from one cell's to the next one's reach, and where they begin. */
typedef struct mix_lines_extent {
  int64_t first; /* pixel of the first cell, which may be padding */
  int64_t zero;  /* index of the window's cell 0 among the pixels that a cell sees */
  int64_t seen;  /* pixels that a cell sees, from its first to its last */
} mix_lines_extent;
static inline mix_lines_extent mix_lines_extent_of(const mix_gemm_patches *p, int axis) {
  const int64_t reach = (p->window[axis] - 1) * p->window_step[axis];
  return (mix_lines_extent){.first = p->origin[axis] + (reach < 0 ? reach : 0),
                            .zero = reach < 0 ? -reach : 0,
                            .seen = (reach < 0 ? -reach : reach) + 1};
}

/* Are the numbers of the image from a line of cells to the next one so many that no cache has space for them?
 * Steps and windows may be so far apart that all else would overflow. */
static inline bool mix_lines_span_too_much(const mix_gemm_patches *p, int64_t cache) {
  const int64_t seen = mix_lines_extent_of(p, 1).seen, lines = seen > p->step[1] ? seen : p->step[1];
  const double pixels = (double)p->cells[2] * (double)p->step[2] + (double)mix_lines_extent_of(p, 2).seen;
  return (double)lines * pixels * (double)p->channels > (double)cache;
}

/* Writes the segments of a patch and returns their number; 0 where pairs of k would not lie in one element.
 * `to` may be NULL. */
int64_t mix_lines_cut_patch(const mix_gemm_engine *engine, const mix_gemm_problem *problem,
                            const mix_lines_plan *own, mix_gemm_segment *to);

extern const mix_gemm_algorithm mix_gemm_lines;
const char *mix_lines_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                         const mix_gemm_problem *problem);
void mix_lines_make_plan(mix_gemm_plan *plan);
mix_gemm_workspace mix_lines_workspace(const mix_gemm_plan *plan);
size_t mix_lines_kept_bytes(const mix_gemm_plan *plan);
