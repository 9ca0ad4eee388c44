/* float64 sums, AVX2 and FMA: tiles of 6 x 8. */
#define GEMM_REAL double
#define GEMM_DOUBLE 1
#define GEMM_ENGINE mix_gemm_f64_avx2
#define GEMM_DEPTH 192
#define GEMM_ROWS_BLOCK 2048
#define GEMM_COLUMNS_BLOCK 768
#include "backend/cpu/gemm/blocked/engine.h"
