/* eig in double: Hessenberg's form by reflections, then double steps of QR with implicit shifts (Francis,
 * 1961) to blocks of one or two eigenvalues, in the order in which Eigen's EigenSolver, which TensorFlow
 * calls, has them. A matrix with NaN or infinities, or one that needs more than 40 steps an eigenvalue, gives
 * NaN. */
#include "backend/ref/decompositions.h"

/* C's multiplication of complex numbers tests for infinities; these have none. */
typedef struct number {
  double re, im;
} number;

/* t: the matrix, in the end a triangle; u: its rows are the columns of the unitary factor; both n x n, and
 * real until the blocks are taken apart. */
typedef struct schur {
  int64_t n;
  number *t, *u, *x;
  double *v; /* n */
} schur;

static number *t_of(const schur *s, int64_t i, int64_t j) { return s->t + i * s->n + j; }
static number *u_of(const schur *s, int64_t j, int64_t i) { return s->u + j * s->n + i; }

static number plus(number a, number b) { return (number){a.re + b.re, a.im + b.im}; }
static number minus(number a, number b) { return (number){a.re - b.re, a.im - b.im}; }
static number times(number a, number b) {
  return (number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
static number scaled(number a, double factor) { return (number){a.re * factor, a.im * factor}; }
static number conjugate(number a) { return (number){a.re, -a.im}; }
static double size_of(number a) { return mix_ref_hypotenuse(a.re, a.im); }
/* By the larger part of b (Smith, 1962). */
static number over(number a, number b) {
  const bool real = fabs(b.re) >= fabs(b.im);
  const double ratio = real ? b.im / b.re : b.re / b.im,
               all = real ? b.re + b.im * ratio : b.re * ratio + b.im;
  return real ? (number){(a.re + a.im * ratio) / all, (a.im - a.re * ratio) / all}
              : (number){(a.re * ratio + a.im) / all, (a.im * ratio - a.re) / all};
}
/* ---- Hessenberg's form ---- */

/* Both sides by I - factor v v^T, v from element `first` to `end`: columns from `left` on, rows up to `rows`,
 * and the orthogonal factor. */
static void reflect(schur *s, const double *v, double factor, int64_t first, int64_t end, int64_t left,
                    int64_t rows) {
  for (int64_t j = left; j < s->n; j++) {
    double sum = 0;
    for (int64_t i = first; i < end; i++) sum += v[i - first] * t_of(s, i, j)->re;
    for (int64_t i = first; i < end; i++) t_of(s, i, j)->re -= factor * sum * v[i - first];
  }
  for (int64_t i = 0; i < rows; i++) {
    double sum = 0;
    for (int64_t j = first; j < end; j++) sum += t_of(s, i, j)->re * v[j - first];
    for (int64_t j = first; j < end; j++) t_of(s, i, j)->re -= factor * sum * v[j - first];
  }
  for (int64_t i = 0; i < s->n; i++) {
    double sum = 0;
    for (int64_t j = first; j < end; j++) sum += u_of(s, j, i)->re * v[j - first];
    for (int64_t j = first; j < end; j++) u_of(s, j, i)->re -= factor * sum * v[j - first];
  }
}

/* v becomes the vector of the reflection that takes all but its first element to 0, which becomes *first.
 * Returns its factor; 0: there is nothing to take. */
static double reflection_of(double *v, int64_t count, double *first) {
  double tail = 0;
  for (int64_t i = 1; i < count; i++) tail += v[i] * v[i];
  *first = v[0];
  if (tail == 0) return 0;
  const double length = sqrt(v[0] * v[0] + tail);
  *first = v[0] < 0 ? length : -length;
  v[0] -= *first;
  return 2 / (v[0] * v[0] + tail);
}

static void reflect_column(schur *s, int64_t column) {
  double first;
  for (int64_t i = column + 1; i < s->n; i++) s->v[i - column - 1] = t_of(s, i, column)->re;
  const double factor = reflection_of(s->v, s->n - column - 1, &first);
  if (factor == 0) return;
  reflect(s, s->v, factor, column + 1, s->n, column, s->n);
  for (int64_t i = column + 2; i < s->n; i++) t_of(s, i, column)->re = 0;
}

/* ---- QR ---- */

static double real_of(const schur *s, int64_t i, int64_t j) { return t_of(s, i, j)->re; }

/* The first row of the last block that nothing of weight is beside. */
static int64_t block_of(const schur *s, int64_t last) {
  int64_t i = last;
  for (; i > 0; i--) {
    const double beside = fabs(real_of(s, i - 1, i - 1)) + fabs(real_of(s, i, i));
    if (fabs(real_of(s, i, i - 1)) <= fmax(beside * DBL_EPSILON, DBL_EPSILON * DBL_EPSILON)) break;
  }
  return i;
}

/* Rows and columns i, i + 1, from the left and from the right, by the rotation whose first column is (a, b).
 */
static void rotate(schur *s, int64_t i, number a, number b) {
  const double length = mix_ref_hypotenuse(size_of(a), size_of(b));
  if (length == 0) return;
  const number c = scaled(a, 1 / length), e = scaled(b, 1 / length);
  for (int64_t j = i; j < s->n; j++) {
    number *x = t_of(s, i, j), *y = t_of(s, i + 1, j);
    const number p = plus(times(conjugate(c), *x), times(conjugate(e), *y)),
                 q = minus(times(c, *y), times(e, *x));
    *x = p, *y = q;
  }
  for (int64_t k = 0; k < i + 2 + s->n; k++) {
    number *x = k < i + 2 ? t_of(s, k, i) : u_of(s, i, k - i - 2),
           *y = k < i + 2 ? t_of(s, k, i + 1) : u_of(s, i + 1, k - i - 2);
    const number p = plus(times(*x, c), times(*y, e)),
                 q = minus(times(*y, conjugate(c)), times(*x, conjugate(e)));
    *x = p, *y = q;
  }
  *t_of(s, i + 1, i) = (number){0, 0};
}

/* Half the difference of the diagonal of the block at i, and what its root adds: of two real eigenvalues if
 * it is not negative. */
static double discriminant(const schur *s, int64_t i, double *half) {
  *half = 0.5 * (real_of(s, i, i) - real_of(s, i + 1, i + 1));
  return *half * *half + real_of(s, i + 1, i) * real_of(s, i, i + 1);
}

static void split_real_block(schur *s, int64_t i) {
  double half;
  const double square = discriminant(s, i, &half);
  if (square >= 0)
    rotate(s, i, (number){half >= 0 ? half + sqrt(square) : half - sqrt(square), 0}, *t_of(s, i + 1, i));
}

/* The shifts as the lower corner's diagonal and the product beside it; now and then others, which end
 * circles. */
static void shifts_of(const schur *s, int64_t last, int step, double *shift) {
  shift[0] = real_of(s, last, last);
  shift[1] = real_of(s, last - 1, last - 1);
  shift[2] = real_of(s, last, last - 1) * real_of(s, last - 1, last);
  if (step % 10) return;
  const double size = fabs(real_of(s, last, last - 1)) + fabs(real_of(s, last - 1, last - 2));
  shift[0] = shift[1] = real_of(s, last, last) + 0.75 * size;
  shift[2] = -0.4375 * size * size;
}

/* The row at which a double step begins, and the first column of the product of its shifts there. */
static int64_t first_row(const schur *s, int64_t first, int64_t last, const double *shift, double *v) {
  for (int64_t m = last - 2;; m--) {
    const double here = real_of(s, m, m), a = shift[0] - here, b = shift[1] - here;
    v[0] = (a * b - shift[2]) / real_of(s, m + 1, m) + real_of(s, m, m + 1);
    v[1] = real_of(s, m + 1, m + 1) - here - a - b;
    v[2] = real_of(s, m + 2, m + 1);
    if (m == first) return m;
    const double diagonal = fabs(real_of(s, m - 1, m - 1)) + fabs(here) + fabs(real_of(s, m + 1, m + 1));
    if (fabs(real_of(s, m, m - 1)) * (fabs(v[1]) + fabs(v[2])) < DBL_EPSILON * fabs(v[0]) * diagonal)
      return m;
  }
}

static void double_step(schur *s, int64_t first, int64_t last, int step) {
  double shift[3], v[3], end;
  shifts_of(s, last, step, shift);
  const int64_t begin = first_row(s, first, last, shift, v);
  for (int64_t k = begin; k < last; k++) {
    const int64_t count = k + 2 < last ? 3 : last - k + 1;
    for (int64_t i = 0; i < count && k > begin; i++) v[i] = real_of(s, k + i, k - 1);
    const double factor = reflection_of(v, count, &end);
    if (factor == 0) continue;
    if (k > begin) {
      t_of(s, k, k - 1)->re = end;
      for (int64_t i = 1; i < count; i++) t_of(s, k + i, k - 1)->re = 0;
    } else if (k > first) {
      t_of(s, k, k - 1)->re *= 1 - factor * v[0] * v[0];
    }
    reflect(s, v, factor, k, k + count, k, (k + 3 < last ? k + 3 : last) + 1);
  }
}

/* Real blocks of one row, or of two with two complex eigenvalues. False: no convergence. */
static bool find_blocks(schur *s) {
  enum { STEPS = 40 };
  int64_t left = STEPS * s->n;
  int step = 0;
  for (int64_t last = s->n - 1; last >= 0;) {
    const int64_t first = block_of(s, last);
    if (first > 0) t_of(s, first, first - 1)->re = 0;
    if (first < last - 1) {
      if (!left--) return false;
      double_step(s, first, last, ++step);
      continue;
    }
    if (first == last - 1) split_real_block(s, first);
    last = first - 1;
    step = 0;
  }
  return true;
}

/* Is there a block of two rows at i? Then it becomes a triangle, the eigenvalue above the axis first. */
static bool split_complex_block(schur *s, int64_t i) {
  if (i + 1 >= s->n || real_of(s, i + 1, i) == 0) return false;
  double half;
  const double root = sqrt(fmax(0, -discriminant(s, i, &half)));
  const number value = {real_of(s, i + 1, i + 1) + half, root}, corner = *t_of(s, i + 1, i + 1);
  rotate(s, i, minus(value, corner), *t_of(s, i + 1, i));
  *t_of(s, i, i) = value;
  *t_of(s, i + 1, i + 1) = conjugate(value);
  return true;
}

/* ---- vectors ---- */

/* x: vector k of the triangle, by substitution from element k, which is 1 unless others grow beyond all
 * measure: the vectors of equal eigenvalues are almost parallel. */
static void substitute(schur *s, int64_t k, double least) {
  number *x = s->x;
  x[k] = (number){1, 0};
  for (int64_t i = k - 1; i >= 0; i--) {
    number sum = *t_of(s, i, k);
    for (int64_t j = i + 1; j < k; j++) sum = plus(sum, times(*t_of(s, i, j), x[j]));
    number apart = minus(*t_of(s, k, k), *t_of(s, i, i));
    if (size_of(apart) < least) apart = (number){least, 0}; /* equal eigenvalues */
    x[i] = over(sum, apart);
    const double size = size_of(x[i]);
    for (int64_t j = i; size > 0x1p300 && j <= k; j++) x[j] = scaled(x[j], 1 / size);
  }
}

/* U x, of length 1. Of a real eigenvalue the larger of its parts: where vectors are almost parallel, rounding
 * errors have both. */
static void finish_vector(schur *s, int64_t k, number *result) {
  const bool real = t_of(s, k, k)->im == 0;
  double length[2] = {0};
  for (int64_t i = 0; i < s->n; i++) result[i] = (number){0, 0};
  for (int64_t j = 0; j <= k; j++)
    for (int64_t i = 0; i < s->n; i++) result[i] = plus(result[i], times(*u_of(s, j, i), s->x[j]));
  for (int64_t i = 0; i < s->n; i++) {
    length[0] = mix_ref_hypotenuse(length[0], result[i].re);
    length[1] = mix_ref_hypotenuse(length[1], result[i].im);
  }
  const bool other = real && length[1] > length[0];
  const double whole = real ? length[other] : mix_ref_hypotenuse(length[0], length[1]);
  for (int64_t i = 0; i < s->n; i++)
    result[i] =
        real ? (number){(other ? result[i].im : result[i].re) / whole, 0} : scaled(result[i], 1 / whole);
}

/* ---- the kernel ---- */

static size_t eig_workspace(const mix_kernel_args *args, int threads) {
  const size_t n = (size_t)mix_ref_matrices_of(&args->input_types[0]).rows;
  return (2 * n * n + 2 * n) * sizeof(number) + n * sizeof(double);
}

/* Scaled by the largest element; 0: it has NaN or infinities. */
static double load(const mix_ref_matrices *m, const void *data, int64_t matrix, schur *s) {
  double largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t j = 0; j < s->n; j++) {
      const double x = mix_ref_element(m, data, matrix, i, j);
      *t_of(s, i, j) = (number){x, 0};
      *u_of(s, i, j) = (number){i == j, 0};
      largest = fmax(largest, fabs(x));
      finite &= isfinite(x) != 0;
    }
  const double scale = largest > 0 ? largest : 1;
  for (int64_t i = 0; i < s->n * s->n; i++) s->t[i].re /= scale;
  return finite ? scale : 0;
}

static void put(const mix_kernel_args *args, int output, int64_t index, number value) {
  const mix_dtype dtype = args->input_types[0].dtype;
  mix_ref_put(args->outputs[output], dtype, index, value.re);
  mix_ref_put(args->outputs[output + 1], dtype, index, value.im);
}

/* Eigenvalue k and its vector; real ones have real vectors, and the second of two has what is conjugate. */
static void put_pair(const mix_kernel_args *args, schur *s, int64_t matrix, int64_t k, bool second,
                     double scale) {
  const int64_t n = s->n;
  const number value = *t_of(s, k, k);
  number *vector = s->x + n;
  if (!second) {
    substitute(s, k, DBL_EPSILON * (double)n);
    finish_vector(s, k, vector);
  }
  put(args, 0, matrix * n + k, scaled(value, scale));
  for (int64_t i = 0; i < n; i++) {
    put(args, 2, (matrix * n + i) * n + k, second ? conjugate(vector[i]) : vector[i]);
  }
}

static void eig_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_ref_matrices m = mix_ref_matrices_of(&args->input_types[0]);
  const int64_t n = m.rows;
  schur s = {.n = n, .t = args->workspace};
  s.u = s.t + n * n;
  s.x = s.u + n * n;
  s.v = (double *)(s.x + 2 * n);
  for (int64_t b = 0; b < m.count; b++) {
    const double scale = load(&m, args->inputs[0], b, &s);
    for (int64_t j = 0; scale > 0 && j + 2 < n; j++) reflect_column(&s, j);
    const bool good = scale > 0 && find_blocks(&s);
    for (int64_t i = 0; !good && i < n * n; i++) {
      if (i < n) put(args, 0, b * n + i, (number){NAN, NAN});
      put(args, 2, b * n * n + i, (number){NAN, NAN});
    }
    if (!good) continue;
    for (int64_t k = 0; k < n; k++)
      if (split_complex_block(&s, k)) k++;
    for (int64_t k = 0; k < n; k++) {
      put_pair(args, &s, b, k, false, scale);
      if (t_of(&s, k, k)->im > 0) put_pair(args, &s, b, k + 1, true, scale), k++;
    }
  }
}

const mix_kernel mix_ref_eig = {
    .name = "ref_eig", .workspace = eig_workspace, .serial = mix_ref_serial, .run = eig_run};
