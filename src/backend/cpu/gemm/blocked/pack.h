/* Template: packing and small products of one storage dtype, included once for each. STORAGE is f16, bf16,
 * f32 or f64, ELEMENT its C type. Elements are widened to `real` as they are packed. */
#include "backend/cpu/gemm/blocked/load_few.h"
#include "backend/cpu/gemm/blocked/block_sizes.h"

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define WIDEN PASTE(v_load, STORAGE)
#define WIDEN_ONE PASTE(load_one, STORAGE)
#define WIDEN_PART(p, count) PASTE(PASTE(v_load, STORAGE), part)(p, v_first(count))

/* source[i * stride + k] -> packed[i * packed_stride + k]. */
static void PASTE(pack_a_along_k, STORAGE)(const void *source, int64_t stride, int rows, int64_t depth,
                                           void *packed, int64_t packed_stride) {
  for (int i = 0; i < rows; i++) {
    const ELEMENT *from = (const ELEMENT *)source + i * stride;
    real *to = (real *)packed + i * packed_stride;
    int64_t k = 0;
    for (; k + LANES <= depth; k += LANES) v_store(to + k, WIDEN(from + k));
    if (k < depth) v_store(to + k, WIDEN_PART(from + k, depth - k));
  }
}

/* source[k * stride + i] -> packed[k * packed_stride + i], in whole vectors. */
static void PASTE(pack_a_along_m, STORAGE)(const void *source, int64_t stride, int rows, int64_t depth,
                                           void *packed, int64_t packed_stride) {
  const ELEMENT *from = source;
  real *to = packed;
  for (int64_t k = 0; k < depth; k++, from += stride, to += packed_stride) {
    int i = 0;
    for (; i + 2 * LANES <= rows; i += 2 * LANES) {
      v_store(to + i, WIDEN(from + i));
      v_store(to + i + LANES, WIDEN(from + i + LANES));
    }
    for (; i + LANES <= rows; i += LANES) v_store(to + i, WIDEN(from + i));
    if (i == rows) continue;
    if (i) /* overlaps */
      v_store(to + rows - LANES, WIDEN(from + rows - LANES));
    else
      v_store(to, WIDEN_PART(from, rows));
  }
}

#if SIMD_FEW
/* source[j * stride + k] -> packed[k * packed_stride + j] for up to SIMD_FEW columns j and k up to `end`,
 * while as many k are left. SIMD_FEW are stored; those behind `columns` are any numbers. The next k. */
SIMD_INLINE int64_t PASTE(transpose_few, STORAGE)(const int columns, const ELEMENT *from, int64_t stride,
                                                  int64_t k, int64_t end, real *to, int64_t packed_stride) {
  const ELEMENT *column[SIMD_FEW] = {from};
  for (int j = 1; j < SIMD_FEW; j++) column[j] = j < columns ? column[j - 1] + stride : column[j - 1];
  for (; k + SIMD_FEW <= end; k += SIMD_FEW) {
    few r[SIMD_FEW];
    SIMD_UNROLL
    for (int j = 0; j < SIMD_FEW; j++) r[j] = PASTE(load_few, STORAGE)(column[j] + k);
    few_transpose(r);
    SIMD_UNROLL
    for (int i = 0; i < SIMD_FEW; i++) few_store(to + (k + i) * packed_stride, r[i]);
  }
  return k;
}
#endif
#if SIMD_BYTES == 64 && !SIMD_DOUBLE
/* The same for up to 16 columns (a constant after inlining); 16 are stored. Masked loads, which need no
 * shuffle, put column c + 4 g into lane g of vector c; one transposition inside the lanes does the rest. */
SIMD_INLINE int64_t PASTE(transpose_vectors, STORAGE)(const int columns, const ELEMENT *from, int64_t stride,
                                                      int64_t k, int64_t end, real *to,
                                                      int64_t packed_stride) {
  for (; k + 4 <= end; k += 4) {
    vec r[4];
    SIMD_UNROLL
    for (int c = 0; c < 4; c++) {
      const ELEMENT *p = from + c * stride + k;
      r[c] = _mm512_zextps128_ps512(PASTE(load_few, STORAGE)(p));
      if (c + 4 < columns)
        r[c] = _mm512_mask_broadcast_f32x4(r[c], 0x00f0, PASTE(load_few, STORAGE)(p + 4 * stride));
      if (c + 8 < columns)
        r[c] = _mm512_mask_broadcast_f32x4(r[c], 0x0f00, PASTE(load_few, STORAGE)(p + 8 * stride));
      if (c + 12 < columns)
        r[c] = _mm512_mask_broadcast_f32x4(r[c], 0xf000, PASTE(load_few, STORAGE)(p + 12 * stride));
    }
    const __m512d low0 = _mm512_castps_pd(_mm512_unpacklo_ps(r[0], r[1]));
    const __m512d low1 = _mm512_castps_pd(_mm512_unpacklo_ps(r[2], r[3]));
    const __m512d high0 = _mm512_castps_pd(_mm512_unpackhi_ps(r[0], r[1]));
    const __m512d high1 = _mm512_castps_pd(_mm512_unpackhi_ps(r[2], r[3]));
    v_store(to + k * packed_stride, _mm512_castpd_ps(_mm512_unpacklo_pd(low0, low1)));
    v_store(to + (k + 1) * packed_stride, _mm512_castpd_ps(_mm512_unpackhi_pd(low0, low1)));
    v_store(to + (k + 2) * packed_stride, _mm512_castpd_ps(_mm512_unpacklo_pd(high0, high1)));
    v_store(to + (k + 3) * packed_stride, _mm512_castpd_ps(_mm512_unpackhi_pd(high0, high1)));
  }
  return k;
}
#endif

