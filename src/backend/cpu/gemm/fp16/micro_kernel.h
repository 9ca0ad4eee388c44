/* Template: a tile of registers with float16 sums. The including file has included a vectors_*.h and defines
 * TILE_ROWS and TILE_VECTORS, the largest tile. */
#include "backend/cpu/gemm/fp16/fp16.h"
#include <float.h>

/* Sums are stored and read back as half vectors. This keeps the compiler from shuffling registers instead. */
#define MEMORY_BARRIER() __asm__ volatile("" ::: "memory")

enum { TILE_COLUMNS = TILE_VECTORS * WORDS, MAX_LEVELS = 3 };

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
                                const uint16_t *a, const uint16_t *b, halves (*sums)[TILE_VECTORS]) {
  EACH_SUM(sums[i][v] = h_zero())
#pragma GCC unroll 1
  for (int k = 0; k < length; k++) {
    halves x[TILE_VECTORS];
    SIMD_UNROLL
    for (int v = 0; v < vectors; v++) x[v] = h_load(b + v * WORDS);
    EACH_SUM(sums[i][v] = h_accumulate(sums[i][v], x[v], a + i * ROW(as_rows)))
    a += DEPTH(as_rows), b += FP16_NR;
  }
}

/* C = or += a block whose scales have a product outside float32. They are applied one after the other, the
 * smaller first: a number overflows or vanishes on the way only where the result does. */
__attribute__((noinline)) static void add_in_two_steps(int count, int vectors, const uint16_t *block,
                                                       float a_scale, float b_scale, float *c,
                                                       int64_t c_stride, bool first) {
  const floats small = f_set(a_scale < b_scale ? a_scale : b_scale);
  const floats large = f_set(a_scale < b_scale ? b_scale : a_scale);
  for (int i = 0; i < count; i++, c += c_stride)
    for (int j = 0; j < vectors * WORDS; j += FLOATS) {
      const floats before = first ? f_zero() : f_load(c + j);
      f_store(c + j, f_fma(f_multiply(f_widen(block + i * TILE_COLUMNS + j), small), large, before));
    }
}

/* C = or += a block. */
SIMD_INLINE void add_block(const int rows, const int vectors, const uint16_t *block, float scale, float *c,
                           int64_t c_stride, bool first) {
  const floats factor = f_set(scale);
  if (first) {
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++, c += c_stride, block += TILE_COLUMNS) {
      SIMD_UNROLL
      for (int j = 0; j < vectors * WORDS; j += FLOATS)
        f_store(c + j, f_multiply(f_widen(block + j), factor));
    }
  } else {
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++, c += c_stride, block += TILE_COLUMNS) {
      SIMD_UNROLL
      for (int j = 0; j < vectors * WORDS; j += FLOATS)
        f_store(c + j, f_fma(f_widen(block + j), factor, f_load(c + j)));
    }
  }
}

SIMD_INLINE void prefetch_chain(const char **prefetch, int64_t step, int length) {
#pragma GCC unroll 1
  for (int byte = 0; byte < FP16_PREFETCH * length; byte += 64) __builtin_prefetch(*prefetch + byte, 0, 2);
  *prefetch += step;
}

/* One block of k, of which `left` are left; a and b begin there. `rows`, `vectors` and `as_rows` are
 * constants after inlining, so that `sums` lives in registers. */
SIMD_INLINE void multiply_block(const int rows, const int vectors, const bool as_rows,
                                const mix_fp16_sums *blocks, int64_t left, const uint16_t *a, float a_scale,
                                const uint16_t *b, float b_scale, float *c, int64_t c_stride, bool first,
                                const char **prefetch, int64_t prefetch_step) {
  /* Sums of chains that wait for their partner; in the end the sum of the block. */
  uint16_t waiting[MAX_LEVELS][TILE_ROWS * TILE_COLUMNS] __attribute__((aligned(64)));
  halves sums[TILE_ROWS][TILE_VECTORS];
  const int chains = blocks->chains, block = chains * blocks->length;
  /* In a last, smaller block zeros fill the last chain. */
  const int length = left >= block ? blocks->length : ((int)left + chains - 1) / chains;
  int level = 0;
  for (int chain = 0; chain < chains; chain++) {
    if (prefetch_step) prefetch_chain(prefetch, prefetch_step, blocks->length);
    multiply_chain(rows, vectors, as_rows, length, a, b, sums);
    a += length * DEPTH(as_rows), b += length * FP16_NR;
    for (int pairs = chain; pairs & 1; pairs >>= 1) { /* add complete pairs, as a binary counter carries */
      level--;
      MEMORY_BARRIER();
      EACH_SUM(sums[i][v] = h_add(sums[i][v], h_load(waiting[level] + (i * TILE_VECTORS + v) * WORDS)))
    }
    EACH_SUM(h_store(waiting[level] + (i * TILE_VECTORS + v) * WORDS, sums[i][v]))
    level++;
  }
  MEMORY_BARRIER();
  const float scale = a_scale * b_scale;
  if (__builtin_expect(scale >= FLT_MIN && scale <= FLT_MAX, 1))
    add_block(rows, vectors, waiting[0], scale, c, c_stride, first);
  else
    add_in_two_steps(rows, vectors, waiting[0], a_scale, b_scale, c, c_stride, first);
}

/* Where rows of A from row `row` on begin, at number k. */
SIMD_INLINE const uint16_t *a_at(const uint16_t *a, const bool as_rows, int64_t k, int row) {
  return as_rows ? a + k * FP16_ROW_SLOTS - k % FP16_MAX_STEP * (FP16_ROW_SLOTS - 1) + row * FP16_MAX_STEP
                 : a + k * FP16_ROW_SLOTS + row;
}

#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
