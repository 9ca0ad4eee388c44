/* Convolutions, their gradients, and the same for each channel by itself (depthwise). A gradient of any of
 * the three is made of the other two. */
#include "ops/convolution.h"
#include "ops/rules.h"
#include <mixtape/convolution.h>
#include <string.h>
#include <strings.h>

static const mix_conv_attributes *conv_of(const mix_node *node) { return node->attributes; }

static bool is_depthwise(const mix_node *node) {
  return node->op == &mix_op_depthwise_conv || node->op == &mix_op_depthwise_conv_input_gradient ||
         node->op == &mix_op_depthwise_conv_kernel_gradient;
}

/* ---- sizes ---- */

/* (size - 1) dilation + 1; false if it overflows. */
static bool effective_size(int64_t size, int64_t dilation, int64_t *effective) {
  return !__builtin_mul_overflow(size - 1, dilation, effective) &&
         !__builtin_add_overflow(*effective, 1, effective);
}

/* The cells of y along an axis of n cells. False with the error recorded. */
static bool output_size(mix_node *node, int axis, int64_t n, int64_t kernel, int64_t *size) {
  const mix_conv_attributes *a = conv_of(node);
  int64_t effective, padded;
  *size = MIX_UNKNOWN;
  if (kernel == 0) return mix_rule_fail(node, "the kernel has no cells along axis %d", axis);
  if (n == MIX_UNKNOWN || kernel == MIX_UNKNOWN) return true;
  if (!effective_size(kernel, a->dilation.dims[axis], &effective) ||
      __builtin_add_overflow(n, a->before.dims[axis], &padded) ||
      __builtin_add_overflow(padded, a->after.dims[axis], &padded))
    return mix_rule_fail(node, "the sizes along spatial axis %d have more cells than can be counted", axis);
  if (padded < effective)
    return mix_rule_fail(
        node,
        "the kernel covers %lld cells along spatial axis %d, more than the input's %lld with "
        "its padding",
        (long long)effective, axis, (long long)padded);
  *size = (padded - effective) / a->strides.dims[axis] + 1;
  return true;
}

static bool all_at_least(mix_shape numbers, int axes, int64_t least) {
  bool good = numbers.rank == axes;
  for (int i = 0; good && i < axes; i++) good = numbers.dims[i] >= least;
  return good;
}

static bool attributes_fit(mix_node *node, int axes) {
  const mix_conv_attributes *a = conv_of(node);
  if (!all_at_least(a->strides, axes, 1) || !all_at_least(a->dilation, axes, 1))
    return mix_rule_fail(node, "expected %d strides and dilations, each at least 1", axes);
  if (!all_at_least(a->before, axes, 0) || !all_at_least(a->after, axes, 0))
    return mix_rule_fail(node, "expected padding before and after each of %d axes, not negative", axes);
  return a->groups > 0 || is_depthwise(node) ||
         mix_rule_fail(node, "got %lld groups; expected at least 1", (long long)a->groups);
}

/* The channels of y. False with the error recorded. */
static bool output_channels(mix_node *node, int64_t x, int64_t kernel_in, int64_t kernel_out, int64_t *y) {
  const int64_t groups = conv_of(node)->groups;
  int64_t in = kernel_in, merged;
  *y = kernel_out;
  if (!groups) {
    if (kernel_in == MIX_UNKNOWN || kernel_out == MIX_UNKNOWN)
      *y = MIX_UNKNOWN;
    else if (__builtin_mul_overflow(kernel_in, kernel_out, y))
      return mix_rule_fail(node, "the channels of the result are more than can be counted");
  } else if (kernel_in != MIX_UNKNOWN && __builtin_mul_overflow(kernel_in, groups, &in)) {
    return mix_rule_fail(node, "the channels of the input are more than can be counted");
  }
  if (!mix_dimension_merge(x, in, &merged))
    return mix_rule_fail(node, "the input has %lld channels and the kernel is for %lld%s", (long long)x,
                         (long long)in, groups > 1 ? ", in all groups" : "");
  if (groups > 1 && kernel_out != MIX_UNKNOWN && kernel_out % groups)
    return mix_rule_fail(node, "%lld groups do not divide %lld filters", (long long)groups,
                         (long long)kernel_out);
  return true;
}

