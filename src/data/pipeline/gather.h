/* Gathers rows of arrays: copied, or in place when they are consecutive. */
#pragma once

#include "base/structure.h"
#include "data/pipeline/pipeline.h"

/* Checks that all tensors have rank >= 1 and the same positive length of axis 0, and evaluates them. Returns
 * the length, or -1 with the error recorded. `structure` is that of the arrays, for messages; NULL: flat. */
int64_t mix_rows_check(int count, mix_tensor *const *arrays, const mix_structure *structure,
                       const char *call);
/* Rows `rows[0]`, `rows[1]`, ... (NULL: first, first + 1, ...) of each array as tensors (count, ...) in
 * `buffers`, or (...) if not `stacked`. Consecutive stacked rows are views of the array's own memory where
 * kernels can read it. NULL arrays give NULL items. `rounded`: for each array in float32 a 16-bit dtype to
 * which its rows are cast, or MIX_DTYPE_NONE; NULL: none. Returns a list with one reference, the caller's. */
mix_list *mix_rows_gather(int array_count, mix_tensor *const *arrays, const int64_t *rows, int64_t first,
                          int64_t count, bool stacked, const mix_dtype *rounded, mix_buffers *buffers);
