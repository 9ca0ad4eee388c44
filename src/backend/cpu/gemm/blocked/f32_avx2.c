/* float32 sums, AVX2 and FMA: tiles of 6 x 16. */
#define GEMM_REAL float
#define GEMM_DOUBLE 0
#define GEMM_ENGINE mix_gemm_f32_avx2
#define GEMM_DEPTH 384
#define GEMM_ROWS_BLOCK 2048
#define GEMM_COLUMNS_BLOCK 1024
#include "backend/cpu/gemm/blocked/engine.h"
