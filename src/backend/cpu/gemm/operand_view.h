/* An operand of a product as packing reads it: op(A) (m, k) or op(B) (k, n). A view is resolved to memory
 * once for a panel or a block, never for an element: packers take the address of the first element and a
 * stride. Matrices are the one kind of view. */
#ifndef MIX_BACKEND_CPU_GEMM_OPERAND_VIEW_H
#define MIX_BACKEND_CPU_GEMM_OPERAND_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mix_gemm_view {
  const char *base;
  int64_t size;    /* bytes of an element */
  int64_t stride;  /* elements from row to row as stored */
  bool transposed; /* columns of the operand are the rows as stored */
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

#endif
