/* Linear algebra: identities that results must satisfy, matrices that are hard, and what is refused. */
/* Holds docs/NUMERICS.md: Linear algebra. */
#include "ops/support.h"

#include "base/alloc.h"
#include "ops/complex.h"
#include <mixtape/linear_algebra.h>

enum { MOST = 40 };

/* ---- matrices of float64, row after row ---- */

typedef struct matrix {
  int rows, columns;
  double x[MOST * MOST];
} matrix;

static double at(const matrix *m, int i, int j) { return m->x[i * m->columns + j]; }

typedef enum kind {
  DENSE,
  IDENTITY,
  ALL_ONES,
  ZERO,
  LARGE,
  SMALL,
  GRADED,
  NILPOTENT,
  CYCLE,
  JORDAN,
  KINDS
} kind;

static double element_of(kind k, int i, int j) {
  const double dense = sin(1.7 * i * i + 0.9 * j + 0.3 * i * j + 1);
  switch (k) {
  case DENSE: return dense;
  case IDENTITY: return i == j;
  case ALL_ONES: return 1;
  case ZERO: return 0;
  case LARGE: return 1e300 * dense;
  case SMALL: return 1e-300 * dense;
  case GRADED: return dense * pow(10, -0.5 * (i + j));
  case NILPOTENT: return j == i + 1;
  case CYCLE: return j == i + 1 || (!j && i && i % 5 == 4);
  default: return i == j || j == i + 1;
  }
}

static matrix *matrix_of(kind k, int rows, int columns, bool symmetric) {
  matrix *m = calloc(1, sizeof *m);
  m->rows = rows, m->columns = columns;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      m->x[i * columns + j] = symmetric && j > i ? element_of(k, j, i) : element_of(k, i, j);
  return m;
}
static mix_tensor *tensor_of(const matrix *m) {
  return tensor(MIX_FLOAT64, MIX_SHAPE(m->rows, m->columns), m->x);
}
static double largest_of(const matrix *m) {
  double largest = 0;
  for (int i = 0; i < m->rows * m->columns; i++) largest = fmax(largest, fabs(m->x[i]));
  return largest;
}
static matrix *read_matrix(mix_tensor *x) {
  const mix_shape shape = mix_tensor_shape(x);
  matrix *m = calloc(1, sizeof *m);
  m->rows = (int)shape.dims[0], m->columns = shape.rank > 1 ? (int)shape.dims[1] : 1;
  read_into(x, m->rows * m->columns, m->x);
  return m;
}

/* Sums of n products, each of numbers of about 1 in units of the largest element, after some n
 * transformations that are each exact to a few 2^-53. */
static double bound_of(int n) { return 40.0 * n * n * 0x1p-53; }

static void orthonormal_columns(const char *what, const matrix *m) {
  for (int a = 0; a < m->columns; a++)
    for (int b = 0; b <= a; b++) {
      double sum = 0;
      for (int i = 0; i < m->rows; i++) sum += at(m, i, a) * at(m, i, b);
      if (!(fabs(sum - (a == b)) <= bound_of(m->rows)))
        fail_msg("%s: columns %d and %d have the product %.17g", what, a, b, sum);
    }
}

/* ---- eigh ---- */

static void eigenvectors_of(kind k, int n) {
  matrix *a = matrix_of(k, n, n, true);
  mix_list *parts = mix_eigh(tensor_of(a));
  no_error();
  matrix *e = read_matrix(mix_list_get(parts, 0)), *v = read_matrix(mix_list_get(parts, 1));
  const double scale = largest_of(a) > 0 ? largest_of(a) : 1;
  orthonormal_columns("eigh", v);
  for (int j = 0; j < n; j++) {
    if (j && !(e->x[j] >= e->x[j - 1])) fail_msg("eigenvalue %d of kind %d is not in order", j, k);
    for (int i = 0; i < n; i++) {
      double sum = 0;
      for (int l = 0; l < n; l++) sum += at(a, i, l) / scale * at(v, l, j);
      if (!(fabs(sum - e->x[j] / scale * at(v, i, j)) <= bound_of(n)))
        fail_msg("eigh of kind %d, size %d: vector %d is off at %d by %g", k, n, j, i,
                 sum - e->x[j] / scale * at(v, i, j));
    }
  }
  free(a), free(e), free(v);
}

