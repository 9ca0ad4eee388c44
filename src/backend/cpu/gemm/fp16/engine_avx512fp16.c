/* The engine with float16 sums: float16 and bfloat16 products in blocked accumulation (fp16.h).
 *
 * For each block of C and each block of k, its columns of B are packed (they stay in the second-level cache),
 * then panels of rows of A are packed one after the other, or some together where k goes from row to row, and
 * multiplied with all panels of B. Where several blocks of columns follow each other, a span, rows of A are
 * packed for the first and kept for the others; what all tiles of a share have in common, its rows of A or
 * columns of B, for all of k and all tiles, where they fit. Where few rows use B, its next block is fetched
 * while this one is multiplied. Sums are float32, in the workspace until the last block of k. */
#define GEMM_REAL float
#define GEMM_DOUBLE 0
#include "backend/backend.h"
#include "backend/cpu/gemm/fp16/fp16.h"
#include "backend/cpu/gemm/blocked/storage.h"
#include "backend/cpu/gemm/sizes.h"

/* Measured on a Sapphire Rapids with 2 MiB of second-level cache; 14 rows, 64 columns to a panel. */
enum {
  ROW_PANELS = 144,
  FEW_ROWS =
      256, /* B is packed for so few that memory bounds packing: tiles fetch the block that is packed next */
  GROUP = 16, /* panels of A packed together where k goes from row to row; threads take about as many from
                 each other, */
  CLAIMED_COLUMNS = 2,   /* or panels of B */
  TURNING_COLUMNS = 128, /* repay turning rows of A that lie along k: more of them read the panel from the
                            second-level cache, again and again */
  SHALLOW = 32,          /* k below it: a block is mostly its end */
  FEW_COLUMNS = 12,
  FEW_OPERATIONS = 1 << 15,
  LARGE_OPERATIONS = 1 << 26,   /* and */
  LARGE_ROWS = 32,              /* from which on blocks are longer by themselves */
  SPAN_SUMS = 24 << 20,         /* bytes of the sums of a span, at most */
  FEW_ROWS_SPAN_SUMS = 2 << 20, /* which each block of k reads and writes */
};

/* The largest blocks of B. Those that tiles fetch are small, and long in the direction of memory (by
 * transpose_b): rows of B a power of two panel_stride share a few sets of the cache. */
typedef struct b_block {
  int depth, column_panels;
} b_block;
static const b_block many_rows_block = {768, 12}, few_rows_block[2] = {{128, 8}, {512, 3}};

/* `auto` takes longer chains for large products. They end less often: 1.03 to 1.1 times as fast, but for few
 * rows, which packing of B bounds. They err three tenths more, in bfloat16 little beside the rounding of its
 * operands (docs/NUMERICS.md). */
static const char *unsupported_reason_sums(const mix_gemm_problem *p, mix_accumulation served) {
  const mix_accumulation asked = mix_accumulation_current();
  if (asked != MIX_ACCUMULATE_AUTO) return served == asked ? NULL : "another accumulation is asked for";
  if (mix_accumulation_wanted() == MIX_ACCUMULATE_EXACT) return "AMX sums exactly, and faster";
  const bool large = mix_gemm_multiplications(p) >= LARGE_OPERATIONS && p->m >= LARGE_ROWS;
  if (served == MIX_ACCUMULATE_BLOCKED_LONG) return large ? NULL : "auto sums large products alone this way";
  if (served == MIX_ACCUMULATE_BLOCKED) return large ? "auto has longer chains for large products" : NULL;
  return "auto never sums this way";
}

static const char *unsupported_reason(const mix_gemm_problem *p, mix_accumulation served) {
  if (p->n <= FEW_COLUMNS || p->m <= FEW_COLUMNS)
    return "few rows or columns, bound by reading the other operand";
  if (p->k < SHALLOW) return "few products in a sum";
  if (mix_gemm_multiplications(p) < FEW_OPERATIONS) return "too small to repay packing";
  return unsupported_reason_sums(p, served);
}

