/* Attributes and pragmas of kernels: inlining, unrolling, opaque values. */
#pragma once

#define SIMD_INLINE static inline __attribute__((always_inline))

/* Unrolls the next loop completely; its count, at most 64, is a constant after inlining. */
#ifdef __clang__
#define SIMD_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SIMD_UNROLL _Pragma("GCC unroll 64")
#endif

/* Hides where a pointer comes from. Else compilers derive many pointers from it before a loop, and spill
 * them. */
#define SIMD_OPAQUE(pointer) __asm__("" : "+r"(pointer))
