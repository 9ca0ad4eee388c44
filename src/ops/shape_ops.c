/* Operations that change only the shape: reshape (with expand_dims and squeeze), transpose, broadcast_to.
 * The public calls resolve the attributes; they have unknown dimensions only if the operand is symbolic. */
#include "ops/rules.h"

static const mix_shape *target(const mix_node *node) {
  return &((const mix_shape_attributes *)node->attributes)->shape;
}

static const mix_attribute_row shape_fields[] = {
    {"shape", MIX_ATTRIBUTE_SHAPE, offsetof(mix_shape_attributes, shape)}, {NULL}};

static bool shape_argument(const char *call, const mix_tensor *x, mix_shape shape) {
  bool good = shape.rank >= 0 && shape.rank <= MIX_MAX_RANK;
  for (int i = 0; good && i < shape.rank; i++) good = shape.dims[i] >= MIX_UNKNOWN;
  if (!good)
    mix_call_fail(MIX_VALUE_ERROR, call, x, "the shape asked for has a negative dimension or more than %d",
                  MIX_MAX_RANK);
  return good;
}

/* ---- reshape ---- */

static bool reshape_infer(mix_node *node) {
  mix_shape x = mix_input_value(node, 0)->shape, y = *target(node);
  if (mix_shape_is_known(x) && mix_shape_is_known(y) && mix_shape_size(x) != mix_shape_size(y))
    return mix_rule_fail(node, "%lld elements do not fill the shape %s", (long long)mix_shape_size(x),
                         MIX_SHAPE_TEXT(y));
  return mix_rule_output(node, 0, y);
}

static void reshape_gradient(mix_node *node, mix_tensor *const *output_gradients,
                             mix_tensor **input_gradients) {
  input_gradients[0] = mix_reshape(output_gradients[0], mix_input_value(node, 0)->shape);
}

const mix_op mix_op_reshape = {.name = "reshape",
                               .tf_name = "Reshape",
                               .signature = "T->T",
                               .types = "any",
                               .flags = MIX_OP_VIEW,
                               .attributes_size = sizeof(mix_shape_attributes),
                               .infer = reshape_infer,
                               .row_independent = mix_rows_kept,
                               .gradient = reshape_gradient,
                               .fields = shape_fields};

static mix_tensor *reshape_to(mix_tensor *x, mix_shape shape) {
  if (mix_shape_is_known(shape) && mix_shape_equal(mix_tensor_shape(x), shape)) return x;
  return mix_apply(&mix_op_reshape, &(mix_shape_attributes){.shape = shape}, 1, &x);
}

mix_tensor *mix_reshape(mix_tensor *x, mix_shape shape) {
  if (!mix_operand_ready("reshape", x) || !shape_argument("reshape", x, shape)) return NULL;
  mix_shape from = mix_tensor_shape(x);
  int open = -1;
  int64_t rest = 1;
  for (int i = 0; i < shape.rank; i++) {
    if (shape.dims[i] != MIX_UNKNOWN) {
      if (__builtin_mul_overflow(rest, shape.dims[i], &rest))
        return mix_call_fail(MIX_VALUE_ERROR, "reshape", x,
                             "the shape %s asked for has more elements than can be counted",
                             MIX_SHAPE_TEXT(shape));
    } else if (open >= 0) {
      return mix_call_fail(MIX_VALUE_ERROR, "reshape", x,
                           "two dimensions of the shape are -1; at most one can be worked out");
    } else {
      open = i;
    }
  }
  if (open >= 0 && mix_shape_is_known(from)) {
    int64_t size = mix_shape_size(from);
    if (rest == 0 || size % rest)
      return mix_call_fail(MIX_VALUE_ERROR, "reshape", x, "%lld elements do not fill the shape %s",
                           (long long)size, MIX_SHAPE_TEXT(shape));
    shape.dims[open] = size / rest;
  }
  return reshape_to(x, shape);
}

mix_tensor *mix_expand_dims(mix_tensor *x, int axis) {
  if (!mix_operand_ready("expand_dims", x)) return NULL;
  mix_shape from = mix_tensor_shape(x), to = {.rank = from.rank + 1};
  if (from.rank == MIX_MAX_RANK)
    return mix_call_fail(MIX_VALUE_ERROR, "expand_dims", x, "there are already %d dimensions", MIX_MAX_RANK);
  const int at = mix_call_axis("expand_dims", x, axis, 1);
  if (at < 0) return NULL;
  for (int i = 0; i < to.rank; i++) to.dims[i] = i < at ? from.dims[i] : i == at ? 1 : from.dims[i - 1];
  return reshape_to(x, to);
}

/* An unknown dimension that is named is assumed to be 1. */
mix_tensor *mix_squeeze(mix_tensor *x, mix_axes axes) {
  mix_reduce_attributes dropped;
  if (!mix_operand_ready("squeeze", x) || !mix_axes_normal("squeeze", x, axes, &dropped)) return NULL;
  mix_shape from = mix_tensor_shape(x), to = {.rank = 0};
  for (int axis = 0, next = 0; axis < from.rank; axis++) {
    bool named = next < dropped.axis_count && dropped.axes[next] == axis, one = from.dims[axis] == 1;
    next += named;
    if (axes.count > 0 && named && !one && from.dims[axis] != MIX_UNKNOWN)
      return mix_call_fail(MIX_VALUE_ERROR, "squeeze", x,
                           "axis %d has %lld elements; only an axis of 1 can go", axis,
                           (long long)from.dims[axis]);
    if (axes.count > 0 ? !named : !one) to.dims[to.rank++] = from.dims[axis];
  }
  return to.rank == from.rank ? x : reshape_to(x, to);
}

