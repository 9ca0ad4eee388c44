/* Shares of a product: tiles, and work stealing among threads (work_stealing.h). */
#include "backend/cpu/gemm/work_stealing.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include "base/alloc.h"
#include "base/machine.h"

/* Multiplications of a thread that repay stealing: half a millisecond to one. With less, it matters more in
 * which cache a thread's operands are. */
#define STEAL_OPERATIONS 0x1p26
/* Speed of the fastest thread over that of the slowest, from which on small tiles repay their cost of up to 3
 * %. */
#define SPEED_RATIO 1.1

static mix_gemm_tile share_of(const mix_gemm_plan *plan, int rank) {
  const mix_gemm_tiles *x = &plan->tiles;
  mix_gemm_tile share;
  mix_gemm_share(x->rows.count, x->rows.grain, rank / plan->grid_columns, plan->grid_rows, &share.row,
                 &share.row_end);
  mix_gemm_share(x->columns.count, x->columns.grain, rank % plan->grid_columns, plan->grid_columns,
                 &share.column, &share.column_end);
  return share;
}

static int64_t chunks_along(const mix_gemm_tiles *x, const mix_gemm_tile *share) {
  return divide_up(x->by_columns ? share->column_end - share->column : share->row_end - share->row, x->chunk);
}
static int64_t blocks_across(const mix_gemm_tiles *x, const mix_gemm_tile *share) {
  return x->by_columns ? divide_up(share->row_end - share->row, x->rows.max)
                       : divide_up(share->column_end - share->column, x->columns.max);
}

static int64_t largest_share(const mix_gemm_extent *x, int parts) {
  return round_up(divide_up(x->count, parts), x->grain);
}

bool mix_gemm_repays_stealing(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  return plan->threads > 1 && !plan->compute_transposed &&
         mix_gemm_multiplications(p) >= STEAL_OPERATIONS * plan->threads;
}

void mix_gemm_cut(mix_gemm_plan *plan, mix_gemm_extent rows, mix_gemm_extent columns, bool by_columns) {
  mix_gemm_tiles *x = &plan->tiles;
  *x = (mix_gemm_tiles){.rows = rows, .columns = columns, .by_columns = by_columns, .max_chunks = 1};
  if (x->rows.max < 1) x->rows.max = 1;
  if (x->columns.max < 1) x->columns.max = 1;
  mix_gemm_extent *along = by_columns ? &x->columns : &x->rows;
  const int64_t length = largest_share(along, by_columns ? plan->grid_columns : plan->grid_rows);
  x->chunk = along->max;
  x->steal = mix_gemm_repays_stealing(plan) && length >= 2 * along->min;
  if (!x->steal) return;
  for (int64_t blocks = divide_up(length, along->max);; blocks++) {
    const int64_t block = divide_up(length, blocks);
    x->max_chunks = divide_up(block, along->min);
    x->chunk = round_up(divide_up(length, blocks * x->max_chunks), along->grain);
    if (x->chunk * x->max_chunks <= along->max || block <= along->grain) break;
  }
  along->max = x->chunk * x->max_chunks;
}

static uint64_t chunks(int64_t first, int64_t end) { return (uint64_t)first << 32 | (uint64_t)end; }

static int64_t first_chunk(uint64_t left) { return (int64_t)(left >> 32); }
static int64_t end_chunk(uint64_t left) { return (int64_t)(left & UINT32_MAX); }
static bool none(uint64_t left) { return first_chunk(left) >= end_chunk(left); }

static uint64_t all_chunks(const mix_gemm_plan *plan, const mix_gemm_tile *share) {
  return chunks(0, chunks_along(&plan->tiles, share) * blocks_across(&plan->tiles, share));
}

/* Did all threads that worked do it at like speeds? One that did nothing came too late. */
static bool same_speed(const mix_gemm_plan *plan, const mix_gemm_stealing *stealing) {
  double slowest = 0, fastest = 0;
  for (int rank = 0; rank < plan->threads; rank++) {
    const mix_gemm_steal_range *x = &stealing->each[rank];
    const double speed = x->ticks ? (double)x->done / (double)x->ticks : 0;
    if (rank == 0 || speed < slowest) slowest = speed;
    if (speed > fastest) fastest = speed;
  }
  return fastest < SPEED_RATIO * slowest;
}

