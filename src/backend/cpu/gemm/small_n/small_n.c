/* Products with few columns. Each row of A, the wide operand, is read once, in place, along k; the columns of
 * B are widened and packed as rows. A deep product takes one part of k at a time; the sums of each lane stay
 * in the workspace between parts, so that the bits are those of a single part. */
#include "backend/cpu/gemm/small_n/plan.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include <string.h>

enum {
  /* A part of the narrow operand takes at most this share of the second-level cache, */
  CACHE_SHARE = 4,
  /* and so many rows use it before the next part. */
  BLOCK_ROWS = 512,
  /* oneDNN's AVX-512 sgemm sums NT products of so many rows along vectors. */
  MIN_ROWS = 2,
  MAX_ROWS = 15,
  /* 16-bit NT products of few rows are summed so from this k for each row. */
  DEPTH_OF_ROW = 16,
};

/* NT products of few rows: sums along vectors of k, which need no packing of B. float32 in oneDNN's order, 16
 * bits where it is fastest. */
static bool is_few_rows(const mix_gemm_engine *engine, const mix_gemm_storage *storage,
                        const mix_gemm_problem *p) {
  if (p->transpose_a || !p->transpose_b || p->k <= 0 || p->k > MIX_GEMM_ORDERED_DEPTH || !storage->small_n[0])
    return false;
  if (storage->dtype == MIX_FLOAT32 && p->rounded == MIX_DTYPE_NONE)
    return engine->lanes == 16 && p->m >= MIN_ROWS && p->m <= MAX_ROWS;
  return storage->dtype != MIX_FLOAT64 && p->m <= engine->small_n_columns && p->k >= DEPTH_OF_ROW * p->m;
}

/* Is the product summed along vectors of k; is its transpose computed? Deeper products than
 * MIX_GEMM_ORDERED_DEPTH may be summed in another order than TensorFlow's. */
static bool small_n_accepts(const mix_gemm_engine *engine, const mix_gemm_storage *storage,
                            const mix_gemm_problem *p, bool *transposed) {
  *transposed = true;
  if (is_few_rows(engine, storage, p)) return true;
  if (!storage->small_n[0] || p->k <= MIX_GEMM_ORDERED_DEPTH) return false;
  *transposed = p->n > engine->small_n_columns || p->transpose_a;
  return !*transposed || (p->m <= engine->small_n_columns && p->transpose_b);
}

static const char *small_n_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                              const mix_gemm_problem *problem) {
  if (problem->patches) return "patches of images";
  if (problem->a_rounds || problem->b_rounds) return "rounds one operand alone";
  bool transposed;
  return small_n_accepts(engine, mix_gemm_storage_of(engine, dtype), problem, &transposed)
             ? NULL
             : "many columns, or not stored along k";
}

/* The narrow operand is widened in parts along k that stay in the second-level cache. So the workspace does
 * not grow with k. */
static void small_n_complete_plan(mix_gemm_plan *plan) {
  mix_small_n_plan *own = mix_small_n_plan_in(plan);
  const mix_gemm_engine *engine = plan->engine;
  bool transposed;
  if (small_n_accepts(engine, plan->storage, &plan->problem, &transposed) && transposed)
    mix_gemm_compute_transposed(plan);
  const mix_gemm_problem *p = &plan->problem;
  const int64_t element = (int64_t)engine->element_size, sum = (int64_t)engine->sum_size,
                columns = p->n > 0 ? p->n : 1;
  const int64_t fits =
      mix_cpu_cache(2) / CACHE_SHARE / (columns * element) / MIX_GEMM_SMALL_N_ROWS * MIX_GEMM_SMALL_N_ROWS;
  plan->grid_rows = plan->threads, plan->grid_columns = 1;
  plan->kc = smaller(p->k, fits > MIX_GEMM_ORDERED_DEPTH ? fits : MIX_GEMM_ORDERED_DEPTH);
  const bool parts = plan->kc < p->k;
  plan->mc = parts ? BLOCK_ROWS : MIX_GEMM_SMALL_N_ROWS;
  own->lanes_bytes = parts ? whole_lines(plan->mc * columns * engine->lanes * sum)
                           : 0; /* sums of lanes, from part to part */
  own->stride = round_up(plan->kc, engine->lanes) + engine->lanes;
  own->narrow_bytes = (size_t)whole_lines(columns * own->stride * element);
  own->sums_bytes = (size_t)whole_lines(MIX_GEMM_SMALL_N_ROWS * MIX_GEMM_SMALL_N_STRIDE * sum);
  const int widest = engine->nr > engine->small_n_columns ? engine->nr : engine->small_n_columns;
  own->transpose_bytes = (size_t)whole_lines(MIX_GEMM_SMALL_N_ROWS * widest * sum);
}

