/* Rows of arrays, copied side by side or, where they are neighbours, as they lie. */
#ifndef MIX_DATA_PIPELINE_GATHER_H
#define MIX_DATA_PIPELINE_GATHER_H

#include "data/pipeline/pipeline.h"

/* All tensors have rank >= 1 and the same, positive, length of axis 0; evaluates them. The length, -1 with the error recorded. */
int64_t mix_rows_check(int count, mix_tensor *const *arrays, const char *call);
/* Rows `rows[0]`, `rows[1]`, ... (NULL: first, first + 1, ...) of each array as tensors (count, ...) in `buffers`, or (...) where not
 * `stacked`; stacked neighbours are parts of the array's own memory where kernels can read them there. NULL arrays give NULL items.
 * A list with one reference, the caller's. */
mix_list *mix_rows_gather(int array_count, mix_tensor *const *arrays, const int64_t *rows, int64_t first, int64_t count, bool stacked,
                          mix_buffers *buffers);

#endif
