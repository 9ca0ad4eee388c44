/* The driver of blocked products on vectors. */
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/blocked/blocked.h"

/* A thread's product and the parts of its workspace. */
typedef struct run_state {
  const mix_gemm_plan *plan;
  const mix_blocked_plan *own;
  const mix_gemm_operands *operands;
  char *a, *packed_b, *c, *transpose, *gathered;
  const char *b;         /* the panels of the current block of B */
  int64_t sums_row;      /* of the block: its sums are the first of `c` */
  mix_gemm_view a_block; /* of the current block of A */
} run_state;

/* A block of C and of k. */
typedef struct block {
  int64_t row, rows, column, columns, k, depth;
  bool first, last; /* of k */
} block;

static const char *at(const void *base, int64_t elements, size_t size) {
  return (const char *)base + elements * (int64_t)size;
}

/* What the tiles of a panel prefetch of A, as stored, for the panels that are packed next. Each of the next
 * `tiles` tiles prefetches one row; or, where A is transposed, one of the `lines` cache lines of as many rows
 * as a tile has prefetches, then of the next rows. */
typedef struct prefetch_state {
  const char *memory;
  int64_t tiles, lines;
  int64_t rows, step; /* bytes from one set of rows to the next, from one prefetch of a tile to the next */
} prefetch_state;

static prefetch_state prefetch_after(const run_state *s, const block *x, int64_t i, int64_t panels) {
  const mix_gemm_plan *plan = s->plan;
  const mix_blocked_plan *own = s->own;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t stored = mix_gemm_stored_size(own->a_storage), stride = p->lda * stored;
  const int64_t k_step = plan->engine->pairs ? 2 * MIX_GEMM_K_UNROLL : MIX_GEMM_K_UNROLL;
  if (!own->prefetch_a_source || i + 1 >= panels || (i + 1) % own->a_panels) return (prefetch_state){0};
  const int64_t row = x->rows * (i + 1) / panels,
                rows = x->rows * smaller(i + 1 + own->a_panels, panels) / panels - row;
  if (!p->transpose_a)
    return (prefetch_state){mix_gemm_view_at(&s->a_block, row, 0), rows, 1, stride, k_step * stored};
  const int64_t lines = rows * stored / 64 + 1;
  return (prefetch_state){mix_gemm_view_at(&s->a_block, row, 0), k_step * lines, lines,
                          x->depth / k_step * stride, stride};
}

/* Rows of A of the next panel lie side by side behind those of this one: each of `tiles` tiles prefetches a
 * part of them. */
static prefetch_state prefetch_rows(const run_state *s, const block *x, int64_t i, int64_t panels,
                                    int64_t tiles) {
  const mix_gemm_plan *plan = s->plan;
  if (!s->own->prefetch_a_rows || i + 1 >= panels) return (prefetch_state){0};
  const int64_t row = x->rows * (i + 1) / panels, rows = x->rows * (i + 2) / panels - row;
  const int64_t part = divide_up(rows * plan->problem.lda * mix_gemm_stored_size(s->own->a_storage), tiles);
  return (prefetch_state){mix_gemm_view_at(&s->a_block, row, 0), tiles, 1, part,
                          divide_up(part, mix_gemm_packed_depth(plan->engine, x->depth))};
}

/* ---- B that is packed before the run ---- */

/* Elements of the packed panels of all columns before step k of it; k is where a block begins. */
static int64_t kept_before(const mix_gemm_plan *plan, int64_t k) {
  const mix_gemm_problem *p = &plan->problem;
  int64_t depth = 0;
  for (int64_t at = 0; at < k;) {
    const int64_t next = mix_gemm_next_depth(plan, p->k - at);
    depth += mix_gemm_packed_depth(plan->engine, next), at += next;
  }
  return depth * round_up(p->n, plan->engine->nr);
}

size_t mix_blocked_kept_bytes(const mix_gemm_plan *plan) {
  if (!mix_blocked_plan_of(plan)->b_kept) return 0;
  return (size_t)kept_before(plan, plan->problem.k) * plan->engine->element_size;
}

void mix_blocked_keep(const mix_gemm_plan *plan, const mix_gemm_view *b, int rank, int threads, void *kept) {
  const mix_gemm_problem *p = &plan->problem;
  const mix_gemm_engine *engine = plan->engine;
  int64_t begin, end;
  mix_gemm_share(p->n, engine->nr, rank, threads, &begin, &end);
  for (int64_t k = 0, depth; k < p->k && begin < end; k += depth) {
    depth = mix_gemm_next_depth(plan, p->k - k);
    const int64_t packed = mix_gemm_packed_depth(engine, depth);
    char *to = (char *)kept + (kept_before(plan, k) + begin * packed) * (int64_t)engine->element_size;
    const mix_gemm_storage *storage = mix_blocked_plan_of(plan)->b_storage;
    storage->pack_b[b->transposed](mix_gemm_view_at(b, k, begin), b->stride, depth, end - begin, to,
                                   packed * engine->nr);
  }
}

