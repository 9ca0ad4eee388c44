/* Arrays of float32 as 16 bits. */
#pragma once

#include <mixtape/dtype.h>

/* The bits that a cast to this 16-bit dtype gives. Touches exactly `count` elements of both. */
void mix_round_floats(uint16_t *to, const float *from, mix_dtype dtype, int64_t count);