static int64_t panel_elements(const mix_gemm_plan *plan, int slots) {
  return (round_up(plan->kc, FP16_ROUND) + 2) * slots; /* off a power of two */
}
static int64_t panel_scales(const mix_gemm_plan *plan) { return divide_up(plan->kc, FP16_MIN_STEP); }
static size_t panels_bytes(const mix_gemm_plan *plan, int64_t panels, int slots) {
  return (size_t)whole_lines(panels * panel_elements(plan, slots) * (int64_t)sizeof(uint16_t));
}
static size_t scales_bytes(const mix_gemm_plan *plan, int64_t panels) {
  return (size_t)whole_lines(panels * panel_scales(plan) * (int64_t)sizeof(float));
}
static bool spans(const mix_gemm_plan *plan) { return plan->column_span > plan->nc; }
static int64_t packed_at_once(const mix_gemm_plan *plan) { return plan->problem.transpose_a ? GROUP : 1; }

static void make_plan(mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  mix_gemm_choose_grid(plan, FP16_ROWS, FP16_COLUMNS);
  mix_gemm_extent rows = {.count = divide_up(p->m, FP16_ROWS), .unit = FP16_ROWS, .grain = 1, .least = GROUP};
  mix_gemm_extent columns = {
      .count = divide_up(p->n, FP16_COLUMNS), .unit = FP16_COLUMNS, .grain = 1, .least = CLAIMED_COLUMNS};
  const int64_t row_panels = divide_up(rows.count, plan->grid_rows),
                column_panels = divide_up(columns.count, plan->grid_columns);
  /* An operand that fits half of the second-level cache as a whole is packed once for all tiles. The gradient
   * of a kernel goes by rows, in which its weights and slots lie. */
  const int64_t depth_bytes = p->k * (int64_t)sizeof(uint16_t), max_bytes = mix_cpu_cache(2) / 2;
  const bool a_fits = row_panels * FP16_ROW_SLOTS * depth_bytes <= max_bytes;
  const bool b_fits = column_panels * FP16_COLUMNS * depth_bytes <= max_bytes;
  const bool by_rows = row_panels >= 2 * GROUP && (!a_fits || (b_fits && p->transpose_a));
  const bool by_columns = mix_gemm_repays_stealing(plan) && !by_rows;
  rows.most = by_columns ? row_panels : even_block(row_panels, ROW_PANELS, 1);
  plan->mc = rows.most * FP16_ROWS;
  const bool few = smaller(p->m, row_panels * FP16_ROWS) <= FEW_ROWS;
  const b_block *most = few ? &few_rows_block[p->transpose_b] : &many_rows_block;
  plan->kc = round_up(even_block(p->k, most->depth, 1), FP16_MAX_STEP);
  plan->nc = even_block(column_panels, most->column_panels, 1) * FP16_COLUMNS;
  plan->fetch_b = few;

  const bool summed = p->k > plan->kc; /* in the workspace */
  const int64_t sums = (few ? FEW_ROWS_SPAN_SUMS : SPAN_SUMS) / (int64_t)sizeof(float);
  const int64_t fit = summed ? sums / plan->mc / plan->nc : column_panels;
  plan->column_span = smaller(fit > 1 ? fit * plan->nc : plan->nc, column_panels * FP16_COLUMNS);
  columns.most = divide_up(plan->column_span, FP16_COLUMNS);
  const bool b_kept = !by_columns && b_fits && columns.most == column_panels;
  mix_gemm_cut(plan, rows, columns, by_columns);
  plan->mc = plan->tiles.rows.most * FP16_ROWS;
  plan->kept = plan->tiles.claimed && (by_columns ? a_fits : b_kept);
  const int64_t k_blocks = divide_up(p->k, plan->kc);
  plan->a_panels = (int)(plan->kept && by_columns ? row_panels * k_blocks
                         : spans(plan)            ? plan->mc / FP16_ROWS
                                                  : packed_at_once(plan));
  plan->a_bytes = scales_bytes(plan, plan->a_panels) + panels_bytes(plan, plan->a_panels, FP16_ROW_SLOTS);
  plan->b_panels = (int)(plan->kept && !by_columns ? column_panels * k_blocks : plan->nc / FP16_COLUMNS);
  plan->b_bytes = scales_bytes(plan, plan->b_panels) + panels_bytes(plan, plan->b_panels, FP16_COLUMNS);
  plan->c_stride = (summed ? plan->column_span : plan->nc) + 16; /* off a power of two */
  plan->c_bytes = (size_t)((summed ? plan->mc : FP16_ROWS) * plan->c_stride) * sizeof(float);
  plan->thread_bytes = plan->a_bytes + plan->b_bytes + plan->c_bytes;
}

