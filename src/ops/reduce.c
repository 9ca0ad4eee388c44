/* Reductions over axes, argmax and argmin, all_finite, and the sum that reverses broadcasting. */
#include "ops/rules.h"

static const mix_reduce_attributes *reduction(const mix_node *node) { return node->attributes; }

static bool reduce_infer(mix_node *node) {
  const mix_reduce_attributes *attributes = reduction(node);
  mix_shape x = mix_input_value(node, 0)->shape, y = {.rank = 0};
  int next = 0;
  for (int axis = 0; axis < x.rank; axis++) {
    bool reduced = next < attributes->axis_count && attributes->axes[next] == axis;
    next += reduced;
    if (!reduced || attributes->keep_dims) y.dims[y.rank++] = reduced ? 1 : x.dims[axis];
  }
  if (next != attributes->axis_count || (!next && x.rank))
    return mix_rule_fail(node, "expected its axes in ascending order, each once, and at least one");
  return mix_rule_output(node, 0, y);
}

static bool reduce_rows(const mix_row_query *query) {
  const mix_reduce_attributes *attributes = query->attributes;
  return attributes->axis_count > 0 && attributes->axes[0] > 0;
}

static const mix_attribute_row reduce_fields[] = {
    {"axes", MIX_ATTRIBUTE_AXES, offsetof(mix_reduce_attributes, axis_count)},
    {"keep_dims", MIX_ATTRIBUTE_BOOL, offsetof(mix_reduce_attributes, keep_dims)},
    {NULL}};

static mix_tensor *reduce(const mix_op *op, mix_tensor *x, mix_axes axes, bool keep_dims) {
  mix_reduce_attributes attributes = {.keep_dims = keep_dims};
  if (!mix_operand_ready(op->name, x) || !mix_axes_normal(op->name, x, axes, &attributes)) return NULL;
  return mix_apply(op, &attributes, 1, &x);
}

/* ---- gradients ---- */

/* Reshapes a result or its gradient to keep the reduced axes with size 1, so that it broadcasts against x. */
static mix_tensor *keep_reduced_axes(mix_node *node, mix_tensor *y) {
  mix_shape shape = mix_input_value(node, 0)->shape;
  for (int i = 0; i < reduction(node)->axis_count; i++) shape.dims[reduction(node)->axes[i]] = 1;
  return mix_reshape(y, shape);
}

static mix_axes axes_of(const mix_node *node) {
  mix_axes axes = {.count = reduction(node)->axis_count};
  for (int i = 0; i < axes.count; i++) axes.axis[i] = reduction(node)->axes[i];
  return axes;
}

static void reduce_sum_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                mix_tensor **input_gradients) {
  input_gradients[0] =
      mix_broadcast_to(keep_reduced_axes(node, output_gradients[0]), mix_input_value(node, 0)->shape);
}

/* dy / count. A count above float16's maximum 65504, where TensorFlow's quotient would be 0, is applied as
 * a product with its reciprocal. */
static void reduce_mean_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                 mix_tensor **input_gradients) {
  double count = 1;
  for (int i = 0; i < reduction(node)->axis_count; i++)
    count *= (double)mix_input_value(node, 0)->shape.dims[reduction(node)->axes[i]];
  reduce_sum_gradient(node, output_gradients, input_gradients);
  mix_tensor *sum_gradient = input_gradients[0];
  bool beyond = mix_tensor_dtype(sum_gradient) == MIX_FLOAT16 && count > 65504;
  input_gradients[0] = beyond ? mix_times(sum_gradient, 1 / count) : mix_over(sum_gradient, count);
}

/* The product of all other elements. Without zeros: prod / x. With one zero: the product of the others at
 * the zero, and 0 elsewhere. With more zeros: 0. */
static void reduce_prod_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                 mix_tensor **input_gradients) {
  mix_tensor *x = mix_node_input(node, 0), *dy = keep_reduced_axes(node, output_gradients[0]);
  mix_tensor *zero = mix_scalar_like(x, 0), *one = mix_scalar_like(x, 1);
  mix_tensor *is_zero = mix_equal(x, zero), *others = mix_select(is_zero, one, x);
  mix_tensor *zeros =
      keep_reduced_axes(node, mix_reduce_sum(mix_cast(is_zero, mix_tensor_dtype(x)), axes_of(node), false));
  mix_tensor *product = keep_reduced_axes(node, mix_reduce_prod(others, axes_of(node), false));
  mix_tensor *at_zero = mix_select(mix_equal(zeros, one), product, zero);
  mix_tensor *elsewhere = mix_select(mix_equal(zeros, zero), mix_divide(product, others), zero);
  input_gradients[0] = mix_multiply(dy, mix_select(is_zero, at_zero, elsewhere));
}

/* Split equally among the elements that equal the result. */
static void reduce_extreme_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                    mix_tensor **input_gradients) {
  mix_tensor *x = mix_node_input(node, 0), *y = keep_reduced_axes(node, mix_tensor_of(node, 0)),
             *dy = keep_reduced_axes(node, output_gradients[0]);
  mix_tensor *chosen = mix_cast(mix_equal(y, x), mix_tensor_dtype(x));
  mix_tensor *count = keep_reduced_axes(node, mix_reduce_sum(chosen, axes_of(node), false));
  input_gradients[0] = mix_multiply(mix_divide(chosen, count), dy);
}

