/* The engine with float16 sums: float16 and bfloat16 products in blocked accumulation (fp16.h).
 *
 * For each block of C and each block of k, its columns of B are packed (they stay in the second-level cache), then panels of rows of A are
 * packed one after the other, or some together where k goes from row to row, and multiplied with all panels of B. Where several blocks
 * of columns follow each other, a span, rows of A are packed for the first and kept for the others. Where few rows use B, its next block
 * is fetched while this one is multiplied. Sums are float32, in the workspace until the last block of k. */
#define GEMM_REAL float
#define GEMM_DOUBLE 0
#include "backend/backend.h"
#include "backend/cpu/gemm/fp16.h"
#include "backend/cpu/gemm/storage.h"
#include "backend/cpu/gemm/sizes.h"

/* Measured on a Sapphire Rapids with 2 MiB of second-level cache; 14 rows, 64 columns to a panel. */
enum {
  ROW_PANELS = 144,
  FEW_ROWS = 256, /* B is packed for so few that memory bounds packing: tiles fetch the block that is packed next */
  GROUP = 16,     /* panels of A packed together where k goes from row to row */
  TURNING_COLUMNS =
      128, /* repay turning rows of A that lie along k: more of them read the panel from the second-level cache, again and again */
  SHALLOW = 32, /* k below it: a block is mostly its end */
  FEW_COLUMNS = 12,
  FEW_OPERATIONS = 1 << 15,
  SPAN_SUMS = 24 << 20,         /* bytes of the sums of a span, at most */
  FEW_ROWS_SPAN_SUMS = 2 << 20, /* which each block of k reads and writes */
};

/* The largest blocks of B. Those that tiles fetch are small, and long in the direction of memory (by transpose_b): rows of B a power of two
 * apart share a few sets of the cache. */
typedef struct b_block {
  int depth, column_panels;
} b_block;
static const b_block many_rows_block = {768, 12}, few_rows_block[2] = {{128, 8}, {512, 3}};

static const char *refuses(const mix_gemm_problem *p, mix_dtype dtype, mix_accumulation served) {
  (void)dtype;
  if (served != mix_accumulation_wanted())
    return mix_accumulation_current() == MIX_ACCUMULATE_AUTO && served == MIX_ACCUMULATE_BLOCKED
               ? "AMX sums exactly, and faster"
               : "another accumulation is asked for";
  if (p->n <= FEW_COLUMNS || p->m <= FEW_COLUMNS) return "few rows or columns, bound by reading the other operand";
  if (p->k < SHALLOW) return "few products in a sum";
  if ((double)p->m * (double)p->n * (double)p->k < FEW_OPERATIONS) return "too small to repay packing";
  return NULL;
}

static int64_t panel_elements(const mix_gemm_plan *plan, int slots) {
  return (round_up(plan->depth_block, FP16_ROUND) + 2) * slots; /* off a power of two */
}
static int64_t panel_scales(const mix_gemm_plan *plan) { return divide_up(plan->depth_block, FP16_LEAST_STEP); }
static size_t panels_bytes(const mix_gemm_plan *plan, int64_t panels, int slots) {
  return (size_t)whole_lines(panels * panel_elements(plan, slots) * (int64_t)sizeof(uint16_t));
}
static size_t scales_bytes(const mix_gemm_plan *plan, int64_t panels) {
  return (size_t)whole_lines(panels * panel_scales(plan) * (int64_t)sizeof(float));
}
static bool spans(const mix_gemm_plan *plan) { return plan->column_span > plan->column_block; }
static int64_t packed_at_once(const mix_gemm_plan *plan) { return plan->problem.transpose_a ? GROUP : 1; }

