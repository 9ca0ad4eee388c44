/* Attention over heads and its gradients, with all scores in one tensor (batch, groups, heads of a group,
 * queries, keys). Rounds where the reference kernel does; what that keeps in double is float32 here. */
#include "backend/xla/emit_inside.h"

typedef struct heads {
  mix_emitter *e;
  const mix_attention_attributes *a;
  mix_dtype dtype, wide;
  int64_t batch, queries, keys, heads, groups, each; /* each: heads of a group */
  mix_hlo query, key, value;                         /* query: (batch, queries, groups, each, dim) */
  mix_shape scores;
  mix_hlo attends; /* where the query may see the key; of the shape of the scores */
  mix_hlo factor;  /* of dropout; only with a rate */
} heads;

static mix_hlo rounded(const heads *h, mix_hlo x) { return mix_hlo_convert(&h->e->w, x, h->dtype); }
static mix_hlo widened(const heads *h, mix_hlo x) { return mix_hlo_convert(&h->e->w, x, h->wide); }

/* (batch, queries, heads, n) -> (batch, queries, groups, each, n) */
static mix_hlo by_group(const heads *h, mix_hlo x) {
  return mix_hlo_reshape(&h->e->w, x, MIX_SHAPE(h->batch, h->queries, h->groups, h->each, x.shape.dims[3]));
}

static mix_hlo attends(const heads *h, mix_hlo mask) {
  mix_hlo_writer *w = &h->e->w;
  const mix_hlo all = mix_hlo_reshape(
      w, mix_hlo_broadcast(w, mask, MIX_SHAPE(h->batch, h->heads, h->queries, h->keys)), h->scores);
  if (!h->a->causal) return all;
  const mix_type places = mix_type_of(MIX_INT32, h->scores);
  const mix_hlo key = mix_hlo_iota(w, places, 4), query = mix_hlo_iota(w, places, 3);
  return mix_hlo_and(w, all, mix_hlo_compare(w, "LE", key, query));
}

/* 0, or 1 / (1 - rate), in the wide dtype. */
static mix_hlo dropout(const heads *h, mix_hlo state) {
  mix_hlo_writer *w = &h->e->w;
  const mix_hlo drawn = mix_emit_uniform(h->e, state, mix_type_of(h->dtype, h->scores)),
                kept = mix_hlo_compare(w, "GE", drawn, mix_hlo_like(w, drawn, h->a->rate)),
                scale = mix_hlo_like(w, drawn, 1 / (1 - h->a->rate));
  return widened(h, mix_hlo_select(w, kept, scale, mix_hlo_like(w, drawn, 0)));
}

static heads heads_of(mix_emitter *e, const mix_ir_node *node) {
  const mix_hlo query = mix_emit_operand(e, node, 0), key = mix_emit_operand(e, node, 1);
  heads h = {.e = e,
             .a = node->attributes,
             .dtype = query.dtype,
             .wide = mix_emit_wide(query.dtype),
             .batch = query.shape.dims[0],
             .queries = query.shape.dims[1],
             .keys = key.shape.dims[1],
             .heads = query.shape.dims[2],
             .groups = key.shape.dims[2],
             .key = key,
             .value = mix_emit_operand(e, node, 2)};
  h.each = h.groups ? h.heads / h.groups : 0;
  h.scores = MIX_SHAPE(h.batch, h.groups, h.each, h.queries, h.keys);
  h.query = by_group(&h, query);
  h.attends = attends(&h, mix_emit_operand(e, node, 3));
  if (h.a->rate != 0) h.factor = dropout(&h, mix_emit_operand(e, node, 4));
  return h;
}

/* Sums over the last axis of (batch, queries, groups, each, n) and (batch, keys, groups, n): scores. */
static mix_hlo of_pairs(const heads *h, mix_hlo a, mix_hlo b) {
  const mix_hlo_dot dot = {2, 1, {{0, 2}, {0, 2}}, {{4}, {3}}, mix_emit_precision(h->e, a.dtype)};
  const mix_hlo product = mix_hlo_dot_general(&h->e->w, a, b, &dot, h->wide);
  return mix_hlo_transpose(&h->e->w, product, (const int[]){0, 1, 3, 2, 4});
}

