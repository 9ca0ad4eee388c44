/* The instruction sets of arm64 that kernels use (isa.h says what the lists are). */
#pragma once

#include "base/processor.h"

#define MIX_SIMD_SETS(X, ...) X(neon, MIX_CPU_NEON, "vectors of 16 bytes", ##__VA_ARGS__)
#define MIX_DOT_SETS(X, ...)
#define MIX_INTEGER_SETS(X) X(generic, 0, "portable C, exact")

/* Only where MIXTAPE_BF16_PAIRS asks for it: nobody has measured whether it gains. */
#define MIX_NEEDS_PAIRS (MIX_CPU_NEON | MIX_CPU_NEON_BF16 | MIX_CPU_BF16_PAIRS)
#define MIX_SPECIAL_PRODUCTS(X)                                                                              \
  X(bf16_neonbf16, MIX_BFLOAT16, mix_gemm_f32_neonbf16, "bf16_acc32_neonbf16", MIX_NEEDS_PAIRS, NULL,        \
    MIX_ACCUMULATE_EXACT, "pairs multiplied by BFMLALT and BFMLALB, float32's order of sums: not measured")

/* Sets in force, for tests, whose products are by other instructions than those of vectors. */
#define MIX_PRODUCT_SETS(X, ...) X(neonbf16, MIX_NEEDS_PAIRS, ##__VA_ARGS__)