static void make_plan(mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  mix_gemm_choose_grid(plan, FP16_ROWS, FP16_COLUMNS);
  const int64_t row_panels = divide_up(divide_up(p->m, FP16_ROWS), plan->grid_rows);
  const int64_t column_panels = divide_up(divide_up(p->n, FP16_COLUMNS), plan->grid_columns);
  plan->row_block = even_block(row_panels, ROW_PANELS, 1) * FP16_ROWS;
  const bool few = smaller(p->m, row_panels * FP16_ROWS) <= FEW_ROWS;
  const b_block *most = few ? &few_rows_block[p->transpose_b] : &many_rows_block;
  plan->depth_block = round_up(even_block(p->k, most->depth, 1), FP16_MOST_STEP);
  plan->column_block = even_block(column_panels, most->column_panels, 1) * FP16_COLUMNS;
  plan->fetch_b = few;

  const bool summed = p->k > plan->depth_block; /* in the workspace */
  const int64_t sums = (few ? FEW_ROWS_SPAN_SUMS : SPAN_SUMS) / (int64_t)sizeof(float);
  const int64_t fit = summed ? sums / plan->row_block / plan->column_block : column_panels;
  plan->column_span = smaller(fit > 1 ? fit * plan->column_block : plan->column_block, column_panels * FP16_COLUMNS);
  plan->a_panels = (int)(spans(plan) ? plan->row_block / FP16_ROWS : packed_at_once(plan));
  plan->a_bytes = scales_bytes(plan, plan->a_panels) + panels_bytes(plan, plan->a_panels, FP16_ROW_SLOTS);
  plan->b_bytes = scales_bytes(plan, FP16_MOST_PANELS) + panels_bytes(plan, plan->column_block / FP16_COLUMNS, FP16_COLUMNS);
  plan->c_stride = (summed ? plan->column_span : plan->column_block) + 16; /* off a power of two */
  plan->c_bytes = (size_t)((summed ? plan->row_block : FP16_ROWS) * plan->c_stride) * sizeof(float);
  plan->thread_bytes = plan->a_bytes + plan->b_bytes + plan->c_bytes;
}

/* A thread's part of the work, and its workspace. */
typedef struct run_state {
  const mix_gemm_plan *plan;
  const mix_gemm_operands *operands;
  mix_fp16_packing pack_a, pack_b;
  mix_fp16_sums sums;
  int64_t row_panels; /* of the whole product: rows are shared evenly among them */
  float *a_scales, *b_scales, *c;
  uint16_t *a, *b;
} run_state;

/* A block of C, in panels, and of k; the columns of its span. */
typedef struct block {
  int64_t row, rows, column, columns, k, depth, span, span_end;
} block;

static int64_t first_row(const run_state *s, int64_t panel) { return s->plan->problem.m * panel / s->row_panels; }
static int64_t first_column(const run_state *s, int64_t panel) { return smaller(panel * FP16_COLUMNS, s->plan->problem.n); }

static void pack_columns(run_state *s, const block *x) {
  int64_t starts[FP16_MOST_PANELS + 1];
  for (int64_t i = 0; i <= x->columns; i++) starts[i] = first_column(s, x->column + i);
  mix_fp16_pack(&s->pack_b, (int)x->columns, starts, x->k, x->depth, s->b, panel_elements(s->plan, FP16_COLUMNS), s->b_scales,
                panel_scales(s->plan));
}

/* `count` panels of the block from `panel` on, to the `index`th packed and what follows. */
static void pack_rows(run_state *s, const block *x, int64_t panel, int64_t count, int64_t index) {
  const int64_t elements = panel_elements(s->plan, FP16_ROW_SLOTS), scales = panel_scales(s->plan);
  int64_t starts[FP16_MOST_PANELS + 1];
  for (int64_t i = 0; i <= count; i++) starts[i] = first_row(s, x->row + panel + i);
  mix_fp16_pack(&s->pack_a, (int)count, starts, x->k, x->depth, s->a + index * elements, elements, s->a_scales + index * scales,
                scales);
}

/* What tiles fetch of B, as it is stored: `rows` of so many bytes. The chains of a tile fetch a part of as many rows. */
typedef struct upcoming {
  const char *memory;
  int64_t stride, rows, bytes, row, byte;
} upcoming;

