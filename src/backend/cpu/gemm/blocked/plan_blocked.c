/* Plans of blocked products: what is read in place, the blocks, the tiles. */
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/blocked/blocked.h"

enum {
  /* ---- compute_transposed: the largest KC ---- */
  TRANSPOSED_DEPTH = 32,
  TRANSPOSED_DEPTH_NARROW = 16, /* where the columns fit one tile's rows */

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
  /* A gathered block of A leaves most of the second-level cache to B. */
  GATHERED_BYTES = 128 << 10,
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
  /* So many sums are stored at once: an epilogue starts once for several panels of few columns, */
  STORED_SUMS = 2048,
  /* and takes rows of at most so many columns as one. */
  DENSE_COLUMNS = 256,
};

/* Do tiles write C past the caches themselves? Only a large C of few terms: the fastest micro-kernel does not
 * stream. */
static bool streams_tiles(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  const int64_t bytes = p->m * p->n * (int64_t)mix_dtype_size(plan->result);
  return mix_gemm_may_stream(plan) && p->k <= STREAM_DEPTH && bytes > STREAM_BYTES;
}

/* Are patches of 16-bit numbers widened as they are gathered? Where a gathered block of float32 numbers needs
 * no packing, this saves it. */
static bool widens_as_gathered(const mix_gemm_plan *plan, int64_t columns) {
  const mix_gemm_storage *wide = mix_gemm_storage_of(plan->engine, MIX_FLOAT32);
  return plan->problem.patches && columns <= IN_PLACE_COLUMNS && wide->in_place &&
         mix_dtype_size(plan->storage->dtype) == sizeof(uint16_t);
}

/* Rows of a block of A that is gathered: whole panels. */
static int64_t gathered_rows(const mix_gemm_plan *plan) {
  const int64_t row = plan->kc * mix_gemm_stored_size(mix_blocked_plan_of(plan)->a_storage),
                mr = plan->engine->mr;
  const int64_t panels = GATHERED_BYTES / (row * mr);
  return (panels > 0 ? panels : 1) * mr;
}

