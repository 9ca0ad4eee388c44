/* Rows: sums of rows that have the same index (segment_sum), the layout "rows" of sparse gradients, and the
 * ops by which optimizers update some rows of a variable. */
#include "base/alloc.h"
#include "ops/rules.h"

/* ---- segment_sum: the transpose of gather along axis 0 ---- */

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

static void segment_sum_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                 mix_tensor **input_gradients) {
  input_gradients[0] = mix_gather(output_gradients[0], mix_node_input(node, 1), 0);
}

static const char *indices_violation(const mix_node *node) {
  return mix_input_value(node, 1)->shape.rank != 1 ? "its indices must have one dimension" : NULL;
}

static const mix_attribute_row segment_fields[] = {
    {"rows", MIX_ATTRIBUTE_INT64, offsetof(mix_segment_attributes, rows)}, {NULL}};

const mix_op mix_op_segment_sum = {.name = "segment_sum",
                                   .tf_name = "UnsortedSegmentSum",
                                   .signature = "T,U->T",
                                   .types = "number,int",
                                   .flags = MIX_OP_CHECKS_VALUES,
                                   .attributes_size = sizeof(mix_segment_attributes),
                                   .infer = segment_sum_infer,
                                   .gradient = segment_sum_gradient,
                                   .fields = segment_fields,
                                   .violation = indices_violation};

/* Kernels take indices of rank 1 only, so the indices and the leading axes of the updates are flattened by
 * views. */
static void flatten(mix_tensor **updates, mix_tensor **indices) {
  mix_shape data = mix_tensor_shape(*updates), index = mix_tensor_shape(*indices);
  int64_t count = mix_shape_size(index);
  if (index.rank == 1 || index.rank > data.rank || data.rank - index.rank >= MIX_MAX_RANK || count < 0 ||
      !mix_shape_is_known(data))
    return;
  mix_shape flat = {.rank = 1 + data.rank - index.rank, .dims = {count}};
  for (int i = 1; i < flat.rank; i++) flat.dims[i] = data.dims[index.rank + i - 1];
  if (mix_shape_size(flat) != mix_shape_size(data)) return;
  *updates = mix_reshape(*updates, flat);
  *indices = mix_reshape(*indices, (mix_shape){.rank = 1, .dims = {count}});
}

static mix_tensor *sum_segments(const mix_op *op, mix_tensor *updates, mix_tensor *indices, int64_t rows) {
  if (!mix_operand_ready(op->name, updates) || !mix_operand_ready(op->name, indices)) return NULL;
  flatten(&updates, &indices);
  return mix_apply(op, &(mix_segment_attributes){rows}, 2, (mix_tensor *[]){updates, indices});
}

mix_tensor *mix_segment_sum(mix_tensor *updates, mix_tensor *indices, int64_t rows) {
  return sum_segments(&mix_op_segment_sum, updates, indices, rows);
}

/* ---- the layout "rows" ---- */

/* The dense value is that of segment_sum. Those that know the layout read its operands instead, and then
 * nothing computes this node. */
const mix_op mix_op_rows = {.name = "rows",
                            .tf_name = "UnsortedSegmentSum",
                            .signature = "T,U->T",
                            .types = "number,int",
                            .flags = MIX_OP_CHECKS_VALUES | MIX_OP_ROWS,
                            .attributes_size = sizeof(mix_segment_attributes),
                            .infer = segment_sum_infer,
                            .gradient = segment_sum_gradient,
                            .fields = segment_fields,
                            .violation = indices_violation};

mix_tensor *mix_rows(mix_tensor *values, mix_tensor *indices, int64_t count) {
  return sum_segments(&mix_op_rows, values, indices, count);
}

bool mix_tensor_is_rows(const mix_tensor *x) {
  return mix_is(x, &mix_tensor_class) && (x->node->op->flags & MIX_OP_ROWS) && x->node->input_count == 2 &&
         mix_input_value(x->node, 1)->shape.rank == 1;
}

mix_tensor *mix_rows_values(mix_tensor *x) { return mix_tensor_is_rows(x) ? mix_node_input(x->node, 0) : x; }

mix_tensor *mix_rows_indices(mix_tensor *x) {
  return mix_tensor_is_rows(x) ? mix_node_input(x->node, 1) : NULL;
}

mix_tensor *mix_with_values(mix_tensor *like, mix_tensor *values) {
  return mix_tensor_is_rows(like) ? mix_rows(values, mix_rows_indices(like), mix_tensor_shape(like).dims[0])
                                  : values;
}

bool mix_all_are_rows(int count, mix_tensor *const *tensors) {
  for (int i = 0; i < count; i++)
    if (!mix_tensor_is_rows(tensors[i])) return false;
  return count > 0;
}

