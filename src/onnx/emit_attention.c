/* Attention as products, or by option as the operator of opset 23 where that computes the same. */
#include "onnx/emit.h"

#include "tensor/shape.h"

/* Keys or values (batch, keys, groups, dim) as (batch, groups, keys, dim). */
static const char *by_group(mix_onnx_emitter *e, const mix_ir_node *node, int operand) {
  return mix_onnx_transpose(e, mix_onnx_operand(e, node, operand), 4, (const int[]){0, 2, 1, 3});
}

/* The same as (batch, heads, keys, dim): a group for each of its heads. */
static const char *by_head(mix_onnx_emitter *e, const mix_ir_node *node, int operand, int64_t heads) {
  const int value = node->inputs[operand];
  const int64_t groups = mix_onnx_operand_type(e, node, operand).shape.dims[2];
  const char *x = by_group(e, node, operand);
  if (groups == heads) return x;
  const mix_onnx_size split[] = {mix_onnx_axis(e, value, 0), mix_onnx_known(groups), mix_onnx_known(1),
                                 mix_onnx_axis(e, value, 1), mix_onnx_axis(e, value, 3)},
                      joined[] = {split[0], mix_onnx_known(heads), split[3], split[4]};
  const int64_t each[] = {1, 1, heads / groups, 1, 1};
  x = mix_onnx_reshape(e, x, 5, split);
  x = mix_onnx_node2(e, "Expand", x, mix_onnx_int64s(e, 5, each));
  return mix_onnx_reshape(e, x, 4, joined);
}

/* Does the mask let every query see every key, as the one condition that stands for none does? */
static bool is_whole(const mix_ir *ir, const mix_ir_node *node) {
  const mix_ir_node *mask = &ir->nodes[mix_ir_producer(ir, node->inputs[3])];
  if (mask->source == MIX_IR_CONSTANT && mix_shape_size(ir->values[mask->first_output].shape) == 1) {
    const bool *value = mix_ir_map_constant(mask);
    const bool whole = value && *value;
    if (value) mix_ir_unmap_constant(mask);
    return whole;
  }
  return !mask->source && (mask->op->flags & MIX_OP_UNIFORM) &&
         ((const mix_shape_attributes *)mask->attributes)->value == 1;
}

/* Where a query may see a key; NULL: everywhere. */
static const char *attends(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_attention_attributes *a = node->attributes;
  const bool whole = is_whole(e->ir, node);
  const int64_t queries = mix_onnx_operand_type(e, node, 0).shape.dims[1],
                keys = mix_onnx_operand_type(e, node, 1).shape.dims[1];
  if (!a->causal) return whole ? NULL : mix_onnx_operand(e, node, 3);
  if (queries > 0 && keys > (1 << 30) / queries)
    return mix_onnx_refuse(e, node, "%lld queries of %lld keys are too many for a mask", (long long)queries,
                           (long long)keys);
  bool *seen = mix_ir_flags(e->root, (int)(queries * keys) + 1);
  if (!seen) return mix_onnx_refuse(e, node, "out of memory");
  for (int64_t q = 0; q < queries; q++)
    for (int64_t k = 0; k < keys; k++) seen[q * keys + k] = k <= q;
  const char *before = mix_onnx_constant(e, MIX_BOOL, MIX_SHAPE(queries, keys), seen);
  return whole ? before : mix_onnx_node2(e, "And", mix_onnx_operand(e, node, 3), before);
}

/* ---- products ---- */

static const char *probabilities(mix_onnx_emitter *e, const mix_ir_node *node, const char *scores) {
  const mix_attention_attributes *a = node->attributes;
  const mix_dtype dtype = mix_onnx_operand_type(e, node, 0).dtype,
                  wide = mix_dtype_is_16_bit(dtype) ? MIX_FLOAT32 : dtype;
  const char *mask = attends(e, node);
  const char *p = mix_onnx_cast(e, scores, dtype, wide);
  if (a->scale != 1) p = mix_onnx_node2(e, "Mul", p, mix_onnx_scalar(e, wide, a->scale));
  if (mask) {
    const char *value = mix_onnx_scalar(e, wide, a->mask_value),
               *masked = a->mask_adds ? mix_onnx_node2(e, "Add", p, value) : value;
    p = mix_onnx_node3(e, "Where", mask, p, masked);
  }
  mix_onnx_int(e, "axis", -1);
  p = mix_onnx_cast(e, mix_onnx_node1(e, "Softmax", p), wide, dtype);
  return mask && a->mask_zeroes ? mix_onnx_node3(e, "Where", mask, p, mix_onnx_scalar(e, dtype, 0)) : p;
}