/* source[i * stride + k] -> packed[k * packed_stride + i]; at most MR rows. */
static void PASTE(pack_a_transposed, STORAGE)(const void *source, int64_t stride, int rows, int64_t depth,
                                              void *packed, int64_t packed_stride) {
  const ELEMENT *from = source;
  real *to = packed;
  int64_t k = 0;
  int done = 0; /* rows of which only the tail, from k on, is left */
#if SIMD_BYTES == 64 && !SIMD_DOUBLE
  if (rows == MR)
    k = PASTE(transpose_vectors, STORAGE)(MR, from, stride, 0, depth, to, packed_stride), done = rows;
  if (rows == MR - 1)
    k = PASTE(transpose_vectors, STORAGE)(MR - 1, from, stride, 0, depth, to, packed_stride), done = rows;
#endif
#if SIMD_FEW
  for (; done < rows; done += SIMD_FEW) /* a packed row has space for whole vectors */
    k = PASTE(transpose_few, STORAGE)(rows - done, from + done * stride, stride, 0, depth, to + done,
                                      packed_stride);
#endif
  for (int i = 0; i < rows; i++)
    for (int64_t tail = i < done ? k : 0; tail < depth; tail++)
      to[tail * packed_stride + i] = WIDEN_ONE(from + i * stride + tail);
}

/* source[k * stride + j] -> panel j / NR, row k. Reads whole rows of the source, which the hardware
 * prefetches. */
static void PASTE(pack_b_plain, STORAGE)(const void *source, int64_t stride, int64_t depth, int64_t columns,
                                         void *packed, int64_t panel) {
  for (int64_t k = 0; k < depth; k++) {
    const ELEMENT *from = (const ELEMENT *)source + k * stride;
    real *to = (real *)packed + k * NR;
    int64_t j = 0;
    for (; j + NR <= columns; j += NR, to += panel) {
      v_store(to, WIDEN(from + j));
      v_store(to + LANES, WIDEN(from + j + LANES));
    }
    for (; j < columns; j += LANES, to += LANES) {
      if (j + LANES <= columns)
        v_store(to, WIDEN(from + j));
      else
        v_store(to, WIDEN_PART(from + j, columns - j));
    }
  }
}

/* source[j * stride + k] -> panel j / NR, row k. Chunks of k keep both sides in the first-level cache. */
static void PASTE(pack_b_transposed, STORAGE)(const void *source, int64_t stride, int64_t depth,
                                              int64_t columns, void *packed, int64_t panel) {
  enum { CHUNK = 64 };
  for (int64_t p = 0; p * NR < columns; p++) {
    const ELEMENT *rows = (const ELEMENT *)source + p * NR * stride;
    real *to = (real *)packed + p * panel;
    const int64_t width = columns - p * NR < NR ? columns - p * NR : NR;
    const int64_t padded = (width + LANES - 1) / LANES * LANES;
    for (int64_t first = 0; first < depth; first += CHUNK) {
      const int64_t end = depth - first < CHUNK ? depth : first + CHUNK;
      int64_t j = 0;
#if SIMD_BYTES == 64 && !SIMD_DOUBLE
      for (; j + LANES <= width; j += LANES) {
        const ELEMENT *from = rows + j * stride;
        int64_t k = PASTE(transpose_vectors, STORAGE)(LANES, from, stride, first, end, to + j, NR);
        for (; k < end; k++)
          for (int c = 0; c < LANES; c++) to[k * NR + j + c] = WIDEN_ONE(from + c * stride + k);
      }
#endif
#if SIMD_FEW
      for (; j + SIMD_FEW <= width; j += SIMD_FEW) {
        const ELEMENT *from = rows + j * stride;
        int64_t k = PASTE(transpose_few, STORAGE)(SIMD_FEW, from, stride, first, end, to + j, NR);
        for (; k < end; k++)
          for (int c = 0; c < SIMD_FEW; c++) to[k * NR + j + c] = WIDEN_ONE(from + c * stride + k);
      }
#endif
      for (; j < width; j++)
        for (int64_t k = first; k < end; k++) to[k * NR + j] = WIDEN_ONE(rows + j * stride + k);
      for (; j < padded; j++)
        for (int64_t k = first; k < end; k++) to[k * NR + j] = 0;
    }
  }
}

#include "backend/cpu/gemm/small_n/small_n.h"

#include "backend/cpu/gemm/small_m/small_m.h"

#undef PASTE_
#undef PASTE
#undef WIDEN
#undef WIDEN_ONE
#undef WIDEN_PART
#undef STORAGE
#undef ELEMENT
