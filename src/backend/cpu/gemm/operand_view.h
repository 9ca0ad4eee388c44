/* An operand of a product as packing reads it: op(A) (m, k) or op(B) (k, n). A view is resolved to memory
 * once for a panel or a block, never for an element: packers take the address of the first element and a
 * stride. There are two kinds: matrices, and patches of images, whose blocks are gathered first. */
#pragma once

#include "backend/cpu/simd/vector_functions.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A matrix of patches: a row for each cell that a window visits, example by example, with the channels of the
 * window's cells one after the other. Cell j of the window at cell i lies in the image at
 * i * step + j * window_step + origin along each axis; outside the image is zero. */
enum { MIX_GEMM_PATCH_AXES = 3 };
typedef struct mix_gemm_patches {
  int64_t cells[MIX_GEMM_PATCH_AXES], window[MIX_GEMM_PATCH_AXES], image[MIX_GEMM_PATCH_AXES];
  int64_t step[MIX_GEMM_PATCH_AXES], window_step[MIX_GEMM_PATCH_AXES], origin[MIX_GEMM_PATCH_AXES];
  int64_t channels, pixel; /* of a window's cell; elements from pixel to pixel of the image */
} mix_gemm_patches;

typedef struct mix_gemm_view {
  const char *base;
  int64_t size;                    /* bytes of an element */
  int64_t stride;                  /* elements from row to row as stored */
  bool transposed;                 /* columns of the operand are the rows as stored */
  const mix_gemm_patches *patches; /* the rows as stored are patches of images at `base`; NULL: a matrix */
} mix_gemm_view;

/* Memory from element (row, column) on. */
static inline const char *mix_gemm_view_at(const mix_gemm_view *view, int64_t row, int64_t column) {
  const int64_t along = view->transposed ? row : column, across = view->transposed ? column : row;
  return view->base + (across * view->stride + along) * view->size;
}

static inline mix_gemm_view mix_gemm_view_transposed(const mix_gemm_view *view) {
  mix_gemm_view result = *view;
  result.transposed = !view->transposed;
  return result;
}

/* Copies `columns` columns from `column` on of `rows` stored rows from `row` on, or widens them to float32.
 */
void mix_gemm_gather_patches(const mix_gemm_view *view, int64_t row, int64_t rows, int64_t column,
                             int64_t columns, mix_tile_load_function widen, char *to, int64_t stride);

/* Elements from row to row of a gathered block of so many columns: off a power of two. */
static inline int64_t mix_gemm_gathered_stride(int64_t columns) { return (columns + 15) / 16 * 16 + 16; }

/* A block of an operand as a matrix in memory: itself, or gathered to `scratch`. widen: of a gathered one to
 * float32; NULL: none. */
static inline mix_gemm_view mix_gemm_view_block(const mix_gemm_view *view, int64_t row, int64_t rows,
                                                int64_t column, int64_t columns, char *scratch,
                                                mix_tile_load_function widen) {
  mix_gemm_view block = *view;
  if (!view->patches) {
    block.base = mix_gemm_view_at(view, row, column);
    return block;
  }
  block.patches = NULL, block.base = scratch;
  if (widen) block.size = sizeof(float);
  block.stride = mix_gemm_gathered_stride(view->transposed ? rows : columns);
  if (view->transposed)
    mix_gemm_gather_patches(view, column, columns, row, rows, widen, scratch, block.stride);
  else
    mix_gemm_gather_patches(view, row, rows, column, columns, widen, scratch, block.stride);
  return block;
}
