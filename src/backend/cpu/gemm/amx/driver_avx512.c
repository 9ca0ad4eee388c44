/* Driver of the AMX engine: bfloat16 products with float32 sums, and products of float16, or of float32 on
 * request, as three of bfloat16 (amx.h).
 *
 * TDPBF16PS is so fast that loads and packing bound a product. A block of C stays in the second-level cache
 * as float32 for all of k. For each block of k its rows of A and columns of B are packed into the same cache;
 * then a panel of A stays in the first-level cache while it is multiplied with all panels of B. What the
 * outer loop over blocks packs is kept for the inner one. The team packs the inner loop's operand for all
 * threads in advance, where enough blocks of the outer loop use it. Rows of a bfloat16 A that few columns use
 * are not packed. Patches of images are gathered, a few panels at a time, and then packed as a matrix.
 *
 * The order of sums depends on the shape alone: each element of C takes the steps of k in order, or those of
 * either half of k where C is small and k large (plan_avx512.c). Sums that leave a tile register keep all
 * their bits. */
#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/block_arithmetic.h"

static const mix_amx_storage amx_storages[] = {
    {.dtype = MIX_BFLOAT16,
     .pack = {{mix_amx_pack_a_along_bf16, mix_amx_pack_a_across_bf16},
              {mix_amx_pack_b_along_bf16, mix_amx_pack_b_across_bf16}}},
    {.dtype = MIX_FLOAT16,
     .pack = {{mix_amx_pack_a_along_f16, mix_amx_pack_a_across_f16},
              {mix_amx_pack_b_along_f16, mix_amx_pack_b_across_f16}},
     .pack_line = mix_amx_pack_line_f16},
    {.dtype = MIX_FLOAT32,
     .pack = {{mix_amx_pack_a_along_f32, mix_amx_pack_a_across_f32},
              {mix_amx_pack_b_along_f32, mix_amx_pack_b_across_f32}},
     .pack_line = mix_amx_pack_line_f32},
};

const mix_amx_storage *mix_amx_storage_of(mix_dtype dtype) {
  const mix_amx_storage *storage = amx_storages;
  while (storage->dtype != dtype) storage++;
  return storage;
}

/* An operand: rows of op(A) or columns of op(B). */
typedef struct operand {
  mix_gemm_view lines; /* whose rows are these rows or columns, and whose columns are k */
  mix_amx_pack *pack;
  unsigned char *packed, *flags;
  bool kept;      /* packed for all of k */
  bool in_place;  /* of A: only the tail of k behind whole steps is packed */
  char *gathered; /* of patches: where `gathered_rows` of them are gathered before they are packed */
  int64_t gathered_rows;
} operand;

/* Rows or columns [first, first + count) of an operand for [k, k + depth), and where they are packed. */
typedef struct operand_block {
  int64_t first, count, bytes; /* of a panel */
  const unsigned char *packed, *flags;
  const char *source; /* rows `stride` bytes apart; NULL: not in place */
  int64_t stride;
} operand_block;

/* Packs lines [first, first + count) for [k, k + depth); `panel` bytes from panel to panel. Patches are
 * gathered first, some whole panels at a time. */
static void pack_lines(const operand *x, int64_t first, int64_t count, int64_t k, int64_t depth,
                       int64_t panel, unsigned char *packed, unsigned char *flags) {
  const int64_t some = x->gathered ? x->gathered_rows : count;
  for (int64_t at = 0; at < count; at += some) {
    const int64_t lines = smaller(some, count - at), panels = at / AMX_PANEL;
    const mix_gemm_view block =
        mix_gemm_view_block(&x->lines, first + at, lines, k, depth, x->gathered, NULL);
    x->pack(block.base, block.stride, lines, depth, packed + panels * panel,
            flags + panels * divide_up(depth, AMX_STEP));
  }
}

