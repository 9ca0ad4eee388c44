/* How a product is done: what is read in place, the blocks, the share of each thread. Thresholds were
 * measured with bench/gemm.c on an Emerald Rapids; what changes the order of sums (small_n,
 * compute_transposed, kc) depends on shape, dtypes and engine alone. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/sizes.h"
#include "backend/cpu/simd/vector_functions.h"

enum {
  SMALL_N_DEPTH = 1024,     /* deeper products may be summed in another order than TensorFlow's
                               (mix_gemm_next_depth): along vectors of k, */
  SMALL_N_CACHE_SHARE = 4,  /* of the second-level cache for a tile of the narrow operand */
  SMALL_N_PIECE_ROWS = 512, /* that use it before the next one */
  SMALL_M_ROWS = 16, /* at most, with B of more bytes than these: B is read in place, along its rows, once. In
                        blocks of so many */
  SMALL_M_BYTES = 256 << 10,
  SMALL_M_COLUMNS = 1024, /* columns: pages of memory; sums of few rows stay in the first-level cache */
  SWAP_COLUMNS = 64,      /* or, TN with at most so many columns, transposed, reading A along its rows, */
  SWAP_DEPTH = 32, /* few rows at a time, so that it is read once from memory: 1.5 to 3.5 times as fast */
  SWAP_DEPTH_NARROW = 16, /* where the columns fill one tile's height at most */
  PACKING = 16,           /* a row or column packed costs as much as so many elements of C */
  WHOLE_ROWS_DEPTH =
      1024, /* deeper gradients of kernels are bound by their multiplications, not by where weights lie */
  FEW_SMALL_N_ROWS = 2,      /* oneDNN's AVX-512 sgemm sums NT of so many rows along vectors, */
  MAX_SMALL_N_ROWS = 15,     /* up to so many */
  DEPTH_OF_SMALL_N_ROW = 16, /* 16 bits sum so where each row is worth so many products of a sum */
  IN_PLACE_COLUMNS = 160,    /* transposed A is packed where more columns than these use it */
  IN_PLACE_ROWS = 14,        /* B is packed where more rows than these use it, but for short rows: */
  FEWEST_ROWS = 3,           /* which never repay packing */
  IN_PLACE_STRIDE = 512,     /* bytes */
  WIDENED_PANELS = 2, /* B in 16 bits is widened by the micro-kernels where no more panels of rows use it */
  IN_PLACE_WIDTH = 4096, /* columns of a block of B in place: bounds the sums kept in the workspace */
  CACHE_ALIAS = 4096,    /* rows this far apart share a set of the first-level cache */
  FEW_ROWS = 256,        /* a block of B that few rows use leaves half of the cache to its source */
  FEW_ROWS_COLUMNS = 512,
  CLAIMED = 256,          /* rows or columns, about, that threads take from each other */
  STRIP_BYTES = 32 << 10, /* transposed A is packed in strips of so many bytes: rows of it are long enough for
                             whole vectors; */
  STRIDED_PANELS = 8, /* deep panels not side by side: so many at a time, which take whole lines of memory */
  STREAM_DEPTH = 64,  /* deeper products whose tiles write C are not bound by that, */
  STREAM_BYTES = 16 << 20, /* nor are smaller results */
};

/* Of the cost of whole rows: what parts of rows may cost at most, to be chosen for the gradient of a kernel.
 */
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

/* The narrow operand is widened in tiles along k that stay in the second-level cache, and need no more memory
 * however deep it is. */
