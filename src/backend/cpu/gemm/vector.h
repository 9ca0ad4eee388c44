/* Vectors of GEMM_REAL (float or double; the including file defines it, and GEMM_DOUBLE as 0 or 1) of the width that the file is
 * compiled for. The few operations that the templates of this folder need; arithmetic is the compiler's own on vector types. */
#ifndef MIX_BACKEND_CPU_GEMM_VECTOR_H
#define MIX_BACKEND_CPU_GEMM_VECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, TILE_ROWS = 14, SMALL_N_ROWS = 2, SMALL_M_STEPS = 8 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32, TILE_ROWS = 6, SMALL_N_ROWS = 1, SMALL_M_STEPS = 4 };
#else
enum { VECTOR_BYTES = 16, TILE_ROWS = 4, SMALL_N_ROWS = 1, SMALL_M_STEPS = 4 };
#endif
enum { LANES = VECTOR_BYTES / sizeof(GEMM_REAL), TILE_COLUMNS = 2 * LANES, SMALL_N_COLUMNS = 12, SMALL_N_MAX_COLUMNS = 15 };

#define GEMM_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define GEMM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define GEMM_UNROLL _Pragma("GCC unroll 64")
#endif

/* Keeps the compiler from deriving many pointers from this one before a loop, and spilling them. */
#define GEMM_OPAQUE(pointer) __asm__("" : "+r"(pointer))

typedef GEMM_REAL vector __attribute__((vector_size(VECTOR_BYTES)));
typedef GEMM_REAL vector_unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(GEMM_REAL)), may_alias));

GEMM_INLINE vector load(const GEMM_REAL *p) { return *(const vector_unaligned *)p; }
GEMM_INLINE void store(GEMM_REAL *p, vector v) { *(vector_unaligned *)p = v; }

/* a * b + c, fused to one rounding where the instruction set has it: never left to the compiler, so that bits do not depend on its options. */
#if defined(__AVX512F__) && GEMM_DOUBLE
GEMM_INLINE vector broadcast(double x) { return (vector)_mm512_set1_pd(x); }
GEMM_INLINE vector multiply_add(vector a, vector b, vector c) {
  return (vector)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#elif defined(__AVX512F__)
GEMM_INLINE vector broadcast(float x) { return (vector)_mm512_set1_ps(x); }
GEMM_INLINE vector multiply_add(vector a, vector b, vector c) { return (vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
#elif defined(__AVX2__) && GEMM_DOUBLE
GEMM_INLINE vector broadcast(double x) { return (vector)_mm256_set1_pd(x); }
GEMM_INLINE vector multiply_add(vector a, vector b, vector c) {
  return (vector)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#elif defined(__AVX2__)
GEMM_INLINE vector broadcast(float x) { return (vector)_mm256_set1_ps(x); }
GEMM_INLINE vector multiply_add(vector a, vector b, vector c) { return (vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
#else
GEMM_INLINE vector broadcast(GEMM_REAL x) { return x - (vector){0}; }
GEMM_INLINE vector multiply_add(vector a, vector b, vector c) { return a * b + c; }
#endif

/* c += a * b, and the same with `a` broadcast from memory. AVX-512 does that in one instruction, which no compiler emits where
 * `a` is used twice; in assembly both, since compilers otherwise move sums from register to register among them. */
#if defined(__AVX512F__) && GEMM_DOUBLE
#define ACCUMULATE(c, a, b) __asm__("vfmadd231pd %2, %1, %0" : "+v"(c) : "v"(b), "v"(a))
#define ACCUMULATE_FROM(c, a, b) __asm__("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(c) : "v"(b), "m"(*(a)))
#elif defined(__AVX512F__)
#define ACCUMULATE(c, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(b), "v"(a))
#define ACCUMULATE_FROM(c, a, b) __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*(a)))
#else
#define ACCUMULATE(c, a, b) ((c) = multiply_add(a, b, c))
#define ACCUMULATE_FROM(c, a, b) ACCUMULATE(c, broadcast(*(a)), b)
#endif

#if defined(__AVX512F__)
#define load_some(p, count, mask) load_lanes(p, mask)
#endif
#if defined(__AVX512F__) && GEMM_DOUBLE
typedef __mmask8 lane_mask;
GEMM_INLINE lane_mask first_lanes(int64_t count) { return count >= LANES ? 0xff : (lane_mask)((1u << count) - 1); }
GEMM_INLINE vector load_lanes(const double *p, lane_mask m) { return (vector)_mm512_maskz_loadu_pd(m, p); }
GEMM_INLINE void store_lanes(double *p, lane_mask m, vector v) { _mm512_mask_storeu_pd(p, m, (__m512d)v); }
GEMM_INLINE void stream(double *p, vector v) { _mm512_stream_pd(p, (__m512d)v); }
#elif defined(__AVX512F__)
typedef __mmask16 lane_mask;
GEMM_INLINE lane_mask first_lanes(int64_t count) { return count >= LANES ? 0xffff : (lane_mask)((1u << count) - 1); }
GEMM_INLINE vector load_lanes(const float *p, lane_mask m) { return (vector)_mm512_maskz_loadu_ps(m, p); }
GEMM_INLINE void store_lanes(float *p, lane_mask m, vector v) { _mm512_mask_storeu_ps(p, m, (__m512)v); }
GEMM_INLINE void stream(float *p, vector v) { _mm512_stream_ps(p, (__m512)v); }
#else
typedef int lane_mask; /* a count of lanes */
GEMM_INLINE lane_mask first_lanes(int64_t count) { return count >= LANES ? LANES : (int)count; }
/* Reads a whole vector: B is packed where it is ragged. */
GEMM_INLINE vector load_lanes(const GEMM_REAL *p, lane_mask m) {
  (void)m;
  return load(p);
}
#if defined(__AVX2__)
/* Of all lanes, the sign bits of the first `count`. */
GEMM_INLINE __m256i lane_signs(int64_t count) {
#if GEMM_DOUBLE
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
#else
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
#endif
}
#endif
GEMM_INLINE void store_lanes(GEMM_REAL *p, lane_mask m, vector v) {
  if (m == LANES)
    store(p, v);
  else
#if defined(__AVX2__) && GEMM_DOUBLE
    _mm256_maskstore_pd(p, lane_signs(m), (__m256d)v);
#elif defined(__AVX2__)
    _mm256_maskstore_ps(p, lane_signs(m), (__m256)v);
#else
    memcpy(p, &v, (size_t)m * sizeof(GEMM_REAL));
#endif
}
/* Reads no further than `count`. */
GEMM_INLINE vector load_some(const GEMM_REAL *p, int count, lane_mask m) {
  (void)m;
  if (count == LANES) return load(p);
#if defined(__AVX2__) && GEMM_DOUBLE
  return (vector)_mm256_maskload_pd(p, lane_signs(count));
#elif defined(__AVX2__)
  return (vector)_mm256_maskload_ps(p, lane_signs(count));
#else
  vector v = {0};
  memcpy(&v, p, (size_t)count * sizeof(GEMM_REAL));
  return v;
#endif
}
#if defined(__AVX2__) && GEMM_DOUBLE
GEMM_INLINE void stream(double *p, vector v) { _mm256_stream_pd(p, (__m256d)v); }
#elif defined(__AVX2__)
GEMM_INLINE void stream(float *p, vector v) { _mm256_stream_ps(p, (__m256)v); }
#else
GEMM_INLINE void stream(GEMM_REAL *p, vector v) { store(p, v); }
#endif
#endif

#endif
