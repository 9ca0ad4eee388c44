/* The instruction sets of arm64 that kernels use (isa.h says what the lists are). */
#pragma once

#include "base/processor.h"

#define MIX_SIMD_SETS(X, ...) X(neon, MIX_CPU_NEON, "vectors of 16 bytes", ##__VA_ARGS__)
#define MIX_DOT_SETS(X, ...)                                                                                 \
  X(neondot, MIX_CPU_NEON | MIX_CPU_NEON_DOT, "SDOT, exact: not measured", ##__VA_ARGS__)
#define MIX_INTEGER_SETS(X)                                                                                  \
  MIX_DOT_SETS(X)                                                                                            \
  X(neon, MIX_CPU_NEON, "SMULL and SADALP, exact: not measured")                                             \
  X(generic, 0, "portable C, exact")

/* None by itself, because nobody has measured whether it gains: blocked sums where they are asked for, pairs
 * by MIXTAPE_BF16_PAIRS. BFMLALT and BFMLALB multiply as many numbers an instruction as FMLA of float32. */
#define MIX_NEEDS_FP16 (MIX_CPU_NEON | MIX_CPU_NEON_FP16)
#define MIX_NEEDS_PAIRS (MIX_CPU_NEON | MIX_CPU_NEON_BF16 | MIX_CPU_BF16_PAIRS)
#define MIX_PAIR_SETS(X, ...) X(neonbf16, MIX_NEEDS_PAIRS, neon, ##__VA_ARGS__)
#define MIX_SPECIAL_PRODUCTS(X)                                                                              \
  X(f16_t4x16, MIX_FLOAT16, mix_gemm_t4x16_neonfp16, "f16_t4x16_neonfp16", MIX_NEEDS_FP16, NULL,             \
    MIX_ACCUMULATE_BLOCKED, "float16 sums in short chains, added in float32: not measured")                  \
  X(bf16_t4x16, MIX_BFLOAT16, mix_gemm_t4x16_neonfp16, "bf16_t4x16_neonfp16", MIX_NEEDS_FP16, NULL,          \
    MIX_ACCUMULATE_BLOCKED, "re-biased to float16, sums in short chains, added in float32: not measured")    \
  X(bf16_neonbf16, MIX_BFLOAT16, mix_gemm_f32_neonbf16, "bf16_acc32_neonbf16", MIX_NEEDS_PAIRS, NULL,        \
    MIX_ACCUMULATE_EXACT, "pairs multiplied by BFMLALT and BFMLALB, float32's order of sums: not measured")

/* Sets in force, for tests, whose products are by other instructions than those of vectors. */
#define MIX_PRODUCT_SETS(X, ...) X(neonbf16, MIX_NEEDS_PAIRS, ##__VA_ARGS__)
