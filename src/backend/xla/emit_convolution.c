/* Convolutions and their two gradients, which are convolutions too: of dy spread by the strides with the
 * reversed kernel, and of x with dy as its kernel, where batch and channels change places. */
#include "backend/xla/emit_inside.h"
#include "backend/xla/xla.h"

#include "ops/convolution.h"
#include <string.h>

/* Of the spatial axes of an operation, and the places of batch, channels and spatial axes in x, kernel, y. */
typedef struct window {
  int axes;
  int64_t stride[MIX_CONV_AXES], low[MIX_CONV_AXES], high[MIX_CONV_AXES], lhs_dilation[MIX_CONV_AXES],
      dilation[MIX_CONV_AXES];
  const char *lhs, *rhs, *out; /* "b.f": . stands for the spatial axes */
  int64_t feature_groups, batch_groups;
} window;

static void put_layout(mix_hlo_writer *w, const char *layout, int axes) {
  mix_text_put(&w->text, "[");
  for (const char *c = layout; *c; c++) {
    if (c != layout) mix_text_put(&w->text, ", ");
    if (*c != '.') mix_text_put(&w->text, "%c", *c);
    for (int d = 0; d < axes && *c == '.'; d++) mix_text_put(&w->text, "%s%d", d ? ", " : "", d);
  }
  mix_text_put(&w->text, "]");
}

static mix_hlo convolution(mix_emitter *e, mix_hlo x, mix_hlo kernel, const window *v, mix_shape shape) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo result = mix_hlo_new(w, mix_type_of(mix_emit_product_dtype(e, e->node, x.dtype), shape));
  const char *precision = mix_emit_precision(e, x.dtype);
  mix_hlo_line(w);
  mix_text_put(&w->text, "%%%d = stablehlo.convolution(", result.number);
  mix_hlo_put(w, x);
  mix_text_put(&w->text, ", ");
  mix_hlo_put(w, kernel);
  mix_text_put(&w->text, ") dim_numbers = ");
  put_layout(w, v->lhs, v->axes);
  mix_text_put(&w->text, "x");
  put_layout(w, v->rhs, v->axes);
  mix_text_put(&w->text, "->");
  put_layout(w, v->out, v->axes);
  mix_hlo_put_numbers(w, ", window = {stride = ", v->axes, v->stride);
  mix_text_put(&w->text, ", pad = [");
  for (int d = 0; d < v->axes; d++)
    mix_hlo_put_numbers(w, d ? ", " : "", 2, (const int64_t[]){v->low[d], v->high[d]});
  mix_hlo_put_numbers(w, "], lhs_dilate = ", v->axes, v->lhs_dilation);
  mix_hlo_put_numbers(w, ", rhs_dilate = ", v->axes, v->dilation);
  mix_text_put(&w->text, "} {batch_group_count = %lld : i64, feature_group_count = %lld : i64",
               (long long)v->batch_groups, (long long)v->feature_groups);
  if (precision)
    mix_text_put(&w->text, ", precision_config = [#stablehlo<precision %s>, #stablehlo<precision %s>]",
                 precision, precision);
  mix_text_put(&w->text, "} : (");
  mix_hlo_put_type(w, x.type);
  mix_text_put(&w->text, ", ");
  mix_hlo_put_type(w, kernel.type);
  mix_text_put(&w->text, ") -> ");
  mix_hlo_put_type(w, result.type);
  mix_text_put(&w->text, "\n");
  return result;
}

/* The float32 result of 16-bit operands, rounded. For NVIDIA's GPUs XLA would let cuDNN add a residual or a
 * bias before that, which is for jit_compile alone; for others it keeps the rounding by itself. */
static mix_hlo rounded(mix_emitter *e, mix_hlo y, mix_dtype dtype) {
  const mix_pjrt *plugin = mix_xla_plugin();
  if (y.dtype == dtype || (plugin && strcmp(plugin->platform, "cuda") != 0)) return y;
  return mix_hlo_unary(&e->w, "optimization_barrier", mix_hlo_convert(&e->w, y, dtype));
}

/* (spatial..., rows, columns) of a kernel or its gradient. */
static mix_shape kernel_shape(const mix_conv_geometry *g, int axes, int64_t rows, int64_t columns) {
  mix_shape shape = {.rank = axes + 2};
  for (int d = 0; d < axes; d++) shape.dims[d] = g->kernel[MIX_CONV_AXES - axes + d];
  shape.dims[axes] = rows;
  shape.dims[axes + 1] = columns;
  return shape;
}

