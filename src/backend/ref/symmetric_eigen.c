/* eigh in double: Householder's reduction to three diagonals, then implicit QL (tred2 and tql2 of EISPACK,
 * Smith et al., 1976). The lower triangle counts, as in LAPACK. A matrix with NaN or infinities, or one that
 * needs more than 30 steps an eigenvalue, gives NaN. */
#include "backend/ref/decompositions.h"

/* n rows of n, which become eigenvectors; the diagonal; and what is beside it. */
typedef struct tridiagonal {
  int64_t n;
  double *rows, *d, *e;
} tridiagonal;

static double *row_of(const tridiagonal *t, int64_t i) { return t->rows + i * t->n; }

/* d = the vector of the reflection of row i, from its first i elements; returns half its squared length. */
static double reflection_of(tridiagonal *t, int64_t i) {
  double scale = 0, sum = 0;
  for (int64_t k = 0; k < i; k++) scale += fabs(t->d[k]);
  if (scale == 0) {
    t->e[i] = t->d[i - 1];
    return 0;
  }
  for (int64_t k = 0; k < i; k++) t->d[k] /= scale, sum += t->d[k] * t->d[k];
  const double last = t->d[i - 1], root = last > 0 ? -sqrt(sum) : sqrt(sum);
  t->e[i] = scale * root;
  t->d[i - 1] = last - root;
  return sum - last * root;
}

/* Both sides of the leading matrix of i rows are reflected by d. Column j of it is row j from j on. */
static void reflect_matrix(tridiagonal *t, int64_t i, double half) {
  double *d = t->d, *e = t->e, product = 0;
  for (int64_t j = 0; j < i; j++) e[j] = 0;
  for (int64_t j = 0; j < i; j++) {
    const double *column = row_of(t, j);
    double sum = e[j] + column[j] * d[j];
    row_of(t, i)[j] = d[j];
    for (int64_t k = j + 1; k < i; k++) sum += column[k] * d[k], e[k] += column[k] * d[j];
    e[j] = sum;
  }
  for (int64_t j = 0; j < i; j++) e[j] /= half, product += e[j] * d[j];
  for (int64_t j = 0; j < i; j++) e[j] -= product / (half + half) * d[j];
  for (int64_t j = 0; j < i; j++) {
    double *column = row_of(t, j);
    for (int64_t k = j; k < i; k++) column[k] -= d[j] * e[k] + e[j] * d[k];
    d[j] = column[i - 1];
    column[i] = 0;
  }
}

/* The product of the reflections, whose vectors and lengths the reduction left. */
static void accumulate(tridiagonal *t) {
  const int64_t n = t->n;
  double *d = t->d;
  for (int64_t i = 0; i < n - 1; i++) {
    double *vector = row_of(t, i + 1), half = d[i + 1];
    row_of(t, i)[n - 1] = row_of(t, i)[i];
    row_of(t, i)[i] = 1;
    for (int64_t k = 0; half != 0 && k <= i; k++) d[k] = vector[k] / half;
    for (int64_t j = 0; half != 0 && j <= i; j++) {
      double *column = row_of(t, j), sum = 0;
      for (int64_t k = 0; k <= i; k++) sum += vector[k] * column[k];
      for (int64_t k = 0; k <= i; k++) column[k] -= sum * d[k];
    }
    for (int64_t k = 0; k <= i; k++) vector[k] = 0;
  }
  for (int64_t j = 0; j < n; j++) d[j] = row_of(t, j)[n - 1], row_of(t, j)[n - 1] = 0;
  row_of(t, n - 1)[n - 1] = 1;
}

static void reduce(tridiagonal *t) {
  const int64_t n = t->n;
  for (int64_t j = 0; j < n; j++) t->d[j] = row_of(t, j)[n - 1];
  for (int64_t i = n - 1; i > 0; i--) {
    const double half = reflection_of(t, i);
    if (half != 0) {
      reflect_matrix(t, i, half);
    } else {
      for (int64_t j = 0; j < i; j++) {
        t->d[j] = row_of(t, j)[i - 1];
        row_of(t, j)[i] = row_of(t, i)[j] = 0;
      }
    }
    t->d[i] = half;
  }
  accumulate(t);
  for (int64_t i = 1; i < n; i++) t->e[i - 1] = t->e[i];
  t->e[n - 1] = 0;
}

/* One implicit step of QL on the elements first..last, shifted by the eigenvalue of the leading corner, whose
 * part *shift of the diagonal is taken away. */
