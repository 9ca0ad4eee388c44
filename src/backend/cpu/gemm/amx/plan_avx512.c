/* Plans of AMX products: the grid of threads, the blocks, what is packed when, by whom and where. Each choice
 * is by cost, in elements of C. No choice depends on the threads that changes the order of sums. Measured on
 * processors with 2 MiB of second-level cache. */
#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include <math.h>

enum {
  /* The outer loop's block, packed for all of k, takes at most so many bytes. */
  KEPT_BYTES = 32 << 20,
  /* What is packed for all threads at once takes at most so many. */
  SHARED_BYTES = 33 << 20,
  /* A packed row or column costs as much as so many elements of C, */
  PACKING = 128,
  TRANSPOSING = 2, /* times this where packing transposes, */
  GATHERING = 1,   /* and once more for patches, which are gathered first. */
  /* Of patches gathered at once: they stay in the second-level cache beside what they are packed for. */
  GATHERED_BYTES = 64 << 10,
  SHALLOW = 10, /* k below it is mostly padding */
  /* split_k: k at least this and so many times the rows and columns, where both blocks of sums fit the
   * second-level cache. */
  DEEP = 512,
  DEEP_RATIO = 4,
  DEEP_RESULTS = 1 << 18,
  /* Adding the two halves costs as much as so many steps of k, where threads must meet for it. */
  ADDING = 256,
  /* More columns repay packing A. */
  IN_PLACE_COLUMNS = 256,
  /* Rows this far apart share a set of the first-level cache. */
  CACHE_ALIAS = 4096,
};

/* A row or column packed for all threads costs so many times as much, since it goes through memory, and a
 * little for each block that reads it from there. */
static const double SHARED_PACKING = 2, SHARED_READING = 0.1;

/* By the number of parts. `depth`: of a block of k. `block`: rows and columns of a block of C, which has 1
 * MiB, beside a block of A and one of B. `shared_rows`: the same where an operand is shared, which leaves
 * space for what is prefetched (not fewer columns, because updates in epilogues want long rows). `few`,
 * `operations`: smaller products are for the kernels that widen. */
static const struct {
  int64_t depth, block, shared_rows;
  int64_t few, operations;
} measured[] = {[1] = {256, 512, 256, 6, 1 << 13}, [2] = {256, 512, 256, 12, 1 << 17}};

const char *mix_amx_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                       const mix_gemm_problem *p) {
  if (dtype == MIX_FLOAT32 && p->precision.float32 != MIX_FLOAT32_HIGH)
    return "full float32 precision in force";
  const int parts = mix_amx_parts(dtype);
  if (p->m <= measured[parts].few) return "few rows, bound by reading B";
  /* With one part packing costs as much as reading. Only sums along vectors of k, of an NN product, do
   * without it. */
  if (p->n <= measured[parts].few && (parts == 2 || !p->transpose_a))
    return "few columns, bound by reading A";
  if (p->k < SHALLOW) return "few products in a sum";
  if (mix_gemm_multiplications(p) < (double)measured[parts].operations) return "too small to repay packing";
  return NULL;
}

/* Bytes of rows or columns packed for `depth` of k, and a flag for each step behind them. */
static size_t packed_bytes(const mix_gemm_plan *plan, int64_t count, int64_t depth) {
  const int64_t steps = divide_up(count, AMX_PANEL) * divide_up(depth, AMX_STEP);
  return (size_t)round_up(steps * (mix_amx_parts(plan->storage->dtype) * AMX_PAIR + 1), 64);
}

/* Costs of packing rows of A [0] and columns of B [1], in PACKING. */
static void packing_costs(const mix_gemm_problem *p, int64_t costs[2]) {
  costs[0] = (p->transpose_a ? TRANSPOSING : 1) + (p->patches ? GATHERING : 0);
  costs[1] = p->transpose_b ? TRANSPOSING : 1;
}

