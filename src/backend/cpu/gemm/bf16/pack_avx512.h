/* Part of the template engine.h: packs bfloat16 in pairs of k (bf16.h), by AVX-512; also of float32 numbers
 * that it rounds (`rounds`). */
#include "backend/cpu/gemm/blocked/block_sizes.h"
#include "backend/cpu/gemm/transpose_avx512.h"
#include "backend/cpu/simd/simd.h"

enum { WORDS = 32, NEGATIVE_ZERO = -0x8000 };

SIMD_INLINE __mmask32 words(int64_t count) {
  return count >= WORDS ? 0xffffffffu : count <= 0 ? 0 : (__mmask32)((1u << count) - 1);
}

/* 32 numbers of which `count` exist; the others are `pad`. */
SIMD_INLINE __m512i load_words(const uint16_t *p, int64_t count, short pad) {
  return count >= WORDS ? _mm512_loadu_si512(p)
                        : _mm512_mask_loadu_epi16(_mm512_set1_epi16(pad), words(count), p);
}

/* The same of source[at], source[at + 1], ... */
SIMD_INLINE __m512i load_numbers(const void *source, int64_t at, int64_t count, short pad,
                                 const bool rounds) {
  if (!rounds) return load_words((const uint16_t *)source + at, count, pad);
  const float *p = (const float *)source + at;
  if (count >= WORDS) return narrow_bf16_pair(_mm512_loadu_ps(p), _mm512_loadu_ps(p + LANES));
  const __mmask32 mask = words(count);
  const vf x = _mm512_maskz_loadu_ps((__mmask16)mask, p),
           y = _mm512_maskz_loadu_ps((__mmask16)(mask >> LANES), p + LANES);
  return _mm512_mask_mov_epi16(_mm512_set1_epi16(pad), mask, narrow_bf16_pair(x, y));
}

/* ---- k along memory: numbers of a pair are neighbours, in the other order ---- */

SIMD_INLINE __m512i swap_halves(__m512i x) { return _mm512_rol_epi32(x, 16); }

/* source[i * stride + k] -> packed[i * packed_stride + k / 2]. */
SIMD_INLINE void pack_rows(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                           int64_t packed_stride, const bool rounds) {
  for (int i = 0; i < rows; i++) {
    uint32_t *to = (uint32_t *)packed + i * packed_stride;
    for (int64_t k = 0; k < depth; k += WORDS)
      _mm512_storeu_si512(
          to + k / 2, swap_halves(load_numbers(source, i * stride + k, depth - k, NEGATIVE_ZERO, rounds)));
  }
}

/* source[first + i * stride + k] -> packed[k / 2 * packed_stride + i] for `rows` rows, at most 16; 16 are
 * stored, those behind them as the last one. Rows are read a line at a time, as they may share a set of the
 * first-level cache. */
SIMD_INLINE void transpose_pairs(const void *source, int64_t first, int64_t stride, int64_t rows,
                                 int64_t depth, uint32_t *packed, int64_t packed_stride, short pad,
                                 const bool rounds) {
  for (int64_t k = 0; k < depth; k += WORDS, packed += LANES * packed_stride) {
    const int64_t left = depth - k, pairs = (left + 1) / 2 < LANES ? (left + 1) / 2 : LANES;
    int64_t row = first + k;
    __m512i x[LANES];
    SIMD_UNROLL
    for (int i = 0; i < LANES; i++) {
      x[i] = swap_halves(load_numbers(source, row, left, pad, rounds));
      if (i + 1 < rows) row += stride;
    }
    transpose_lanes(x);
    if (pairs == LANES) {
      SIMD_UNROLL
      for (int i = 0; i < LANES; i++) _mm512_storeu_si512(packed + i * packed_stride, x[i]);
    } else {
      SIMD_UNROLL
      for (int i = 0; i < LANES; i++)
        if (i < pairs) _mm512_storeu_si512(packed + i * packed_stride, x[i]);
    }
  }
}

/* source[j * stride + k] -> panel j / NR, row k / 2. */
SIMD_INLINE void pack_columns(const void *source, int64_t stride, int64_t depth, int64_t columns,
                              void *packed, int64_t panel, const bool rounds) {
  for (int64_t j = 0; j < columns; j += LANES)
    transpose_pairs(source, j * stride, stride, columns - j, depth,
                    (uint32_t *)packed + j / NR * panel + j % NR, NR, 0, rounds);
}

/* ---- k from row to row: the numbers of a pair lie in two rows ---- */