/* The kernel (..., channels, groups filters) reversed, as (..., filters, groups channels). */
static mix_hlo reversed_transposed_kernel(mix_emitter *e, mix_hlo kernel, const mix_conv_geometry *g,
                                          int axes) {
  mix_hlo_writer *w = &e->w;
  mix_shape split = kernel_shape(g, axes, g->channels, g->groups);
  int spatial[MIX_CONV_AXES], permutation[MIX_MAX_RANK];
  split.dims[split.rank++] = g->filters;
  for (int d = 0; d < axes; d++) spatial[d] = permutation[d] = d;
  permutation[axes] = axes + 2;
  permutation[axes + 1] = axes + 1;
  permutation[axes + 2] = axes;
  kernel = mix_hlo_reshape(w, mix_hlo_reverse(w, kernel, axes, spatial), split);
  return mix_hlo_reshape(w, mix_hlo_transpose(w, kernel, permutation),
                         kernel_shape(g, axes, g->filters, g->groups * g->channels));
}

/* With padding after the last element such that there are `outputs` results. */
static void fit(window *v, int d, int64_t size, int64_t kernel, int64_t outputs) {
  const int64_t dilated = size ? (size - 1) * v->lhs_dilation[d] + 1 : 0,
                reach = kernel ? (kernel - 1) * v->dilation[d] + 1 : 0;
  v->high[d] = (outputs - 1) * v->stride[d] + reach - dilated - v->low[d];
}

void mix_emit_conv(mix_emitter *e, const mix_ir_node *node) {
  const mix_type operands[] = {mix_emit_operand(e, node, 0).type, mix_emit_operand(e, node, 1).type};
  const mix_conv_geometry g = mix_conv_geometry_of(node->op, node->attributes, operands);
  const mix_conv_kind kind = mix_conv_kind_of(node->op);
  const mix_shape result = mix_emit_type(e, node, 0).shape;
  const int axes = result.rank - 2;
  mix_hlo x = mix_emit_operand(e, node, 0), kernel = mix_emit_operand(e, node, 1);
  mix_shape shape = result;
  window v = {.axes = axes, .feature_groups = g.groups, .batch_groups = 1};
  v.lhs = v.out = "b.f";
  v.rhs = ".io";
  for (int d = 0; d < axes; d++) {
    const int at = MIX_CONV_AXES - axes + d;
    const int64_t reach = (g.kernel[at] - 1) * g.dilation[at];
    v.stride[d] = kind == MIX_CONV_FORWARD           ? g.stride[at]
                  : kind == MIX_CONV_KERNEL_GRADIENT ? g.dilation[at]
                                                     : 1;
    v.lhs_dilation[d] = kind == MIX_CONV_INPUT_GRADIENT ? g.stride[at] : 1;
    v.dilation[d] = kind == MIX_CONV_KERNEL_GRADIENT ? g.stride[at] : g.dilation[at];
    v.low[d] = kind == MIX_CONV_INPUT_GRADIENT ? reach - g.before[at] : g.before[at];
    if (kind == MIX_CONV_FORWARD) fit(&v, d, g.in[at], g.kernel[at], g.out[at]);
    if (kind == MIX_CONV_INPUT_GRADIENT) fit(&v, d, g.out[at], g.kernel[at], g.in[at]);
    if (kind == MIX_CONV_KERNEL_GRADIENT) fit(&v, d, g.in[at], g.out[at], g.kernel[at]);
  }
  if (!mix_shape_size(x.shape) || !mix_shape_size(kernel.shape)) {
    mix_emit_result(e, node, 0, mix_hlo_number(&e->w, mix_emit_type(e, node, 0), 0));
    return;
  }
  if (kind != MIX_CONV_KERNEL_GRADIENT) /* a depthwise one has (..., channels, multiplier) */
    kernel = mix_hlo_reshape(&e->w, kernel, kernel_shape(&g, axes, g.channels, g.groups * g.filters));
  if (kind == MIX_CONV_INPUT_GRADIENT) kernel = reversed_transposed_kernel(e, kernel, &g, axes);
  if (kind == MIX_CONV_KERNEL_GRADIENT) {
    v.lhs = "f.b";
    v.rhs = "i.o";
    v.out = ".bf";
    v.feature_groups = 1;
    v.batch_groups = g.groups;
    shape = kernel_shape(&g, axes, g.channels, g.groups * g.filters);
  }
  mix_emit_result(e, node, 0, rounded(e, convolution(e, x, kernel, &v, shape), x.dtype));
}
