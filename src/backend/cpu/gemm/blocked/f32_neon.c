/* The engine with float32 sums, NEON: tiles of 8 x 8. */
#include "backend/cpu/simd/simd_neon.h"
#define ENGINE mix_gemm_f32_neon
#include "backend/cpu/gemm/blocked/engine.h"
