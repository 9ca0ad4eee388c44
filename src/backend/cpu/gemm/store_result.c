/* Stores finished sums: rounding, epilogue, finite test. Shared by all algorithms. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/simd/vector_functions.h"
#include <string.h>

static const char *at(const void *base, int64_t elements, size_t size) {
  return (const char *)base + elements * (int64_t)size;
}

static int64_t result_row(const mix_gemm_result_rows *r, int64_t row) {
  int64_t result = 0;
  for (int i = MIX_GEMM_PATCH_AXES - 1; i >= 0; i--) {
    result += (r->first[i] + row % r->cells[i] * r->step[i]) * r->pitch[i];
    row /= r->cells[i];
  }
  return result + row * r->image;
}

static void store_rows(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const void *sums,
                       int64_t stride, int64_t row, int64_t rows, int64_t column, int64_t columns,
                       bool more) {
  if (operands->epilogue) {
    const bool finite = mix_tile_run_block(operands->epilogue, operands->args, sums, stride, row, rows,
                                           operands->first_column + column, columns, more);
    if (!finite) *operands->finite = false;
    return;
  }
  const int64_t ldc = plan->problem.ldc, size = (int64_t)mix_dtype_size(plan->result);
  char *result = (char *)operands->c + (row * ldc + column) * size;
  if (size > (int64_t)sizeof(uint16_t)) { /* stored as summed */
    const char *from = sums;
    for (; rows > 0; rows--, result += ldc * size, from += stride * size)
      memcpy(result, from, (size_t)(columns * size));
    return;
  }
  const bool below = plan->vector->store_rows[plan->result]((uint16_t *)result, ldc, sums, stride, rows,
                                                            columns, operands->limit, plan->stream);
  if (operands->finite && !below) *operands->finite = false;
}

void mix_gemm_store_result(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const void *sums,
                           int64_t stride, int64_t row, int64_t rows, int64_t column, int64_t columns,
                           bool more) {
  if (!operands->rows) {
    store_rows(plan, operands, sums, stride, row, rows, column, columns, more);
    return;
  }
  for (int64_t i = 0; i < rows; i++)
    store_rows(plan, operands, at(sums, i * stride, plan->engine->sum_size), stride,
               result_row(operands->rows, row + i), 1, column, columns, false);
}

void mix_gemm_prefetch_result(const mix_gemm_plan *plan, const mix_gemm_operands *operands, int64_t row,
                              int64_t rows, int64_t column, int64_t columns) {
  if (operands->epilogue || operands->rows || plan->stream) return;
  const int64_t size = (int64_t)mix_dtype_size(plan->result), stride = plan->problem.ldc * size;
  const char *memory = (const char *)operands->c + row * stride + column * size;
  for (; rows > 0; rows--, memory += stride)
    for (int64_t byte = 0; byte < columns * size; byte += 64) __builtin_prefetch(memory + byte, 1, 2);
}

void mix_gemm_transpose(const void *from, int64_t from_stride, int64_t rows, int64_t columns, void *to,
                        int64_t to_stride, size_t size) {
  for (int64_t j = 0; j < columns; j++) {
    if (size == sizeof(float))
      for (int64_t i = 0; i < rows; i++)
        ((float *)to)[j * to_stride + i] = ((const float *)from)[i * from_stride + j];
    else
      for (int64_t i = 0; i < rows; i++)
        ((double *)to)[j * to_stride + i] = ((const double *)from)[i * from_stride + j];
  }
}

void mix_gemm_store_transposed(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const void *sums,
                               int64_t stride, void *transposed, int64_t row, int64_t rows, int64_t column,
                               int64_t columns) {
  const int64_t width = plan->engine->nr;
  for (int64_t j = 0; j < columns; j += width) {
    const int64_t count = smaller(width, columns - j);
    mix_gemm_transpose(at(sums, j, plan->engine->sum_size), stride, rows, count, transposed, rows,
                       plan->engine->sum_size);
    mix_gemm_store_result(plan, operands, transposed, rows, column + j, count, row, rows,
                          j + width < columns);
  }
}
