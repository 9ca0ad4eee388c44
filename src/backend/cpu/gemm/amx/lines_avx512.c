/* The driver of products over lines of cells on tiles. */
#include "backend/cpu/gemm/amx/lines.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/lines/lines.h"
#include <immintrin.h>
#include <string.h>

enum {
  TILE_BYTES = AMX_LANES * AMX_ROW,
  NUMBER = sizeof(uint16_t), /* packed */
};

typedef struct run_state {
  const mix_amx_tiles *tiles;
  const mix_gemm_plan *plan;
  const mix_amx_lines_plan *own;
  const mix_gemm_operands *operands;
  const mix_gemm_patches *patches;
  mix_amx_pack_line *split; /* into parts; NULL: there is one */
  mix_amx_step *steps;
  mix_amx_piece *pieces;
  unsigned char *slab, *gathered;
  float *sums;
  const unsigned char *b, *b_flags; /* all panels */
  bool flag;                        /* some numbers of the packed lines are not finite */
} run_state;

/* Lines of cells [first, first + count) of an example, of which cells [begin, end) of the result. */
typedef struct block {
  int64_t example, first, count, begin, end;
} block;

/* ---- packing ---- */

static int64_t panel_bytes(const mix_gemm_plan *plan) {
  return mix_amx_steps(plan) * mix_amx_parts(plan->storage->dtype) * AMX_PAIR;
}
/* Flags of the steps of B, behind its panels. */
static int64_t flags_at(const mix_gemm_plan *plan) {
  return divide_up(plan->problem.n, AMX_PANEL) * panel_bytes(plan);
}

/* A thread's share of the panels of B. */
static void pack_b(const mix_gemm_plan *plan, const mix_gemm_view *b, int rank, int threads,
                   unsigned char *to) {
  const mix_gemm_view lines = mix_gemm_view_transposed(b);
  mix_amx_pack *pack = mix_amx_storage_of(plan->storage->dtype)->pack[1][lines.transposed];
  int64_t begin, end;
  mix_gemm_share(plan->problem.n, AMX_PANEL, rank, threads, &begin, &end);
  if (begin == end) return;
  const int64_t panel = begin / AMX_PANEL;
  pack(mix_gemm_view_at(&lines, begin, 0), lines.stride, end - begin, plan->problem.k,
       to + panel * panel_bytes(plan), to + flags_at(plan) + panel * mix_amx_steps(plan));
}

/* `count` packed numbers. */
static void clear(const run_state *s, unsigned char *to, int64_t count) {
  memset(to, 0, (size_t)(count * NUMBER));
  if (s->split) memset(to + s->own->part, 0, (size_t)(count * NUMBER));
}
static void pack_numbers(run_state *s, const char *from, int64_t count, unsigned char *to) {
  if (s->split)
    s->flag |= s->split(from, count, to, s->own->part);
  else
    memcpy(to, from, (size_t)(count * NUMBER));
}

/* Pixels [first, first + count) of a line of the image, some of which may be padding. */
static void pack_pixels(run_state *s, const char *image, int64_t first, int64_t count, unsigned char *to) {
  const mix_gemm_patches *p = s->patches;
  const int64_t pitch = s->own->pitch, pixel = p->pixel * s->operands->a.size;
  const int64_t before = first < 0 ? smaller(-first, count) : 0, end = smaller(count, p->image[2] - first);
  if (end <= before) {
    clear(s, to, count * pitch);
    return;
  }
  const char *from = image + (first + before) * pixel;
  clear(s, to, before * pitch);
  if (p->pixel == p->channels && pitch == p->channels)
    pack_numbers(s, from, (end - before) * pitch, to + before * pitch * NUMBER);
  else
    for (int64_t i = before; i < end; i++, from += pixel)
      pack_numbers(s, from, p->channels, to + i * pitch * NUMBER);
  clear(s, to + end * pitch * NUMBER, (count - end) * pitch);
}

