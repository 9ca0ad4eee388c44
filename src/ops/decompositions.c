/* Eigenvalues and singular values: ops of their own, because as loops of other operations they would be
 * inexact and slow. Kernels compute in double by algorithms of a page each: LAPACK's package would be one
 * more library to link for four calls, with bits of its own on each machine. Gradients are TensorFlow's. */
#include "ops/decompositions.h"
#include "ops/matrices.h"
#include <mixtape/linear_algebra.h>
#include <math.h>

/* The sizes of operand 0, (..., rows, columns). */
static bool matrix_sizes(const mix_node *node, int64_t *rows, int64_t *columns) {
  const mix_shape shape = mix_input_value(node, 0)->shape;
  if (shape.rank < 2) return mix_rule_fail(node, "it is no matrix; expected (..., rows, columns)");
  *rows = shape.dims[shape.rank - 2], *columns = shape.dims[shape.rank - 1];
  return true;
}

static bool put_matrix(mix_node *node, int output, int64_t rows, int64_t columns) {
  mix_shape shape = mix_input_value(node, 0)->shape;
  shape.dims[shape.rank - 2] = rows, shape.dims[shape.rank - 1] = columns;
  return mix_rule_output(node, output, shape);
}

static bool put_vector(mix_node *node, int output, int64_t size) {
  mix_shape shape = mix_input_value(node, 0)->shape;
  shape.dims[--shape.rank - 1] = size;
  return mix_rule_output(node, output, shape);
}

static bool square_size(const mix_node *node, int64_t *size) {
  int64_t rows = 0, columns = 0;
  if (!matrix_sizes(node, &rows, &columns)) return false;
  return mix_dimension_merge(rows, columns, size) ||
         mix_rule_fail(node, "the last two sizes differ; expected square matrices (..., n, n)");
}

static bool rows_before_matrices(const mix_row_query *query) { return query->inputs[0].rank > 2; }

bool mix_call_matrices(const char *call, const mix_tensor *x, bool square) {
  if (!mix_operand_ready(call, x)) return false;
  const int rank = mix_rank_of(x);
  const int64_t rows = rank > 1 ? mix_size_from_end(x, -2) : -1,
                columns = rank > 1 ? mix_size_from_end(x, -1) : -1;
  if (rows >= 1 && columns >= 1 && (!square || rows == columns) && mix_dtype_is_real(mix_tensor_dtype(x)))
    return true;
  return mix_call_fail(MIX_VALUE_ERROR, call, x,
                       "expected %smatrices (..., n, %s) of known sizes and a floating dtype",
                       square ? "square " : "", square ? "n" : "m");
}

/* ---- parts of gradients, in float32 for 16 bits ---- */

static mix_tensor *wide(mix_tensor *x) {
  return x && mix_dtype_size(mix_tensor_dtype(x)) < 4 ? mix_cast(x, MIX_FLOAT32) : x;
}
static mix_tensor *product(mix_tensor *a, mix_tensor *b) { return mix_matmul(a, b, false, false); }
static mix_tensor *adjoint_product(mix_tensor *a, mix_tensor *b) { return mix_matmul(a, b, true, false); }
static mix_tensor *product_adjoint(mix_tensor *a, mix_tensor *b) { return mix_matmul(a, b, false, true); }
/* TensorFlow's _SafeReciprocal: 0 for 0. */
static mix_tensor *safe_reciprocal(mix_tensor *x) {
  return mix_multiply(x, mix_reciprocal(mix_plus(mix_square(x), 1e-20)));
}
/* A matrix (..., n, n) with 0 on its diagonal, also as what has no gradient there. */
static mix_tensor *without_diagonal(mix_tensor *x) {
  const int64_t n = mix_size_from_end(x, -1);
  mix_tensor *units = mix_unit_rows(n, n, mix_tensor_dtype(x));
  return mix_multiply(x, mix_subtract(mix_scalar_like(units, 1), units));
}
/* x[j] - x[i] at (i, j). */
static mix_tensor *differences(mix_tensor *x) { return mix_subtract(mix_as_row(x), mix_as_column(x)); }
static mix_tensor *reciprocal_differences(mix_tensor *x) {
  return without_diagonal(safe_reciprocal(differences(x)));
}
static mix_tensor *sum_of(mix_tensor *a, mix_tensor *b) { return a && b ? mix_add(a, b) : a ? a : b; }

