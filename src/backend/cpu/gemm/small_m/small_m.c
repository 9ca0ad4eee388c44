/* Products with few rows. The large operand, B, is read once and in place. A thread goes through its columns
 * in blocks: the sums of a block stay in the first-level cache, and a row of B in it is a page or so of
 * memory, which the hardware prefetches. */
#include "backend/cpu/gemm/small_m/plan.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include <string.h>

enum {
  /* At most so many rows, B of more bytes than these. */
  MAX_ROWS = 16,
  MIN_BYTES = 256 << 10,
  /* In a loop B stays in a cache: tiles of so few rows wait for one addition after the other. */
  FEWEST_ROWS = 2,
  /* Columns of a block: a row of B is then a page or so, and sums of few rows stay in the first-level
   * cache. */
  MAX_COLUMNS = 1024,
};

static const char *small_m_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                              const mix_gemm_problem *problem) {
  if (problem->patches) return "patches of images";
  if (problem->a_rounds || problem->b_rounds) return "rounds one operand alone";
  const mix_gemm_storage *storage = mix_gemm_storage_of(engine, dtype);
  const bool transposed = mix_gemm_prefers_transposed(problem);
  const mix_gemm_problem p = transposed ? mix_gemm_transposed(problem) : *problem;
  if (!storage->small_m) return "no such kernels";
  if (p.transpose_b) return "B stored along k";
  if (p.m > MAX_ROWS) return "many rows";
  const bool large = p.k * p.n * (int64_t)mix_dtype_size(dtype) > MIN_BYTES ||
                     (p.m == 1 && p.n <= engine->small_m_row) ||
                     (problem->fixed_b && !transposed && p.m <= FEWEST_ROWS);
  return transposed || large ? NULL : "a small B";
}

static void small_m_complete_plan(mix_gemm_plan *plan) {
  mix_small_m_plan *own = mix_small_m_plan_in(plan);
  if (mix_gemm_prefers_transposed(&plan->problem)) mix_gemm_compute_transposed(plan);
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t element = (int64_t)engine->element_size, sum = (int64_t)engine->sum_size,
                lanes = engine->lanes;
  const int64_t stored = mix_gemm_stored_size(plan->storage);
  const int64_t columns = smaller(p->n, round_up(divide_up(p->n, plan->threads), engine->nr));
  plan->grid_rows = 1, plan->grid_columns = plan->threads;
  plan->kc = smaller(p->k, engine->kc);
  /* The hardware prefetches a row of B by itself. While several rows of A use it, software must help, except
   * where B is small or of 16 bits. */
  own->prefetch_b = p->m > 1 && element == stored && p->k * p->n * stored > mix_cpu_cache(2);
  plan->mc = p->m, plan->nc = even_block(columns, MAX_COLUMNS, engine->nr);
  own->a_stride = round_up(plan->kc, lanes) + lanes;
  own->a_bytes = (size_t)whole_lines(p->m * own->a_stride * element);
  own->sums_stride = round_up(plan->nc, engine->nr) + lanes;
  own->sums_bytes = (size_t)whole_lines(p->m * own->sums_stride * sum);
  own->spare_bytes = p->k > plan->kc ? own->sums_bytes : 0; /* a later block of k */
  const int64_t widened = p->transpose_a ? plan->kc * round_up(p->m, lanes) * element : 0;
  const int64_t transposed = plan->compute_transposed ? p->m * engine->nr * sum : 0;
  own->transpose_bytes = (size_t)whole_lines(widened > transposed ? widened : transposed);
}

static mix_gemm_workspace small_m_workspace(const mix_gemm_plan *plan) {
  const mix_small_m_plan *own = mix_small_m_plan_of(plan);
  return (mix_gemm_workspace){.thread =
                                  own->a_bytes + own->spare_bytes + own->sums_bytes + own->transpose_bytes};
}

/* A thread's product and the parts of its workspace. */
typedef struct run_state {
  const mix_gemm_plan *plan;
  const mix_small_m_plan *own;
  const mix_gemm_operands *operands;
  char *rows, *spare, *sums, *transposed;
} run_state;

/* Widens A for k in [k, k + depth); each row along k. */
static void widen_rows(const run_state *s, int64_t k, int64_t depth) {
  const mix_gemm_plan *plan = s->plan;
  const mix_gemm_problem *p = &plan->problem;
  const mix_gemm_view *view = &s->operands->a;
  const void *a = mix_gemm_view_at(view, 0, k);
  void (*widen)(const void *, int64_t, int, int64_t, void *, int64_t) = plan->storage->pack_a[p->transpose_a];
  if (!p->transpose_a) {
    widen(a, view->stride, (int)p->m, depth, s->rows, s->own->a_stride);
    return;
  }
  const int64_t stride = round_up(p->m, plan->engine->lanes);
  widen(a, view->stride, (int)p->m, depth, s->transposed, stride);
  mix_gemm_transpose(s->transposed, stride, depth, p->m, s->rows, s->own->a_stride,
                     plan->engine->element_size);
}

/* Columns [column, column + columns): each block of k is summed from zero and added to the blocks before. */
static void multiply_columns(const run_state *s, int64_t column, int64_t columns) {
  const mix_gemm_plan *plan = s->plan;
  const mix_gemm_problem *p = &plan->problem;
  const mix_gemm_view *b = &s->operands->b;
  if (p->k == 0) memset(s->sums, 0, s->own->sums_bytes);
  for (int64_t k = 0, depth; k < p->k; k += depth) {
    depth = mix_gemm_next_depth(plan, p->k - k);
    widen_rows(s, k, depth);
    plan->storage->small_m(p->m, depth, s->rows, s->own->a_stride, mix_gemm_view_at(b, k, column), b->stride,
                           columns, s->own->prefetch_b, s->sums, s->own->sums_stride,
                           k == 0 ? NULL : s->spare);
  }
  if (plan->compute_transposed)
    mix_gemm_store_transposed(plan, s->operands, s->sums, s->own->sums_stride, s->transposed, 0, p->m, column,
                              columns);
  else
    mix_gemm_store_result(plan, s->operands, s->sums, s->own->sums_stride, 0, p->m, column, columns, false);
}

static void small_m_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                        void *shared, void *workspace) {
  run_state s = {.plan = plan, .own = mix_small_m_plan_of(plan), .operands = operands, .rows = workspace};
  s.spare = s.rows + s.own->a_bytes, s.sums = s.spare + s.own->spare_bytes,
  s.transposed = s.sums + s.own->sums_bytes;
  int64_t begin, end;
  mix_gemm_share(plan->problem.n, plan->engine->nr, team->rank, plan->threads, &begin, &end);
  if (plan->problem.m == 0) return;
  for (int64_t column = begin; column < end; column += plan->nc)
    multiply_columns(&s, column, smaller(plan->nc, end - column));
}

const mix_gemm_algorithm mix_gemm_small_m = {.name = "small_m",
                                             .unsupported_reason = small_m_unsupported_reason,
                                             .plan = small_m_complete_plan,
                                             .workspace = small_m_workspace,
                                             .run = small_m_run};
