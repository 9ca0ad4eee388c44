/* Products of matrices and Einstein sums. */
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
