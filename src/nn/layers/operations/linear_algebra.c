/* Linear algebra of keras.ops and tf.linalg: calls of mixtape/linear_algebra.h. */
#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include "ops/complex.h"
#include "ops/matrices.h"
#include <mixtape/linear_algebra.h>
#include <math.h>
#include <string.h>

typedef mix_tensor *unary(mix_tensor *x);
typedef mix_list *several(mix_tensor *x);

/* Matrices of known sizes, square ones if `square`. */
static bool are_matrices(const mix_operands *o, const mix_tensor *x, bool square) {
  if (mix_failed()) return false;
  const int rank = mix_rank_of(x);
  const int64_t rows = rank > 1 ? mix_size_from_end(x, -2) : -1,
                columns = rank > 1 ? mix_size_from_end(x, -1) : -1;
  if (rows >= 1 && columns >= 1 && (!square || rows == columns) && mix_dtype_is_floating(mix_tensor_dtype(x)))
    return true;
  return mix_operation_fail(o, MIX_VALUE_ERROR,
                            "its operand is %s %s; expected %smatrices (..., n, %s) of known "
                            "sizes and a floating dtype",
                            mix_dtype_name(mix_tensor_dtype(x)), MIX_SHAPE_TEXT(mix_tensor_shape(x)),
                            square ? "square " : "", square ? "n" : "m");
}
static mix_tensor *of_square(const mix_operands *o, mix_tensor *x, unary *function) {
  return are_matrices(o, x, true) ? function(x) : NULL;
}
static mix_list *several_of_square(const mix_operands *o, mix_tensor *x, several *function) {
  return are_matrices(o, x, true) ? function(x) : NULL;
}
/* NaN, the default, where the option is None. */
static double optional(const mix_operands *o, const char *name) {
  return mix_operand_json(o, name) ? mix_operand_number(o, name) : NAN;
}

/* ---- systems of equations ---- */

static bool is_system(const mix_operands *o, mix_tensor **pair) {
  static const char *const names[] = {"a", "b"}, *const tf_names[] = {"matrix", "rhs"};
  if (!mix_operands_promoted(o, 2, mix_operands_of_tf(o) ? tf_names : names, pair) ||
      !are_matrices(o, pair[0], true))
    return false;
  const int rank = mix_rank_of(pair[0]), other = mix_rank_of(pair[1]);
  if ((other == rank || other == rank - 1) &&
      mix_size_from_end(pair[1], other == rank ? -2 : -1) == mix_size_from_end(pair[0], -1))
    return true;
  return mix_operation_fail(o, MIX_VALUE_ERROR, "a is %s and b %s; expected (..., n, n) and (..., n, m)",
                            MIX_SHAPE_TEXT(mix_tensor_shape(pair[0])),
                            MIX_SHAPE_TEXT(mix_tensor_shape(pair[1])));
}
static mix_tensor *solve(const mix_operands *o, mix_tensor *unused) {
  mix_tensor *pair[2];
  return is_system(o, pair) ? mix_solve(pair[0], pair[1]) : NULL;
}
static mix_tensor *solve_triangular(const mix_operands *o, mix_tensor *unused) {
  mix_tensor *pair[2];
  const bool lower = mix_operand_flag(o, "lower");
  return is_system(o, pair) ? mix_solve_triangular(pair[0], pair[1], lower) : NULL;
}
static mix_tensor *inv(const mix_operands *o, mix_tensor *x) { return of_square(o, x, mix_inverse); }
static mix_tensor *det(const mix_operands *o, mix_tensor *x) { return of_square(o, x, mix_determinant); }
static mix_list *slogdet(const mix_operands *o, mix_tensor *x) {
  return several_of_square(o, x, mix_log_determinant);
}
static mix_list *lu_factor(const mix_operands *o, mix_tensor *x) { return several_of_square(o, x, mix_lu); }

static mix_tensor *cholesky(const mix_operands *o, mix_tensor *x) {
  const bool upper = mix_operand_flag(o, "upper");
  mix_tensor *lower = of_square(o, x, mix_cholesky);
  return upper && lower ? mix_transposed(lower) : lower;
}
static mix_tensor *identity_like(mix_tensor *x) {
  const int64_t n = mix_size_from_end(x, -1);
  return mix_add(mix_zeros_like(x), mix_unit_rows(n, n, mix_tensor_dtype(x)));
}
static mix_tensor *cholesky_inverse(const mix_operands *o, mix_tensor *x) {
  const bool upper = mix_operand_flag(o, "upper");
  if (!are_matrices(o, x, true)) return NULL;
  mix_tensor *inverse = mix_solve_triangular(x, identity_like(x), !upper);
  return mix_matmul(inverse, inverse, !upper, upper);
}
static mix_tensor *logdet(const mix_operands *o, mix_tensor *x) {
  mix_tensor *lower = of_square(o, x, mix_cholesky);
  if (!lower) return NULL;
  const int64_t n = mix_size_from_end(x, -1);
  mix_tensor *diagonal = mix_sum_last(mix_multiply(lower, mix_unit_rows(n, n, mix_tensor_dtype(x))), false);
  return mix_times(mix_sum_last(mix_log(diagonal), false), 2);
}