/* The shape of y for x and a kernel. Dimensions may be unknown. */
static bool output_shape(mix_node *node, mix_shape x, mix_shape kernel, mix_shape *y) {
  const int axes = x.rank - 2;
  *y = x;
  for (int i = 0; i < axes; i++)
    if (!output_size(node, i, x.dims[i + 1], kernel.dims[i], &y->dims[i + 1])) return false;
  return output_channels(node, x.dims[axes + 1], kernel.dims[axes], kernel.dims[axes + 1],
                         &y->dims[axes + 1]);
}

/* Operands of one rank, which the op allows. */
static bool ranks_fit(mix_node *node, int first_axes, int last_axes) {
  const int a = mix_input_value(node, 0)->shape.rank, b = mix_input_value(node, 1)->shape.rank;
  if (a == b && a >= first_axes + 2 && a <= last_axes + 2) return attributes_fit(node, a - 2);
  return mix_rule_fail(node,
                       "expected operands (batch, spatial..., channels) and (spatial..., in, out) of %d%s "
                       "spatial axes",
                       last_axes, first_axes < last_axes ? " or 1" : "");
}

static bool same_shape(mix_shape a, mix_shape b) {
  int64_t merged;
  bool same = a.rank == b.rank;
  for (int i = 0; same && i < a.rank; i++) same = mix_dimension_merge(a.dims[i], b.dims[i], &merged);
  return same;
}

/* Sets the gradient's shape, after a check that x and the kernel give dy. */
static bool gradient_shape(mix_node *node, mix_shape x, mix_shape kernel, mix_shape dy, mix_shape result) {
  mix_shape y;
  if (!output_shape(node, x, kernel, &y)) return false;
  if (!same_shape(y, dy))
    return mix_rule_fail(node, "the convolution whose gradient it is has a result of shape %s",
                         MIX_SHAPE_TEXT(y));
  return mix_rule_output(node, 0, result);
}

static bool sizes_fit(mix_node *node, int axes) {
  const mix_shape sizes = conv_of(node)->sizes;
  bool good = sizes.rank == axes;
  for (int i = 0; good && i < axes; i++) good = sizes.dims[i] >= 0 || sizes.dims[i] == MIX_UNKNOWN;
  return good || mix_rule_fail(node, "expected %d sizes of the result's spatial axes", axes);
}

static bool shape_of_conv(mix_node *node, int first_axes, int last_axes) {
  const mix_shape x = mix_input_value(node, 0)->shape, kernel = mix_input_value(node, 1)->shape;
  mix_shape y;
  return ranks_fit(node, first_axes, last_axes) && output_shape(node, x, kernel, &y) &&
         mix_rule_output(node, 0, y);
}

static bool shape_of_input_gradient(mix_node *node, int first_axes, int last_axes) {
  const mix_shape dy = mix_input_value(node, 0)->shape, kernel = mix_input_value(node, 1)->shape;
  const int axes = dy.rank - 2;
  if (!ranks_fit(node, first_axes, last_axes) || !sizes_fit(node, axes)) return false;
  mix_shape x = dy;
  const int64_t groups = conv_of(node)->groups ? conv_of(node)->groups : 1;
  for (int i = 0; i < axes; i++) x.dims[i + 1] = conv_of(node)->sizes.dims[i];
  x.dims[axes + 1] = kernel.dims[axes];
  if (kernel.dims[axes] != MIX_UNKNOWN &&
      __builtin_mul_overflow(kernel.dims[axes], groups, &x.dims[axes + 1]))
    return mix_rule_fail(node, "the channels of the result are more than can be counted");
  return gradient_shape(node, x, kernel, dy, x);
}

