/* The engine with VPDPBUSD on vectors of 64 bytes: tiles of 6 x 64. */
#include <immintrin.h>
#define SIMD_BYTES 64
#define VECTORS 4
#define GROUP 4
#define OFFSET 128
#define MULTIPLY_ADD(sums, a, b) ((lanes)_mm512_dpbusd_epi32((__m512i)(sums), (__m512i)(b), (__m512i)(a)))
#define PACKING "backend/cpu/gemm/integer/pack_avx2.h"
#define ENGINE mix_integer_avx512vnni
#include "backend/cpu/gemm/integer/engine.h"