/* Line `row` of the image, or padding. */
static void pack_line(run_state *s, const char *images, int64_t row, unsigned char *to) {
  const mix_gemm_patches *p = s->patches;
  const mix_lines_extent x = mix_lines_extent_of(p, 2);
  if (row < 0 || row >= p->image[1]) {
    clear(s, to, s->own->line);
    return;
  }
  const bool apart = p->step[2] > x.seen; /* between cells lie pixels that none sees */
  const int64_t runs = apart ? p->cells[2] : 1,
                pixels = apart ? x.seen : (p->cells[2] - 1) * p->step[2] + x.seen;
  const char *image = images + row * p->image[2] * p->pixel * s->operands->a.size;
  for (int64_t i = 0; i < runs; i++, to += pixels * s->own->pitch * NUMBER)
    pack_pixels(s, image, x.first + i * p->step[2], pixels, to);
}

static void pack_lines(run_state *s, const block *x) {
  const mix_gemm_patches *p = s->patches;
  const mix_gemm_view *a = &s->operands->a;
  const mix_lines_extent rows = mix_lines_extent_of(p, 1);
  const int64_t step = mix_amx_packed_step(p, 1, rows.seen), lines = (x->count - 1) * step + rows.seen;
  const char *images = a->base + x->example * p->image[1] * p->image[2] * p->pixel * a->size;
  s->flag = false;
  for (int64_t i = 0; i < lines; i++) {
    const int64_t row = p->step[1] > rows.seen ? i / rows.seen * p->step[1] + i % rows.seen : i;
    pack_line(s, images, x->first * p->step[1] + rows.first + row, s->slab + i * s->own->line * NUMBER);
  }
}

/* ---- multiplying ---- */

/* Up to 16 cells of a line: where the first one's numbers are, its row of the result. */
typedef struct tile_rows {
  const unsigned char *at;
  int64_t row, count;
} tile_rows;

/* Where the next cells are: line of the block, cell of the line. */
typedef struct cursor {
  int64_t line, cell;
} cursor;

static bool next_rows(const run_state *s, const block *x, cursor *c, tile_rows *to) {
  const mix_gemm_patches *p = s->patches;
  const int64_t cells = p->cells[2], step = mix_amx_packed_step(p, 1, mix_lines_extent_of(p, 1).seen);
  for (; c->line < x->count; c->line++, c->cell = 0) {
    const int64_t row = (x->example * p->cells[1] + x->first + c->line) * cells,
                  end = smaller(cells, x->end - row);
    if (c->cell < x->begin - row) c->cell = x->begin - row;
    if (c->cell >= end) continue;
    to->at = s->slab + (c->line * step * s->own->line + c->cell * s->own->cell) * NUMBER;
    to->row = row + c->cell, to->count = smaller(AMX_LANES, end - c->cell);
    c->cell += to->count;
    return true;
  }
  return false;
}

static void gather(const run_state *s, const tile_rows *x, unsigned char *to) {
  const mix_amx_piece *piece = s->pieces;
  for (int64_t i = 0; i < s->own->gathered; i++, to += AMX_PAIR) {
    const mix_amx_piece *last = piece;
    while (!last->last) last++;
    const unsigned char *from = x->at;
    for (int64_t row = 0; row < x->count; row++, from += s->own->cell * NUMBER) {
      __m512i numbers = _mm512_setzero_si512();
      for (const mix_amx_piece *q = piece; q <= last; q++)
        numbers = _mm512_mask_loadu_epi16(numbers, q->numbers, from + q->at);
      _mm512_store_si512(to + row * AMX_ROW, numbers);
    }
    piece = last + 1;
  }
}

