/* Weights stored as integers, and products of integers. */
#include "backend/xla/emit_inside.h"

/* matmul_integer */
static mix_hlo along_batch(mix_emitter *e, mix_hlo x, mix_shape batch) {
  mix_shape shape = batch;
  for (int i = 2; i > 0; i--) shape.dims[shape.rank++] = x.shape.dims[x.shape.rank - i];
  return mix_hlo_broadcast(&e->w, mix_hlo_convert(&e->w, x, MIX_INT32), shape);
}

/* Operands become int32 first: no plug-in need know a product of int8 with a result of int32. */
void mix_emit_matmul_integer(mix_emitter *e, const mix_ir_node *node) {
  const mix_matmul_attributes *a = node->attributes;
  mix_shape batch = mix_emit_type(e, node, 0).shape;
  batch.rank -= 2;
  mix_hlo_dot dot = {.batch_count = batch.rank,
                     .contracted_count = 1,
                     .contracted = {{batch.rank + !a->transpose_a}, {batch.rank + a->transpose_b}}};
  for (int d = 0; d < batch.rank; d++) dot.batch[0][d] = dot.batch[1][d] = d;
  const mix_hlo x = along_batch(e, mix_emit_operand(e, node, 0), batch),
                y = along_batch(e, mix_emit_operand(e, node, 1), batch);
  mix_emit_result(e, node, 0, mix_hlo_dot_general(&e->w, x, y, &dot, MIX_INT32));
}

/* ---- nibbles ---- */

/* x as (outer, the axis, inner), with `axis` split into `pairs` of two if `split`. */
static mix_shape around(mix_shape x, int axis, int64_t length, int64_t parts) {
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < x.rank; d++)
    if (d != axis) *(d < axis ? &outer : &inner) *= x.dims[d];
  return MIX_SHAPE(outer, length, parts, inner);
}

static mix_hlo shifted(mix_emitter *e, const char *how, mix_hlo x) {
  return mix_hlo_binary(&e->w, how, x, mix_hlo_like(&e->w, x, 4));
}

/* The numbers of a tensor of bytes, `size` along the axis. */
static mix_hlo unpack(mix_emitter *e, mix_hlo bytes, int axis, int64_t size) {
  mix_hlo_writer *w = &e->w;
  mix_shape result = bytes.shape;
  const int64_t length = bytes.shape.dims[axis];
  const mix_hlo x = mix_hlo_reshape(w, bytes, around(bytes.shape, axis, length, 1));
  const mix_hlo high = shifted(e, "shift_right_arithmetic", x),
                low = shifted(e, "shift_right_arithmetic", shifted(e, "shift_left", x)),
                pairs = mix_hlo_concatenate(w, 2, (const mix_hlo[]){low, high}, 2);
  mix_hlo numbers = mix_hlo_reshape(w, pairs, around(bytes.shape, axis, 2 * length, 1));
  const int64_t begin[4] = {0},
                end[4] = {numbers.shape.dims[0], size, numbers.shape.dims[2], numbers.shape.dims[3]};
  numbers = mix_hlo_slice(w, numbers, begin, end, NULL);
  result.dims[axis] = size;
  return mix_hlo_reshape(w, numbers, result);
}

void mix_emit_unpack_int4(mix_emitter *e, const mix_ir_node *node) {
  const mix_nibble_attributes *a = node->attributes;
  mix_emit_result(e, node, 0, unpack(e, mix_emit_operand(e, node, 0), a->axis, a->size));
}

void mix_emit_pack_int4(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_nibble_attributes *a = node->attributes;
  const mix_hlo values = mix_emit_operand(e, node, 0);
  const int64_t length = values.shape.dims[a->axis], bytes = (length + 1) / 2;
  mix_hlo x = mix_hlo_reshape(w, values, around(values.shape, a->axis, length, 1));
  const int64_t none[4] = {0}, after[4] = {0, 2 * bytes - length};
  x = mix_hlo_pad(w, x, mix_hlo_number(w, mix_type_of(MIX_INT8, MIX_SCALAR), 0), none, after, NULL);
  x = mix_hlo_reshape(w, x, around(values.shape, a->axis, bytes, 2));
  const int64_t *d = x.shape.dims, low_end[4] = {d[0], d[1], 1, d[3]}, high_begin[4] = {0, 0, 1, 0},
                high_end[4] = {d[0], d[1], 2, d[3]};
  const mix_hlo low = mix_hlo_slice(w, x, none, low_end, NULL),
                high = mix_hlo_slice(w, x, high_begin, high_end, NULL),
                kept = mix_hlo_and(w, low, mix_hlo_like(w, low, 15));
  mix_emit_result(e, node, 0, mix_hlo_binary(w, "or", kept, shifted(e, "shift_left", high)));
}

