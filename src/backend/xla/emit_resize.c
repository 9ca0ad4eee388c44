/* Resizing along an axis. */
#include "backend/xla/emit_inside.h"

#include "base/alloc.h"
#include "ops/resize.h"
#include "tensor/convert.h"

/* The constants of the interpolation, (to span): which element, its weight, and whether there is one. */
typedef struct terms {
  mix_hlo places, weights, used;
  int64_t span;
  bool all_used;
} terms;

static bool make_terms(mix_emitter *e, const mix_resize_attributes *a, mix_dtype dtype, terms *t) {
  mix_resize_weights *w = mix_resize_weights_new(a);
  const size_t count = w ? (size_t)(a->to * w->span) : 0;
  int64_t *places = mix_alloc(sizeof *places * (count + 1));
  double *weights = mix_alloc(sizeof *weights * (count + 1));
  bool *used = mix_alloc(count + 1);
  const bool good = w && places && weights && used;
  t->all_used = true;
  for (int64_t i = 0; good && i < a->to; i++)
    for (int64_t k = 0; k < w->span; k++) {
      const int64_t at = i * w->span + k;
      used[at] = k < w->count[i];
      t->all_used &= used[at];
      places[at] = used[at] ? w->first[i] + k : w->first[i];
      mix_store_double(weights, dtype, at, used[at] ? w->weights[at] : 0);
    }
  if (good) {
    const mix_shape shape = MIX_SHAPE((int64_t)count);
    t->span = w->span;
    t->places = mix_hlo_constant(&e->w, mix_type_of(MIX_INT64, shape), places);
    t->weights = mix_hlo_constant(&e->w, mix_type_of(dtype, shape), weights);
    t->used = mix_hlo_constant(&e->w, mix_type_of(MIX_BOOL, shape), used);
  } else
    e->failed = true;
  mix_free(w);
  mix_free(places);
  mix_free(weights);
  mix_free(used);
  return good;
}

/* Products of terms and elements of (outer, to span, inner); 0 where there is no term. */
static mix_hlo weighted(mix_emitter *e, const terms *t, mix_hlo x) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo product =
      mix_hlo_multiply(w, x, mix_hlo_broadcast_along(w, t->weights, x.shape, (const int[]){1}));
  if (t->all_used) return product;
  const mix_hlo used = mix_hlo_broadcast_along(w, t->used, x.shape, (const int[]){1});
  return mix_hlo_select(w, used, product, mix_hlo_like(w, product, 0));
}

void mix_emit_resize_axis(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_resize_attributes *a = node->attributes;
  mix_hlo x = mix_emit_widen(e, mix_emit_operand(e, node, 0));
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < a->axis; d++) outer *= x.shape.dims[d];
  for (int d = a->axis + 1; d < x.shape.rank; d++) inner *= x.shape.dims[d];
  terms t;
  if (!mix_shape_size(x.shape) || !mix_shape_size(mix_emit_type(e, node, 0).shape)) {
    mix_emit_result(e, node, 0, mix_hlo_number(w, mix_emit_type(e, node, 0), 0));
    return;
  }
  if (!make_terms(e, a, x.dtype, &t)) return;
  if (!a->transposed) {
    x = mix_hlo_reshape(w, x, MIX_SHAPE(outer, a->from, inner));
    const mix_hlo products = weighted(e, &t, mix_hlo_take(w, x, t.places, 1)),
                  parts = mix_hlo_reshape(w, products, MIX_SHAPE(outer, a->to, t.span, inner));
    mix_emit_result(e, node, 0, mix_hlo_reduce(w, "add", parts, 0, 1, (const int[]){2}));
    return;
  }
  const mix_shape repeated = MIX_SHAPE(outer, a->to, t.span, inner);
  x = mix_hlo_reshape(w, x, MIX_SHAPE(outer, a->to, inner));
  x = mix_hlo_reshape(w, mix_hlo_broadcast_along(w, x, repeated, (const int[]){0, 1, 3}),
                      MIX_SHAPE(outer, a->to * t.span, inner));
  const mix_hlo products = mix_hlo_transpose(w, weighted(e, &t, x), (const int[]){1, 0, 2}),
                none = mix_hlo_number(w, mix_type_of(x.dtype, MIX_SHAPE(a->from, outer, inner)), 0),
                places = mix_hlo_reshape(w, t.places, MIX_SHAPE(a->to * t.span, 1)),
                sums = mix_hlo_scatter(w, "add", none, places, products);
  mix_emit_result(e, node, 0, mix_hlo_transpose(w, sums, (const int[]){1, 0, 2}));
}