/* An operand, and where its panels lie packed. */
typedef struct operand {
  mix_fp16_packing how;
  float *scales;
  uint16_t *panels;
  int64_t elements; /* of a panel */
} operand;

/* A thread's part of the work, and its workspace. */
typedef struct run_state {
  const mix_gemm_plan *plan;
  const mix_gemm_operands *operands;
  operand a, b;
  mix_fp16_sums sums;
  int64_t row_panels;     /* of the whole product: rows are shared evenly among them */
  int64_t kept, kept_end; /* where plan->kept: rows or columns, in panels, that lie packed for all of k */
  float *c;
} run_state;

/* A block of C, in panels, and of k; the columns of its span. */
typedef struct block {
  int64_t row, rows, column, columns, k, depth, span, span_end;
} block;

static int64_t first_row(const run_state *s, int64_t panel) {
  return s->plan->problem.m * panel / s->row_panels;
}
static int64_t first_column(const run_state *s, int64_t panel) {
  return smaller(panel * FP16_COLUMNS, s->plan->problem.n);
}

/* `count` panels of rows or columns from starts[0] on, to the `index`th packed and what follows. */
static void pack(const run_state *s, const operand *to, int64_t count, const int64_t *starts, const block *x,
                 int64_t index) {
  const int64_t scales = panel_scales(s->plan);
  mix_fp16_pack(&to->how, (int)count, starts, x->k, x->depth, to->panels + index * to->elements, to->elements,
                to->scales + index * scales, scales);
}

static void pack_columns(const run_state *s, const block *x, int64_t index) {
  int64_t starts[FP16_MAX_PANELS + 1];
  for (int64_t i = 0; i <= x->columns; i++) starts[i] = first_column(s, x->column + i);
  pack(s, &s->b, x->columns, starts, x, index);
}

/* From panel `panel` of the block on. */
static void pack_rows(const run_state *s, const block *x, int64_t panel, int64_t count, int64_t index) {
  int64_t starts[FP16_MAX_PANELS + 1];
  for (int64_t i = 0; i <= count; i++) starts[i] = first_row(s, x->row + panel + i);
  pack(s, &s->a, count, starts, x, index);
}

/* What tiles fetch of B, as it is stored: `rows` of so many bytes. The chains of a tile fetch a part of as
 * many rows. */
typedef struct prefetch_state {
  const char *memory;
  int64_t stride, rows, bytes, row, byte;
  int64_t each; /* bytes that a chain fetches */
} prefetch_state;

static prefetch_state prefetch_block(const run_state *s, const block *x) {
  const mix_gemm_problem *p = &s->plan->problem;
  const int64_t column = first_column(s, x->column),
                columns = first_column(s, x->column + x->columns) - column;
  const int64_t row = p->transpose_b ? column : x->k, at = p->transpose_b ? x->k : column,
                size = sizeof(uint16_t);
  return (prefetch_state){.memory = (const char *)s->operands->b + (row * p->ldb + at) * size,
                          .stride = p->ldb * size,
                          .rows = p->transpose_b ? columns : x->depth,
                          .bytes = (p->transpose_b ? x->depth : columns) * size,
                          .each = FP16_PREFETCH * s->sums.length};
}

/* What a tile of so many chains fetches, and the step from one chain to the next; 0: nothing is left. */
static const char *take_prefetch(prefetch_state *next, int64_t chains, int64_t *step) {
  *step = 0;
  if (next->byte >= next->bytes) return NULL;
  const char *from = next->memory + next->row * next->stride + next->byte;
  *step = next->stride;
  if ((next->row += chains) >= next->rows) next->row = 0, next->byte += next->each;
  return from;
}

/* Panel `panel` of rows, the `a`th packed, with all panels of columns, the `b`th packed and what follows;
 * finished after the last k. */
