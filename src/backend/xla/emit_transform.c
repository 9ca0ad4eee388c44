/* Projective transforms of images: coordinates in float32. */
#include "backend/xla/emit_inside.h"

#include <mixtape/image.h>

typedef struct image {
  mix_emitter *e;
  mix_hlo pixels;  /* (batch height width, channels) */
  mix_shape cells; /* (batch, height width) */
  int64_t height, width, channels;
  mix_hlo fill; /* (batch, height width, channels) */
} image;

static mix_hlo constant(const image *m, double x) {
  return mix_hlo_number(&m->e->w, mix_type_of(MIX_FLOAT32, m->cells), x);
}
static mix_hlo truncated(const image *m, mix_hlo x) {
  mix_hlo_writer *w = &m->e->w;
  const mix_hlo size = mix_hlo_unary(w, "floor", mix_hlo_unary(w, "abs", x));
  return mix_hlo_multiply(w, size, mix_hlo_unary(w, "sign", x));
}

static mix_hlo reflected(const image *m, mix_hlo at, float n) {
  mix_hlo_writer *w = &m->e->w;
  if (n <= 1) return constant(m, 0);
  const mix_hlo period = constant(m, 2 * n), zero = constant(m, 0), one = constant(m, 1),
                negative = mix_hlo_unary(w, "negate", at),
                turns = truncated(m, mix_hlo_divide(w, negative, period)),
                is_low = mix_hlo_compare(w, "LT", at, period),
                raised_low = mix_hlo_add(w, mix_hlo_multiply(w, period, turns), at),
                raised = mix_hlo_select(w, is_low, raised_low, at),
                is_left = mix_hlo_compare(w, "LT", raised, constant(m, -n)),
                shifted = mix_hlo_add(w, raised, period),
                reflected = mix_hlo_subtract(w, mix_hlo_unary(w, "negate", raised), one),
                below = mix_hlo_select(w, is_left, shifted, reflected),
                remainder = mix_hlo_subtract(
                    w, at, mix_hlo_multiply(w, period, truncated(m, mix_hlo_divide(w, at, period)))),
                is_right = mix_hlo_compare(w, "GE", remainder, constant(m, n)),
                back = mix_hlo_subtract(w, mix_hlo_subtract(w, period, remainder), one),
                above = mix_hlo_select(w, is_right, back, remainder);
  return mix_hlo_select(w, mix_hlo_compare(w, "LT", at, zero), below, above);
}

static mix_hlo wrapped(const image *m, mix_hlo at, float n) {
  mix_hlo_writer *w = &m->e->w;
  if (n <= 1) return constant(m, 0);
  const mix_hlo size = constant(m, n), last = constant(m, n - 1),
                whole = truncated(m, mix_hlo_divide(w, mix_hlo_unary(w, "negate", at), last)),
                turns = mix_hlo_add(w, whole, constant(m, 1)),
                below = mix_hlo_add(w, at, mix_hlo_multiply(w, size, turns)),
                above = mix_hlo_subtract(
                    w, at, mix_hlo_multiply(w, size, truncated(m, mix_hlo_divide(w, at, last))));
  return mix_hlo_select(w, mix_hlo_compare(w, "LT", at, constant(m, 0)), below, above);
}

static mix_hlo mapped(const image *m, mix_hlo at, int64_t count, int mode) {
  mix_hlo_writer *w = &m->e->w;
  const float n = (float)count;
  if (mode == MIX_FILL_CONSTANT) return at;
  const mix_hlo zero = constant(m, 0), last = constant(m, n - 1), below = mix_hlo_compare(w, "LT", at, zero),
                above = mix_hlo_compare(w, "GT", at, last), outside = mix_hlo_binary(w, "or", below, above);
  if (mode == MIX_FILL_REFLECT) at = mix_hlo_select(w, outside, reflected(m, at, n), at);
  if (mode == MIX_FILL_WRAP) at = mix_hlo_select(w, outside, wrapped(m, at, n), at);
  at = mix_hlo_select(w, mix_hlo_compare(w, "NE", at, at), zero, at); /* as fmaxf */
  return mix_hlo_binary(w, "minimum", mix_hlo_binary(w, "maximum", at, zero), last);
}

static mix_hlo with_channels(const image *m, mix_hlo x) {
  return mix_hlo_broadcast_along(&m->e->w, x, m->fill.shape, (const int[]){0, 1});
}

