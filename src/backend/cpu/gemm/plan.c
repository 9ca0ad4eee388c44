/* How a product is done: what is read in place, the blocks, the share of each thread. Thresholds were measured with bench/gemm.c
 * on an Emerald Rapids; what changes the order of sums (dot, swapped, depth_block) depends on shape, dtypes and engine alone. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/sizes.h"
#include "backend/cpu/vector.h"

enum {
  DOT_DEPTH =
      1024, /* deeper products may be summed in another order than TensorFlow's (mix_gemm_next_depth): along vectors of k, */
  DOT_CACHE_SHARE = 4,  /* of the second-level cache for a piece of the narrow operand */
  DOT_PIECE_ROWS = 512, /* that use it before the next one */
  SWEEP_ROWS = 16, /* at most, with B of more bytes than these: B is read in place, along its rows, once. In blocks of so many */
  SWEEP_BYTES = 256 << 10,
  SWEEP_COLUMNS = 1024,    /* columns: pages of memory; sums of few rows stay in the first-level cache */
  SWAP_COLUMNS = 64,       /* or, TN with at most so many columns, transposed, reading A along its rows, */
  SWAP_DEPTH = 32,         /* few rows at a time, so that it is read once from memory: 1.5 to 3.5 times as fast */
  SWAP_DEPTH_NARROW = 16,  /* where the columns fill one tile's height at most */
  PACKING = 16,            /* a row or column packed costs as much as so many elements of C */
  WHOLE_ROWS_DEPTH = 1024, /* deeper gradients of kernels are bound by their multiplications, not by where weights lie */
  FEW_DOT_ROWS = 2,        /* oneDNN's AVX-512 sgemm sums NT of so many rows along vectors, */
  MOST_DOT_ROWS = 15,      /* up to so many */
  DEPTH_OF_DOT_ROW = 16,   /* 16 bits sum so where each row is worth so many products of a sum */
  IN_PLACE_COLUMNS = 160,  /* transposed A is packed where more columns than these use it */
  IN_PLACE_ROWS = 14,      /* B is packed where more rows than these use it, but for short rows: */
  FEWEST_ROWS = 3,         /* which never repay packing */
  IN_PLACE_STRIDE = 512,   /* bytes */
  WIDENED_PANELS = 2,      /* B in 16 bits is widened by the micro-kernels where no more panels of rows use it */
  IN_PLACE_WIDTH = 4096,   /* columns of a block of B in place: bounds the sums kept in the workspace */
  CACHE_ALIAS = 4096,      /* rows this far apart share a set of the first-level cache */
  FEW_ROWS = 256,          /* a block of B that few rows use leaves half of the cache to its source */
  FEW_ROWS_COLUMNS = 512,
  CLAIMED = 256,           /* rows or columns, about, that threads take from each other */
  STRIP_BYTES = 32 << 10,  /* transposed A is packed in strips of so many bytes: rows of it are long enough for whole vectors; */
  APART_PANELS = 8,        /* deep panels not side by side: so many at a time, which take whole lines of memory */
  STREAM_DEPTH = 64,       /* deeper products whose tiles write C are not bound by that, */
  STREAM_BYTES = 16 << 20, /* nor are smaller results */
};

/* Of the cost of whole rows: what parts of rows may cost at most, to be chosen for the gradient of a kernel. */
#define FEWER_COLUMNS 0.98

/* C^T = op(B)^T op(A)^T. */
static mix_gemm_problem turned(const mix_gemm_problem *p) {
  mix_gemm_problem result = *p;
  result.m = p->n, result.n = p->m;
  result.transpose_a = !p->transpose_b, result.transpose_b = !p->transpose_a;
  result.lda = p->ldb, result.ldb = p->lda;
  return result;
}

