/* The AMX engine: bfloat16 products with float32 sums, and products of float16, of float32 on request, as three of bfloat16 (amx.h).
 *
 * TDPBF16PS is so fast that a product is bound by what feeds it. A block of C stays in the second-level cache as float32 while all of
 * k passes; for each block of k its rows of A and columns of B are packed beside it, then a panel of A stays in the first-level cache
 * while those of B pass. The operand of the outer loop over blocks is packed once and kept. The order of sums depends on nothing: each
 * element of C goes through the steps of k in order, and sums that leave a register tile keep all their bits. */
#define GEMM_REAL float
#define GEMM_DOUBLE 0
#include "backend/cpu/gemm/amx.h"
#include "backend/backend.h"
#include "backend/cpu/gemm/storage.h"
#include <string.h>

enum {
  KEPT_BYTES = 32 << 20, /* of a packed operand, at most */
  PACKING = 128,         /* a row or column packed costs as much as so many elements of C */
  TURNING = 2,           /* times as much where packing transposes */
  SHALLOW = 10,          /* k below it is mostly padding */
};

/* By the number of parts; measured on a Sapphire Rapids with 2 MiB of second-level cache. A block of C of 1 MiB, and a block of A and
 * one of B beside it. `few`, `operations`: what the kernels that widen do better. */
static const struct {
  int64_t depth, rows, columns;
  int64_t few, operations;
} measured[] = {[1] = {256, 512, 512, 6, 1 << 13}, [2] = {256, 512, 512, 12, 1 << 17}};

static const mix_amx_storage amx_storages[] = {
    {.dtype = MIX_BFLOAT16,
     .parts = 1,
     .pack = {{mix_amx_pack_a_along_bf16, mix_amx_pack_a_across_bf16}, {mix_amx_pack_b_along_bf16, mix_amx_pack_b_across_bf16}}},
    {.dtype = MIX_FLOAT16,
     .parts = 2,
     .pack = {{mix_amx_pack_a_along_f16, mix_amx_pack_a_across_f16}, {mix_amx_pack_b_along_f16, mix_amx_pack_b_across_f16}}},
    {.dtype = MIX_FLOAT32,
     .parts = 2,
     .pack = {{mix_amx_pack_a_along_f32, mix_amx_pack_a_across_f32}, {mix_amx_pack_b_along_f32, mix_amx_pack_b_across_f32}}},
};

static int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }
static int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }
static int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }

static const mix_amx_storage *amx_storage(mix_dtype dtype) {
  const mix_amx_storage *storage = amx_storages;
  while (storage->dtype != dtype) storage++;
  return storage;
}

static const char *refuses(const mix_gemm_problem *p, mix_dtype dtype) {
  if (dtype == MIX_FLOAT32 && mix_float32_precision_current() != MIX_FLOAT32_HIGH) return "full float32 precision in force";
  const int parts = amx_storage(dtype)->parts;
  /* With one part packing costs as much as reading, and only vectors of sums along rows in memory do without. */
  const bool rows_in_place = parts == 2 || p->transpose_b, columns_in_place = parts == 2 || !p->transpose_a;
  if (p->m <= measured[parts].few && rows_in_place) return "few rows, bound by reading B";
  if (p->n <= measured[parts].few && columns_in_place) return "few columns, bound by reading A";
  if (p->k < SHALLOW) return "few products in a sum";
  if ((double)p->m * (double)p->n * (double)p->k < (double)measured[parts].operations) return "too small to repay packing";
  return NULL;
}

/* The grid of blocks of C, one a thread. */
static void share_among_threads(mix_gemm_plan *plan, int64_t *rows, int64_t *columns) {
  const mix_gemm_problem *p = &plan->problem;
  double best = -1;
  for (int r = 1; r <= plan->threads; r++) {
    if (plan->threads % r) continue;
    const int64_t m = round_up(divide_up(p->m, r), AMX_PANEL), n = round_up(divide_up(p->n, plan->threads / r), AMX_PANEL);
    const double cost = (double)m * (double)n + PACKING * (double)(m + n);
    if (best >= 0 && cost >= best) continue;
    best = cost, *rows = smaller(m, p->m), *columns = smaller(n, p->n);
    plan->grid_rows = r, plan->grid_columns = plan->threads / r;
  }
}

