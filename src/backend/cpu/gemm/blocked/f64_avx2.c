/* The engine with float64 sums, AVX2 and FMA: tiles of 6 x 8. */
#define SIMD_DOUBLE 1
#include "backend/cpu/simd/simd_avx2.h"
#define ENGINE mix_gemm_f64_avx2
#include "backend/cpu/gemm/blocked/engine.h"
