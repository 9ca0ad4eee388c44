/* Gather, its transpose segment_sum, and one_hot. */
#include "ops/rules.h"

/* params (before, axis, after), indices (...) -> (before, ..., after). */
static bool gather_infer(mix_node *node) {
  int axis = ((const mix_axis_attributes *)node->attributes)->axis;
  mix_shape params = mix_input_value(node, 0)->shape, indices = mix_input_value(node, 1)->shape,
            result = {.rank = 0};
  if (!mix_rule_axis(node, axis)) return false;
  result.rank = params.rank - 1 + indices.rank;
  if (result.rank > MIX_MAX_RANK)
    return mix_rule_fail(node, "the result would have %d dimensions; at most %d", result.rank, MIX_MAX_RANK);
  int at = 0;
  for (int i = 0; i < axis; i++) result.dims[at++] = params.dims[i];
  for (int i = 0; i < indices.rank; i++) result.dims[at++] = indices.dims[i];
  for (int i = axis + 1; i < params.rank; i++) result.dims[at++] = params.dims[i];
  return mix_rule_output(node, 0, result);
}

/* Along axis 0: sums the rows of dy that have the same index. Along another axis: moves the axes of the
 * indices to the front, sums, and moves the summed axis back. */
static bool gather_gradient(mix_node *node, mix_tensor *const *output_gradients,
                            mix_tensor **input_gradients) {
  int axis = ((const mix_axis_attributes *)node->attributes)->axis;
  mix_shape params = mix_input_value(node, 0)->shape;
  int rank = params.rank, index_rank = mix_input_value(node, 1)->shape.rank, at = 0;
  mix_axes forward = {.count = rank - 1 + index_rank}, back = {.count = rank};
  for (int i = 0; i < index_rank; i++) forward.axis[at++] = axis + i;
  for (int i = 0; i < forward.count; i++)
    if (i < axis || i >= axis + index_rank) forward.axis[at++] = i;
  for (int i = 0; i < rank; i++) back.axis[i] = i < axis ? i + 1 : i == axis ? 0 : i;
  mix_tensor *dy = output_gradients[0];
  if (axis > 0 && forward.count > 0) dy = mix_transpose(dy, forward);
  mix_tensor *sums = mix_segment_sum(dy, mix_node_input(node, 1), params.dims[axis]);
  input_gradients[0] = axis > 0 ? mix_transpose(sums, back) : sums;
  return !mix_failed();
}

const mix_op mix_op_gather = {.name = "gather",
                              .tf_name = "GatherV2",
                              .signature = "T,U->T",
                              .types = "any,int",
                              .flags = MIX_OP_CHECKS_VALUES | MIX_OP_PARTS,
                              .attributes_size = sizeof(mix_axis_attributes),
                              .infer = gather_infer,
                              .gradient = gather_gradient,
                              .fields = mix_axis_fields};

mix_tensor *mix_gather(mix_tensor *params, mix_tensor *indices, int axis) {
  if (!mix_operand_ready("gather", params) || !mix_operand_ready("gather", indices)) return NULL;
  int rank = mix_tensor_shape(params).rank;
  mix_axis_attributes attributes = {mix_axis_normal(axis, rank)};
  if (attributes.axis < 0)
    return mix_call_fail(MIX_VALUE_ERROR, "gather", params, "axis %d is outside; expected %d to %d", axis,
                         -rank, rank - 1);
  return mix_apply(&mix_op_gather, &attributes, 2, (mix_tensor *[]){params, indices});
}

/* updates (indices..., rest), indices (...) -> (rows, rest). */
static bool segment_sum_infer(mix_node *node) {
  mix_shape updates = mix_input_value(node, 0)->shape, indices = mix_input_value(node, 1)->shape,
            result = {.rank = 1};
  int64_t rows = ((const mix_segment_attributes *)node->attributes)->rows, merged;
  bool fit = indices.rank <= updates.rank;
  for (int i = 0; fit && i < indices.rank; i++)
    fit = mix_dimension_merge(updates.dims[i], indices.dims[i], &merged);
  if (!fit) return mix_rule_fail(node, "the shape of the updates must begin with that of the indices");
  if (rows < 0) return mix_rule_fail(node, "%lld rows; expected 0 or more", (long long)rows);
  result.rank = 1 + updates.rank - indices.rank;
  if (result.rank > MIX_MAX_RANK)
    return mix_rule_fail(node, "the result would have %d dimensions; at most %d", result.rank, MIX_MAX_RANK);
  result.dims[0] = rows;
  for (int i = 1; i < result.rank; i++) result.dims[i] = updates.dims[indices.rank + i - 1];
  return mix_rule_output(node, 0, result);
}

