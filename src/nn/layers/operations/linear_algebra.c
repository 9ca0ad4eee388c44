/* Linear algebra as loops over the columns of matrices (..., n, n): each step is an operation of vectors and
 * matrices on the whole batch, so that n steps have the usual cost, and the gradient is the loops' own, of
 * any order. Singular matrices give infinities or NaN. */
#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/spatial/spatial.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include <mixtape/scan.h>
#include <string.h>

static int rank_of(const mix_tensor *x) { return mix_operand_rank(x); }
static mix_tensor *number(mix_tensor *x, double value) { return mix_scalar_like(x, value); }
static mix_tensor *column_of(mix_tensor *vector) { return mix_expand_dims(vector, -1); }
static mix_tensor *row_of(mix_tensor *vector) { return mix_expand_dims(vector, -2); }
static mix_tensor *outer(mix_tensor *a, mix_tensor *b) { return mix_multiply(column_of(a), row_of(b)); }
static mix_tensor *sum_last(mix_tensor *x) { return mix_reduce_sum(x, MIX_AXES(-1), false); }
static mix_tensor *sum_last_kept(mix_tensor *x) { return mix_reduce_sum(x, MIX_AXES(-1), true); }
static mix_tensor *sum_rows(mix_tensor *x) { return mix_reduce_sum(x, MIX_AXES(-2), false); }

/* (steps, n): row k is 1 at k. */
static mix_tensor *units(int64_t steps, int64_t n, mix_dtype dtype) {
  return mix_one_hot(mix_range(0, (double)steps, 1, MIX_INT64), n, dtype);
}

/* (..., rows, columns) transposed. */
static mix_tensor *transposed(mix_tensor *x) {
  const int rank = rank_of(x);
  mix_axes order = {.count = rank};
  for (int i = 0; i < rank; i++) order.axis[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
  return mix_transpose(x, order);
}

/* Matrices of known sizes, square ones if `square`. */
static bool are_matrices(const mix_operands *o, const mix_tensor *x, bool square) {
  const int rank = rank_of(x);
  if (mix_failed()) return false;
  const int64_t rows = rank > 1 ? mix_operand_size(x, rank - 2) : -1,
                columns = rank > 1 ? mix_operand_size(x, rank - 1) : -1;
  if (rows >= 1 && columns >= 1 && (!square || rows == columns) && mix_dtype_is_floating(mix_tensor_dtype(x)))
    return true;
  return mix_operation_fail(o, MIX_VALUE_ERROR,
                            "its operand is %s %s; expected %smatrices (..., n, %s) of known "
                            "sizes and a floating dtype",
                            mix_dtype_name(mix_tensor_dtype(x)), MIX_SHAPE_TEXT(mix_tensor_shape(x)),
                            square ? "square " : "", square ? "n" : "m");
}

/* Zeros (...) of the batch of x. */
static mix_tensor *batch_zeros(mix_tensor *x) { return mix_zeros_like(sum_last(sum_last(x))); }

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
  mix_tensor *sizes = mix_select(mix_greater(unused, number(unused, 0)), mix_abs(column), number(column, -1));
  mix_tensor *place = mix_argmax(mix_stop_gradient(sizes), rank_of(sizes) - 1);
  return mix_one_hot(place, mix_operand_size(column, rank_of(column) - 1), mix_tensor_dtype(column));
}

/* Gauss and Jordan: the carry is (matrix, right side) and the unused rows; input 0 is 1 at the column.
 * Outputs: the pivot and its place. */
static mix_list *eliminate(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *matrix = mix_list_get(carry, 0), *unused = mix_list_get(carry, 1);
  mix_tensor *column = sum_last(mix_multiply(matrix, mix_list_get(inputs, 0))),
             *place = pivot_of(column, unused);
  mix_tensor *pivot = sum_last(mix_multiply(column, place));
  mix_tensor *row = mix_divide(sum_rows(mix_multiply(matrix, column_of(place))), column_of(pivot));
  matrix = mix_subtract(matrix, outer(mix_subtract(column, place), row));
  unused = mix_subtract(unused, place);
  return mix_failed() ? NULL : mix_list_of(mix_list_of(matrix, unused), mix_list_of(pivot, place));
}