/* One or two tiles of cells times columns [column, end). */
static void multiply_rows(const run_state *s, const block *x, const tile_rows *rows, int count,
                          int64_t column, int64_t end) {
  const mix_gemm_plan *plan = s->plan;
  const mix_amx_lines_plan *own = s->own;
  const int64_t steps = mix_amx_steps(plan);
  mix_amx_multiply_lines *const(*micro)[2] = s->split ? s->tiles->split_lines : s->tiles->lines;
  mix_amx_cells cells = {.first = {rows[0].at, rows[count - 1].at},
                         .gathered = s->gathered,
                         .stride = own->cell * NUMBER,
                         .part = own->part,
                         .flag = s->flag};
  for (int i = 0; i < count; i++) gather(s, &rows[i], s->gathered + i * TILE_BYTES);
  for (int64_t j = column; j < end; j += AMX_PANEL) {
    const int64_t panel = j / AMX_PANEL;
    for (int i = 0; i < count; i++)
      mix_gemm_prefetch_result(plan, s->operands, rows[i].row, rows[i].count, j, smaller(AMX_PANEL, end - j));
    micro[count > 1][end - j > AMX_LANES](s->steps, steps, &cells, s->b + panel * panel_bytes(plan),
                                          s->b_flags + panel * steps, s->sums + (j - column),
                                          own->c_stride * (int64_t)sizeof(float));
  }
  for (int i = 0; i < count; i++)
    mix_gemm_store_result(plan, s->operands, s->sums + i * AMX_LANES * own->c_stride, own->c_stride,
                          rows[i].row, rows[i].count, column, end - column,
                          rows[i].row + rows[i].count < x->end);
}

static void multiply_block(run_state *s, const block *x) {
  const int64_t n = s->plan->problem.n;
  pack_lines(s, x);
  for (int64_t column = 0; column < n; column += s->own->nc) {
    cursor at = {0};
    tile_rows rows[2];
    while (next_rows(s, x, &at, &rows[0])) {
      const int count = next_rows(s, x, &at, &rows[1]) ? 2 : 1;
      multiply_rows(s, x, rows, count, column, smaller(column + s->own->nc, n));
    }
  }
}

void mix_amx_run_lines(const mix_amx_tiles *tiles, const mix_gemm_plan *plan,
                       const mix_gemm_operands *operands, const mix_team *team, void *shared,
                       void *workspace) {
  const mix_amx_lines_plan *own = mix_amx_lines_plan_of(plan);
  const mix_gemm_patches *p = operands->a.patches;
  mix_gemm_problem problem = plan->problem;
  problem.patches = p;
  unsigned char *memory = workspace;
  run_state s = {.tiles = tiles, .plan = plan, .own = own, .operands = operands, .patches = p};
  s.split = mix_amx_storage_of(plan->storage->dtype)->pack_line;
  s.steps = workspace, s.pieces = (mix_amx_piece *)(s.steps + mix_amx_steps(plan));
  s.slab = memory += own->table_bytes;
  s.gathered = memory += own->slab_bytes;
  s.sums = (float *)(memory + own->gathered * AMX_PAIR);
  mix_amx_cut_patch(&problem, own, s.steps, s.pieces);
  if (!own->b_kept) pack_b(plan, &operands->b, team->rank, team->size, shared);
  s.b = own->b_kept ? operands->kept : shared, s.b_flags = s.b + flags_at(plan);
  if (plan->barriers) mix_team_barrier(team);
  const int64_t cells = p->cells[2];
  int64_t begin, end;
  mix_team_share(team, plan->problem.m, AMX_LANES, &begin, &end);
  tiles->enter();
  for (int64_t line = begin / cells; begin < end && line * cells < end;) {
    block x = {.example = line / p->cells[1], .first = line % p->cells[1], .begin = begin, .end = end};
    x.count = smaller(smaller(own->cell_lines, p->cells[1] - x.first), divide_up(end, cells) - line);
    multiply_block(&s, &x);
    line += x.count;
  }
  tiles->leave();
}

void mix_amx_keep_lines(const mix_gemm_plan *plan, const mix_gemm_view *b, int rank, int threads,
                        void *kept) {
  pack_b(plan, b, rank, threads, kept);
}
