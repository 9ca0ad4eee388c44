/* The engine with TDPBSSD: tiles of 32 x 32. */
#include <immintrin.h>
#define ENGINE mix_integer_amx
#include "backend/cpu/gemm/integer/engine_tiles.h"
