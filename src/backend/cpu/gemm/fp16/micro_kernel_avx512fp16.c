/* Micro-kernels with float16 sums: tiles of up to 14 rows and 2 vectors of 32 columns, 28 registers. */
#include "backend/cpu/gemm/fp16/fp16.h"
#include "backend/cpu/simd/attributes.h"
#include <float.h>
#include <immintrin.h>

/* Sums are stored and read back as half vectors. This keeps the compiler from shuffling registers instead. */
#define MEMORY_BARRIER() __asm__ volatile("" ::: "memory")

enum { VECTOR = 32, MAX_LEVELS = 3 };

/* sum + b * a. The broadcast of a 16-bit number is free as part of this instruction, but takes a slot of the
 * multiplier as an instruction of its own, which is what compilers make of the intrinsic. */
SIMD_INLINE __m512h accumulate(__m512h sum, __m512h b, const uint16_t *a) {
  __asm__("vfmadd231ph %2%{1to32%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*a));
  return sum;
}

#define EACH_SUM(statement)                                                                                  \
  SIMD_UNROLL                                                                                                \
  for (int i = 0; i < rows; i++) {                                                                           \
    SIMD_UNROLL                                                                                              \
    for (int v = 0; v < vectors; v++) statement;                                                             \
  }

/* Elements from one row of a packed panel of A to the next, and from one k to the next. */
#define ROW(as_rows) ((as_rows) ? FP16_MAX_STEP : 1)
#define DEPTH(as_rows) ((as_rows) ? 1 : FP16_ROW_SLOTS)

/* One chain: sums = A B over `length` of k. */
SIMD_INLINE void multiply_chain(const int rows, const int vectors, const bool as_rows, int length,
                                const uint16_t *a, const uint16_t *b, __m512h (*sums)[2]) {
  EACH_SUM(sums[i][v] = _mm512_setzero_ph())
#pragma GCC unroll 1
  for (int k = 0; k < length; k++) {
    const __m512h b0 = _mm512_load_ph(b), b1 = vectors == 2 ? _mm512_load_ph(b + VECTOR) : b0;
    EACH_SUM(sums[i][v] = accumulate(sums[i][v], v ? b1 : b0, a + i * ROW(as_rows)))
    a += DEPTH(as_rows), b += FP16_NR;
  }
}

SIMD_INLINE __m512 widen(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)p)); }

/* C = or += a block whose scales have a product outside float32. They are applied one after the other, the
 * smaller first: a number overflows or vanishes on the way only where the result does. */
__attribute__((noinline)) static void add_in_two_steps(int count, int vectors, const uint16_t *block,
                                                       float a_scale, float b_scale, float *c,
                                                       int64_t c_stride, bool first) {
  const __m512 small = _mm512_set1_ps(a_scale < b_scale ? a_scale : b_scale);
  const __m512 large = _mm512_set1_ps(a_scale < b_scale ? b_scale : a_scale);
  for (int i = 0; i < count; i++, c += c_stride)
    for (int j = 0; j < vectors * VECTOR; j += 16) {
      const __m512 before = first ? _mm512_setzero_ps() : _mm512_load_ps(c + j);
      _mm512_store_ps(
          c + j, _mm512_fmadd_ps(_mm512_mul_ps(widen(block + i * 2 * VECTOR + j), small), large, before));
    }
}

/* C = or += a block. */
SIMD_INLINE void add_block(const int rows, const int vectors, const uint16_t *block, float scale, float *c,
                           int64_t c_stride, bool first) {
  const __m512 factor = _mm512_set1_ps(scale);
  if (first) {
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++, c += c_stride, block += 2 * VECTOR) {
      SIMD_UNROLL
      for (int j = 0; j < vectors * VECTOR; j += 16)
        _mm512_store_ps(c + j, _mm512_mul_ps(widen(block + j), factor));
    }
  } else {
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++, c += c_stride, block += 2 * VECTOR) {
      SIMD_UNROLL
      for (int j = 0; j < vectors * VECTOR; j += 16)
        _mm512_store_ps(c + j, _mm512_fmadd_ps(widen(block + j), factor, _mm512_load_ps(c + j)));
    }
  }
}

SIMD_INLINE void prefetch_chain(const char **prefetch, int64_t step, int length) {
#pragma GCC unroll 1
  for (int byte = 0; byte < FP16_PREFETCH * length; byte += 64) __builtin_prefetch(*prefetch + byte, 0, 2);
  *prefetch += step;
}

