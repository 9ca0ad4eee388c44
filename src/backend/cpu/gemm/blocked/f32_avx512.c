/* The engine with float32 sums, AVX-512: tiles of 14 x 32. */
#include "backend/cpu/simd/simd_avx512.h"
#define ENGINE mix_gemm_f32_avx512
#include "backend/cpu/gemm/blocked/engine.h"
