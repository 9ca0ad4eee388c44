/* Plans of products: what is read in place, the blocks, the share of each thread. Thresholds were measured
 * with bench/gemm.c on an Emerald Rapids. Choices that change the order of sums (small_n, compute_transposed,
 * kc) depend on shape, dtypes and engine alone. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/simd/vector_functions.h"

enum {
  /* ---- small_n ---- */
  /* Deeper products may be summed along vectors of k, in another order than TensorFlow's
   * (mix_gemm_next_depth). */
  SMALL_N_DEPTH = 1024,
  /* A part of the narrow operand takes at most this share of the second-level cache, */
  SMALL_N_CACHE_SHARE = 4,
  /* and so many rows use it before the next part. */
  SMALL_N_BLOCK_ROWS = 512,
  /* oneDNN's AVX-512 sgemm sums NT products of so many rows along vectors. */
  FEW_SMALL_N_ROWS = 2,
  MAX_SMALL_N_ROWS = 15,
  /* 16-bit NT products of few rows are summed so from this k for each row. */
  DEPTH_OF_SMALL_N_ROW = 16,

  /* ---- small_m ---- */
  /* At most so many rows, B of more bytes than these. */
  SMALL_M_ROWS = 16,
  SMALL_M_BYTES = 256 << 10,
  /* Columns of a block: a row of B is then a page or so, and sums of few rows stay in the first-level
   * cache. */
  SMALL_M_COLUMNS = 1024,

  /* ---- compute_transposed ---- */
  /* Deep TN products of at most so many columns read A along its rows, a few rows at a time, so that memory
   * is read once: 1.5 to 3.5 times as fast. */
  TRANSPOSED_COLUMNS = 64,
  TRANSPOSED_DEPTH = 32,
  TRANSPOSED_DEPTH_NARROW = 16, /* where the columns fit one tile's rows */

  /* ---- the grid ---- */
  /* A packed row or column costs as much as so many elements of C. */
  PACKING = 16,
  /* Deeper gradients of kernels are bound by multiplications, not by where weights lie. */
  WHOLE_ROWS_DEPTH = 1024,

  /* ---- operands in place ---- */
  /* Transposed A is packed where more columns use it. */
  IN_PLACE_COLUMNS = 160,
  /* B is packed where more rows use it, except with short rows; fewer than FEWEST_ROWS never repay
   * packing. */
  IN_PLACE_ROWS = 14,
  FEWEST_ROWS = 3,
  IN_PLACE_STRIDE = 512, /* bytes */
  /* 16-bit B is widened by the micro-kernels where at most so many panels of rows use it. */
  WIDENED_PANELS = 2,
  /* Columns of a block of B in place: bounds the sums in the workspace. */
  IN_PLACE_WIDTH = 4096,
  /* Rows this many bytes apart share a set of the first-level cache. */
  CACHE_ALIAS = 4096,

  /* ---- blocks ---- */
  /* A block of B that few rows use leaves half of the cache to its source. */
  FEW_ROWS = 256,
  FEW_ROWS_COLUMNS = 512,
  /* Rows or columns, about, of a stolen tile. */
  STEAL_SIZE = 256,
  /* Transposed A is packed in strips of so many bytes, so that its rows are long enough for whole vectors, */
  STRIP_BYTES = 32 << 10,
  /* or, where one panel takes that much, in so many panels at a time, which use whole lines of memory. */
  STRIDED_PANELS = 8,
  /* Tiles that write C past the caches: at most so deep (deeper products are not bound by stores), and more
   * bytes. */
  STREAM_DEPTH = 64,
  STREAM_BYTES = 16 << 20,
};

/* Parts of rows are chosen for the gradient of a kernel where they cost less than this fraction of whole
 * rows. */
#define FEWER_COLUMNS 0.98

