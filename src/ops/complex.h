/* Complex numbers, which no dtype holds: a tensor may stand for its real and its imaginary part. Only what is
 * declared here reads it; any other operation, and reading its value, is an error that names it. */
#pragma once

#include <mixtape/tensor.h>

/* Of two tensors of one floating dtype and shape, which the result has too. Gradients flow to its parts. */
mix_tensor *mix_complex(mix_tensor *real, mix_tensor *imaginary);
bool mix_is_complex(const mix_tensor *x);
/* Of complex and of real numbers. */
mix_tensor *mix_real_part(mix_tensor *x);
mix_tensor *mix_imaginary_part(mix_tensor *x);
mix_tensor *mix_conjugate(mix_tensor *x);
mix_tensor *mix_magnitude(mix_tensor *x);