static void symmetric_matrices(void **state) {
  (void)state;
  static const int sizes[] = {1, 2, 3, 8, 33};
  for (int k = 0; k < KINDS; k++)
    for (int s = 0; s < COUNT(sizes); s++)
      MIX_SCOPE { eigenvectors_of((kind)k, sizes[s]); }
  /* what is above the diagonal is not read */
  mix_list *parts = mix_eigh(tensor(MIX_FLOAT32, MIX_SHAPE(2, 2), NUMBERS(2, NAN, 1, 2)));
  has_values(mix_list_get(parts, 0), 2, NUMBERS(1, 3));
}

/* ---- svd ---- */

static void singular_values_of(kind k, int m, int n, bool full) {
  matrix *a = matrix_of(k, m, n, false);
  mix_list *parts = mix_svd(tensor_of(a), full);
  no_error();
  matrix *s = read_matrix(mix_list_get(parts, 0)), *u = read_matrix(mix_list_get(parts, 1)),
         *v = read_matrix(mix_list_get(parts, 2));
  const int least = m < n ? m : n;
  const double scale = largest_of(a) > 0 ? largest_of(a) : 1;
  assert_int_equal(s->rows, least);
  assert_int_equal(u->columns, full ? m : least);
  assert_int_equal(v->columns, full ? n : least);
  orthonormal_columns("u", u);
  orthonormal_columns("v", v);
  for (int i = 0; i < least; i++) assert_true(s->x[i] >= 0 && (!i || s->x[i] <= s->x[i - 1]));
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int l = 0; l < least; l++) sum += at(u, i, l) * (s->x[l] / scale) * at(v, j, l);
      if (!(fabs(sum - at(a, i, j) / scale) <= bound_of(m > n ? m : n)))
        fail_msg("svd of kind %d, (%d, %d): element (%d, %d) is off by %g", k, m, n, i, j,
                 sum - at(a, i, j) / scale);
    }
  free(a), free(s), free(u), free(v);
}

static void any_matrices(void **state) {
  (void)state;
  static const int sizes[][2] = {{1, 1}, {1, 4}, {4, 1}, {3, 5}, {5, 3}, {6, 6}, {33, 20}, {20, 33}};
  for (int k = 0; k < KINDS; k++)
    for (int s = 0; s < COUNT(sizes); s++)
      for (int full = 0; full < 2; full++)
        MIX_SCOPE { singular_values_of((kind)k, sizes[s][0], sizes[s][1], full); }
}

/* ---- eig ---- */

/* Vectors of almost equal eigenvalues are almost parallel, so that only the residual is a measure. */
static void general_eigenvectors_of(kind k, int n) {
  matrix *a = matrix_of(k, n, n, false), *part[4];
  mix_list *parts = mix_eig(tensor_of(a));
  no_error();
  for (int i = 0; i < 4; i++) part[i] = read_matrix(mix_list_get(parts, i));
  const double scale = largest_of(a) > 0 ? largest_of(a) : 1;
  for (int j = 0; j < n; j++) {
    const double re = part[0]->x[j] / scale, im = part[1]->x[j] / scale;
    double length = 0;
    for (int i = 0; i < n; i++) {
      const double x = at(part[2], i, j), y = at(part[3], i, j);
      double sum[2] = {0};
      for (int l = 0; l < n; l++)
        for (int p = 0; p < 2; p++) sum[p] += at(a, i, l) / scale * at(part[2 + p], l, j);
      const double off = fmax(fabs(sum[0] - (re * x - im * y)), fabs(sum[1] - (re * y + im * x)));
      if (!(off <= bound_of(n)))
        fail_msg("eig of kind %d, size %d: vector %d is off at %d by %g", k, n, j, i, off);
      length += x * x + y * y;
    }
    if (!(fabs(length - 1) <= bound_of(n)))
      fail_msg("eig of kind %d, size %d: vector %d has length %g", k, n, j, length);
    for (int i = 0; i < n && im == 0; i++) assert_true(at(part[3], i, j) == 0);
    if (im > 0) assert_true(j + 1 < n && part[1]->x[j + 1] == -part[1]->x[j]);
    if (im < 0) assert_true(j && part[0]->x[j - 1] == part[0]->x[j]);
  }
  for (int i = 0; i < 4; i++) free(part[i]);
  free(a);
}

