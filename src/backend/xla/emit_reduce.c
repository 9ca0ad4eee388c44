/* Reductions. Sums of 16 bits are float32. */
#include "backend/xla/emit_inside.h"

#include "tensor/convert.h"
#include <math.h>

mix_hlo mix_emit_along_last(mix_emitter *e, mix_hlo reduced, mix_shape shape) {
  static const int axes[MIX_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  return mix_hlo_broadcast_along(&e->w, reduced, shape, axes);
}

double mix_emit_lowest(mix_dtype dtype) {
  return mix_dtype_is_floating(dtype) ? -INFINITY : (double)mix_dtype_lowest(dtype);
}

/* Of int64 it rounds up, and is cut to the largest. */
static double highest(mix_dtype dtype) {
  return mix_dtype_is_floating(dtype) ? INFINITY : (double)mix_dtype_highest(dtype);
}

static void reduce(mix_emitter *e, const mix_ir_node *node, const char *op, mix_hlo x, double first) {
  const mix_reduce_attributes *a = node->attributes;
  mix_emit_result(e, node, 0, mix_hlo_reduce(&e->w, op, x, first, a->axis_count, a->axes));
}

static mix_hlo wide_operand(mix_emitter *e, const mix_ir_node *node) {
  return mix_emit_widen(e, mix_emit_operand(e, node, 0));
}

void mix_emit_reduce_sum(mix_emitter *e, const mix_ir_node *node) {
  reduce(e, node, "add", wide_operand(e, node), 0);
}
void mix_emit_reduce_prod(mix_emitter *e, const mix_ir_node *node) {
  reduce(e, node, "multiply", wide_operand(e, node), 1);
}
void mix_emit_reduce_max(mix_emitter *e, const mix_ir_node *node) {
  const mix_hlo x = mix_emit_operand(e, node, 0);
  reduce(e, node, x.dtype == MIX_BOOL ? "or" : "maximum", x, mix_emit_lowest(x.dtype));
}
void mix_emit_reduce_min(mix_emitter *e, const mix_ir_node *node) {
  const mix_hlo x = mix_emit_operand(e, node, 0);
  reduce(e, node, x.dtype == MIX_BOOL ? "and" : "minimum", x, highest(x.dtype));
}

void mix_emit_reduce_mean(mix_emitter *e, const mix_ir_node *node) {
  const mix_reduce_attributes *a = node->attributes;
  const mix_hlo x = wide_operand(e, node), sum = mix_hlo_reduce(&e->w, "add", x, 0, a->axis_count, a->axes);
  double count = 1;
  for (int i = 0; i < a->axis_count; i++) count *= (double)x.shape.dims[a->axes[i]];
  mix_emit_result(e, node, 0, mix_hlo_divide(&e->w, sum, mix_hlo_like(&e->w, sum, count)));
}

void mix_emit_bias_add_grad(mix_emitter *e, const mix_ir_node *node) {
  static const int axes[MIX_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  const mix_hlo x = wide_operand(e, node);
  mix_emit_result(e, node, 0, mix_hlo_reduce(&e->w, "add", x, 0, x.shape.rank - 1, axes));
}

/* Rounds each sum to the accumulator's dtype. */
void mix_emit_add_n(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo sum = wide_operand(e, node);
  for (int i = 1; i < node->input_count; i++)
    sum = mix_hlo_add(&e->w, sum, mix_emit_widen(e, mix_emit_operand(e, node, i)));
  mix_emit_result(e, node, 0, sum);
}

/* The first extreme along the axis, or the first NaN. */
static void position(mix_emitter *e, const mix_ir_node *node, const char *op, bool is_max) {
  mix_hlo_writer *w = &e->w;
  const int axis = ((const mix_axis_attributes *)node->attributes)->axis;
  mix_hlo x = mix_emit_operand(e, node, 0);
  if (x.dtype == MIX_BOOL) x = mix_hlo_convert(w, x, MIX_UINT8);
  int others[MIX_MAX_RANK], count = 0;
  for (int d = 0; d < x.shape.rank; d++)
    if (d != axis) others[count++] = d;
  const mix_hlo extreme = mix_hlo_broadcast_along(
                    w,
                    mix_hlo_reduce(w, op, x, is_max ? mix_emit_lowest(x.dtype) : highest(x.dtype), 1, &axis),
                    x.shape, others),
                equal = mix_hlo_compare(w, "EQ", x, extreme), nan = mix_hlo_compare(w, "NE", x, x),
                found = mix_hlo_binary(w, "or", equal, nan),
                places = mix_hlo_iota(w, mix_type_of(MIX_INT64, x.shape), axis);
  const double length = (double)x.shape.dims[axis];
  mix_emit_result(e, node, 0,
                  mix_hlo_reduce(w, "minimum",
                                 mix_hlo_select(w, found, places, mix_hlo_like(w, places, length)), length, 1,
                                 &axis));
}
void mix_emit_argmax(mix_emitter *e, const mix_ir_node *node) { position(e, node, "maximum", true); }
void mix_emit_argmin(mix_emitter *e, const mix_ir_node *node) { position(e, node, "minimum", false); }

void mix_emit_all_finite(mix_emitter *e, const mix_ir_node *node) {
  const mix_hlo finite = mix_hlo_is_finite(&e->w, mix_emit_operand(e, node, 0));
  mix_emit_result(e, node, 0, mix_hlo_reduce_all(&e->w, "and", finite, 1));
}

/* Each mean, difference and square rounds to the dtype of the results, which is no less than float32. */
void mix_emit_row_moments(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_reduce_attributes *a = node->attributes;
  const mix_hlo x = mix_hlo_convert(w, mix_emit_operand(e, node, 0), mix_emit_type(e, node, 0).dtype);
  double count = 1;
  for (int i = 0; i < a->axis_count; i++) count *= (double)x.shape.dims[a->axes[i]];
  const mix_hlo sum = mix_hlo_reduce(w, "add", x, 0, a->axis_count, a->axes),
                mean = mix_hlo_divide(w, sum, mix_hlo_like(w, sum, count)),
                difference = mix_hlo_subtract(w, x, mix_emit_along_last(e, mean, x.shape)),
                squares = mix_hlo_reduce(w, "add", mix_hlo_multiply(w, difference, difference), 0,
                                         a->axis_count, a->axes);
  mix_emit_result(e, node, 0, mean);
  mix_emit_result(e, node, 1, mix_hlo_divide(w, squares, mix_hlo_like(w, sum, count)));
}