/* The inverse of square a times b (..., n, m); pivots (n, ...) and the sign of their order unless NULL. */
static mix_tensor *solve_by_pivots(mix_tensor *a, mix_tensor *b, mix_tensor **pivots, mix_tensor **sign) {
  const int rank = rank_of(a);
  const int64_t n = mix_operand_size(a, rank - 1), m = b ? mix_operand_size(b, rank - 1) : 0;
  mix_tensor *both[] = {a, b}, *matrix = b ? mix_concat(2, both, rank - 1) : a;
  mix_tensor *unused = mix_ones_like(sum_last(a));
  loop l;
  if (mix_failed() || !run(&l, eliminate, NULL, mix_list_of(matrix, unused),
                           mix_list_of(units(n, n + m, mix_tensor_dtype(a)))))
    return NULL;
  mix_tensor *places = mix_list_get(l.outputs, 1); /* (n, ..., n) */
  if (pivots) *pivots = mix_list_get(l.outputs, 0);
  if (sign) { /* two steps whose places are in the wrong order change it */
    mix_tensor *order = mix_cast(mix_argmax(places, rank - 1), mix_tensor_dtype(a)),
               *first = mix_expand_dims(order, 1), *second = mix_expand_dims(order, 0),
               *step = mix_range(0, (double)n, 1, MIX_INT64);
    mix_tensor *earlier = mix_less(mix_reshape(step, MIX_SHAPE(n, 1)), step),
               *wrong = mix_greater(first, second);
    for (int i = 1; i < rank_of(order); i++) earlier = mix_expand_dims(earlier, -1);
    mix_tensor *counted = mix_cast(mix_logical_and(earlier, wrong), mix_tensor_dtype(a));
    mix_tensor *odd = mix_reduce_sum(counted, MIX_AXES(0, 1), false);
    *sign = mix_subtract(number(odd, 1), mix_times(mix_floor_mod(odd, number(odd, 2)), 2));
  }
  if (!b) return a;
  mix_tensor *ordered = mix_axis_moved(places, 0, rank - 2); /* (..., step, row) */
  mix_tensor *right = mix_layer_range(mix_list_get(l.carry, 0), rank - 1, n, m, 1);
  return mix_matmul(ordered, right, false, false);
}

static mix_tensor *identity_like(mix_tensor *a) {
  const int64_t n = mix_operand_size(a, rank_of(a) - 1);
  return mix_add(mix_zeros_like(a), units(n, n, mix_tensor_dtype(a)));
}

static mix_tensor *solve(const mix_operands *o, mix_tensor *unused) {
  static const char *const names[] = {"a", "b"};
  mix_tensor *pair[2];
  if (!mix_operands_promoted(o, 2, names, pair) || !are_matrices(o, pair[0], true)) return NULL;
  const bool vector = rank_of(pair[1]) == rank_of(pair[0]) - 1;
  mix_tensor *b = vector ? column_of(pair[1]) : pair[1];
  if (rank_of(b) != rank_of(pair[0]) ||
      mix_operand_size(b, rank_of(b) - 2) != mix_operand_size(pair[0], rank_of(b) - 1))
    return mix_operation_fail(o, MIX_VALUE_ERROR, "a is %s and b %s; expected (..., n, n) and (..., n, m)",
                              MIX_SHAPE_TEXT(mix_tensor_shape(pair[0])),
                              MIX_SHAPE_TEXT(mix_tensor_shape(pair[1])));
  mix_tensor *y = solve_by_pivots(pair[0], b, NULL, NULL);
  return vector ? mix_squeeze(y, MIX_AXES(-1)) : y;
}
static mix_tensor *inv(const mix_operands *o, mix_tensor *x) {
  return are_matrices(o, x, true) ? solve_by_pivots(x, identity_like(x), NULL, NULL) : NULL;
}
static mix_tensor *det(const mix_operands *o, mix_tensor *x) {
  mix_tensor *pivots, *sign;
  if (!are_matrices(o, x, true) || !solve_by_pivots(x, NULL, &pivots, &sign)) return NULL;
  return mix_multiply(sign, mix_reduce_prod(pivots, MIX_AXES(0), false));
}
/* The sign and the logarithm of the magnitude. */
static mix_list *slogdet(const mix_operands *o, mix_tensor *x) {
  mix_tensor *pivots, *sign;
  if (!are_matrices(o, x, true) || !solve_by_pivots(x, NULL, &pivots, &sign)) return NULL;
  sign = mix_multiply(sign, mix_reduce_prod(mix_sign(pivots), MIX_AXES(0), false));
  mix_tensor *magnitude = mix_reduce_sum(mix_log(mix_abs(pivots)), MIX_AXES(0), false);
  return mix_failed() ? NULL : mix_list_of(sign, magnitude);
}

