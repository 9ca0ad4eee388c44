/* The engine with VPDPBUSD on vectors of 32 bytes: tiles of 6 x 16. */
#include <immintrin.h>
#define SIMD_BYTES 32
#define VECTORS 2
#define GROUP 4
#define OFFSET 128
#define MULTIPLY_ADD(sums, a, b) ((lanes)_mm256_dpbusd_avx_epi32((__m256i)(sums), (__m256i)(b), (__m256i)(a)))
#define PACKING "backend/cpu/gemm/integer/pack_avx2.h"
#define ENGINE mix_integer_avxvnni
#include "backend/cpu/gemm/integer/engine.h"
