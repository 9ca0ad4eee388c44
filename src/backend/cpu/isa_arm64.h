/* The instruction sets of arm64 that kernels use (isa.h says what the lists are). */
#pragma once

#include "base/processor.h"

#define MIX_SIMD_SETS(X, ...) X(neon, MIX_CPU_NEON, "vectors of 16 bytes", ##__VA_ARGS__)
#define MIX_DOT_SETS(X, ...)
#define MIX_INTEGER_SETS(X) X(generic, 0, "portable C, exact")
#define MIX_SPECIAL_PRODUCTS(X)
#define MIX_PRODUCT_SETS(X, ...)