static upcoming upcoming_block(const run_state *s, const block *x) {
  const mix_gemm_problem *p = &s->plan->problem;
  const int64_t column = first_column(s, x->column), columns = first_column(s, x->column + x->columns) - column;
  const int64_t row = p->transpose_b ? column : x->k, at = p->transpose_b ? x->k : column, size = sizeof(uint16_t);
  return (upcoming){.memory = (const char *)s->operands->b + (row * p->ldb + at) * size,
                    .stride = p->ldb * size,
                    .rows = p->transpose_b ? columns : x->depth,
                    .bytes = (p->transpose_b ? x->depth : columns) * size};
}

/* What a tile of so many chains fetches, and the step from one chain to the next; 0: nothing is left. */
static const char *fetch_ahead(upcoming *next, int64_t chains, int64_t *step) {
  *step = 0;
  if (next->byte >= next->bytes) return NULL;
  const char *from = next->memory + next->row * next->stride + next->byte;
  *step = next->stride;
  if ((next->row += chains) >= next->rows) next->row = 0, next->byte += FP16_AHEAD;
  return from;
}

/* Panel `panel` of rows, the `index`th packed, with all panels of columns; finished after the last k. */
static void multiply(run_state *s, const block *x, int64_t panel, int64_t index, upcoming *next) {
  const mix_gemm_plan *plan = s->plan;
  const int64_t row = first_row(s, panel), rows = first_row(s, panel + 1) - row, scales = panel_scales(plan);
  const bool first = x->k == 0, last = x->k + x->depth == plan->problem.k;
  const int64_t column = first_column(s, x->column), end = first_column(s, x->column + x->columns);
  float *c = s->c;
  if (!first || !last) c += (row - first_row(s, x->row)) * plan->c_stride + (x->column - x->span) * FP16_COLUMNS;
  if (x->depth == 0) memset(c, 0, (size_t)(rows * plan->c_stride) * sizeof *c); /* k is 0 */
  for (int64_t j = 0; j < x->columns && x->depth; j++) {
    const int64_t width = first_column(s, x->column + j + 1) - first_column(s, x->column + j);
    if (last) mix_gemm_prefetch_result(plan, s->operands, row, rows, first_column(s, x->column + j), width);
    int64_t step;
    const char *ahead = fetch_ahead(next, x->depth / s->sums.length, &step);
    mix_fp16_multiply_tile[s->pack_a.as_rows][rows - 1][width > FP16_COLUMNS / 2](
        &s->sums, x->depth, s->a + index * panel_elements(plan, FP16_ROW_SLOTS), s->a_scales + index * scales,
        s->b + j * panel_elements(plan, FP16_COLUMNS), s->b_scales + j * scales, c + j * FP16_COLUMNS, plan->c_stride, first, ahead,
        step);
  }
  if (last) mix_gemm_finish(plan, s->operands, c, plan->c_stride, row, rows, column, end - column, panel + 1 < x->row + x->rows);
}

/* `next`: the block that is packed next; NULL: none. */
static void multiply_block(run_state *s, const block *x, const block *next) {
  const int64_t group = packed_at_once(s->plan);
  upcoming fetched = next && s->plan->fetch_b ? upcoming_block(s, next) : (upcoming){0};
  pack_columns(s, x);
  for (int64_t panel = 0; panel < x->rows; panel++) {
    const int64_t index = panel % s->plan->a_panels;
    if (panel % group == 0 && x->column == x->span) pack_rows(s, x, panel, smaller(group, x->rows - panel), index);
    multiply(s, x, x->row + panel, index, &fetched);
  }
}

/* As many columns and as much of k as are left, at most a block. */
static void size_block(const run_state *s, block *x) {
  x->columns = smaller(s->plan->column_block / FP16_COLUMNS, x->span_end - x->column);
  x->depth = smaller(s->plan->depth_block, s->plan->problem.k - x->k);
}

/* The next block of the same rows and the same span: its columns, then the next k. False: none is left. */
static bool advance(const run_state *s, block *x) {
  x->column += x->columns;
  if (x->column >= x->span_end) x->column = x->span, x->k += x->depth;
  if (x->k >= s->plan->problem.k && x->column == x->span) return false;
  size_block(s, x);
  return true;
}

