/* Reductions and softmax. */
#include "onnx/emit.h"

static void reduce(mix_onnx_emitter *e, const mix_ir_node *node, const char *op, const char *x) {
  const mix_reduce_attributes *a = node->attributes;
  if (!a->axis_count && mix_onnx_operand_type(e, node, 0).shape.rank == 0)
    mix_onnx_result(e, node, 0, x);
  else
    mix_onnx_result(e, node, 0, mix_onnx_reduce(e, op, x, a->axis_count, a->axes, a->keep_dims));
}

void mix_onnx_emit_sum(mix_onnx_emitter *e, const mix_ir_node *node) {
  reduce(e, node, "ReduceSum", mix_onnx_operand(e, node, 0));
}
void mix_onnx_emit_mean(mix_onnx_emitter *e, const mix_ir_node *node) {
  reduce(e, node, "ReduceMean", mix_onnx_operand(e, node, 0));
}
void mix_onnx_emit_prod(mix_onnx_emitter *e, const mix_ir_node *node) {
  reduce(e, node, "ReduceProd", mix_onnx_operand(e, node, 0));
}

/* Of bool: of its numbers. */
static void extreme(mix_onnx_emitter *e, const mix_ir_node *node, const char *op) {
  const bool logical = mix_onnx_operand_type(e, node, 0).dtype == MIX_BOOL;
  const char *x = mix_onnx_operand(e, node, 0);
  if (logical) x = mix_onnx_cast(e, x, MIX_BOOL, MIX_INT32);
  reduce(e, node, op, x);
  if (logical)
    mix_onnx_result(e, node, 0, mix_onnx_cast(e, e->values[node->first_output], MIX_INT32, MIX_BOOL));
}
void mix_onnx_emit_max(mix_onnx_emitter *e, const mix_ir_node *node) { extreme(e, node, "ReduceMax"); }
void mix_onnx_emit_min(mix_onnx_emitter *e, const mix_ir_node *node) { extreme(e, node, "ReduceMin"); }

static void position(mix_onnx_emitter *e, const mix_ir_node *node, const char *op) {
  const char *x = mix_onnx_operand(e, node, 0);
  if (mix_onnx_operand_type(e, node, 0).dtype == MIX_BOOL) x = mix_onnx_cast(e, x, MIX_BOOL, MIX_INT32);
  mix_onnx_int(e, "axis", ((const mix_axis_attributes *)node->attributes)->axis);
  mix_onnx_int(e, "keepdims", 0);
  x = mix_onnx_node1(e, op, x);
  mix_onnx_result(e, node, 0, mix_onnx_cast(e, x, MIX_INT64, mix_onnx_type(e, node, 0).dtype));
}
void mix_onnx_emit_argmax(mix_onnx_emitter *e, const mix_ir_node *node) { position(e, node, "ArgMax"); }
void mix_onnx_emit_argmin(mix_onnx_emitter *e, const mix_ir_node *node) { position(e, node, "ArgMin"); }

static void along_last(mix_onnx_emitter *e, const mix_ir_node *node, const char *op) {
  mix_onnx_int(e, "axis", -1);
  mix_onnx_result(e, node, 0, mix_onnx_node1(e, op, mix_onnx_operand(e, node, 0)));
}
void mix_onnx_emit_softmax(mix_onnx_emitter *e, const mix_ir_node *node) { along_last(e, node, "Softmax"); }
void mix_onnx_emit_log_softmax(mix_onnx_emitter *e, const mix_ir_node *node) {
  along_last(e, node, "LogSoftmax");
}

void mix_onnx_emit_add_n(mix_onnx_emitter *e, const mix_ir_node *node) {
  const char *sum = mix_onnx_operand(e, node, 0);
  for (int i = 1; i < node->input_count; i++)
    sum = mix_onnx_node2(e, "Add", sum, mix_onnx_operand(e, node, i));
  mix_onnx_result(e, node, 0, sum);
}
