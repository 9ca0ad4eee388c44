/* Products of matrices, Einstein sums, and attention as products. */
#include "onnx/emit.h"

#include <string.h>

static const char *matrix(mix_onnx_emitter *e, const mix_ir_node *node, int operand, bool transposed) {
  const char *x = mix_onnx_operand(e, node, operand);
  const int rank = mix_onnx_operand_type(e, node, operand).shape.rank;
  int permutation[MIX_MAX_RANK];
  for (int d = 0; d < rank; d++) permutation[d] = d;
  if (transposed) {
    permutation[rank - 1] = rank - 2;
    permutation[rank - 2] = rank - 1;
  }
  return mix_onnx_transpose(e, x, rank, permutation);
}

void mix_onnx_emit_matmul(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_matmul_attributes *a = node->attributes;
  const char *x = matrix(e, node, 0, a && a->transpose_a), *y = matrix(e, node, 1, a && a->transpose_b);
  const bool integer = mix_onnx_operand_type(e, node, 0).dtype == MIX_INT8;
  mix_onnx_result(e, node, 0, mix_onnx_node2(e, integer ? "MatMulInteger" : "MatMul", x, y));
}

/* Letters by the order in which labels come: "abc,cd->abd". */
typedef struct equation {
  int64_t known[3 * MIX_MAX_RANK];
  int count;
  char text[4 * MIX_MAX_RANK];
} equation;

static void put_labels(equation *q, const mix_shape *labels, const char *behind) {
  char *end = q->text + strlen(q->text);
  for (int i = 0; i < labels->rank; i++) {
    int at = 0;
    while (at < q->count && q->known[at] != labels->dims[i]) at++;
    if (at == q->count) q->known[q->count++] = labels->dims[i];
    *end++ = (char)('a' + at);
  }
  strcpy(end, behind);
}

void mix_onnx_emit_einsum(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_einsum_attributes *a = node->attributes;
  equation q = {.count = 0};
  put_labels(&q, &a->a, ",");
  put_labels(&q, &a->b, "->");
  put_labels(&q, &a->result, "");
  mix_onnx_text(e, "equation", q.text);
  mix_onnx_result(e, node, 0,
                  mix_onnx_node2(e, "Einsum", mix_onnx_operand(e, node, 0), mix_onnx_operand(e, node, 1)));
}

/* ---- attention ---- */

/* Keys or values (batch, keys, groups, dim) as (batch, heads, keys, dim): a group for each of its heads. */
static const char *by_head(mix_onnx_emitter *e, const mix_ir_node *node, int operand, int64_t heads) {
  const int value = node->inputs[operand];
  const int64_t groups = mix_onnx_operand_type(e, node, operand).shape.dims[2];
  const char *x = mix_onnx_transpose(e, e->values[value], 4, (const int[]){0, 2, 1, 3});
  if (groups == heads) return x;
  const mix_onnx_size split[] = {mix_onnx_axis(e, value, 0), mix_onnx_known(groups), mix_onnx_known(1),
                                 mix_onnx_axis(e, value, 1), mix_onnx_axis(e, value, 3)},
                      joined[] = {split[0], mix_onnx_known(heads), split[3], split[4]};
  const int64_t each[] = {1, 1, heads / groups, 1, 1};
  x = mix_onnx_reshape(e, x, 5, split);
  x = mix_onnx_node2(e, "Expand", x, mix_onnx_int64s(e, 5, each));
  return mix_onnx_reshape(e, x, 4, joined);
}

/* Where a query may see a key; NULL: everywhere. */
static const char *attends(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_attention_attributes *a = node->attributes;
  const mix_ir_node *mask = &e->ir->nodes[mix_ir_producer(e->ir, node->inputs[3])];
  const bool whole = !mask->source && (mask->op->flags & MIX_OP_UNIFORM) &&
                     ((const mix_shape_attributes *)mask->attributes)->value == 1;
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

void mix_onnx_emit_attention(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_attention_attributes *a = node->attributes;
  const int64_t heads = mix_onnx_operand_type(e, node, 0).shape.dims[2];
  if (a->rate != 0) {
    mix_onnx_refuse(e, node, "it draws random numbers");
    return;
  }
  const int heads_first[] = {0, 2, 1, 3}, matrices[] = {0, 1, 3, 2};
  const char *query = mix_onnx_transpose(e, mix_onnx_operand(e, node, 0), 4, heads_first),
             *key = mix_onnx_transpose(e, by_head(e, node, 1, heads), 4, matrices),
             *scores = mix_onnx_node2(e, "MatMul", query, key), *p = probabilities(e, node, scores),
             *y = mix_onnx_node2(e, "MatMul", p, by_head(e, node, 2, heads));
  mix_onnx_result(e, node, 0, mix_onnx_transpose(e, y, 4, heads_first));
}
