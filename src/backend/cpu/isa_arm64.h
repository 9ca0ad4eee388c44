/* The instruction sets of arm64 that kernels use (isa_x86.h says what the lists are). */
#pragma once

#define MIX_VECTOR_SETS(X, ...) X(generic, 0, "portable C: no vector instructions in force", ##__VA_ARGS__)
#define MIX_INTEGER_SETS(X) X(generic, 0, "portable C, exact")
#define MIX_SPECIAL_PRODUCTS(X)