void mix_gemm_choose_grid(mix_gemm_plan *plan, int64_t row_unit, int64_t column_unit) {
  const mix_gemm_problem *p = &plan->problem;
  const bool whole_rows = p->transpose_a && !p->transpose_b && !plan->swapped && p->k <= WHOLE_ROWS_DEPTH;
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

/* The narrow operand is widened in pieces along k that stay in the second-level cache, and need no more memory however deep it is. */
static void plan_dot(mix_gemm_plan *plan) {
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t element = (int64_t)engine->element, sum = (int64_t)engine->sum, columns = p->n > 0 ? p->n : 1;
  const int64_t fits = mix_cpu_cache(2) / DOT_CACHE_SHARE / (columns * element) / MIX_GEMM_DOT_ROWS * MIX_GEMM_DOT_ROWS;
  plan->grid_rows = plan->threads, plan->grid_columns = 1;
  plan->a_in_place = true;
  plan->depth_block = smaller(p->k, fits > DOT_DEPTH ? fits : DOT_DEPTH);
  const bool pieces = plan->depth_block < p->k;
  plan->row_block = pieces ? DOT_PIECE_ROWS : MIX_GEMM_DOT_ROWS;
  plan->a_bytes =
      pieces ? whole_lines(plan->row_block * columns * engine->lanes * sum) : 0; /* sums of lanes, from piece to piece */
  plan->a_stride = round_up(plan->depth_block, engine->lanes) + engine->lanes;
  plan->b_bytes = (size_t)whole_lines(columns * plan->a_stride * element);
  plan->c_bytes = (size_t)whole_lines(MIX_GEMM_DOT_ROWS * MIX_GEMM_DOT_STRIDE * sum);
  const int widest = engine->columns > engine->dot_columns ? engine->columns : engine->dot_columns;
  plan->turn_bytes = (size_t)whole_lines(MIX_GEMM_DOT_ROWS * widest * sum);
}

static bool sweeps(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  if (plan->dot || p->transpose_b || p->m > SWEEP_ROWS || !plan->storage->sweep) return false;
  return plan->swapped || p->k * p->n * (int64_t)mix_dtype_size(plan->storage->dtype) > SWEEP_BYTES;
}

static void plan_sweep(mix_gemm_plan *plan) {
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t element = (int64_t)engine->element, sum = (int64_t)engine->sum, lanes = engine->lanes;
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype);
  const int64_t columns = smaller(p->n, round_up(divide_up(p->n, plan->threads), engine->columns));
  plan->grid_rows = 1, plan->grid_columns = plan->threads;
  plan->depth_block = smaller(p->k, engine->depth_block);
  /* The processor follows rows by itself; while several rows use one it wants help, unless B is small, by bytes or where it lies. */
  plan->prefetch_b = p->m > 1 && element == stored && p->k * p->n * stored > mix_cpu_cache(2);
  plan->row_block = p->m, plan->column_block = even_block(columns, SWEEP_COLUMNS, engine->columns);
  plan->a_stride = round_up(plan->depth_block, lanes) + lanes;
  plan->a_bytes = (size_t)whole_lines(p->m * plan->a_stride * element);
  plan->c_stride = round_up(plan->column_block, engine->columns) + lanes;
  plan->c_bytes = (size_t)whole_lines(p->m * plan->c_stride * sum);
  plan->b_bytes = p->k > plan->depth_block ? plan->c_bytes : 0; /* a later block of k */
  const int64_t widened = p->transpose_a ? plan->depth_block * round_up(p->m, lanes) * element : 0;
  const int64_t turned = plan->swapped ? p->m * engine->columns * sum : 0;
  plan->turn_bytes = (size_t)whole_lines(widened > turned ? widened : turned);
}

/* Is C written past the caches, in whole lines? By tiles themselves only where it is much and the product shallow: their fastest form
 * does not stream. */
static bool streams(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  const int64_t size = (int64_t)mix_dtype_size(plan->result), bytes = p->m * p->n * size;
  if (p->epilogue || plan->swapped || p->ldc * size % 64) return false;
  return plan->c_in_place ? p->k <= STREAM_DEPTH && bytes > STREAM_BYTES : size == 2 && mix_exceeds_caches(bytes);
}

