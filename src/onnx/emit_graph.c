/* A graph of nodes as one of ONNX: which operation has which form. */
#include "onnx/emit_graph.h"

#include "base/alloc.h"
#include "base/error.h"
#include "ops/debug_ops.h"
#include "tensor/shape.h"
#include <string.h>

/* Result 0 is operand 0. */
static void emit_same(mix_onnx_emitter *e, const mix_ir_node *node) {
  mix_onnx_result(e, node, 0, mix_onnx_operand(e, node, 0));
}

/* Of what is not element-wise. */
static const struct {
  const mix_op *op;
  mix_onnx_form *form;
} forms[] = {
    {&mix_op_reshape, mix_onnx_emit_reshape},
    {&mix_op_broadcast_to, mix_onnx_emit_broadcast},
    {&mix_op_transpose, mix_onnx_emit_transpose},
    {&mix_op_concat, mix_onnx_emit_concat},
    {&mix_op_slice, mix_onnx_emit_slice},
    {&mix_op_pad, mix_onnx_emit_pad},
    {&mix_op_gather, mix_onnx_emit_gather},
    {&mix_op_one_hot, mix_onnx_emit_one_hot},
    {&mix_op_fill, mix_onnx_emit_fill},
    {&mix_op_range, mix_onnx_emit_range},
    {&mix_op_argsort, mix_onnx_emit_argsort},
    {&mix_op_segment_sum, mix_onnx_emit_segment_sum},
    {&mix_op_rows, mix_onnx_emit_segment_sum},
    {&mix_op_fourier, mix_onnx_emit_fourier},
    {&mix_op_unpack_int4, mix_onnx_emit_unpack},
    {&mix_op_dequantize_channels, mix_onnx_emit_dequantize},
    {&mix_op_dequantize_blocks, mix_onnx_emit_dequantize},
    {&mix_op_matmul_channels, mix_onnx_emit_matmul_stored},
    {&mix_op_matmul_blocks, mix_onnx_emit_matmul_stored},
    {&mix_op_reduce_sum, mix_onnx_emit_sum},
    {&mix_op_reduce_mean, mix_onnx_emit_mean},
    {&mix_op_reduce_prod, mix_onnx_emit_prod},
    {&mix_op_reduce_max, mix_onnx_emit_max},
    {&mix_op_reduce_min, mix_onnx_emit_min},
    {&mix_op_reduce_any, mix_onnx_emit_max},
    {&mix_op_reduce_all, mix_onnx_emit_min},
    {&mix_op_argmax, mix_onnx_emit_argmax},
    {&mix_op_argmin, mix_onnx_emit_argmin},
    {&mix_op_softmax, mix_onnx_emit_softmax},
    {&mix_op_log_softmax, mix_onnx_emit_log_softmax},
    {&mix_op_add_n, mix_onnx_emit_add_n},
    {&mix_op_matmul, mix_onnx_emit_matmul},
    {&mix_op_batch_matmul, mix_onnx_emit_matmul},
    {&mix_op_matmul_integer, mix_onnx_emit_matmul},
    {&mix_op_einsum, mix_onnx_emit_einsum},
    {&mix_op_attention, mix_onnx_emit_attention},
    {&mix_op_conv, mix_onnx_emit_conv},
    {&mix_op_conv3d, mix_onnx_emit_conv},
    {&mix_op_depthwise_conv, mix_onnx_emit_conv},
    {&mix_op_conv_input_gradient, mix_onnx_emit_conv_transpose},
    {&mix_op_conv3d_input_gradient, mix_onnx_emit_conv_transpose},
    {&mix_op_depthwise_conv_input_gradient, mix_onnx_emit_conv_transpose},
    {&mix_op_max_pool, mix_onnx_emit_max_pool},
    {&mix_op_max_pool3d, mix_onnx_emit_max_pool},
    {&mix_op_avg_pool, mix_onnx_emit_avg_pool},
    {&mix_op_avg_pool3d, mix_onnx_emit_avg_pool},
    {&mix_op_resize_axis, mix_onnx_emit_resize},
    {&mix_op_scan, mix_onnx_emit_scan},
    {&mix_op_optimization_barrier, emit_same},
    {&mix_op_check_numerics, emit_same},
};

