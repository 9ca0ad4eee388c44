/* Convolutions, pooling and resizing. ONNX has the channels before the spatial axes; what reads or writes
 * them last has a Transpose, and runtimes cancel those that follow one another. */
#include "onnx/emit.h"

#include "base/alloc.h"
#include "ops/convolution.h"
#include "ops/resize.h"
#include "tensor/shape.h"

static const char *channels_first(mix_onnx_emitter *e, const char *x, int rank) {
  int permutation[MIX_MAX_RANK] = {0, rank - 1};
  for (int d = 2; d < rank; d++) permutation[d] = d - 1;
  return mix_onnx_transpose(e, x, rank, permutation);
}

static const char *channels_last(mix_onnx_emitter *e, const char *x, int rank) {
  int permutation[MIX_MAX_RANK] = {0};
  for (int d = 1; d < rank - 1; d++) permutation[d] = d + 1;
  permutation[rank - 1] = 1;
  return mix_onnx_transpose(e, x, rank, permutation);
}

/* (spatial..., channels of a group, filters) as (filters, channels of a group, spatial...). */
static const char *kernel_of(mix_onnx_emitter *e, const mix_ir_node *node, const char *kernel) {
  const mix_conv_attributes *a = node->attributes;
  const mix_shape shape = mix_onnx_operand_type(e, node, 1).shape;
  const int axes = shape.rank - 2;
  int permutation[MIX_MAX_RANK] = {axes + 1, axes};
  if (!a->groups) {
    mix_onnx_size sizes[MIX_MAX_RANK];
    for (int d = 0; d < axes; d++) sizes[d] = mix_onnx_known(shape.dims[d]);
    sizes[axes] = mix_onnx_known(1);
    sizes[axes + 1] = mix_onnx_known(shape.dims[axes] * shape.dims[axes + 1]);
    kernel = mix_onnx_reshape(e, kernel, shape.rank, sizes);
  }
  for (int d = 0; d < axes; d++) permutation[d + 2] = d;
  return mix_onnx_transpose(e, kernel, shape.rank, permutation);
}

static void put_window(mix_onnx_emitter *e, const mix_conv_attributes *a, const mix_shape *kernel, int axes,
                       int64_t groups) {
  mix_onnx_ints(e, "kernel_shape", axes, kernel->dims);
  mix_onnx_ints(e, "strides", axes, a->strides.dims);
  mix_onnx_ints(e, "dilations", axes, a->dilation.dims);
  mix_onnx_int(e, "group", groups);
}

static bool knows_sizes(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_shape x = mix_onnx_operand_type(e, node, 0).shape;
  for (int d = 1; d < x.rank; d++)
    if (mix_onnx_axis(e, node->inputs[0], d).factor) {
      mix_onnx_refuse(e, node, "an axis beside the first depends on the batch");
      return false;
    }
  return true;
}

const char *mix_onnx_conv(mix_onnx_emitter *e, const mix_ir_node *node, const char *kernel,
                          const char *bias) {
  const mix_conv_attributes *a = node->attributes;
  const mix_shape x = mix_onnx_operand_type(e, node, 0).shape,
                  shape = mix_onnx_operand_type(e, node, 1).shape;
  const int axes = x.rank - 2;
  int64_t pads[2 * MIX_CONV_AXES];
  if (!knows_sizes(e, node)) return "";
  for (int d = 0; d < axes; d++) {
    pads[d] = a->before.dims[d];
    pads[axes + d] = a->after.dims[d];
  }
  const char *operands[] = {channels_first(e, mix_onnx_operand(e, node, 0), x.rank),
                            kernel_of(e, node, kernel), bias};
  mix_onnx_ints(e, "pads", 2 * axes, pads);
  put_window(e, a, &shape, axes, a->groups ? a->groups : x.dims[x.rank - 1]);
  return channels_last(e, mix_onnx_node(e, "Conv", bias ? 3 : 2, operands), x.rank);
}

void mix_onnx_emit_conv(mix_onnx_emitter *e, const mix_ir_node *node) {
  mix_onnx_result(e, node, 0, mix_onnx_conv(e, node, mix_onnx_operand(e, node, 1), NULL));
}

