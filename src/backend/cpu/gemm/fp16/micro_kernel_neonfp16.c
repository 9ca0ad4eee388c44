/* Micro-kernels with float16 sums: tiles of up to 5 rows and 4 vectors of 8 columns, 20 registers. Three by
 * two of them are a panel of A times one of B, as wide as AVX-512's, so that scales and sums are the same. */
#include "backend/cpu/gemm/fp16/vectors_neon.h"

#define TILE_ROWS 5
#define TILE_VECTORS 4
#include "backend/cpu/gemm/fp16/micro_kernel.h"

typedef void multiply_rows(const mix_fp16_sums *blocks, int64_t left, const uint16_t *a, float a_scale,
                           const uint16_t *b, float b_scale, float *c, int64_t c_stride, bool first,
                           const char **prefetch, int64_t prefetch_step);
#define MULTIPLY_ROWS(rows, how, as_rows)                                                                    \
  static void multiply_##how##_##rows(                                                                       \
      const mix_fp16_sums *blocks, int64_t left, const uint16_t *a, float a_scale, const uint16_t *b,        \
      float b_scale, float *c, int64_t c_stride, bool first, const char **prefetch, int64_t prefetch_step) { \
    multiply_block(rows, TILE_VECTORS, as_rows, blocks, left, a, a_scale, b, b_scale, c, c_stride, first,    \
                   prefetch, prefetch_step);                                                                 \
  }
#define EACH_OF_TILE(X, ...)                                                                                 \
  X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__)
EACH_OF_TILE(MULTIPLY_ROWS, transposed, false)
EACH_OF_TILE(MULTIPLY_ROWS, as_rows, true)
#define ROWS_NAME(rows, how) multiply_##how##_##rows,
static multiply_rows *const multiply[2][TILE_ROWS] = {{EACH_OF_TILE(ROWS_NAME, transposed)},
                                                      {EACH_OF_TILE(ROWS_NAME, as_rows)}};

/* Blocks outside, so that what all tiles of one use stays in the first-level cache. */
static void multiply_tile(int rows, int halves_of_panel, bool as_rows, const mix_fp16_sums *blocks,
                          int64_t depth, const uint16_t *a, const float *a_scales, const uint16_t *b,
                          const float *b_scales, float *c, int64_t c_stride, bool first, const char *prefetch,
                          int64_t prefetch_step) {
  const int block = blocks->chains * blocks->length, columns = halves_of_panel * FP16_NR / 2;
  for (int64_t k = 0; k < depth; k += block, first = false) {
    const int64_t step = k / blocks->step;
    for (int j = 0; j < columns; j += TILE_COLUMNS)
      for (int i = 0; i < rows; i += TILE_ROWS) {
        const int some = rows - i < TILE_ROWS ? rows - i : TILE_ROWS;
        multiply[as_rows][some - 1](blocks, depth - k, a_at(a, as_rows, k, i), a_scales[step],
                                    b + k * FP16_NR + j, b_scales[step], c + i * c_stride + j, c_stride,
                                    first, &prefetch, i + j ? 0 : prefetch_step);
      }
  }
}

#include "backend/cpu/gemm/fp16/multiply_table.h"
