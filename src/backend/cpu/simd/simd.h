/* The vector vocabulary of the CPU's kernels. simd_generic.h, and a simd_*.h for each instruction set, define
 * it. A kernel is written once in these names: FILE_avx2.c includes simd_avx2.h, then the kernel's template.
 *
 * Vectors are of floats, or of doubles where SIMD_DOUBLE is defined as 1 before the include:
 *
 *   real, vec              an element, a vector; the operators of C work on vectors
 *   SIMD_BYTES, LANES      bytes and elements of a vector
 *   SIMD_REGISTERS, SIMD_MASKS
 *                          vector registers; 1 where instructions take a mask of lanes
 *   v_set(x)               all lanes x
 *   v_load, v_store        any address
 *   v_stream               past the caches, to an address aligned to vectors
 *   v_fma(a, b, c)         a * b + c, rounded once where the instruction set has that; never left to the
 *                          compiler, so that bits do not depend on its options
 *   V_ACCUMULATE(c, a, b), V_ACCUMULATE_BROADCAST(c, p, b)
 *                          c = v_fma(a, b, c), and the same with a = v_set(*p)
 *   v_part, v_first(n)     the first n <= LANES lanes: a mask in AVX-512, else the count
 *   v_load_part(p, part)   reads these lanes alone; the others are zero
 *   v_store_part(p, x, part)
 *   SIMD_FEW, few          elements of 16 bytes, and a vector of so many; 0: there is none (portable C,
 *                          doubles on x86)
 *   few_store, few_transpose(r)
 *                          to any address; of SIMD_FEW such vectors, in place
 *   v_horizontal_sum(x)    by halving: lane l takes lane l + LANES / 2, then lane l + LANES / 4, down to one
 *
 * Of floats alone:
 *
 *   vf                     the same as vec
 *   vi, vu                 32-bit integers, signed and unsigned (for sums that may overflow)
 *   vm                     a mask, the result of a comparison; m_and, m_or, m_not, m_all, m_any; m_load and
 *                          m_store from and to uint32 0 or 1
 *   vl                     64-bit integers, half as many lanes; l_set, l_multiply (of lanes' lower halves)
 *   v_load_TYPE, v_store_TYPE, v_stream_TYPE, v_round_TYPE
 *                          float16 (f16) and bfloat16 (bf16) in memory; _part: some lanes; _pair: two vectors
 *   v_load_part_or(p, part, other)
 *                          the other lanes are `other`
 *   v_load_bytes, v_store_bytes
 *                          uint8 as 32-bit integers; stores numbers below 256
 *   v_permute(x, lanes)    lane l is lane lanes[l] of x, modulo LANES
 *   v_to_integer(x)        nearest, ties to even; |x| < 2^22
 *   v_scale(x, n)          x * 2^n for integral n, |n| <= 252
 *   v_rsqrt_estimate, v_reciprocal_estimate
 *                          12 bits of 1 / sqrt(x) and 1 / x
 *   v_horizontal_max(x)    no lane is NaN */
#pragma once

#include "backend/cpu/simd/attributes.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifndef SIMD_DOUBLE
#define SIMD_DOUBLE 0
#endif

/* Names by storage dtype, for templates. */
#if SIMD_DOUBLE
typedef double real;
#define v_load_f64 v_load
#define v_load_f64_part v_load_part
#else
typedef float real;
#define v_load_f32 v_load
#define v_load_f32_part v_load_part
#endif
