/* Products with few columns. Each row of A, the wide operand, is read once, in place, along k; the columns of
 * B are widened and packed as rows. A deep product takes one part of k at a time; the sums of each lane stay
 * in the workspace between parts, so that the bits are those of a single part. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include <string.h>

/* A thread's product and the parts of its workspace. */
typedef struct run_state {
  const mix_gemm_plan *plan;
  const mix_gemm_operands *operands;
  char *lanes, *narrow, *sums, *transposed;
  int64_t k, depth; /* the current part of k */
} run_state;

/* Packs the part of op(B) as rows of `depth`, with zeros up to a whole vector. */
static void widen_columns(const run_state *s) {
  const mix_gemm_plan *plan = s->plan;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t element = (int64_t)plan->engine->element_size, lanes = plan->engine->lanes;
  const int64_t width = plan->engine->nr;
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype);
  const char *b = s->operands->b;
  if (p->transpose_b || (p->n == 1 && p->ldb == 1)) { /* a single column is stored along k too */
    plan->storage->pack_a[MIX_GEMM_ALONG_K](b + s->k * stored, p->ldb, (int)p->n, s->depth, s->narrow,
                                            plan->a_stride);
    return;
  }
  const int64_t whole = s->depth / lanes * lanes;
  for (int64_t j = 0; j < p->n && whole < s->depth; j++)
    memset(s->narrow + (j * plan->a_stride + whole) * element, 0, (size_t)(lanes * element));
  for (int64_t k = 0; k < s->depth; k += MIX_GEMM_SMALL_N_ROWS)
    for (int64_t j = 0; j < p->n; j += width) {
      const int64_t depth = smaller(MIX_GEMM_SMALL_N_ROWS, s->depth - k), columns = smaller(width, p->n - j);
      plan->storage->pack_b[0](b + ((s->k + k) * p->ldb + j) * stored, p->ldb, depth, columns, s->transposed,
                               0);
      mix_gemm_transpose(s->transposed, width, depth, columns, s->narrow + (j * plan->a_stride + k) * element,
                         plan->a_stride, (size_t)element);
    }
}

/* The part of k for rows [row, row + rows), at most MIX_GEMM_SMALL_N_ROWS, with their sums at `lanes`; stored
 * after the last part. */
static void multiply(const run_state *s, int64_t row, int64_t rows, char *lanes) {
  const mix_gemm_plan *plan = s->plan;
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype), sum = (int64_t)engine->sum_size;
  const bool first = s->k == 0, last = s->k + s->depth == p->k;
  const char *a = (const char *)s->operands->a + (row * p->lda + s->k) * stored;
  for (int64_t i = 0, count; i < rows; i += count) {
    const bool one = i + engine->small_n_rows > rows;
    count = one ? 1 : engine->small_n_rows;
    plan->storage->small_n[one](s->depth, a + i * p->lda * stored, p->lda, s->narrow, plan->a_stride,
                                (int)p->n, lanes + i * p->n * engine->lanes * sum, first,
                                last ? s->sums + i * MIX_GEMM_SMALL_N_STRIDE * sum : NULL);
  }
  if (!last) return;
  if (plan->compute_transposed) {
    mix_gemm_transpose(s->sums, MIX_GEMM_SMALL_N_STRIDE, rows, p->n, s->transposed, MIX_GEMM_SMALL_N_ROWS,
                       (size_t)sum);
    mix_gemm_store_result(plan, s->operands, s->transposed, MIX_GEMM_SMALL_N_ROWS, 0, p->n, row, rows, 0);
  } else {
    mix_gemm_store_result(plan, s->operands, s->sums, MIX_GEMM_SMALL_N_STRIDE, row, rows, 0, p->n, 0);
  }
}

void mix_gemm_run_small_n(const mix_gemm_plan *plan, const mix_gemm_operands *operands, int rank,
                          void *workspace) {
  const mix_gemm_problem *p = &plan->problem;
  const int64_t lanes_of_row = p->n * plan->engine->lanes * (int64_t)plan->engine->sum_size;
  const bool parts = plan->kc < p->k;
  run_state s = {.plan = plan, .operands = operands, .lanes = workspace};
  s.narrow = s.lanes + plan->a_bytes, s.sums = s.narrow + plan->b_bytes,
  s.transposed = s.sums + plan->c_bytes;
  int64_t begin, end;
  mix_gemm_share(p->m, 2, rank, plan->threads, &begin, &end);
  if (begin >= end || p->n == 0) return;
  for (int64_t row = begin; row < end; row += plan->mc) {
    const int64_t rows = smaller(plan->mc, end - row);
    for (s.k = 0; s.k < p->k; s.k += s.depth) {
      s.depth = smaller(plan->kc, p->k - s.k);
      if (parts || row == begin) widen_columns(&s);
      for (int64_t i = 0; i < rows; i += MIX_GEMM_SMALL_N_ROWS)
        multiply(&s, row + i, smaller(MIX_GEMM_SMALL_N_ROWS, rows - i), s.lanes + i * lanes_of_row);
    }
  }
}
