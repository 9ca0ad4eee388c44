/* The class of random generators (mixtape/random.h). */
#ifndef MIX_COMPILE_GENERATOR_H
#define MIX_COMPILE_GENERATOR_H

#include "base/object.h"

extern const mix_class mix_generator_class;

#endif
