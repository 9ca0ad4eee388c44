/* Pooling. The gradients of the maximum go through the cells of a window one by one, each a strided slice of
 * all windows at once, because the first element that is not less than the maximum gets the gradient. */
#include "backend/xla/emit_inside.h"

#include "ops/pooling.h"

/* By axis of x (batch, spatial..., channels). */
typedef struct windows {
  int rank;
  int64_t size[MIX_MAX_RANK], stride[MIX_MAX_RANK], low[MIX_MAX_RANK], high[MIX_MAX_RANK];
  int64_t in[MIX_MAX_RANK], out[MIX_MAX_RANK];
  mix_shape shape; /* of y */
} windows;

/* Paddings are such that the windows fit exactly. */
static windows windows_of(const mix_ir_node *node, mix_shape x, mix_shape y) {
  const mix_pool_attributes *a = node->attributes;
  windows v = {.rank = x.rank, .shape = y};
  for (int d = 0; d < x.rank; d++) {
    const bool spatial = d > 0 && d < x.rank - 1;
    v.size[d] = spatial ? a->size.dims[d - 1] : 1;
    v.stride[d] = spatial ? a->strides.dims[d - 1] : 1;
    v.low[d] = spatial ? a->before.dims[d - 1] : 0;
    v.in[d] = x.dims[d];
    v.out[d] = y.dims[d];
    v.high[d] = (v.out[d] - 1) * v.stride[d] + v.size[d] - v.in[d] - v.low[d];
  }
  return v;
}

static bool is_empty(mix_emitter *e, const mix_ir_node *node) {
  const mix_type type = mix_emit_type(e, node, 0);
  if (mix_shape_size(type.shape) && mix_shape_size(mix_emit_operand(e, node, 0).shape)) return false;
  mix_emit_result(e, node, 0, mix_hlo_number(&e->w, type, 0));
  return true;
}

void mix_emit_max_pool(mix_emitter *e, const mix_ir_node *node) {
  if (is_empty(e, node)) return;
  const mix_hlo x = mix_emit_operand(e, node, 0);
  const windows v = windows_of(node, x.shape, mix_emit_type(e, node, 0).shape);
  mix_emit_result(
      e, node, 0,
      mix_hlo_reduce_window(&e->w, "maximum", x, mix_emit_lowest(x.dtype), v.size, v.stride, v.low, v.high));
}

/* How many elements of x each window has, for every element of y. */
static mix_hlo counts(mix_emitter *e, const windows *v, mix_dtype dtype) {
  mix_hlo_writer *w = &e->w;
  const mix_type type = mix_type_of(dtype, v->shape);
  mix_hlo product = mix_hlo_number(w, type, 1);
  for (int d = 1; d < v->rank - 1; d++) {
    const mix_hlo number = mix_hlo_iota(w, type, d), stride = mix_hlo_number(w, type, (double)v->stride[d]),
                  place = mix_hlo_multiply(w, number, stride),
                  first = mix_hlo_subtract(w, place, mix_hlo_number(w, type, (double)v->low[d])),
                  last = mix_hlo_add(w, first, mix_hlo_number(w, type, (double)v->size[d])),
                  end = mix_hlo_binary(w, "minimum", last, mix_hlo_number(w, type, (double)v->in[d])),
                  begin = mix_hlo_binary(w, "maximum", first, mix_hlo_number(w, type, 0));
    product = mix_hlo_multiply(w, product, mix_hlo_subtract(w, end, begin));
  }
  return product;
}

void mix_emit_avg_pool(mix_emitter *e, const mix_ir_node *node) {
  if (is_empty(e, node)) return;
  const mix_hlo x = mix_emit_widen(e, mix_emit_operand(e, node, 0));
  const windows v = windows_of(node, x.shape, mix_emit_type(e, node, 0).shape);
  const mix_hlo sums = mix_hlo_reduce_window(&e->w, "add", x, 0, v.size, v.stride, v.low, v.high);
  mix_emit_result(e, node, 0, mix_hlo_divide(&e->w, sums, counts(e, &v, x.dtype)));
}

/* The sum over the windows that an element is in: windows over y, spread by the strides. */
void mix_emit_avg_pool_grad(mix_emitter *e, const mix_ir_node *node) {
  if (is_empty(e, node)) return;
  mix_hlo_writer *w = &e->w;
  const mix_hlo dy = mix_emit_widen(e, mix_emit_operand(e, node, 0));
  const windows v = windows_of(node, mix_emit_type(e, node, 0).shape, dy.shape);
  int64_t low[MIX_MAX_RANK], high[MIX_MAX_RANK], interior[MIX_MAX_RANK], one[MIX_MAX_RANK],
      none[MIX_MAX_RANK];
  for (int d = 0; d < v.rank; d++) {
    low[d] = v.size[d] - 1 - v.low[d];
    high[d] = v.size[d] - 1 - v.high[d];
    interior[d] = v.stride[d] - 1;
    one[d] = 1;
    none[d] = 0;
  }
  const mix_hlo parts = mix_hlo_divide(w, dy, counts(e, &v, dy.dtype)),
                zero = mix_hlo_number(w, mix_type_of(dy.dtype, MIX_SCALAR), 0),
                padded = mix_hlo_pad(w, parts, zero, low, high, interior);
  mix_emit_result(e, node, 0, mix_hlo_reduce_window(w, "add", padded, 0, v.size, one, none, none));
}

/* ---- cell by cell ---- */

