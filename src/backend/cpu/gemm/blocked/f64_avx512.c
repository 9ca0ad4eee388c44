/* float64 sums, AVX-512: tiles of 14 x 16. */
#define GEMM_REAL double
#define GEMM_DOUBLE 1
#define GEMM_ENGINE mix_gemm_f64_avx512
#define GEMM_DEPTH 256
#define GEMM_ROWS_BLOCK 2048
#define GEMM_COLUMNS_BLOCK 768
#include "backend/cpu/gemm/blocked/engine.h"