static void run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team, void *shared, void *own) {
  (void)shared; /* nothing is */
  const mix_gemm_problem *p = &plan->problem;
  const mix_gemm_engine *engine = plan->engine;
  const int step = engine->chains * engine->chain > FP16_LEAST_STEP ? FP16_MOST_STEP : FP16_LEAST_STEP;
  const int bits = step == FP16_MOST_STEP ? 15 - 7 : 15 - 6; /* of a product, so that `step` of them have 15 */
  run_state s = {.plan = plan,
                 .operands = operands,
                 .pack_a = {operands->a, p->lda, p->transpose_a, plan->storage->dtype, FP16_ROW_SLOTS,
                            !p->transpose_a && plan->column_block <= TURNING_COLUMNS, (bits + 1) / 2, step},
                 .pack_b = {operands->b, p->ldb, !p->transpose_b, plan->storage->dtype, FP16_COLUMNS, false, bits / 2, step},
                 .sums = {engine->chains, engine->chain, step},
                 .row_panels = divide_up(p->m, FP16_ROWS)};
  char *memory = own;
  s.a_scales = (float *)memory, s.a = (uint16_t *)(memory + scales_bytes(plan, plan->a_panels)), memory += plan->a_bytes;
  s.b_scales = (float *)memory, s.b = (uint16_t *)(memory + scales_bytes(plan, FP16_MOST_PANELS)), memory += plan->b_bytes;
  s.c = (float *)memory;
  int64_t row_begin, row_end, column_begin, column_end;
  mix_gemm_share(s.row_panels, 1, team->rank / plan->grid_columns, plan->grid_rows, &row_begin, &row_end);
  mix_gemm_share(divide_up(p->n, FP16_COLUMNS), 1, team->rank % plan->grid_columns, plan->grid_columns, &column_begin, &column_end);
  const int64_t block_rows = plan->row_block / FP16_ROWS, span = plan->column_span / FP16_COLUMNS;
  for (int64_t column = column_begin; column < column_end; column += span)
    for (int64_t row = row_begin; row < row_end; row += block_rows) {
      block x = {.row = row, .rows = smaller(block_rows, row_end - row)}, next;
      x.column = x.span = column, x.span_end = smaller(column + span, column_end);
      size_block(&s, &x);
      bool more;
      do {
        next = x;
        more = advance(&s, &next);
        multiply_block(&s, &x, more ? &next : NULL);
        x = next;
      } while (more);
    }
}

static const mix_gemm_storage storages[] = {{MIX_FLOAT16}, {MIX_BFLOAT16}, {MIX_DTYPE_NONE}};

#define FP16_ENGINE(sums, chain_count, chain_length, accumulation)                                                                 \
  static const char *refuses_##sums(const mix_gemm_problem *problem, mix_dtype dtype) {                                            \
    return refuses(problem, dtype, accumulation);                                                                                  \
  }                                                                                                                                \
  const mix_gemm_engine mix_gemm_##sums##_avx512fp16 = {                                                                           \
      .rows = FP16_ROWS,                                                                                                           \
      .columns = FP16_COLUMNS,                                                                                                     \
      .lanes = LANES,                                                                                                              \
      .element = sizeof(uint16_t),                                                                                                 \
      .sum = sizeof(float),                                                                                                        \
      .chains = chain_count,                                                                                                       \
      .chain = chain_length,                                                                                                       \
      .storages = storages,                                                                                                        \
      .make_plan = make_plan,                                                                                                      \
      .run = run,                                                                                                                  \
      .refuses = refuses_##sums,                                                                                                   \
  };
FP16_ENGINE(t4x8, 4, 8, MIX_ACCUMULATE_BLOCKED_SHORT)
FP16_ENGINE(t4x16, 4, 16, MIX_ACCUMULATE_BLOCKED)
FP16_ENGINE(t4x32, 4, 32, MIX_ACCUMULATE_BLOCKED_LONG)