static operand_block pack(const mix_gemm_plan *plan, const operand *x, int64_t first, int64_t count,
                          int64_t k, int64_t depth, bool done) {
  const int64_t panels = divide_up(count, AMX_PANEL), step = mix_amx_parts(plan->storage->dtype) * AMX_PAIR;
  const int64_t before = x->kept ? k / AMX_STEP * panels : 0, panel = divide_up(depth, AMX_STEP) * step;
  if (x->in_place) {
    const int64_t whole = depth / AMX_STEP * AMX_STEP;
    if (whole < depth) pack_lines(x, first, count, k + whole, depth - whole, AMX_PAIR, x->packed, x->flags);
    return (operand_block){first,
                           count,
                           AMX_PAIR,
                           x->packed,
                           x->flags,
                           mix_gemm_view_at(&x->lines, first, k),
                           x->lines.stride * x->lines.size};
  }
  unsigned char *packed = x->packed + before * step, *flags = x->flags + before;
  if (!done) pack_lines(x, first, count, k, depth, panel, packed, flags);
  return (operand_block){first, count, panel, packed, flags, NULL, 0};
}

/* Panel i of a block of A, `depth` of k. */
static mix_amx_panel panel_of(const operand_block *a, int64_t i, int64_t depth) {
  const unsigned char *packed = a->packed + i * a->bytes;
  if (!a->source) return (mix_amx_panel){packed, NULL, AMX_PAIR, AMX_ROW};
  const unsigned char *rows = (const unsigned char *)a->source + i * AMX_PANEL * a->stride;
  return (mix_amx_panel){rows, depth % AMX_STEP ? packed : NULL, AMX_ROW, a->stride};
}

static void multiply(const mix_amx_tiles *tiles, const mix_gemm_plan *plan, const mix_gemm_operands *operands,
                     const operand_block *a, const operand_block *b, int64_t depth, bool first, bool last,
                     float *c) {
  const mix_amx_plan *own = mix_amx_plan_of(plan);
  const int parts = mix_amx_parts(plan->storage->dtype);
  mix_amx_multiply *const(*micro)[2] = parts == 2 ? tiles->split : a->source ? tiles->in_place : tiles->whole;
  const int64_t steps = divide_up(depth, AMX_STEP), stride = own->c_stride;
  /* Shared blocks are beyond the second-level cache: prefetch the next one, which is behind this one. */
  const operand_block *inner = own->columns_outside ? a : b;
  const unsigned char *prefetch =
      inner->packed + (own->shared_blocks ? divide_up(inner->count, AMX_PANEL) * inner->bytes : 0);
  const int64_t each = own->shared_blocks ? steps * parts * AMX_PREFETCH : 0;
  for (int64_t row = 0; row < a->count; row += AMX_PANEL) {
    const int64_t rows = smaller(AMX_PANEL, a->count - row), i = row / AMX_PANEL;
    const mix_amx_panel panel = panel_of(a, i, depth);
    float *strip = first && last ? c : c + row * stride;
    for (int64_t column = 0; column < b->count; column += AMX_PANEL, prefetch += each) {
      const int64_t j = column / AMX_PANEL;
      if (last) mix_gemm_prefetch_result(plan, operands, a->first + row, rows, b->first + column, AMX_PANEL);
      micro[rows > 16][b->count - column > 16](steps, &panel, b->packed + j * b->bytes, strip + column,
                                               stride * (int64_t)sizeof(float), first, a->flags + i * steps,
                                               b->flags + j * steps, prefetch);
    }
    if (last)
      mix_gemm_store_result(plan, operands, strip, stride, a->first + row, rows, b->first, b->count,
                            row + rows < a->count);
  }
}

/* Places the packed operand at `memory`, laid out for `count` rows or columns and `depth` of k. */
static void place(const mix_gemm_plan *plan, operand *x, unsigned char *memory, int64_t count,
                  int64_t depth) {
  x->packed = memory;
  x->flags = memory + divide_up(count, AMX_PANEL) * divide_up(depth, AMX_STEP) *
                          mix_amx_parts(plan->storage->dtype) * AMX_PAIR;
}