/* Completes a plan of patches that has its blocks. */
static void lay_out_gathering(mix_gemm_plan *plan) {
  mix_amx_plan *own = mix_amx_plan_in(plan);
  const mix_gemm_problem *p = &plan->problem;
  if (!p->patches) return;
  const int64_t size = (int64_t)mix_dtype_size(plan->storage->dtype), panel = AMX_PANEL * plan->kc * size;
  const int64_t panels = GATHERED_BYTES > panel ? GATHERED_BYTES / panel : 1;
  own->gathered_rows = smaller(panels * AMX_PANEL, plan->mc);
  const int64_t rows = p->transpose_a ? plan->kc : own->gathered_rows,
                columns = p->transpose_a ? own->gathered_rows : plan->kc;
  own->gathered_bytes = (size_t)whole_lines(rows * mix_gemm_gathered_stride(columns) * size);
}

/* Completes a plan with split_k; returns its cost. A thread packs its half of k by itself: the rows of A or B
 * are often in its cache from the product before. */
static double lay_out_split_k(mix_gemm_plan *plan) {
  mix_amx_plan *own = mix_amx_plan_in(plan);
  const mix_gemm_problem *p = &plan->problem;
  const int parts = mix_amx_parts(plan->storage->dtype);
  const int64_t rows = smaller(round_up(divide_up(p->m, plan->grid_rows), AMX_PANEL), p->m);
  const int64_t columns = smaller(round_up(divide_up(p->n, plan->grid_columns), AMX_PANEL), p->n);
  plan->kc = even_block(divide_up(p->k, 2), measured[parts].depth, AMX_STEP);
  plan->mc = rows, plan->nc = columns;
  own->a_bytes = packed_bytes(plan, rows, own->a_in_place ? AMX_STEP : plan->kc);
  own->b_bytes = packed_bytes(plan, columns, plan->kc);
  own->c_stride = round_up(columns, AMX_PANEL) + 16;
  own->c_bytes = (size_t)(round_up(rows, AMX_PANEL) * own->c_stride) * sizeof(float);
  plan->barriers = own->grid_depth > 1;
  int64_t cost[2];
  packing_costs(p, cost);
  const double packing = (double)(cost[0] * rows + cost[1] * columns);
  const double results = (double)rows * (double)columns;
  return (results + PACKING * packing) / own->grid_depth +
         (plan->barriers ? results * ADDING / (double)p->k : 0);
}

/* Completes a plan that has its grid and its outer loop; returns the cost for the busiest thread. INFINITY:
 * it cannot share. */
