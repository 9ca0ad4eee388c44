/* How layers are built. */
#pragma once

#include "nn/layer/layer.h"

/* A layer that infers its dtype takes that of its first input permanently. */
void mix_layer_infer_dtype(mix_layer *layer, mix_dtype input);
/* Builds the layer for its first inputs, which are a list or one tensor, and for the arguments that it names
 * (NULL: none). False with the error recorded. */
bool mix_layer_build_for(mix_layer *layer, mix_list *inputs, mix_list *arguments, bool are_list);
/* Its name behind those of the calls around: "outer/dense_1". NULL: out of memory, recorded. */
const char *mix_layer_path_in_scope(const mix_layer *layer);
