/* How a product is done by tiles: the grid of threads, the blocks, what is packed when, by whom and where.
 * All of it is chosen by cost, in elements of C; none of it changes the order of sums. Measured on processors
 * with 2 MiB of second-level cache. */
#include "backend/backend.h"
#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/sizes.h"
#include <math.h>

enum {
  KEPT_BYTES = 32 << 20,   /* of the outer loop's block, packed for all of k, at most */
  SHARED_BYTES = 33 << 20, /* of what is packed for all threads at once */
  PACKING = 128,           /* a row or column packed costs as much as so many elements of C */
  TURNING = 2,             /* times as much where packing transposes */
  SHALLOW = 10,            /* k below it is mostly padding */
  DEEP = 512,              /* products of k from here on, and of so many times their rows and columns, */
  DEEP_RATIO = 4,          /* are summed in halves, */
  DEEP_RESULTS = 1 << 18,  /* where both blocks of sums fit the second-level cache; */
  IN_PLACE_COLUMNS = 256,  /* more would repay packing A */
  CACHE_ALIAS = 4096,      /* rows this far apart share a set of the first-level cache */
  ADDING = 256,            /* which costs as much as so many steps of k, where threads must meet for it */
};

/* Packed for all threads, a row or column costs so many times as much, since it goes through memory, and a
 * little for each block that reads it from there. */
static const double SHARED_PACKING = 2, SHARED_READING = 0.1;

/* By the number of parts: blocks of k; rows and columns of a block of C, of 1 MiB, with a block of A and one
 * of B beside it; rows where an operand is shared, which leaves room for what is fetched prefetch (not fewer
 * columns: updates in epilogues want long rows). `few`, `operations`: what the kernels that widen do better.
 */
static const struct {
  int64_t depth, block, shared_rows;
  int64_t few, operations;
} measured[] = {[1] = {256, 512, 256, 6, 1 << 13}, [2] = {256, 512, 256, 12, 1 << 17}};

const char *mix_amx_unsupported_reason(const mix_gemm_problem *p, mix_dtype dtype) {
  if (dtype == MIX_FLOAT32 && mix_float32_precision_current() != MIX_FLOAT32_HIGH)
    return "full float32 precision in force";
  const int parts = mix_amx_parts(dtype);
  if (p->m <= measured[parts].few) return "few rows, bound by reading B";
  /* With one part packing costs as much as reading, and only vectors of sums along rows in memory do without.
   */
  if (p->n <= measured[parts].few && (parts == 2 || !p->transpose_a))
    return "few columns, bound by reading A";
  if (p->k < SHALLOW) return "few products in a sum";
  if (mix_gemm_multiplications(p) < (double)measured[parts].operations) return "too small to repay packing";
  return NULL;
}

/* Rows or columns packed for `depth` of k, and behind them a flag for each step. */
static size_t packed_bytes(const mix_gemm_plan *plan, int64_t count, int64_t depth) {
  const int64_t steps = divide_up(count, AMX_PANEL) * divide_up(depth, AMX_STEP);
  return (size_t)round_up(steps * (mix_amx_parts(plan->storage->dtype) * AMX_PAIR + 1), 64);
}

/* A thread that has half of k packs only that; whose rows of A or B they are, and in which cache, is often
 * the same from product to product. */
static double lay_out_halves(mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  const int parts = mix_amx_parts(plan->storage->dtype);
  const int64_t rows = smaller(round_up(divide_up(p->m, plan->grid_rows), AMX_PANEL), p->m);
  const int64_t columns = smaller(round_up(divide_up(p->n, plan->grid_columns), AMX_PANEL), p->n);
  plan->kc = even_block(divide_up(p->k, 2), measured[parts].depth, AMX_STEP);
  plan->mc = rows, plan->nc = columns;
  plan->a_bytes = packed_bytes(plan, rows, plan->a_in_place ? AMX_STEP : plan->kc);
  plan->b_bytes = packed_bytes(plan, columns, plan->kc);
  plan->c_stride = round_up(columns, AMX_PANEL) + 16;
  plan->c_bytes = (size_t)(round_up(rows, AMX_PANEL) * plan->c_stride) * sizeof(float);
  plan->thread_bytes = plan->a_bytes + plan->b_bytes;
  plan->shared_bytes = 2 * plan->c_bytes * (size_t)(plan->grid_rows * plan->grid_columns);
  plan->barriers = plan->grid_depth > 1;
  const double packing =
      (double)((p->transpose_a ? TURNING : 1) * rows + (p->transpose_b ? TURNING : 1) * columns);
  const double results = (double)rows * (double)columns;
  return (results + PACKING * packing) / plan->grid_depth +
         (plan->barriers ? results * ADDING / (double)p->k : 0);
}

/* Completes a plan that has its grid and its outer loop; returns what it costs the busiest thread. INFINITY:
 * it cannot share. */