/* A pixel of the image for each one of the result. */
typedef struct pixel {
  mix_hlo inside; /* whether it is, (batch, height width, channels) */
  mix_hlo row;    /* of m->pixels; another of the same image where it is not inside */
} pixel;

static pixel pixel_at(const image *m, mix_hlo y, mix_hlo x) {
  mix_hlo_writer *w = &m->e->w;
  const mix_hlo zero = constant(m, 0), height = constant(m, (double)m->height),
                width = constant(m, (double)m->width), top = mix_hlo_compare(w, "GE", y, zero),
                bottom = mix_hlo_compare(w, "LT", y, height), left = mix_hlo_compare(w, "GE", x, zero),
                right = mix_hlo_compare(w, "LT", x, width), rows = mix_hlo_and(w, top, bottom),
                columns = mix_hlo_and(w, left, right), inside = mix_hlo_and(w, rows, columns);
  const mix_type type = mix_type_of(MIX_INT64, m->cells);
  const mix_hlo row = mix_hlo_convert(w, mix_hlo_select(w, inside, y, zero), MIX_INT64),
                column = mix_hlo_convert(w, mix_hlo_select(w, inside, x, zero), MIX_INT64),
                image = mix_hlo_iota(w, type, 0),
                first = mix_hlo_multiply(w, image, mix_hlo_whole(w, type, m->height * m->width)),
                in_row = mix_hlo_add(w, mix_hlo_multiply(w, row, mix_hlo_whole(w, type, m->width)), column);
  return (pixel){with_channels(m, inside), mix_hlo_add(w, first, in_row)};
}

static mix_hlo take(const image *m, const pixel *p) {
  return mix_hlo_select(&m->e->w, p->inside, mix_hlo_take(&m->e->w, m->pixels, p->row, 0), m->fill);
}
/* The sums of the images' gradient with the part of a pixel of each result's. */
static mix_hlo give(const image *m, const pixel *p, mix_hlo sums, mix_hlo part) {
  mix_hlo_writer *w = &m->e->w;
  const int64_t count = mix_shape_size(m->cells);
  const mix_hlo safe = mix_hlo_select(w, p->inside, part, mix_hlo_like(w, part, 0));
  return mix_hlo_scatter(w, "add", sums, mix_hlo_reshape(w, p->row, MIX_SHAPE(count, 1)),
                         mix_hlo_reshape(w, safe, MIX_SHAPE(count, m->channels)));
}

/* The pixels around a place, and their weights. */
typedef struct neighbours {
  int count;
  pixel pixels[4];
  mix_hlo weights[4]; /* of a pixel alone: none */
} neighbours;

static neighbours around(const image *m, mix_hlo y, mix_hlo x) {
  mix_hlo_writer *w = &m->e->w;
  const mix_hlo one = constant(m, 1), y0 = mix_hlo_unary(w, "floor", y), x0 = mix_hlo_unary(w, "floor", x),
                ys[] = {y0, mix_hlo_add(w, y0, one)}, xs[] = {x0, mix_hlo_add(w, x0, one)},
                of_y[] = {mix_hlo_subtract(w, ys[1], y), mix_hlo_subtract(w, y, y0)},
                of_x[] = {mix_hlo_subtract(w, xs[1], x), mix_hlo_subtract(w, x, x0)};
  neighbours n = {.count = 4};
  for (int i = 0; i < 4; i++) {
    const mix_hlo rows = mix_hlo_convert(w, with_channels(m, of_y[i / 2]), m->fill.dtype),
                  columns = mix_hlo_convert(w, with_channels(m, of_x[i % 2]), m->fill.dtype);
    n.pixels[i] = pixel_at(m, ys[i / 2], xs[i % 2]);
    n.weights[i] = mix_hlo_multiply(w, rows, columns);
  }
  return n;
}

static neighbours nearest(const image *m, mix_hlo y, mix_hlo x) {
  const mix_hlo row = mix_hlo_unary(&m->e->w, "round_nearest_afz", y),
                column = mix_hlo_unary(&m->e->w, "round_nearest_afz", x);
  return (neighbours){.count = 1, .pixels = {pixel_at(m, row, column)}};
}

