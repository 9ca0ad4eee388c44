/* Batches of whole arrays for fit, evaluate and predict. Each epoch has a row order; batches are gathered
 * into buffers that are reused. Rows in storage order are read in place where possible. Where the caller's
 * plans leave a core free, a thread gathers the batches that come next. */
#pragma once

#include <mixtape/tensor.h>

typedef struct mix_batches mix_batches; /* an object: mix_release */

typedef enum mix_batch_order {
  MIX_ORDER_KEPT, /* rows in storage order */
  MIX_ORDER_ROWS, /* a permutation of the rows (fit's shuffle=True) */
  /* whole batches of consecutive rows, permuted; a smaller last one stays last (shuffle="batch") */
  MIX_ORDER_BATCHES,
} mix_batch_order;

/* Rows first to first + rows - 1 of the arrays (rows -1: all from `first` on; NULL: no sample weights),
 * `batch_size` at a time, in storage order. ValueError for unequal lengths, batch_size < 1 or no rows, which
 * names `call` ("fit"). Scoped. */
mix_batches *mix_batches_new(int count, mix_tensor *const *arrays, int64_t first, int64_t rows,
                             int64_t batch_size, const char *call);
/* The whole arrays, borrowed. */
mix_list *mix_batches_arrays(const mix_batches *batches);
int64_t mix_batches_rows(const mix_batches *batches);
/* Batches in an epoch: ceil(rows / batch_size), or more, of which the last ones have no rows. */
int64_t mix_batches_count(const mix_batches *batches);
/* Rows of batch `index`: batch_size, or the remainder for the last, or none. */
int64_t mix_batches_size(const mix_batches *batches, int64_t index);
/* From now on mix_batches_get gives only this rank's share of each batch: consecutive rows, perhaps none. */
void mix_batches_share(mix_batches *batches);
/* From now on whole batches that are gathered have the rows of array `index`, in float32, in this 16-bit
 * dtype (MIX_DTYPE_NONE: as they are). */
void mix_batches_round(mix_batches *batches, int index, mix_dtype dtype);
/* From now on there are at least `count` batches. */
void mix_batches_extend(mix_batches *batches, int64_t count);
/* Draws the row order of an epoch, a function of (seed, epoch). */
bool mix_batches_begin(mix_batches *batches, mix_batch_order order, uint64_t seed, uint64_t epoch);
/* Ends the thread that gathers; mix_batches_get goes on without. */
void mix_batches_stop(mix_batches *batches);
/* The row of the arrays that is row `row` of batch `index`, of this rank's share. */
int64_t mix_batches_row(const mix_batches *batches, int64_t index, int64_t row);
/* Batch `index` (from 0) of the epoch: a list of evaluated tensors (batch, ...), NULL where the array is
 * NULL. Borrowed: the next call releases it and reuses its memory, unless it or one of its tensors was
 * retained. NULL with the error recorded. */
mix_list *mix_batches_get(mix_batches *batches, int64_t index);
