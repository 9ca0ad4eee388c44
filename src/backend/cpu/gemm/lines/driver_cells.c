/* The driver of gradients of kernels over lines of cells. */
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/lines/cells.h"
#include "backend/cpu/gemm/lines/lines.h"
#include <string.h>

typedef struct run_state {
  const mix_gemm_plan *plan;
  const mix_cells_plan *own;
  const mix_gemm_operands *operands;
  const mix_gemm_patches *patches;
  mix_gemm_segment *segments;
  char *scratch, *slab, *b;
  char *sums, *chains;  /* tile by tile: of the blocks of k that are over, and of the present one */
  int64_t begin, end;   /* tiles of C: this thread's */
  int64_t count, depth; /* segments of the cells packed now, and their packed elements */
} run_state;

/* ---- packing ---- */

/* A line of the image, or of padding: each number, where elements are pairs beside that of the next cell. */
static void pack_line(const run_state *s, const char *image, char *to) {
  const mix_gemm_patches *p = s->patches;
  const mix_gemm_engine *engine = s->plan->engine;
  const int64_t size = s->operands->a.size, pixel = p->channels * size,
                first = mix_lines_extent_of(p, 2).first, pixels = s->own->pixels + p->step[2],
                before = first < 0 ? smaller(-first, pixels) : 0, end = smaller(pixels, p->image[2] - first);
  if (!image || end <= before) {
    memset(to, 0, (size_t)(s->own->line * (int64_t)engine->element_size));
    return;
  }
  const char *from = image + (first + before) * p->pixel * size;
  memset(s->scratch, 0, (size_t)(before * pixel));
  if (p->pixel == p->channels)
    memcpy(s->scratch + before * pixel, from, (size_t)((end - before) * pixel));
  else
    for (int64_t i = before; i < end; i++, from += p->pixel * size)
      memcpy(s->scratch + i * pixel, from, (size_t)pixel);
  memset(s->scratch + end * pixel, 0, (size_t)((pixels - end) * pixel));
  s->plan->storage->pack_a[MIX_GEMM_ALONG_M](s->scratch, p->step[2] * p->channels, (int)s->own->line,
                                             engine->pairs ? 2 : 1, to, 0);
}

/* Does a tile of this thread read line `line` of those that `cells` lines of cells see? */
static bool reads_line(const run_state *s, int64_t line, int64_t cells) {
  const mix_gemm_patches *p = s->patches;
  const int64_t tiles = s->own->parts / p->window[1] * s->own->tiles * s->own->panels;
  for (int64_t i = s->begin / tiles; i * tiles < s->end; i++) {
    const int64_t above = line - mix_lines_extent_of(p, 1).zero - i * p->window_step[1];
    if (above >= 0 && above % p->step[1] == 0 && above / p->step[1] < cells) return true;
  }
  return false;
}

/* The lines of an example that cells of its lines [first, end) see. Returns where the next ones go. */
static char *pack_lines(const run_state *s, int64_t example, int64_t first, int64_t end, char *to) {
  const mix_gemm_patches *p = s->patches;
  const mix_gemm_view *a = &s->operands->a;
  const mix_lines_extent rows = mix_lines_extent_of(p, 1);
  const int64_t row = first * p->step[1] + rows.first, lines = (end - 1 - first) * p->step[1] + rows.seen;
  const int64_t bytes = p->image[2] * p->pixel * a->size;
  const char *image = a->base + example * p->image[1] * bytes;
  for (int64_t i = 0; i < lines; i++, to += s->own->line * (int64_t)s->plan->engine->element_size)
    if (reads_line(s, i, end - first))
      pack_line(s, row + i >= 0 && row + i < p->image[1] ? image + (row + i) * bytes : NULL, to);
  return to;
}

/* Cells [k, end), of which B's rows are packed too. */
static void pack_block(run_state *s, int64_t k, int64_t end) {
  const mix_gemm_plan *plan = s->plan;
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_patches *p = s->patches;
  const mix_gemm_view *b = &s->operands->b;
  const int64_t size = (int64_t)engine->element_size, unit = engine->pairs ? 2 : 1, from = k;
  char *to = s->slab;
  s->count = s->depth = 0;
  while (k < end) {
    const int64_t line = k / p->cells[2], example = line / p->cells[1], first = line % p->cells[1],
                  lines = smaller(p->cells[1], divide_up(end, p->cells[2]) - example * p->cells[1]) - first;
    const int64_t base = (to - s->slab) / size;
    to = pack_lines(s, example, first, first + lines, to);
    for (int64_t i = 0; i < lines; i++) {
      const int64_t cell = k % p->cells[2], cells = smaller(p->cells[2] - cell, end - k);
      s->segments[s->count++] =
          (mix_gemm_segment){.offset = base + i * p->step[1] * s->own->line + cell * p->step[2] * p->channels,
                             .depth = divide_up(cells, unit),
                             .odd = cells % unit != 0};
      s->depth += divide_up(cells, unit), k += cells;
    }
  }
  k = from;
  char *packed = s->b;
  for (int64_t i = 0; i < s->count; i++) {
    const mix_gemm_segment *x = &s->segments[i];
    const int64_t cells = x->depth * unit - x->odd;
    plan->storage->pack_b[0](mix_gemm_view_at(b, k, 0), b->stride, cells, plan->problem.n, packed,
                             s->depth * engine->nr);
    packed += x->depth * engine->nr * size, k += cells;
  }
}

