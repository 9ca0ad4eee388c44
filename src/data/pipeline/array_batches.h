/* Batches of whole arrays for fit, evaluate and predict: an order of rows for each epoch, and their gathering into buffers that are used
 * again and again; rows in the order kept are read where they lie. */
#ifndef MIX_DATA_PIPELINE_ARRAY_BATCHES_H
#define MIX_DATA_PIPELINE_ARRAY_BATCHES_H

#include <mixtape/tensor.h>

typedef struct mix_batches mix_batches; /* an object: mix_release */

typedef enum mix_batch_order {
  MIX_ORDER_KEPT,    /* rows as they lie */
  MIX_ORDER_ROWS,    /* a permutation of the rows (fit's shuffle=True) */
  MIX_ORDER_BATCHES, /* whole batches of neighbouring rows, permuted; a short last one stays last (shuffle="batch") */
} mix_batch_order;

/* Rows first ... first + rows - 1 of the arrays (rows -1: all from first on), `batch_size` at a time. Arrays may be NULL (no sample
 * weights); the others must have the same length: ValueError, as for batch_size < 1 and for no rows. `call` is for messages ("fit"). Starts
 * in the order kept. Scoped. */
mix_batches *mix_batches_new(int count, mix_tensor *const *arrays, int64_t first, int64_t rows, int64_t batch_size, const char *call);
int64_t mix_batches_rows(const mix_batches *batches);
/* Batches in an epoch: ceil(rows / batch_size). */
int64_t mix_batches_count(const mix_batches *batches);
/* Rows of batch `index`: batch_size, or what is left for the last. */
int64_t mix_batches_size(const mix_batches *batches, int64_t index);
/* Draws the order of an epoch: a function of (seed, epoch). */
bool mix_batches_begin(mix_batches *batches, mix_batch_order order, uint64_t seed, uint64_t epoch);
/* Batch `index` (from 0) of the epoch: a list of finished tensors (batch, ...), NULL where the array is. Borrowed: the next call releases
 * it and uses its memory again, unless someone retained it or a tensor of it. NULL with the error recorded on failure. */
mix_list *mix_batches_get(mix_batches *batches, int64_t index);

#endif
