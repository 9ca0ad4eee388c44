/* Mean and variance of rows that stay in the first-level cache between the two sums. The sums have the order
 * of cpu/reduce.c, in which such a row is one piece. */
#include "backend/cpu/kernel_rows.h"
#include "ops/row_moments.h"
#include <string.h>

typedef struct buffers {
  _Alignas(64) char x[MIX_MOMENTS_ROW * 8 + MIX_TILE_PADDING];
  _Alignas(64) char squares[MIX_MOMENTS_ROW * 8 + MIX_TILE_PADDING];
  _Alignas(64) char mean[MIX_TILE_PADDING];
} buffers;

static double add_up(const mix_vector *vector, bool wide, const char *x, int64_t n) {
  const double *values = (const double *)(const void *)x;
  if (!wide) return vector->sum((const float *)(const void *)x, n);
  double sum = values[0];
  for (int64_t i = 1; i < n; i++) sum += values[i];
  return sum;
}

static int64_t row_count(const mix_kernel_args *args) { return mix_shape_size(args->output_types[0].shape); }

/* Rows [begin, end). */
static void row_moments_run_rows(const mix_kernel_args *args, int64_t begin, int64_t end,
                                 const mix_vector *vector) {
  static const int steps[3] = {1, 0, 0}; /* the mean is the same for all */
  const mix_type *x = &args->input_types[0];
  const bool wide = x->dtype == MIX_FLOAT64;
  const int64_t n = mix_shape_size(x->shape) / row_count(args),
                row_bytes = n * (int64_t)mix_dtype_size(x->dtype);
  const mix_tile_load_function load = mix_tile_load_of(vector, x->dtype);
  const mix_tile_function square =
      mix_tile_instruction_of(vector, MIX_OPCODE_SQUARED_DIFFERENCE, wide ? MIX_TILE_DOUBLE : MIX_TILE_FLOAT);
  const bool direct = (wide || x->dtype == MIX_FLOAT32) && n % 16 == 0;
  buffers b;
  memset(b.x + n * (wide ? 8 : 4), 0, MIX_TILE_PADDING); /* read, and not used */
  for (int64_t row = begin; row < end; row++) {
    const char *values = (const char *)args->inputs[0] + row * row_bytes;
    if (!direct) {
      load(b.x, values, n);
      values = b.x;
    }
    const double mean = add_up(vector, wide, values, n) / (double)n;
    for (int i = 0; i < MIX_TILE_PADDING / (wide ? 8 : 4); i++)
      if (wide)
        ((double *)(void *)b.mean)[i] = mean;
      else
        ((float *)(void *)b.mean)[i] = (float)mean;
    const void *operands[3] = {values, b.mean, b.mean};
    square(b.squares, operands, steps, n, 0);
    const double variance = add_up(vector, wide, b.squares, n) / (double)n;
    if (wide) {
      ((double *)args->outputs[0])[row] = mean;
      ((double *)args->outputs[1])[row] = variance;
    } else {
      ((float *)args->outputs[0])[row] = (float)mean;
      ((float *)args->outputs[1])[row] = (float)variance;
    }
  }
}

static void row_moments_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  const int64_t rows = row_count(args), n = mix_shape_size(args->input_types[0].shape) / rows;
  int64_t begin, end;
  mix_team_share(team, rows, n < 512 ? 512 / n : 1, &begin, &end);
  row_moments_run_rows(args, begin, end, vector);
}

static bool row_moments_bands(const mix_kernel_args *args, int threads, int64_t rows,
                              mix_band_access *access) {
  return row_count(args) % rows == 0;
}
static void row_moments_run_band(const mix_kernel_args *args, const mix_band *band,
                                 const mix_vector *vector) {
  const int64_t each = row_count(args) / band->rows;
  row_moments_run_rows(args, band->begin * each, band->end * each, vector);
}

static const char *row_moments_unsupported_reason(const mix_kernel_args *args) {
  const int64_t size = mix_shape_size(args->input_types[0].shape);
  if (!size) return "an empty operand";
  return size / row_count(args) > MIX_MOMENTS_ROW ? "rows longer than a buffer" : NULL;
}
static bool serial(const mix_kernel_args *args) {
  return mix_shape_size(args->input_types[0].shape) < MIX_CPU_SMALL;
}
MIX_CPU_KERNELS_IN_BANDS(row_moments, "row_moments_acc32",
                         .unsupported_reason = row_moments_unsupported_reason, .serial = serial,
                         .bands = row_moments_bands)