/* Blocks of even size: 784 rows are 416 and 368, not 512 and 272. */
static int64_t even(int64_t count, int64_t most, int64_t unit) {
  if (count == 0) return unit;
  return round_up(divide_up(count, divide_up(count, most)), unit);
}

static void make_plan(mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  const int64_t parts = amx_storage(plan->storage->dtype)->parts;
  int64_t rows = p->m, columns = p->n;
  share_among_threads(plan, &rows, &columns);
  plan->depth_block = even(p->k, measured[parts].depth, AMX_STEP);
  plan->row_block = even(rows, measured[parts].rows, AMX_PANEL);
  plan->column_block = even(columns, measured[parts].columns, AMX_PANEL);

  const int64_t row_blocks = divide_up(rows, plan->row_block), column_blocks = divide_up(columns, plan->column_block);
  const int64_t a_cost = rows * (p->transpose_a ? TURNING : 1), b_cost = columns * (p->transpose_b ? TURNING : 1);
  plan->columns_outside = b_cost + a_cost * column_blocks < a_cost + b_cost * row_blocks;
  const int64_t element = parts * AMX_PAIR / AMX_PANEL / AMX_STEP;
  const int64_t outer = plan->columns_outside ? plan->column_block : plan->row_block, depth = round_up(p->k, AMX_STEP);
  plan->keep = (plan->columns_outside ? row_blocks : column_blocks) > 1 && outer * depth * element <= KEPT_BYTES;
  const int64_t a_depth = plan->keep && !plan->columns_outside ? depth : plan->depth_block;
  const int64_t b_depth = plan->keep && plan->columns_outside ? depth : plan->depth_block;
  /* Behind the panels a flag for each step. */
  plan->a_bytes = (size_t)round_up(plan->row_block * a_depth * element + plan->row_block * a_depth / (AMX_PANEL * AMX_STEP), 64);
  plan->b_bytes =
      (size_t)round_up(plan->column_block * b_depth * element + plan->column_block * b_depth / (AMX_PANEL * AMX_STEP), 64);
  plan->c_stride = plan->column_block + 16; /* off a power of two */
  plan->c_bytes = (size_t)((p->k > plan->depth_block ? plan->row_block : AMX_PANEL) * plan->c_stride) * sizeof(float);
  plan->thread_bytes = plan->a_bytes + plan->b_bytes + plan->c_bytes;
}

/* An operand: rows of op(A) or columns of op(B). */
typedef struct operand {
  const char *source;
  int64_t stride, size; /* elements from row to row; bytes of an element */
  bool across;          /* k goes from row to row */
  mix_amx_pack *pack;
  unsigned char *packed, *flags;
  bool kept;
} operand;

/* Rows or columns [first, first + count), [k, k + depth), and where they are packed. */
typedef struct piece {
  int64_t first, count, bytes; /* of a panel */
  const unsigned char *packed, *flags;
} piece;

static void pack(const mix_gemm_plan *plan, const operand *x, piece *at, int64_t k, int64_t depth, bool done) {
  const int64_t panels = divide_up(at->count, AMX_PANEL), step = amx_storage(plan->storage->dtype)->parts * AMX_PAIR;
  const int64_t before = x->kept ? k / AMX_STEP * panels : 0;
  const char *source = x->source + (x->across ? k * x->stride + at->first : at->first * x->stride + k) * x->size;
  if (!done) x->pack(source, x->stride, at->count, depth, x->packed + before * step, x->flags + before);
  at->packed = x->packed + before * step, at->flags = x->flags + before;
  at->bytes = divide_up(depth, AMX_STEP) * step;
}

static void multiply(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const piece *a, const piece *b, int64_t depth,
                     bool first, bool last, float *c) {
  mix_amx_multiply *const(*micro)[2] =
      amx_storage(plan->storage->dtype)->parts == 2 ? mix_amx_multiply_split : mix_amx_multiply_whole;
  const int64_t steps = divide_up(depth, AMX_STEP), stride = plan->c_stride;
  for (int64_t row = 0; row < a->count; row += AMX_PANEL) {
    const int64_t rows = smaller(AMX_PANEL, a->count - row), i = row / AMX_PANEL;
    float *strip = first && last ? c : c + row * stride;
    for (int64_t column = 0; column < b->count; column += AMX_PANEL) {
      const int64_t j = column / AMX_PANEL;
      if (last && (row == 0 || !operands->epilogue))
        mix_gemm_prefetch_result(plan, operands, a->first + row, rows, b->first + column, AMX_PANEL);
      micro[rows > 16][b->count - column > 16](steps, a->packed + i * a->bytes, b->packed + j * b->bytes, strip + column,
                                               stride * (int64_t)sizeof(float), first, a->flags + i * steps, b->flags + j * steps);
    }
    if (last) mix_gemm_finish(plan, operands, strip, stride, a->first + row, rows, b->first, b->count, a->count - row - rows);
  }
}