static mix_dtype widest_index(int count, mix_tensor *const *tensors) {
  for (int i = 0; i < count; i++)
    if (mix_input_value(tensors[i]->node, 1)->dtype != MIX_INT32) return MIX_INT64;
  return MIX_INT32;
}

mix_tensor *mix_concat_rows(int count, mix_tensor *const *tensors) {
  const mix_dtype dtype = widest_index(count, tensors);
  mix_tensor **values = mix_calloc(2 * (size_t)count, sizeof *values), **indices = values + count;
  if (!values) return NULL;
  for (int i = 0; i < count; i++) {
    values[i] = mix_rows_values(tensors[i]);
    indices[i] = mix_cast(mix_rows_indices(tensors[i]), dtype);
  }
  mix_tensor *sum = mix_rows(mix_concat(count, values, 0), mix_concat(count, indices, 0),
                             mix_tensor_shape(tensors[0]).dims[0]);
  mix_free(values);
  return sum;
}

/* ---- updates of rows ---- */

/* values (n, rest), indices (n) -> sums (n, rest), indices (n). */
static bool combine_rows_infer(mix_node *node) {
  mix_shape values = mix_input_value(node, 0)->shape, indices = mix_input_value(node, 1)->shape;
  int64_t merged;
  if (indices.rank != 1 || values.rank < 1 || !mix_dimension_merge(values.dims[0], indices.dims[0], &merged))
    return mix_rule_fail(node, "expected values (n, ...) and indices (n)");
  return mix_rule_output(node, 0, values) && mix_rule_output(node, 1, indices);
}

const mix_op mix_op_combine_rows = {.name = "combine_rows",
                                    .signature = "T,U->T,U",
                                    .types = "float,int32 int64",
                                    .flags = MIX_OP_CHECKS_VALUES,
                                    .attributes_size = sizeof(mix_segment_attributes),
                                    .infer = combine_rows_infer,
                                    .fields = segment_fields};

mix_tensor *mix_combine_rows(mix_tensor *values, mix_tensor *indices, int64_t rows, mix_tensor **unique) {
  if (mix_tensor_dtype(indices) != MIX_INT64) indices = mix_cast(indices, MIX_INT32);
  mix_tensor *sums =
      mix_apply(&mix_op_combine_rows, &(mix_segment_attributes){rows}, 2, (mix_tensor *[]){values, indices});
  if (unique) *unique = sums ? mix_tensor_of(sums->node, 1) : NULL;
  return sums;
}

/* The shape of the rows of `table` at indices (n): (n, rest). */
static bool rows_shape(mix_node *node, mix_shape *rows) {
  mix_shape indices = mix_input_value(node, 1)->shape;
  *rows = mix_input_value(node, 0)->shape;
  if (indices.rank != 1 || rows->rank < 1)
    return mix_rule_fail(node, "expected a table (rows, ...) and indices (n)");
  rows->dims[0] = indices.dims[0];
  return true;
}

static bool gather_rows_infer(mix_node *node) {
  mix_shape rows;
  return rows_shape(node, &rows) && mix_rule_output(node, 0, rows);
}

static bool gather_rows_rows(const mix_row_query *query) { return !query->batched[0]; }

const mix_op mix_op_gather_rows = {.name = "gather_rows",
                                   .signature = "T,U->T",
                                   .types = "any,int32 int64",
                                   .flags = MIX_OP_PARTS,
                                   .infer = gather_rows_infer,
                                   .row_independent = gather_rows_rows};

mix_tensor *mix_gather_rows(mix_tensor *table, mix_tensor *indices) {
  return mix_apply2(&mix_op_gather_rows, table, indices);
}

static bool replace_rows_infer(mix_node *node) {
  mix_shape rows, given = mix_input_value(node, 2)->shape;
  if (!rows_shape(node, &rows)) return false;
  bool fit = given.rank == rows.rank;
  for (int i = 0; fit && i < rows.rank; i++)
    fit = mix_dimension_merge(given.dims[i], rows.dims[i], &rows.dims[i]);
  if (!fit) return mix_rule_fail(node, "the rows must have the shape of the indices and of a row");
  return mix_rule_same(node);
}

const mix_op mix_op_replace_rows = {.name = "replace_rows",
                                    .signature = "T,U,T->T",
                                    .types = "any,int32 int64",
                                    .flags = MIX_OP_UPDATES,
                                    .infer = replace_rows_infer};

mix_tensor *mix_replace_rows(mix_tensor *table, mix_tensor *indices, mix_tensor *rows) {
  return mix_apply(&mix_op_replace_rows, NULL, 3, (mix_tensor *[]){table, indices, rows});
}
