/* Whose `build` runs. */
#ifndef MIX_NN_LAYER_BUILDING_H
#define MIX_NN_LAYER_BUILDING_H

#include <mixtape/layer.h>

/* The innermost layer whose `build` runs on this thread, borrowed; NULL: none. */
const mix_layer *mix_layer_building(void);
/* Returns the former one, to be restored. */
const mix_layer *mix_layer_building_set(const mix_layer *layer);

#endif
