/* Which version of ONNX's operators a graph needs. */
#include "onnx/emit.h"

enum { BITWISE_OPSET = 18, FLOAT8_OPSET = 19, BFLOAT16_OPSET = 22, ATTENTION_OPSET = 23 };

/* Operators have bfloat16 from opset 13 on, but these, which got it later. */
static const struct {
  const mix_op *op;
  const char *what;
} late[] = {{&mix_op_conv, "Conv of bfloat16"},
            {&mix_op_conv3d, "Conv of bfloat16"},
            {&mix_op_depthwise_conv, "Conv of bfloat16"},
            {&mix_op_conv_input_gradient, "ConvTranspose of bfloat16"},
            {&mix_op_conv3d_input_gradient, "ConvTranspose of bfloat16"},
            {&mix_op_depthwise_conv_input_gradient, "ConvTranspose of bfloat16"},
            {&mix_op_max_pool, "MaxPool of bfloat16"},
            {&mix_op_max_pool3d, "MaxPool of bfloat16"},
            {&mix_op_avg_pool, "AveragePool of bfloat16"},
            {&mix_op_avg_pool3d, "AveragePool of bfloat16"},
            {&mix_op_elu, "Elu of bfloat16"},
            {&mix_op_selu, "Selu of bfloat16"},
            {&mix_op_softplus, "Softplus of bfloat16"},
            {&mix_op_softsign, "Softsign of bfloat16"},
            {&mix_op_sin, "Sin of bfloat16"},
            {&mix_op_cos, "Cos of bfloat16"},
            {&mix_op_round, "Round of bfloat16"},
            {&mix_op_scan, "LSTM, GRU, RNN and Loop of bfloat16"}};

static const char *late_bfloat16(const mix_op *op) {
  for (size_t i = 0; i < sizeof late / sizeof *late; i++)
    if (late[i].op == op) return late[i].what;
  return NULL;
}

mix_onnx_need mix_onnx_opset_of(const mix_onnx_emitter *e, const mix_ir *ir, const mix_ir_node *node) {
  const mix_dtype dtype = node->output_count ? ir->values[node->first_output].dtype : MIX_DTYPE_NONE;
  const char *what = dtype == MIX_BFLOAT16 && !e->widens ? late_bfloat16(node->op) : NULL;
  const int opcode = node->op->opcode;
  if (e->attention == MIX_EXPORT_OPERATOR && mix_onnx_is_attention_operator(ir, node))
    return (mix_onnx_need){ATTENTION_OPSET, "Attention"};
  if (what) return (mix_onnx_need){BFLOAT16_OPSET, what};
  if (mix_dtype_is_float8(dtype)) return (mix_onnx_need){FLOAT8_OPSET, "float8"};
  if (opcode == MIX_OPCODE_BITWISE_AND || opcode == MIX_OPCODE_BITWISE_OR || opcode == MIX_OPCODE_BITWISE_XOR)
    return (mix_onnx_need){BITWISE_OPSET, "an operation on bits"};
  return (mix_onnx_need){MIX_ONNX_OLDEST_OPSET, ""};
}

int mix_onnx_default_opset(const mix_onnx_emitter *e, const mix_ir *ir) {
  int opset = MIX_ONNX_OLDEST_OPSET;
  for (int v = 0; v < ir->value_count && !e->widens; v++)
    if (ir->values[v].dtype == MIX_BFLOAT16) opset = BFLOAT16_OPSET;
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    const int own = node->dead ? 0 : mix_onnx_opset_of(e, ir, node).opset,
              inner = node->dead || !node->body ? 0 : mix_onnx_default_opset(e, node->body);
    if (own > opset) opset = own;
    if (inner > opset) opset = inner;
  }
  return opset;
}