/* The carry: what is left, with the multipliers of former columns in their place, and the unused rows.
 * Inputs: 1 at the column, and 1 behind it. */
static mix_list *decompose(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *matrix = mix_list_get(carry, 0), *unused = mix_list_get(carry, 1),
             *here = mix_list_get(inputs, 0);
  mix_tensor *column = sum_last(mix_multiply(matrix, here)), *place = pivot_of(column, unused);
  mix_tensor *pivot = sum_last(mix_multiply(column, place)), *rest = mix_subtract(unused, place);
  mix_tensor *row = mix_multiply(sum_rows(mix_multiply(matrix, column_of(place))), mix_list_get(inputs, 1));
  mix_tensor *factors = mix_multiply(mix_divide(column, column_of(pivot)), rest);
  matrix = mix_subtract(matrix, outer(factors, row));
  matrix = mix_add(matrix, outer(mix_subtract(factors, mix_multiply(column, rest)), here));
  return mix_failed() ? NULL : mix_list_of(mix_list_of(matrix, rest), mix_list_of(place));
}
/* 1 where the column is behind the step, (steps, n). */
static mix_tensor *behind(int64_t n, mix_dtype dtype) {
  mix_tensor *step = mix_range(0, (double)n, 1, MIX_INT64);
  return mix_cast(mix_greater(step, mix_reshape(step, MIX_SHAPE(n, 1))), dtype);
}
static mix_list *lu_factor(const mix_operands *o, mix_tensor *x) {
  loop l;
  if (!are_matrices(o, x, true)) return NULL;
  const int rank = rank_of(x);
  const int64_t n = mix_operand_size(x, rank - 1);
  const mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *unused = mix_ones_like(sum_last(x));
  if (mix_failed() ||
      !run(&l, decompose, NULL, mix_list_of(x, unused), mix_list_of(units(n, n, dtype), behind(n, dtype))))
    return NULL;
  mix_tensor *places = mix_axis_moved(mix_list_get(l.outputs, 0), 0, rank - 2);
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
  mix_tensor *sum = sum_rows(mix_multiply(column_of(row), known));
  mix_tensor *next =
      mix_divide(mix_subtract(mix_list_get(inputs, 2), sum), sum_last_kept(mix_multiply(row, here)));
  known = mix_add(known, outer(here, next));
  return mix_failed() ? NULL : mix_list_of(mix_list_of(known), mix_list_new(0, NULL));
}

static mix_tensor *solve_triangle(mix_tensor *a, mix_tensor *b, bool lower) {
  const int rank = rank_of(a);
  const int64_t n = mix_operand_size(a, rank - 1);
  const mix_dtype dtype = mix_tensor_dtype(a);
  mix_tensor *after = behind(n, dtype),
             *kept = mix_add(units(n, n, dtype), lower ? transposed(after) : after);
  mix_list *carry = b ? mix_list_of(mix_zeros_like(b)) : NULL;
  mix_tensor *rows = mix_axis_moved(mix_multiply(a, kept), rank - 2, 0),
             *right = mix_axis_moved(b, rank - 2, 0);
  if (mix_failed()) return NULL;
  mix_list *results =
      mix_scan(substitute, NULL, carry, mix_list_of(units(n, n, dtype), rows, right), .reverse = !lower);
  return results ? mix_list_get(mix_list_get(results, 0), 0) : NULL;
}

static mix_tensor *solve_triangular(const mix_operands *o, mix_tensor *unused) {
  static const char *const names[] = {"a", "b"};
  mix_tensor *pair[2];
  const bool lower = mix_operand_flag(o, "lower");
  if (!mix_operands_promoted(o, 2, names, pair) || !are_matrices(o, pair[0], true)) return NULL;
  const bool vector = rank_of(pair[1]) == rank_of(pair[0]) - 1;
  mix_tensor *b = vector ? column_of(pair[1]) : pair[1];
  if (rank_of(b) != rank_of(pair[0]))
    return mix_operation_fail(o, MIX_VALUE_ERROR, "a has rank %d and b %d", rank_of(pair[0]),
                              rank_of(pair[1]));
  mix_tensor *y = solve_triangle(pair[0], b, lower);
  return vector ? mix_squeeze(y, MIX_AXES(-1)) : y;
}