/* Rows [row, row + rows) of the block, at most a tile's, times panel [column, column + columns). */
static void multiply_panels(const run_state *s, const block *x, const void *a, int64_t a_stride, int64_t row,
                            int rows, int64_t column, int columns, const void *prefetch,
                            int64_t prefetch_step) {
  const mix_gemm_plan *plan = s->plan;
  const mix_blocked_plan *own = s->own;
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const void *b;
  int64_t b_stride = engine->nr, c_stride = own->c_stride;
  if (own->b_in_place) {
    b = mix_gemm_view_at(&s->operands->b, x->k, x->column + column);
    b_stride = s->operands->b.stride;
    if (own->prefetch_b && row == 0 && !x->last) {
      const char *next = at(b, x->depth * b_stride, engine->element_size);
      const int64_t step = b_stride * (int64_t)engine->element_size,
                    bytes = columns * (int64_t)engine->element_size;
      for (int64_t k = smaller(x->depth, p->k - x->k - x->depth); k > 0; k--, next += step)
        for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(next + line, 0, 2);
    }
  } else {
    b = at(s->b, column * mix_gemm_packed_depth(engine, x->depth), engine->element_size);
  }
  mix_gemm_store store = x->first ? MIX_GEMM_WRITE : MIX_GEMM_ADD;
  char *c;
  if (own->c_in_place) {
    c = (char *)s->operands->c + ((x->row + row) * p->ldc + x->column + column) * (int64_t)engine->sum_size;
    c_stride = p->ldc;
    if (plan->stream && columns % engine->lanes == 0 && (uintptr_t)c % 64 == 0) store = MIX_GEMM_STREAM;
  } else {
    c = s->c + ((row - s->sums_row) * c_stride + column) * (int64_t)engine->sum_size;
  }
  mix_gemm_micro *const *micro =
      own->b_widened
          ? own->b_storage->micro
          : engine->micro[p->transpose_a || own->a_transposed ? MIX_GEMM_ALONG_M : MIX_GEMM_ALONG_K];
  micro[rows - 1](mix_gemm_packed_depth(engine, x->depth), a, a_stride, b, b_stride, c, c_stride, columns,
                  store, prefetch, prefetch_step);
}

/* Panel i of rows of the block, of `panels`, times all panels of columns. */
static void multiply_row_panel(const run_state *s, const block *x, const void *a, int64_t a_stride, int64_t i,
                               int64_t panels) {
  const int64_t row = x->rows * i / panels, rows = x->rows * (i + 1) / panels - row,
                width = s->plan->engine->nr;
  prefetch_state next = s->own->prefetch_a_rows ? prefetch_rows(s, x, i, panels, divide_up(x->columns, width))
                                                : prefetch_after(s, x, i, panels);
  int64_t line = 0;
  for (int64_t column = 0; column < x->columns; column += width) {
    const int columns = (int)smaller(width, x->columns - column);
    if (next.tiles-- > 0) {
      multiply_panels(s, x, a, a_stride, row, (int)rows, column, columns, next.memory + line * 64, next.step);
      if (++line == next.lines) line = 0, next.memory += next.rows;
    } else {
      multiply_panels(s, x, a, a_stride, row, (int)rows, column, columns, a, 0);
    }
  }
}

/* Packs rows [row, row + rows) of the block for k in [k, k + depth) of it. */
static void pack_rows(const run_state *s, int64_t row, int64_t rows, int64_t k, int64_t depth, char *packed) {
  const mix_blocked_plan *own = s->own;
  const mix_gemm_storage *storage = own->a_storage;
  const mix_gemm_view *a = &s->a_block;
  const void *source = mix_gemm_view_at(a, row, k);
  if (own->a_transposed)
    storage->pack_a_transposed(source, a->stride, (int)rows, depth, packed, own->a_stride);
  else
    storage->pack_a[a->transposed](source, a->stride, (int)rows, depth, packed, own->a_stride);
}

/* Packs panels [first, end) of the block's `panels`. */
static void pack_panels(const run_state *s, const block *x, int64_t first, int64_t end, int64_t panels) {
  enum { STEP = 32 }; /* of k: a cache line that two panels share is still cached for the second */
  const mix_gemm_plan *plan = s->plan;
  const mix_blocked_plan *own = s->own;
  const int64_t row = x->rows * first / panels;
  if (!own->a_panel_stride) {
    pack_rows(s, row, x->rows * end / panels - row, 0, x->depth, s->a);
    return;
  }
  for (int64_t k = 0; k < x->depth; k += STEP)
    for (int64_t i = first; i < end; i++) {
      const int64_t from = x->rows * i / panels, to = x->rows * (i + 1) / panels;
      char *packed = s->a + ((i - first) * own->a_panel_stride +
                             mix_gemm_packed_depth(plan->engine, k) * own->a_stride) *
                                (int64_t)plan->engine->element_size;
      pack_rows(s, from, to - from, k, smaller(STEP, x->depth - k), packed);
    }
}

/* Stores the sums of rows [row, end) of the block. */
static void store_rows(const run_state *s, const block *x, int64_t row, int64_t end) {
  const int64_t stride = s->own->c_stride;
  mix_gemm_store_result(s->plan, s->operands,
                        at(s->c, (row - s->sums_row) * stride, s->plan->engine->sum_size), stride,
                        x->row + row, end - row, x->column, x->columns, end < x->rows);
}