static mix_hlo weighted(const image *m, const neighbours *n, int i, mix_hlo x) {
  return n->count == 1 ? x : mix_hlo_multiply(&m->e->w, n->weights[i], x);
}

/* (a x + b y + c) / k, where t is (batch, 8) */
static mix_hlo coefficient(const image *m, mix_hlo t, int i) {
  mix_hlo_writer *w = &m->e->w;
  const mix_hlo column =
      mix_hlo_slice(w, t, (const int64_t[]){0, i}, (const int64_t[]){t.shape.dims[0], i + 1}, NULL);
  return mix_hlo_broadcast(w, column, m->cells);
}
static mix_hlo linear(const image *m, mix_hlo t, int first, mix_hlo x, mix_hlo y, mix_hlo last) {
  mix_hlo_writer *w = &m->e->w;
  const mix_hlo of_x = mix_hlo_multiply(w, coefficient(m, t, first), x),
                of_y = mix_hlo_multiply(w, coefficient(m, t, first + 1), y);
  return mix_hlo_add(w, mix_hlo_add(w, of_x, of_y), last);
}

/* `nowhere`: pixels of the result that have no place in the image. */
static mix_hlo transformed(const image *m, const neighbours *n, mix_hlo nowhere) {
  mix_hlo_writer *w = &m->e->w;
  mix_hlo sum = weighted(m, n, 0, take(m, &n->pixels[0]));
  for (int i = 1; i < n->count; i++) sum = mix_hlo_add(w, sum, weighted(m, n, i, take(m, &n->pixels[i])));
  return mix_hlo_select(w, nowhere, m->fill, sum);
}
static mix_hlo gradient(const image *m, const neighbours *n, mix_hlo nowhere, mix_hlo dy) {
  mix_hlo_writer *w = &m->e->w;
  mix_hlo sums = mix_hlo_like(w, m->pixels, 0);
  for (int i = 0; i < n->count; i++) {
    const mix_hlo part = weighted(m, n, i, dy);
    sums = give(m, &n->pixels[i], sums, mix_hlo_select(w, nowhere, mix_hlo_like(w, part, 0), part));
  }
  return sums;
}

void mix_emit_projective_transform(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_transform_attributes *a = node->attributes;
  const mix_hlo images = mix_emit_widen(e, mix_emit_operand(e, node, 0)), t = mix_emit_operand(e, node, 1);
  const int64_t *dims = images.shape.dims;
  if (!mix_shape_size(images.shape)) {
    mix_emit_result(e, node, 0, images);
    return;
  }
  image m = {.e = e, .height = dims[1], .width = dims[2], .channels = dims[3]};
  m.cells = MIX_SHAPE(dims[0], dims[1] * dims[2]);
  m.pixels = mix_hlo_reshape(w, images, MIX_SHAPE(dims[0] * dims[1] * dims[2], dims[3]));
  m.fill = mix_hlo_number(w, mix_type_of(images.dtype, MIX_SHAPE(dims[0], dims[1] * dims[2], dims[3])),
                          a->fill_value);
  const mix_type places = mix_type_of(MIX_INT32, m.cells);
  const mix_hlo flat = mix_hlo_iota(w, places, 1), width = mix_hlo_whole(w, places, m.width),
                x = mix_hlo_convert(w, mix_hlo_binary(w, "remainder", flat, width), MIX_FLOAT32),
                y = mix_hlo_convert(w, mix_hlo_divide(w, flat, width), MIX_FLOAT32),
                k = linear(&m, t, 6, x, y, constant(&m, 1)),
                from_x = mapped(&m, mix_hlo_divide(w, linear(&m, t, 0, x, y, coefficient(&m, t, 2)), k),
                                m.width, a->fill_mode),
                from_y = mapped(&m, mix_hlo_divide(w, linear(&m, t, 3, x, y, coefficient(&m, t, 5)), k),
                                m.height, a->fill_mode),
                nowhere = with_channels(&m, mix_hlo_compare(w, "EQ", k, constant(&m, 0)));
  const neighbours n =
      a->interpolation == MIX_BILINEAR ? around(&m, from_y, from_x) : nearest(&m, from_y, from_x);
  mix_emit_result(e, node, 0,
                  a->transposed ? gradient(&m, &n, nowhere, mix_hlo_reshape(w, images, m.fill.shape))
                                : transformed(&m, &n, nowhere));
}
