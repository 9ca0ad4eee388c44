/* Products with few rows. The large operand, B, is read once and in place. A thread goes through its columns
 * in blocks: the sums of a block stay in the first-level cache, and a row of B in it is a page or so of
 * memory, which the hardware prefetches. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include <string.h>

/* A thread's product and the parts of its workspace. */
typedef struct run_state {
  const mix_gemm_plan *plan;
  const mix_gemm_operands *operands;
  char *rows, *spare, *sums, *transposed;
} run_state;

/* Widens A for k in [k, k + depth); each row along k. */
static void widen_rows(const run_state *s, int64_t k, int64_t depth) {
  const mix_gemm_plan *plan = s->plan;
  const mix_gemm_problem *p = &plan->problem;
  const char *a = (const char *)s->operands->a +
                  k * (p->transpose_a ? p->lda : 1) * (int64_t)mix_dtype_size(plan->storage->dtype);
  void (*widen)(const void *, int64_t, int, int64_t, void *, int64_t) = plan->storage->pack_a[p->transpose_a];
  if (!p->transpose_a) {
    widen(a, p->lda, (int)p->m, depth, s->rows, plan->a_stride);
    return;
  }
  const int64_t stride = round_up(p->m, plan->engine->lanes);
  widen(a, p->lda, (int)p->m, depth, s->transposed, stride);
  mix_gemm_transpose(s->transposed, stride, depth, p->m, s->rows, plan->a_stride, plan->engine->element_size);
}

/* Columns [column, column + columns): each block of k is summed from zero and added to the blocks before. */
static void multiply_columns(const run_state *s, int64_t column, int64_t columns) {
  const mix_gemm_plan *plan = s->plan;
  const mix_gemm_problem *p = &plan->problem;
  const char *b = (const char *)s->operands->b;
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype);
  if (p->k == 0) memset(s->sums, 0, plan->c_bytes);
  for (int64_t k = 0, depth; k < p->k; k += depth) {
    depth = mix_gemm_next_depth(plan, p->k - k);
    widen_rows(s, k, depth);
    plan->storage->small_m(p->m, depth, s->rows, plan->a_stride, b + (k * p->ldb + column) * stored, p->ldb,
                           columns, plan->prefetch_b, s->sums, plan->c_stride, k == 0 ? NULL : s->spare);
  }
  if (plan->compute_transposed)
    mix_gemm_store_transposed(plan, s->operands, s->sums, s->transposed, 0, p->m, column, columns);
  else
    mix_gemm_store_result(plan, s->operands, s->sums, plan->c_stride, 0, p->m, column, columns, false);
}

void mix_gemm_run_small_m(const mix_gemm_plan *plan, const mix_gemm_operands *operands, int rank,
                          void *workspace) {
  run_state s = {.plan = plan, .operands = operands, .rows = workspace};
  s.spare = s.rows + plan->a_bytes, s.sums = s.spare + plan->b_bytes, s.transposed = s.sums + plan->c_bytes;
  int64_t begin, end;
  mix_gemm_share(plan->problem.n, plan->engine->nr, rank, plan->threads, &begin, &end);
  if (plan->problem.m == 0) return;
  for (int64_t column = begin; column < end; column += plan->nc)
    multiply_columns(&s, column, smaller(plan->nc, end - column));
}
