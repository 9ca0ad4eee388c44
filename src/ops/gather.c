/* Gather and one_hot. The transpose of gather is in rows.c. */
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

/* Along axis 0: the rows of dy with their indices. Along another axis: moves the axes of the indices to the
 * front, sums the rows that have the same index, and moves the summed axis back. */
static void gather_gradient(mix_node *node, mix_tensor *const *output_gradients,
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
  if (axis == 0) {
    input_gradients[0] = mix_rows(dy, mix_node_input(node, 1), params.dims[0]);
    return;
  }
  if (forward.count > 0) dy = mix_transpose(dy, forward);
  mix_tensor *sums = mix_segment_sum(dy, mix_node_input(node, 1), params.dims[axis]);
  input_gradients[0] = mix_transpose(sums, back);
}

/* Rows of a table that the batch names, or other places of each row of the batch. */
static bool gather_rows(const mix_row_query *query) {
  const bool along_rows = ((const mix_axis_attributes *)query->attributes)->axis == 0;
  return along_rows ? !query->batched[0] : !query->batched[1];
}

const mix_op mix_op_gather = {.name = "gather",
                              .tf_name = "GatherV2",
                              .signature = "T,U->T",
                              .types = "any,int",
                              .flags = MIX_OP_CHECKS_VALUES | MIX_OP_PARTS,
                              .attributes_size = sizeof(mix_axis_attributes),
                              .infer = gather_infer,
                              .row_independent = gather_rows,
                              .gradient = gather_gradient,
                              .fields = mix_axis_fields};

/* The operand of a cast of a variable's value; NULL for any other tensor. */
static mix_tensor *before_autocast(mix_tensor *params) {
  const mix_node *cast = params->node;
  const bool reads = cast->op == &mix_op_cast && cast->input_count == 1 &&
                     (cast->inputs[0].node->op->flags & MIX_OP_READ) &&
                     mix_dtype_is_floating(cast->inputs[0].node->outputs[0].dtype);
  return reads ? mix_node_input(params->node, 0) : NULL;
}

mix_tensor *mix_gather(mix_tensor *params, mix_tensor *indices, int axis) {
  if (!mix_operand_ready("gather", params) || !mix_operand_ready("gather", indices)) return NULL;
  mix_axis_attributes attributes = {mix_call_axis("gather", params, axis, 0)};
  if (attributes.axis < 0) return NULL;
  /* Of a variable read in another dtype: casts the rows, not the whole variable. The bits are the same. */
  mix_tensor *stored = before_autocast(params);
  if (stored) {
    mix_tensor *rows = mix_apply(&mix_op_gather, &attributes, 2, (mix_tensor *[]){stored, indices});
    return rows ? mix_cast(rows, mix_tensor_dtype(params)) : NULL;
  }
  return mix_apply(&mix_op_gather, &attributes, 2, (mix_tensor *[]){params, indices});
}

static mix_tensor *whole_numbers(mix_tensor *x, bool rounds) {
  if (!mix_operand_ready("index_values", x)) return NULL;
  const mix_dtype dtype = mix_tensor_dtype(x);
  if (dtype == MIX_INT32) return x;
  if (!mix_dtype_is_floating(dtype)) return mix_cast(x, MIX_INT64);
  mix_tensor *whole = mix_floor(x), *broken = mix_not_equal(x, whole);
  if (rounds) broken = mix_logical_and(broken, mix_less(x, mix_scalar_like(x, 0)));
  mix_tensor *y =
      mix_select(broken, mix_scalar((double)MIX_INDEX_FRACTION, MIX_INT64), mix_cast(whole, MIX_INT64));
  return mix_select(mix_is_nan(x), mix_scalar((double)MIX_INDEX_NAN, MIX_INT64), y);
}

mix_tensor *mix_index_values(mix_tensor *x) { return whole_numbers(x, true); }

mix_tensor *mix_class_values(mix_tensor *x) { return whole_numbers(x, false); }

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

static const mix_attribute_row one_hot_fields[] = {
    {"depth", MIX_ATTRIBUTE_INT64, offsetof(mix_one_hot_attributes, depth)},
    {"dtype", MIX_ATTRIBUTE_DTYPE, offsetof(mix_one_hot_attributes, dtype)},
    {NULL}};

const mix_op mix_op_one_hot = {.name = "one_hot",
                               .tf_name = "OneHot",
                               .signature = "T->D",
                               .types = "int,any",
                               .attributes_size = sizeof(mix_one_hot_attributes),
                               .infer = one_hot_infer,
                               .row_independent = mix_rows_kept,
                               .fields = one_hot_fields};

mix_tensor *mix_one_hot(mix_tensor *indices, int64_t depth, mix_dtype dtype) {
  if (!mix_operand_ready("one_hot", indices) || !mix_dtype_checked("one_hot", dtype)) return NULL;
  return mix_apply(&mix_op_one_hot, &(mix_one_hot_attributes){depth, dtype}, 1, &indices);
}