static void multiply(const run_state *s, const block *x, int64_t panel, int64_t a, int64_t b,
                     prefetch_state *next) {
  const mix_gemm_plan *plan = s->plan;
  const int64_t row = first_row(s, panel), rows = first_row(s, panel + 1) - row, scales = panel_scales(plan);
  const bool first = x->k == 0, last = x->k + x->depth == plan->problem.k;
  const int64_t column = first_column(s, x->column), end = first_column(s, x->column + x->columns);
  float *c = s->c;
  if (!first || !last)
    c += (row - first_row(s, x->row)) * plan->c_stride + (x->column - x->span) * FP16_COLUMNS;
  if (x->depth == 0) memset(c, 0, (size_t)(rows * plan->c_stride) * sizeof *c); /* k is 0 */
  for (int64_t j = 0; j < x->columns && x->depth; j++) {
    const int64_t width = first_column(s, x->column + j + 1) - first_column(s, x->column + j);
    if (last) mix_gemm_prefetch_result(plan, s->operands, row, rows, first_column(s, x->column + j), width);
    int64_t step;
    const char *prefetch = take_prefetch(next, x->depth / s->sums.length, &step);
    mix_fp16_multiply_tile[s->a.how.as_rows][rows - 1][width > FP16_COLUMNS / 2](
        &s->sums, x->depth, s->a.panels + a * s->a.elements, s->a.scales + a * scales,
        s->b.panels + (b + j) * s->b.elements, s->b.scales + (b + j) * scales, c + j * FP16_COLUMNS,
        plan->c_stride, first, prefetch, step);
  }
  if (last)
    mix_gemm_store_result(plan, s->operands, c, plan->c_stride, row, rows, column, end - column,
                          panel + 1 < x->row + x->rows);
}

/* `next`: the block that is packed next; NULL: none. */
static void multiply_block(const run_state *s, const block *x, const block *next) {
  const mix_gemm_plan *plan = s->plan;
  const bool a_kept = plan->kept && plan->tiles.by_columns, b_kept = plan->kept && !a_kept;
  const bool a_packed =
      x->column > x->span || (a_kept && x->row == s->kept && x->row + x->rows == s->kept_end);
  const bool b_packed = b_kept && x->span == s->kept && x->span_end == s->kept_end;
  const int64_t kc = x->k / plan->kc, group = packed_at_once(plan);
  const int64_t b = b_kept ? kc * (x->span_end - x->span) + x->column - x->span : 0;
  prefetch_state fetched = next && plan->fetch_b ? prefetch_block(s, next) : (prefetch_state){0};
  if (!b_packed) pack_columns(s, x, b);
  for (int64_t panel = 0; panel < x->rows; panel++) {
    const int64_t a = a_kept ? kc * x->rows + panel : panel % plan->a_panels;
    if (panel % group == 0 && !a_packed) pack_rows(s, x, panel, smaller(group, x->rows - panel), a);
    multiply(s, x, x->row + panel, a, b, &fetched);
  }
}

/* All of the tile is packed. */
static void note_kept(run_state *s, const block *x) {
  const bool rows = s->plan->tiles.by_columns;
  if (s->plan->kept) s->kept = rows ? x->row : x->span, s->kept_end = rows ? x->row + x->rows : x->span_end;
}

/* As many columns and as much of k as are left, at most a block. */
static void size_block(const run_state *s, block *x) {
  x->columns = even_block(x->span_end - x->column, s->plan->nc / FP16_COLUMNS, 1);
  x->depth = smaller(s->plan->kc, s->plan->problem.k - x->k);
}

/* The next block of the same rows and the same span: its columns, then the next k. False: none is left. */
static bool advance(const run_state *s, block *x) {
  x->column += x->columns;
  if (x->column >= x->span_end) x->column = x->span, x->k += x->depth;
  if (x->k >= s->plan->problem.k && x->column == x->span) return false;
  size_block(s, x);
  return true;
}

