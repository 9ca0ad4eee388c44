/* Systems of equations as loops over the columns of matrices (..., n, n): each step is an operation of
 * vectors and matrices on the whole batch, so that n steps have the usual cost, and the gradient is the
 * loops' own, of any order. */
#include "ops/matrices.h"
#include <mixtape/linear_algebra.h>
#include <mixtape/scan.h>

typedef struct loop {
  mix_list *carry, *outputs;
} loop;

static bool run(loop *l, mix_scan_body body, void *context, mix_list *carry, mix_list *inputs) {
  mix_list *results = carry && !mix_failed() ? mix_scan(body, context, carry, inputs) : NULL;
  if (!results) return false;
  l->carry = mix_list_get(results, 0), l->outputs = mix_list_get(results, 1);
  return true;
}

/* ---- elimination with pivots ---- */

/* The row, not used before, with the largest element of a column: 1 at its place (..., n). */
static mix_tensor *pivot_of(mix_tensor *column, mix_tensor *unused) {
  mix_tensor *sizes = mix_select(mix_greater(unused, mix_scalar_like(unused, 0)), mix_abs(column),
                                 mix_scalar_like(column, -1));
  mix_tensor *place = mix_argmax(mix_stop_gradient(sizes), mix_rank_of(sizes) - 1);
  return mix_one_hot(place, mix_size_from_end(column, -1), mix_tensor_dtype(column));
}

/* Gauss and Jordan: the carry is (matrix, right side) and the unused rows; input 0 is 1 at the column.
 * Outputs: the pivot and its place. A pivot that is 0 divides unless the context is NULL, for determinants.
 */
static mix_list *eliminate(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *matrix = mix_list_get(carry, 0), *unused = mix_list_get(carry, 1);
  mix_tensor *column = mix_sum_last(mix_multiply(matrix, mix_list_get(inputs, 0)), false),
             *place = pivot_of(column, unused);
  mix_tensor *pivot = mix_sum_last(mix_multiply(column, place), false);
  mix_tensor *divisor = pivot;
  if (!context)
    divisor = mix_select(mix_equal(pivot, mix_scalar_like(pivot, 0)), mix_scalar_like(pivot, 1), pivot);
  mix_tensor *row =
      mix_divide(mix_sum_rows(mix_multiply(matrix, mix_as_column(place))), mix_as_column(divisor));
  matrix = mix_subtract(matrix, mix_outer(mix_subtract(column, place), row));
  unused = mix_subtract(unused, place);
  return mix_failed() ? NULL : mix_list_of(mix_list_of(matrix, unused), mix_list_of(pivot, place));
}

/* The inverse of square a times b (..., n, m); pivots (n, ...) and the sign of their order unless NULL. */
static mix_tensor *solve_by_pivots(mix_tensor *a, mix_tensor *b, mix_tensor **pivots, mix_tensor **sign) {
  const int rank = mix_rank_of(a);
  const int64_t n = mix_size_from_end(a, -1), m = b ? mix_size_from_end(b, -1) : 0;
  mix_tensor *both[] = {a, b}, *matrix = b ? mix_concat(2, both, rank - 1) : a;
  mix_tensor *unused = mix_ones_like(mix_sum_last(a, false));
  loop l;
  if (mix_failed() || !run(&l, eliminate, b, mix_list_of(matrix, unused),
                           mix_list_of(mix_unit_rows(n, n + m, mix_tensor_dtype(a)))))
    return NULL;
  mix_tensor *places = mix_list_get(l.outputs, 1); /* (n, ..., n) */
  if (pivots) *pivots = mix_list_get(l.outputs, 0);
  if (sign) { /* two steps whose places are in the wrong order change it */
    mix_tensor *order = mix_cast(mix_argmax(places, rank - 1), mix_tensor_dtype(a)),
               *first = mix_expand_dims(order, 1), *second = mix_expand_dims(order, 0),
               *step = mix_range(0, (double)n, 1, MIX_INT64);
    mix_tensor *earlier = mix_less(mix_reshape(step, MIX_SHAPE(n, 1)), step),
               *wrong = mix_greater(first, second);
    for (int i = 1; i < mix_rank_of(order); i++) earlier = mix_expand_dims(earlier, -1);
    mix_tensor *counted = mix_cast(mix_logical_and(earlier, wrong), mix_tensor_dtype(a));
    mix_tensor *odd = mix_reduce_sum(counted, MIX_AXES(0, 1), false);
    *sign = mix_subtract(mix_scalar_like(odd, 1), mix_times(mix_floor_mod(odd, mix_scalar_like(odd, 2)), 2));
  }
  if (!b) return a;
  mix_tensor *ordered = mix_with_axis_at(places, 0, rank - 2); /* (..., step, row) */
  mix_tensor *right = mix_range_of(mix_list_get(l.carry, 0), rank - 1, n, m);
  return mix_matmul(ordered, right, false, false);
}

