/* Multiplication with float16 sums: tiles of up to 14 rows and 2 vectors of 32 columns, 28 sums in registers.
 */
#include "backend/cpu/gemm/fp16/fp16.h"
#include <float.h>
#include <immintrin.h>

#define FP16_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define FP16_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FP16_UNROLL _Pragma("GCC unroll 16")
#endif
/* Stored sums are read back as float16 halves of vectors: by way of memory, not by shuffles of registers. */
#define MEMORY_BARRIER() __asm__ volatile("" ::: "memory")

enum { VECTOR = 32, MAX_LEVELS = 3 };

/* sum += b * a: the broadcast of a 16-bit number costs nothing as part of this instruction, and a slot of the
 * multiplier as one of its own, which is what a compiler makes of the intrinsic. */
FP16_INLINE __m512h multiply_add(__m512h sum, __m512h b, const uint16_t *a) {
  __asm__("vfmadd231ph %2%{1to32%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*a));
  return sum;
}

#define EACH_SUM(statement)                                                                                  \
  FP16_UNROLL                                                                                                \
  for (int i = 0; i < rows; i++) {                                                                           \
    FP16_UNROLL                                                                                              \
    for (int v = 0; v < vectors; v++) statement;                                                             \
  }

/* Elements from one row of a packed panel of A to the next, and from one k to the next. */
#define ROW(as_rows) ((as_rows) ? FP16_MAX_STEP : 1)
#define DEPTH(as_rows) ((as_rows) ? 1 : FP16_ROW_SLOTS)

/* One chain: sums = A B over `length` of k. */
FP16_INLINE void multiply_chain(const int rows, const int vectors, const bool as_rows, int length,
                                const uint16_t *a, const uint16_t *b, __m512h (*sums)[2]) {
  EACH_SUM(sums[i][v] = _mm512_setzero_ph())
#pragma GCC unroll 1
  for (int k = 0; k < length; k++) {
    const __m512h b0 = _mm512_load_ph(b), b1 = vectors == 2 ? _mm512_load_ph(b + VECTOR) : b0;
    EACH_SUM(sums[i][v] = multiply_add(sums[i][v], v ? b1 : b0, a + i * ROW(as_rows)))
    a += DEPTH(as_rows), b += FP16_COLUMNS;
  }
}

FP16_INLINE __m512 widen(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)p)); }

/* Scales whose product float32 does not hold: one after the other, the smaller first, so that what overflows
 * or vanishes on the way would have done so in the end. */
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
FP16_INLINE void add_block(const int rows, const int vectors, const uint16_t *block, float scale, float *c,
                           int64_t c_stride, bool first) {
  const __m512 factor = _mm512_set1_ps(scale);
  if (first) {
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++, c += c_stride, block += 2 * VECTOR) {
      FP16_UNROLL
      for (int j = 0; j < vectors * VECTOR; j += 16)
        _mm512_store_ps(c + j, _mm512_mul_ps(widen(block + j), factor));
    }
  } else {
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++, c += c_stride, block += 2 * VECTOR) {
      FP16_UNROLL
      for (int j = 0; j < vectors * VECTOR; j += 16)
        _mm512_store_ps(c + j, _mm512_fmadd_ps(widen(block + j), factor, _mm512_load_ps(c + j)));
    }
  }
}

FP16_INLINE void fetch(const char **prefetch, int64_t step, int length) {
#pragma GCC unroll 1
  for (int byte = 0; byte < FP16_PREFETCH * length; byte += 64) __builtin_prefetch(*prefetch + byte, 0, 2);
  *prefetch += step;
}

/* `rows` and `vectors` are constants where it is inlined, so that `sums` lives in registers. */
FP16_INLINE void multiply_tile(const int rows, const int vectors, const bool as_rows,
                               const mix_fp16_sums *how, int64_t depth, const uint16_t *a,
                               const float *a_scales, const uint16_t *b, const float *b_scales, float *c,
                               int64_t c_stride, bool first, const char *prefetch, int64_t prefetch_step) {
  /* Sums of chains that wait for a partner, and last the block's. */
  uint16_t waiting[MAX_LEVELS][FP16_ROWS * 2 * VECTOR] __attribute__((aligned(64)));
  __m512h sums[FP16_ROWS][2];
  const int chains = how->chains, block = chains * how->length;
  {
    const float *row = c;
    for (int i = 0; i < rows; i++, row += c_stride)
      for (int j = 0; j < vectors * VECTOR; j += 16) __builtin_prefetch(row + j, 1, 3);
  }
  for (int64_t k = 0; k < depth; k += block) {
    const int rest = depth - k < block ? (int)(depth - k) : block;
    const int length =
        rest == block ? how->length : (rest + chains - 1) / chains; /* zeros fill the last chain */
    int level = 0;
    const uint16_t *chain_a = a + k * FP16_ROW_SLOTS;
    if (as_rows) chain_a -= k % FP16_MAX_STEP * (FP16_ROW_SLOTS - 1);
    for (int chain = 0; chain < chains; chain++) {
      if (prefetch_step) fetch(&prefetch, prefetch_step, how->length);
      multiply_chain(rows, vectors, as_rows, length, chain_a, b, sums);
      chain_a += length * DEPTH(as_rows), b += length * FP16_COLUMNS;
      for (int pairs = chain; pairs & 1; pairs >>= 1) { /* a full pair: carries as in counting */
        level--;
        MEMORY_BARRIER();
        EACH_SUM(sums[i][v] =
                     _mm512_add_ph(sums[i][v], _mm512_load_ph(waiting[level] + (i * 2 + v) * VECTOR)))
      }
      EACH_SUM(_mm512_store_ph(waiting[level] + (i * 2 + v) * VECTOR, sums[i][v]))
      level++;
    }
    MEMORY_BARRIER();
    const int64_t step = k / how->step;
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
mix_fp16_multiply *const mix_fp16_multiply_tile[2][FP16_ROWS][2] = {{EACH_ROWS(FP16_TRANSPOSED)},
                                                                    {EACH_ROWS(FP16_AS_ROWS)}};