static void fill_ranges(const mix_gemm_plan *plan, mix_gemm_stealing *stealing) {
  for (int rank = 0; rank < plan->threads; rank++) {
    const mix_gemm_tile share = share_of(plan, rank);
    atomic_store_explicit(&stealing->each[rank].left, all_chunks(plan, &share), memory_order_relaxed);
  }
}

mix_gemm_stealing *mix_gemm_new_stealing(const mix_gemm_plan *plan) {
  mix_gemm_stealing *stealing =
      mix_calloc(1, sizeof *stealing + sizeof(mix_gemm_steal_range) * (size_t)plan->threads);
  if (!stealing) return NULL;
  stealing->fine = true;
  fill_ranges(plan, stealing);
  return stealing;
}

void mix_gemm_reset_stealing(const mix_gemm_plan *plan, mix_gemm_stealing *stealing) {
  stealing->fine = !same_speed(plan, stealing);
  fill_ranges(plan, stealing);
}

void mix_gemm_begin(mix_gemm_work *work, const mix_gemm_plan *plan, mix_gemm_stealing *stealing, int rank) {
  *work = (mix_gemm_work){.plan = plan, .stealing = stealing, .share = share_of(plan, rank), .rank = rank};
  if (stealing)
    work->begun = mix_ticks();
  else
    atomic_init(&work->own.left, all_chunks(plan, &work->share));
}

void mix_gemm_end(mix_gemm_work *work) {
  if (!work->stealing) return;
  mix_gemm_steal_range *own = &work->stealing->each[work->rank];
  own->done = work->done, own->ticks = mix_ticks() - work->begun;
}

/* `count` chunks of a share from `first` on. */
static mix_gemm_tile tile_of(const mix_gemm_tiles *x, const mix_gemm_tile *share, int64_t first,
                             int64_t count) {
  const int64_t row_chunks = chunks_along(x, share), block = first / row_chunks,
                begin = first % row_chunks * x->chunk;
  mix_gemm_tile tile = *share;
  if (x->by_columns) {
    tile.row += block * x->rows.max, tile.row_end = smaller(tile.row + x->rows.max, share->row_end);
    tile.column += begin, tile.column_end = smaller(tile.column + count * x->chunk, share->column_end);
  } else {
    tile.column += block * x->columns.max,
        tile.column_end = smaller(tile.column + x->columns.max, share->column_end);
    tile.row += begin, tile.row_end = smaller(tile.row + count * x->chunk, share->row_end);
  }
  return tile;
}

/* Rows or columns of C in units [begin, end). */
static int64_t elements(const mix_gemm_extent *x, int64_t all, int64_t begin, int64_t end) {
  return smaller(end * x->unit, all) - smaller(begin * x->unit, all);
}

/* Takes a tile from the share of thread `from`: the next one of the thread's own share; of another's share at
 * most half of what is left, from its end. */
static bool take(mix_gemm_work *work, int from, mix_gemm_tile *tile) {
  const mix_gemm_tiles *x = &work->plan->tiles;
  mix_gemm_steal_range *range = work->stealing ? &work->stealing->each[from] : &work->own;
  const bool own = from == work->rank, half = !own || (work->stealing && work->stealing->fine);
  uint64_t left = atomic_load_explicit(&range->left, memory_order_relaxed), remaining;
  if (none(left)) return false;
  const mix_gemm_tile share = own ? work->share : share_of(work->plan, from);
  const int64_t along = chunks_along(x, &share);
  int64_t taken, count;
  do {
    if (none(left)) return false;
    const int64_t first = first_chunk(left), end = end_chunk(left);
    const int64_t in_block = own ? along - first % along : (end - 1) % along + 1;
    count = smaller(smaller(half ? (end - first + 1) / 2 : end - first, in_block), x->max_chunks);
    taken = own ? first : end - count;
    remaining = own ? chunks(first + count, end) : chunks(first, end - count);
  } while (!atomic_compare_exchange_weak_explicit(&range->left, &left, remaining, memory_order_relaxed,
                                                  memory_order_relaxed));
  *tile = tile_of(x, &share, taken, count);
  work->done += elements(&x->rows, work->plan->problem.m, tile->row, tile->row_end) *
                elements(&x->columns, work->plan->problem.n, tile->column, tile->column_end);
  return true;
}

bool mix_gemm_next_tile(mix_gemm_work *work, mix_gemm_tile *tile) {
  const int threads = work->stealing ? work->plan->threads : 1;
  for (int i = 0; i < threads; i++)
    if (take(work, (work->rank + i) % work->plan->threads, tile)) return true;
  return false;
}