static mix_onnx_form *form_of(const mix_op *op) {
  if (op->flags & (MIX_OP_ELEMENTWISE | MIX_OP_READ)) return mix_onnx_elementwise;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (forms[i].op == op) return forms[i].form;
  return NULL;
}

/* ---- weights and constants ---- */

static const mix_ir_variable *variable_of(const mix_onnx_emitter *e, int value) {
  const mix_ir_node *node = &e->ir->nodes[mix_ir_producer(e->ir, value)];
  if (!node->source && (node->op->flags & MIX_OP_READ) && node->input_count == 1)
    return variable_of(e, node->inputs[0]);
  return node->source == MIX_IR_VARIABLE ? &e->ir->variables[node->index] : NULL;
}

static const char *tensor_of(mix_onnx_emitter *e, mix_variable *variable, mix_dtype dtype) {
  const mix_onnx_initializer tensor = {.dtype = mix_onnx_written(e, dtype),
                                       .from = variable->dtype,
                                       .shape = variable->shape,
                                       .variable = variable};
  for (int i = 0; i < e->tensor_count; i++)
    if (e->tensors[i].variable == variable && e->tensors[i].dtype == tensor.dtype) return e->tensors[i].name;
  return mix_onnx_add_tensor(e, variable->name ? variable->name : "weight", tensor);
}

/* A weight that is rounded to 16 bits is written so, where it need not stay in float32. */
static bool emit_rounded_weight(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_ir_variable *variable =
      node->op->opcode == MIX_OPCODE_CAST && !e->keeps_weights ? variable_of(e, node->inputs[0]) : NULL;
  const mix_dtype to = mix_onnx_type(e, node, 0).dtype;
  if (!variable || !mix_dtype_is_16_bit(to) || !mix_dtype_is_floating(variable->variable->dtype))
    return false;
  mix_onnx_result(e, node, 0, tensor_of(e, variable->variable, to));
  return true;
}

static void emit_constant(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_type type = mix_onnx_type(e, node, 0);
  mix_onnx_result(e, node, 0,
                  mix_onnx_add_tensor(e, mix_onnx_new_name(e, "constant"),
                                      (mix_onnx_initializer){.dtype = mix_onnx_written(e, type.dtype),
                                                             .shape = type.shape,
                                                             .from = type.dtype,
                                                             .constant = node}));
}

/* ---- the walk ---- */

/* Does a node that is not dead, or a result, read it? Weights that nothing reads are left out. */
static bool emit_source(mix_onnx_emitter *e, const mix_ir_node *node) {
  if (node->source == MIX_IR_CONSTANT) emit_constant(e, node);
  return !e->failed;
}

/* Variables are written when the first node reads them. */
static void name_operands(mix_onnx_emitter *e, const mix_ir_node *node) {
  for (int i = 0; i < node->input_count; i++) {
    const int value = node->inputs[i];
    if (e->values[value]) continue;
    const mix_ir_variable *variable = variable_of(e, value);
    if (variable) e->values[value] = tensor_of(e, variable->variable, variable->variable->dtype);
  }
}

static bool has_opset(const mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_onnx_need need = mix_onnx_opset_of(e, e->ir, node);
  if (need.opset <= e->opset) return true;
  return mix_fail_value("%s: opset is %d; %s%s%.200s%s needs %d or later", e->call, e->opset, need.what,
                        node->scope ? " of layer '" : "", node->scope ? node->scope : "",
                        node->scope ? "'" : "", need.opset);
}

static bool emit_node(mix_onnx_emitter *e, const mix_ir_node *node) {
  mix_onnx_form *form = form_of(node->op);
  e->node = node;
  if (node->source) return emit_source(e, node);
  if (!form || node->program || node->guard >= 0)
    return mix_onnx_refuse(e, node, "it has no form in ONNX here");
  for (int o = 0; o < node->output_count; o++)
    if (!mix_onnx_type_of(mix_onnx_type(e, node, o).dtype))
      return mix_onnx_refuse(e, node, "ONNX has no %s", mix_dtype_name(mix_onnx_type(e, node, o).dtype));
  if (node->op->flags & MIX_OP_READ) {
    const mix_ir_variable *variable = variable_of(e, node->first_output);
    if (variable && !e->values[node->inputs[0]]) return true; /* written where it is read */
  }
  if (!has_opset(e, node)) return false;
  if (emit_rounded_weight(e, node)) return !e->failed;
  name_operands(e, node);
  form(e, node);
  return !e->failed && !mix_failed();
}