static void multiply_block(run_state *s, const block *x) {
  const mix_gemm_plan *plan = s->plan;
  const mix_blocked_plan *own = s->own;
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_storage *storage = own->b_storage;
  s->a_block = mix_gemm_view_block(&s->operands->a, x->row, x->rows, x->k, x->depth, s->gathered,
                                   own->a_widened ? plan->vector->load[plan->storage->dtype] : NULL);
  if (own->b_kept) {
    const int64_t first = kept_before(plan, x->k) + x->column * mix_gemm_packed_depth(engine, x->depth);
    s->b = at(s->operands->kept, first, engine->element_size);
  } else if (!own->b_in_place) {
    const mix_gemm_view *b = &s->operands->b;
    storage->pack_b[b->transposed](mix_gemm_view_at(b, x->k, x->column), b->stride, x->depth, x->columns,
                                   s->packed_b, mix_gemm_packed_depth(engine, x->depth) * engine->nr);
    s->b = s->packed_b;
  }
  const int64_t panels = (x->rows + engine->mr - 1) / engine->mr;
  s->sums_row = 0;
  /* Panels of even heights: 64 rows are 13, 13, 13, 13, 12, not 14, 14, 14, 14, 8. */
  if (plan->compute_transposed && own->a_in_place) {
    for (int64_t column = 0; column < x->columns; column += engine->nr)
      for (int64_t i = 0; i < panels; i++) {
        const int64_t row = x->rows * i / panels, end = x->rows * (i + 1) / panels;
        multiply_panels(s, x, mix_gemm_view_at(&s->a_block, row, 0), s->a_block.stride, row, (int)(end - row),
                        column, (int)smaller(engine->nr, x->columns - column), s->c, 0);
      }
  } else {
    for (int64_t i = 0; i < panels; i++) {
      const int64_t row = x->rows * i / panels, group = i - i % own->c_panels;
      const void *a = mix_gemm_view_at(&s->a_block, row, 0);
      int64_t a_stride = s->a_block.stride;
      if (!own->a_in_place) {
        const int64_t first = i - i % own->a_panels;
        if (i == first) pack_panels(s, x, first, smaller(first + own->a_panels, panels), panels);
        const int64_t from =
            own->a_panel_stride ? (i - first) * own->a_panel_stride : row - x->rows * first / panels;
        a = at(s->a, from, engine->element_size), a_stride = own->a_stride;
      }
      /* The workspace holds the sums of a group of panels, or of the block. */
      const int64_t first_row = x->rows * group / panels;
      if (x->first && x->last && !plan->compute_transposed) s->sums_row = first_row;
      multiply_row_panel(s, x, a, a_stride, i, panels);
      if (x->last && !own->c_in_place && !plan->compute_transposed &&
          (i + 1 == panels || i + 1 == group + own->c_panels))
        store_rows(s, x, first_row, x->rows * (i + 1) / panels);
    }
  }
  if (x->last && plan->compute_transposed)
    mix_gemm_store_transposed(plan, s->operands, s->c, own->c_stride, s->transpose, x->row, x->rows,
                              x->column, x->columns);
}

void mix_blocked_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                     void *shared, void *workspace) {
  const mix_blocked_plan *own = mix_blocked_plan_of(plan);
  const mix_gemm_problem *p = &plan->problem;
  run_state s = {.plan = plan, .own = own, .operands = operands, .a = workspace};
  s.packed_b = s.a + own->a_bytes, s.c = s.packed_b + own->b_bytes, s.transpose = s.c + own->c_bytes;
  s.gathered = s.transpose + own->transpose_bytes;
  mix_gemm_work work;
  mix_gemm_tile tile;
  mix_gemm_begin(&work, plan, operands->stealing, team->rank);
  while (mix_gemm_next_tile(&work, &tile)) {
    block x = {.row = tile.row, .rows = tile.row_end - tile.row};
    x.column = tile.column, x.columns = tile.column_end - tile.column;
    do { /* once, with an empty sum, where k is 0 */
      x.depth = mix_gemm_next_depth(plan, p->k - x.k);
      x.first = x.k == 0, x.last = x.k + x.depth == p->k;
      multiply_block(&s, &x);
      x.k += x.depth;
    } while (x.k < p->k);
  }
  mix_gemm_end(&work);
}

static const char *blocked_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                              const mix_gemm_problem *problem) {
  return NULL;
}

mix_gemm_workspace mix_blocked_workspace(const mix_gemm_plan *plan) {
  const mix_blocked_plan *own = mix_blocked_plan_of(plan);
  return (mix_gemm_workspace){.thread = own->a_bytes + own->b_bytes + own->c_bytes + own->transpose_bytes +
                                        own->gathered_bytes};
}

const mix_gemm_algorithm mix_gemm_blocked = {
    .name = "blocked", .unsupported_reason = blocked_unsupported_reason, MIX_BLOCKED_FUNCTIONS};
