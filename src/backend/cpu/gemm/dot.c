/* Products with few columns: each row of the wide operand is read once, in place, along k; the narrow one is widened and kept as
 * rows. */
#include "backend/cpu/gemm/gemm.h"
#include <string.h>

enum { DOT_CHUNK = 64, DOT_STRIDE = 16 };

static int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }

/* from[k * from_stride + j] -> to[j * to_stride + k]. */
static void turn(const void *from, int64_t from_stride, int64_t depth, int64_t columns, void *to, int64_t to_stride, size_t size) {
  for (int64_t j = 0; j < columns; j++) {
    if (size == sizeof(float))
      for (int64_t k = 0; k < depth; k++) ((float *)to)[j * to_stride + k] = ((const float *)from)[k * from_stride + j];
    else
      for (int64_t k = 0; k < depth; k++) ((double *)to)[j * to_stride + k] = ((const double *)from)[k * from_stride + j];
  }
}

/* op(B) (k, n) as rows of n, zeros behind each. */
static void widen_narrow_operand(const mix_gemm_plan *plan, const void *b, char *rows, char *scratch) {
  const mix_gemm_problem *p = &plan->problem;
  const size_t element = plan->engine->element, stored = mix_dtype_size(plan->storage->dtype);
  memset(rows, 0, plan->b_bytes);
  if (p->transpose_b) {
    plan->storage->pack_a[MIX_GEMM_ROWS](b, p->ldb, (int)p->n, p->k, rows, plan->a_stride);
    return;
  }
  for (int64_t k = 0; k < p->k; k += DOT_CHUNK)
    for (int64_t j = 0; j < p->n; j += plan->engine->columns) {
      const int64_t depth = smaller(DOT_CHUNK, p->k - k), columns = smaller(plan->engine->columns, p->n - j);
      plan->storage->pack_b[0]((const char *)b + (k * p->ldb + j) * (int64_t)stored, p->ldb, depth, columns, scratch, 0);
      turn(scratch, plan->engine->columns, depth, columns, rows + (j * plan->a_stride + k) * (int64_t)element, plan->a_stride,
           element);
    }
}

void mix_gemm_run_dot(const mix_gemm_plan *plan, const mix_gemm_operands *operands, int rank, void *workspace) {
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *p = &plan->problem;
  const int64_t stored = (int64_t)mix_dtype_size(plan->storage->dtype), sum = (int64_t)engine->sum;
  char *narrow = workspace, *sums = narrow + plan->b_bytes, *scratch = sums + plan->c_bytes;
  int64_t begin, end;
  mix_gemm_share(p->m, 2, rank, plan->threads, &begin, &end);
  if (begin >= end || p->n == 0) return;
  widen_narrow_operand(plan, operands->b, narrow, scratch);
  for (int64_t row = begin; row < end; row += DOT_CHUNK) {
    const int64_t rows = smaller(DOT_CHUNK, end - row);
    const char *a = (const char *)operands->a + row * p->lda * stored;
    int64_t i = 0;
    for (; i + engine->dot_rows <= rows; i += engine->dot_rows)
      plan->storage->dot[0](p->k, a + i * p->lda * stored, p->lda, narrow, plan->a_stride, (int)p->n, sums + i * DOT_STRIDE * sum);
    for (; i < rows; i++)
      plan->storage->dot[1](p->k, a + i * p->lda * stored, p->lda, narrow, plan->a_stride, (int)p->n, sums + i * DOT_STRIDE * sum);
    if (plan->swapped) {
      turn(sums, DOT_STRIDE, rows, p->n, scratch, DOT_CHUNK, (size_t)sum);
      mix_gemm_finish(plan, operands, scratch, DOT_CHUNK, 0, p->n, row, rows, 0);
    } else {
      mix_gemm_finish(plan, operands, sums, DOT_STRIDE, row, rows, 0, p->n, 0);
    }
  }
}