void mix_blocked_make_plan(mix_gemm_plan *plan) {
  mix_blocked_plan *own = mix_blocked_plan_in(plan);
  if (mix_gemm_prefers_transposed(&plan->problem)) mix_gemm_compute_transposed(plan);
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

  const int64_t packed_depth = mix_gemm_packed_depth(engine, plan->kc);

  mix_gemm_choose_grid(plan, 1, engine->nr);
  const int64_t rows = smaller(p->m, divide_up(p->m, plan->grid_rows) + 2);
  const int64_t columns = smaller(p->n, round_up(divide_up(p->n, plan->grid_columns), engine->nr));
  const bool aliased = !p->patches && p->lda * element % CACHE_ALIAS == 0;
  own->a_gathered = p->patches;
  own->a_widened = widens_as_gathered(plan, columns);
  const mix_gemm_storage *rounding = mix_gemm_rounding_storage_of(engine, plan->storage->dtype);
  own->a_storage = own->a_widened ? mix_gemm_storage_of(engine, MIX_FLOAT32)
                   : p->a_rounds  ? rounding
                                  : plan->storage;
  own->b_storage = p->b_rounds ? rounding : plan->storage;
  own->a_transposed = !p->transpose_a && !plan->compute_transposed && columns > IN_PLACE_COLUMNS &&
                      own->a_storage->pack_a_transposed;
  own->a_in_place = own->a_storage->in_place &&
                    (p->transpose_a ? columns <= IN_PLACE_COLUMNS : !aliased && !own->a_transposed);
  /* Tiles read a line or two of each row of B at a time; from memory it is faster to pack whole rows. */
  const int64_t stored = mix_gemm_stored_size(own->b_storage),
                a_stored = mix_gemm_stored_size(own->a_storage);
  const bool cached = p->k * p->n * stored <= mix_cpu_cache(2),
             vectors = engine->ragged_in_place || p->n % engine->lanes == 0;
  own->b_in_place = own->b_storage->in_place && !p->transpose_b && vectors &&
                    (plan->compute_transposed || rows < FEWEST_ROWS || (rows <= IN_PLACE_ROWS && cached) ||
                     p->ldb * element <= IN_PLACE_STRIDE);
  own->b_widened = own->b_storage->micro && !p->transpose_a && !p->transpose_b && !plan->compute_transposed &&
                   vectors && cached && !p->fixed_b && rows <= WIDENED_PANELS * engine->mr;
  own->b_in_place = own->b_in_place || own->b_widened;
  own->b_kept = p->fixed_b && !own->b_in_place && !plan->compute_transposed;
  if (own->b_widened) own->a_transposed = false;
  own->prefetch_b = plan->compute_transposed && own->b_in_place;
  own->prefetch_a_source =
      !p->patches &&
      (own->a_transposed || (p->transpose_a && !own->a_in_place && p->lda * a_stored % CACHE_ALIAS));
  own->prefetch_a_rows = !p->patches && !p->transpose_a && !own->a_transposed && !plan->compute_transposed &&
                         p->lda == p->k && p->k <= plan->kc && p->m * p->k * a_stored > mix_cpu_cache(2);
  own->c_in_place = !p->epilogue && !p->scattered && !plan->compute_transposed &&
                    engine->sum_size == mix_dtype_size(plan->result);
  plan->stream = own->c_in_place ? streams_tiles(plan) : mix_gemm_streams_result(plan);

  const int64_t fits = mix_cpu_cache(2) * 3 / 4 / (packed_depth * element) / engine->nr * engine->nr;
  plan->mc = smaller(engine->mc, rows);
  if (own->a_gathered) plan->mc = smaller(plan->mc, gathered_rows(plan));
  plan->nc = smaller(columns, own->b_in_place || plan->compute_transposed ? IN_PLACE_WIDTH
                              : fits < engine->nr                         ? engine->nr
                                                                          : fits);
  if (!plan->compute_transposed && !own->b_in_place)
    plan->nc = smaller(plan->nc, rows <= FEW_ROWS ? FEW_ROWS_COLUMNS : engine->nc);
  if (own->b_kept && fits / 2 > engine->nr) plan->nc = smaller(plan->nc, fits / 2 / engine->nr * engine->nr);
  const mix_gemm_extent down = {.count = p->m, .unit = 1, .grain = 2, .max = plan->mc, .min = STEAL_SIZE};
  const mix_gemm_extent right = {
      .count = p->n, .unit = 1, .grain = engine->nr, .max = plan->nc, .min = STEAL_SIZE};
  mix_gemm_cut(plan, down, right, rows < 2 * STEAL_SIZE);
  plan->mc = plan->tiles.rows.max, plan->nc = plan->tiles.columns.max;

  const bool along_rows = p->transpose_a || own->a_transposed;
  const int64_t panels = STRIP_BYTES / (packed_depth * engine->mr * element);
  const bool strided = p->transpose_a && panels <= 1;
  const int64_t max_panels = strided ? STRIDED_PANELS : p->transpose_a ? panels : 1;
  own->a_panels = (int)smaller(max_panels, divide_up(plan->mc, engine->mr));
  own->a_stride = along_rows ? round_up((strided ? 1 : own->a_panels) * engine->mr, engine->lanes)
                             : round_up(packed_depth, engine->lanes) + engine->lanes;
  if (strided) own->a_panel_stride = packed_depth * own->a_stride;
  const int64_t packed = strided ? own->a_panels * own->a_panel_stride
                                 : (along_rows ? packed_depth : engine->mr) * own->a_stride;
  own->a_bytes = own->a_in_place ? 0 : whole_lines(packed * element);
  own->b_bytes = own->b_in_place || own->b_kept
                     ? 0
                     : whole_lines(packed_depth * round_up(plan->nc, engine->nr) * element);
  const int64_t panel = engine->mr * plan->nc;
  own->c_panels = panel > 0 && panel < STORED_SUMS ? (int)(STORED_SUMS / panel) : 1;
  if (!own->c_in_place) {
    const int64_t sums_rows =
        k_blocks > 1 || plan->compute_transposed ? plan->mc : smaller(own->c_panels * engine->mr, plan->mc);
    const bool dense = plan->nc % engine->nr == 0 && plan->nc <= DENSE_COLUMNS && !plan->compute_transposed;
    own->c_stride = round_up(plan->nc, engine->nr) + (dense ? 0 : engine->lanes); /* off a power of two */
    own->c_bytes = (size_t)whole_lines(sums_rows * own->c_stride * sum);
  }
  if (own->a_gathered) {
    const int64_t across = p->transpose_a ? plan->kc : plan->mc, along = p->transpose_a ? plan->mc : plan->kc;
    own->gathered_bytes = (size_t)whole_lines(across * mix_gemm_gathered_stride(along) * a_stored);
  }
  if (plan->compute_transposed) own->transpose_bytes = (size_t)whole_lines(p->m * engine->nr * sum);
}