/* ---- transpose ---- */

static const int *permutation_of(const mix_node *node) {
  return ((const mix_transpose_attributes *)node->attributes)->permutation;
}

static bool transpose_infer(mix_node *node) {
  mix_shape x = mix_input_value(node, 0)->shape, y = x;
  unsigned moved = 0;
  for (int i = 0; i < x.rank; i++)
    if (permutation_of(node)[i] >= 0 && permutation_of(node)[i] < x.rank)
      moved |= 1u << permutation_of(node)[i];
  if (moved != (1u << x.rank) - 1)
    return mix_rule_fail(node, "expected a permutation of its %d axes", x.rank);
  for (int i = 0; i < x.rank; i++) y.dims[i] = x.dims[permutation_of(node)[i]];
  return mix_rule_output(node, 0, y);
}

static void transpose_gradient(mix_node *node, mix_tensor *const *output_gradients,
                               mix_tensor **input_gradients) {
  mix_axes inverse = {.count = mix_input_value(node, 0)->shape.rank};
  for (int i = 0; i < inverse.count; i++) inverse.axis[permutation_of(node)[i]] = i;
  input_gradients[0] = mix_transpose(output_gradients[0], inverse);
}

static bool transpose_rows(const mix_row_query *query) {
  return query->result.rank > 0 && ((const mix_transpose_attributes *)query->attributes)->permutation[0] == 0;
}

static const mix_attribute_row transpose_fields[] = {
    {"permutation", MIX_ATTRIBUTE_PERMUTATION, offsetof(mix_transpose_attributes, permutation)}, {NULL}};

const mix_op mix_op_transpose = {.name = "transpose",
                                 .tf_name = "Transpose",
                                 .signature = "T->T",
                                 .types = "any",
                                 .flags = MIX_OP_TRANSPOSE,
                                 .attributes_size = sizeof(mix_transpose_attributes),
                                 .infer = transpose_infer,
                                 .row_independent = transpose_rows,
                                 .gradient = transpose_gradient,
                                 .fields = transpose_fields};

mix_tensor *mix_transpose(mix_tensor *x, mix_axes permutation) {
  if (!mix_operand_ready("transpose", x)) return NULL;
  int rank = mix_tensor_shape(x).rank;
  bool chosen[MIX_MAX_RANK] = {false}, moves = false;
  mix_transpose_attributes attributes;
  for (int i = 0; i < MIX_MAX_RANK; i++) /* Beyond the rank: axes of size 1 that stay in place. */
    attributes.permutation[i] = i;
  if (permutation.count != 0 && permutation.count != rank)
    return mix_call_fail(MIX_VALUE_ERROR, "transpose", x,
                         "the permutation has %d axes; expected %d, or none to reverse all",
                         permutation.count, rank);
  for (int i = 0; i < rank; i++) {
    int axis = permutation.count ? mix_axis_normal(permutation.axis[i], rank) : rank - 1 - i;
    if (axis < 0 || chosen[axis])
      return mix_call_fail(MIX_VALUE_ERROR, "transpose", x,
                           "axis %d of the permutation is outside or given twice", permutation.axis[i]);
    chosen[axis] = true;
    attributes.permutation[i] = axis;
    moves |= axis != i;
  }
  return moves ? mix_apply(&mix_op_transpose, &attributes, 1, &x) : x;
}

/* ---- broadcast_to ---- */

static bool broadcast_to_infer(mix_node *node) {
  if (!mix_shape_broadcasts_to(mix_input_value(node, 0)->shape, *target(node)))
    return mix_rule_fail(
        node, "it does not broadcast to %s: aligned at the right, its dimensions must be equal to these or 1",
        MIX_SHAPE_TEXT(*target(node)));
  return mix_rule_output(node, 0, *target(node));
}

static void broadcast_to_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                  mix_tensor **input_gradients) {
  input_gradients[0] = mix_unbroadcast(node, 0, output_gradients[0]);
}

const mix_op mix_op_broadcast_to = {.name = "broadcast_to",
                                    .tf_name = "BroadcastTo",
                                    .signature = "T->T",
                                    .types = "any",
                                    .flags = MIX_OP_BROADCAST,
                                    .attributes_size = sizeof(mix_shape_attributes),
                                    .infer = broadcast_to_infer,
                                    .row_independent = mix_rows_elementwise,
                                    .gradient = broadcast_to_gradient,
                                    .fields = shape_fields};

mix_tensor *mix_broadcast_to(mix_tensor *x, mix_shape shape) {
  if (!mix_operand_ready("broadcast_to", x) || !shape_argument("broadcast_to", x, shape)) return NULL;
  if (mix_shape_is_known(shape) && mix_shape_equal(mix_tensor_shape(x), shape)) return x;
  if (!mix_shape_is_known(shape) && !mix_tensor_is_symbolic(x))
    return mix_call_fail(
        MIX_VALUE_ERROR, "broadcast_to", x,
        "the shape asked for has an unknown dimension, which only symbolic tensors may have");
  return mix_apply(&mix_op_broadcast_to, &(mix_shape_attributes){.shape = shape}, 1, &x);
}