/* The gradient of the input. Rows that no cell of the kernel reaches are added at the end. */
void mix_onnx_emit_conv_transpose(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_conv_attributes *a = node->attributes;
  const mix_shape dy = mix_onnx_operand_type(e, node, 0).shape,
                  kernel = mix_onnx_operand_type(e, node, 1).shape, dx = mix_onnx_type(e, node, 0).shape;
  const int axes = dy.rank - 2;
  int64_t pads[2 * MIX_CONV_AXES], more[2 * MIX_MAX_RANK] = {0};
  bool lacks = false;
  if (!knows_sizes(e, node)) return;
  for (int d = 0; d < axes; d++) {
    const int64_t reach = (kernel.dims[d] - 1) * a->dilation.dims[d] + 1,
                  whole = (dy.dims[d + 1] - 1) * a->strides.dims[d] + reach,
                  after = whole - a->before.dims[d] - dx.dims[d + 1];
    pads[d] = a->before.dims[d];
    pads[axes + d] = after > 0 ? after : 0;
    more[dy.rank + 2 + d] = after < 0 ? -after : 0;
    lacks |= after < 0;
  }
  const char *from = channels_first(e, mix_onnx_operand(e, node, 0), dy.rank),
             *by = kernel_of(e, node, mix_onnx_operand(e, node, 1));
  mix_onnx_ints(e, "pads", 2 * axes, pads);
  put_window(e, a, &kernel, axes, a->groups ? a->groups : dx.dims[dx.rank - 1]);
  const char *y = mix_onnx_node2(e, "ConvTranspose", from, by);
  if (lacks) y = mix_onnx_node2(e, "Pad", y, mix_onnx_int64s(e, 2 * dy.rank, more));
  mix_onnx_result(e, node, 0, channels_last(e, y, dy.rank));
}

/* ---- pooling ---- */

static void pool(mix_onnx_emitter *e, const mix_ir_node *node, const char *op) {
  const mix_pool_attributes *a = node->attributes;
  const int rank = mix_onnx_operand_type(e, node, 0).shape.rank, axes = rank - 2;
  int64_t pads[2 * MIX_CONV_AXES];
  if (!knows_sizes(e, node)) return;
  for (int d = 0; d < axes; d++) {
    pads[d] = a->before.dims[d];
    pads[axes + d] = a->after.dims[d];
  }
  const char *x = channels_first(e, mix_onnx_operand(e, node, 0), rank);
  mix_onnx_ints(e, "kernel_shape", axes, a->size.dims);
  mix_onnx_ints(e, "strides", axes, a->strides.dims);
  mix_onnx_ints(e, "pads", 2 * axes, pads);
  mix_onnx_result(e, node, 0, channels_last(e, mix_onnx_node1(e, op, x), rank));
}
void mix_onnx_emit_max_pool(mix_onnx_emitter *e, const mix_ir_node *node) { pool(e, node, "MaxPool"); }
void mix_onnx_emit_avg_pool(mix_onnx_emitter *e, const mix_ir_node *node) { pool(e, node, "AveragePool"); }

/* ---- resizing: a product with the weights of the interpolation, or rows taken where each has one ---- */

static bool takes_rows(const mix_resize_weights *w, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (w->count[i] != 1 || w->weights[i * w->span] != 1) return false;
  return true;
}

static const char *taken(mix_onnx_emitter *e, const mix_resize_weights *w, const mix_resize_attributes *a,
                         const char *x) {
  mix_onnx_int(e, "axis", a->axis);
  return mix_onnx_node2(e, "Gather", x, mix_onnx_int64s(e, (int)a->to, w->first));
}

static const char *product(mix_onnx_emitter *e, const mix_resize_weights *w, const mix_resize_attributes *a,
                           const char *x, mix_type type) {
  const mix_shape shape = MIX_SHAPE(a->from, a->to);
  const int rank = type.shape.rank;
  int permutation[MIX_MAX_RANK];
  float *data = mix_calloc((size_t)mix_shape_size(shape) + 1, sizeof *data);
  if (!data) {
    e->failed = true;
    return "";
  }
  for (int64_t i = 0; i < a->to; i++)
    for (int64_t k = 0; k < w->count[i]; k++)
      data[(w->first[i] + k) * a->to + i] = (float)w->weights[i * w->span + k];
  const char *weights = mix_onnx_constant(e, MIX_FLOAT32, shape, data);
  mix_free(data);
  for (int d = 0; d < rank; d++) permutation[d] = d;
  permutation[a->axis] = rank - 1;
  permutation[rank - 1] = a->axis;
  x = mix_onnx_transpose(e, mix_onnx_cast(e, x, type.dtype, MIX_FLOAT32), rank, permutation);
  x = mix_onnx_transpose(e, mix_onnx_node2(e, "MatMul", x, weights), rank, permutation);
  return mix_onnx_cast(e, x, MIX_FLOAT32, type.dtype);
}

void mix_onnx_emit_resize(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_resize_attributes *a = node->attributes;
  const mix_type type = mix_onnx_operand_type(e, node, 0);
  if (a->transposed) {
    mix_onnx_refuse(e, node, "a gradient");
    return;
  }
  mix_resize_weights *w = mix_resize_weights_new(a);
  if (!w) {
    e->failed = true;
    return;
  }
  const char *x = mix_onnx_operand(e, node, 0);
  mix_onnx_result(e, node, 0, takes_rows(w, a->to) ? taken(e, w, a, x) : product(e, w, a, x, type));
  mix_free(w);
}