static bool shape_of_kernel_gradient(mix_node *node, int first_axes, int last_axes) {
  const mix_shape x = mix_input_value(node, 0)->shape, dy = mix_input_value(node, 1)->shape;
  const int axes = x.rank - 2;
  if (!ranks_fit(node, first_axes, last_axes) || !sizes_fit(node, axes)) return false;
  const int64_t groups = conv_of(node)->groups, in = x.dims[axes + 1], out = dy.dims[axes + 1];
  mix_shape kernel = {.rank = axes + 2};
  for (int i = 0; i < axes; i++) kernel.dims[i] = conv_of(node)->sizes.dims[i];
  if (groups ? in != MIX_UNKNOWN && in % groups : in > 0 && out != MIX_UNKNOWN && out % in)
    return mix_rule_fail(node,
                         groups ? "%lld groups do not divide %lld channels"
                                : "%lld channels do not divide the gradient's %lld",
                         (long long)(groups ? groups : in), (long long)(groups ? in : out));
  const bool known = in != MIX_UNKNOWN && (groups || out != MIX_UNKNOWN);
  kernel.dims[axes] = groups > 1 && known ? in / groups : in;
  kernel.dims[axes + 1] = groups ? out : !known ? MIX_UNKNOWN : in ? out / in : 0;
  return gradient_shape(node, x, kernel, dy, kernel);
}

/* ---- gradients ---- */

typedef struct family {
  const mix_op *forward, *input_gradient, *kernel_gradient;
} family;

static const family families[] = {
    {&mix_op_conv, &mix_op_conv_input_gradient, &mix_op_conv_kernel_gradient},
    {&mix_op_conv3d, &mix_op_conv3d_input_gradient, &mix_op_conv3d_kernel_gradient},
    {&mix_op_depthwise_conv, &mix_op_depthwise_conv_input_gradient, &mix_op_depthwise_conv_kernel_gradient}};

static const family *family_of(const mix_node *node) {
  const family *f = families;
  while (f->forward != node->op && f->input_gradient != node->op && f->kernel_gradient != node->op) f++;
  return f;
}

/* The spatial sizes of operand `input`, whose first spatial axis is `from`. */
static mix_shape spatial(const mix_node *node, int input, int from) {
  mix_shape shape = mix_input_value(node, input)->shape, result = {.rank = shape.rank - 2};
  memcpy(result.dims, shape.dims + from, sizeof(int64_t) * (size_t)result.rank);
  return result;
}

/* One of the three, with the strides and padding of the node. */
static mix_tensor *apply_like(const mix_node *node, const mix_op *op, mix_shape sizes, mix_tensor *a,
                              mix_tensor *b) {
  mix_conv_attributes attributes = *conv_of(node);
  attributes.sizes = sizes;
  return mix_apply(op, &attributes, 2, (mix_tensor *[]){a, b});
}
static mix_tensor *forward(const mix_node *node, mix_tensor *x, mix_tensor *kernel) {
  return apply_like(node, family_of(node)->forward, (mix_shape){.rank = 0}, x, kernel);
}
static mix_tensor *input_gradient(const mix_node *node, mix_tensor *dy, mix_tensor *kernel, mix_shape sizes) {
  return apply_like(node, family_of(node)->input_gradient, sizes, dy, kernel);
}
static mix_tensor *kernel_gradient(const mix_node *node, mix_tensor *x, mix_tensor *dy, mix_shape sizes) {
  return apply_like(node, family_of(node)->kernel_gradient, sizes, x, dy);
}

static void gradient_of_conv(mix_node *node, mix_tensor *const *output_gradients,
                             mix_tensor **input_gradients) {
  mix_tensor *x = mix_node_input(node, 0), *kernel = mix_node_input(node, 1), *dy = output_gradients[0];
  input_gradients[0] = input_gradient(node, dy, kernel, spatial(node, 0, 1));
  input_gradients[1] = kernel_gradient(node, x, dy, spatial(node, 1, 0));
}

static void gradient_of_input_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                       mix_tensor **input_gradients) {
  mix_tensor *dy = mix_node_input(node, 0), *kernel = mix_node_input(node, 1), *dx = output_gradients[0];
  input_gradients[0] = forward(node, dx, kernel);
  input_gradients[1] = kernel_gradient(node, dx, dy, spatial(node, 1, 0));
}

static void gradient_of_kernel_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                        mix_tensor **input_gradients) {
  mix_tensor *x = mix_node_input(node, 0), *dy = mix_node_input(node, 1), *dk = output_gradients[0];
  input_gradients[0] = input_gradient(node, dy, dk, spatial(node, 0, 1));
  input_gradients[1] = forward(node, x, dk);
}

/* ---- records ---- */

/* An example is convolved by itself. */
static bool rows_of_operand_0(const mix_row_query *query) { return !query->batched[1]; }