static double lay_out(mix_gemm_plan *plan, bool share) {
  mix_amx_plan *own = mix_amx_plan_in(plan);
  const mix_gemm_problem *p = &plan->problem;
  const int parts = mix_amx_parts(plan->storage->dtype), outer = own->columns_outside, inner = !outer;
  const int64_t all[2] = {p->m, p->n}, grid[2] = {plan->grid_rows, plan->grid_columns};
  int64_t packing_cost[2];
  packing_costs(p, packing_cost);
  if (share && own->a_in_place && inner == 0) return INFINITY;
  int64_t size[2], block[2], blocks[2];
  for (int i = 0; i < 2; i++) {
    size[i] = smaller(round_up(divide_up(all[i], grid[i]), AMX_PANEL), all[i]);
    block[i] =
        even_block(size[i], share && i == 0 ? measured[parts].shared_rows : measured[parts].block, AMX_PANEL);
    blocks[i] = divide_up(size[i], block[i]);
  }
  plan->kc = even_block(p->k, measured[parts].depth, AMX_STEP);
  plan->mc = block[0], plan->nc = block[1];
  own->keep_outer = blocks[inner] > 1 && packed_bytes(plan, block[outer], p->k) <= KEPT_BYTES;

  const size_t whole_block = packed_bytes(plan, block[inner], p->k);
  const int64_t max = whole_block ? (int64_t)(SHARED_BYTES / whole_block) : blocks[inner];
  own->shared_blocks = share && whole_block ? smaller(blocks[inner], max) : 0;
  if (share && (own->shared_blocks == 0 || grid[inner] != 1)) return INFINITY;
  const int64_t parts_shared = share ? divide_up(blocks[inner], own->shared_blocks) : 0;
  own->shared_block_bytes = whole_block;
  plan->barriers = plan->threads > 1 && share ? (int)(2 * parts_shared) - 1 : 0;

  size_t bytes[2];
  bytes[outer] = packed_bytes(plan, block[outer], own->keep_outer ? p->k : plan->kc);
  bytes[inner] = share ? 0 : packed_bytes(plan, block[inner], plan->kc);
  if (own->a_in_place)
    bytes[0] = packed_bytes(plan, block[0], AMX_STEP); /* the tail of k behind whole steps */
  own->a_bytes = bytes[0], own->b_bytes = bytes[1];
  own->c_stride = block[1] + 16; /* off a power of two */
  own->c_bytes = (size_t)((p->k > plan->kc ? block[0] : AMX_PANEL) * own->c_stride) * sizeof(float);

  const int64_t outer_times = share ? parts_shared : own->keep_outer ? 1 : blocks[inner];
  const double inner_times = share ? SHARED_PACKING / plan->threads : (double)blocks[outer];
  const double packing = (double)(packing_cost[outer] * size[outer] * outer_times) +
                         (double)(packing_cost[inner] * size[inner]) * inner_times;
  const double reading = share ? SHARED_READING * (double)(size[inner] * blocks[outer]) : 0;
  return (double)size[0] * (double)size[1] + PACKING * (packing + reading);
}

bool mix_amx_splits_k(const mix_gemm_problem *p) {
  const int64_t larger = p->m > p->n ? p->m : p->n;
  return p->k >= DEEP && p->k >= DEEP_RATIO * larger && p->m * p->n <= DEEP_RESULTS;
}

/* Tiles read rows of A in place where few panels of columns use them and they do not share sets of the
 * first-level cache. */
static bool reads_a_in_place(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype);
  if (mix_amx_parts(plan->storage->dtype) > 1 || p->transpose_a || p->patches) return false;
  return p->m % (AMX_PANEL / 2) == 0 && p->k >= AMX_STEP && p->n <= IN_PLACE_COLUMNS &&
         p->lda * stored % CACHE_ALIAS != 0;
}

void mix_amx_make_plan(mix_gemm_plan *plan) {
  const int threads = plan->threads;
  double best = INFINITY;
  mix_gemm_plan candidate = *plan;
  mix_amx_plan *own = mix_amx_plan_in(&candidate);
  own->split_k = mix_amx_splits_k(&plan->problem);
  own->a_in_place = reads_a_in_place(&candidate);
  const int depths = own->split_k ? 2 : 1, ways = own->split_k ? 1 : 4;
  for (int depth = 1; depth <= depths; depth++)
    for (int rows = 1; rows <= threads; rows++)
      for (int way = 0; way < ways && threads % (depth * rows) == 0; way++) {
        own->grid_depth = depth, candidate.grid_rows = rows,
        candidate.grid_columns = threads / (depth * rows);
        own->columns_outside = way & 1;
        const double cost = own->split_k ? lay_out_split_k(&candidate) : lay_out(&candidate, way & 2);
        if (cost < best) best = cost, *plan = candidate;
      }
  lay_out_gathering(plan);
  plan->stream = mix_gemm_streams_result(plan);
}

mix_gemm_workspace mix_amx_workspace(const mix_gemm_plan *plan) {
  const mix_amx_plan *own = mix_amx_plan_of(plan);
  const size_t packed = own->a_bytes + own->b_bytes + own->gathered_bytes;
  if (own->split_k)
    return (mix_gemm_workspace){2 * own->c_bytes * (size_t)(plan->grid_rows * plan->grid_columns), packed};
  return (mix_gemm_workspace){(size_t)own->shared_blocks * own->shared_block_bytes, packed + own->c_bytes};
}
