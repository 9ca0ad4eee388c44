#include "backend/cpu/gemm/pieces.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/sizes.h"
#include "base/alloc.h"

/* Multiplications of a thread that repay claims: half a millisecond, or one. With less, where its operands lie matters more. */
#define CLAIMED_OPERATIONS 0x1p26
/* The speed of the fastest thread to that of the slowest, from which on small pieces repay what they cost, up to 3 %. */
#define UNLIKE 1.1

static mix_gemm_piece share_of(const mix_gemm_plan *plan, int rank) {
  const mix_gemm_pieces *x = &plan->pieces;
  mix_gemm_piece share;
  mix_gemm_share(x->rows.count, x->rows.grain, rank / plan->grid_columns, plan->grid_rows, &share.row, &share.row_end);
  mix_gemm_share(x->columns.count, x->columns.grain, rank % plan->grid_columns, plan->grid_columns, &share.column,
                 &share.column_end);
  return share;
}

/* Of a share: along, and across. */
static int64_t cells_along(const mix_gemm_pieces *x, const mix_gemm_piece *share) {
  return divide_up(x->by_columns ? share->column_end - share->column : share->row_end - share->row, x->cell);
}
static int64_t blocks_across(const mix_gemm_pieces *x, const mix_gemm_piece *share) {
  return x->by_columns ? divide_up(share->row_end - share->row, x->rows.most)
                       : divide_up(share->column_end - share->column, x->columns.most);
}

static int64_t largest_share(const mix_gemm_extent *x, int parts) { return round_up(divide_up(x->count, parts), x->grain); }

bool mix_gemm_repays_claims(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  return plan->threads > 1 && !plan->swapped && mix_gemm_multiplications(p) >= CLAIMED_OPERATIONS * plan->threads;
}

void mix_gemm_cut(mix_gemm_plan *plan, mix_gemm_extent rows, mix_gemm_extent columns, bool by_columns) {
  mix_gemm_pieces *x = &plan->pieces;
  *x = (mix_gemm_pieces){.rows = rows, .columns = columns, .by_columns = by_columns, .most_cells = 1};
  if (x->rows.most < 1) x->rows.most = 1;
  if (x->columns.most < 1) x->columns.most = 1;
  mix_gemm_extent *along = by_columns ? &x->columns : &x->rows;
  const int64_t length = largest_share(along, by_columns ? plan->grid_columns : plan->grid_rows);
  x->cell = along->most;
  x->claimed = mix_gemm_repays_claims(plan) && length >= 2 * along->least;
  if (!x->claimed) return;
  for (int64_t blocks = divide_up(length, along->most);; blocks++) {
    const int64_t block = divide_up(length, blocks);
    x->most_cells = divide_up(block, along->least);
    x->cell = round_up(divide_up(length, blocks * x->most_cells), along->grain);
    if (x->cell * x->most_cells <= along->most || block <= along->grain) break;
  }
  along->most = x->cell * x->most_cells;
}

static uint64_t cells(int64_t first, int64_t end) { return (uint64_t)first << 32 | (uint64_t)end; }

static int64_t first_cell(uint64_t left) { return (int64_t)(left >> 32); }
static int64_t end_cell(uint64_t left) { return (int64_t)(left & UINT32_MAX); }
static bool none(uint64_t left) { return first_cell(left) >= end_cell(left); }

static uint64_t all_cells(const mix_gemm_plan *plan, const mix_gemm_piece *share) {
  return cells(0, cells_along(&plan->pieces, share) * blocks_across(&plan->pieces, share));
}

/* Did all threads that worked do it at like speeds? One that did nothing came too late. */
static bool alike(const mix_gemm_plan *plan, const mix_gemm_claims *claims) {
  double slowest = 0, fastest = 0;
  for (int rank = 0; rank < plan->threads; rank++) {
    const mix_gemm_claim *x = &claims->each[rank];
    const double speed = x->ticks ? (double)x->done / (double)x->ticks : 0;
    if (rank == 0 || speed < slowest) slowest = speed;
    if (speed > fastest) fastest = speed;
  }
  return fastest < UNLIKE * slowest;
}

