/* The engine with float32 sums, any processor: tiles of 4 x 8. */
#include "backend/cpu/simd/simd_generic.h"
#define ENGINE mix_gemm_f32_generic
#include "backend/cpu/gemm/blocked/engine.h"