static const char *as_products(mix_onnx_emitter *e, const mix_ir_node *node, const char *query,
                               int64_t heads) {
  const char *key = mix_onnx_transpose(e, by_head(e, node, 1, heads), 4, (const int[]){0, 1, 3, 2}),
             *scores = mix_onnx_node2(e, "MatMul", query, key), *p = probabilities(e, node, scores);
  return mix_onnx_node2(e, "MatMul", p, by_head(e, node, 2, heads));
}

/* ---- the operator ---- */

/* A row of which nothing is seen is zeros in one layer and the mean of all values in others: the operator,
 * which adds a mask of numbers, gives the mean. */
bool mix_onnx_is_attention_operator(const mix_ir *ir, const mix_ir_node *node) {
  const mix_attention_attributes *a = node->attributes;
  return node->op == &mix_op_attention && (!a->mask_zeroes || is_whole(ir, node));
}

/* What is added to scores: half of float16's range leaves room for the scores. */
static const char *added_mask(mix_onnx_emitter *e, const mix_ir_node *node) {
  enum { LOWEST_FLOAT16 = -32768 };
  const mix_attention_attributes *a = node->attributes;
  const mix_dtype dtype = mix_onnx_written(e, mix_onnx_operand_type(e, node, 0).dtype);
  const int64_t queries = mix_onnx_operand_type(e, node, 0).shape.dims[1],
                keys = mix_onnx_operand_type(e, node, 3).shape.dims[3] == 1
                           ? mix_onnx_operand_type(e, node, 1).shape.dims[1]
                           : 1;
  const double value =
      dtype == MIX_FLOAT16 && a->mask_value < LOWEST_FLOAT16 ? LOWEST_FLOAT16 : a->mask_value;
  const char *mask = attends(e, node);
  /* Runtimes want the axes of queries and keys whole. */
  const int64_t whole[] = {queries, keys};
  const char *zeros = mix_onnx_node2(e, "Expand", mix_onnx_scalar(e, dtype, 0), mix_onnx_int64s(e, 2, whole));
  return mask ? mix_onnx_node3(e, "Where", mask, zeros, mix_onnx_scalar(e, dtype, value)) : NULL;
}

static const char *as_operator(mix_onnx_emitter *e, const mix_ir_node *node, const char *query) {
  const mix_attention_attributes *a = node->attributes;
  const bool whole = is_whole(e->ir, node);
  const char *operands[] = {query, by_group(e, node, 1), by_group(e, node, 2),
                            whole ? NULL : added_mask(e, node)};
  if (whole && a->causal) mix_onnx_int(e, "is_causal", 1);
  mix_onnx_float(e, "scale", a->scale);
  if (mix_dtype_is_16_bit(mix_onnx_written(e, mix_onnx_operand_type(e, node, 0).dtype)))
    mix_onnx_int(e, "softmax_precision", mix_onnx_type_of(MIX_FLOAT32));
  return mix_onnx_node(e, "Attention", whole ? 3 : 4, operands);
}

void mix_onnx_emit_attention(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_attention_attributes *a = node->attributes;
  const int64_t heads = mix_onnx_operand_type(e, node, 0).shape.dims[2];
  if (a->rate != 0) {
    mix_onnx_refuse(e, node, "it draws random numbers");
    return;
  }
  const char *query = by_group(e, node, 0);
  const bool is_operator = e->attention == MIX_EXPORT_OPERATOR && mix_onnx_is_attention_operator(e->ir, node);
  const char *y = is_operator ? as_operator(e, node, query) : as_products(e, node, query, heads);
  mix_onnx_result(e, node, 0, mix_onnx_transpose(e, y, 4, (const int[]){0, 2, 1, 3}));
}