static void plan_blocks(mix_gemm_plan *plan) {
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t element = (int64_t)engine->element, sum = (int64_t)engine->sum;
  const int64_t deepest = !plan->swapped ? engine->depth_block : p->m <= SWAP_DEPTH_NARROW ? SWAP_DEPTH_NARROW : SWAP_DEPTH;
  const int64_t depth_blocks = p->k > deepest ? divide_up(p->k, deepest) : 1;
  plan->depth_block = !p->k           ? 1
                      : plan->swapped ? smaller(p->k, round_up(divide_up(p->k, depth_blocks), 8))
                                      : smaller(p->k, deepest);

  mix_gemm_choose_grid(plan, 1, engine->columns);
  const int64_t rows = smaller(p->m, divide_up(p->m, plan->grid_rows) + 2);
  const int64_t columns = smaller(p->n, round_up(divide_up(p->n, plan->grid_columns), engine->columns));
  const bool aliased = p->lda * element % CACHE_ALIAS == 0;
  plan->a_turned = !p->transpose_a && !plan->swapped && columns > IN_PLACE_COLUMNS && plan->storage->pack_a_turned;
  plan->a_in_place = plan->storage->in_place && (p->transpose_a ? columns <= IN_PLACE_COLUMNS : !aliased && !plan->a_turned);
  /* Tiles take B a line or two of each row at a time: from memory whole rows are better streamed by packing. */
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype);
  const bool cached = p->k * p->n * stored <= mix_cpu_cache(2), vectors = engine->ragged_in_place || p->n % engine->lanes == 0;
  plan->b_in_place =
      plan->storage->in_place && !p->transpose_b && vectors &&
      (plan->swapped || rows < FEWEST_ROWS || (rows <= IN_PLACE_ROWS && cached) || p->ldb * element <= IN_PLACE_STRIDE);
  plan->b_widened = plan->storage->micro && !p->transpose_a && !p->transpose_b && !plan->swapped && vectors && cached &&
                    rows <= WIDENED_PANELS * engine->rows;
  plan->b_in_place = plan->b_in_place || plan->b_widened;
  if (plan->b_widened) plan->a_turned = false;
  plan->prefetch_b = plan->swapped && plan->b_in_place;
  plan->fetch_a = plan->a_turned || (p->transpose_a && !plan->a_in_place && p->lda * stored % CACHE_ALIAS);
  plan->c_in_place = !p->epilogue && !plan->swapped && engine->sum == mix_dtype_size(plan->result);
  plan->stream = streams(plan);

  const int64_t fits = mix_cpu_cache(2) * 3 / 4 / (plan->depth_block * element) / engine->columns * engine->columns;
  plan->row_block = smaller(engine->row_block, rows);
  plan->column_block = smaller(columns, plan->b_in_place || plan->swapped ? IN_PLACE_WIDTH
                                        : fits < engine->columns          ? engine->columns
                                                                          : fits);
  if (!plan->swapped && !plan->b_in_place)
    plan->column_block = smaller(plan->column_block, rows <= FEW_ROWS ? FEW_ROWS_COLUMNS : engine->column_block);
  const mix_gemm_extent down = {.count = p->m, .unit = 1, .grain = 2, .most = plan->row_block, .least = CLAIMED};
  const mix_gemm_extent right = {.count = p->n, .unit = 1, .grain = engine->columns, .most = plan->column_block, .least = CLAIMED};
  mix_gemm_cut(plan, down, right, rows < 2 * CLAIMED);
  plan->row_block = plan->pieces.rows.most, plan->column_block = plan->pieces.columns.most;

  const bool along_rows = p->transpose_a || plan->a_turned;
  const int64_t panels = STRIP_BYTES / (plan->depth_block * engine->rows * element);
  const bool apart = p->transpose_a && panels <= 1;
  const int64_t most = apart ? APART_PANELS : p->transpose_a ? panels : 1;
  plan->a_panels = (int)smaller(most, divide_up(plan->row_block, engine->rows));
  plan->a_stride = along_rows ? round_up((apart ? 1 : plan->a_panels) * engine->rows, engine->lanes)
                              : round_up(plan->depth_block, engine->lanes) + engine->lanes;
  if (apart) plan->a_apart = plan->depth_block * plan->a_stride;
  const int64_t packed = apart ? plan->a_panels * plan->a_apart : (along_rows ? plan->depth_block : engine->rows) * plan->a_stride;
  plan->a_bytes = plan->a_in_place ? 0 : whole_lines(packed * element);
  plan->b_bytes = plan->b_in_place ? 0 : whole_lines(plan->depth_block * round_up(plan->column_block, engine->columns) * element);
  if (!plan->c_in_place) {
    const int64_t kept = depth_blocks > 1 || plan->swapped ? plan->row_block : smaller(engine->rows, plan->row_block);
    plan->c_stride = round_up(plan->column_block, engine->columns) + engine->lanes; /* off a power of two */
    plan->c_bytes = (size_t)whole_lines(kept * plan->c_stride * sum);
  }
  if (plan->swapped) plan->turn_bytes = (size_t)whole_lines(p->m * engine->columns * sum);
}