static double lay_out(mix_gemm_plan *plan, bool share) {
  const mix_gemm_problem *p = &plan->problem;
  const int parts = mix_amx_parts(plan->storage->dtype), outer = plan->columns_outside, inner = !outer;
  const int64_t all[2] = {p->m, p->n}, grid[2] = {plan->grid_rows, plan->grid_columns};
  const int turning[2] = {p->transpose_a ? TURNING : 1, p->transpose_b ? TURNING : 1};
  if (share && plan->a_in_place && inner == 0) return INFINITY;
  int64_t own[2], block[2], blocks[2];
  for (int i = 0; i < 2; i++) {
    own[i] = smaller(round_up(divide_up(all[i], grid[i]), AMX_PANEL), all[i]);
    block[i] =
        even_block(own[i], share && i == 0 ? measured[parts].shared_rows : measured[parts].block, AMX_PANEL);
    blocks[i] = divide_up(own[i], block[i]);
  }
  plan->kc = even_block(p->k, measured[parts].depth, AMX_STEP);
  plan->mc = block[0], plan->nc = block[1];
  plan->keep = blocks[inner] > 1 && packed_bytes(plan, block[outer], p->k) <= KEPT_BYTES;

  const size_t whole_block = packed_bytes(plan, block[inner], p->k);
  const int64_t most = p->kept_b || !whole_block ? blocks[inner] : (int64_t)(SHARED_BYTES / whole_block);
  plan->shared = share && whole_block ? smaller(blocks[inner], most) : 0;
  if (share && (plan->shared == 0 || grid[inner] != 1)) return INFINITY;
  const int64_t parts_shared = share ? divide_up(blocks[inner], plan->shared) : 0;
  plan->shared_bytes = (size_t)plan->shared * whole_block;
  plan->barriers = plan->threads > 1 && share ? (int)(2 * parts_shared) - 1 : 0;

  size_t bytes[2];
  bytes[outer] = packed_bytes(plan, block[outer], plan->keep ? p->k : plan->kc);
  bytes[inner] = share ? 0 : packed_bytes(plan, block[inner], plan->kc);
  if (plan->a_in_place)
    bytes[0] = packed_bytes(plan, block[0], AMX_STEP); /* what is left of k behind whole steps */
  plan->a_bytes = bytes[0], plan->b_bytes = bytes[1];
  plan->c_stride = block[1] + 16; /* off a power of two */
  plan->c_bytes = (size_t)((p->k > plan->kc ? block[0] : AMX_PANEL) * plan->c_stride) * sizeof(float);
  plan->thread_bytes = plan->a_bytes + plan->b_bytes + plan->c_bytes;

  const int64_t outer_times = share ? parts_shared : plan->keep ? 1 : blocks[inner];
  const double inner_times = p->kept_b ? 0 : share ? SHARED_PACKING / plan->threads : (double)blocks[outer];
  const double packing =
      (double)(turning[outer] * own[outer] * outer_times) + turning[inner] * (double)own[inner] * inner_times;
  const double reading = share ? SHARED_READING * (double)(own[inner] * blocks[outer]) : 0;
  return (double)own[0] * (double)own[1] + PACKING * (packing + reading);
}

/* Whatever the threads: the order of sums depends on it. */
static bool is_split_k(const mix_gemm_problem *p) {
  if (p->kept_b) return false;
  const int64_t larger = p->m > p->n ? p->m : p->n;
  return p->k >= DEEP && p->k >= DEEP_RATIO * larger && p->m * p->n <= DEEP_RESULTS;
}

/* Tiles read rows of A as they lie, where few panels of columns use them and they do not share sets of the
 * first-level cache. */
static bool reads_a_in_place(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype);
  if (mix_amx_parts(plan->storage->dtype) > 1 || p->transpose_a) return false;
  return p->m % (AMX_PANEL / 2) == 0 && p->k >= AMX_STEP && p->n <= IN_PLACE_COLUMNS &&
         p->lda * stored % CACHE_ALIAS != 0;
}

void mix_amx_make_plan(mix_gemm_plan *plan) {
  const int threads = plan->threads;
  double best = INFINITY;
  mix_gemm_plan candidate = *plan;
  candidate.split_k = is_split_k(&plan->problem);
  candidate.a_in_place = reads_a_in_place(&candidate);
  const int depths = candidate.split_k ? 2 : 1, ways = candidate.split_k ? 1 : 4;
  for (int depth = 1; depth <= depths; depth++)
    for (int rows = 1; rows <= threads; rows++)
      for (int way = 0; way < ways && threads % (depth * rows) == 0; way++) {
        candidate.grid_depth = depth, candidate.grid_rows = rows,
        candidate.grid_columns = threads / (depth * rows);
        candidate.columns_outside = way & 1;
        if (plan->problem.kept_b && way != 2) continue;
        const double cost = candidate.split_k ? lay_out_halves(&candidate) : lay_out(&candidate, way & 2);
        if (cost < best) best = cost, *plan = candidate;
      }
}
