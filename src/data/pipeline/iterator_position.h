/* Where a run is in a data set, as values of a checkpoint: the memory of its steps (seeds and passes of shuffles) as the running pass began,
 * and the elements drawn since, which are drawn again and passed over when another process goes on there. */
#ifndef MIX_DATA_PIPELINE_ITERATOR_POSITION_H
#define MIX_DATA_PIPELINE_ITERATOR_POSITION_H

#include "formats/archive.h"
#include <mixtape/dataset.h>

/* Under `name`. `iterator`: the running pass; NULL: the next one has not begun. */
bool mix_iterator_position_put(mix_archive *archive, const char *name, mix_dataset *dataset, mix_iterator *iterator);
/* Does it fit the data set? ValueError where its steps are others. Changes nothing. */
bool mix_iterator_position_fits(mix_archive *archive, const char *name, mix_dataset *dataset);
/* Brings the data set back there; `*drawn` elements are to be passed over. False, without a change to it, where it does not fit. */
bool mix_iterator_position_get(mix_archive *archive, const char *name, mix_dataset *dataset, int64_t *drawn);

#endif