/* Sums over the keys of scores and (batch, keys, groups, n): (batch, queries, heads, n). */
static mix_hlo over_keys(const heads *h, mix_hlo scores, mix_hlo b) {
  mix_hlo_writer *w = &h->e->w;
  const mix_hlo_dot dot = {2, 1, {{0, 1}, {0, 2}}, {{4}, {1}}, mix_emit_precision(h->e, b.dtype)};
  const mix_hlo product = mix_hlo_dot_general(w, scores, b, &dot, h->wide);
  return mix_hlo_reshape(w, mix_hlo_transpose(w, product, (const int[]){0, 3, 1, 2, 4}),
                         MIX_SHAPE(h->batch, h->queries, h->heads, b.shape.dims[3]));
}

/* Sums over queries and heads of a group of scores and (batch, queries, groups, each, n): (batch, keys,
 * groups, n). */
static mix_hlo over_queries(const heads *h, mix_hlo scores, mix_hlo b) {
  const mix_hlo_dot dot = {2, 2, {{0, 1}, {0, 2}}, {{2, 3}, {3, 1}}, mix_emit_precision(h->e, b.dtype)};
  const mix_hlo product = mix_hlo_dot_general(&h->e->w, scores, b, &dot, h->wide);
  return mix_hlo_transpose(&h->e->w, product, (const int[]){0, 2, 1, 3});
}

/* The probabilities before dropout, rounded to the dtype. */
static mix_hlo probabilities(const heads *h) {
  mix_hlo_writer *w = &h->e->w;
  const mix_attention_attributes *a = h->a;
  mix_hlo p = widened(h, rounded(h, of_pairs(h, h->query, h->key)));
  p = mix_hlo_multiply(w, p, mix_hlo_like(w, p, a->scale));
  const mix_hlo mask_value = mix_hlo_like(w, p, a->mask_value),
                masked = a->mask_adds ? mix_hlo_add(w, p, mask_value) : mask_value;
  p = mix_hlo_select(w, h->attends, p, masked);
  if (a->mask_adds) p = rounded(h, p);
  p = rounded(h, mix_emit_probabilities(h->e, widened(h, p)));
  return a->mask_zeroes ? mix_hlo_select(w, h->attends, p, mix_hlo_like(w, p, 0)) : p;
}

static mix_hlo dropped(const heads *h, mix_hlo p) {
  return h->a->rate == 0 ? p : rounded(h, mix_hlo_multiply(&h->e->w, widened(h, p), h->factor));
}

static bool is_empty(mix_emitter *e, const mix_ir_node *node) {
  bool empty = false;
  for (int i = 0; i < 3; i++) empty |= mix_shape_size(mix_emit_operand(e, node, i).shape) == 0;
  for (int o = 0; o < node->output_count && empty; o++)
    mix_emit_result(e, node, o, mix_hlo_number(&e->w, mix_emit_type(e, node, o), 0));
  return empty;
}

void mix_emit_attention(mix_emitter *e, const mix_ir_node *node) {
  if (is_empty(e, node)) return;
  const heads h = heads_of(e, node);
  mix_emit_result(e, node, 0, over_keys(&h, dropped(&h, probabilities(&h)), h.value));
}

void mix_emit_attention_grad(mix_emitter *e, const mix_ir_node *node) {
  if (is_empty(e, node)) return;
  mix_hlo_writer *w = &e->w;
  const heads h = heads_of(e, node);
  const mix_hlo dy = by_group(&h, mix_emit_operand(e, node, 5)), p = probabilities(&h), kept = dropped(&h, p),
                wide_p = widened(&h, p);
  mix_hlo dp = of_pairs(&h, dy, h.value);
  if (h.a->rate != 0) dp = mix_hlo_multiply(w, dp, h.factor);
  const mix_hlo sum = mix_hlo_reduce_last(w, "add", mix_hlo_multiply(w, dp, wide_p), 0),
                mean = mix_hlo_broadcast_along(w, sum, h.scores, (const int[]){0, 1, 2, 3}),
                inner = mix_hlo_multiply(w, wide_p, mix_hlo_subtract(w, dp, mean));
  mix_hlo ds = mix_hlo_multiply(w, inner, mix_hlo_like(w, inner, h.a->scale));
  if (!h.a->mask_adds) ds = mix_hlo_select(w, h.attends, ds, mix_hlo_like(w, ds, 0));
  if (h.dtype == MIX_BFLOAT16) ds = widened(&h, rounded(&h, ds));
  mix_emit_result(e, node, 0, over_keys(&h, ds, widened(&h, h.key)));
  mix_emit_result(e, node, 1, over_queries(&h, ds, widened(&h, h.query)));
  mix_emit_result(e, node, 2, over_queries(&h, kept, dy));
}
