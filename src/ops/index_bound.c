#include "ops/index_bound.h"

#include "ops/table.h"

int64_t mix_index_bound(const mix_op *op, const void *attributes, mix_shape values) {
  if (op == &mix_op_gather) return values.dims[((const mix_axis_attributes *)attributes)->axis];
  if (op == &mix_op_segment_sum || op == &mix_op_rows || op == &mix_op_combine_rows)
    return ((const mix_segment_attributes *)attributes)->rows;
  return -1;
}