static void plan_small_n(mix_gemm_plan *plan) {
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t element = (int64_t)engine->element, sum = (int64_t)engine->sum, columns = p->n > 0 ? p->n : 1;
  const int64_t fits = mix_cpu_cache(2) / SMALL_N_CACHE_SHARE / (columns * element) / MIX_GEMM_SMALL_N_ROWS *
                       MIX_GEMM_SMALL_N_ROWS;
  plan->grid_rows = plan->threads, plan->grid_columns = 1;
  plan->a_in_place = true;
  plan->kc = smaller(p->k, fits > SMALL_N_DEPTH ? fits : SMALL_N_DEPTH);
  const bool tiles = plan->kc < p->k;
  plan->mc = tiles ? SMALL_N_PIECE_ROWS : MIX_GEMM_SMALL_N_ROWS;
  plan->a_bytes = tiles ? whole_lines(plan->mc * columns * engine->lanes * sum)
                        : 0; /* sums of lanes, from tile to tile */
  plan->a_stride = round_up(plan->kc, engine->lanes) + engine->lanes;
  plan->b_bytes = (size_t)whole_lines(columns * plan->a_stride * element);
  plan->c_bytes = (size_t)whole_lines(MIX_GEMM_SMALL_N_ROWS * MIX_GEMM_SMALL_N_STRIDE * sum);
  const int widest = engine->columns > engine->small_n_columns ? engine->columns : engine->small_n_columns;
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
  const int64_t element = (int64_t)engine->element, sum = (int64_t)engine->sum, lanes = engine->lanes;
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype);
  const int64_t columns = smaller(p->n, round_up(divide_up(p->n, plan->threads), engine->columns));
  plan->grid_rows = 1, plan->grid_columns = plan->threads;
  plan->kc = smaller(p->k, engine->kc);
  /* The processor follows rows by itself; while several rows use one it wants help, unless B is small, by
   * bytes or where it lies. */
  plan->prefetch_b = p->m > 1 && element == stored && p->k * p->n * stored > mix_cpu_cache(2);
  plan->mc = p->m, plan->nc = even_block(columns, SMALL_M_COLUMNS, engine->columns);
  plan->a_stride = round_up(plan->kc, lanes) + lanes;
  plan->a_bytes = (size_t)whole_lines(p->m * plan->a_stride * element);
  plan->c_stride = round_up(plan->nc, engine->columns) + lanes;
  plan->c_bytes = (size_t)whole_lines(p->m * plan->c_stride * sum);
  plan->b_bytes = p->k > plan->kc ? plan->c_bytes : 0; /* a later block of k */
  const int64_t widened = p->transpose_a ? plan->kc * round_up(p->m, lanes) * element : 0;
  const int64_t transposed = plan->compute_transposed ? p->m * engine->columns * sum : 0;
  plan->transpose_bytes = (size_t)whole_lines(widened > transposed ? widened : transposed);
}