/* name, TensorFlow's name, signature, dtypes, gradient, what a program can end in */
#define REDUCTIONS(X)                                                                                        \
  X(reduce_sum, "Sum", "T->T", "number", reduce_sum_gradient, MIX_REDUCE_TO_SUM)                             \
  X(reduce_mean, "Mean", "T->T", "float", reduce_mean_gradient, MIX_REDUCE_TO_MEAN)                          \
  X(reduce_prod, "Prod", "T->T", "number", reduce_prod_gradient, MIX_REDUCE_NOTHING)                         \
  X(reduce_max, "Max", "T->T", "number", reduce_extreme_gradient, MIX_REDUCE_NOTHING)                        \
  X(reduce_min, "Min", "T->T", "number", reduce_extreme_gradient, MIX_REDUCE_NOTHING)                        \
  X(reduce_all, "All", "b->b", "", NULL, MIX_REDUCE_NOTHING)                                                 \
  X(reduce_any, "Any", "b->b", "", NULL, MIX_REDUCE_NOTHING)

#define OP(called, tf, letters, dtypes, rule, reduces)                                                       \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = letters,                                                      \
                                  .types = dtypes,                                                           \
                                  .attributes_size = sizeof(mix_reduce_attributes),                          \
                                  .infer = reduce_infer,                                                     \
                                  .row_independent = reduce_rows,                                            \
                                  .gradient = rule,                                                          \
                                  .fields = reduce_fields,                                                   \
                                  .reduction = reduces,                                                      \
                                  .axes = &reduce_fields[0]};                                                \
  mix_tensor *mix_##called(mix_tensor *x, mix_axes axes, bool keep_dims) {                                   \
    return reduce(&mix_op_##called, x, axes, keep_dims);                                                     \
  }
REDUCTIONS(OP)
#undef OP

/* ---- argmax and argmin ---- */

static bool arg_infer(mix_node *node) {
  int dropped = ((const mix_axis_attributes *)node->attributes)->axis;
  mix_shape x = mix_input_value(node, 0)->shape, y = {.rank = 0};
  if (!mix_rule_axis(node, dropped)) return false;
  if (x.dims[dropped] == 0) return mix_rule_fail(node, "axis %d has no element", dropped);
  for (int axis = 0; axis < x.rank; axis++)
    if (axis != dropped) y.dims[y.rank++] = x.dims[axis];
  return mix_rule_output(node, 0, y);
}

static bool arg_rows(const mix_row_query *query) {
  return ((const mix_axis_attributes *)query->attributes)->axis > 0;
}

static mix_tensor *arg(const mix_op *op, mix_tensor *x, int axis) {
  if (!mix_operand_ready(op->name, x)) return NULL;
  mix_axis_attributes attributes = {mix_call_axis(op->name, x, axis, 0)};
  return attributes.axis < 0 ? NULL : mix_apply(op, &attributes, 1, &x);
}

#define OP(called, tf)                                                                                       \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = "T->l",                                                       \
                                  .types = "number",                                                         \
                                  .attributes_size = sizeof(mix_axis_attributes),                            \
                                  .infer = arg_infer,                                                        \
                                  .row_independent = arg_rows,                                               \
                                  .fields = mix_axis_fields};                                                \
  mix_tensor *mix_##called(mix_tensor *x, int axis) { return arg(&mix_op_##called, x, axis); }
OP(argmax, "ArgMax")
OP(argmin, "ArgMin")

/* ---- all_finite ---- */

static bool scalar_infer(mix_node *node) { return mix_rule_output(node, 0, (mix_shape){.rank = 0}); }

/* TensorFlow's form is All(IsFinite(x)). The rewrite leaves this op unchanged. */
const mix_op mix_op_all_finite = {.name = "all_finite",
                                  .signature = "T->b",
                                  .types = "float",
                                  .flags = MIX_OP_KEEP,
                                  .infer = scalar_infer,
                                  .reduction = MIX_REDUCE_ALL_FINITE};

mix_tensor *mix_all_finite(mix_tensor *x) { return mix_apply1(&mix_op_all_finite, x); }

/* ---- the gradient of broadcasting ---- */

mix_tensor *mix_reduce_to_shape(mix_tensor *x, mix_shape shape) {
  if (!mix_operand_ready("reduce_to_shape", x)) return NULL;
  mix_shape from = mix_tensor_shape(x);
  if (mix_shape_equal(from, shape)) return x;
  mix_axes axes = {.count = 0};
  int more = from.rank - shape.rank;
  for (int axis = 0; axis < from.rank; axis++) {
    bool broadcast = axis < more || shape.dims[axis - more] == 1;
    if (broadcast && from.dims[axis] != 1) axes.axis[axes.count++] = axis;
  }
  if (axes.count > 0) x = mix_reduce_sum(x, axes, false);
  return mix_reshape(x, shape);
}
