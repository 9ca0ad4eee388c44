/* Template: plan and driver of the engine with float16 sums: float16 and bfloat16 products in blocked
 * accumulation (fp16.h). The including file has an FP16_ENGINE for each length of chains.
 *
 * For each block of C and each block of k, the columns of B are packed and stay in the second-level cache.
 * Then panels of rows of A are packed, one at a time or some together where k goes from row to row, and
 * multiplied with all panels of B. Consecutive blocks of columns form a span, which uses rows of A that are
 * packed once. An operand that all tiles of a share use (its rows of A or columns of B) is packed once for
 * all of k, where it fits. Patches of images are gathered before they are packed. Where few rows use B, its
 * next block is prefetched while this one is multiplied. Sums are float32, in the workspace until the last
 * block of k. */
#include "backend/cpu/gemm/fp16/fp16.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include "base/processor.h"
#include <string.h>

/* Measured on a Sapphire Rapids with 2 MiB of second-level cache. A panel has 14 rows or 64 columns. */
enum {
  ROW_PANELS = 144,
  /* For at most so many rows memory bounds the packing of B: tiles prefetch the block that is packed next. */
  FEW_ROWS = 256,
  /* Panels of A packed together where k goes from row to row; a stolen tile has about as many, */
  GROUP = 16,
  STEAL_COLUMNS = 2, /* or so many panels of B. */
  /* The same of patches: what is gathered shares the second-level cache with B. */
  GATHERED_GROUP = 8,
  /* At most so many columns use rows of A as rows. More of them read a panel from the second-level cache
   * again and again, and repay transposing it. */
  ROWS_AS_ROWS_COLUMNS = 128,
  SHALLOW = 32, /* with k below it a block is mostly its end */
  FEW_COLUMNS = 12,
  FEW_OPERATIONS = 1 << 15,
  /* From both of these on auto takes longer chains. */
  LARGE_OPERATIONS = 1 << 26,
  LARGE_ROWS = 32,
  SHORT_CHAIN = 16,
  /* Bytes of the sums of a span, at most. Each block of k reads and writes them. */
  SPAN_SUMS = 24 << 20,
  FEW_ROWS_SPAN_SUMS = 2 << 20,
};

/* The largest blocks of B. Blocks that tiles prefetch are small, and long in the direction of memory (by
 * transpose_b), because rows of B at a stride of a power of two share a few sets of the cache. */
typedef struct b_block {
  int depth, column_panels;
} b_block;
static const b_block many_rows_block = {768, 12}, few_rows_block[2] = {{128, 8}, {512, 3}};

/* `auto` takes chains of 32 for large products: 1.03 to 1.1 times as fast, because they end less often,
 * except for few rows, where packing of B is the bound. Their error is three tenths larger, which in bfloat16
 * is small beside the rounding of operands (docs/NUMERICS.md). */
static const char *unsupported_reason_sums(const mix_gemm_problem *p, bool long_chains) {
  const mix_accumulation asked = p->precision.accumulation;
  if (asked == MIX_ACCUMULATE_EXACT) return "another accumulation is asked for";
  if (asked == MIX_ACCUMULATE_BLOCKED) return long_chains ? "auto alone takes chains of 32" : NULL;
  if (mix_accumulation_resolve(asked) == MIX_ACCUMULATE_EXACT)
    return mix_cpu_features() & MIX_CPU_AMX_BF16 ? "AMX sums exactly, and faster"
                                                 : "auto sums exactly where blocked sums were not measured";
  const bool large = mix_gemm_multiplications(p) >= LARGE_OPERATIONS && p->m >= LARGE_ROWS;
  if (long_chains) return large ? NULL : "auto takes chains of 32 for large products alone";
  return large ? "auto takes chains of 32 for large products" : NULL;
}

