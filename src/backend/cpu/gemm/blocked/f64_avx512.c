/* The engine with float64 sums, AVX-512: tiles of 14 x 16. */
#define SIMD_DOUBLE 1
#include "backend/cpu/simd/simd_avx512.h"
#define ENGINE mix_gemm_f64_avx512
#include "backend/cpu/gemm/blocked/engine.h"