static double product_of(const mix_shape *shape, int first, int end) {
  double product = 1;
  for (int i = first; i < end; i++) product *= (double)shape->dims[i];
  return product;
}
/* Each element of y sums over the kernel's cells and the channels of a group. */
static double input_gradient_multiplications(const void *attributes,
                                             const mix_shape operands[MIX_CONTRACTED]) {
  const mix_shape *dy = &operands[0], *kernel = &operands[1];
  const bool depthwise = !((const mix_conv_attributes *)attributes)->groups;
  return product_of(dy, 0, dy->rank) * product_of(kernel, 0, kernel->rank - (depthwise ? 2 : 1));
}
static double kernel_gradient_multiplications(const void *attributes,
                                              const mix_shape operands[MIX_CONTRACTED]) {
  const mix_conv_attributes *a = attributes;
  const mix_shape *x = &operands[0], *dy = &operands[1];
  const double channels = a->groups ? (double)x->dims[x->rank - 1] / (double)a->groups : 1;
  return product_of(dy, 0, dy->rank) * product_of(&a->sizes, 0, a->sizes.rank) * channels;
}
/* y for a known x and kernel that fit. */
static mix_shape forward_shape(const mix_conv_attributes *a, mix_shape x, mix_shape kernel) {
  mix_shape y = x;
  for (int i = 0; i < x.rank - 2; i++) {
    const int64_t effective = (kernel.dims[i] - 1) * a->dilation.dims[i] + 1;
    y.dims[i + 1] =
        (x.dims[i + 1] + a->before.dims[i] + a->after.dims[i] - effective) / a->strides.dims[i] + 1;
  }
  y.dims[y.rank - 1] = kernel.dims[y.rank - 1] * (a->groups ? 1 : kernel.dims[y.rank - 2]);
  return y;
}
static double conv_multiplications(const void *attributes, const mix_shape operands[MIX_CONTRACTED]) {
  const mix_shape y = forward_shape(attributes, operands[0], operands[1]);
  return input_gradient_multiplications(attributes, (mix_shape[]){y, operands[1]});
}

static const mix_contraction conv_traits = {.epilogue = true, .multiplications = conv_multiplications},
                             input_gradient_traits = {.epilogue = true,
                                                      .multiplications = input_gradient_multiplications},
                             kernel_gradient_traits = {.epilogue = true,
                                                       .multiplications = kernel_gradient_multiplications};

/* ---- for kernels ---- */

/* The shapes of x, kernel and y; two of them are the operands'. */
typedef struct three_shapes {
  mix_shape x, kernel, y;
} three_shapes;

static mix_shape with_sizes(mix_shape shape, int first, mix_shape sizes) {
  memcpy(shape.dims + first, sizes.dims, sizeof(int64_t) * (size_t)sizes.rank);
  return shape;
}

mix_conv_kind mix_conv_kind_of(const mix_op *op) {
  return op->contraction == &input_gradient_traits    ? MIX_CONV_INPUT_GRADIENT
         : op->contraction == &kernel_gradient_traits ? MIX_CONV_KERNEL_GRADIENT
                                                      : MIX_CONV_FORWARD;
}

static three_shapes shapes_of(const mix_op *op, const mix_conv_attributes *a, const mix_type *operands) {
  const mix_shape first = operands[0].shape, second = operands[1].shape;
  const int last = first.rank - 1;
  three_shapes s = {first, second, first};
  if (mix_conv_kind_of(op) == MIX_CONV_INPUT_GRADIENT) {
    s.x = with_sizes(first, 1, a->sizes);
    s.x.dims[last] = second.dims[last - 1] * (a->groups ? a->groups : 1);
  } else if (mix_conv_kind_of(op) == MIX_CONV_KERNEL_GRADIENT) {
    s.y = second;
    s.kernel = with_sizes(first, 0, a->sizes);
    s.kernel.dims[last - 1] = first.dims[last] / (a->groups ? a->groups : 1);
    s.kernel.dims[last] = s.y.dims[last];
  } else {
    s.y = forward_shape(a, first, second);
  }
  return s;
}