/* ---- eigh ---- */

static bool eigh_infer(mix_node *node) {
  int64_t n = 0;
  return square_size(node, &n) && put_vector(node, 0, n) && put_matrix(node, 1, n, n);
}

/* _SelfAdjointEigV2Grad: v (diag(de) + f v^T dv) v^T with f = 1 / (e[j] - e[i]), of which the lower triangle
 * gets what belongs to both. */
static void eigh_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  mix_tensor *e = wide(mix_tensor_of(node, 0)), *v = wide(mix_tensor_of(node, 1)),
             *de = wide(output_gradients[0]), *dv = wide(output_gradients[1]);
  mix_tensor *inner = NULL;
  if (de) inner = mix_multiply(v, mix_as_row(de));
  if (dv) inner = sum_of(inner, product(v, mix_multiply(reciprocal_differences(e), adjoint_product(v, dv))));
  mix_tensor *whole = product_adjoint(inner, v);
  if (!whole) return;
  const int64_t n = mix_size_from_end(v, -1);
  mix_tensor *place = mix_range(0, (double)n, 1, MIX_INT64), *row = mix_reshape(place, MIX_SHAPE(n, 1)),
             *below = mix_cast(mix_less(place, row), mix_tensor_dtype(v)),
             *half = mix_times(mix_unit_rows(n, n, mix_tensor_dtype(v)), 0.5);
  mix_tensor *lower = mix_multiply(mix_add(whole, mix_transposed(whole)), mix_add(below, half));
  input_gradients[0] = mix_cast(lower, mix_input_value(node, 0)->dtype);
}

const mix_op mix_op_eigh = {.name = "eigh",
                            .tf_name = "SelfAdjointEigV2",
                            .signature = "T->T,T",
                            .types = "float",
                            .infer = eigh_infer,
                            .row_independent = rows_before_matrices,
                            .gradient = eigh_gradient};

static mix_list *outputs_of(mix_tensor *first, int count) {
  mix_tensor *parts[4] = {first};
  for (int i = 1; first && i < count; i++) parts[i] = mix_tensor_of(first->node, i);
  return first && !mix_failed() ? mix_list_new(count, (void **)parts) : NULL;
}

mix_list *mix_eigh(mix_tensor *x) {
  return mix_operand_ready("eigh", x) ? outputs_of(mix_apply1(&mix_op_eigh, x), 2) : NULL;
}

/* ---- svd ---- */

static bool svd_infer(mix_node *node) {
  int64_t m = 0, n = 0;
  if (!matrix_sizes(node, &m, &n)) return false;
  const bool full = ((const mix_svd_attributes *)node->attributes)->full_matrices;
  const int64_t least = m < 0 || n < 0 ? MIX_UNKNOWN : m < n ? m : n;
  return put_vector(node, 0, least) && put_matrix(node, 1, m, full ? m : least) &&
         put_matrix(node, 2, n, full ? n : least);
}

typedef struct svd_parts {
  mix_tensor *s, *u, *v, *ds, *du, *dv; /* gradients may be NULL */
  int64_t m, n;                         /* m <= n */
} svd_parts;

/* What the vectors of the longer side add: u / s (dv1^T - dv1^T v1 v1^T - v1^T dv2 v2^T), of which v1 are
 * the first m. */
static mix_tensor *outside_part(const svd_parts *p, mix_tensor *v1, mix_tensor *dv1, bool full) {
  const int last = mix_rank_of(p->v) - 1;
  mix_tensor *part = mix_subtract(mix_transposed(dv1), product_adjoint(adjoint_product(dv1, v1), v1));
  if (full) {
    mix_tensor *v2 = mix_range_of(p->v, last, p->m, p->n - p->m),
               *dv2 = mix_range_of(p->dv, last, p->m, p->n - p->m);
    part = mix_subtract(part, product_adjoint(adjoint_product(v1, dv2), v2));
  }
  return product(mix_multiply(p->u, mix_as_row(safe_reciprocal(p->s))), part);
}

/* _SvdGrad (Giles, 2008): u (diag(ds) + (f u^T du + its transpose) S + S (f v^T dv + its transpose)) v^T with
 * f = 1 / (s[j]^2 - s[i]^2), for matrices that are not taller than wide. */
