/* The engine with float16 sums on AVX512-FP16. */
#include "backend/cpu/gemm/fp16/engine.h"
FP16_ENGINE(mix_gemm_t4x16_avx512fp16, 4, SHORT_CHAIN)
FP16_ENGINE(mix_gemm_t4x32_avx512fp16, 4, 2 * SHORT_CHAIN)
