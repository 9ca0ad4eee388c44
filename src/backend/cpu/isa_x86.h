/* The instruction sets of x86-64 that kernels use (isa.h says what the lists are). */
#pragma once

#include "base/processor.h"

#define MIX_SIMD_SETS(X, ...)                                                                                \
  X(avx512, MIX_CPU_AVX512, "vectors of 64 bytes", ##__VA_ARGS__)                                            \
  X(avx2, MIX_CPU_AVX2, "vectors of 32 bytes", ##__VA_ARGS__)

#define MIX_DOT_SETS(X, ...)                                                                                 \
  X(avx512vnni, MIX_CPU_AVX2 | MIX_CPU_AVX512 | MIX_CPU_AVX512_VNNI,                                         \
    "VPDPBUSD on vectors of 64 bytes, exact", ##__VA_ARGS__)                                                 \
  X(avxvnni, MIX_CPU_AVX2 | MIX_CPU_AVX_VNNI, "VPDPBUSD on vectors of 32 bytes, exact", ##__VA_ARGS__)
#define MIX_INTEGER_SETS(X)                                                                                  \
  X(amx, MIX_CPU_AVX2 | MIX_CPU_AVX512 | MIX_CPU_AMX_INT8, "TDPBSSD on tiles, exact")                        \
  MIX_DOT_SETS(X)                                                                                            \
  X(avx2, MIX_CPU_AVX2, "VPMADDWD of numbers widened to 16 bits, exact")                                     \
  X(generic, 0, "portable C, exact")

#define MIX_NEEDS_FP16 (MIX_CPU_AVX512 | MIX_CPU_AVX512_FP16)
#define MIX_NEEDS_PAIRS (MIX_CPU_AVX512 | MIX_CPU_AVX512_BF16 | MIX_CPU_BF16_PAIRS)
#define MIX_NEEDS_AMX (MIX_CPU_AVX512 | MIX_CPU_AVX512_BF16 | MIX_CPU_AMX_BF16)

#define MIX_PAIR_SETS(X, ...) X(avx512bf16, MIX_NEEDS_PAIRS, avx512, ##__VA_ARGS__)

/* In the order of choice. Of the blocked sums first those that `auto` takes for large products alone. */
#define MIX_SPECIAL_PRODUCTS(X)                                                                              \
  X(f16_t4x32, MIX_FLOAT16, mix_gemm_t4x32_avx512fp16, "f16_t4x32_avx512fp16", MIX_NEEDS_FP16, NULL,         \
    MIX_ACCUMULATE_BLOCKED,                                                                                  \
    "float16 sums in short chains, added in float32: 1.6 to 1.9 times float32's rate")                       \
  X(bf16_t4x32, MIX_BFLOAT16, mix_gemm_t4x32_avx512fp16, "bf16_t4x32_avx512fp16", MIX_NEEDS_FP16, NULL,      \
    MIX_ACCUMULATE_BLOCKED,                                                                                  \
    "re-biased to float16, sums in short chains, added in float32: 1.6 to 1.8 times float32's rate")         \
  X(f16_t4x16, MIX_FLOAT16, mix_gemm_t4x16_avx512fp16, "f16_t4x16_avx512fp16", MIX_NEEDS_FP16, NULL,         \
    MIX_ACCUMULATE_BLOCKED,                                                                                  \
    "float16 sums in short chains, added in float32: 1.5 to 1.8 times float32's rate")                       \
  X(bf16_t4x16, MIX_BFLOAT16, mix_gemm_t4x16_avx512fp16, "bf16_t4x16_avx512fp16", MIX_NEEDS_FP16, NULL,      \
    MIX_ACCUMULATE_BLOCKED,                                                                                  \
    "re-biased to float16, sums in short chains, added in float32: 1.5 to 1.7 times float32's rate")         \
  X(f16_amx, MIX_FLOAT16, mix_gemm_f32_amx, "f16_acc32_amx", MIX_NEEDS_AMX, NULL, MIX_ACCUMULATE_EXACT,      \
    "three bfloat16 products on tiles for one, exact: 1.5 to 2.4 times float32's rate")                      \
  X(bf16_amx, MIX_BFLOAT16, mix_gemm_f32_amx, "bf16_acc32_amx", MIX_NEEDS_AMX, NULL, MIX_ACCUMULATE_EXACT,   \
    "tiles: 4 to 6 times float32's rate")                                                                    \
  X(f32_amx, MIX_FLOAT32, mix_gemm_f32_amx, "f32_acc32_amx", MIX_NEEDS_AMX, NULL, MIX_ACCUMULATE_EXACT,      \
    "three bfloat16 products on tiles for one: float32 precision high is asked for")                         \
  X(bf16_avx512bf16, MIX_BFLOAT16, mix_gemm_f32_avx512bf16, "bf16_acc32_avx512bf16", MIX_NEEDS_PAIRS, NULL,  \
    MIX_ACCUMULATE_EXACT, "pairs multiplied by VDPBF16PS, float32's order of sums: 1.5 to 2 times its rate")

/* Sets in force, for tests, whose products are by other instructions than those of vectors. */
#define MIX_PRODUCT_SETS(X, ...)                                                                             \
  X(amx, MIX_CPU_AVX2 | MIX_NEEDS_AMX | MIX_CPU_AMX_INT8, ##__VA_ARGS__)                                     \
  X(avx512bf16, MIX_CPU_AVX2 | MIX_NEEDS_PAIRS, ##__VA_ARGS__)
