/* The driver of products over lines of cells. */
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/lines/lines.h"
#include <string.h>

typedef struct run_state {
  const mix_gemm_plan *plan;
  const mix_lines_plan *own;
  const mix_gemm_operands *operands;
  const mix_gemm_patches *patches;
  const mix_gemm_segment *segments;
  char *slab, *sums;
  const char *b; /* all panels */
} run_state;

/* Lines of cells [first, first + count) of an example, of which cells [begin, end) of the result. */
typedef struct block {
  int64_t example, first, count, begin, end;
} block;

/* ---- packing ---- */

/* A thread's share of the panels of B. */
static void pack_b(const mix_gemm_plan *plan, const mix_gemm_segment *segments, const mix_gemm_view *b,
                   int rank, int threads, char *to) {
  const mix_gemm_engine *engine = plan->engine;
  const mix_lines_plan *own = mix_lines_plan_of(plan);
  const int64_t size = (int64_t)engine->element_size, panel = own->depth * engine->nr;
  int64_t begin, end;
  mix_gemm_share(plan->problem.n, engine->nr, rank, threads, &begin, &end);
  if (begin == end) return;
  to += begin / engine->nr * panel * size;
  for (int64_t i = 0, k = 0; i < own->segment_count; i++) {
    const mix_gemm_segment *x = &segments[i];
    const int64_t numbers = x->depth * (engine->pairs ? 2 : 1) - x->odd;
    plan->storage->pack_b[0](mix_gemm_view_at(b, k, begin), b->stride, numbers, end - begin, to, panel);
    to += x->depth * engine->nr * size, k += numbers;
  }
}

/* Pixels [first, first + count) of a line of the image, some of which may be padding. */
static void pack_line(const run_state *s, const char *image, int64_t first, int64_t count, char *to) {
  const mix_gemm_patches *p = s->patches;
  const mix_gemm_engine *engine = s->plan->engine;
  const mix_lines_plan *own = s->own;
  const int64_t size = (int64_t)engine->element_size, unit = engine->pairs ? 2 : 1;
  const int64_t before = first < 0 ? smaller(-first, count) : 0, end = smaller(count, p->image[2] - first),
                pixels = end - before;
  const bool whole = own->whole_lines;
  if (!image || pixels <= 0) {
    memset(to, 0, (size_t)(own->line * size));
    return;
  }
  const int64_t head = whole ? before * p->channels / unit : before * own->pitch;
  const char *from = image + (first + before) * p->pixel * s->operands->a.size;
  memset(to, 0, (size_t)(head * size));
  if (whole)
    s->plan->storage->pack_a[MIX_GEMM_ALONG_K](from, 0, 1, pixels * p->channels, to + head * size, 0);
  else
    s->plan->storage->pack_a[MIX_GEMM_ALONG_K](from, p->pixel, (int)pixels, p->channels, to + head * size,
                                               own->pitch);
  const int64_t packed = whole ? head + divide_up(pixels * p->channels, unit) : end * own->pitch;
  if (packed < own->line) memset(to + packed * size, 0, (size_t)((own->line - packed) * size));
}

static void pack_lines(const run_state *s, const block *x) {
  const mix_gemm_patches *p = s->patches;
  const mix_gemm_view *a = &s->operands->a;
  const mix_lines_extent rows = mix_lines_extent_of(p, 1), columns = mix_lines_extent_of(p, 2);
  const int64_t first = x->first * p->step[1] + rows.first, lines = (x->count - 1) * p->step[1] + rows.seen,
                pixels = (p->cells[2] - 1) * p->step[2] + columns.seen;
  const int64_t bytes = p->image[2] * p->pixel * a->size;
  const char *image = a->base + x->example * p->image[1] * bytes;
  for (int64_t i = 0; i < lines; i++) {
    if (p->window[1] == 1 && i % p->step[1]) continue;
    const int64_t row = first + i;
    pack_line(s, row >= 0 && row < p->image[1] ? image + row * bytes : NULL, columns.first, pixels,
              s->slab + i * s->own->line * (int64_t)s->plan->engine->element_size);
  }
}

/* ---- multiplying ---- */

/* Cells [cell, cell + rows) of a line, at most a tile's, times columns [column, end). */
static void multiply_cells(const run_state *s, const char *a, int rows, int64_t column, int64_t end, char *c,
                           int64_t c_stride) {
  const mix_gemm_engine *engine = s->plan->engine;
  const mix_gemm_patches *p = s->patches;
  const mix_lines_plan *own = s->own;
  const int64_t size = (int64_t)engine->element_size, unit = engine->pairs ? 2 : 1;
  const int64_t stride = own->whole_lines ? p->step[2] * p->channels / unit : p->step[2] * own->pitch;
  for (; column < end; column += engine->nr, c += engine->nr * (int64_t)engine->sum_size) {
    const char *b = s->b + column * own->depth * size;
    const mix_gemm_segment *from = s->segments, *const last = from + own->segment_count;
    while (from < last) {
      int64_t count = 0, depth = 0;
      do depth += from[count].depth;
      while (!from[count++].last);
      engine->lines_micro[MIX_GEMM_ALONG_K][rows - 1](from, count, a, stride, b, NULL, c, c_stride,
                                                      (int)smaller(engine->nr, end - column),
                                                      from > s->segments);
      from += count, b += depth * engine->nr * size;
    }
  }
}

