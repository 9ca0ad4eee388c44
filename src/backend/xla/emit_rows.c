/* Indexed rows. Indices outside are ignored by the scatters, and moved inside before the gathers. */
#include "backend/xla/emit_inside.h"

mix_hlo mix_emit_outside(mix_emitter *e, mix_hlo indices, int64_t count) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo below = mix_hlo_compare(w, "LT", indices, mix_hlo_like(w, indices, 0)),
                behind = mix_hlo_compare(w, "GE", indices, mix_hlo_like(w, indices, (double)count));
  return mix_hlo_binary(w, "or", below, behind);
}

static mix_hlo indices_of(mix_emitter *e, const mix_ir_node *node, int operand) {
  return mix_hlo_convert(&e->w, mix_emit_operand(e, node, operand), MIX_INT64);
}

static void check_index(mix_emitter *e, mix_hlo bad, mix_hlo indices, const char *axis, int64_t length) {
  mix_emit_check(e, bad, indices, (mix_bad_value){.what = "index", .range = axis, .limit = length});
}

/* x at the indices along the axis, 0 where `bad`. */
static mix_hlo take(mix_emitter *e, mix_hlo x, mix_hlo indices, mix_hlo bad, int axis, mix_shape shape) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo none = mix_hlo_number(w, mix_type_of(x.dtype, shape), 0);
  if (!x.shape.dims[axis] || !mix_shape_size(shape)) return none;
  int axes[MIX_MAX_RANK];
  for (int d = 0; d < indices.shape.rank; d++) axes[d] = axis + d;
  const mix_hlo inside = mix_hlo_select(w, bad, mix_hlo_like(w, indices, 0), indices),
                ignored = mix_hlo_broadcast_along(w, bad, shape, axes);
  return mix_hlo_select(w, ignored, none, mix_hlo_take(w, x, inside, axis));
}

void mix_emit_gather(mix_emitter *e, const mix_ir_node *node) {
  const int axis = ((const mix_axis_attributes *)node->attributes)->axis;
  const mix_hlo x = mix_emit_operand(e, node, 0), indices = indices_of(e, node, 1),
                bad = mix_emit_outside(e, indices, x.shape.dims[axis]);
  check_index(e, bad, indices, "the gathered axis", x.shape.dims[axis]);
  mix_emit_result(e, node, 0, take(e, x, indices, bad, axis, mix_emit_type(e, node, 0).shape));
}

/* No error: rows of zeros. */
void mix_emit_gather_rows(mix_emitter *e, const mix_ir_node *node) {
  const mix_hlo x = mix_emit_operand(e, node, 0), indices = indices_of(e, node, 1);
  mix_emit_result(
      e, node, 0,
      take(e, x, indices, mix_emit_outside(e, indices, x.shape.dims[0]), 0, mix_emit_type(e, node, 0).shape));
}

/* Combines updates into rows of x; where `ignored`, none. */
static mix_hlo scatter(mix_emitter *e, const char *op, mix_hlo x, mix_hlo indices, mix_hlo ignored,
                       mix_hlo updates) {
  mix_hlo_writer *w = &e->w;
  if (!mix_shape_size(updates.shape) || !mix_shape_size(x.shape)) return x;
  const mix_hlo behind = mix_hlo_like(w, indices, (double)x.shape.dims[0]),
                safe = mix_hlo_select(w, ignored, behind, indices);
  return mix_hlo_scatter(w, op, x, mix_hlo_reshape(w, safe, MIX_SHAPE(indices.shape.dims[0], 1)), updates);
}

/* segment_sum and rows */
void mix_emit_segment_sum(mix_emitter *e, const mix_ir_node *node) {
  const int64_t rows = ((const mix_segment_attributes *)node->attributes)->rows;
  const mix_hlo updates = mix_emit_widen(e, mix_emit_operand(e, node, 0)), indices = indices_of(e, node, 1),
                bad = mix_emit_outside(e, indices, rows),
                none = mix_hlo_number(&e->w, mix_type_of(updates.dtype, mix_emit_type(e, node, 0).shape), 0);
  check_index(e, bad, indices, "the rows", rows);
  mix_emit_result(e, node, 0, scatter(e, "add", none, indices, bad, updates));
}

/* The first place of each index is found in a table of all rows. */
void mix_emit_combine_rows(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const int64_t rows = ((const mix_segment_attributes *)node->attributes)->rows;
  const mix_hlo updates = mix_emit_widen(e, mix_emit_operand(e, node, 0)), indices = indices_of(e, node, 1),
                bad = mix_emit_outside(e, indices, rows);
  const double count = (double)indices.shape.dims[0];
  const mix_hlo places = mix_hlo_iota(w, indices.type, 0),
                table = mix_hlo_number(w, mix_type_of(MIX_INT64, MIX_SHAPE(rows)), count),
                firsts = scatter(e, "minimum", table, indices, bad, places),
                first = take(e, firsts, indices, bad, 0, indices.shape),
                sums = scatter(e, "add", mix_hlo_like(w, updates, 0), first, bad, updates),
                is_first = mix_hlo_compare(w, "EQ", first, places),
                leads = mix_hlo_and(w, is_first, mix_hlo_not(w, bad));
  check_index(e, bad, indices, "the rows", rows);
  mix_emit_result(e, node, 0, sums);
  mix_emit_result(e, node, 1, mix_hlo_select(w, leads, indices, mix_hlo_like(w, indices, -1)));
}

void mix_emit_replace_rows(mix_emitter *e, const mix_ir_node *node) {
  const mix_hlo x = mix_emit_operand(e, node, 0), indices = indices_of(e, node, 1);
  mix_emit_result(e, node, 0,
                  scatter(e, NULL, x, indices, mix_emit_outside(e, indices, x.shape.dims[0]),
                          mix_emit_operand(e, node, 2)));
}