/* Is C written past the caches, in whole lines? By tiles themselves only where it is much and the product
 * shallow: their fastest form does not stream. */
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
  const int64_t element = (int64_t)engine->element, sum = (int64_t)engine->sum;
  const int64_t deepest = !plan->compute_transposed   ? engine->kc
                          : p->m <= SWAP_DEPTH_NARROW ? SWAP_DEPTH_NARROW
                                                      : SWAP_DEPTH;
  const int64_t k_blocks = p->k > deepest ? divide_up(p->k, deepest) : 1;
  plan->kc = !p->k                      ? 1
             : plan->compute_transposed ? smaller(p->k, round_up(divide_up(p->k, k_blocks), 8))
                                        : smaller(p->k, deepest);

  mix_gemm_choose_grid(plan, 1, engine->columns);
  const int64_t rows = smaller(p->m, divide_up(p->m, plan->grid_rows) + 2);
  const int64_t columns = smaller(p->n, round_up(divide_up(p->n, plan->grid_columns), engine->columns));
  const bool aliased = p->lda * element % CACHE_ALIAS == 0;
  plan->a_transposed = !p->transpose_a && !plan->compute_transposed && columns > IN_PLACE_COLUMNS &&
                       plan->storage->pack_a_transposed;
  plan->a_in_place = plan->storage->in_place &&
                     (p->transpose_a ? columns <= IN_PLACE_COLUMNS : !aliased && !plan->a_transposed);
  /* Tiles take B a line or two of each row at a time: from memory whole rows are better streamed by packing.
   */
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype);
  const bool cached = p->k * p->n * stored <= mix_cpu_cache(2),
             vectors = engine->ragged_in_place || p->n % engine->lanes == 0;
  plan->b_in_place = plan->storage->in_place && !p->transpose_b && vectors &&
                     (plan->compute_transposed || rows < FEWEST_ROWS || (rows <= IN_PLACE_ROWS && cached) ||
                      p->ldb * element <= IN_PLACE_STRIDE);
  plan->b_widened = plan->storage->micro && !p->transpose_a && !p->transpose_b && !plan->compute_transposed &&
                    vectors && cached && rows <= WIDENED_PANELS * engine->rows;
  plan->b_in_place = plan->b_in_place || plan->b_widened;
  if (plan->b_widened) plan->a_transposed = false;
  plan->prefetch_b = plan->compute_transposed && plan->b_in_place;
  plan->fetch_a =
      plan->a_transposed || (p->transpose_a && !plan->a_in_place && p->lda * stored % CACHE_ALIAS);
  plan->c_in_place = !p->epilogue && !plan->compute_transposed && engine->sum == mix_dtype_size(plan->result);
  plan->stream = streams(plan);

  const int64_t fits = mix_cpu_cache(2) * 3 / 4 / (plan->kc * element) / engine->columns * engine->columns;
  plan->mc = smaller(engine->mc, rows);
  plan->nc = smaller(columns, plan->b_in_place || plan->compute_transposed ? IN_PLACE_WIDTH
                              : fits < engine->columns                     ? engine->columns
                                                                           : fits);
  if (!plan->compute_transposed && !plan->b_in_place)
    plan->nc = smaller(plan->nc, rows <= FEW_ROWS ? FEW_ROWS_COLUMNS : engine->nc);
  const mix_gemm_extent down = {.count = p->m, .unit = 1, .grain = 2, .most = plan->mc, .least = CLAIMED};
  const mix_gemm_extent right = {
      .count = p->n, .unit = 1, .grain = engine->columns, .most = plan->nc, .least = CLAIMED};
  mix_gemm_cut(plan, down, right, rows < 2 * CLAIMED);
  plan->mc = plan->tiles.rows.most, plan->nc = plan->tiles.columns.most;

  const bool along_rows = p->transpose_a || plan->a_transposed;
  const int64_t panels = STRIP_BYTES / (plan->kc * engine->rows * element);
  const bool apart = p->transpose_a && panels <= 1;
  const int64_t most = apart ? STRIDED_PANELS : p->transpose_a ? panels : 1;
  plan->a_panels = (int)smaller(most, divide_up(plan->mc, engine->rows));
  plan->a_stride = along_rows ? round_up((apart ? 1 : plan->a_panels) * engine->rows, engine->lanes)
                              : round_up(plan->kc, engine->lanes) + engine->lanes;
  if (apart) plan->a_panel_stride = plan->kc * plan->a_stride;
  const int64_t packed =
      apart ? plan->a_panels * plan->a_panel_stride : (along_rows ? plan->kc : engine->rows) * plan->a_stride;
  plan->a_bytes = plan->a_in_place ? 0 : whole_lines(packed * element);
  plan->b_bytes =
      plan->b_in_place ? 0 : whole_lines(plan->kc * round_up(plan->nc, engine->columns) * element);
  if (!plan->c_in_place) {
    const int64_t kept =
        k_blocks > 1 || plan->compute_transposed ? plan->mc : smaller(engine->rows, plan->mc);
    plan->c_stride = round_up(plan->nc, engine->columns) + engine->lanes; /* off a power of two */
    plan->c_bytes = (size_t)whole_lines(kept * plan->c_stride * sum);
  }
  if (plan->compute_transposed) plan->transpose_bytes = (size_t)whole_lines(p->m * engine->columns * sum);
}

const mix_gemm_storage *mix_gemm_storage_of(const mix_gemm_engine *engine, mix_dtype dtype) {
  const mix_gemm_storage *storage = engine->storages;
  while (storage->dtype != MIX_DTYPE_NONE && storage->dtype != dtype) storage++;
  return storage;
}

/* NT of few rows: sums along vectors of k, which need no packing of B. Float32 has oneDNN's order, 16 bits
 * what is fastest. */
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
    plan->compute_transposed = problem->transpose_a && problem->n <= SWAP_COLUMNS &&
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
