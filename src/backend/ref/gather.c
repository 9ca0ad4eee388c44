/* Indexed rows: gather, its gradient segment_sum, and one_hot. */
#include "backend/host/row_chains.h"
#include "backend/ref/ref.h"
#include <string.h>

static int64_t index_at(const mix_kernel_args *args, int operand, int64_t i) {
  return mix_ref_load(args->inputs[operand], args->input_types[operand].dtype, i).integer;
}

/* params (outer, rows, inner), indices (count) -> (outer, count, inner). An index outside gives a row of
 * zeros. */
static void gather_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_axis_attributes *attributes = args->attributes;
  mix_shape shape = args->input_types[0].shape;
  int64_t outer = 1, rows = shape.dims[attributes->axis], inner = 1,
          count = mix_shape_size(args->input_types[1].shape);
  for (int d = 0; d < attributes->axis; d++) outer *= shape.dims[d];
  for (int d = attributes->axis + 1; d < shape.rank; d++) inner *= shape.dims[d];
  size_t bytes = (size_t)inner * mix_dtype_size(args->input_types[0].dtype);
  const char *params = args->inputs[0];
  char *result = args->outputs[0];
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < count; i++, result += bytes) {
      int64_t row = index_at(args, 1, i);
      const bool valid = row >= 0 && row < rows;
      if (!valid) mix_kernel_fail_index(args, i, row, "the gathered axis", rows);
      if (!bytes) continue; /* the operands may be NULL */
      if (valid)
        memcpy(result, params + (size_t)(o * rows + row) * bytes, bytes);
      else
        memset(result, 0, bytes);
    }
}

static size_t segment_sum_workspace(const mix_kernel_args *args, int threads) {
  return mix_row_chains_bytes(mix_shape_size(args->input_types[1].shape));
}

/* The sum of element j of the rows of a chain, in order. */
static mix_ref_value chain_sum(const mix_kernel_args *args, const mix_row_chains *chains, int32_t first,
                               int64_t inner, int64_t j) {
  mix_ref_value sum = {0};
  for (int32_t i = first; i >= 0; i = chains->next[i]) {
    const mix_ref_value x = mix_ref_load(args->inputs[0], args->input_types[0].dtype, i * inner + j);
    sum.real += x.real;
    sum.integer = (int64_t)((uint64_t)sum.integer + (uint64_t)x.integer);
  }
  return sum;
}

/* updates (count, inner), indices (count) -> (rows, inner). */
static void segment_sum_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_segment_attributes *attributes = args->attributes;
  const mix_dtype dtype = args->output_types[0].dtype, index = args->input_types[1].dtype;
  const int64_t results = mix_shape_size(args->output_types[0].shape),
                count = mix_shape_size(args->input_types[1].shape),
                inner = attributes->rows ? results / attributes->rows : 0;
  mix_row_chains chains;
  const int64_t outside =
      mix_row_chains_find(&chains, args->workspace, args->inputs[1], index, count, attributes->rows);
  if (outside < count)
    mix_kernel_fail_index(args, outside, mix_row_index(args->inputs[1], index, outside), "the rows",
                          attributes->rows);
  if (results) memset(args->outputs[0], 0, (size_t)results * mix_dtype_size(dtype));
  for (int32_t i = 0; i < count; i++) {
    if (chains.head[i] != MIX_ROW_END) continue;
    const int64_t row = mix_row_index(args->inputs[1], index, i);
    for (int64_t j = 0; j < inner; j++)
      mix_ref_store(args->outputs[0], dtype, row * inner + j,
                    mix_ref_round(chain_sum(args, &chains, i, inner, j), dtype));
  }
}

static void one_hot_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_one_hot_attributes *attributes = args->attributes;
  int64_t count = mix_shape_size(args->input_types[0].shape);
  for (int64_t i = 0; i < count; i++) {
    int64_t hot = index_at(args, 0, i);
    for (int64_t j = 0; j < attributes->depth; j++)
      mix_ref_store(args->outputs[0], args->output_types[0].dtype, i * attributes->depth + j,
                    (mix_ref_value){j == hot, j == hot});
  }
}

const mix_kernel mix_ref_gather = {.name = "ref_gather", .serial = mix_ref_serial, .run = gather_run};
const mix_kernel mix_ref_segment_sum = {.name = "ref_segment_sum_acc64",
                                        .workspace = segment_sum_workspace,
                                        .serial = mix_ref_serial,
                                        .run = segment_sum_run};
const mix_kernel mix_ref_one_hot = {.name = "ref_one_hot", .serial = mix_ref_serial, .run = one_hot_run};
