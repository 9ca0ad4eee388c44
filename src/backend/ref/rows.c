/* Updates of rows: combine_rows, gather_rows and replace_rows. */
#include "backend/host/row_chains.h"
#include "backend/ref/ref.h"

/* The elements of a row of operand 0. */
static int64_t row_size(const mix_kernel_args *args) {
  int64_t size = 1;
  for (int d = 1; d < args->input_types[0].shape.rank; d++) size *= args->input_types[0].shape.dims[d];
  return size;
}

static int64_t index_count(const mix_kernel_args *args) { return args->input_types[1].shape.dims[0]; }

static int64_t index_at(const mix_kernel_args *args, int64_t i) {
  return mix_row_index(args->inputs[1], args->input_types[1].dtype, i);
}

static size_t combine_workspace(const mix_kernel_args *args, int threads) {
  return mix_row_chains_bytes(index_count(args));
}

static void put_index(const mix_kernel_args *args, int64_t i, int64_t index) {
  mix_ref_store(args->outputs[1], args->output_types[1].dtype, i, (mix_ref_value){.integer = index});
}

static void combine_rows_run(const mix_kernel_args *args, const mix_team *team) {
  const int64_t count = index_count(args), inner = row_size(args);
  const mix_dtype dtype = args->output_types[0].dtype;
  mix_row_chains chains;
  mix_row_chains_of(&chains, args->workspace, args, ((const mix_segment_attributes *)args->attributes)->rows);
  for (int32_t i = 0; i < count; i++) {
    const bool first = chains.head[i] == MIX_ROW_END;
    put_index(args, i, first ? index_at(args, i) : -1);
    for (int64_t j = 0; j < inner; j++) {
      mix_ref_value sum = {0};
      for (int32_t k = first ? i : MIX_ROW_END; k >= 0; k = chains.next[k])
        sum.real += mix_ref_load(args->inputs[0], dtype, k * inner + j).real;
      mix_ref_store(args->outputs[0], dtype, i * inner + j, mix_ref_round(sum, dtype));
    }
  }
}

static void gather_rows_run(const mix_kernel_args *args, const mix_team *team) {
  const size_t bytes = (size_t)row_size(args) * mix_dtype_size(args->input_types[0].dtype);
  for (int64_t i = 0; i < index_count(args); i++) {
    const int64_t row = index_at(args, i);
    char *to = (char *)args->outputs[0] + (size_t)i * bytes;
    if (row >= 0 && row < args->input_types[0].shape.dims[0])
      memcpy(to, (const char *)args->inputs[0] + (size_t)row * bytes, bytes);
    else
      memset(to, 0, bytes);
  }
}

static void replace_rows_run(const mix_kernel_args *args, const mix_team *team) {
  const size_t bytes = (size_t)row_size(args) * mix_dtype_size(args->input_types[0].dtype);
  const int64_t rows = args->input_types[0].shape.dims[0];
  if (args->inputs[0] != args->outputs[0]) memcpy(args->outputs[0], args->inputs[0], (size_t)rows * bytes);
  for (int64_t i = 0; i < index_count(args); i++) {
    const int64_t row = index_at(args, i);
    if (row >= 0 && row < rows)
      memcpy((char *)args->outputs[0] + (size_t)row * bytes,
             (const char *)args->inputs[2] + (size_t)i * bytes, bytes);
  }
}

const mix_kernel mix_ref_combine_rows = {.name = "ref_combine_rows_acc64",
                                         .workspace = combine_workspace,
                                         .serial = mix_ref_serial,
                                         .run = combine_rows_run};
const mix_kernel mix_ref_gather_rows = {
    .name = "ref_gather_rows", .serial = mix_ref_serial, .run = gather_rows_run};
const mix_kernel mix_ref_replace_rows = {
    .name = "ref_replace_rows", .serial = mix_ref_serial, .run = replace_rows_run};