/* `rows`, `vectors` and `as_rows` are constants after inlining, so that `sums` lives in registers. */
SIMD_INLINE void multiply_tile(const int rows, const int vectors, const bool as_rows,
                               const mix_fp16_sums *blocks, int64_t depth, const uint16_t *a,
                               const float *a_scales, const uint16_t *b, const float *b_scales, float *c,
                               int64_t c_stride, bool first, const char *prefetch, int64_t prefetch_step) {
  /* Sums of chains that wait for their partner; in the end the sum of the block. */
  uint16_t waiting[MAX_LEVELS][FP16_MR * 2 * VECTOR] __attribute__((aligned(64)));
  __m512h sums[FP16_MR][2];
  const int chains = blocks->chains, block = chains * blocks->length;
  {
    const float *row = c;
    for (int i = 0; i < rows; i++, row += c_stride)
      for (int j = 0; j < vectors * VECTOR; j += 16) __builtin_prefetch(row + j, 1, 3);
  }
  for (int64_t k = 0; k < depth; k += block) {
    const int left = depth - k < block ? (int)(depth - k) : block;
    /* In a last, smaller block zeros fill the last chain. */
    const int length = left == block ? blocks->length : (left + chains - 1) / chains;
    int level = 0;
    const uint16_t *chain_a = a + k * FP16_ROW_SLOTS;
    if (as_rows) chain_a -= k % FP16_MAX_STEP * (FP16_ROW_SLOTS - 1);
    for (int chain = 0; chain < chains; chain++) {
      if (prefetch_step) prefetch_chain(&prefetch, prefetch_step, blocks->length);
      multiply_chain(rows, vectors, as_rows, length, chain_a, b, sums);
      chain_a += length * DEPTH(as_rows), b += length * FP16_NR;
      for (int pairs = chain; pairs & 1; pairs >>= 1) { /* add complete pairs, as a binary counter carries */
        level--;
        MEMORY_BARRIER();
        EACH_SUM(sums[i][v] =
                     _mm512_add_ph(sums[i][v], _mm512_load_ph(waiting[level] + (i * 2 + v) * VECTOR)))
      }
      EACH_SUM(_mm512_store_ph(waiting[level] + (i * 2 + v) * VECTOR, sums[i][v]))
      level++;
    }
    MEMORY_BARRIER();
    const int64_t step = k / blocks->step;
    const float scale = a_scales[step] * b_scales[step];
    if (__builtin_expect(scale >= FLT_MIN && scale <= FLT_MAX, 1))
      add_block(rows, vectors, waiting[0], scale, c, c_stride, first);
    else
      add_in_two_steps(rows, vectors, waiting[0], a_scales[step], b_scales[step], c, c_stride, first);
    first = false;
  }
}

#define FP16_MULTIPLY_BY(rows, vectors, how, as_rows)                                                        \
  static void multiply_##how##_##rows##x##vectors(                                                           \
      const mix_fp16_sums *sums, int64_t depth, const uint16_t *a, const float *a_scales, const uint16_t *b, \
      const float *b_scales, float *c, int64_t c_stride, bool first, const char *prefetch,                   \
      int64_t prefetch_step) {                                                                               \
    multiply_tile(rows, vectors, as_rows, sums, depth, a, a_scales, b, b_scales, c, c_stride, first,         \
                  prefetch, prefetch_step);                                                                  \
  }
#define FP16_MULTIPLY(rows)                                                                                  \
  FP16_MULTIPLY_BY(rows, 1, transposed, false)                                                               \
  FP16_MULTIPLY_BY(rows, 2, transposed, false)                                                               \
  FP16_MULTIPLY_BY(rows, 1, as_rows, true)                                                                   \
  FP16_MULTIPLY_BY(rows, 2, as_rows, true)
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
EACH_ROWS(FP16_MULTIPLY)

#define FP16_TRANSPOSED(rows) {multiply_transposed_##rows##x1, multiply_transposed_##rows##x2},
#define FP16_AS_ROWS(rows) {multiply_as_rows_##rows##x1, multiply_as_rows_##rows##x2},
mix_fp16_multiply *const mix_fp16_multiply_tile[2][FP16_MR][2] = {{EACH_ROWS(FP16_TRANSPOSED)},
                                                                  {EACH_ROWS(FP16_AS_ROWS)}};
