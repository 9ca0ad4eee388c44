/* float32 sums, AVX-512: tiles of 14 x 32. */
#define GEMM_REAL float
#define GEMM_DOUBLE 0
#define GEMM_ENGINE mix_gemm_f32_avx512
#define GEMM_DEPTH 384
#define GEMM_ROWS_BLOCK 2048
#define GEMM_COLUMNS_BLOCK 1024
#include "backend/cpu/gemm/blocked/engine.h"