/* The first block of the thread's next tile. False: none is left. */
static bool begin_piece(const run_state *s, mix_gemm_work *work, block *x) {
  mix_gemm_tile tile;
  if (!mix_gemm_next_tile(work, &tile)) return false;
  *x = (block){.row = tile.row, .rows = tile.row_end - tile.row, .column = tile.column};
  x->span = tile.column, x->span_end = tile.column_end;
  size_block(s, x);
  return true;
}

/* Where `panels` panels of an operand are packed. */
static void place(const mix_gemm_plan *plan, operand *x, int64_t panels, char *memory) {
  x->elements = panel_elements(plan, x->how.slots);
  x->scales = (float *)memory, x->panels = (uint16_t *)(memory + scales_bytes(plan, panels));
}

static void run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                void *shared, void *own) {
  (void)shared; /* nothing is */
  const mix_gemm_problem *p = &plan->problem;
  const mix_gemm_engine *engine = plan->engine;
  const int step = engine->chains * engine->chain > FP16_MIN_STEP ? FP16_MAX_STEP : FP16_MIN_STEP;
  const int bits = step == FP16_MAX_STEP ? 15 - 7 : 15 - 6; /* of a product, so that `step` of them have 15 */
  const mix_dtype dtype = plan->storage->dtype;
  const bool as_rows = !p->transpose_a && plan->nc <= TURNING_COLUMNS;
  run_state s = {
      .plan = plan,
      .operands = operands,
      .a = {{operands->a, p->lda, p->transpose_a, dtype, FP16_ROW_SLOTS, as_rows, (bits + 1) / 2, step}},
      .b = {{operands->b, p->ldb, !p->transpose_b, dtype, FP16_COLUMNS, false, bits / 2, step}},
      .sums = {engine->chains, engine->chain, step},
      .row_panels = divide_up(p->m, FP16_ROWS),
  };
  char *memory = own;
  place(plan, &s.a, plan->a_panels, memory), memory += plan->a_bytes;
  place(plan, &s.b, plan->b_panels, memory), memory += plan->b_bytes;
  s.c = (float *)memory;
  mix_gemm_work work;
  mix_gemm_begin(&work, plan, operands->stealing, team->rank);
  block x;
  bool more = begin_piece(&s, &work, &x);
  while (more) {
    block next = x;
    const bool inside = advance(&s, &next);
    /* What is fetched prefetch is claimed ahead. */
    const bool known = inside || (plan->fetch_b && begin_piece(&s, &work, &next));
    multiply_block(&s, &x, known ? &next : NULL);
    if (!inside) note_kept(&s, &x);
    more = known || (!plan->fetch_b && begin_piece(&s, &work, &next));
    x = next;
  }
  mix_gemm_end(&work);
}

static const mix_gemm_storage storages[] = {{MIX_FLOAT16}, {MIX_BFLOAT16}, {MIX_DTYPE_NONE}};

#define FP16_ENGINE(sums, chain_count, chain_length, accumulation)                                           \
  static const char *unsupported_reason_##sums(const mix_gemm_problem *problem, mix_dtype dtype) {           \
    (void)dtype; /* both */                                                                                  \
    return unsupported_reason(problem, accumulation);                                                        \
  }                                                                                                          \
  const mix_gemm_engine mix_gemm_##sums##_avx512fp16 = {                                                     \
      .rows = FP16_ROWS,                                                                                     \
      .columns = FP16_COLUMNS,                                                                               \
      .lanes = LANES,                                                                                        \
      .element = sizeof(uint16_t),                                                                           \
      .sum = sizeof(float),                                                                                  \
      .chains = chain_count,                                                                                 \
      .chain = chain_length,                                                                                 \
      .storages = storages,                                                                                  \
      .make_plan = make_plan,                                                                                \
      .run = run,                                                                                            \
      .unsupported_reason = unsupported_reason_##sums,                                                       \
  };
FP16_ENGINE(t4x8, 4, 8, MIX_ACCUMULATE_BLOCKED_SHORT)
FP16_ENGINE(t4x16, 4, 16, MIX_ACCUMULATE_BLOCKED)
FP16_ENGINE(t4x32, 4, 32, MIX_ACCUMULATE_BLOCKED_LONG)
FP16_ENGINE(t8x16, 8, 16, MIX_ACCUMULATE_BLOCKED_WIDE)