static void run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, int rank, void *workspace) {
  const mix_gemm_problem *p = &plan->problem;
  const mix_amx_storage *storage = amx_storage(plan->storage->dtype);
  int64_t begin[2], end[2];
  mix_gemm_share(p->m, AMX_PANEL, rank / plan->grid_columns, plan->grid_rows, &begin[0], &end[0]);
  mix_gemm_share(p->n, AMX_PANEL, rank % plan->grid_columns, plan->grid_columns, &begin[1], &end[1]);
  if (begin[0] >= end[0] || begin[1] >= end[1]) return;
  const int64_t block[2] = {plan->row_block, plan->column_block};
  const int outer = plan->columns_outside, inner = !outer;
  const size_t bytes[2] = {plan->a_bytes, plan->b_bytes};
  operand operand_of[2] = {{.source = operands->a, .stride = p->lda, .across = p->transpose_a},
                           {.source = operands->b, .stride = p->ldb, .across = !p->transpose_b}};
  unsigned char *memory = workspace;
  for (int i = 0; i < 2; i++) {
    operand *x = &operand_of[i];
    x->size = (int64_t)mix_dtype_size(storage->dtype);
    x->pack = storage->pack[i][x->across];
    x->kept = plan->keep && i == outer;
    const int64_t depth = x->kept ? round_up(p->k, AMX_STEP) : plan->depth_block;
    x->packed = memory, x->flags = memory + block[i] * depth * storage->parts * AMX_PAIR / AMX_PANEL / AMX_STEP;
    memory += bytes[i];
  }
  float *c = (float *)memory;
  piece at[2];
  for (int64_t o = begin[outer]; o < end[outer]; o += block[outer])
    for (int64_t i = begin[inner]; i < end[inner]; i += block[inner]) {
      at[outer].first = o, at[outer].count = smaller(block[outer], end[outer] - o);
      at[inner].first = i, at[inner].count = smaller(block[inner], end[inner] - i);
      int64_t k = 0;
      do { /* once with an empty sum where k is 0 */
        const int64_t depth = smaller(plan->depth_block, p->k - k);
        pack(plan, &operand_of[outer], &at[outer], k, depth, plan->keep && i != begin[inner]);
        pack(plan, &operand_of[inner], &at[inner], k, depth, false);
        multiply(plan, operands, &at[0], &at[1], depth, k == 0, k + depth == p->k, c);
        k += depth;
      } while (k < p->k);
    }
}

GEMM_NARROW_ROWS(f16)
GEMM_NARROW_ROWS(bf16)

static void narrow_rows_f32(const void *sums, int64_t stride, int64_t rows, int64_t columns, void *result, int64_t result_stride) {
  for (int64_t i = 0; i < rows; i++)
    memcpy((float *)result + i * result_stride, (const float *)sums + i * stride, sizeof(float) * (size_t)columns);
}

static const mix_gemm_storage storages[] = {
    {.dtype = MIX_FLOAT32, .narrow = narrow_rows_f32},
    {.dtype = MIX_FLOAT16, .narrow = narrow_rows_f16},
    {.dtype = MIX_BFLOAT16, .narrow = narrow_rows_bf16},
    {.dtype = MIX_DTYPE_NONE},
};

const mix_gemm_engine mix_gemm_f32_amx = {
    .rows = AMX_PANEL,
    .columns = AMX_PANEL,
    .lanes = LANES,
    .element = sizeof(uint16_t),
    .sum = sizeof(float),
    .storages = storages,
    .enter = mix_amx_enter,
    .leave = mix_amx_leave,
    .make_plan = make_plan,
    .run = run,
    .refuses = refuses,
};
