/* Weights stored as integers: numbers of 8 or 4 bits, dequantized by nodes, so that the file stays small. */
#include "onnx/emit.h"

/* Two numbers of each byte along an axis, the lower one first, on an axis behind it: rest = x mod 16, high =
 * (x - rest) / 16, low = (rest + 8) mod 16 - 8. */
static const char *halves_of(mix_onnx_emitter *e, const char *bytes, int64_t axis) {
  const char *x = mix_onnx_cast(e, bytes, MIX_INT8, MIX_INT32), *eight = mix_onnx_scalar(e, MIX_INT32, 8),
             *sixteen = mix_onnx_scalar(e, MIX_INT32, 16);
  const char *rest = mix_onnx_node2(e, "Mod", x, sixteen), *moved = mix_onnx_node2(e, "Add", rest, eight);
  const char *low = mix_onnx_node2(e, "Sub", mix_onnx_node2(e, "Mod", moved, sixteen), eight),
             *high = mix_onnx_node2(e, "Div", mix_onnx_node2(e, "Sub", x, rest), sixteen),
             *place = mix_onnx_int64s(e, 1, &axis),
             *pair[] = {mix_onnx_node2(e, "Unsqueeze", low, place),
                        mix_onnx_node2(e, "Unsqueeze", high, place)};
  mix_onnx_int(e, "axis", axis);
  return mix_onnx_cast(e, mix_onnx_node(e, "Concat", 2, pair), MIX_INT32, MIX_INT8);
}

/* Numbers of 4 bits along an axis, `size` of them, from a value of bytes. */
static const char *unpacked(mix_onnx_emitter *e, const char *bytes, int value, int64_t along, int64_t size) {
  const int rank = e->ir->values[value].shape.rank;
  const int64_t begin = 0;
  mix_onnx_size sizes[MIX_MAX_RANK];
  for (int d = 0; d < rank; d++) sizes[d] = mix_onnx_axis(e, value, d);
  const int64_t whole = 2 * sizes[along].rest;
  sizes[along].rest = whole;
  const char *x = mix_onnx_reshape(e, halves_of(e, bytes, along + 1), rank, sizes);
  if (whole == size) return x;
  const char *operands[] = {x, mix_onnx_int64s(e, 1, &begin), mix_onnx_int64s(e, 1, &size),
                            mix_onnx_int64s(e, 1, &along)};
  return mix_onnx_node(e, "Slice", 4, operands);
}

void mix_onnx_emit_unpack(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_nibble_attributes *a = node->attributes;
  if (mix_onnx_axis(e, node->inputs[0], a->axis).factor)
    mix_onnx_refuse(e, node, "as many numbers as the batch");
  else
    mix_onnx_result(e, node, 0, unpacked(e, mix_onnx_operand(e, node, 0), node->inputs[0], a->axis, a->size));
}

/* ---- weights ---- */

static mix_dtype wide_of(mix_dtype dtype) { return mix_dtype_is_16_bit(dtype) ? MIX_FLOAT32 : dtype; }

static const char *numbers_of(mix_onnx_emitter *e, const mix_ir_node *node, int i) {
  const mix_stored_attributes *a = node->attributes;
  const char *stored = mix_onnx_operand(e, node, i);
  return a->bits == 4 ? unpacked(e, stored, node->inputs[i], mix_onnx_operand_type(e, node, i).shape.rank - 1,
                                 a->columns)
                      : stored;
}

static int64_t length_of(const mix_onnx_emitter *e, const mix_ir_node *node, int i, int axis) {
  const mix_stored_attributes *a = node->attributes;
  const mix_shape shape = mix_onnx_operand_type(e, node, i).shape;
  return a->bits == 4 && axis == shape.rank - 1 ? a->columns : shape.dims[axis];
}

/* The value of each number's group. */
static const char *by_number(mix_onnx_emitter *e, const char *x, int axis, int64_t block, int64_t length) {
  int64_t *groups = mix_ir_array(e->root, (int)length + 1, sizeof *groups);
  if (!groups) {
    e->failed = true;
    return "";
  }
  for (int64_t i = 0; i < length; i++) groups[i] = i / block;
  mix_onnx_int(e, "axis", axis);
  return mix_onnx_node2(e, "Gather", x, mix_onnx_int64s(e, (int)length, groups));
}

/* The scale as its product or its weight has it: rounded to the dtype, in the dtype that divides. */
static const char *divisor(mix_onnx_emitter *e, const mix_ir_node *node, int i, mix_dtype dtype) {
  const mix_dtype own = mix_onnx_operand_type(e, node, i).dtype;
  return mix_onnx_cast(e, mix_onnx_cast(e, mix_onnx_operand(e, node, i), own, dtype), dtype, wide_of(dtype));
}

/* The weight of operands i, i + 1 and, of blocks, i + 2. */
static const char *dequantized(mix_onnx_emitter *e, const mix_ir_node *node, int i, mix_dtype dtype) {
  const mix_stored_attributes *a = node->attributes;
  const int rank = mix_onnx_operand_type(e, node, i).shape.rank, axis = a->transposed ? rank - 1 : 0;
  const char *numbers = numbers_of(e, node, i);
  if (!a->block) {
    const int64_t last = rank - 1;
    const char *scale = divisor(e, node, i + 1, dtype);
    if (a->transposed) scale = mix_onnx_node2(e, "Unsqueeze", scale, mix_onnx_int64s(e, 1, &last));
    numbers = mix_onnx_cast(e, numbers, MIX_INT8, wide_of(dtype));
    return mix_onnx_cast(e, mix_onnx_node2(e, "Div", numbers, scale), wide_of(dtype), dtype);
  }
  const mix_dtype own = mix_onnx_operand_type(e, node, i + 1).dtype,
                  wide = own == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32;
  const int64_t length = length_of(e, node, i, axis);
  const char *scale = mix_onnx_cast(e, mix_onnx_operand(e, node, i + 1), own, wide),
             *zero = mix_onnx_cast(e, mix_onnx_operand(e, node, i + 2),
                                   mix_onnx_operand_type(e, node, i + 2).dtype, wide);
  const char *difference = mix_onnx_node2(e, "Sub", mix_onnx_cast(e, numbers, MIX_INT8, wide),
                                          by_number(e, zero, axis, a->block, length));
  const char *product = mix_onnx_node2(e, "Mul", difference, by_number(e, scale, axis, a->block, length));
  return mix_onnx_cast(e, product, wide, dtype);
}

void mix_onnx_emit_dequantize(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_stored_attributes *a = node->attributes;
  mix_onnx_result(e, node, 0, dequantized(e, node, 0, a->dtype));
}

/* Of channels, the product with the numbers is divided by the scale. */
void mix_onnx_emit_matmul_stored(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_stored_attributes *a = node->attributes;
  const mix_dtype dtype = mix_onnx_operand_type(e, node, 0).dtype;
  const char *weight =
      a->block ? dequantized(e, node, 1, dtype) : mix_onnx_cast(e, numbers_of(e, node, 1), MIX_INT8, dtype);
  if (a->transposed) weight = mix_onnx_transpose(e, weight, 2, (const int[]){1, 0});
  const char *y = mix_onnx_node2(e, "MatMul", mix_onnx_operand(e, node, 0), weight);
  if (!a->block) {
    const char *wide = mix_onnx_cast(e, y, dtype, wide_of(dtype));
    y = mix_onnx_cast(e, mix_onnx_node2(e, "Div", wide, divisor(e, node, 2, dtype)), wide_of(dtype), dtype);
  }
  mix_onnx_result(e, node, 0, y);
}