/* The team packs blocks [first, end) of an operand, one behind the other. A thread packs some blocks of k of
 * them. */
static void pack_shared(const mix_gemm_plan *plan, operand *x, const mix_team *team, unsigned char *memory,
                        int64_t first, int64_t end, int64_t block) {
  const mix_amx_plan *own = mix_amx_plan_of(plan);
  const int64_t k = plan->problem.k, k_blocks = divide_up(k, plan->kc);
  const size_t bytes = own->shared_block_bytes;
  int64_t i, last;
  mix_team_share(team, divide_up(end - first, block) * k_blocks, 1, &i, &last);
  for (; i < last; i++) {
    const int64_t number = i / k_blocks, from = first + number * block, first_k = i % k_blocks * plan->kc;
    place(plan, x, memory + (size_t)number * bytes, block, k);
    pack(plan, x, from, smaller(block, end - from), first_k, smaller(plan->kc, k - first_k), false);
  }
}

/* A thread's part of a product: its operands, the rows [0] and columns [1] of its block or blocks of C. */
typedef struct share {
  const mix_amx_tiles *tiles;
  const mix_gemm_plan *plan;
  const mix_gemm_operands *operands;
  const mix_team *team;
  operand x[2];
  int64_t begin[2], end[2];
} share;

/* Sums of a block of C over [k, end). done: the operand is packed already; finish: stores the result. */
static void sum(const share *s, const int64_t first[2], const int64_t count[2], int64_t k, int64_t end,
                const bool done[2], bool finish, float *c) {
  const mix_gemm_plan *plan = s->plan;
  const mix_amx_plan *own = mix_amx_plan_of(plan);
  const int outer = own->columns_outside, inner = !outer;
  const int64_t begin = k;
  operand_block at[2];
  do { /* once with an empty sum where k is 0 */
    const int64_t depth = smaller(plan->kc, end - k);
    at[outer] = pack(plan, &s->x[outer], first[outer], count[outer], k, depth, done[outer]);
    at[inner] = pack(plan, &s->x[inner], first[inner], count[inner], k, depth, done[inner]);
    multiply(s->tiles, plan, s->operands, &at[0], &at[1], depth, k == begin, finish && k + depth == end, c);
    k += depth;
  } while (k < end);
}

static void amx_run_blocks(share *s, unsigned char *shared, float *c) {
  const mix_gemm_plan *plan = s->plan;
  const mix_amx_plan *own = mix_amx_plan_of(plan);
  const int outer = own->columns_outside, inner = !outer;
  const int64_t k = plan->problem.k, block[2] = {plan->mc, plan->nc};
  const int64_t chunk =
      own->shared_blocks ? own->shared_blocks * block[inner] : s->end[inner] - s->begin[inner];
  const size_t bytes = own->shared_block_bytes;
  for (int64_t first = s->begin[inner]; first < s->end[inner]; first += chunk) {
    const int64_t last = smaller(first + chunk, s->end[inner]);
    if (own->shared_blocks) {
      if (plan->barriers && first > s->begin[inner])
        mix_team_barrier(s->team); /* all have used what is overwritten */
      pack_shared(plan, &s->x[inner], s->team, shared, first, last, block[inner]);
      if (plan->barriers) mix_team_barrier(s->team);
    }
    int64_t at[2], count[2];
    for (at[outer] = s->begin[outer]; at[outer] < s->end[outer]; at[outer] += block[outer])
      for (at[inner] = first; at[inner] < last; at[inner] += block[inner]) {
        count[outer] = smaller(block[outer], s->end[outer] - at[outer]),
        count[inner] = smaller(block[inner], last - at[inner]);
        if (own->shared_blocks)
          place(plan, &s->x[inner], shared + (size_t)((at[inner] - first) / block[inner]) * bytes,
                block[inner], k);
        bool done[2];
        done[outer] = own->keep_outer && at[inner] != first, done[inner] = own->shared_blocks;
        sum(s, at, count, 0, k, done, true, c);
      }
  }
}