/* Pairs of 16 numbers each of `first` and `second`, the lower or the upper ones. */
SIMD_INLINE __m512i pair_rows(__m512i first, __m512i second, const bool upper) {
  const int at = upper ? 16 : 0;
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  /* Of each lane the lower half is number lane + at of `second`, the upper one that of `first`. */
  const __m512i order =
      _mm512_or_si512(_mm512_add_epi32(lanes, _mm512_set1_epi32(at)),
                      _mm512_slli_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(at + WORDS)), 16));
  return _mm512_permutex2var_epi16(second, order, first);
}

/* source[k * stride + i] -> packed[k / 2 * packed_stride + i], in whole vectors. */
SIMD_INLINE void pair_columns(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                              int64_t packed_stride, const bool rounds) {
  uint32_t *to = packed;
  for (int64_t k = 0; k < depth; k += 2, to += packed_stride)
    for (int i = 0; i < rows; i += WORDS) {
      const int64_t at = k * stride + i;
      const __m512i first = load_numbers(source, at, rows - i, 0, rounds);
      const __m512i second = k + 1 < depth ? load_numbers(source, at + stride, rows - i, 0, rounds)
                                           : _mm512_set1_epi16(NEGATIVE_ZERO);
      _mm512_storeu_si512(to + i, pair_rows(first, second, false));
      if (i + LANES < rows) _mm512_storeu_si512(to + i + LANES, pair_rows(first, second, true));
    }
}

/* source[k * stride + j] -> panel j / NR, row k / 2. Reads whole rows of the source, which the hardware
 * prefetches. */
SIMD_INLINE void pack_plain(const void *source, int64_t stride, int64_t depth, int64_t columns, void *packed,
                            int64_t panel, const bool rounds) {
  uint32_t *row = packed;
  for (int64_t k = 0; k < depth; k += 2, row += NR) {
    uint32_t *to = row;
    for (int64_t j = 0; j < columns; j += NR, to += panel) {
      const int64_t at = k * stride + j;
      const __m512i first = load_numbers(source, at, columns - j, 0, rounds);
      const __m512i second =
          k + 1 < depth ? load_numbers(source, at + stride, columns - j, 0, rounds) : _mm512_setzero_si512();
      _mm512_storeu_si512(to, pair_rows(first, second, false));
      if (j + LANES < columns) _mm512_storeu_si512(to + LANES, pair_rows(first, second, true));
    }
  }
}

/* ---- the functions of a storage ---- */

#define STORAGE(name, rounds)                                                                                \
  static void name##_a_along_k(const void *source, int64_t stride, int rows, int64_t depth, void *packed,    \
                               int64_t packed_stride) {                                                      \
    pack_rows(source, stride, rows, depth, packed, packed_stride, rounds);                                   \
  }                                                                                                          \
  static void name##_a_along_m(const void *source, int64_t stride, int rows, int64_t depth, void *packed,    \
                               int64_t packed_stride) {                                                      \
    pair_columns(source, stride, rows, depth, packed, packed_stride, rounds);                                \
  }                                                                                                          \
  /* source[i * stride + k] -> packed[k / 2 * packed_stride + i]; at most MR rows. */                        \
  static void name##_a_transposed(const void *source, int64_t stride, int rows, int64_t depth, void *packed, \
                                  int64_t packed_stride) {                                                   \
    transpose_pairs(source, 0, stride, rows, depth, packed, packed_stride, NEGATIVE_ZERO, rounds);           \
  }                                                                                                          \
  static void name##_b_plain(const void *source, int64_t stride, int64_t depth, int64_t columns,             \
                             void *packed, int64_t panel) {                                                  \
    pack_plain(source, stride, depth, columns, packed, panel, rounds);                                       \
  }                                                                                                          \
  static void name##_b_transposed(const void *source, int64_t stride, int64_t depth, int64_t columns,        \
                                  void *packed, int64_t panel) {                                             \
    pack_columns(source, stride, depth, columns, packed, panel, rounds);                                     \
  }
STORAGE(pack, false)
STORAGE(round, true)
#define ROUNDING_STORAGE                                                                                     \
  {.dtype = MIX_BFLOAT16,                                                                                    \
   .rounds = true,                                                                                           \
   .pack_a = {round_a_along_k, round_a_along_m},                                                             \
   .pack_a_transposed = round_a_transposed,                                                                  \
   .pack_b = {round_b_plain, round_b_transposed}},
