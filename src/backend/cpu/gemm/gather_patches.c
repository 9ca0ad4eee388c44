/* Gathers a block of a matrix of patches (operand_view.h). */
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/operand_view.h"
#include <string.h>

enum { AXES = MIX_GEMM_PATCH_AXES, SEGMENTS = 64 };

/* Elements of a patch that lie in one line of an image (its last axis, all channels): of one cell of the
 * window, or of several that lie next to each other. */
typedef struct segment {
  int64_t offset[AXES - 1]; /* of the window's cell along the axes before the last */
  int64_t first, count;     /* elements of the line, from the patch's own cell on */
} segment;

/* The segment from column `column` of a patch on, at most `most` elements. */
static segment segment_at(const mix_gemm_patches *p, int64_t column, int64_t most) {
  const int64_t cell = column / p->channels, channel = column % p->channels, last = cell % p->window[2];
  const int64_t before = cell / p->window[2];
  const bool line = p->pixel == p->channels && p->window_step[2] == 1;
  segment s = {
      .offset = {before / p->window[1] * p->window_step[0], before % p->window[1] * p->window_step[1]}};
  s.first = last * p->window_step[2] * p->pixel + channel;
  s.count = smaller((line ? p->window[2] - last : 1) * p->channels - channel, most);
  return s;
}

/* Sizes of an element in the image and where it is gathered. */
typedef struct copying {
  int64_t from, to;
  mix_tile_load_function widen; /* NULL: as stored */
} copying;

/* One segment of the patch at `at` of an image. */
static void gather_segment(const mix_gemm_patches *p, const segment *s, const char *image,
                           const int64_t at[AXES], const copying *copy, char *to) {
  const int64_t y = at[0] + s->offset[0], x = at[1] + s->offset[1], length = p->image[2] * p->pixel,
                from = at[2] * p->pixel + s->first;
  int64_t before = from < 0 ? smaller(-from, s->count) : 0, end = smaller(s->count, length - from);
  if (y < 0 || y >= p->image[0] || x < 0 || x >= p->image[1] || end < before) before = end = s->count;
  if (before) memset(to, 0, (size_t)(before * copy->to));
  if (end > before) {
    const char *source = image + ((y * p->image[1] + x) * length + from + before) * copy->from;
    if (copy->widen)
      copy->widen(to + before * copy->to, source, end - before);
    else
      memcpy(to + before * copy->to, source, (size_t)((end - before) * copy->to));
  }
  if (end < s->count) memset(to + end * copy->to, 0, (size_t)((s->count - end) * copy->to));
}

/* Where a row's patch is. */
typedef struct place {
  int64_t example, cell[AXES];
} place;

static place place_of(const mix_gemm_patches *p, int64_t row) {
  place x;
  for (int i = AXES - 1; i >= 0; i--) x.cell[i] = row % p->cells[i], row /= p->cells[i];
  x.example = row;
  return x;
}

static void next_place(const mix_gemm_patches *p, place *x) {
  for (int i = AXES - 1; i >= 0; i--) {
    if (++x->cell[i] < p->cells[i]) return;
    x->cell[i] = 0;
  }
  x->example++;
}

static void gather_segments(const mix_gemm_view *view, int count, const segment *segments, int64_t row,
                            int64_t rows, const copying *copy, char *to, int64_t stride) {
  const mix_gemm_patches *p = view->patches;
  const int64_t bytes = p->image[0] * p->image[1] * p->image[2] * p->pixel * view->size;
  place x = place_of(p, row);
  for (int64_t r = 0; r < rows; r++, next_place(p, &x)) {
    int64_t at[AXES];
    for (int i = 0; i < AXES; i++) at[i] = x.cell[i] * p->step[i] + p->origin[i];
    char *here = to + r * stride * copy->to;
    for (int s = 0; s < count; here += segments[s++].count * copy->to)
      gather_segment(p, &segments[s], view->base + x.example * bytes, at, copy, here);
  }
}

void mix_gemm_gather_patches(const mix_gemm_view *view, int64_t row, int64_t rows, int64_t column,
                             int64_t columns, mix_tile_load_function widen, char *to, int64_t stride) {
  const copying copy = {view->size, widen ? (int64_t)sizeof(float) : view->size, widen};
  while (columns > 0) {
    segment segments[SEGMENTS];
    int count = 0;
    int64_t taken = 0;
    for (; count < SEGMENTS && taken < columns; taken += segments[count++].count)
      segments[count] = segment_at(view->patches, column + taken, columns - taken);
    gather_segments(view, count, segments, row, rows, &copy, to, stride);
    column += taken, columns -= taken, to += taken * copy.to;
  }
}