static void general_matrices(void **state) {
  (void)state;
  static const int sizes[] = {1, 2, 3, 8, 33};
  for (int k = 0; k < KINDS; k++)
    for (int s = 0; s < COUNT(sizes); s++)
      MIX_SCOPE { general_eigenvectors_of((kind)k, sizes[s]); }
  /* a quarter turn */
  mix_list *turn = mix_eig(tensor(MIX_FLOAT32, MIX_SHAPE(2, 2), NUMBERS(0, -1, 1, 0)));
  has_values(mix_list_get(turn, 0), 2, NUMBERS(0, 0));
  has_values(mix_list_get(turn, 1), 2, NUMBERS(1, -1));
}

/* ---- what is no number, and batches ---- */

static void first_is_nan(mix_tensor *x, int each) {
  double got[64];
  read_into(x, 2 * each, got);
  for (int i = 0; i < 2 * each; i++) assert_true(isnan(got[i]) == (i < each));
}

/* A matrix of a batch that has NaN or an infinity ends, and leaves the others as they are. */
static void not_finite(void **state) {
  (void)state;
  static const double bad[] = {NAN, INFINITY, -INFINITY};
  for (int b = 0; b < COUNT(bad); b++) {
    const double values[] = {1, 2, bad[b], 4, 5, 2, 1, 3, 3};
    double both[18] = {0};
    memcpy(both, values, sizeof values);
    for (int i = 0; i < 9; i++) both[9 + i] = i % 4 == 0 ? i + 1 : 0;
    both[6] = bad[b]; /* of the lower triangle too */
    for (int d = 0; d < COUNT(floating); d++) {
      mix_tensor *x = tensor(floating[d], (mix_shape){3, {2, 3, 3}}, both);
      mix_list *h = mix_eigh(x), *s = mix_svd(x, true), *g = mix_eig(x);
      for (int i = 0; i < 2; i++) first_is_nan(mix_list_get(h, i), i ? 9 : 3);
      for (int i = 0; i < 3; i++) first_is_nan(mix_list_get(s, i), i ? 9 : 3);
      for (int i = 0; i < 4; i++) first_is_nan(mix_list_get(g, i), i > 1 ? 9 : 3);
      has_values(mix_slice(mix_list_get(h, 0), MIX_SHAPE(1, 0), MIX_SHAPE(1, 3)), 3, NUMBERS(1, 5, 9));
      has_values(mix_slice(mix_list_get(s, 0), MIX_SHAPE(1, 0), MIX_SHAPE(1, 3)), 3, NUMBERS(9, 5, 1));
    }
  }
}

static void empty(void **state) {
  (void)state;
  mix_tensor *none = mix_fill(MIX_SHAPE(0, 3, 3), 1, MIX_FLOAT32),
             *nothing = mix_fill(MIX_SHAPE(2, 0, 0), 1, MIX_FLOAT32);
  for (int i = 0; i < 2; i++) has_values(mix_list_get(mix_eigh(i ? none : nothing), 0), 0, NULL);
  for (int i = 0; i < 4; i++) has_values(mix_list_get(mix_eig(nothing), i), 0, NULL);
  has_values(mix_list_get(mix_svd(mix_fill(MIX_SHAPE(2, 0), 1, MIX_FLOAT32), true), 1), 4,
             NUMBERS(1, 0, 0, 1));
  has_values(mix_list_get(mix_svd(none, false), 1), 0, NULL);
}

