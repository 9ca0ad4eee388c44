/* What the kernels of eigenvalues and singular values share: matrices of any dtype, in double. */
#pragma once

#include "backend/ref/ref.h"
#include <float.h>
#include <math.h>

/* (..., rows, columns). */
typedef struct mix_ref_matrices {
  int64_t count, rows, columns;
  mix_dtype dtype;
} mix_ref_matrices;

static inline mix_ref_matrices mix_ref_matrices_of(const mix_type *type) {
  const mix_shape shape = type->shape;
  mix_ref_matrices m = {1, shape.dims[shape.rank - 2], shape.dims[shape.rank - 1], type->dtype};
  for (int i = 0; i < shape.rank - 2; i++) m.count *= shape.dims[i];
  return m;
}
static inline double mix_ref_element(const mix_ref_matrices *m, const void *data, int64_t matrix, int64_t row,
                                     int64_t column) {
  return mix_ref_load(data, m->dtype, (matrix * m->rows + row) * m->columns + column).real;
}
static inline void mix_ref_put(void *data, mix_dtype dtype, int64_t index, double value) {
  mix_ref_store(data, dtype, index, mix_ref_round((mix_ref_value){.real = value}, dtype));
}

/* The C library's hypot need not have the same bits everywhere. */
static inline double mix_ref_hypotenuse(double a, double b) {
  const double x = fmax(fabs(a), fabs(b)), y = fmin(fabs(a), fabs(b));
  return x > 0 ? x * sqrt(1 + y / x * (y / x)) : 0;
}
/* (a, b) <- (c a - s b, s a + c b). */
static inline void mix_ref_rotate(int64_t n, double *a, double *b, double c, double s) {
  for (int64_t k = 0; k < n; k++) {
    const double x = a[k], y = b[k];
    a[k] = c * x - s * y;
    b[k] = s * x + c * y;
  }
}
/* The places of n numbers from the smallest to the largest, as numbers; equal ones in their order. */
static inline void mix_ref_order(const double *values, int64_t n, double *order) {
  for (int64_t i = 0; i < n; i++) {
    int64_t j = i;
    for (; j > 0 && values[(int64_t)order[j - 1]] > values[i]; j--) order[j] = order[j - 1];
    order[j] = (double)i;
  }
}
