/* Arrays of a fit that stay in the memory of a device. */
#pragma once

#include "data/pipeline/array_batches.h"
#include <mixtape/object.h>

typedef struct mix_resident mix_resident;
/* Copies the arrays to the device if it has memory of its own and they take at most a quarter of what is free
 * of it. NULL: they stay on the host; with the error recorded, a failure. */
mix_resident *mix_resident_new(mix_list *arrays);
void mix_resident_free(mix_resident *resident);
/* Arrays of several passes: the first one copies them, if it does. Zeroed at first; the resident is the
 * owner's to free. */
typedef struct mix_kept_arrays {
  bool asked;
  mix_resident *resident;
} mix_kept_arrays;
mix_resident *mix_resident_keep(mix_kept_arrays *kept, mix_list *arrays);
/* Batch `index` of the epoch: the device gathers the rows that mix_batches_get would gather. Scoped. */
mix_list *mix_resident_batch(mix_resident *resident, const mix_batches *batches, int64_t index);
