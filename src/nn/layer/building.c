/* The layer whose `build` runs on the thread. */
#include "nn/layer/building.h"

static _Thread_local const mix_layer *building;

const mix_layer *mix_layer_building(void) { return building; }

const mix_layer *mix_layer_building_set(const mix_layer *layer) {
  const mix_layer *former = building;
  building = layer;
  return former;
}