/* C^T = op(B)^T op(A)^T. */
static mix_gemm_problem transposed(const mix_gemm_problem *p) {
  mix_gemm_problem result = *p;
  result.m = p->n, result.n = p->m;
  result.transpose_a = !p->transpose_b, result.transpose_b = !p->transpose_a;
  result.lda = p->ldb, result.ldb = p->lda;
  return result;
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

/* The narrow operand is widened in parts along k that stay in the second-level cache. So the workspace does
 * not grow with k. */
static void plan_small_n(mix_gemm_plan *plan) {
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t element = (int64_t)engine->element_size, sum = (int64_t)engine->sum_size,
                columns = p->n > 0 ? p->n : 1;
  const int64_t fits = mix_cpu_cache(2) / SMALL_N_CACHE_SHARE / (columns * element) / MIX_GEMM_SMALL_N_ROWS *
                       MIX_GEMM_SMALL_N_ROWS;
  plan->grid_rows = plan->threads, plan->grid_columns = 1;
  plan->a_in_place = true;
  plan->kc = smaller(p->k, fits > SMALL_N_DEPTH ? fits : SMALL_N_DEPTH);
  const bool parts = plan->kc < p->k;
  plan->mc = parts ? SMALL_N_BLOCK_ROWS : MIX_GEMM_SMALL_N_ROWS;
  plan->a_bytes = parts ? whole_lines(plan->mc * columns * engine->lanes * sum)
                        : 0; /* sums of lanes, from part to part */
  plan->a_stride = round_up(plan->kc, engine->lanes) + engine->lanes;
  plan->b_bytes = (size_t)whole_lines(columns * plan->a_stride * element);
  plan->c_bytes = (size_t)whole_lines(MIX_GEMM_SMALL_N_ROWS * MIX_GEMM_SMALL_N_STRIDE * sum);
  const int widest = engine->nr > engine->small_n_columns ? engine->nr : engine->small_n_columns;
  plan->transpose_bytes = (size_t)whole_lines(MIX_GEMM_SMALL_N_ROWS * widest * sum);
}

static bool is_small_m(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  if (plan->small_n || p->transpose_b || p->m > SMALL_M_ROWS || !plan->storage->small_m) return false;
  return plan->compute_transposed ||
         p->k * p->n * (int64_t)mix_dtype_size(plan->storage->dtype) > SMALL_M_BYTES;
}

static void plan_small_m(mix_gemm_plan *plan) {
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t element = (int64_t)engine->element_size, sum = (int64_t)engine->sum_size,
                lanes = engine->lanes;
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype);
  const int64_t columns = smaller(p->n, round_up(divide_up(p->n, plan->threads), engine->nr));
  plan->grid_rows = 1, plan->grid_columns = plan->threads;
  plan->kc = smaller(p->k, engine->kc);
  /* The hardware prefetches a row of B by itself. While several rows of A use it, software must help, except
   * where B is small or of 16 bits. */
  plan->prefetch_b = p->m > 1 && element == stored && p->k * p->n * stored > mix_cpu_cache(2);
  plan->mc = p->m, plan->nc = even_block(columns, SMALL_M_COLUMNS, engine->nr);
  plan->a_stride = round_up(plan->kc, lanes) + lanes;
  plan->a_bytes = (size_t)whole_lines(p->m * plan->a_stride * element);
  plan->c_stride = round_up(plan->nc, engine->nr) + lanes;
  plan->c_bytes = (size_t)whole_lines(p->m * plan->c_stride * sum);
  plan->b_bytes = p->k > plan->kc ? plan->c_bytes : 0; /* a later block of k */
  const int64_t widened = p->transpose_a ? plan->kc * round_up(p->m, lanes) * element : 0;
  const int64_t transposed = plan->compute_transposed ? p->m * engine->nr * sum : 0;
  plan->transpose_bytes = (size_t)whole_lines(widened > transposed ? widened : transposed);
}

/* Is C written past the caches, in whole lines? By the tiles themselves only for a large C of few terms: the
 * fastest micro-kernel does not stream. */
static bool streams(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  const int64_t size = (int64_t)mix_dtype_size(plan->result), bytes = p->m * p->n * size;
  if (p->epilogue || plan->compute_transposed || p->ldc * size % 64) return false;
  return plan->c_in_place ? p->k <= STREAM_DEPTH && bytes > STREAM_BYTES
                          : size == 2 && mix_exceeds_caches(bytes);
}

