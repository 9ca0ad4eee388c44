/* A host program may round upwards, flush subnormals or trap: the library computes in modes of its own. */
#pragma once

#include "base/machine.h"

static inline mix_float_control mix_float_modes_begin(mix_float_control modes) {
  const mix_float_control host = mix_float_control_get();
  mix_float_control_set(modes);
  return host;
}
static inline void mix_float_modes_end(const mix_float_control *host) { mix_float_control_set(*host); }

/* To the end of the block, whatever leaves it: rounding to nearest, subnormals, no traps. Functions of the
 * user that are called in it have these modes too. */
#define MIX_OWN_FLOAT_MODES                                                                                  \
  __attribute__((cleanup(mix_float_modes_end), unused)) const mix_float_control host_modes =                 \
      mix_float_modes_begin(MIX_FLOAT_DEFAULT)