static void ql_step(tridiagonal *t, int64_t first, int64_t last, double *shift) {
  double *d = t->d, *e = t->e;
  const double p = (d[first + 1] - d[first]) / (2 * e[first]), root = mix_ref_hypotenuse(p, 1),
               denominator = p < 0 ? p - root : p + root, g = d[first];
  d[first] = e[first] / denominator;
  d[first + 1] = e[first] * denominator;
  const double next = d[first + 1], h = g - d[first], beside = e[first + 1];
  for (int64_t i = first + 2; i < t->n; i++) d[i] -= h;
  *shift += h;
  double x = d[last], c = 1, c2 = 1, c3 = 1, s = 0, s2 = 0;
  for (int64_t i = last - 1; i >= first; i--) {
    c3 = c2, c2 = c, s2 = s;
    const double f = c * e[i], high = c * x, r = mix_ref_hypotenuse(x, e[i]);
    e[i + 1] = s * r;
    s = e[i] / r, c = x / r;
    x = c * d[i] - s * f;
    d[i + 1] = high + s * (c * f + s * d[i]);
    mix_ref_rotate(t->n, row_of(t, i), row_of(t, i + 1), c, s);
  }
  x = -s * s2 * c3 * beside * e[first] / next;
  e[first] = s * x;
  d[first] = c * x;
}

/* False: no convergence. What is beside the diagonal counts as 0 if it is below the rounding errors of the
 * diagonal so far, or far below those of the matrix: among denormal numbers rotations would not be any. */
static bool diagonalize(tridiagonal *t) {
  enum { STEPS = 30 }; /* as in LAPACK: for each eigenvalue, in all */
  double shift = 0, largest = DBL_EPSILON;
  int64_t left = STEPS * t->n;
  for (int64_t i = 0; i < t->n; i++) {
    int64_t last = i;
    largest = fmax(largest, fabs(t->d[i]) + fabs(t->e[i]));
    while (last < t->n - 1 && fabs(t->e[last]) > DBL_EPSILON * largest) last++;
    if (last > i) do {
        if (!left--) return false;
        ql_step(t, i, last, &shift);
      } while (fabs(t->e[i]) > DBL_EPSILON * largest);
    t->d[i] += shift;
    t->e[i] = 0;
  }
  return true;
}

/* ---- the kernel ---- */

static size_t eigh_workspace(const mix_kernel_args *args, int threads) {
  const mix_ref_matrices m = mix_ref_matrices_of(&args->input_types[0]);
  return (size_t)m.rows * (size_t)(m.rows + 3) * sizeof(double);
}

/* Scaled by the largest element; 0: it has NaN or infinities. */
static double load(const mix_ref_matrices *m, const void *data, int64_t matrix, tridiagonal *t) {
  double largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < t->n; i++)
    for (int64_t j = 0; j <= i; j++) {
      const double x = mix_ref_element(m, data, matrix, i, j);
      row_of(t, i)[j] = row_of(t, j)[i] = x;
      largest = fmax(largest, fabs(x));
      finite &= isfinite(x) != 0;
    }
  const double scale = largest > 0 ? largest : 1;
  for (int64_t i = 0; i < t->n * t->n; i++) t->rows[i] /= scale;
  return finite ? scale : 0;
}

static void eigh_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_ref_matrices m = mix_ref_matrices_of(&args->input_types[0]);
  const int64_t n = m.rows;
  tridiagonal t = {.n = n, .rows = args->workspace};
  t.d = t.rows + n * n;
  t.e = t.d + n;
  double *order = t.e + n;
  for (int64_t b = 0; n && b < m.count; b++) {
    const double scale = load(&m, args->inputs[0], b, &t);
    if (scale > 0) reduce(&t);
    const bool good = scale > 0 && diagonalize(&t);
    if (good) mix_ref_order(t.d, n, order);
    for (int64_t i = 0; i < n; i++) {
      const int64_t from = good ? (int64_t)order[i] : 0;
      mix_ref_put(args->outputs[0], m.dtype, b * n + i, good ? t.d[from] * scale : NAN);
      for (int64_t k = 0; k < n; k++)
        mix_ref_put(args->outputs[1], m.dtype, (b * n + k) * n + i, good ? row_of(&t, from)[k] : NAN);
    }
  }
}

const mix_kernel mix_ref_eigh = {
    .name = "ref_eigh", .workspace = eigh_workspace, .serial = mix_ref_serial, .run = eigh_run};
