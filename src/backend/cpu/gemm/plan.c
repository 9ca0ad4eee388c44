/* Plans of products: which algorithm does a product, and what they share. Thresholds were measured with
 * bench/gemm.c on an Emerald Rapids. Choices that change the order of sums (the algorithm,
 * compute_transposed, kc) depend on shape, dtypes and engine alone. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/simd/vector_functions.h"
#include "base/machine.h"

enum {
  TRANSPOSED_COLUMNS = 64,
  /* A packed row or column costs as much as so many elements of C. */
  PACKING = 16,
  /* Deeper gradients of kernels are bound by multiplications, not by where weights lie. */
  WHOLE_ROWS_DEPTH = 1024,
};

/* Parts of rows are chosen for the gradient of a kernel where they cost less than this fraction of whole
 * rows. */
#define FEWER_COLUMNS 0.98

mix_gemm_problem mix_gemm_transposed(const mix_gemm_problem *p) {
  mix_gemm_problem result = *p;
  result.m = p->n, result.n = p->m;
  result.transpose_a = !p->transpose_b, result.transpose_b = !p->transpose_a;
  result.lda = p->ldb, result.ldb = p->lda;
  result.a_rounds = p->b_rounds, result.b_rounds = p->a_rounds;
  return result;
}

bool mix_gemm_prefers_transposed(const mix_gemm_problem *p) {
  return !p->patches && p->transpose_a && p->n <= TRANSPOSED_COLUMNS && p->k > MIX_GEMM_ORDERED_DEPTH &&
         p->m > p->n;
}

void mix_gemm_compute_transposed(mix_gemm_plan *plan) {
  plan->compute_transposed = true;
  plan->problem = mix_gemm_transposed(&plan->problem);
}

void mix_gemm_choose_grid(mix_gemm_plan *plan, int64_t row_unit, int64_t column_unit) {
  const mix_gemm_problem *p = &plan->problem;
  const bool whole_rows =
      p->transpose_a && !p->transpose_b && !plan->compute_transposed && p->k <= WHOLE_ROWS_DEPTH;
  double best = -1;
  for (int i = 1; i <= plan->threads; i++) {
    if (plan->threads % i) continue;
    const int rows = whole_rows ? plan->threads / i : i, columns = plan->threads / rows;
    const int64_t m = smaller(p->m, round_up(divide_up(p->m, rows), row_unit));
    const int64_t n = smaller(p->n, round_up(divide_up(p->n, columns), column_unit));
    const double cost = (double)m * (double)n + PACKING * (double)(m + n);
    if (best < 0 || cost < (whole_rows ? FEWER_COLUMNS * best : best))
      best = cost, plan->grid_rows = rows, plan->grid_columns = columns;
  }
}

bool mix_gemm_may_stream(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  return !p->epilogue && !p->scattered && p->ldc == p->n && !plan->compute_transposed &&
         p->ldc * (int64_t)mix_dtype_size(plan->result) % 64 == 0;
}

bool mix_gemm_streams_result(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  const int64_t size = (int64_t)mix_dtype_size(plan->result);
  return mix_gemm_may_stream(plan) && size == 2 && mix_exceeds_caches(p->m * p->n * size);
}

static const mix_gemm_storage *find_storage(const mix_gemm_engine *engine, mix_dtype dtype, bool rounds) {
  const mix_gemm_storage *storage = engine->storages;
  while (storage->dtype != MIX_DTYPE_NONE && (storage->dtype != dtype || storage->rounds != rounds))
    storage++;
  return storage;
}
const mix_gemm_storage *mix_gemm_storage_of(const mix_gemm_engine *engine, mix_dtype dtype) {
  return find_storage(engine, dtype, false);
}
const mix_gemm_storage *mix_gemm_rounding_storage_of(const mix_gemm_engine *engine, mix_dtype dtype) {
  return find_storage(engine, dtype, true);
}

/* The first algorithm that accepts the product, or else the last one, and why it does not. */
static const mix_gemm_algorithm *choose_algorithm(const mix_gemm_engine *engine, mix_dtype dtype,
                                                  const mix_gemm_problem *problem, const char **reason) {
  const mix_gemm_algorithm *const *algorithm = engine->algorithms;
  while ((*reason = (*algorithm)->unsupported_reason(engine, dtype, problem)) && algorithm[1]) algorithm++;
  return *algorithm;
}

const char *mix_gemm_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                        const mix_gemm_problem *problem) {
  const char *reason;
  choose_algorithm(engine, dtype, problem, &reason);
  return reason;
}

void mix_gemm_make_plan(const mix_gemm_engine *engine, const mix_gemm_storage *storage,
                        const mix_gemm_problem *problem, int threads, mix_gemm_plan *plan) {
  const char *reason;
  *plan = (mix_gemm_plan){.engine = engine,
                          .storage = storage,
                          .vector = mix_vector_current(),
                          .problem = *problem,
                          .threads = threads};
  plan->algorithm = choose_algorithm(engine, storage->dtype, problem, &reason);
  plan->result = problem->rounded == MIX_DTYPE_NONE ? storage->dtype : problem->rounded;
  plan->algorithm->plan(plan);
  plan->workspace = plan->algorithm->workspace(plan);
}

void mix_gemm_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                  void *shared, void *own) {
  plan->algorithm->run(plan, operands, team, shared, own);
  if (plan->stream) mix_end_streams();
}
