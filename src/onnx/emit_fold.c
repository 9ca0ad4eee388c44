/* Normalisation after a convolution as a part of its kernel and bias: y = scale (x * kernel) + shift, by
 * channel. Layers that compute in 16 bits have casts between, and stay. */
#include "onnx/emit.h"

#include "base/error.h"
#include <mixtape/variable.h>

typedef struct fold {
  mix_onnx_emitter *e;
  int64_t channels;
  mix_tensor *scale, *shift; /* (channels); NULL: 1 and 0 */
} fold;

static bool is_conv(const mix_ir_node *node) {
  return !node->source &&
         (node->op == &mix_op_conv || node->op == &mix_op_conv3d || node->op == &mix_op_depthwise_conv);
}

static mix_tensor *constant_of(const mix_ir *ir, const mix_ir_node *node) {
  const mix_type type = ir->values[node->first_output].type;
  const void *data = mix_ir_map_constant(node);
  mix_tensor *value = data ? mix_tensor_from(data, type.dtype, type.shape) : NULL;
  if (data) mix_ir_unmap_constant(node);
  return value;
}

/* A value that follows from weights; NULL without an error: it does not. */
static mix_tensor *weight_of(const mix_ir *ir, int value, int depth) {
  enum { DEEPEST = 16, OPERANDS = 4 };
  const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, value)];
  mix_tensor *operands[OPERANDS];
  if (node->source == MIX_IR_VARIABLE) return mix_variable_true_value(ir->variables[node->index].variable);
  if (node->source == MIX_IR_CONSTANT) return constant_of(ir, node);
  if (node->source || node->body || depth == DEEPEST || node->input_count > OPERANDS ||
      node->output_count != 1 || !mix_op_is_repeatable(node->op))
    return NULL;
  for (int i = 0; i < node->input_count; i++)
    if (!(operands[i] = weight_of(ir, node->inputs[i], depth + 1))) return NULL;
  if (node->op->flags & MIX_OP_READ) return operands[0];
  return mix_apply(node->op, node->attributes, node->input_count, operands);
}

/* One number for each channel, or one for all. NULL without an error: it is neither. */
static mix_tensor *by_channel(const fold *f, int value) {
  const mix_ir *ir = f->e->ir;
  const mix_shape shape = ir->values[value].shape;
  const int64_t size = mix_shape_size(shape);
  if (size != 1 && (size != f->channels || shape.dims[shape.rank - 1] != size)) return NULL;
  mix_tensor *x = weight_of(ir, value, 0);
  return x ? mix_broadcast_to(mix_reshape(x, MIX_SHAPE(size)), MIX_SHAPE(f->channels)) : NULL;
}

/* Takes an addition, subtraction or product into scale and shift. False: it is another node. */
static bool take(fold *f, const mix_ir_node *node, int value) {
  const bool adds = node->op == &mix_op_add || node->op == &mix_op_bias_add,
             subtracts = node->op == &mix_op_subtract, multiplies = node->op == &mix_op_multiply;
  if (node->source || node->input_count != 2 || !(adds || subtracts || multiplies)) return false;
  const bool second = node->inputs[1] == value;
  if (second && (subtracts || node->inputs[0] == value)) return false;
  mix_tensor *x = by_channel(f, node->inputs[!second]);
  if (!x) return false;
  if (multiplies) {
    f->scale = f->scale ? mix_multiply(f->scale, x) : x;
    f->shift = f->shift ? mix_multiply(f->shift, x) : NULL;
    return true;
  }
  if (subtracts) x = mix_negative(x);
  f->shift = f->shift ? mix_add(f->shift, x) : x;
  return true;
}

/* By value: the node that reads it, if it is the only one and nothing else does; else -1. */
static int *readers_of(mix_onnx_emitter *e) {
  const mix_ir *ir = e->ir;
  const int *uses = mix_ir_uses(e->root);
  int *readers = mix_ir_ints(e->root, ir->value_count + 1);
  if (!uses || !readers) return NULL;
  for (int v = 0; v < ir->value_count; v++) readers[v] = -1;
  for (int n = 0; n < ir->node_count; n++)
    for (int i = 0; !ir->nodes[n].dead && i < ir->nodes[n].input_count; i++)
      if (uses[ir->nodes[n].inputs[i]] == 1) readers[ir->nodes[n].inputs[i]] = n;
  return readers;
}

/* The last node that belongs to the fold, `last` at most (-1: as far as it goes); -1: none does. */
static int follow(fold *f, const int *readers, const mix_ir_node *conv, int last) {
  int value = conv->first_output, end = -1;
  while (readers[value] >= 0 && (last < 0 || end != last) &&
         take(f, &f->e->ir->nodes[readers[value]], value)) {
    end = readers[value];
    value = f->e->ir->nodes[end].first_output;
  }
  return end;
}

static fold fold_of(mix_onnx_emitter *e, const mix_ir_node *conv) {
  const mix_shape shape = e->ir->values[conv->first_output].shape;
  return (fold){.e = e, .channels = shape.dims[shape.rank - 1]};
}

int *mix_onnx_find_folds(mix_onnx_emitter *e) {
  const mix_ir *ir = e->ir;
  const int *readers = readers_of(e);
  int *folds = mix_ir_ints(e->root, ir->node_count + 1);
  if (!readers || !folds) return NULL;
  for (int n = 0; n < ir->node_count; n++) folds[n] = -1;
  for (int n = 0; n < ir->node_count && !mix_failed(); n++) {
    const mix_ir_node *conv = &ir->nodes[n];
    if (conv->dead || !is_conv(conv) || ir->values[conv->first_output].dtype != MIX_FLOAT32) continue;
    fold f = fold_of(e, conv);
    const int end = follow(&f, readers, conv, -1);
    if (end >= 0 && weight_of(ir, conv->inputs[1], 0)) folds[end] = n;
  }
  return mix_failed() ? NULL : folds;
}

static const char *put(mix_onnx_emitter *e, const char *what, mix_tensor *value) {
  if (!value || mix_evaluate(1, &value) != MIX_OK) {
    e->failed = true;
    return "";
  }
  const mix_dtype dtype = mix_tensor_dtype(value);
  return mix_onnx_add_tensor(
      e, mix_onnx_new_name(e, what),
      (mix_onnx_initializer){
          .dtype = dtype, .from = dtype, .shape = mix_tensor_shape(value), .value = value});
}

void mix_onnx_emit_folded(mix_onnx_emitter *e, const mix_ir_node *conv, const mix_ir_node *end) {
  fold f = fold_of(e, conv);
  const int *readers = readers_of(e);
  if (!readers || follow(&f, readers, conv, (int)(end - e->ir->nodes)) < 0) {
    e->failed = true;
    return;
  }
  mix_tensor *kernel = weight_of(e->ir, conv->inputs[1], 0);
  const mix_shape shape = mix_tensor_shape(kernel);
  mix_shape scales = MIX_SHAPE(f.channels);
  if (!((const mix_conv_attributes *)conv->attributes)->groups) /* (..., channels, multiplier) */
    scales = MIX_SHAPE(shape.dims[shape.rank - 2], shape.dims[shape.rank - 1]);
  if (f.scale) kernel = mix_multiply(kernel, mix_reshape(f.scale, scales));
  const char *name = put(e, "kernel", kernel), *bias = f.shift ? put(e, "bias", f.shift) : NULL;
  mix_onnx_result(e, end, 0, mix_onnx_conv(e, conv, name, bias));
}