static mix_tensor *wide_gradient(const svd_parts *p, bool full) {
  mix_tensor *v1 = full ? mix_range_of(p->v, mix_rank_of(p->v) - 1, 0, p->m) : p->v, *inner = NULL,
             *dv1 = full && p->dv ? mix_range_of(p->dv, mix_rank_of(p->v) - 1, 0, p->m) : p->dv;
  mix_tensor *f = p->du || p->dv ? reciprocal_differences(mix_square(p->s)) : NULL;
  if (p->ds) inner = mix_multiply(p->u, mix_as_row(p->ds));
  if (p->du) {
    mix_tensor *part = mix_multiply(f, adjoint_product(p->u, p->du));
    part = mix_multiply(mix_add(part, mix_transposed(part)), mix_as_row(p->s));
    inner = sum_of(inner, product(p->u, part));
  }
  if (p->dv) {
    mix_tensor *part = mix_multiply(f, adjoint_product(v1, dv1));
    part = mix_multiply(mix_add(part, mix_transposed(part)), mix_as_column(p->s));
    inner = sum_of(inner, product(p->u, part));
  }
  mix_tensor *gradient = product_adjoint(inner, v1);
  return p->dv && p->m < p->n ? mix_add(gradient, outside_part(p, v1, dv1, full)) : gradient;
}

static void svd_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  const mix_value *x = mix_input_value(node, 0);
  svd_parts p = {.m = x->shape.dims[x->shape.rank - 2], .n = x->shape.dims[x->shape.rank - 1]};
  mix_tensor **const values[] = {&p.s, &p.u, &p.v}, **const gradients[] = {&p.ds, &p.du, &p.dv};
  const bool full = ((const mix_svd_attributes *)node->attributes)->full_matrices, tall = p.m > p.n;
  for (int i = 0; i < 3; i++) {
    const int from = tall && i ? 3 - i : i;
    *values[i] = wide(mix_tensor_of(node, from));
    *gradients[i] = wide(output_gradients[from]);
  }
  if (tall) p.m = p.n, p.n = x->shape.dims[x->shape.rank - 2];
  if (full && p.dv && p.n - p.m > 1) {
    mix_call_fail(
        MIX_UNSUPPORTED, "svd", NULL,
        "vectors of full_matrices have a gradient only where the numbers of rows and columns differ "
        "by at most 1, as in TensorFlow");
    return;
  }
  mix_tensor *gradient = wide_gradient(&p, full);
  if (gradient) input_gradients[0] = mix_cast(tall ? mix_transposed(gradient) : gradient, x->dtype);
}

static const mix_attribute_row svd_fields[] = {
    {"full_matrices", MIX_ATTRIBUTE_BOOL, offsetof(mix_svd_attributes, full_matrices)}, {NULL}};

const mix_op mix_op_svd = {.name = "svd",
                           .tf_name = "Svd",
                           .signature = "T->T,T,T",
                           .types = "float",
                           .attributes_size = sizeof(mix_svd_attributes),
                           .infer = svd_infer,
                           .row_independent = rows_before_matrices,
                           .gradient = svd_gradient,
                           .fields = svd_fields};

mix_list *mix_svd(mix_tensor *x, bool full_matrices) {
  if (!mix_operand_ready("svd", x)) return NULL;
  return outputs_of(mix_apply(&mix_op_svd, &(mix_svd_attributes){full_matrices}, 1, &x), 3);
}

/* ---- eig ---- */

static bool eig_infer(mix_node *node) {
  int64_t n = 0;
  return square_size(node, &n) && put_vector(node, 0, n) && put_vector(node, 1, n) &&
         put_matrix(node, 2, n, n) && put_matrix(node, 3, n, n);
}

/* A tensor of complex numbers. */
typedef struct pair {
  mix_tensor *re, *im;
} pair;

static pair minus_pair(pair a, pair b) { return (pair){mix_subtract(a.re, b.re), mix_subtract(a.im, b.im)}; }
static pair adjoint_of(pair a) { return (pair){mix_transposed(a.re), mix_negative(mix_transposed(a.im))}; }
static pair scaled_pair(pair a, mix_tensor *by) {
  return (pair){mix_multiply(a.re, by), mix_multiply(a.im, by)};
}
static pair pair_product(pair a, pair b, mix_tensor *(*times)(mix_tensor *, mix_tensor *)) {
  return (pair){mix_subtract(times(a.re, b.re), times(a.im, b.im)),
                mix_add(times(a.re, b.im), times(a.im, b.re))};
}