static void fill_claims(const mix_gemm_plan *plan, mix_gemm_claims *claims) {
  for (int rank = 0; rank < plan->threads; rank++) {
    const mix_gemm_piece share = share_of(plan, rank);
    atomic_store_explicit(&claims->each[rank].left, all_cells(plan, &share), memory_order_relaxed);
  }
}

mix_gemm_claims *mix_gemm_new_claims(const mix_gemm_plan *plan) {
  mix_gemm_claims *claims = mix_calloc(1, sizeof *claims + sizeof(mix_gemm_claim) * (size_t)plan->threads);
  if (!claims) return NULL;
  claims->fine = true;
  fill_claims(plan, claims);
  return claims;
}

void mix_gemm_share_out(const mix_gemm_plan *plan, mix_gemm_claims *claims) {
  claims->fine = !alike(plan, claims);
  fill_claims(plan, claims);
}

void mix_gemm_begin(mix_gemm_work *work, const mix_gemm_plan *plan, mix_gemm_claims *claims, int rank) {
  *work = (mix_gemm_work){.plan = plan, .claims = claims, .share = share_of(plan, rank), .rank = rank};
  if (claims)
    work->begun = __builtin_ia32_rdtsc();
  else
    atomic_init(&work->own.left, all_cells(plan, &work->share));
}

void mix_gemm_end(mix_gemm_work *work) {
  if (!work->claims) return;
  mix_gemm_claim *own = &work->claims->each[work->rank];
  own->done = work->done, own->ticks = __builtin_ia32_rdtsc() - work->begun;
}

/* `count` cells of a share from `first` on. */
static mix_gemm_piece piece_of(const mix_gemm_pieces *x, const mix_gemm_piece *share, int64_t first, int64_t count) {
  const int64_t row_cells = cells_along(x, share), block = first / row_cells, begin = first % row_cells * x->cell;
  mix_gemm_piece piece = *share;
  if (x->by_columns) {
    piece.row += block * x->rows.most, piece.row_end = smaller(piece.row + x->rows.most, share->row_end);
    piece.column += begin, piece.column_end = smaller(piece.column + count * x->cell, share->column_end);
  } else {
    piece.column += block * x->columns.most, piece.column_end = smaller(piece.column + x->columns.most, share->column_end);
    piece.row += begin, piece.row_end = smaller(piece.row + count * x->cell, share->row_end);
  }
  return piece;
}

/* Rows or columns of C in [begin, end) of what is counted. */
static int64_t elements(const mix_gemm_extent *x, int64_t all, int64_t begin, int64_t end) {
  return smaller(end * x->unit, all) - smaller(begin * x->unit, all);
}

/* From the share of thread `from`: of the thread's own what comes next, of another's half of what is left, from its end. */
static bool take(mix_gemm_work *work, int from, mix_gemm_piece *piece) {
  const mix_gemm_pieces *x = &work->plan->pieces;
  mix_gemm_claim *claim = work->claims ? &work->claims->each[from] : &work->own;
  const bool own = from == work->rank, halves = !own || (work->claims && work->claims->fine);
  uint64_t left = atomic_load_explicit(&claim->left, memory_order_relaxed), rest;
  if (none(left)) return false;
  const mix_gemm_piece share = own ? work->share : share_of(work->plan, from);
  const int64_t along = cells_along(x, &share);
  int64_t taken, count;
  do {
    if (none(left)) return false;
    const int64_t first = first_cell(left), end = end_cell(left);
    const int64_t in_block = own ? along - first % along : (end - 1) % along + 1;
    count = smaller(smaller(halves ? (end - first + 1) / 2 : end - first, in_block), x->most_cells);
    taken = own ? first : end - count;
    rest = own ? cells(first + count, end) : cells(first, end - count);
  } while (!atomic_compare_exchange_weak_explicit(&claim->left, &left, rest, memory_order_relaxed, memory_order_relaxed));
  *piece = piece_of(x, &share, taken, count);
  work->done += elements(&x->rows, work->plan->problem.m, piece->row, piece->row_end) *
                elements(&x->columns, work->plan->problem.n, piece->column, piece->column_end);
  return true;
}

bool mix_gemm_next_piece(mix_gemm_work *work, mix_gemm_piece *piece) {
  const int threads = work->claims ? work->plan->threads : 1;
  for (int i = 0; i < threads; i++)
    if (take(work, (work->rank + i) % work->plan->threads, piece)) return true;
  return false;
}
