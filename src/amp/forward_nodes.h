/* Which nodes of a training step are its forward pass. */
#pragma once

#include "amp/rewrite.h"

/* A byte for each node: 1 for those of the forward pass and of what follows it up to the loss (whole: for
 * all). A graph without a backward pass is all forward. mix_free it; NULL with the error recorded. */
char *mix_amp_forward_nodes(const mix_amp_result *result, bool whole);
