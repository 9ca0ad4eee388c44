/* Updates of rows. Gathering and replacing copy rows, which the threads share. combine_rows adds in double,
 * as the reference does, and rounds once. */
#include "backend/cpu/kernel_rows.h"
#include "backend/host/row_chains.h"
#include "tensor/shape.h"

/* Bytes of a row of operand 0. */
static size_t row_bytes(const mix_kernel_args *args) {
  size_t bytes = mix_dtype_size(args->input_types[0].dtype);
  for (int d = 1; d < args->input_types[0].shape.rank; d++)
    bytes *= (size_t)args->input_types[0].shape.dims[d];
  return bytes;
}

static int64_t index_count(const mix_kernel_args *args) { return args->input_types[1].shape.dims[0]; }

static bool is_small(const mix_kernel_args *args) {
  return (int64_t)row_bytes(args) * index_count(args) < MIX_CPU_SMALL;
}

/* ---- gather_rows ---- */

static void gather_rows_run(const mix_kernel_args *args, const mix_team *team) {
  const size_t bytes = row_bytes(args);
  int64_t begin, end;
  mix_team_share(team, index_count(args), 1, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    const int64_t row = mix_row_index(args->inputs[1], args->input_types[1].dtype, i);
    char *to = (char *)args->outputs[0] + (size_t)i * bytes;
    if (row >= 0 && row < args->input_types[0].shape.dims[0])
      memcpy(to, (const char *)args->inputs[0] + (size_t)row * bytes, bytes);
    else
      memset(to, 0, bytes);
  }
}

/* ---- replace_rows: no index occurs twice, so that threads write different rows ---- */

static bool is_in_place(const mix_kernel_args *args) { return args->inputs[0] == args->outputs[0]; }

static void copy_table(const mix_kernel_args *args, const mix_team *team) {
  const int64_t bytes = (int64_t)row_bytes(args) * args->input_types[0].shape.dims[0];
  int64_t begin, end;
  mix_team_share(team, bytes, 4096, &begin, &end);
  if (begin < end)
    memcpy((char *)args->outputs[0] + begin, (const char *)args->inputs[0] + begin, (size_t)(end - begin));
}

static void replace_rows_run(const mix_kernel_args *args, const mix_team *team) {
  const size_t bytes = row_bytes(args);
  int64_t begin, end;
  if (!is_in_place(args)) copy_table(args, team);
  if (team->size > 1) mix_team_barrier(team);
  mix_team_share(team, index_count(args), 1, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    const int64_t row = mix_row_index(args->inputs[1], args->input_types[1].dtype, i);
    if (row >= 0 && row < args->input_types[0].shape.dims[0])
      memcpy((char *)args->outputs[0] + (size_t)row * bytes,
             (const char *)args->inputs[2] + (size_t)i * bytes, bytes);
  }
}

static int one_barrier(const mix_kernel_args *args, int threads) { return threads > 1; }

/* ---- combine_rows ---- */

static const char *combine_unsupported_reason(const mix_kernel_args *args) {
  return args->input_types[0].dtype == MIX_FLOAT32 ? NULL : "it adds float32 rows";
}

static size_t sums_bytes(const mix_kernel_args *args) {
  return row_bytes(args) / sizeof(float) * sizeof(double);
}

static size_t combine_workspace(const mix_kernel_args *args, int threads) {
  return sums_bytes(args) + mix_row_chains_bytes(index_count(args));
}

static bool always(const mix_kernel_args *args) { return true; }

/* The sum of the rows from `first` on in its chain. */
static void add_chain(const mix_kernel_args *args, const mix_row_chains *chains, int32_t first,
                      double *sums) {
  const int64_t width = (int64_t)(row_bytes(args) / sizeof(float));
  float *result = (float *)args->outputs[0] + first * width;
  for (int64_t j = 0; j < width; j++) sums[j] = 0;
  for (int32_t i = first; i >= 0; i = chains->next[i]) {
    const float *row = (const float *)args->inputs[0] + i * width;
    for (int64_t j = 0; j < width; j++) sums[j] += row[j];
  }
  for (int64_t j = 0; j < width; j++) result[j] = (float)sums[j];
}

static void put_index(const mix_kernel_args *args, int64_t i, int64_t index) {
  if (args->output_types[1].dtype == MIX_INT64)
    ((int64_t *)args->outputs[1])[i] = index;
  else
    ((int32_t *)args->outputs[1])[i] = (int32_t)index;
}

static void combine_rows_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_dtype dtype = args->input_types[1].dtype;
  const size_t bytes = row_bytes(args);
  double *sums = args->workspace;
  mix_row_chains chains;
  mix_row_chains_of(&chains, (char *)args->workspace + sums_bytes(args), args,
                    ((const mix_segment_attributes *)args->attributes)->rows);
  for (int32_t i = 0; i < index_count(args); i++) {
    const bool first = chains.head[i] == MIX_ROW_END;
    put_index(args, i, first ? mix_row_index(args->inputs[1], dtype, i) : -1);
    if (first)
      add_chain(args, &chains, i, sums);
    else
      memset((char *)args->outputs[0] + (size_t)i * bytes, 0, bytes);
  }
}

#define ROWS_KERNEL(op, is_serial, ...)                                                                      \
  static const mix_kernel op##_kernel = {.name = #op, .run = op##_run, .serial = is_serial, __VA_ARGS__};    \
  const mix_kernel *const mix_cpu_##op##_kernels[] = {&op##_kernel, NULL};
ROWS_KERNEL(gather_rows, is_small, .workspace = NULL)
ROWS_KERNEL(replace_rows, is_small, .barriers = one_barrier)
ROWS_KERNEL(combine_rows, always, .workspace = combine_workspace,
            .unsupported_reason = combine_unsupported_reason)