/* ---- systems of equations, of the gradient of eig ---- */

static bool matrix_solve_infer(mix_node *node) {
  const mix_shape a = mix_input_value(node, 0)->shape, b = mix_input_value(node, 1)->shape;
  int64_t n = 0;
  bool fits = a.rank >= 2 && a.rank == b.rank;
  if (fits && !square_size(node, &n)) return false;
  for (int i = 0; fits && i < a.rank - 1; i++) fits = mix_dimension_merge(a.dims[i], b.dims[i], &n);
  return fits ? mix_rule_output(node, 0, b) : mix_rule_fail(node, "expected (..., n, n) and (..., n, m)");
}

/* _MatrixSolveGrad. */
static void matrix_solve_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                  mix_tensor **input_gradients) {
  mix_tensor *a = mix_node_input(node, 0), *x = mix_tensor_of(node, 0);
  mix_tensor *db = mix_apply2(&mix_op_matrix_solve, mix_transposed(a), output_gradients[0]);
  input_gradients[0] = mix_negative(product_adjoint(db, x));
  input_gradients[1] = db;
}

const mix_op mix_op_matrix_solve = {.name = "matrix_solve",
                                    .tf_name = "MatrixSolve",
                                    .signature = "T,T->T",
                                    .types = "float",
                                    .infer = matrix_solve_infer,
                                    .row_independent = rows_before_matrices,
                                    .gradient = matrix_solve_gradient};

/* The real part of a^-1 b, by real matrices of twice the size. */
static mix_tensor *real_of_solution(pair a, pair b) {
  const int64_t n = mix_size_from_end(a.re, -1);
  const int last = mix_rank_of(a.re) - 1;
  mix_tensor *upper[] = {a.re, mix_negative(a.im)}, *lower[] = {a.im, a.re}, *right[] = {b.re, b.im};
  mix_tensor *halves[] = {mix_concat(2, upper, last), mix_concat(2, lower, last)};
  mix_tensor *both =
      mix_apply2(&mix_op_matrix_solve, mix_concat(2, halves, last - 1), mix_concat(2, right, last - 1));
  return both ? mix_range_of(both, last - 1, 0, n) : NULL;
}

/* conj(1 / (e[j] - e[i])), 0 on the diagonal. */
static pair gaps(pair e) {
  const pair d = {differences(e.re), differences(e.im)};
  mix_tensor *size = mix_add(mix_square(d.re), mix_square(d.im));
  return scaled_pair(d, without_diagonal(mix_reciprocal(mix_plus(size, 1e-20))));
}

/* f (v^H dv - v^H v diag(Re v^H dv)): what vectors of length 1 add. */
static pair vector_part(pair e, pair v, pair dv) {
  const int64_t n = mix_size_from_end(v.re, -1);
  const pair vh = adjoint_of(v), moved = pair_product(vh, dv, product), gram = pair_product(vh, v, product);
  mix_tensor *diagonal =
      mix_reduce_sum(mix_multiply(moved.re, mix_unit_rows(n, n, mix_tensor_dtype(v.re))), MIX_AXES(-2), true);
  return pair_product(gaps(e), minus_pair(moved, scaled_pair(gram, diagonal)), mix_multiply);
}

/* _EigGrad (Boeddeker et al., 2017, 4.77): v^-H (diag(de) + what the vectors add) v^H. */
static void eig_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  mix_tensor *all[4], *given[4];
  for (int i = 0; i < 4; i++) {
    all[i] = wide(mix_tensor_of(node, i));
    given[i] = output_gradients[i] ? wide(output_gradients[i]) : all[i] ? mix_zeros_like(all[i]) : NULL;
  }
  if (mix_failed()) return;
  const pair e = {all[0], all[1]}, v = {all[2], all[3]}, de = {given[0], given[1]}, vh = adjoint_of(v);
  pair right = pair_product((pair){mix_as_column(de.re), mix_as_column(de.im)}, vh, mix_multiply);
  if (output_gradients[2] || output_gradients[3]) {
    const pair part = pair_product(vector_part(e, v, (pair){given[2], given[3]}), vh, product);
    right = (pair){mix_add(right.re, part.re), mix_add(right.im, part.im)};
  }
  mix_tensor *gradient = real_of_solution(vh, right);
  if (gradient) input_gradients[0] = mix_cast(gradient, mix_input_value(node, 0)->dtype);
}

