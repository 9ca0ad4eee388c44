/* The engine with TDPBF16PS: tiles of 32 x 32. */
#define ENGINE mix_gemm_f32_amx
#include "backend/cpu/gemm/amx/engine_tiles.h"
