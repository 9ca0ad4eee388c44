/* Ops that move elements or make them. */
#include "backend/xla/emit_inside.h"

#include "base/alloc.h"
#include "tensor/shape.h"
#include <math.h>

void mix_emit_reshape(mix_emitter *e, const mix_ir_node *node) {
  mix_emit_result(e, node, 0, mix_emit_operand(e, node, 0));
}

/* bitcast_convert has the smaller elements along an axis of their own. */
void mix_emit_bitcast(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo x = mix_emit_operand(e, node, 0);
  const mix_type type = mix_emit_type(e, node, 0);
  const int64_t from = (int64_t)mix_dtype_size(x.dtype), to = (int64_t)mix_dtype_size(type.dtype),
                count = mix_shape_size(from > to ? x.shape : type.shape);
  const mix_shape flat = MIX_SHAPE(count), apart = MIX_SHAPE(count, from > to ? from / to : to / from);
  const mix_hlo bits = mix_hlo_bits_as(w, mix_hlo_reshape(w, x, from < to ? apart : flat),
                                       mix_type_of(type.dtype, from > to ? apart : flat));
  mix_emit_result(e, node, 0, mix_hlo_reshape(w, bits, type.shape));
}

void mix_emit_optimization_barrier(mix_emitter *e, const mix_ir_node *node) {
  const mix_hlo x = mix_emit_operand(e, node, 0), after = mix_emit_operand(e, node, 1);
  mix_emit_result(e, node, 0, mix_hlo_barrier(&e->w, x, after));
}

void mix_emit_broadcast_to(mix_emitter *e, const mix_ir_node *node) {
  const mix_shape shape = mix_emit_type(e, node, 0).shape;
  mix_emit_result(e, node, 0, mix_hlo_broadcast(&e->w, mix_emit_operand(e, node, 0), shape));
}

void mix_emit_transpose(mix_emitter *e, const mix_ir_node *node) {
  const mix_transpose_attributes *a = node->attributes;
  mix_emit_result(e, node, 0, mix_hlo_transpose(&e->w, mix_emit_operand(e, node, 0), a->permutation));
}

void mix_emit_concat(mix_emitter *e, const mix_ir_node *node) {
  const int axis = ((const mix_axis_attributes *)node->attributes)->axis;
  mix_hlo *parts = mix_alloc(sizeof *parts * (size_t)node->input_count);
  if (!parts) {
    e->failed = true;
    return;
  }
  for (int i = 0; i < node->input_count; i++) parts[i] = mix_emit_operand(e, node, i);
  mix_emit_result(e, node, 0, mix_hlo_concatenate(&e->w, node->input_count, parts, axis));
  mix_free(parts);
}

void mix_emit_slice(mix_emitter *e, const mix_ir_node *node) {
  const mix_slice_attributes *a = node->attributes;
  int64_t end[MIX_MAX_RANK];
  const mix_hlo x = mix_emit_operand(e, node, 0);
  for (int d = 0; d < x.shape.rank; d++) end[d] = a->begin.dims[d] + mix_emit_type(e, node, 0).shape.dims[d];
  mix_emit_result(e, node, 0, mix_hlo_slice(&e->w, x, a->begin.dims, end, NULL));
}

void mix_emit_pad(mix_emitter *e, const mix_ir_node *node) {
  const mix_pad_attributes *a = node->attributes;
  const mix_hlo x = mix_emit_operand(e, node, 0),
                value = mix_hlo_number(&e->w, mix_type_of(x.dtype, MIX_SCALAR), a->value);
  mix_emit_result(e, node, 0, mix_hlo_pad(&e->w, x, value, a->before.dims, a->after.dims, NULL));
}

void mix_emit_one_hot(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_shape shape = mix_emit_type(e, node, 0).shape;
  const mix_hlo x = mix_hlo_convert(w, mix_emit_operand(e, node, 0), MIX_INT64),
                places = mix_hlo_iota(w, mix_type_of(MIX_INT64, shape), shape.rank - 1);
  static const int axes[MIX_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  mix_emit_result(e, node, 0, mix_hlo_compare(w, "EQ", places, mix_hlo_broadcast_along(w, x, shape, axes)));
}

void mix_emit_fill(mix_emitter *e, const mix_ir_node *node) {
  const mix_shape_attributes *a = node->attributes;
  mix_emit_result(e, node, 0, mix_hlo_number(&e->w, mix_emit_type(e, node, 0), a->value));
}

/* Are all elements whole numbers that double has? Then int64 gives them without rounding. */
static bool is_whole(const mix_range_attributes *a) {
  const double reach = fabs(a->start) + fabs(a->step) * (double)a->count;
  return floor(a->start) == a->start && floor(a->step) == a->step && reach <= 0x1p53;
}

/* start + i step in double, rounded once. */
void mix_emit_range(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_range_attributes *a = node->attributes;
  const mix_type type = mix_emit_type(e, node, 0),
                 wide = mix_type_of(is_whole(a) ? MIX_INT64 : MIX_FLOAT64, type.shape);
  const mix_hlo place = mix_hlo_iota(w, wide, 0), step = mix_hlo_number(w, wide, a->step),
                start = mix_hlo_number(w, wide, a->start), way = mix_hlo_multiply(w, place, step);
  mix_emit_result(e, node, 0, mix_emit_cast(e, mix_hlo_add(w, way, start), type.dtype));
}