/* One block of C with split_k: the sums over the two halves of k are side by side at `c`. Each half has a
 * thread of its own, or one thread does both. */
static void run_split_k(const share *s, float *c) {
  const mix_gemm_plan *plan = s->plan;
  const mix_amx_plan *own = mix_amx_plan_of(plan);
  const int64_t count[2] = {s->end[0] - s->begin[0], s->end[1] - s->begin[1]}, stride = own->c_stride;
  const int64_t half_stride = (int64_t)(own->c_bytes / sizeof(float));
  const int first_half = s->team->rank % own->grid_depth;
  const bool done[2] = {false, false};
  for (int half = first_half; half < 2; half += own->grid_depth) {
    int64_t begin, end;
    mix_gemm_share(plan->problem.k, AMX_STEP, half, 2, &begin, &end);
    sum(s, s->begin, count, begin, end, done, false, c + half * half_stride);
  }
  if (plan->barriers) mix_team_barrier(s->team);
  int64_t row, last;
  for (mix_gemm_share(count[0], AMX_PANEL, first_half, own->grid_depth, &row, &last); row < last;
       row += AMX_PANEL) {
    const int64_t rows = smaller(AMX_PANEL, last - row);
    float *strip = c + row * stride;
    const float *second = strip + half_stride;
    for (int64_t i = 0; i < rows * stride; i++) strip[i] += second[i];
    mix_gemm_store_result(plan, s->operands, strip, stride, s->begin[0] + row, rows, s->begin[1], count[1],
                          row + rows < last);
  }
}

void mix_amx_run(const mix_amx_tiles *tiles, const mix_gemm_plan *plan, const mix_gemm_operands *operands,
                 const mix_team *team, void *shared, void *workspace) {
  const mix_amx_plan *own = mix_amx_plan_of(plan);
  const mix_gemm_problem *p = &plan->problem;
  tiles->enter();
  const mix_amx_storage *storage = mix_amx_storage_of(plan->storage->dtype);
  const int block_index = team->rank / own->grid_depth, outer = own->columns_outside;
  share s = {.tiles = tiles, .plan = plan, .operands = operands, .team = team};
  mix_gemm_share(p->m, AMX_PANEL, block_index / plan->grid_columns, plan->grid_rows, &s.begin[0], &s.end[0]);
  mix_gemm_share(p->n, AMX_PANEL, block_index % plan->grid_columns, plan->grid_columns, &s.begin[1],
                 &s.end[1]);
  s.x[0].lines = operands->a, s.x[1].lines = mix_gemm_view_transposed(&operands->b);
  const int64_t block[2] = {plan->mc, plan->nc};
  const size_t bytes[2] = {own->a_bytes, own->b_bytes};
  unsigned char *memory = workspace;
  for (int i = 0; i < 2; i++) {
    operand *x = &s.x[i];
    x->pack = storage->pack[i][x->lines.transposed];
    x->kept = i == outer ? own->keep_outer : own->shared_blocks > 0;
    x->in_place = i == 0 && own->a_in_place;
    place(plan, x, memory, block[i], x->in_place ? AMX_STEP : x->kept ? p->k : plan->kc);
    memory += bytes[i];
  }
  if (p->patches) s.x[0].gathered = (char *)memory, s.x[0].gathered_rows = own->gathered_rows;
  memory += own->gathered_bytes;
  if (own->split_k)
    run_split_k(&s, (float *)((char *)shared + 2 * own->c_bytes * (size_t)block_index));
  else
    amx_run_blocks(&s, shared, (float *)memory);
  tiles->leave();
}