mix_conv_geometry mix_conv_geometry_of(const mix_op *op, const mix_conv_attributes *a,
                                       const mix_type *operands) {
  const three_shapes s = shapes_of(op, a, operands);
  const int axes = s.x.rank - 2, missing = MIX_CONV_AXES - axes;
  mix_conv_geometry g = {.batch = s.x.dims[0],
                         .groups = a->groups ? a->groups : s.x.dims[axes + 1],
                         .in = {1, 1, 1},
                         .kernel = {1, 1, 1},
                         .out = {1, 1, 1},
                         .stride = {1, 1, 1},
                         .dilation = {1, 1, 1}};
  g.channels = g.groups ? s.x.dims[axes + 1] / g.groups : 0;
  g.filters = g.groups ? s.y.dims[axes + 1] / g.groups : 0;
  for (int i = 0; i < axes; i++) {
    const int to = missing + i;
    g.in[to] = s.x.dims[i + 1], g.kernel[to] = s.kernel.dims[i], g.out[to] = s.y.dims[i + 1];
    g.stride[to] = a->strides.dims[i], g.dilation[to] = a->dilation.dims[i], g.before[to] = a->before.dims[i];
  }
  return g;
}

/* ---- the table ---- */

#define NUMBERS(member)                                                                                      \
  { #member, MIX_ATTRIBUTE_NUMBERS, offsetof(mix_conv_attributes, member) }
#define GROUPS                                                                                               \
  { "groups", MIX_ATTRIBUTE_INT64, offsetof(mix_conv_attributes, groups) }
#define WINDOW NUMBERS(strides), NUMBERS(dilation), NUMBERS(before), NUMBERS(after)
static const mix_attribute_row conv_fields[] = {WINDOW, GROUPS, {NULL}},
                               depthwise_fields[] = {WINDOW, {NULL}},
                               conv_gradient_fields[] = {WINDOW, NUMBERS(sizes), GROUPS, {NULL}},
                               depthwise_gradient_fields[] = {WINDOW, NUMBERS(sizes), {NULL}};

#define OP(called, tf, kind, first_axes, last_axes, rows, field_table)                                       \
  static bool infer_##called(mix_node *node) { return shape_of_##kind(node, first_axes, last_axes); }        \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = "T,T->T",                                                     \
                                  .types = "float",                                                          \
                                  .attributes_size = sizeof(mix_conv_attributes),                            \
                                  .infer = infer_##called,                                                   \
                                  .row_independent = rows,                                                   \
                                  .gradient = gradient_of_##kind,                                            \
                                  .fields = field_table,                                                     \
                                  .contraction = &kind##_traits,                                             \
                                  .accumulator = MIX_FLOAT32};
OP(conv, "Conv2D", conv, 1, 2, rows_of_operand_0, conv_fields)
OP(conv_input_gradient, "Conv2DBackpropInput", input_gradient, 1, 2, rows_of_operand_0, conv_gradient_fields)
OP(conv_kernel_gradient, "Conv2DBackpropFilter", kernel_gradient, 1, 2, NULL, conv_gradient_fields)
OP(conv3d, "Conv3D", conv, 3, 3, rows_of_operand_0, conv_fields)
OP(conv3d_input_gradient, "Conv3DBackpropInputV2", input_gradient, 3, 3, rows_of_operand_0,
   conv_gradient_fields)
OP(conv3d_kernel_gradient, "Conv3DBackpropFilterV2", kernel_gradient, 3, 3, NULL, conv_gradient_fields)
OP(depthwise_conv, "DepthwiseConv2dNative", conv, 1, 2, rows_of_operand_0, depthwise_fields)
OP(depthwise_conv_input_gradient, "DepthwiseConv2dNativeBackpropInput", input_gradient, 1, 2,
   rows_of_operand_0, depthwise_gradient_fields)
OP(depthwise_conv_kernel_gradient, "DepthwiseConv2dNativeBackpropFilter", kernel_gradient, 1, 2, NULL,
   depthwise_gradient_fields)

/* ---- public functions ---- */

/* A call: what is not in the attributes. */
typedef struct window {
  const char *call, *padding;
  mix_tensor *x, *kernel;
  mix_shape output_padding;
  mix_conv_attributes attributes;
} window;