static void need(const mix_ir *ir, bool *needed, int value) { needed[mix_ir_producer(ir, value)] = true; }

/* Nodes that the results need, in their forms: a loop that becomes one node reads less. */
static bool *needed_nodes(mix_onnx_emitter *e, const int *folds) {
  const mix_ir *ir = e->ir;
  bool *needed = mix_ir_flags(e->root, ir->node_count + 1);
  for (int r = 0; needed && r < ir->result_count; r++) need(ir, needed, ir->results[r]);
  for (int n = ir->node_count - 1; needed && n >= 0; n--) {
    const mix_ir_node *node = &ir->nodes[n];
    int own[MIX_ONNX_RECURRENT_NEEDS];
    if (!needed[n]) continue;
    if (folds && folds[n] >= 0) {
      need(ir, needed, ir->nodes[folds[n]].inputs[0]);
      continue;
    }
    const int count = node->body ? mix_onnx_recurrent_needs(e, node, own) : 0;
    for (int i = 0; i < count; i++) need(ir, needed, own[i]);
    for (int i = 0; !count && i < node->input_count; i++) need(ir, needed, node->inputs[i]);
  }
  return needed;
}

bool mix_onnx_emit_nodes(mix_onnx_emitter *e) {
  const bool searches = e->folds && e->ir == e->root;
  const int *folds = searches ? mix_onnx_find_folds(e) : NULL;
  const bool *needed = searches && !folds ? NULL : needed_nodes(e, folds);
  for (int n = 0; needed && n < e->ir->node_count; n++) {
    const mix_ir_node *node = &e->ir->nodes[n];
    if (!needed[n]) continue;
    e->node = node;
    if (folds && folds[n] >= 0)
      mix_onnx_emit_folded(e, &e->ir->nodes[folds[n]], node);
    else if (!emit_node(e, node))
      return false;
    if (e->failed || mix_failed()) return false;
  }
  return needed;
}

const char *mix_onnx_value_name(mix_onnx_emitter *e, int value) {
  const mix_ir_variable *variable = e->values[value] ? NULL : variable_of(e, value);
  if (variable) e->values[value] = tensor_of(e, variable->variable, variable->variable->dtype);
  return e->values[value];
}

/* ---- the same graph for other batches ---- */

static bool same_constant(const mix_ir *a, const mix_ir *b, const mix_ir_node *x, const mix_ir_node *y) {
  const mix_type s = a->values[x->first_output].type, t = b->values[y->first_output].type;
  if (s.dtype != t.dtype || !mix_shape_equal(s.shape, t.shape)) return false;
  const void *p = mix_ir_map_constant(x), *q = mix_ir_map_constant(y);
  const bool same = p && q && !memcmp(p, q, mix_value_bytes(s.dtype, s.shape));
  if (q) mix_ir_unmap_constant(y);
  if (p) mix_ir_unmap_constant(x);
  return same;
}

static bool same_node(const mix_ir *a, const mix_ir *b, const mix_ir_node *x, const mix_ir_node *y) {
  if (x->op != y->op || x->source != y->source || x->dead != y->dead || x->input_count != y->input_count ||
      x->first_output != y->first_output || x->output_count != y->output_count || !x->body != !y->body)
    return false;
  if (x->dead) return true;
  if (x->source && x->source != MIX_IR_CONSTANT && x->index != y->index) return false;
  if (x->source == MIX_IR_CONSTANT && !same_constant(a, b, x, y)) return false;
  if (x->input_count && memcmp(x->inputs, y->inputs, sizeof *x->inputs * (size_t)x->input_count))
    return false;
  return !x->body || mix_onnx_same_graph(x->body, y->body);
}

bool mix_onnx_same_graph(const mix_ir *a, const mix_ir *b) {
  if (a->node_count != b->node_count || a->value_count != b->value_count ||
      a->result_count != b->result_count || a->variable_count != b->variable_count)
    return false;
  for (int n = 0; n < a->node_count; n++)
    if (!same_node(a, b, &a->nodes[n], &b->nodes[n])) return false;
  for (int i = 0; i < a->variable_count; i++)
    if (a->variables[i].variable != b->variables[i].variable) return false;
  return !a->result_count || !memcmp(a->results, b->results, sizeof *a->results * (size_t)a->result_count);
}
