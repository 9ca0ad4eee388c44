/* The engine with float16 sums on NEON with float16 arithmetic. */
#include "backend/cpu/gemm/fp16/engine.h"
FP16_ENGINE(mix_gemm_t4x16_neonfp16, 4, SHORT_CHAIN)