/* Column k of the factor, which leaves the others: inputs 1 at k, and 1 behind k. */
static mix_list *factor(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *rest = mix_list_get(carry, 0), *here = mix_list_get(inputs, 0);
  mix_tensor *column = sum_last(mix_multiply(rest, here)),
             *square = sum_last_kept(mix_multiply(column, here));
  mix_tensor *kept = mix_multiply(column, mix_add(here, mix_list_get(inputs, 1)));
  mix_tensor *next = mix_divide(kept, mix_sqrt(square));
  rest = mix_subtract(rest, outer(next, next));
  return mix_failed() ? NULL : mix_list_of(mix_list_of(rest), mix_list_of(next));
}

/* Of the lower triangle; the gradient is symmetric, as in TensorFlow. */
static mix_tensor *lower_factor(const mix_operands *o, mix_tensor *x) {
  loop l;
  if (!are_matrices(o, x, true)) return NULL;
  const int rank = rank_of(x);
  const int64_t n = mix_operand_size(x, rank - 1);
  const mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *after = behind(n, dtype), *below = mix_multiply(mix_stop_gradient(x), transposed(after));
  mix_tensor *main = mix_multiply(mix_stop_gradient(x), units(n, n, dtype));
  mix_tensor *value = mix_add(mix_add(below, transposed(below)), main),
             *mean = mix_times(mix_add(x, transposed(x)), 0.5);
  mix_tensor *symmetric = mix_surrogate_gradient(value, mean);
  if (!symmetric || !run(&l, factor, NULL, mix_list_of(symmetric), mix_list_of(units(n, n, dtype), after)))
    return NULL;
  return mix_axis_moved(mix_list_get(l.outputs, 0), 0, rank - 1); /* (..., row, column) */
}

static mix_tensor *cholesky(const mix_operands *o, mix_tensor *x) {
  const bool upper = mix_operand_flag(o, "upper");
  mix_tensor *lower = lower_factor(o, x);
  return upper && lower ? transposed(lower) : lower;
}
static mix_tensor *cholesky_inverse(const mix_operands *o, mix_tensor *x) {
  const bool upper = mix_operand_flag(o, "upper");
  if (!are_matrices(o, x, true)) return NULL;
  mix_tensor *inverse = solve_triangle(x, identity_like(x), !upper);
  return mix_matmul(inverse, inverse, !upper, upper);
}
static mix_tensor *logdet(const mix_operands *o, mix_tensor *x) {
  mix_tensor *lower = lower_factor(o, x);
  if (!lower) return NULL;
  const int64_t n = mix_operand_size(x, rank_of(x) - 1);
  mix_tensor *diagonal = sum_last(mix_multiply(lower, units(n, n, mix_tensor_dtype(x))));
  return mix_times(sum_last(mix_log(diagonal)), 2);
}

/* ---- QR ---- */

/* A reflection takes the elements of column k below k to 0 (Householder, 1958), as LAPACK: none where they
 * are. The carry: R and Q; inputs 1 at column k of R, 1 at row k, and 1 behind it. */
static mix_list *reflect(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *r = mix_list_get(carry, 0), *q = mix_list_get(carry, 1), *here = mix_list_get(inputs, 1);
  mix_tensor *column = sum_last(mix_multiply(r, mix_list_get(inputs, 0)));
  mix_tensor *first = sum_last_kept(mix_multiply(column, here)),
             *tail = mix_multiply(column, mix_list_get(inputs, 2));
  mix_tensor *rest = sum_last_kept(mix_square(tail)), *none = mix_equal(rest, number(rest, 0)),
             *one = number(rest, 1);
  mix_tensor *size = mix_sqrt(mix_select(none, one, mix_add(mix_square(first), rest)));
  mix_tensor *end = mix_select(mix_less(first, number(first, 0)), size, mix_negative(size));
  mix_tensor *vector = mix_add(tail, mix_multiply(mix_subtract(first, end), here));
  mix_tensor *squares = mix_select(none, one, sum_last_kept(mix_square(vector)));
  mix_tensor *scaled = mix_select(none, number(vector, 0), mix_divide(mix_times(vector, 2), squares));
  r = mix_subtract(r, outer(scaled, sum_rows(mix_multiply(column_of(vector), r))));
  q = mix_subtract(q, outer(sum_last(mix_multiply(q, row_of(vector))), scaled));
  return mix_failed() ? NULL : mix_list_of(mix_list_of(r, q), mix_list_new(0, NULL));
}

