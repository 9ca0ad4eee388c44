/* The engine with VPMADDWD, of numbers widened to 16 bits: tiles of 6 x 16. Two products of int8 fit into a
 * lane. (VPMADDUBSW would saturate.) */
#include <immintrin.h>
#define SIMD_BYTES 32
#define VECTORS 2
#define GROUP 2
#define OFFSET 0
#define MULTIPLY_ADD(sums, a, b) ((sums) + (lanes)_mm256_madd_epi16((__m256i)(b), (__m256i)(a)))
#define PACKING "backend/cpu/gemm/integer/pack_avx2.h"
#define ENGINE mix_integer_avx2
#include "backend/cpu/gemm/integer/engine.h"