static mix_list *tf_qr(const mix_operands *o, mix_tensor *x) {
  const bool complete = mix_operand_flag(o, "full_matrices");
  return are_matrices(o, x, false) ? mix_qr(x, complete) : NULL;
}
static mix_list *qr(const mix_operands *o, mix_tensor *x) {
  const char *mode = mix_operand_text(o, "mode");
  if (!mode || !are_matrices(o, x, false)) return NULL;
  const bool complete = !strcmp(mode, "complete");
  if (!complete && strcmp(mode, "reduced"))
    return mix_operand_refused(o, MIX_VALUE_ERROR, "mode", "\"reduced\" or \"complete\"");
  return mix_qr(x, complete);
}

/* ---- eigenvalues and singular values ---- */

static mix_list *eigh(const mix_operands *o, mix_tensor *x) { return several_of_square(o, x, mix_eigh); }

static mix_tensor *eigvalsh(const mix_operands *o, mix_tensor *x) {
  mix_list *parts = eigh(o, x);
  return parts ? mix_list_get(parts, 0) : NULL;
}

static mix_list *eig(const mix_operands *o, mix_tensor *x) {
  mix_list *parts = several_of_square(o, x, mix_eig);
  if (!parts) return NULL;
  mix_tensor *values = mix_complex(mix_list_get(parts, 0), mix_list_get(parts, 1)),
             *vectors = mix_complex(mix_list_get(parts, 2), mix_list_get(parts, 3));
  return mix_failed() ? NULL : mix_list_of(values, vectors);
}

/* Keras's order is u, s, v^T; TensorFlow's s, u, v. */
static mix_list *svd(const mix_operands *o, mix_tensor *x) {
  const bool full = mix_operand_flag(o, "full_matrices"), vectors = mix_operand_flag(o, "compute_uv");
  mix_list *parts = are_matrices(o, x, false) ? mix_svd(x, full && vectors) : NULL;
  if (!parts) return NULL;
  mix_tensor *s = mix_list_get(parts, 0), *u = mix_list_get(parts, 1), *v = mix_list_get(parts, 2);
  if (!vectors) return mix_list_of(s);
  if (mix_operands_of_tf(o)) return parts;
  mix_tensor *transposed = mix_transposed(v);
  return mix_failed() ? NULL : mix_list_of(u, s, transposed);
}

static mix_tensor *pinv(const mix_operands *o, mix_tensor *x) {
  const double cutoff = optional(o, "rcond");
  return are_matrices(o, x, false) ? mix_pseudo_inverse(x, cutoff) : NULL;
}
static mix_tensor *matrix_rank(const mix_operands *o, mix_tensor *x) {
  const double tolerance = optional(o, "tol");
  return are_matrices(o, x, false) ? mix_matrix_rank(x, tolerance) : NULL;
}

/* Keras has no batches here. */
static mix_tensor *lstsq(const mix_operands *o, mix_tensor *unused) {
  static const char *const names[] = {"a", "b"};
  mix_tensor *pair[2];
  const double cutoff = optional(o, "rcond");
  if (!mix_operands_promoted(o, 2, names, pair) || !are_matrices(o, pair[0], false)) return NULL;
  const int other = mix_rank_of(pair[1]);
  if (mix_rank_of(pair[0]) != 2 || (other != 1 && other != 2) ||
      mix_operand_size(pair[1], 0) != mix_operand_size(pair[0], 0))
    return mix_operation_fail(o, MIX_VALUE_ERROR, "a is %s and b %s; expected (m, n) and (m) or (m, k)",
                              MIX_SHAPE_TEXT(mix_tensor_shape(pair[0])),
                              MIX_SHAPE_TEXT(mix_tensor_shape(pair[1])));
  return mix_least_squares(pair[0], pair[1], cutoff);
}

/* ---- the tables ---- */

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
    ALGEBRA("Eig", "", .results = eig),
    ALGEBRA("Eigh", "", .results = eigh),
    ALGEBRA("SVD", "full_matrices=true compute_uv=true", .results = svd),
    ALGEBRA("Pinv", "rcond", .build = pinv),
    ALGEBRA("MatrixRank", "tol", .build = matrix_rank),
    OF_TWO("Lstsq", "rcond", lstsq),
    {.operation = {0}}};

const mix_operation mix_tf_algebra_operations[] = {
    MIX_TF_OPERATION("linalg.inv", "input", "!adjoint=false", .build = inv),
    MIX_TF_OPERATION("linalg.det", "input", "", .build = det),
    MIX_TF_OPERATION("linalg.cholesky", "input", "", .build = cholesky),
    MIX_TF_OPERATION("linalg.logdet", "matrix", "", .build = logdet),
    MIX_TF_OPERATION("linalg.slogdet", "input", "", .results = slogdet),
    MIX_TF_OPERATION("linalg.solve", "matrix", "rhs !adjoint=false", .build = solve),
    MIX_TF_OPERATION("linalg.triangular_solve", "matrix", "rhs lower=true !adjoint=false",
                     .build = solve_triangular),
    MIX_TF_OPERATION("linalg.qr", "input", "full_matrices=false", .results = tf_qr),
    MIX_TF_OPERATION("linalg.eigh", "tensor", "", .results = eigh),
    MIX_TF_OPERATION("linalg.eigvalsh", "tensor", "", .build = eigvalsh),
    MIX_TF_OPERATION("linalg.svd", "tensor", "full_matrices=false compute_uv=true", .results = svd),
    MIX_TF_OPERATION("linalg.pinv", "a", "rcond !validate_args=false", .build = pinv),
    MIX_TF_OPERATION("linalg.matrix_rank", "a", "tol !validate_args=false", .build = matrix_rank),
    {0}};