const mix_op mix_op_eig = {.name = "eig",
                           .tf_name = "Eig",
                           .signature = "T->T,T,T,T",
                           .types = "float",
                           .infer = eig_infer,
                           .row_independent = rows_before_matrices,
                           .gradient = eig_gradient};

mix_list *mix_eig(mix_tensor *x) {
  return mix_operand_ready("eig", x) ? outputs_of(mix_apply1(&mix_op_eig, x), 4) : NULL;
}

/* ---- what is made of singular values ---- */

static double epsilon_of(const mix_tensor *x) {
  switch (mix_tensor_dtype(x)) {
  case MIX_FLOAT64: return 0x1p-52;
  case MIX_FLOAT16: return 0x1p-10;
  case MIX_BFLOAT16: return 0x1p-7;
  default: return 0x1p-23;
  }
}
static double larger_size(const mix_tensor *x) {
  const int64_t m = mix_size_from_end(x, -2), n = mix_size_from_end(x, -1);
  return (double)(m > n ? m : n);
}
static mix_tensor *largest_of(mix_tensor *s) { return mix_reduce_max(s, MIX_AXES(-1), true); }

mix_tensor *mix_matrix_rank(mix_tensor *x, double tolerance) {
  mix_list *parts = mix_call_matrices("matrix_rank", x, false) ? mix_svd(x, false) : NULL;
  if (!parts) return NULL;
  mix_tensor *s = mix_list_get(parts, 0);
  mix_tensor *least = tolerance == tolerance ? mix_scalar_like(s, tolerance)
                                             : mix_times(largest_of(s), epsilon_of(x) * larger_size(x));
  return mix_reduce_sum(mix_cast(mix_greater(s, least), MIX_INT32), MIX_AXES(-1), false);
}

mix_tensor *mix_pseudo_inverse(mix_tensor *x, double cutoff) {
  mix_list *parts = mix_call_matrices("pseudo_inverse", x, false) ? mix_svd(x, false) : NULL;
  if (!parts) return NULL;
  mix_tensor *s = mix_list_get(parts, 0), *u = mix_list_get(parts, 1), *v = mix_list_get(parts, 2);
  if (cutoff != cutoff) cutoff = 10 * larger_size(x) * epsilon_of(x);
  mix_tensor *counts = mix_greater(s, mix_times(largest_of(s), cutoff));
  s = mix_select(counts, s, mix_scalar_like(s, INFINITY)); /* 1 / s is 0 and its gradient too */
  return product_adjoint(mix_divide(v, mix_as_row(s)), u);
}

mix_tensor *mix_least_squares(mix_tensor *a, mix_tensor *b, double cutoff) {
  if (!mix_call_matrices("least_squares", a, false) || !mix_operand_ready("least_squares", b)) return NULL;
  const int rank = mix_rank_of(a), other = mix_rank_of(b);
  const bool vector = other == rank - 1;
  if ((!vector && other != rank) || mix_size_from_end(b, vector ? -1 : -2) != mix_size_from_end(a, -2))
    return mix_call_fail(MIX_VALUE_ERROR, "least_squares", a,
                         "b is %s; expected (..., m) or (..., m, k) for a (..., m, n)",
                         MIX_SHAPE_TEXT(mix_tensor_shape(b)));
  mix_list *parts = mix_svd(a, false);
  if (!parts) return NULL;
  mix_tensor *s = mix_list_get(parts, 0), *u = mix_list_get(parts, 1), *v = mix_list_get(parts, 2);
  if (cutoff != cutoff) cutoff = larger_size(a) * epsilon_of(a);
  if (cutoff < 0) cutoff = epsilon_of(a);
  mix_tensor *counts = mix_greater_equal(s, mix_times(largest_of(s), cutoff)), *one = mix_scalar_like(s, 1);
  mix_tensor *inverse =
      mix_select(counts, mix_divide(one, mix_select(counts, s, one)), mix_scalar_like(s, 0));
  mix_tensor *x =
      product(v, mix_multiply(mix_as_column(inverse), adjoint_product(u, vector ? mix_as_column(b) : b)));
  return vector ? mix_squeeze(x, MIX_AXES(-1)) : x;
}
