/* QR as a loop of reflections over the columns, whose gradient is the loop's own. */
#include "ops/matrices.h"
#include <mixtape/linear_algebra.h>
#include <mixtape/scan.h>

/* A reflection takes the elements of column k below k to 0 (Householder, 1958), as LAPACK: none where they
 * are. The carry: R and Q; inputs 1 at column k of R, 1 at row k, and 1 behind it. */
static mix_list *reflect(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *r = mix_list_get(carry, 0), *q = mix_list_get(carry, 1), *here = mix_list_get(inputs, 1);
  mix_tensor *column = mix_sum_last(mix_multiply(r, mix_list_get(inputs, 0)), false);
  mix_tensor *first = mix_sum_last(mix_multiply(column, here), true),
             *tail = mix_multiply(column, mix_list_get(inputs, 2));
  mix_tensor *rest = mix_sum_last(mix_square(tail), true), *none = mix_equal(rest, mix_scalar_like(rest, 0)),
             *one = mix_scalar_like(rest, 1);
  mix_tensor *size = mix_sqrt(mix_select(none, one, mix_add(mix_square(first), rest)));
  mix_tensor *end = mix_select(mix_less(first, mix_scalar_like(first, 0)), size, mix_negative(size));
  mix_tensor *vector = mix_add(tail, mix_multiply(mix_subtract(first, end), here));
  mix_tensor *squares = mix_select(none, one, mix_sum_last(mix_square(vector), true));
  mix_tensor *scaled =
      mix_select(none, mix_scalar_like(vector, 0), mix_divide(mix_times(vector, 2), squares));
  r = mix_subtract(r, mix_outer(scaled, mix_sum_rows(mix_multiply(mix_as_column(vector), r))));
  q = mix_subtract(q, mix_outer(mix_sum_last(mix_multiply(q, mix_as_row(vector)), false), scaled));
  return mix_failed() ? NULL : mix_list_of(mix_list_of(r, q), mix_list_new(0, NULL));
}

mix_list *mix_qr(mix_tensor *x, bool complete) {
  if (!mix_call_matrices("qr", x, false)) return NULL;
  const int rank = mix_rank_of(x);
  const int64_t rows = mix_size_from_end(x, -2), columns = mix_size_from_end(x, -1),
                steps = rows < columns ? rows : columns;
  const mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *batch = mix_zeros_like(mix_sum_last(mix_sum_last(x, false), false)),
             *square = mix_add(mix_as_column(mix_as_column(batch)), mix_unit_rows(rows, rows, dtype));
  mix_tensor *after = mix_range_of(mix_behind(rows, dtype), 0, 0, steps);
  if (mix_failed()) return NULL;
  mix_list *results =
      mix_scan(reflect, NULL, mix_list_of(x, square),
               mix_list_of(mix_unit_rows(steps, columns, dtype), mix_unit_rows(steps, rows, dtype), after));
  if (!results) return NULL;
  mix_tensor *r = mix_list_get(mix_list_get(results, 0), 0), *q = mix_list_get(mix_list_get(results, 0), 1);
  mix_tensor *place = mix_range(0, (double)columns, 1, MIX_INT64),
             *row = mix_reshape(mix_range(0, (double)rows, 1, MIX_INT64), MIX_SHAPE(rows, 1));
  r = mix_select(mix_greater_equal(place, row), r, mix_scalar_like(r, 0));
  if (!complete) {
    q = mix_range_of(q, rank - 1, 0, steps);
    r = mix_range_of(r, rank - 2, 0, steps);
  }
  return mix_failed() ? NULL : mix_list_of(q, r);
}