static mix_tensor *identity_like(mix_tensor *a) {
  const int64_t n = mix_size_from_end(a, -1);
  return mix_add(mix_zeros_like(a), mix_unit_rows(n, n, mix_tensor_dtype(a)));
}

/* a (..., n, n) and b (..., n) or (..., n, m), which becomes (..., n, m). */
static bool is_system(const char *call, mix_tensor *a, mix_tensor **b, bool *vector) {
  if (!mix_call_matrices(call, a, true) || !mix_operand_ready(call, *b)) return false;
  const int rank = mix_rank_of(a);
  *vector = mix_rank_of(*b) == rank - 1;
  const mix_shape given = mix_tensor_shape(*b);
  if (mix_tensor_dtype(a) != mix_tensor_dtype(*b))
    return mix_call_fail(MIX_TYPE_ERROR, call, a, "b is %s; cast one of them",
                         mix_dtype_name(mix_tensor_dtype(*b)));
  if (*vector) *b = mix_as_column(*b);
  if (!mix_failed() && mix_rank_of(*b) == rank && mix_size_from_end(*b, -2) == mix_size_from_end(a, -1))
    return true;
  return mix_call_fail(MIX_VALUE_ERROR, call, a,
                       "b is %s; expected (..., n) or (..., n, m) for a (..., n, n)", MIX_SHAPE_TEXT(given));
}

mix_tensor *mix_solve(mix_tensor *a, mix_tensor *b) {
  bool vector;
  if (!is_system("solve", a, &b, &vector)) return NULL;
  mix_tensor *y = solve_by_pivots(a, b, NULL, NULL);
  return vector ? mix_squeeze(y, MIX_AXES(-1)) : y;
}
mix_tensor *mix_inverse(mix_tensor *x) {
  return mix_call_matrices("inverse", x, true) ? solve_by_pivots(x, identity_like(x), NULL, NULL) : NULL;
}
mix_tensor *mix_determinant(mix_tensor *x) {
  mix_tensor *pivots, *sign;
  if (!mix_call_matrices("determinant", x, true) || !solve_by_pivots(x, NULL, &pivots, &sign)) return NULL;
  return mix_multiply(sign, mix_reduce_prod(pivots, MIX_AXES(0), false));
}
mix_list *mix_log_determinant(mix_tensor *x) {
  mix_tensor *pivots, *sign;
  if (!mix_call_matrices("log_determinant", x, true) || !solve_by_pivots(x, NULL, &pivots, &sign))
    return NULL;
  sign = mix_multiply(sign, mix_reduce_prod(mix_sign(pivots), MIX_AXES(0), false));
  mix_tensor *magnitude = mix_reduce_sum(mix_log(mix_abs(pivots)), MIX_AXES(0), false);
  return mix_failed() ? NULL : mix_list_of(sign, magnitude);
}

/* The carry: what is left, with the multipliers of former columns in their place, and the unused rows.
 * Inputs: 1 at the column, and 1 behind it. */
static mix_list *decompose(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *matrix = mix_list_get(carry, 0), *unused = mix_list_get(carry, 1),
             *here = mix_list_get(inputs, 0);
  mix_tensor *column = mix_sum_last(mix_multiply(matrix, here), false), *place = pivot_of(column, unused);
  mix_tensor *pivot = mix_sum_last(mix_multiply(column, place), false), *rest = mix_subtract(unused, place);
  mix_tensor *row =
      mix_multiply(mix_sum_rows(mix_multiply(matrix, mix_as_column(place))), mix_list_get(inputs, 1));
  mix_tensor *factors = mix_multiply(mix_divide(column, mix_as_column(pivot)), rest);
  matrix = mix_subtract(matrix, mix_outer(factors, row));
  matrix = mix_add(matrix, mix_outer(mix_subtract(factors, mix_multiply(column, rest)), here));
  return mix_failed() ? NULL : mix_list_of(mix_list_of(matrix, rest), mix_list_of(place));
}
mix_list *mix_lu(mix_tensor *x) {
  loop l;
  if (!mix_call_matrices("lu", x, true)) return NULL;
  const int rank = mix_rank_of(x);
  const int64_t n = mix_size_from_end(x, -1);
  const mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *unused = mix_ones_like(mix_sum_last(x, false));
  if (mix_failed() || !run(&l, decompose, NULL, mix_list_of(x, unused),
                           mix_list_of(mix_unit_rows(n, n, dtype), mix_behind(n, dtype))))
    return NULL;
  mix_tensor *places = mix_with_axis_at(mix_list_get(l.outputs, 0), 0, rank - 2);
  mix_tensor *packed = mix_matmul(places, mix_list_get(l.carry, 0), false, false);
  /* the step in which each row was the pivot */
  mix_tensor *steps = mix_cast(mix_argmax(places, rank - 2), MIX_INT32);
  return mix_failed() ? NULL : mix_list_of(packed, steps);
}

