/* The order in which columns are added: what reduce_columns.c and programs that end in sums of columns share.
 * Elements stand in rows of `inner`. Long narrow matrices are cut into blocks of rows, and in a block several
 * rows stand side by side as one line. A chain adds lines in the dtype of the accumulator, at most
 * MIX_COLUMN_CHAIN of them unless the columns are short; chains are added in double, then the rows of a line,
 * then the blocks. */
#pragma once

#include "backend/host/kernel.h"

enum {
  MIX_COLUMN_STRIP = 512,  /* columns, or elements of a line */
  MIX_COLUMN_NARROW = 256, /* columns; matrices up to this width have lines of several rows */
  MIX_COLUMN_CHAIN = 64,   /* lines of a chain in float32 */
  MIX_COLUMN_BLOCKS = 32,  /* max blocks of rows */
};

static inline bool mix_columns_are_narrow(int64_t length, int64_t inner) {
  return inner <= MIX_COLUMN_NARROW && length > MIX_ONE_CHAIN;
}

/* Rows of a line. */
static inline int64_t mix_column_group(int64_t length, int64_t inner) {
  return mix_columns_are_narrow(length, inner) ? MIX_COLUMN_STRIP / inner : 1;
}

/* Rows of a block: whole lines, at least those of a chain; or all. */
static inline int64_t mix_column_block(int64_t length, int64_t inner) {
  if (!mix_columns_are_narrow(length, inner)) return length;
  const int64_t group = mix_column_group(length, inner), min = group * MIX_COLUMN_CHAIN,
                each = (length + MIX_COLUMN_BLOCKS - 1) / MIX_COLUMN_BLOCKS, rows = each > min ? each : min;
  return (rows + group - 1) / group * group;
}