/* ---- systems of equations ---- */

static void near(mix_tensor *x, int count, const double *expected, double bound) {
  double got[64];
  read_into(x, count, got);
  for (int i = 0; i < count; i++)
    if (!(fabs(got[i] - expected[i]) <= bound))
      fail_msg("element %d is %.17g; expected %.17g", i, got[i], expected[i]);
}

static void systems(void **state) {
  (void)state;
  mix_tensor *a = tensor(MIX_FLOAT64, MIX_SHAPE(3, 3), NUMBERS(0, 2, 1, 1, -2, 3, 4, 0, -1)),
             *b = tensor(MIX_FLOAT64, MIX_SHAPE(3), NUMBERS(7, 6, 1)), *one = mix_expand_dims(b, -1);
  /* numbers below 10 and three steps: a few units of 2^-53 each */
  near(mix_solve(a, b), 3, NUMBERS(1, 2, 3), 1e-14);
  near(mix_solve(a, one), 3, NUMBERS(1, 2, 3), 1e-14);
  near(mix_matmul(mix_inverse(a), a, false, false), 9, NUMBERS(1, 0, 0, 0, 1, 0, 0, 0, 1), 1e-14);
  near(mix_determinant(a), 1, NUMBERS(34), 1e-12);
  mix_list *logarithm = mix_log_determinant(a);
  near(mix_list_get(logarithm, 0), 1, NUMBERS(1), 0);
  near(mix_list_get(logarithm, 1), 1, (const double[]){log(34)}, 1e-14);
  mix_tensor *lower = tensor(MIX_FLOAT64, MIX_SHAPE(2, 2), NUMBERS(2, 9, 1, 4));
  near(mix_solve_triangular(lower, tensor(MIX_FLOAT64, MIX_SHAPE(2), NUMBERS(2, 9)), true), 2, NUMBERS(1, 2),
       0);
  near(mix_solve_triangular(lower, tensor(MIX_FLOAT64, MIX_SHAPE(2), NUMBERS(20, 8)), false), 2,
       NUMBERS(1, 2), 0);
  near(mix_cholesky(tensor(MIX_FLOAT64, MIX_SHAPE(2, 2), NUMBERS(4, 9, 2, 10))), 4, NUMBERS(2, 0, 1, 3), 0);
  mix_list *lu = mix_lu(a);
  near(mix_list_get(lu, 0), 9, NUMBERS(4, 0, -1, 0, 2, 1, 0.25, -1, 4.25), 1e-15);
  has_values(mix_list_get(lu, 1), 3, NUMBERS(1, 2, 0));
  for (int complete = 0; complete < 2; complete++) {
    matrix *tall = matrix_of(DENSE, 5, 3, false);
    mix_list *qr = mix_qr(tensor_of(tall), complete);
    matrix *q = read_matrix(mix_list_get(qr, 0));
    orthonormal_columns("q", q);
    assert_int_equal(q->columns, complete ? 5 : 3);
    near(mix_matmul(mix_list_get(qr, 0), mix_list_get(qr, 1), false, false), 15, tall->x, bound_of(5));
    free(tall), free(q);
  }
}

static void singular(void **state) {
  (void)state;
  mix_tensor *a = tensor(MIX_FLOAT32, (mix_shape){3, {2, 3, 3}},
                         NUMBERS(1, 2, 3, 2, 4, 6, 0, 1, 1, /**/ 0, 0, 0, 0, 0, 0, 0, 0, 0));
  has_values(mix_determinant(a), 2, NUMBERS(0, 0));
  mix_list *logarithm = mix_log_determinant(a);
  has_values(mix_list_get(logarithm, 0), 2, NUMBERS(0, 0));
  has_values(mix_list_get(logarithm, 1), 2, NUMBERS(-INFINITY, -INFINITY));
  has_values(mix_reduce_any(mix_is_finite(mix_solve(a, mix_fill(MIX_SHAPE(2, 3), 1, MIX_FLOAT32))),
                            MIX_AXES(-1), false),
             2, NUMBERS(0, 0));
  has_values(mix_matrix_rank(a, NAN), 2, NUMBERS(2, 0));
  has_values(mix_matrix_rank(a, 3), 2, NUMBERS(1, 0));
}

