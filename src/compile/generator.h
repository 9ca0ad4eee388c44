/* The class of random generators (mixtape/random.h). */
#pragma once

#include "base/object.h"

extern const mix_class mix_generator_class;

/* The state from which the next numbers come, which this advances: what a random op would get. */
mix_tensor *mix_generator_draw(mix_generator *generator);