/* ---- stored weights ---- */

/* The numbers of operand i, int8. */
static mix_hlo numbers_of(mix_emitter *e, const mix_ir_node *node, int i) {
  const mix_stored_attributes *a = node->attributes;
  const mix_hlo stored = mix_emit_operand(e, node, i);
  return a->bits == 4 ? unpack(e, stored, stored.shape.rank - 1, a->columns) : stored;
}

/* A value of each group, repeated for the numbers of the group. */
static mix_hlo repeated(mix_emitter *e, mix_hlo x, int axis, int64_t block, int64_t length) {
  mix_hlo_writer *w = &e->w;
  mix_shape result = x.shape;
  const int64_t groups = x.shape.dims[axis];
  if (block > length) block = length;
  mix_hlo y = mix_hlo_reshape(w, x, around(x.shape, axis, groups, 1));
  y = mix_hlo_broadcast(w, y, around(x.shape, axis, groups, block));
  y = mix_hlo_reshape(w, y, around(x.shape, axis, groups * block, 1));
  const int64_t begin[4] = {0}, end[4] = {y.shape.dims[0], length, 1, y.shape.dims[3]};
  result.dims[axis] = length;
  return mix_hlo_reshape(w, mix_hlo_slice(w, y, begin, end, NULL), result);
}

/* x, without the last axis of the shape if transposed, else without all but the last, in the shape. */
static mix_hlo over_channels(mix_emitter *e, mix_hlo x, mix_shape shape, bool transposed) {
  if (!transposed) return mix_hlo_broadcast(&e->w, x, shape);
  mix_shape column = x.shape;
  column.dims[column.rank++] = 1;
  return mix_hlo_broadcast(&e->w, mix_hlo_reshape(&e->w, x, column), shape);
}

/* The weight of operands i, i + 1 and, of blocks, i + 2. */
static mix_hlo dequantize(mix_emitter *e, const mix_ir_node *node, int i, mix_dtype dtype) {
  mix_hlo_writer *w = &e->w;
  const mix_stored_attributes *a = node->attributes;
  const mix_hlo numbers = numbers_of(e, node, i), scale = mix_emit_operand(e, node, i + 1);
  if (!a->block) {
    const mix_dtype wide = mix_emit_wide(dtype);
    const mix_hlo divisor = mix_hlo_convert(w, mix_emit_cast(e, scale, dtype), wide),
                  all = over_channels(e, divisor, numbers.shape, a->transposed);
    return mix_hlo_convert(w, mix_hlo_divide(w, mix_hlo_convert(w, numbers, wide), all), dtype);
  }
  const mix_dtype wide = scale.dtype == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32;
  const int axis = a->transposed ? numbers.shape.rank - 1 : 0;
  const int64_t length = numbers.shape.dims[axis];
  const mix_hlo zero = mix_emit_cast(e, mix_emit_operand(e, node, i + 2), wide),
                scales = repeated(e, mix_hlo_convert(w, scale, wide), axis, a->block, length),
                zeros = repeated(e, zero, axis, a->block, length),
                difference = mix_hlo_subtract(w, mix_hlo_convert(w, numbers, wide), zeros);
  return mix_emit_cast(e, mix_hlo_multiply(w, difference, scales), dtype);
}

void mix_emit_dequantize(mix_emitter *e, const mix_ir_node *node) {
  const mix_stored_attributes *a = node->attributes;
  mix_emit_result(e, node, 0, dequantize(e, node, 0, a->dtype));
}

void mix_emit_matmul_stored(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_stored_attributes *a = node->attributes;
  const mix_hlo x = mix_emit_operand(e, node, 0);
  const mix_hlo weight =
      a->block ? dequantize(e, node, 1, x.dtype) : mix_hlo_convert(w, numbers_of(e, node, 1), x.dtype);
  const mix_hlo_dot dot = {.contracted_count = 1,
                           .contracted = {{x.shape.rank - 1}, {a->transposed}},
                           .precision = mix_emit_precision(e, x.dtype)};
  mix_hlo y = mix_hlo_dot_general(w, x, weight, &dot, mix_emit_product_dtype(e, node, x.dtype));
  if (!a->block) {
    const mix_dtype wide = mix_emit_wide(x.dtype);
    const mix_hlo scale = mix_hlo_convert(w, mix_emit_cast(e, mix_emit_operand(e, node, 2), x.dtype), wide);
    y = mix_hlo_convert(w, mix_hlo_convert(w, y, x.dtype), wide);
    y = mix_hlo_divide(w, y, mix_hlo_broadcast(w, scale, y.shape));
  }
  mix_emit_result(e, node, 0, y);
}
