/* Whose `build` runs. */
#pragma once

#include <mixtape/layer.h>

/* The innermost layer whose `build` runs on this thread, borrowed; NULL: none. */
const mix_layer *mix_layer_building(void);
/* Returns the former one, to be restored. */
const mix_layer *mix_layer_building_set(const mix_layer *layer);