static mix_gemm_workspace small_n_workspace(const mix_gemm_plan *plan) {
  const mix_small_n_plan *own = mix_small_n_plan_of(plan);
  return (mix_gemm_workspace){.thread = own->lanes_bytes + own->narrow_bytes + own->sums_bytes +
                                        own->transpose_bytes};
}

/* A thread's product and the parts of its workspace. */
typedef struct run_state {
  const mix_gemm_plan *plan;
  const mix_small_n_plan *own;
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
  const mix_gemm_view *b = &s->operands->b;
  if (p->transpose_b || (p->n == 1 && b->stride == 1)) { /* a single column is stored along k too */
    plan->storage->pack_a[MIX_GEMM_ALONG_K](mix_gemm_view_at(b, s->k, 0), b->stride, (int)p->n, s->depth,
                                            s->narrow, s->own->stride);
    return;
  }
  const int64_t whole = s->depth / lanes * lanes;
  for (int64_t j = 0; j < p->n && whole < s->depth; j++)
    memset(s->narrow + (j * s->own->stride + whole) * element, 0, (size_t)(lanes * element));
  for (int64_t k = 0; k < s->depth; k += MIX_GEMM_SMALL_N_ROWS)
    for (int64_t j = 0; j < p->n; j += width) {
      const int64_t depth = smaller(MIX_GEMM_SMALL_N_ROWS, s->depth - k), columns = smaller(width, p->n - j);
      plan->storage->pack_b[0](mix_gemm_view_at(b, s->k + k, j), b->stride, depth, columns, s->transposed, 0);
      mix_gemm_transpose(s->transposed, width, depth, columns, s->narrow + (j * s->own->stride + k) * element,
                         s->own->stride, (size_t)element);
    }
}

/* The part of k for rows [row, row + rows), at most MIX_GEMM_SMALL_N_ROWS, with their sums at `lanes`; stored
 * after the last part. */
static void multiply(const run_state *s, int64_t row, int64_t rows, char *lanes) {
  const mix_gemm_plan *plan = s->plan;
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t sum = (int64_t)engine->sum_size;
  const bool first = s->k == 0, last = s->k + s->depth == p->k;
  const mix_gemm_view *a = &s->operands->a;
  for (int64_t i = 0, count; i < rows; i += count) {
    const bool one = i + engine->small_n_rows > rows;
    count = one ? 1 : engine->small_n_rows;
    plan->storage->small_n[one](s->depth, mix_gemm_view_at(a, row + i, s->k), a->stride, s->narrow,
                                s->own->stride, (int)p->n, lanes + i * p->n * engine->lanes * sum, first,
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

static void small_n_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                        void *shared, void *workspace) {
  const mix_gemm_problem *p = &plan->problem;
  const int64_t lanes_of_row = p->n * plan->engine->lanes * (int64_t)plan->engine->sum_size;
  const bool parts = plan->kc < p->k;
  run_state s = {.plan = plan, .own = mix_small_n_plan_of(plan), .operands = operands, .lanes = workspace};
  s.narrow = s.lanes + s.own->lanes_bytes, s.sums = s.narrow + s.own->narrow_bytes,
  s.transposed = s.sums + s.own->sums_bytes;
  int64_t begin, end;
  mix_gemm_share(p->m, 2, team->rank, plan->threads, &begin, &end);
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

const mix_gemm_algorithm mix_gemm_small_n = {.name = "small_n",
                                             .sums_in_lanes = true,
                                             .unsupported_reason = small_n_unsupported_reason,
                                             .plan = small_n_complete_plan,
                                             .workspace = small_n_workspace,
                                             .run = small_n_run};
