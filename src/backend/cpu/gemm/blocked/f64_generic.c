/* The engine with float64 sums, any processor: tiles of 4 x 4. */
#define SIMD_DOUBLE 1
#include "backend/cpu/simd/simd_generic.h"
#define ENGINE mix_gemm_f64_generic
#include "backend/cpu/gemm/blocked/engine.h"