static mix_list *qr(const mix_operands *o, mix_tensor *x) {
  loop l;
  const char *mode = mix_operand_text(o, "mode");
  if (!mode || !are_matrices(o, x, false)) return NULL;
  const bool complete = !strcmp(mode, "complete");
  if (!complete && strcmp(mode, "reduced"))
    return mix_operand_refused(o, MIX_VALUE_ERROR, "mode", "\"reduced\" or \"complete\"");
  const int rank = rank_of(x);
  const int64_t rows = mix_operand_size(x, rank - 2), columns = mix_operand_size(x, rank - 1),
                steps = rows < columns ? rows : columns;
  const mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *batch = batch_zeros(x),
             *square = mix_add(column_of(column_of(batch)), units(rows, rows, dtype));
  mix_tensor *after = mix_layer_range(behind(rows, dtype), 0, 0, steps, 1);
  if (mix_failed() || !run(&l, reflect, NULL, mix_list_of(x, square),
                           mix_list_of(units(steps, columns, dtype), units(steps, rows, dtype), after)))
    return NULL;
  mix_tensor *r = mix_list_get(l.carry, 0), *q = mix_list_get(l.carry, 1);
  mix_tensor *place = mix_range(0, (double)columns, 1, MIX_INT64),
             *row = mix_reshape(mix_range(0, (double)rows, 1, MIX_INT64), MIX_SHAPE(rows, 1));
  r = mix_select(mix_greater_equal(place, row), r, number(r, 0));
  if (!complete) {
    q = mix_layer_range(q, rank - 1, 0, steps, 1);
    r = mix_layer_range(r, rank - 2, 0, steps, 1);
  }
  return mix_failed() ? NULL : mix_list_of(q, r);
}

/* ---- the tables ---- */

#define EIGENVALUES "the library has no solver for eigenvalues and singular values"
#define ALGEBRA(name, options, ...)                                                                          \
  MIX_KERAS_OPERATION(name, "linalg", "x", options, __VA_ARGS__, .rule = MIX_OPERANDS_FLOATING)
#define OF_TWO(name, options, function)                                                                      \
  MIX_KERAS_OPERATION(name, "linalg", "a b", options, .build = function, .rule = MIX_OPERANDS_FLOATING)

const mix_keras_operation mix_keras_algebra_operations[] = {
    ALGEBRA("Inv", "", .build = inv),
    ALGEBRA("Det", "", .build = det),
    ALGEBRA("Cholesky", "upper", .build = cholesky),
    ALGEBRA("CholeskyInverse", "upper", .build = cholesky_inverse),
    ALGEBRA("LuFactor", "", .results = lu_factor),
    ALGEBRA("Qr", "mode=\"reduced\"", .results = qr),
    OF_TWO("Solve", "", solve),
    OF_TWO("SolveTriangular", "lower", solve_triangular),
    MIX_KERAS_OPERATION("Slogdet", "numpy", "x", "", .results = slogdet, .rule = MIX_OPERANDS_FLOATING),
    MIX_KERAS_OPERATION("Logdet", "math", "x", "", .build = logdet, .rule = MIX_OPERANDS_FLOATING),
    ALGEBRA("Eig", "", .refusal = EIGENVALUES),
    ALGEBRA("Eigh", "", .refusal = EIGENVALUES),
    ALGEBRA("SVD", "full_matrices compute_uv", .refusal = EIGENVALUES),
    ALGEBRA("Pinv", "rcond", .refusal = EIGENVALUES),
    ALGEBRA("MatrixRank", "tol", .refusal = EIGENVALUES),
    MIX_KERAS_OPERATION("Lstsq", "linalg", "a b", "rcond", .refusal = EIGENVALUES),
    {.operation = {0}}};

const mix_operation mix_tf_algebra_operations[] = {
    MIX_TF_OPERATION("linalg.inv", "input", "!adjoint=false", .build = inv),
    MIX_TF_OPERATION("linalg.det", "input", "", .build = det),
    MIX_TF_OPERATION("linalg.cholesky", "input", "", .build = cholesky),
    MIX_TF_OPERATION("linalg.logdet", "matrix", "", .build = logdet),
    {0}};
