/* Stacks elements along a new axis 0. */
#pragma once

#include "data/pipeline/pipeline.h"

/* Are the elements nested alike, with as many tensors? Else an error of `call`. */
bool mix_elements_alike(mix_list *const *lists, int count, const char *call);
/* Stacks the elements `lists` (count >= 1), which must have equal shapes and dtypes: each tensor becomes
 * (count, ...) in `buffers` (initially zeroed). A reference for the caller; NULL with an error of `call`. */
mix_list *mix_stack_elements(mix_list *const *lists, int count, mix_buffers *buffers, const char *call);
