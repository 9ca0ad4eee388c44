/* The engine with float32 sums, AVX2 and FMA: tiles of 6 x 16. */
#include "backend/cpu/simd/simd_avx2.h"
#define ENGINE mix_gemm_f32_avx2
#include "backend/cpu/gemm/blocked/engine.h"
