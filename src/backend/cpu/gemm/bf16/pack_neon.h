/* Part of the template engine.h: packs bfloat16 in pairs of k (bf16.h), by NEON. */
#include "backend/cpu/gemm/blocked/block_sizes.h"
#include "backend/cpu/simd/simd.h"

enum { NEGATIVE_ZERO = 0x8000 };

SIMD_INLINE uint32_t pair_of(uint16_t first, uint16_t second) { return (uint32_t)first << 16 | second; }

/* row[0] to row[depth - 1] -> packed[0], packed[step], ...: neighbours in pairs, an odd one with `pad`. */
SIMD_INLINE void pack_neighbours(const uint16_t *row, int64_t depth, uint16_t pad, uint32_t *packed,
                                 int64_t step) {
  int64_t k = 0;
  for (; k + 2 <= depth; k += 2, packed += step) *packed = pair_of(row[k], row[k + 1]);
  if (k < depth) *packed = pair_of(row[k], pad);
}

/* source[i * stride + k] -> packed[i * packed_stride + k / 2]. */
static void pack_a_along_k(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                           int64_t packed_stride) {
  for (int i = 0; i < rows; i++) {
    const uint16_t *from = (const uint16_t *)source + i * stride;
    uint32_t *to = (uint32_t *)packed + i * packed_stride;
    int64_t k = 0;
    for (; k + 8 <= depth; k += 8) vst1q_u16((uint16_t *)(to + k / 2), vrev32q_u16(vld1q_u16(from + k)));
    pack_neighbours(from + k, depth - k, NEGATIVE_ZERO, to + k / 2, 1);
  }
}

/* Four rows of eight numbers: the pairs of a row become a column of `packed`. Rows behind `rows` repeat the
 * last one. */
SIMD_INLINE int64_t transpose_pairs(const uint16_t *source, int64_t stride, int64_t rows, int64_t depth,
                                    uint32_t *packed, int64_t packed_stride) {
  int64_t k = 0;
  for (; k + 8 <= depth; k += 8, packed += 4 * packed_stride) {
    vec r[4];
    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
      r[i] = vreinterpretq_f32_u16(vrev32q_u16(vld1q_u16(source + (i < rows ? i : rows - 1) * stride + k)));
    few_transpose(r);
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) vst1q_u32(packed + i * packed_stride, vreinterpretq_u32_f32(r[i]));
  }
  return k;
}

/* source[i * stride + k] -> packed[k / 2 * packed_stride + i]; at most MR rows, in whole vectors. */
static void pack_a_transposed(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                              int64_t packed_stride) {
  for (int64_t first = 0; first < rows; first += 4) {
    const uint16_t *from = (const uint16_t *)source + first * stride;
    uint32_t *to = (uint32_t *)packed + first;
    const int64_t k = transpose_pairs(from, stride, rows - first, depth, to, packed_stride);
    for (int64_t i = 0; i < 4 && first + i < rows; i++)
      pack_neighbours(from + i * stride + k, depth - k, NEGATIVE_ZERO, to + k / 2 * packed_stride + i,
                      packed_stride);
  }
}

/* source[j * stride + k] -> panel j / NR, row k / 2; columns behind the last are zero, in whole vectors. */
static void pack_b_transposed(const void *source, int64_t stride, int64_t depth, int64_t columns,
                              void *packed, int64_t panel) {
  for (int64_t j = 0; j < columns; j += LANES) {
    const uint16_t *from = (const uint16_t *)source + j * stride;
    uint32_t *to = (uint32_t *)packed + j / NR * panel + j % NR;
    const int64_t k = columns - j < LANES ? 0 : transpose_pairs(from, stride, LANES, depth, to, NR);
    for (int64_t i = 0; i < LANES; i++)
      if (j + i < columns)
        pack_neighbours(from + i * stride + k, depth - k, 0, to + k / 2 * NR + i, NR);
      else
        for (int64_t pair = 0; 2 * pair < depth; pair++) to[pair * NR + i] = 0;
  }
}

/* Pairs of `count` numbers each of two rows, or of the first and `pad` -> packed; in whole vectors. */
SIMD_INLINE void pack_two_rows(const uint16_t *first, const uint16_t *second, uint16_t pad, int64_t count,
                               uint32_t *packed) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const uint16x8_t upper = vld1q_u16(first + i), lower = second ? vld1q_u16(second + i) : vdupq_n_u16(pad);
    vst1q_u16((uint16_t *)(packed + i), vzip1q_u16(lower, upper));
    vst1q_u16((uint16_t *)(packed + i + 4), vzip2q_u16(lower, upper));
  }
  for (; i < count; i++) packed[i] = pair_of(first[i], second ? second[i] : pad);
  for (; i % LANES; i++) packed[i] = 0;
}

/* source[k * stride + i] -> packed[k / 2 * packed_stride + i], in whole vectors. */
static void pack_a_along_m(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                           int64_t packed_stride) {
  const uint16_t *from = source;
  for (int64_t k = 0; k < depth; k += 2, from += 2 * stride)
    pack_two_rows(from, k + 1 < depth ? from + stride : NULL, NEGATIVE_ZERO, rows,
                  (uint32_t *)packed + k / 2 * packed_stride);
}

/* source[k * stride + j] -> panel j / NR, row k / 2. Reads whole rows of the source, which the hardware
 * prefetches. */
static void pack_b_plain(const void *source, int64_t stride, int64_t depth, int64_t columns, void *packed,
                         int64_t panel) {
  const uint16_t *from = source;
  uint32_t *row = packed;
  for (int64_t k = 0; k < depth; k += 2, from += 2 * stride, row += NR)
    for (int64_t j = 0; j < columns; j += NR)
      pack_two_rows(from + j, k + 1 < depth ? from + stride + j : NULL, 0,
                    columns - j < NR ? columns - j : NR, row + j / NR * panel);
}