static void plan_blocks(mix_gemm_plan *plan) {
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t element = (int64_t)engine->element_size, sum = (int64_t)engine->sum_size;
  const int64_t max_depth = !plan->compute_transposed         ? engine->kc
                            : p->m <= TRANSPOSED_DEPTH_NARROW ? TRANSPOSED_DEPTH_NARROW
                                                              : TRANSPOSED_DEPTH;
  const int64_t k_blocks = p->k > max_depth ? divide_up(p->k, max_depth) : 1;
  plan->kc = !p->k                      ? 1
             : plan->compute_transposed ? smaller(p->k, round_up(divide_up(p->k, k_blocks), 8))
                                        : smaller(p->k, max_depth);

  mix_gemm_choose_grid(plan, 1, engine->nr);
  const int64_t rows = smaller(p->m, divide_up(p->m, plan->grid_rows) + 2);
  const int64_t columns = smaller(p->n, round_up(divide_up(p->n, plan->grid_columns), engine->nr));
  const bool aliased = p->lda * element % CACHE_ALIAS == 0;
  plan->a_transposed = !p->transpose_a && !plan->compute_transposed && columns > IN_PLACE_COLUMNS &&
                       plan->storage->pack_a_transposed;
  plan->a_in_place = plan->storage->in_place &&
                     (p->transpose_a ? columns <= IN_PLACE_COLUMNS : !aliased && !plan->a_transposed);
  /* Tiles read a line or two of each row of B at a time; from memory it is faster to pack whole rows. */
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype);
  const bool cached = p->k * p->n * stored <= mix_cpu_cache(2),
             vectors = engine->ragged_in_place || p->n % engine->lanes == 0;
  plan->b_in_place = plan->storage->in_place && !p->transpose_b && vectors &&
                     (plan->compute_transposed || rows < FEWEST_ROWS || (rows <= IN_PLACE_ROWS && cached) ||
                      p->ldb * element <= IN_PLACE_STRIDE);
  plan->b_widened = plan->storage->micro && !p->transpose_a && !p->transpose_b && !plan->compute_transposed &&
                    vectors && cached && rows <= WIDENED_PANELS * engine->mr;
  plan->b_in_place = plan->b_in_place || plan->b_widened;
  if (plan->b_widened) plan->a_transposed = false;
  plan->prefetch_b = plan->compute_transposed && plan->b_in_place;
  plan->prefetch_a_source =
      plan->a_transposed || (p->transpose_a && !plan->a_in_place && p->lda * stored % CACHE_ALIAS);
  plan->c_in_place =
      !p->epilogue && !plan->compute_transposed && engine->sum_size == mix_dtype_size(plan->result);
  plan->stream = streams(plan);

  const int64_t fits = mix_cpu_cache(2) * 3 / 4 / (plan->kc * element) / engine->nr * engine->nr;
  plan->mc = smaller(engine->mc, rows);
  plan->nc = smaller(columns, plan->b_in_place || plan->compute_transposed ? IN_PLACE_WIDTH
                              : fits < engine->nr                          ? engine->nr
                                                                           : fits);
  if (!plan->compute_transposed && !plan->b_in_place)
    plan->nc = smaller(plan->nc, rows <= FEW_ROWS ? FEW_ROWS_COLUMNS : engine->nc);
  const mix_gemm_extent down = {.count = p->m, .unit = 1, .grain = 2, .max = plan->mc, .min = STEAL_SIZE};
  const mix_gemm_extent right = {
      .count = p->n, .unit = 1, .grain = engine->nr, .max = plan->nc, .min = STEAL_SIZE};
  mix_gemm_cut(plan, down, right, rows < 2 * STEAL_SIZE);
  plan->mc = plan->tiles.rows.max, plan->nc = plan->tiles.columns.max;

  const bool along_rows = p->transpose_a || plan->a_transposed;
  const int64_t panels = STRIP_BYTES / (plan->kc * engine->mr * element);
  const bool strided = p->transpose_a && panels <= 1;
  const int64_t max_panels = strided ? STRIDED_PANELS : p->transpose_a ? panels : 1;
  plan->a_panels = (int)smaller(max_panels, divide_up(plan->mc, engine->mr));
  plan->a_stride = along_rows ? round_up((strided ? 1 : plan->a_panels) * engine->mr, engine->lanes)
                              : round_up(plan->kc, engine->lanes) + engine->lanes;
  if (strided) plan->a_panel_stride = plan->kc * plan->a_stride;
  const int64_t packed =
      strided ? plan->a_panels * plan->a_panel_stride : (along_rows ? plan->kc : engine->mr) * plan->a_stride;
  plan->a_bytes = plan->a_in_place ? 0 : whole_lines(packed * element);
  plan->b_bytes = plan->b_in_place ? 0 : whole_lines(plan->kc * round_up(plan->nc, engine->nr) * element);
  if (!plan->c_in_place) {
    const int64_t sums_rows =
        k_blocks > 1 || plan->compute_transposed ? plan->mc : smaller(engine->mr, plan->mc);
    plan->c_stride = round_up(plan->nc, engine->nr) + engine->lanes; /* off a power of two */
    plan->c_bytes = (size_t)whole_lines(sums_rows * plan->c_stride * sum);
  }
  if (plan->compute_transposed) plan->transpose_bytes = (size_t)whole_lines(p->m * engine->nr * sum);
}

