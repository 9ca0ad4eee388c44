/* Creation of variables inside the library. */
#pragma once

#include "graph/variable.h"

/* mix_variable_with of zeros, whose pages take no memory until they are written: of values to be read from a
 * file, which may say any shape. */
mix_variable *mix_variable_zeros(mix_dtype dtype, mix_shape shape, const mix_variable_options *options);

/* mix_variable_with of an initial value that nobody else uses: its memory becomes the variable's where
 * nothing else holds it, so that two of them never exist at once. */
mix_variable *mix_variable_take(const mix_variable_options *options);