const mix_gemm_storage *mix_gemm_storage_of(const mix_gemm_engine *engine, mix_dtype dtype) {
  const mix_gemm_storage *storage = engine->storages;
  while (storage->dtype != MIX_DTYPE_NONE && storage->dtype != dtype) storage++;
  return storage;
}

/* NT of few rows: sums along vectors of k, which need no packing of B. Float32 has oneDNN's order, 16 bits what is fastest. */
static bool dots_few_rows(const mix_gemm_engine *engine, const mix_gemm_storage *storage, const mix_gemm_problem *p) {
  if (p->transpose_a || !p->transpose_b || p->k <= 0 || p->k > DOT_DEPTH || !storage->dot[0]) return false;
  if (storage->dtype == MIX_FLOAT32 && p->rounded == MIX_DTYPE_NONE)
    return engine->lanes == 16 && p->m >= FEW_DOT_ROWS && p->m <= MOST_DOT_ROWS;
  return storage->dtype != MIX_FLOAT64 && p->m <= engine->dot_columns && p->k >= DEPTH_OF_DOT_ROW * p->m;
}

void mix_gemm_make_plan(const mix_gemm_engine *engine, const mix_gemm_storage *storage, const mix_gemm_problem *problem,
                        int threads, mix_gemm_plan *plan) {
  *plan = (mix_gemm_plan){.engine = engine, .storage = storage, .problem = *problem, .threads = threads};
  plan->result = problem->rounded == MIX_DTYPE_NONE ? storage->dtype : problem->rounded;
  if (engine->make_plan) {
    engine->make_plan(plan);
    plan->stream = streams(plan);
    return;
  }
  if (dots_few_rows(engine, storage, problem)) {
    plan->dot = plan->swapped = true;
  } else if (storage->dot[0] && problem->k > DOT_DEPTH) {
    plan->dot = true;
    if (problem->n <= engine->dot_columns && !problem->transpose_a)
      plan->swapped = false;
    else if (problem->m <= engine->dot_columns && problem->transpose_b)
      plan->swapped = true;
    else
      plan->dot = false;
  }
  if (!plan->dot)
    plan->swapped = problem->transpose_a && problem->n <= SWAP_COLUMNS && problem->k > DOT_DEPTH && problem->m > problem->n;
  if (plan->swapped) plan->problem = turned(problem);
  plan->sweep = sweeps(plan);
  if (plan->dot)
    plan_dot(plan);
  else if (plan->sweep)
    plan_sweep(plan);
  else
    plan_blocks(plan);
  plan->thread_bytes = plan->a_bytes + plan->b_bytes + plan->c_bytes + plan->turn_bytes;
}