/* The four conditions of Penrose (1955), of matrices of full and of lower rank. */
static void pseudo_inverses(void **state) {
  (void)state;
  static const int sizes[][2] = {{3, 5}, {5, 3}, {4, 4}};
  for (int s = 0; s < COUNT(sizes); s++)
    for (int rank = 1; rank < 4; rank++) {
      const int m = sizes[s][0], n = sizes[s][1];
      matrix *left = matrix_of(DENSE, m, rank, false), *right = matrix_of(DENSE, rank, n, false);
      mix_tensor *a = mix_matmul(tensor_of(left), tensor_of(right), false, false),
                 *x = mix_pseudo_inverse(a, NAN);
      mix_tensor *ax = mix_matmul(a, x, false, false), *xa = mix_matmul(x, a, false, false);
      const mix_axes turned = MIX_AXES(1, 0);
      mix_tensor *off[] = {
          mix_subtract(mix_matmul(ax, a, false, false), a), mix_subtract(mix_matmul(xa, x, false, false), x),
          mix_subtract(ax, mix_transpose(ax, turned)), mix_subtract(xa, mix_transpose(xa, turned))};
      /* elements below 100 and singular values above 0.01 */
      for (int i = 0; i < 4; i++) {
        double distance;
        read_into(mix_reduce_max(mix_abs(off[i]), MIX_ALL_AXES, false), 1, &distance);
        if (!(distance <= 1e-9)) fail_msg("condition %d of rank %d: off by %g", i + 1, rank, distance);
      }
      /* of the shortest solution: x = A+ b */
      mix_tensor *b = mix_range(0, m, 1, MIX_FLOAT64);
      double expected[8];
      read_into(mix_squeeze(mix_matmul(x, mix_expand_dims(b, 1), false, false), MIX_AXES(1)), n, expected);
      near(mix_least_squares(a, b, 1e-12), n, expected, 1e-9);
      has_values(mix_matrix_rank(a, 1e-12), 1, NUMBERS(rank));
      free(left), free(right);
    }
  /* a cutoff leaves out the smaller singular value */
  mix_tensor *d = tensor(MIX_FLOAT32, MIX_SHAPE(2, 2), NUMBERS(4, 0, 0, 1));
  has_values(mix_pseudo_inverse(d, 0.5), 4, NUMBERS(0.25, 0, 0, 0));
  has_values(mix_pseudo_inverse(d, 0.2), 4, NUMBERS(0.25, 0, 0, 1));
  has_values(mix_least_squares(d, tensor(MIX_FLOAT32, MIX_SHAPE(2), NUMBERS(4, 4)), 0.5), 2, NUMBERS(1, 0));
  has_values(mix_least_squares(d, tensor(MIX_FLOAT32, MIX_SHAPE(2), NUMBERS(4, 4)), -1), 2, NUMBERS(1, 4));
}

/* ---- TensorFlow's numbers ---- */

