/* Blocked products on vectors. For each tile of C and each block of k a block of B is packed, which stays in
 * the second-level cache; then for each panel of rows A is packed, which stays in the first-level cache, and
 * multiplied with all panels of B. */
#pragma once

#include "backend/cpu/gemm/gemm.h"

typedef struct mix_blocked_plan {
  const mix_gemm_storage *a_storage, *b_storage; /* of A, of B as packing reads it */
  bool a_in_place, b_in_place, c_in_place;
  bool a_transposed;      /* A, stored along k, is packed along rows, which the fastest micro-kernels read */
  bool b_kept;            /* packed before the run, all panels of a block of k side by side */
  bool b_widened;         /* in place, and widened by the storage's own micro-kernels */
  bool a_gathered;        /* patches, a block of A at a time: then a matrix for all the rest */
  bool a_widened;         /* as it is gathered: then stored as the micro-kernels read it */
  bool prefetch_b;        /* rows of a B in place that are multiplied next */
  bool prefetch_a_source; /* the rows of A that are packed next, while tiles are multiplied */
  bool prefetch_a_rows;   /* those that are read or packed next, of which whole rows lie side by side */
  int a_panels;           /* panels of rows of A that are in the workspace at once */
  int c_panels;           /* panels of rows whose sums are stored at once */
  int64_t a_panel_stride; /* elements from one of these to the next; 0: side by side */
  int64_t a_stride, c_stride; /* of packed A, of sums in the workspace */
  size_t a_bytes, b_bytes, c_bytes, transpose_bytes, gathered_bytes; /* the parts of a thread's workspace */
} mix_blocked_plan;
MIX_GEMM_OWN_PLAN(mix_blocked_plan)

void mix_blocked_make_plan(mix_gemm_plan *plan);
mix_gemm_workspace mix_blocked_workspace(const mix_gemm_plan *plan);
void mix_blocked_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                     void *shared, void *workspace);
size_t mix_blocked_kept_bytes(const mix_gemm_plan *plan);
void mix_blocked_keep(const mix_gemm_plan *plan, const mix_gemm_view *b, int rank, int threads, void *kept);
extern const mix_gemm_algorithm mix_gemm_blocked;

/* What blocked algorithms have in common; unsupported_reason differs. */
#define MIX_BLOCKED_FUNCTIONS                                                                                \
  .plan = mix_blocked_make_plan, .workspace = mix_blocked_workspace, .kept_bytes = mix_blocked_kept_bytes,   \
  .keep = mix_blocked_keep, .run = mix_blocked_run
