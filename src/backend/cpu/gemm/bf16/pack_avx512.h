/* Part of the template engine.h: packs bfloat16 in pairs of k (bf16.h), by AVX-512. */
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

/* ---- k along memory: numbers of a pair are neighbours, in the other order ---- */

SIMD_INLINE __m512i swap_halves(__m512i x) { return _mm512_rol_epi32(x, 16); }

/* source[i * stride + k] -> packed[i * packed_stride + k / 2]. */
static void pack_a_along_k(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                           int64_t packed_stride) {
  for (int i = 0; i < rows; i++) {
    const uint16_t *from = (const uint16_t *)source + i * stride;
    uint32_t *to = (uint32_t *)packed + i * packed_stride;
    for (int64_t k = 0; k < depth; k += WORDS)
      _mm512_storeu_si512(to + k / 2, swap_halves(load_words(from + k, depth - k, NEGATIVE_ZERO)));
  }
}

/* source[i * stride + k] -> packed[k / 2 * packed_stride + i] for `rows` rows, at most 16; 16 are stored,
 * those behind them as the last one. Rows are read a line at a time, as they may share a set of the
 * first-level cache. */
SIMD_INLINE void transpose_pairs(const uint16_t *source, int64_t stride, int64_t rows, int64_t depth,
                                 uint32_t *packed, int64_t packed_stride, short pad) {
  for (int64_t k = 0; k < depth; k += WORDS, source += WORDS, packed += LANES * packed_stride) {
    const int64_t left = depth - k, pairs = (left + 1) / 2 < LANES ? (left + 1) / 2 : LANES;
    const uint16_t *row = source;
    __m512i x[LANES];
    SIMD_UNROLL
    for (int i = 0; i < LANES; i++) {
      x[i] = swap_halves(load_words(row, left, pad));
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

/* source[i * stride + k] -> packed[k / 2 * packed_stride + i]; at most MR rows. */
static void pack_a_transposed(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                              int64_t packed_stride) {
  transpose_pairs(source, stride, rows, depth, packed, packed_stride, NEGATIVE_ZERO);
}

/* source[j * stride + k] -> panel j / NR, row k / 2. */
static void pack_b_transposed(const void *source, int64_t stride, int64_t depth, int64_t columns,
                              void *packed, int64_t panel) {
  const uint16_t *from = source;
  for (int64_t j = 0; j < columns; j += LANES, from += LANES * stride)
    transpose_pairs(from, stride, columns - j, depth, (uint32_t *)packed + j / NR * panel + j % NR, NR, 0);
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
static void pack_a_along_m(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                           int64_t packed_stride) {
  const uint16_t *from = source;
  uint32_t *to = packed;
  for (int64_t k = 0; k < depth; k += 2, from += 2 * stride, to += packed_stride)
    for (int i = 0; i < rows; i += WORDS) {
      const __m512i first = load_words(from + i, rows - i, 0);
      const __m512i second =
          k + 1 < depth ? load_words(from + stride + i, rows - i, 0) : _mm512_set1_epi16(NEGATIVE_ZERO);
      _mm512_storeu_si512(to + i, pair_rows(first, second, false));
      if (i + LANES < rows) _mm512_storeu_si512(to + i + LANES, pair_rows(first, second, true));
    }
}

/* source[k * stride + j] -> panel j / NR, row k / 2. Reads whole rows of the source, which the hardware
 * prefetches. */
static void pack_b_plain(const void *source, int64_t stride, int64_t depth, int64_t columns, void *packed,
                         int64_t panel) {
  const uint16_t *from = source;
  uint32_t *row = packed;
  for (int64_t k = 0; k < depth; k += 2, from += 2 * stride, row += NR) {
    uint32_t *to = row;
    for (int64_t j = 0; j < columns; j += NR, to += panel) {
      const __m512i first = load_words(from + j, columns - j, 0);
      const __m512i second =
          k + 1 < depth ? load_words(from + stride + j, columns - j, 0) : _mm512_setzero_si512();
      _mm512_storeu_si512(to, pair_rows(first, second, false));
      if (j + LANES < columns) _mm512_storeu_si512(to + LANES, pair_rows(first, second, true));
    }
  }
}