/* One number for each axis: none given is `none`, and one is for all axes. */
static bool for_each_axis(const window *w, const char *name, mix_shape given, int axes, int64_t none,
                          mix_shape *numbers) {
  if (!mix_shape_option(given, w->call, name)) return false;
  if (given.rank > 1 && given.rank != axes)
    return mix_call_fail(MIX_VALUE_ERROR, w->call, w->x,
                         "%s has %d numbers; expected one for each of %d axes", name, given.rank,
                         axes) != NULL;
  numbers->rank = axes;
  for (int i = 0; i < axes; i++) numbers->dims[i] = !given.rank ? none : given.dims[given.rank == 1 ? 0 : i];
  for (int i = 0; i < axes; i++)
    if (numbers->dims[i] < none)
      return mix_call_fail(MIX_VALUE_ERROR, w->call, w->x, "%s holds %lld; expected at least %lld", name,
                           (long long)numbers->dims[i], (long long)none) != NULL;
  return true;
}

static bool begin(window *w, const char *call, mix_tensor *x, int last_axes,
                  const mix_conv_options *options) {
  mix_conv_options o;
  if (!mix_operand_ready(call, x) || !mix_options_copy(&o, sizeof o, options, call)) return false;
  mix_tensor *kernel = o.kernel;
  if (!mix_operand_ready(call, kernel)) return false;
  const mix_shape shape = mix_tensor_shape(x), taps = mix_tensor_shape(kernel);
  const int axes = shape.rank - 2;
  *w = (window){.call = call, .x = x, .kernel = kernel, .padding = o.padding ? o.padding : "valid"};
  w->attributes.groups = o.groups ? o.groups : 1;
  if (axes < 1 || axes > last_axes || taps.rank != shape.rank)
    return mix_call_fail(
               MIX_VALUE_ERROR, call, x,
               "expected x (batch, spatial..., channels) with 1 to %d spatial axes, and a kernel of the "
               "same rank; the kernel has rank %d",
               last_axes, taps.rank) != NULL;
  const bool named = !strcasecmp(w->padding, "valid") || !strcasecmp(w->padding, "same") ||
                     (axes == 1 && !strcasecmp(w->padding, "causal"));
  if (!named)
    return mix_call_fail(MIX_VALUE_ERROR, call, x, "padding '%.60s' is not known; expected valid or same%s",
                         w->padding, axes == 1 ? ", or causal" : "") != NULL;
  if ((o.before.rank || o.after.rank) && o.padding)
    return mix_call_fail(MIX_VALUE_ERROR, call, x, "padding '%.60s' and numbers of cells; give one of both",
                         o.padding) != NULL;
  if (o.groups < 0)
    return mix_call_fail(MIX_VALUE_ERROR, call, x, "groups is %lld; expected a positive number",
                         (long long)o.groups) != NULL;
  return for_each_axis(w, "strides", o.strides, axes, 1, &w->attributes.strides) &&
         for_each_axis(w, "dilation", o.dilation, axes, 1, &w->attributes.dilation) &&
         for_each_axis(w, "before", o.before, axes, 0, &w->attributes.before) &&
         for_each_axis(w, "after", o.after, axes, 0, &w->attributes.after) &&
         (!o.output_padding.rank ||
          for_each_axis(w, "output_padding", o.output_padding, axes, 0, &w->output_padding));
}

/* The sizes along an axis are small enough for any sum of them. */
static bool is_countable(const window *w, int axis, int64_t n, int64_t kernel) {
  const mix_conv_attributes *a = &w->attributes;
  const double cells = (double)n * (double)a->strides.dims[axis] +
                       (double)kernel * (double)a->dilation.dims[axis] + (double)a->before.dims[axis] +
                       (double)a->after.dims[axis];
  return cells < 0x1p60 ||
         mix_call_fail(MIX_VALUE_ERROR, w->call, w->x,
                       "the sizes along spatial axis %d have more cells than can be counted", axis) != NULL;
}

/* The padding that a name stands for, of a convolution of n cells. Unknown sizes have none: their result is
 * unknown as well. */
static bool pad_axis(window *w, int axis, int64_t n, int64_t kernel) {
  mix_conv_attributes *a = &w->attributes;
  if (n == MIX_UNKNOWN || kernel == MIX_UNKNOWN || kernel < 1) return true;
  if (!is_countable(w, axis, n, kernel)) return false;
  const int64_t stride = a->strides.dims[axis], effective = (kernel - 1) * a->dilation.dims[axis] + 1;
  if (!strcasecmp(w->padding, "causal")) a->before.dims[axis] = effective - 1;
  if (strcasecmp(w->padding, "same")) return true;
  const int64_t needed = ((n + stride - 1) / stride - 1) * stride + effective,
                total = needed > n ? needed - n : 0;
  a->before.dims[axis] = total / 2;
  a->after.dims[axis] = total - total / 2;
  return true;
}