static bool segment_sum_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                 mix_tensor **input_gradients) {
  input_gradients[0] = mix_gather(output_gradients[0], mix_node_input(node, 1), 0);
  return !mix_failed();
}

static const char *segment_sum_violation(const mix_node *node) {
  return mix_input_value(node, 1)->shape.rank != 1 ? "its indices must have one dimension" : NULL;
}

static const mix_field segment_fields[] = {{"rows", MIX_FIELD_INT64, offsetof(mix_segment_attributes, rows)},
                                           {NULL}};

const mix_op mix_op_segment_sum = {.name = "segment_sum",
                                   .tf_name = "UnsortedSegmentSum",
                                   .signature = "T,U->T",
                                   .types = "number,int",
                                   .flags = MIX_OP_CHECKS_VALUES,
                                   .attributes_size = sizeof(mix_segment_attributes),
                                   .infer = segment_sum_infer,
                                   .gradient = segment_sum_gradient,
                                   .fields = segment_fields,
                                   .violation = segment_sum_violation};

/* Kernels take indices of rank 1 only, so the indices and the leading axes of the updates are flattened by
 * views. */
mix_tensor *mix_segment_sum(mix_tensor *updates, mix_tensor *indices, int64_t rows) {
  if (!mix_operand_ready("segment_sum", updates) || !mix_operand_ready("segment_sum", indices)) return NULL;
  mix_shape data = mix_tensor_shape(updates), index = mix_tensor_shape(indices);
  int64_t count = mix_shape_size(index);
  if (index.rank != 1 && index.rank <= data.rank && data.rank - index.rank < MIX_MAX_RANK && count >= 0 &&
      mix_shape_is_known(data)) {
    mix_shape flat = {.rank = 1 + data.rank - index.rank, .dims = {count}};
    for (int i = 1; i < flat.rank; i++) flat.dims[i] = data.dims[index.rank + i - 1];
    if (mix_shape_size(flat) == mix_shape_size(data)) {
      updates = mix_reshape(updates, flat);
      indices = mix_reshape(indices, (mix_shape){.rank = 1, .dims = {count}});
    }
  }
  return mix_apply(&mix_op_segment_sum, &(mix_segment_attributes){rows}, 2,
                   (mix_tensor *[]){updates, indices});
}

/* ---- one_hot ---- */

static bool one_hot_infer(mix_node *node) {
  const mix_one_hot_attributes *attributes = node->attributes;
  mix_shape shape = mix_input_value(node, 0)->shape;
  if (attributes->depth < 0)
    return mix_rule_fail(node, "depth %lld; expected 0 or more", (long long)attributes->depth);
  if (shape.rank == MIX_MAX_RANK)
    return mix_rule_fail(node, "the result would have more than %d dimensions", MIX_MAX_RANK);
  shape.dims[shape.rank++] = attributes->depth;
  node->outputs[0].dtype = attributes->dtype;
  return mix_rule_output(node, 0, shape);
}

static const mix_field one_hot_fields[] = {
    {"depth", MIX_FIELD_INT64, offsetof(mix_one_hot_attributes, depth)},
    {"dtype", MIX_FIELD_DTYPE, offsetof(mix_one_hot_attributes, dtype)},
    {NULL}};

const mix_op mix_op_one_hot = {.name = "one_hot",
                               .tf_name = "OneHot",
                               .signature = "T->D",
                               .types = "int,any",
                               .attributes_size = sizeof(mix_one_hot_attributes),
                               .infer = one_hot_infer,
                               .fields = one_hot_fields};

mix_tensor *mix_one_hot(mix_tensor *indices, int64_t depth, mix_dtype dtype) {
  if (!mix_operand_ready("one_hot", indices) || !mix_dtype_checked("one_hot", dtype)) return NULL;
  return mix_apply(&mix_op_one_hot, &(mix_one_hot_attributes){depth, dtype}, 1, &indices);
}
