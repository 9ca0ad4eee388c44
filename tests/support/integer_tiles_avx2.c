/* The engine of int8 on tiles, over tile registers that are emulated: mix_integer_emulated_tiles, for
 * processors without AMX. Packing takes AVX2. */
#include <stdbool.h>

#include "support/emulated_tiles_avx2.h"
#define ENGINE mix_integer_emulated_tiles
#include "backend/cpu/gemm/integer/engine_tiles.h"