/* ---- multiplying ---- */

/* A tile of C: rows [row, row + rows), and the panel of columns. `at`: its first row in the slab, from where
 * a segment begins. */
typedef struct tile {
  int64_t row, column, at;
  int rows, columns;
} tile;

static tile tile_of(const run_state *s, int64_t unit) {
  const mix_cells_plan *own = s->own;
  const mix_gemm_patches *p = s->patches;
  const int64_t panel = unit % own->panels, part = unit / own->panels / own->tiles,
                i = unit / own->panels % own->tiles, across = own->parts / p->window[1];
  const int64_t first = own->part_rows * i / own->tiles, end = own->part_rows * (i + 1) / own->tiles;
  const int64_t line = mix_lines_extent_of(p, 1).zero + part / across * p->window_step[1],
                pixel = across == 1 ? 0 : mix_lines_extent_of(p, 2).zero + part % across * p->window_step[2];
  return (tile){.row = part * own->part_rows + first,
                .column = panel * s->plan->engine->nr,
                .at = line * own->line + pixel * p->channels + first,
                .rows = (int)(end - first),
                .columns =
                    (int)smaller(s->plan->engine->nr, s->plan->problem.n - panel * s->plan->engine->nr)};
}

static char *sums_of(const run_state *s, char *sums, int64_t unit) {
  const mix_gemm_engine *engine = s->plan->engine;
  return sums + (unit - s->begin) * engine->mr * engine->nr * (int64_t)engine->sum_size;
}

/* first, last: of their block of k. add: there are blocks before it. */
static void multiply_block(const run_state *s, bool first, bool last, bool add) {
  const mix_gemm_engine *engine = s->plan->engine;
  const mix_gemm_patches *p = s->patches;
  const int64_t size = (int64_t)engine->element_size,
                stride = p->step[2] * p->channels * (engine->pairs ? 2 : 1);
  for (int64_t unit = s->begin; unit < s->end; unit++) {
    const tile t = tile_of(s, unit);
    char *chains = sums_of(s, s->chains, unit);
    engine->lines_micro[MIX_GEMM_ALONG_M][t.rows - 1](
        s->segments, s->count, s->slab + t.at * size, stride, s->b + t.column * s->depth * size,
        first ? NULL : chains, last ? sums_of(s, s->sums, unit) : chains, engine->nr, t.columns, last && add);
  }
}

static void cells_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                      void *shared, void *workspace) {
  const mix_cells_plan *own = mix_cells_plan_of(plan);
  run_state s = {.plan = plan, .own = own, .operands = operands, .patches = operands->a.patches};
  s.segments = workspace, s.scratch = (char *)workspace + own->segment_bytes;
  s.slab = s.scratch + own->scratch_bytes, s.b = s.slab + own->slab_bytes, s.sums = s.b + own->b_bytes;
  mix_team_share(team, own->parts * own->tiles * own->panels, 1, &s.begin, &s.end);
  s.chains =
      s.sums + (s.end - s.begin) * plan->engine->mr * plan->engine->nr * (int64_t)plan->engine->sum_size;
  if (s.begin == s.end) return;
  for (int64_t k = 0; k < plan->problem.k;) {
    const int64_t block = k, block_end = k + mix_gemm_next_depth(plan, plan->problem.k - k);
    while (k < block_end) {
      const int64_t cells = s.patches->cells[2],
                    end = smaller(block_end, (k / cells + own->cell_lines) * cells);
      pack_block(&s, k, end);
      multiply_block(&s, k == block, end == block_end, block > 0);
      k = end;
    }
  }
  for (int64_t unit = s.begin; unit < s.end; unit++) {
    const tile t = tile_of(&s, unit);
    mix_gemm_store_result(plan, operands, sums_of(&s, s.sums, unit), plan->engine->nr, t.row, t.rows,
                          t.column, t.columns, false);
  }
}

const mix_gemm_algorithm mix_gemm_cells = {.name = "cells",
                                           .unsupported_reason = mix_cells_unsupported_reason,
                                           .plan = mix_cells_make_plan,
                                           .workspace = mix_cells_workspace,
                                           .run = cells_run};
