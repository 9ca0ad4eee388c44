/* The test of int8 products names an engine of emulated tiles, whose packing takes AVX2: here it is empty,
 * and no test runs it. */
#include "backend/cpu/gemm/integer/integer.h"

extern const mix_integer_engine mix_integer_emulated_tiles;
const mix_integer_engine mix_integer_emulated_tiles = {0};