static const char *fp16_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                           const mix_gemm_problem *p) {
  if (p->n <= FEW_COLUMNS || p->m <= FEW_COLUMNS)
    return "few rows or columns, bound by reading the other operand";
  if (p->k < SHALLOW) return "few products in a sum";
  if (mix_gemm_multiplications(p) < FEW_OPERATIONS) return "too small to repay packing";
  return unsupported_reason_sums(p, engine->chain > SHORT_CHAIN);
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
static bool spans(const mix_gemm_plan *plan) { return mix_fp16_plan_of(plan)->column_span > plan->nc; }
static int64_t packed_at_once(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  return !p->transpose_a ? 1 : p->patches ? GATHERED_GROUP : GROUP;
}
/* Patches of the rows that are packed at once. */
static size_t gathered_bytes(const mix_gemm_plan *plan) {
  const mix_gemm_problem *p = &plan->problem;
  if (!p->patches) return 0;
  const int64_t packed = packed_at_once(plan) * FP16_MR, rows = p->transpose_a ? plan->kc : packed,
                columns = p->transpose_a ? packed : plan->kc;
  return (size_t)whole_lines(rows * mix_gemm_gathered_stride(columns) * (int64_t)sizeof(uint16_t));
}

static void fp16_make_plan(mix_gemm_plan *plan) {
  mix_fp16_plan *own = mix_fp16_plan_in(plan);
  const mix_gemm_problem *p = &plan->problem;
  mix_gemm_choose_grid(plan, FP16_MR, FP16_NR);
  mix_gemm_extent rows = {.count = divide_up(p->m, FP16_MR), .unit = FP16_MR, .grain = 1, .min = GROUP};
  mix_gemm_extent columns = {
      .count = divide_up(p->n, FP16_NR), .unit = FP16_NR, .grain = 1, .min = STEAL_COLUMNS};
  const int64_t row_panels = divide_up(rows.count, plan->grid_rows),
                column_panels = divide_up(columns.count, plan->grid_columns);
  /* An operand that fits half of the second-level cache is packed once for all tiles. The gradient of a
   * kernel goes by rows, along which its weights and slots are stored. */
  const int64_t depth_bytes = p->k * (int64_t)sizeof(uint16_t), max_bytes = mix_cpu_cache(2) / 2;
  const bool a_fits = row_panels * FP16_ROW_SLOTS * depth_bytes <= max_bytes;
  const bool b_fits = column_panels * FP16_NR * depth_bytes <= max_bytes;
  const bool by_rows = row_panels >= 2 * GROUP && (!a_fits || (b_fits && p->transpose_a));
  const bool by_columns = mix_gemm_repays_stealing(plan) && !by_rows;
  rows.max = by_columns ? row_panels : even_block(row_panels, ROW_PANELS, 1);
  plan->mc = rows.max * FP16_MR;
  const bool few = smaller(p->m, row_panels * FP16_MR) <= FEW_ROWS;
  const b_block *max = few ? &few_rows_block[p->transpose_b] : &many_rows_block;
  plan->kc = round_up(even_block(p->k, max->depth, 1), FP16_MAX_STEP);
  plan->nc = even_block(column_panels, max->column_panels, 1) * FP16_NR;
  own->prefetch_b_source = few;

  const bool summed = p->k > plan->kc; /* in the workspace */
  const int64_t sums = (few ? FEW_ROWS_SPAN_SUMS : SPAN_SUMS) / (int64_t)sizeof(float);
  const int64_t fit = summed ? sums / plan->mc / plan->nc : column_panels;
  own->column_span = smaller(fit > 1 ? fit * plan->nc : plan->nc, column_panels * FP16_NR);
  columns.max = divide_up(own->column_span, FP16_NR);
  const bool b_once = !by_columns && b_fits && columns.max == column_panels;
  mix_gemm_cut(plan, rows, columns, by_columns);
  plan->mc = plan->tiles.rows.max * FP16_MR;
  own->packed_once = plan->tiles.steal && (by_columns ? a_fits : b_once);
  const int64_t k_blocks = divide_up(p->k, plan->kc);
  own->a_panels = (int)(own->packed_once && by_columns ? row_panels * k_blocks
                        : spans(plan)                  ? plan->mc / FP16_MR
                                                       : packed_at_once(plan));
  own->a_bytes = scales_bytes(plan, own->a_panels) + panels_bytes(plan, own->a_panels, FP16_ROW_SLOTS);
  own->b_panels = (int)(own->packed_once && !by_columns ? column_panels * k_blocks : plan->nc / FP16_NR);
  own->b_bytes = scales_bytes(plan, own->b_panels) + panels_bytes(plan, own->b_panels, FP16_NR);
  own->c_stride = (summed ? own->column_span : plan->nc) + 16; /* off a power of two */
  own->c_bytes = (size_t)((summed ? plan->mc : FP16_MR) * own->c_stride) * sizeof(float);
  own->gathered_bytes = gathered_bytes(plan);
  plan->stream = mix_gemm_streams_result(plan);
}

static mix_gemm_workspace workspace_of(const mix_gemm_plan *plan) {
  const mix_fp16_plan *own = mix_fp16_plan_of(plan);
  return (mix_gemm_workspace){.thread = own->a_bytes + own->b_bytes + own->c_bytes + own->gathered_bytes};
}

/* An operand, and where its panels are packed. */
typedef struct operand {
  mix_fp16_packing how;
  float *scales;
  uint16_t *panels;
  int64_t elements; /* of a panel */
} operand;

/* A thread's product and its workspace. */
typedef struct run_state {
  const mix_gemm_plan *plan;
  const mix_gemm_operands *operands;
  operand a, b;
  mix_fp16_sums sums;
  int64_t row_panels; /* of the whole product; rows are shared evenly among them */
  int64_t packed,
      packed_end; /* where packed_once: rows or columns, in panels, that are packed for all of k */
  float *c;
  char *gathered; /* patches, before they are packed */
} run_state;

/* A block of C, in panels, and of k; the columns of its span. */
typedef struct block {
  int64_t row, rows, column, columns, k, depth, span, span_end;
} block;

static int64_t first_row(const run_state *s, int64_t panel) {
  return s->plan->problem.m * panel / s->row_panels;
}
static int64_t first_column(const run_state *s, int64_t panel) {
  return smaller(panel * FP16_NR, s->plan->problem.n);
}

/* Packs `count` panels of rows or columns from starts[0] on, for `depth` of k from `k` on, as the packed
 * panels from `index` on. */
static void pack(const run_state *s, const operand *to, int64_t count, const int64_t *starts, int64_t k,
                 int64_t depth, int64_t index) {
  const int64_t scales = panel_scales(s->plan);
  mix_fp16_pack(&to->how, (int)count, starts, k, depth, to->panels + index * to->elements, to->elements,
                to->scales + index * scales, scales);
}

static void pack_columns(const run_state *s, const block *x, int64_t index) {
  int64_t starts[FP16_MAX_PANELS + 1];
  for (int64_t i = 0; i <= x->columns; i++) starts[i] = first_column(s, x->column + i);
  pack(s, &s->b, x->columns, starts, x->k, x->depth, index);
}

/* Packs `count` rows' panels from panel `panel` of the block on. */
static void pack_rows(const run_state *s, const block *x, int64_t panel, int64_t count, int64_t index) {
  int64_t starts[FP16_MAX_PANELS + 1];
  for (int64_t i = 0; i <= count; i++) starts[i] = first_row(s, x->row + panel + i);
  if (!s->operands->a.patches) {
    pack(s, &s->a, count, starts, x->k, x->depth, index);
    return;
  }
  const int64_t row = starts[0];
  const mix_gemm_view view =
      mix_gemm_view_block(&s->operands->a, row, starts[count] - row, x->k, x->depth, s->gathered, NULL);
  operand gathered = s->a;
  gathered.how.source = (const uint16_t *)view.base, gathered.how.stride = view.stride;
  for (int64_t i = 0; i <= count; i++) starts[i] -= row;
  pack(s, &gathered, count, starts, 0, x->depth, index);
}

/* What tiles prefetch of B, as stored: `rows` of `bytes` bytes. Each chain of a tile prefetches a part of one
 * row. */
typedef struct prefetch_state {
  const char *memory;
  int64_t stride, rows, bytes, row, byte;
  int64_t each; /* bytes that a chain prefetches */
} prefetch_state;

static prefetch_state prefetch_block(const run_state *s, const block *x) {
  const mix_gemm_problem *p = &s->plan->problem;
  const int64_t column = first_column(s, x->column),
                columns = first_column(s, x->column + x->columns) - column;
  const int64_t row = p->transpose_b ? column : x->k, at = p->transpose_b ? x->k : column,
                size = sizeof(uint16_t);
  return (prefetch_state){.memory = s->operands->b.base + (row * p->ldb + at) * size,
                          .stride = p->ldb * size,
                          .rows = p->transpose_b ? columns : x->depth,
                          .bytes = (p->transpose_b ? x->depth : columns) * size,
                          .each = FP16_PREFETCH * s->sums.length};
}

/* What a tile of so many chains prefetches, and the step from one chain to the next; 0: nothing is left. */
static const char *take_prefetch(prefetch_state *next, int64_t chains, int64_t *step) {
  *step = 0;
  if (next->byte >= next->bytes) return NULL;
  const char *from = next->memory + next->row * next->stride + next->byte;
  *step = next->stride;
  if ((next->row += chains) >= next->rows) next->row = 0, next->byte += next->each;
  return from;
}

/* Multiplies panel `panel` of rows, packed panel `a`, with all panels of columns, the packed panels from `b`
 * on; stores the result after the last k. */
static void multiply(const run_state *s, const block *x, int64_t panel, int64_t a, int64_t b,
                     prefetch_state *next) {
  const mix_gemm_plan *plan = s->plan;
  const mix_fp16_plan *own = mix_fp16_plan_of(plan);
  const int64_t row = first_row(s, panel), rows = first_row(s, panel + 1) - row, scales = panel_scales(plan);
  const bool first = x->k == 0, last = x->k + x->depth == plan->problem.k;
  const int64_t column = first_column(s, x->column), end = first_column(s, x->column + x->columns);
  float *c = s->c;
  if (!first || !last) c += (row - first_row(s, x->row)) * own->c_stride + (x->column - x->span) * FP16_NR;
  if (x->depth == 0) memset(c, 0, (size_t)(rows * own->c_stride) * sizeof *c); /* k is 0 */
  for (int64_t j = 0; j < x->columns && x->depth; j++) {
    const int64_t width = first_column(s, x->column + j + 1) - first_column(s, x->column + j);
    if (last) mix_gemm_prefetch_result(plan, s->operands, row, rows, first_column(s, x->column + j), width);
    int64_t step;
    const char *prefetch = take_prefetch(next, x->depth / s->sums.length, &step);
    mix_fp16_multiply_tile[s->a.how.as_rows][rows - 1][width > FP16_NR / 2](
        &s->sums, x->depth, s->a.panels + a * s->a.elements, s->a.scales + a * scales,
        s->b.panels + (b + j) * s->b.elements, s->b.scales + (b + j) * scales, c + j * FP16_NR, own->c_stride,
        first, prefetch, step);
  }
  if (last)
    mix_gemm_store_result(plan, s->operands, c, own->c_stride, row, rows, column, end - column,
                          panel + 1 < x->row + x->rows);
}

/* `next`: the block that is packed next. NULL: none. */
static void multiply_block(const run_state *s, const block *x, const block *next) {
  const mix_gemm_plan *plan = s->plan;
  const mix_fp16_plan *own = mix_fp16_plan_of(plan);
  const bool a_once = own->packed_once && plan->tiles.by_columns, b_once = own->packed_once && !a_once;
  const bool a_packed =
      x->column > x->span || (a_once && x->row == s->packed && x->row + x->rows == s->packed_end);
  const bool b_packed = b_once && x->span == s->packed && x->span_end == s->packed_end;
  const int64_t kc = x->k / plan->kc, group = packed_at_once(plan);
  const int64_t b = b_once ? kc * (x->span_end - x->span) + x->column - x->span : 0;
  prefetch_state prefetch = next && own->prefetch_b_source ? prefetch_block(s, next) : (prefetch_state){0};
  if (!b_packed) pack_columns(s, x, b);
  for (int64_t panel = 0; panel < x->rows; panel++) {
    const int64_t a = a_once ? kc * x->rows + panel : panel % own->a_panels;
    if (panel % group == 0 && !a_packed) pack_rows(s, x, panel, smaller(group, x->rows - panel), a);
    multiply(s, x, x->row + panel, a, b, &prefetch);
  }
}

/* After a tile: what it packed once, for all of k, serves the next tiles. */
static void note_packed(run_state *s, const block *x) {
  const bool rows = s->plan->tiles.by_columns;
  if (!mix_fp16_plan_of(s->plan)->packed_once) return;
  s->packed = rows ? x->row : x->span, s->packed_end = rows ? x->row + x->rows : x->span_end;
}

/* Sets the columns and depth of the block: what is left, at most a block. */
static void size_block(const run_state *s, block *x) {
  x->columns = even_block(x->span_end - x->column, s->plan->nc / FP16_NR, 1);
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
static bool begin_tile(const run_state *s, mix_gemm_work *work, block *x) {
  mix_gemm_tile tile;
  if (!mix_gemm_next_tile(work, &tile)) return false;
  *x = (block){.row = tile.row, .rows = tile.row_end - tile.row, .column = tile.column};
  x->span = tile.column, x->span_end = tile.column_end;
  size_block(s, x);
  return true;
}

/* Places `panels` packed panels of an operand at `memory`. */
static void place(const mix_gemm_plan *plan, operand *x, int64_t panels, char *memory) {
  x->elements = panel_elements(plan, x->how.slots);
  x->scales = (float *)memory, x->panels = (uint16_t *)(memory + scales_bytes(plan, panels));
}

static void fp16_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                     void *shared, void *workspace) {
  const mix_fp16_plan *own = mix_fp16_plan_of(plan);
  const mix_gemm_problem *p = &plan->problem;
  const mix_gemm_engine *engine = plan->engine;
  const int step = engine->chains * engine->chain > FP16_MIN_STEP ? FP16_MAX_STEP : FP16_MIN_STEP;
  const int bits = step == FP16_MAX_STEP ? 15 - 7 : 15 - 6; /* of a product, so that `step` of them have 15 */
  const mix_dtype dtype = plan->storage->dtype;
  const bool as_rows = !p->transpose_a && plan->nc <= ROWS_AS_ROWS_COLUMNS;
  run_state s = {
      .plan = plan,
      .operands = operands,
      .a = {{(const uint16_t *)operands->a.base, operands->a.stride, operands->a.transposed, dtype,
             FP16_ROW_SLOTS, as_rows, (bits + 1) / 2, step}},
      .b = {{(const uint16_t *)operands->b.base, operands->b.stride, !operands->b.transposed, dtype, FP16_NR,
             false, bits / 2, step}},
      .sums = {engine->chains, engine->chain, step},
      .row_panels = divide_up(p->m, FP16_MR),
  };
  char *memory = workspace;
  place(plan, &s.a, own->a_panels, memory), memory += own->a_bytes;
  place(plan, &s.b, own->b_panels, memory), memory += own->b_bytes;
  s.c = (float *)memory, s.gathered = memory + own->c_bytes;
  mix_gemm_work work;
  mix_gemm_begin(&work, plan, operands->stealing, team->rank);
  block x;
  bool more = begin_tile(&s, &work, &x);
  while (more) {
    block next = x;
    const bool inside = advance(&s, &next);
    /* To prefetch B of the next tile, the thread takes that tile before it has finished this one. */
    const bool known = inside || (own->prefetch_b_source && begin_tile(&s, &work, &next));
    multiply_block(&s, &x, known ? &next : NULL);
    if (!inside) note_packed(&s, &x);
    more = known || (!own->prefetch_b_source && begin_tile(&s, &work, &next));
    x = next;
  }
  mix_gemm_end(&work);
}

static const mix_gemm_storage storages[] = {{MIX_FLOAT16}, {MIX_BFLOAT16}, {MIX_DTYPE_NONE}};

static const mix_gemm_algorithm fp16 = {.name = "fp16",
                                        .unsupported_reason = fp16_unsupported_reason,
                                        .plan = fp16_make_plan,
                                        .workspace = workspace_of,
                                        .run = fp16_run};
static const mix_gemm_algorithm *const algorithms[] = {&fp16, NULL};

#define FP16_ENGINE(engine, chain_count, chain_length)                                                       \
  const mix_gemm_engine engine = {                                                                           \
      .mr = FP16_MR,                                                                                         \
      .nr = FP16_NR,                                                                                         \
      .lanes = FP16_LANES,                                                                                   \
      .element_size = sizeof(uint16_t),                                                                      \
      .sum_size = sizeof(float),                                                                             \
      .chains = chain_count,                                                                                 \
      .chain = chain_length,                                                                                 \
      .storages = storages,                                                                                  \
      .algorithms = algorithms,                                                                              \
  };
