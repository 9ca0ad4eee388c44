/* The engine with VDPBF16PS: tiles of 14 x 32. */
#include "backend/cpu/simd/simd_avx512.h"

#include "backend/cpu/gemm/bf16/pack_avx512.h"
#undef V_ACCUMULATE
#undef V_ACCUMULATE_BROADCAST
#define V_ACCUMULATE(c, a, b) __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(b), "v"(a))
#define V_ACCUMULATE_BROADCAST(c, p, b) __asm__("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*(p)))
SIMD_INLINE vec pair_fma(vec a, vec b, vec c) { return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b); }
#define ENGINE mix_gemm_f32_avx512bf16
#define WIDENING mix_gemm_f32_avx512
#include "backend/cpu/gemm/bf16/engine.h"
