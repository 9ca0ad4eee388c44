/* Creation of variables inside the library. */
#pragma once

#include "graph/variable.h"

/* mix_variable_with of zeros, whose pages take no memory until they are written: of values to be read from a
 * file, which may say any shape. */
mix_variable *mix_variable_zeros(mix_dtype dtype, mix_shape shape, const mix_variable_options *options);