static mix_tensor *part_of(mix_list *list, int part) { return list ? mix_list_get(list, part) : NULL; }
/* The sum of the elements times cosines, as in the script. */
static mix_tensor *summed(mix_tensor *y) {
  double weights[32];
  const int64_t count = y ? mix_shape_size(mix_tensor_shape(y)) : 0;
  for (int i = 0; i < count; i++) weights[i] = cos(1.3 * i + 0.2);
  return y ? mix_reduce_sum(mix_multiply(y, tensor(MIX_FLOAT64, mix_tensor_shape(y), weights)), MIX_ALL_AXES,
                            false)
           : NULL;
}
static mix_tensor *eigenvalues(mix_tensor *x) { return summed(part_of(mix_eigh(x), 0)); }
static mix_tensor *eigenvectors(mix_tensor *x) { return summed(mix_square(part_of(mix_eigh(x), 1))); }
static mix_tensor *singular_values(mix_tensor *x) { return summed(part_of(mix_svd(x, false), 0)); }
static mix_tensor *singular_roots(mix_tensor *x) {
  mix_list *parts = mix_svd(x, false);
  mix_tensor *roots = mix_expand_dims(mix_sqrt(part_of(parts, 0)), 0);
  return summed(mix_matmul(mix_multiply(part_of(parts, 1), roots), part_of(parts, 2), false, true));
}
static mix_tensor *pseudo_inverse(mix_tensor *x) { return summed(mix_pseudo_inverse(x, NAN)); }
static mix_tensor *general_eigenvalues(mix_tensor *x) {
  mix_list *parts = mix_eig(x);
  mix_tensor *re = part_of(parts, 0), *im = part_of(parts, 1);
  return mix_reduce_sum(mix_add(mix_multiply(re, mix_square(re)), mix_square(im)), MIX_ALL_AXES, false);
}
static mix_tensor *general_eigenvectors(mix_tensor *x) {
  mix_list *parts = mix_eig(x);
  mix_tensor *sizes = mix_add(mix_square(part_of(parts, 2)), mix_square(part_of(parts, 3)));
  return summed(mix_reduce_sum(sizes, MIX_AXES(-1), false));
}
static mix_tensor *inverse(mix_tensor *x) { return summed(mix_inverse(x)); }
static mix_tensor *cholesky(mix_tensor *x) {
  const int64_t n = mix_tensor_shape(x).dims[0];
  mix_tensor *one = mix_one_hot(mix_range(0, (double)n, 1, MIX_INT64), n, MIX_FLOAT64);
  return summed(mix_cholesky(mix_add(mix_matmul(x, x, false, true), one)));
}

static const struct {
  const char *name;
  mix_tensor *(*build)(mix_tensor *x);
} functions[] = {{"eigenvalues", eigenvalues},
                 {"eigenvectors", eigenvectors},
                 {"singular_values", singular_values},
                 {"singular_roots", singular_roots},
                 {"pseudo_inverse", pseudo_inverse},
                 {"general_eigenvalues", general_eigenvalues},
                 {"general_eigenvectors", general_eigenvectors},
                 {"determinant", mix_determinant},
                 {"inverse", inverse},
                 {"cholesky", cholesky}};

static const struct {
  const char *name;
  int rows, columns;
  double x[16], y, gradient[16];
} recorded[] = {
#include "ops/recorded/linear_algebra.inc"
};

/* Rounding errors of 2^-53 grow by one over a gap of 1e-4 between eigenvalues, twice in gradients of vectors:
 * 1e-8, and a little for the operations around. */
static void tensorflow(void **state) {
  (void)state;
  for (int r = 0; r < COUNT(recorded); r++)
    MIX_SCOPE {
      mix_tensor *x = tensor(MIX_FLOAT64, MIX_SHAPE(recorded[r].rows, recorded[r].columns), recorded[r].x),
                 *y = NULL;
      mix_tape *tape = mix_tape_begin();
      mix_tape_watch(tape, x);
      for (int f = 0; f < COUNT(functions); f++)
        if (!strcmp(functions[f].name, recorded[r].name)) y = functions[f].build(x);
      mix_tape_end(tape);
      mix_list *found = y ? mix_tape_gradient(tape, y, mix_list_of(x)) : NULL;
      const int count = recorded[r].rows * recorded[r].columns;
      double value, got[16], largest = 1;
      read_into(y, 1, &value);
      read_into(part_of(found, 0), count, got);
      for (int i = 0; i < count; i++) largest = fmax(largest, fabs(recorded[r].gradient[i]));
      if (!(fabs(value - recorded[r].y) <= 1e-11 * fmax(1, fabs(recorded[r].y))))
        fail_msg("%s (row %d): %.15g; TensorFlow has %.15g", recorded[r].name, r, value, recorded[r].y);
      for (int i = 0; i < count; i++)
        if (!(fabs(got[i] - recorded[r].gradient[i]) <= 2e-8 * largest))
          fail_msg("%s (row %d), gradient %d: %.15g; TensorFlow has %.15g", recorded[r].name, r, i, got[i],
                   recorded[r].gradient[i]);
    }
}

