/* Products of a float matrix and a weight that is stored as integers of 8 or 4 bits, and such a weight as
 * floats. Products of few rows decode the weight in registers, each number once. Others decode some columns
 * at a time, for which a kernel of plain products runs: which columns depends on the shape alone, so that
 * bits do not depend on the number of threads. */
#pragma once

#include "backend/cpu/isa.h"
#include "backend/host/kernel.h"

/* Some rows and columns of a weight (rows, columns) whose rows share a scale and zero for each column; of a
 * weight of channels neither is used. */
typedef struct mix_stored_part {
  const int8_t *numbers; /* packed: `first column` is even */
  int64_t row_bytes;     /* from row to row */
  int64_t rows, columns;
  bool packed, blocks;
  bool differences;          /* of blocks: number - zero; the caller multiplies the sums by the scale */
  mix_dtype dtype;           /* to which values of blocks are rounded: 16 bits, or float32 */
  const float *scale, *zero; /* of blocks; readable in whole vectors */
} mix_stored_part;

typedef struct mix_stored_functions {
  /* The number 0 of `packed` bytes is the lower half of the first. */
  void (*unpack)(const int8_t *packed, int64_t count, int8_t *numbers);
  void (*widen)(const int8_t *numbers, int64_t count, float *values);
  /* (number - zero) * scale, and number / scale */
  void (*scale_blocks)(const int8_t *numbers, const float *scale, const float *zero, int64_t count,
                       float *values);
  void (*scale_channels)(const int8_t *numbers, const float *scale, int64_t count, float *values);
  /* Puts the values of columns into the order in which `multiply` takes scales and zeros of a packed weight
   * and leaves sums, and back, in place. Zeros, which are whole, also become what it subtracts. NULL: nothing
   * to do. */
  void (*to_pairs)(float *values, int64_t columns, bool zeros);
  void (*from_pairs)(float *values, int64_t columns);
  /* Values (rows, columns) of blocks in the dtype, `stride` elements from row to row; scales and zeros as for
   * `multiply`. Columns are a multiple of MIX_STORED_UNIT. */
  void (*decode)(const mix_stored_part *weight, void *values, int64_t stride);
  /* sums[i * sums_stride + j] = or += sum over rows k, in order, of x[i * x_stride + k] * weight (k, j), in
   * float32; sums are written in whole vectors. */
  void (*multiply)(const mix_stored_part *weight, int64_t m, const float *x, int64_t x_stride, float *sums,
                   int64_t sums_stride, bool first);
  /* sums = part * scale, or that added. Columns are a multiple of MIX_STORED_UNIT. */
  void (*add_scaled)(float *sums, const float *part, const float *scale, int64_t columns, bool first);
} mix_stored_functions;

#define MIX_DECLARE_STORED(set, ...) extern const mix_stored_functions mix_stored_##set;
MIX_VECTOR_SETS(MIX_DECLARE_STORED)
#undef MIX_DECLARE_STORED

enum {
  MIX_STORED_UNIT = 32,     /* columns: two vectors of the widest set */
  MIX_STORED_PADDING = 128, /* bytes that may be read behind scales and zeros, and written behind sums */
};
