/* Draws one image of the built-in digits. */
#pragma once

#include <stdint.h>

#define MIX_DIGIT_SIDE 28
#define MIX_DIGIT_PIXELS (MIX_DIGIT_SIDE * MIX_DIGIT_SIDE)
/* Test images have indices from here on. */
#define MIX_DIGIT_TEST_START ((uint64_t)1 << 40)

/* Draws image `index` of the set `seed` (28 x 28 bytes, ink is 255) and returns its digit. */
uint8_t mix_digit_draw(uint64_t seed, uint64_t index, uint8_t pixels[MIX_DIGIT_PIXELS]);
