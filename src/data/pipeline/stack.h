/* Elements that are tensors, stacked along a new axis 0. */
#ifndef MIX_DATA_PIPELINE_STACK_H
#define MIX_DATA_PIPELINE_STACK_H

#include "data/pipeline/pipeline.h"

/* The elements `lists` (count >= 1), which must be alike, as one: each tensor (count, ...) of the elements' own dtype, in `buffers`
 * (zeroed at first). A reference for the caller; NULL with an error of `call`. */
mix_list *mix_stack_elements(mix_list *const *lists, int count, mix_buffers *buffers, const char *call);

#endif
