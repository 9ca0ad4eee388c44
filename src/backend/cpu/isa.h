/* The instruction sets of this architecture, from which the tables of kernels are made.
 *
 *   MIX_SIMD_SETS(X, ...)    X(set, features, description of its products, ...): sets with a vocabulary of
 *                            vectors (simd/), best first
 *   MIX_VECTOR_SETS(X, ...)  these, and at the end the one that every processor has
 *   MIX_SPECIAL_PRODUCTS(X)  X(id, dtype, engine, name, features, kernel that it widens for, accumulation,
 *                            description): products by other instructions, in the order of choice
 *   MIX_PAIR_SETS(X, ...)    X(set, features, set of its vectors): pairs of bfloat16, for their own kernels
 *   MIX_INTEGER_SETS(X)      X(set, features, description): products of int8, best first; of MIX_DOT_SETS
 *                            those that have instructions for these alone */
#pragma once

#if defined(__aarch64__)
#include "backend/cpu/isa_arm64.h"
#else
#include "backend/cpu/isa_x86.h"
#endif

#define MIX_VECTOR_SETS(X, ...)                                                                              \
  MIX_SIMD_SETS(X, ##__VA_ARGS__)                                                                            \
  X(generic, 0, "portable C: no vector instructions in force", ##__VA_ARGS__)
