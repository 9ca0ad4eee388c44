/* float64 sums on any processor: tiles of 4 x 4. */
#define GEMM_REAL double
#define GEMM_DOUBLE 1
#define GEMM_ENGINE mix_gemm_f64_generic
#define GEMM_DEPTH 192
#define GEMM_ROWS_BLOCK 2048
#define GEMM_COLUMNS_BLOCK 768
#include "backend/cpu/gemm/blocked/engine.h"