/* ---- errors ---- */

static void refusals(void **state) {
  (void)state;
  mix_tensor *wide = ones(MIX_FLOAT32, MIX_SHAPE(2, 3)), *square = ones(MIX_FLOAT32, MIX_SHAPE(2, 2)),
             *vector = ones(MIX_FLOAT32, MIX_SHAPE(2)), *whole = ones(MIX_INT32, MIX_SHAPE(2, 2));
  mix_tensor *(*const of_square[])(mix_tensor *) = {mix_inverse, mix_determinant, mix_cholesky};
  mix_list *(*const lists[])(mix_tensor *) = {mix_log_determinant, mix_lu, mix_eigh, mix_eig};
  for (int i = 0; i < COUNT(of_square); i++) {
    refused(of_square[i](wide), MIX_VALUE_ERROR, "float32 (2, 3)", "square matrices");
    refused(of_square[i](vector), MIX_VALUE_ERROR, "square matrices");
    refused(of_square[i](NULL), MIX_TYPE_ERROR, "NULL");
  }
  for (int i = 0; i < COUNT(lists); i++) {
    refused((void *)lists[i](wide), MIX_VALUE_ERROR, "square matrices");
    refused((void *)lists[i](vector), MIX_VALUE_ERROR, "expected");
    refused((void *)lists[i](NULL), MIX_TYPE_ERROR, "NULL");
  }
  refused((void *)mix_eigh(whole), MIX_TYPE_ERROR, "eigh", "int32");
  refused((void *)mix_svd(whole, false), MIX_TYPE_ERROR, "svd", "int32");
  refused((void *)mix_svd(vector, false), MIX_VALUE_ERROR, "svd", "no matrix");
  refused((void *)mix_svd(NULL, false), MIX_TYPE_ERROR, "NULL");
  refused((void *)mix_qr(vector, false), MIX_VALUE_ERROR, "qr", "matrices (..., n, m)");
  refused(mix_matrix_rank(whole, NAN), MIX_VALUE_ERROR, "matrix_rank", "floating dtype");
  refused(mix_pseudo_inverse(vector, NAN), MIX_VALUE_ERROR, "pseudo_inverse", "matrices");
  refused(mix_solve(square, ones(MIX_FLOAT64, MIX_SHAPE(2))), MIX_TYPE_ERROR, "solve", "b is float64");
  refused(mix_solve(square, ones(MIX_FLOAT32, MIX_SHAPE(3))), MIX_VALUE_ERROR, "solve", "b is (3)");
  refused(mix_solve_triangular(square, NULL, true), MIX_TYPE_ERROR, "solve_triangular", "NULL");
  refused(mix_least_squares(wide, ones(MIX_FLOAT32, MIX_SHAPE(3)), NAN), MIX_VALUE_ERROR, "least_squares",
          "b is (3)");
  refused(mix_least_squares(wide, NULL, NAN), MIX_TYPE_ERROR, "least_squares", "NULL");
}

/* As in TensorFlow, vectors of a space of more than one dimension, which may be any, have no gradient. */
static void no_gradient_of_free_vectors(void **state) {
  (void)state;
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(3, 1), NUMBERS(1, 2, 3));
  for (int part = 0; part < 2; part++) {
    mix_tape *tape = mix_tape_begin();
    mix_tape_watch(tape, x);
    mix_tensor *y = mix_list_get(mix_svd(x, true), part);
    mix_tape_end(tape);
    mix_list *found = mix_tape_gradient(tape, y, mix_list_of(x));
    if (part)
      refused((void *)found, MIX_UNSUPPORTED, "svd", "full_matrices");
    else
      near(mix_list_get(found, 0), 3, (const double[]){1 / sqrt(14), 2 / sqrt(14), 3 / sqrt(14)}, 1e-6);
  }
}

