/* Micro-kernels with float16 sums: tiles of up to 14 rows and 2 vectors of 32 columns, 28 registers. */
#include "backend/cpu/gemm/fp16/vectors_avx512.h"

#define TILE_ROWS FP16_MR
#define TILE_VECTORS 2
#include "backend/cpu/gemm/fp16/micro_kernel.h"

SIMD_INLINE void multiply_tile(const int rows, const int vectors, const bool as_rows,
                               const mix_fp16_sums *blocks, int64_t depth, const uint16_t *a,
                               const float *a_scales, const uint16_t *b, const float *b_scales, float *c,
                               int64_t c_stride, bool first, const char *prefetch, int64_t prefetch_step) {
  const int block = blocks->chains * blocks->length;
  {
    const float *row = c;
    for (int i = 0; i < rows; i++, row += c_stride)
      for (int j = 0; j < vectors * WORDS; j += FLOATS) __builtin_prefetch(row + j, 1, 3);
  }
  for (int64_t k = 0; k < depth; k += block) {
    const int64_t step = k / blocks->step;
    multiply_block(rows, vectors, as_rows, blocks, depth - k, a_at(a, as_rows, k, 0), a_scales[step],
                   b + k * FP16_NR, b_scales[step], c, c_stride, first, &prefetch, prefetch_step);
    first = false;
  }
}

#include "backend/cpu/gemm/fp16/multiply_table.h"