const mix_gemm_storage *mix_gemm_storage_of(const mix_gemm_engine *engine, mix_dtype dtype) {
  const mix_gemm_storage *storage = engine->storages;
  while (storage->dtype != MIX_DTYPE_NONE && storage->dtype != dtype) storage++;
  return storage;
}

/* NT products of few rows: sums along vectors of k, which need no packing of B. float32 in oneDNN's order, 16
 * bits where it is fastest. */
static bool small_n_few_rows(const mix_gemm_engine *engine, const mix_gemm_storage *storage,
                             const mix_gemm_problem *p) {
  if (p->transpose_a || !p->transpose_b || p->k <= 0 || p->k > SMALL_N_DEPTH || !storage->small_n[0])
    return false;
  if (storage->dtype == MIX_FLOAT32 && p->rounded == MIX_DTYPE_NONE)
    return engine->lanes == 16 && p->m >= FEW_SMALL_N_ROWS && p->m <= MAX_SMALL_N_ROWS;
  return storage->dtype != MIX_FLOAT64 && p->m <= engine->small_n_columns &&
         p->k >= DEPTH_OF_SMALL_N_ROW * p->m;
}

void mix_gemm_make_plan(const mix_gemm_engine *engine, const mix_gemm_storage *storage,
                        const mix_gemm_problem *problem, int threads, mix_gemm_plan *plan) {
  *plan = (mix_gemm_plan){.engine = engine, .storage = storage, .problem = *problem, .threads = threads};
  plan->result = problem->rounded == MIX_DTYPE_NONE ? storage->dtype : problem->rounded;
  if (engine->make_plan) {
    engine->make_plan(plan);
    plan->stream = streams(plan);
    return;
  }
  if (small_n_few_rows(engine, storage, problem)) {
    plan->small_n = plan->compute_transposed = true;
  } else if (storage->small_n[0] && problem->k > SMALL_N_DEPTH) {
    plan->small_n = true;
    if (problem->n <= engine->small_n_columns && !problem->transpose_a)
      plan->compute_transposed = false;
    else if (problem->m <= engine->small_n_columns && problem->transpose_b)
      plan->compute_transposed = true;
    else
      plan->small_n = false;
  }
  if (!plan->small_n)
    plan->compute_transposed = problem->transpose_a && problem->n <= TRANSPOSED_COLUMNS &&
                               problem->k > SMALL_N_DEPTH && problem->m > problem->n;
  if (plan->compute_transposed) plan->problem = transposed(problem);
  plan->small_m = is_small_m(plan);
  if (plan->small_n)
    plan_small_n(plan);
  else if (plan->small_m)
    plan_small_m(plan);
  else
    plan_blocks(plan);
  plan->thread_bytes = plan->a_bytes + plan->b_bytes + plan->c_bytes + plan->transpose_bytes;
}
