/* The engine with float64 sums, NEON: tiles of 8 x 4. */
#define SIMD_DOUBLE 1
#include "backend/cpu/simd/simd_neon.h"
#define ENGINE mix_gemm_f64_neon
#include "backend/cpu/gemm/blocked/engine.h"
