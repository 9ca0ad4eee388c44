/* The position of a run in a data set, as values of a checkpoint: the state of its steps (seeds and passes of
 * shuffles) when the running pass began, and the number of elements drawn since. A resumed run draws and
 * discards that many elements. */
#pragma once

#include "formats/archive.h"
#include <mixtape/dataset.h>

/* Writes the position under `name`. `iterator` is the running pass; NULL: the next pass has not begun. */
bool mix_iterator_position_put(mix_archive *archive, const char *name, mix_dataset *dataset,
                               mix_iterator *iterator);
/* Checks that the position fits the data set. ValueError if its steps differ. Changes nothing. */
bool mix_iterator_position_fits(mix_archive *archive, const char *name, mix_dataset *dataset);
/* Restores the data set's state; `*drawn` elements are to be skipped. False if the position does not fit; the
 * data set is then unchanged. */
bool mix_iterator_position_get(mix_archive *archive, const char *name, mix_dataset *dataset, int64_t *drawn);