/* A complex number is read by its parts alone. */
static void complex_numbers(void **state) {
  (void)state;
  mix_tensor *x = mix_complex(tensor(MIX_FLOAT32, MIX_SHAPE(2), NUMBERS(3, 0)),
                              tensor(MIX_FLOAT32, MIX_SHAPE(2), NUMBERS(-4, 0)));
  double got[2];
  no_error();
  has_values(mix_real_part(x), 2, NUMBERS(3, 0));
  has_values(mix_imaginary_part(mix_conjugate(x)), 2, NUMBERS(4, 0));
  has_values(mix_magnitude(x), 2, NUMBERS(5, 0));
  refused(mix_add(x, x), MIX_UNSUPPORTED, "add", "operand 0 is complex");
  refused(mix_cast(x, MIX_FLOAT64), MIX_UNSUPPORTED, "cast", "complex");
  assert_int_equal(mix_tensor_read(x, MIX_FLOAT64, got, 2), MIX_UNSUPPORTED);
  refused(NULL, MIX_UNSUPPORTED, "complex", "imaginary part");
  mix_tensor *open =
      mix_complex(symbolic(MIX_FLOAT32, MIX_SHAPE(-1, 2)), symbolic(MIX_FLOAT32, MIX_SHAPE(-1, 2)));
  has_type(mix_real_part(open), MIX_FLOAT32, MIX_SHAPE(-1, 2));
  has_type(mix_magnitude(open), MIX_FLOAT32, MIX_SHAPE(-1, 2));
  has_type(mix_real_part(mix_conjugate(open)), MIX_FLOAT32, MIX_SHAPE(-1, 2));
}

/* ---- memory ---- */

static bool everything(void) {
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(3, 2), NUMBERS(1, 2, 3, 5, 8, 1));
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *square = mix_matmul(x, x, true, false);
  mix_list *h = mix_eigh(square), *s = mix_svd(x, false), *g = mix_eig(square);
  mix_tensor *all[] = {mix_pseudo_inverse(x, NAN), mix_solve(square, mix_pseudo_inverse(x, 0.1)),
                       s ? mix_matmul(mix_list_get(s, 1), mix_list_get(s, 2), false, true) : NULL,
                       h ? mix_list_get(h, 1) : NULL,
                       g ? mix_magnitude(mix_complex(mix_list_get(g, 2), mix_list_get(g, 3))) : NULL};
  mix_tensor *sum = mix_reduce_sum(all[0], MIX_ALL_AXES, false);
  for (int i = 1; i < 5; i++) sum = mix_add(sum, mix_reduce_sum(all[i], MIX_ALL_AXES, false));
  mix_tape_end(tape);
  mix_list *found = sum ? mix_tape_gradient(tape, sum, mix_list_of(x)) : NULL;
  double values[6];
  return found && mix_tensor_read(mix_list_get(found, 0), MIX_FLOAT64, values, 6) == MIX_OK;
}

/* Any failing allocation: MemoryError, and no leak (checked by the sanitizers' run). */
static void any_allocation_may_fail(void **state) {
  (void)state;
  for (int allowed = 0;; allowed += 1 + allowed / 16) {
    bool done = false;
    MIX_SCOPE {
      mix_inject_allocation_failure(allowed);
      done = everything();
      mix_inject_allocation_failure(-1);
    }
    if (done) break;
    if (mix_error() != MIX_MEMORY_ERROR)
      fail_msg("allocation %d: %s: %s", allowed, mix_status_name(mix_error()), mix_error_message());
    mix_error_clear();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(symmetric_matrices),
                                     TEST(any_matrices),
                                     TEST(general_matrices),
                                     TEST(not_finite),
                                     TEST(empty),
                                     TEST(systems),
                                     TEST(singular),
                                     TEST(pseudo_inverses),
                                     TEST(tensorflow),
                                     TEST(refusals),
                                     TEST(no_gradient_of_free_vectors),
                                     TEST(complex_numbers),
                                     TEST(any_allocation_may_fail)};
  return cmocka_run_group_tests_name("ops/linear_algebra", tests, NULL, NULL);
}