static bool pad(window *w, mix_shape x, mix_shape kernel) {
  for (int i = 0; i < x.rank - 2; i++)
    if (!pad_axis(w, i, x.dims[i + 1], kernel.dims[i])) return false;
  return true;
}

static mix_tensor *apply(const window *w, const mix_op *op) {
  return mix_apply(op, &w->attributes, 2, (mix_tensor *[]){w->x, w->kernel});
}

mix_tensor *mix_conv_with(mix_tensor *x, const mix_conv_options *options) {
  window w;
  if (!begin(&w, "conv", x, 3, options)) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  if (!pad(&w, shape, mix_tensor_shape(w.kernel))) return NULL;
  return apply(&w, shape.rank == 5 ? &mix_op_conv3d : &mix_op_conv);
}

mix_tensor *mix_depthwise_conv_with(mix_tensor *x, const mix_conv_options *options) {
  window w;
  if (!begin(&w, "depthwise_conv", x, 2, options)) return NULL;
  if (!pad(&w, mix_tensor_shape(x), mix_tensor_shape(w.kernel))) return NULL;
  w.attributes.groups = 0;
  return apply(&w, &mix_op_depthwise_conv);
}

/* The cells of the result along an axis (docs/spec/keras.md, 2.2). */
static bool transposed_size(window *w, int axis, int64_t n, int64_t kernel, int64_t *size) {
  const mix_conv_attributes *a = &w->attributes;
  const int64_t stride = a->strides.dims[axis];
  *size = MIX_UNKNOWN;
  if (n == MIX_UNKNOWN || kernel == MIX_UNKNOWN || kernel < 1) return true;
  if (!is_countable(w, axis, n, kernel)) return false;
  const int64_t effective = (kernel - 1) * a->dilation.dims[axis] + 1,
                padding = a->before.dims[axis] + a->after.dims[axis];
  const bool same = !strcasecmp(w->padding, "same"), given = w->output_padding.rank > 0;
  if (given && w->output_padding.dims[axis] >= stride)
    return mix_call_fail(MIX_VALUE_ERROR, w->call, w->x,
                         "output_padding %lld along spatial axis %d is not less than the stride %lld",
                         (long long)w->output_padding.dims[axis], axis, (long long)stride) != NULL;
  if (!given)
    *size = same ? n * stride : (n - 1) * stride + (effective > stride ? effective : stride) - padding;
  else
    *size = (n - 1) * stride + (same ? effective % 2 : effective - padding) + w->output_padding.dims[axis];
  return *size > 0 || mix_call_fail(MIX_VALUE_ERROR, w->call, w->x,
                                    "the result would have %lld cells along spatial axis %d",
                                    (long long)*size, axis) != NULL;
}

mix_tensor *mix_conv_transpose_with(mix_tensor *x, const mix_conv_options *options) {
  window w;
  if (!begin(&w, "conv_transpose", x, 3, options)) return NULL;
  const mix_shape shape = mix_tensor_shape(x), taps = mix_tensor_shape(w.kernel);
  if (!strcasecmp(w.padding, "causal"))
    return mix_call_fail(MIX_VALUE_ERROR, w.call, x, "padding 'causal'; expected valid or same");
  mix_shape result = shape;
  w.attributes.sizes.rank = shape.rank - 2;
  for (int i = 0; i < shape.rank - 2; i++) {
    if (!transposed_size(&w, i, shape.dims[i + 1], taps.dims[i], &result.dims[i + 1])) return NULL;
    w.attributes.sizes.dims[i] = result.dims[i + 1];
  }
  if (!pad(&w, result, taps)) return NULL;
  return apply(&w, shape.rank == 5 ? &mix_op_conv3d_input_gradient : &mix_op_conv_input_gradient);
}

mix_conv_options mix_conv_defaults(void) { return (mix_conv_options){.size = sizeof(mix_conv_options)}; }