/* Cells [first, last) of a line times columns [column, end). row: of the result, the line's first. */
static void multiply_line(const run_state *s, const char *line, int64_t row, int64_t first, int64_t last,
                          int64_t column, int64_t end) {
  const mix_gemm_plan *plan = s->plan;
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_patches *p = s->patches;
  const mix_lines_plan *own = s->own;
  const int64_t cells = last - first, panels = divide_up(cells, engine->mr), unit = engine->pairs ? 2 : 1,
                size = (int64_t)engine->element_size, sum = (int64_t)engine->sum_size;
  int64_t stored = first; /* cells whose sums are stored */
  for (int64_t i = 0; i < panels; i++) {
    const int64_t cell = first + cells * i / panels, next = first + cells * (i + 1) / panels;
    const char *a =
        line +
        (own->whole_lines ? cell * p->step[2] * p->channels / unit : cell * p->step[2] * own->pitch) * size;
    if (own->c_in_place) {
      char *c = (char *)s->operands->c + ((row + cell) * plan->problem.ldc + column) * sum;
      multiply_cells(s, a, (int)(next - cell), column, end, c, plan->problem.ldc);
      continue;
    }
    multiply_cells(s, a, (int)(next - cell), column, end, s->sums + (cell - stored) * own->c_stride * sum,
                   own->c_stride);
    if (next - stored < own->sums_cells && next < last) continue;
    mix_gemm_store_result(plan, s->operands, s->sums, own->c_stride, row + stored, next - stored, column,
                          end - column, next < last);
    stored = next;
  }
}

static void multiply_block(const run_state *s, const block *x) {
  const mix_gemm_patches *p = s->patches;
  const mix_lines_plan *own = s->own;
  const int64_t n = s->plan->problem.n, cells = p->cells[2],
                pitch = p->step[1] * own->line * (int64_t)s->plan->engine->element_size;
  pack_lines(s, x);
  for (int64_t column = 0; column < n; column += own->nc)
    for (int64_t i = 0; i < x->count; i++) {
      const int64_t row = (x->example * p->cells[1] + x->first + i) * cells;
      multiply_line(s, s->slab + i * pitch, row, x->begin > row ? x->begin - row : 0,
                    smaller(x->end - row, cells), column, smaller(column + own->nc, n));
    }
}

static void lines_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                      void *shared, void *workspace) {
  const mix_lines_plan *own = mix_lines_plan_of(plan);
  const mix_gemm_patches *p = operands->a.patches;
  mix_gemm_problem problem = plan->problem;
  problem.patches = p;
  run_state s = {.plan = plan, .own = own, .operands = operands, .patches = p, .segments = workspace};
  s.slab = (char *)workspace + own->segment_bytes, s.sums = s.slab + own->slab_bytes;
  mix_lines_cut_patch(plan->engine, &problem, own, workspace);
  if (!own->b_kept) pack_b(plan, s.segments, &operands->b, team->rank, team->size, shared);
  s.b = own->b_kept ? operands->kept : shared;
  if (plan->barriers) mix_team_barrier(team);
  const int64_t cells = p->cells[2];
  int64_t begin, end;
  mix_team_share(team, plan->problem.m, 1, &begin, &end);
  for (int64_t line = begin / cells; line * cells < end;) {
    block x = {.example = line / p->cells[1], .first = line % p->cells[1], .begin = begin, .end = end};
    x.count = smaller(smaller(own->cell_lines, p->cells[1] - x.first), divide_up(end, cells) - line);
    multiply_block(&s, &x);
    line += x.count;
  }
}

static void lines_keep(const mix_gemm_plan *plan, const mix_gemm_view *b, int rank, int threads, void *kept) {
  mix_gemm_segment segments[MIX_LINES_SEGMENTS];
  mix_lines_cut_patch(plan->engine, &plan->problem, mix_lines_plan_of(plan), segments);
  pack_b(plan, segments, b, rank, threads, kept);
}

const mix_gemm_algorithm mix_gemm_lines = {.name = "lines",
                                           .unsupported_reason = mix_lines_unsupported_reason,
                                           .plan = mix_lines_make_plan,
                                           .workspace = mix_lines_workspace,
                                           .kept_bytes = mix_lines_kept_bytes,
                                           .keep = lines_keep,
                                           .run = lines_run};
