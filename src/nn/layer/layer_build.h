/* How layers are built. */
#pragma once

#include "nn/layer/layer.h"

/* Before the first call or build: a layer that infers its dtype takes that of its first input permanently,
 * and one with a map of policies that of its path. False with the error recorded. */
bool mix_layer_choose_dtype(mix_layer *layer, mix_dtype input);
/* The path that maps see of the layer whose call or build runs on this thread; NULL: none runs. Returns the
 * former one, to be restored. */
const char *mix_map_scope_set(const char *path);
/* Of a layer that runs under this path of the graph. */
static inline const char *mix_map_path(const mix_layer *layer, const char *path) {
  return layer->map_path ? layer->map_path : path;
}
/* Builds the layer for its first inputs, which are a list or one tensor, and for the arguments that it names
 * (NULL: none). False with the error recorded. */
bool mix_layer_build_for(mix_layer *layer, mix_list *inputs, mix_list *arguments, bool are_list);
/* Its name behind those of the calls around: "outer/dense_1". NULL: out of memory, recorded. */
const char *mix_layer_path_in_scope(const mix_layer *layer);