/* ---- triangles ---- */

/* One unknown of each right side: (b - row of a times those known) / diagonal. Inputs: 1 at the row, the row
 * of a, the row of b. */
static mix_list *substitute(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *known = mix_list_get(carry, 0), *here = mix_list_get(inputs, 0), *row = mix_list_get(inputs, 1);
  mix_tensor *sum = mix_sum_rows(mix_multiply(mix_as_column(row), known));
  mix_tensor *next =
      mix_divide(mix_subtract(mix_list_get(inputs, 2), sum), mix_sum_last(mix_multiply(row, here), true));
  known = mix_add(known, mix_outer(here, next));
  return mix_failed() ? NULL : mix_list_of(mix_list_of(known), mix_list_new(0, NULL));
}

static mix_tensor *solve_triangle(mix_tensor *a, mix_tensor *b, bool lower) {
  const int rank = mix_rank_of(a);
  const int64_t n = mix_size_from_end(a, -1);
  const mix_dtype dtype = mix_tensor_dtype(a);
  mix_tensor *after = mix_behind(n, dtype),
             *kept = mix_add(mix_unit_rows(n, n, dtype), lower ? mix_transposed(after) : after);
  mix_list *carry = b ? mix_list_of(mix_zeros_like(b)) : NULL;
  mix_tensor *rows = mix_with_axis_at(mix_multiply(a, kept), rank - 2, 0),
             *right = mix_with_axis_at(b, rank - 2, 0);
  if (mix_failed()) return NULL;
  mix_list *results = mix_scan(substitute, NULL, carry, mix_list_of(mix_unit_rows(n, n, dtype), rows, right),
                               .reverse = !lower);
  return results ? mix_list_get(mix_list_get(results, 0), 0) : NULL;
}

mix_tensor *mix_solve_triangular(mix_tensor *a, mix_tensor *b, bool lower) {
  bool vector;
  if (!is_system("solve_triangular", a, &b, &vector)) return NULL;
  mix_tensor *y = solve_triangle(a, b, lower);
  return vector ? mix_squeeze(y, MIX_AXES(-1)) : y;
}

/* Column k of the factor, which leaves the others: inputs 1 at k, and 1 behind k. */
static mix_list *factor(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *rest = mix_list_get(carry, 0), *here = mix_list_get(inputs, 0);
  mix_tensor *column = mix_sum_last(mix_multiply(rest, here), false),
             *square = mix_sum_last(mix_multiply(column, here), true);
  mix_tensor *kept = mix_multiply(column, mix_add(here, mix_list_get(inputs, 1)));
  mix_tensor *next = mix_divide(kept, mix_sqrt(square));
  rest = mix_subtract(rest, mix_outer(next, next));
  return mix_failed() ? NULL : mix_list_of(mix_list_of(rest), mix_list_of(next));
}

/* Of the lower triangle; the gradient is symmetric, as in TensorFlow. */
mix_tensor *mix_cholesky(mix_tensor *x) {
  loop l;
  if (!mix_call_matrices("cholesky", x, true)) return NULL;
  const int rank = mix_rank_of(x);
  const int64_t n = mix_size_from_end(x, -1);
  const mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *after = mix_behind(n, dtype),
             *below = mix_multiply(mix_stop_gradient(x), mix_transposed(after));
  mix_tensor *main = mix_multiply(mix_stop_gradient(x), mix_unit_rows(n, n, dtype));
  mix_tensor *value = mix_add(mix_add(below, mix_transposed(below)), main),
             *mean = mix_times(mix_add(x, mix_transposed(x)), 0.5);
  mix_tensor *symmetric = mix_surrogate_gradient(value, mean);
  if (!symmetric ||
      !run(&l, factor, NULL, mix_list_of(symmetric), mix_list_of(mix_unit_rows(n, n, dtype), after)))
    return NULL;
  return mix_with_axis_at(mix_list_get(l.outputs, 0), 0, rank - 1); /* (..., row, column) */
}
