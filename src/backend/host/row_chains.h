/* Rows with the same index, found by hashing: the first one of each index heads a chain of the others, in
 * order. Time and memory depend on the number of indices, not on their values. */
#pragma once

#include "backend/host/kernel.h"
#include <string.h>

enum { MIX_ROW_END = -1, MIX_ROW_REPEATS = -2, MIX_ROW_OUTSIDE = -3 };

typedef struct mix_row_chains { /* in the workspace of a kernel */
  int32_t *head; /* by row: MIX_ROW_END if it is the first of its index, else what it is instead */
  int32_t *next; /* by row: the next one with the same index, or MIX_ROW_END */
  int32_t *last; /* by first row: the last one of its chain */
  int32_t *table;
  int64_t table_size;
} mix_row_chains;

static inline int64_t mix_row_index(const void *indices, mix_dtype dtype, int64_t i) {
  switch (dtype) {
  case MIX_INT64: return ((const int64_t *)indices)[i];
  case MIX_INT16: return ((const int16_t *)indices)[i];
  case MIX_INT8: return ((const int8_t *)indices)[i];
  case MIX_UINT8: return ((const uint8_t *)indices)[i];
  default: return ((const int32_t *)indices)[i];
  }
}

static inline int64_t mix_row_table_size(int64_t count) {
  int64_t size = 16;
  while (size < 2 * count) size *= 2;
  return size;
}
static inline size_t mix_row_chains_bytes(int64_t count) {
  return sizeof(int32_t) * (size_t)(3 * count + mix_row_table_size(count));
}

/* Finds the chains of `count` indices; those outside [0, rows) are in none. Returns the first of them, or
 * `count`. */
static inline int64_t mix_row_chains_find(mix_row_chains *chains, void *workspace, const void *indices,
                                          mix_dtype dtype, int64_t count, int64_t rows) {
  int64_t outside = count;
  chains->head = workspace;
  chains->next = chains->head + count;
  chains->last = chains->next + count;
  chains->table = chains->last + count;
  chains->table_size = mix_row_table_size(count);
  memset(chains->table, 0xff, sizeof(int32_t) * (size_t)chains->table_size);
  for (int32_t i = 0; i < count; i++) {
    const int64_t row = mix_row_index(indices, dtype, i);
    chains->next[i] = MIX_ROW_END;
    chains->last[i] = i;
    chains->head[i] = row < 0 || row >= rows ? MIX_ROW_OUTSIDE : MIX_ROW_END;
    if (chains->head[i] == MIX_ROW_OUTSIDE) {
      if (i < outside) outside = i;
      continue;
    }
    int64_t at = (int64_t)(((uint64_t)row * 0x9e3779b97f4a7c15u) >> 20) & (chains->table_size - 1);
    while (chains->table[at] >= 0 && mix_row_index(indices, dtype, chains->table[at]) != row)
      at = (at + 1) & (chains->table_size - 1);
    const int32_t first = chains->table[at];
    if (first < 0) {
      chains->table[at] = i;
      continue;
    }
    chains->head[i] = MIX_ROW_REPEATS;
    chains->next[chains->last[first]] = i;
    chains->last[first] = i;
  }
  return outside;
}

/* The same for the kernels of combine_rows, which fail if an index is outside. */
static inline void mix_row_chains_of(mix_row_chains *chains, void *workspace, const mix_kernel_args *args,
                                     int64_t rows) {
  const mix_type *type = &args->input_types[1];
  const int64_t count = type->shape.dims[0];
  const int64_t outside = mix_row_chains_find(chains, workspace, args->inputs[1], type->dtype, count, rows);
  if (outside < count)
    mix_kernel_fail_index(args, outside, mix_row_index(args->inputs[1], type->dtype, outside), "the rows",
                          rows);
}