static mix_hlo padded(mix_emitter *e, const windows *v, mix_hlo x, double value) {
  const mix_hlo padding = mix_hlo_number(&e->w, mix_type_of(x.dtype, MIX_SCALAR), value);
  return mix_hlo_pad(&e->w, x, padding, v->low, v->high, NULL);
}

/* The element at a cell of each window, from the padded tensor. */
static mix_hlo at_cell(mix_emitter *e, const windows *v, mix_hlo padded_x, const int64_t *cell) {
  int64_t end[MIX_MAX_RANK];
  for (int d = 0; d < v->rank; d++) end[d] = cell[d] + (v->out[d] - 1) * v->stride[d] + 1;
  return mix_hlo_slice(&e->w, padded_x, cell, end, v->stride);
}

/* Where the element at a cell of a window is in x, and not in its padding. */
static mix_hlo inside(mix_emitter *e, const windows *v, const int64_t *cell) {
  mix_hlo_writer *w = &e->w;
  const mix_type type = mix_type_of(MIX_INT32, v->shape);
  mix_hlo all = mix_hlo_whole(w, mix_type_of(MIX_BOOL, v->shape), 1);
  for (int d = 1; d < v->rank - 1; d++) {
    if (!v->low[d] && v->high[d] <= 0) continue;
    const mix_hlo number = mix_hlo_iota(w, type, d), stride = mix_hlo_whole(w, type, v->stride[d]),
                  first = mix_hlo_multiply(w, number, stride),
                  place = mix_hlo_add(w, first, mix_hlo_whole(w, type, cell[d] - v->low[d]));
    all = mix_hlo_and(w, all, mix_hlo_compare(w, "GE", place, mix_hlo_whole(w, type, 0)));
    all = mix_hlo_and(w, all, mix_hlo_compare(w, "LT", place, mix_hlo_whole(w, type, v->in[d])));
  }
  return all;
}

static bool next_cell(const windows *v, int64_t *cell) {
  for (int d = v->rank - 1; d >= 0; d--) {
    if (++cell[d] < v->size[d]) return true;
    cell[d] = 0;
  }
  return false;
}

typedef struct search {
  mix_hlo x, y, found; /* x padded; found: windows whose element is found */
} search;

static search begin_search(mix_emitter *e, const windows *v, mix_hlo x, mix_hlo y) {
  const mix_hlo padded_x = padded(e, v, x, 0),
                none = mix_hlo_whole(&e->w, mix_type_of(MIX_BOOL, v->shape), 0);
  return (search){padded_x, y, none};
}

/* Is it the element at this cell? */
static mix_hlo is_chosen(mix_emitter *e, const windows *v, search *s, const int64_t *cell) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo less = mix_hlo_compare(w, "LT", at_cell(e, v, s->x, cell), s->y),
                reaches = mix_hlo_not(w, less), fits = mix_hlo_and(w, reaches, inside(e, v, cell));
  if (mix_pool_gives_each(v->shape)) return fits;
  const mix_hlo chosen = mix_hlo_and(w, fits, mix_hlo_not(w, s->found));
  s->found = mix_hlo_binary(w, "or", s->found, chosen);
  return chosen;
}

void mix_emit_max_pool_grad(mix_emitter *e, const mix_ir_node *node) {
  if (is_empty(e, node)) return;
  mix_hlo_writer *w = &e->w;
  const mix_hlo x = mix_emit_operand(e, node, 0), y = mix_emit_operand(e, node, 1),
                dy = mix_emit_widen(e, mix_emit_operand(e, node, 2)), none = mix_hlo_like(w, dy, 0),
                zero = mix_hlo_number(w, mix_type_of(dy.dtype, MIX_SCALAR), 0);
  const windows v = windows_of(node, x.shape, y.shape);
  search s = begin_search(e, &v, x, y);
  int64_t cell[MIX_MAX_RANK] = {0}, low[MIX_MAX_RANK], high[MIX_MAX_RANK], interior[MIX_MAX_RANK];
  mix_hlo sum = mix_hlo_number(w, mix_type_of(dy.dtype, x.shape), 0);
  do {
    for (int d = 0; d < v.rank; d++) {
      low[d] = cell[d] - v.low[d];
      interior[d] = v.stride[d] - 1;
      high[d] = v.in[d] - low[d] - ((v.out[d] - 1) * v.stride[d] + 1);
    }
    const mix_hlo part = mix_hlo_select(w, is_chosen(e, &v, &s, cell), dy, none);
    sum = mix_hlo_add(w, sum, mix_hlo_pad(w, part, zero, low, high, interior));
  } while (next_cell(&v, cell));
  mix_emit_result(e, node, 0, sum);
}

void mix_emit_max_pool_grad_grad(mix_emitter *e, const mix_ir_node *node) {
  if (is_empty(e, node)) return;
  const mix_hlo x = mix_emit_operand(e, node, 0), y = mix_emit_operand(e, node, 1);
  const windows v = windows_of(node, x.shape, y.shape);
  const mix_hlo values = padded(e, &v, mix_emit_widen(e, mix_emit_operand(e, node, 2)), 0);
  search s = begin_search(e, &v, x, y);
  int64_t cell[MIX_MAX_RANK] = {0};
  const mix_hlo none = mix_hlo_number(&e->w, mix_type_of(values.dtype, y.shape), 0);
  mix_hlo sum = none;
  do {
    const mix_hlo part =
        mix_hlo_select(&e->w, is_chosen(e, &v, &s, cell), at_cell(e, &v, values, cell), none);
    sum = mix_hlo_add(&e->w, sum, part);
  } while (next_cell(&v, cell));
  mix_emit_result(e, node, 0, sum);
}
