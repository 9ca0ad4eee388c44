/* svd in double: rotations make the rows or columns of a matrix, whichever are fewer, orthogonal (Hestenes,
 * 1958). It needs no other matrix and is the most exact of the algorithms (Demmel and Veselic, 1992). A
 * matrix with NaN or infinities, or one that needs more than 60 rounds, gives NaN. */
#include "backend/ref/decompositions.h"

/* A matrix is the sum of rows `wide` times rows `narrow`: at first those of the matrix and of the identity,
 * in the end s u and v, or s v and u. */
typedef struct factors {
  int64_t count, length; /* of `wide`; rows of `narrow` have `count` elements */
  double *wide, *narrow, *sizes, *order;
} factors;

static double *wide_of(const factors *f, int64_t i) { return f->wide + i * f->length; }
static double *narrow_of(const factors *f, int64_t i) { return f->narrow + i * f->count; }

/* Four sums at once take a third of the time of one. */
static double dot(const double *a, const double *b, int64_t n) {
  double sum[4] = {0};
  int64_t k = 0;
  for (; k + 4 <= n; k += 4)
    for (int i = 0; i < 4; i++) sum[i] += a[k + i] * b[k + i];
  for (; k < n; k++) sum[0] += a[k] * b[k];
  return sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* Rounding errors of the whole matrix: squares of vectors that are below them are not told from 0. */
static double noise_of(const factors *f) {
  const double relative = (double)f->length * DBL_EPSILON;
  return relative * relative * dot(f->wide, f->wide, f->count * f->length);
}

static bool rotate_pair(factors *f, int64_t p, int64_t q, double noise) {
  double *a = wide_of(f, p), *b = wide_of(f, q);
  const double x = dot(a, a, f->length), y = dot(b, b, f->length), product = dot(a, b, f->length);
  const double least = sqrt((double)f->length) * DBL_EPSILON;
  if (x <= noise || y <= noise || fabs(product) <= least * sqrt(x) * sqrt(y)) return false;
  const double zeta = (y - x) / (2 * product),
               t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + mix_ref_hypotenuse(1, zeta));
  const double c = 1 / sqrt(1 + t * t), s = c * t;
  mix_ref_rotate(f->length, a, b, c, s);
  mix_ref_rotate(f->count, narrow_of(f, p), narrow_of(f, q), c, s);
  return true;
}

static bool orthogonalize(factors *f, double noise) {
  enum { ROUNDS = 60 };
  for (int round = 0; round < ROUNDS; round++) {
    bool rotated = false;
    for (int64_t p = 0; p < f->count; p++)
      for (int64_t q = p + 1; q < f->count; q++) rotated |= rotate_pair(f, p, q, noise);
    if (!rotated) return true;
  }
  return false;
}

/* A unit vector at row `place` of `basis`, orthogonal to the rows before it: what is left of the axis of
 * which they have the least. */
static void complete(double *basis, int64_t place, int64_t n) {
  double *vector = basis + place * n, least = INFINITY;
  int64_t axis = 0;
  for (int64_t k = 0; k < n; k++) {
    double used = 0;
    for (int64_t i = 0; i < place; i++) used += basis[i * n + k] * basis[i * n + k];
    if (used < least) least = used, axis = k;
  }
  for (int64_t k = 0; k < n; k++) vector[k] = k == axis;
  for (int twice = 0; twice < 2; twice++)
    for (int64_t i = 0; i < place; i++) {
      const double part = dot(vector, basis + i * n, n);
      for (int64_t k = 0; k < n; k++) vector[k] -= part * basis[i * n + k];
    }
  const double size = sqrt(dot(vector, vector, n));
  for (int64_t k = 0; k < n; k++) vector[k] /= size;
}

/* `basis`: `wanted` unit vectors, of which the first are the rows of `wide` in order, without their sizes. */
static void find_basis(factors *f, double *basis, int64_t wanted, double noise) {
  const int64_t n = f->length;
  for (int64_t i = 0; i < f->count; i++) f->sizes[i] = -sqrt(dot(wide_of(f, i), wide_of(f, i), n));
  mix_ref_order(f->sizes, f->count, f->order);
  for (int64_t i = 0; i < wanted; i++) {
    const int64_t from = i < f->count ? (int64_t)f->order[i] : 0;
    const double size = i < f->count ? -f->sizes[from] : 0;
    if (size * size > noise)
      for (int64_t k = 0; k < n; k++) basis[i * n + k] = wide_of(f, from)[k] / size;
    else
      complete(basis, i, n);
  }
}

/* ---- the kernel ---- */

typedef struct matrix_set {
  mix_ref_matrices m;
  bool wide, full; /* fewer rows than columns; all vectors of the longer side */
} matrix_set;

static matrix_set set_of(const mix_kernel_args *args) {
  const mix_ref_matrices m = mix_ref_matrices_of(&args->input_types[0]);
  return (matrix_set){m, m.rows < m.columns, ((const mix_svd_attributes *)args->attributes)->full_matrices};
}

static factors factors_of(const matrix_set *set, double *workspace) {
  const int64_t count = set->wide ? set->m.rows : set->m.columns,
                length = set->wide ? set->m.columns : set->m.rows;
  factors f = {.count = count, .length = length, .wide = workspace};
  f.narrow = f.wide + count * length;
  f.sizes = f.narrow + count * count;
  f.order = f.sizes + count;
  return f;
}

/* And the basis, of the longer side's length squared. */
static size_t svd_workspace(const mix_kernel_args *args, int threads) {
  const matrix_set set = set_of(args);
  const factors f = factors_of(&set, NULL);
  const size_t count = (size_t)f.count, length = (size_t)f.length;
  return (count * length + count * count + 2 * count + length * (set.full ? length : count)) * sizeof(double);
}

/* Scaled by the largest element, so that no square overflows; 0: it has NaN or infinities. */
static double load(const matrix_set *set, const void *data, int64_t matrix, factors *f) {
  const mix_ref_matrices *m = &set->m;
  double largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < f->count; i++)
    for (int64_t k = 0; k < f->length; k++) {
      const double x = mix_ref_element(m, data, matrix, set->wide ? i : k, set->wide ? k : i);
      wide_of(f, i)[k] = x;
      largest = fmax(largest, fabs(x));
      finite &= isfinite(x) != 0;
    }
  const double scale = largest > 0 ? largest : 1;
  for (int64_t i = 0; i < f->count * f->length; i++) f->wide[i] /= scale;
  for (int64_t i = 0; i < f->count * f->count; i++) f->narrow[i] = i % (f->count + 1) == 0;
  return finite ? scale : 0;
}

static void svd_run(const mix_kernel_args *args, const mix_team *team) {
  const matrix_set set = set_of(args);
  factors f = factors_of(&set, args->workspace);
  double *basis = f.order + f.count;
  void *long_side = args->outputs[set.wide ? 2 : 1], *short_side = args->outputs[set.wide ? 1 : 2];
  const int64_t wanted = set.full ? f.length : f.count;
  for (int64_t b = 0; b < set.m.count; b++) {
    const double scale = load(&set, args->inputs[0], b, &f), noise = scale > 0 ? noise_of(&f) : 0;
    const bool good = scale > 0 && orthogonalize(&f, noise);
    if (good) find_basis(&f, basis, wanted, noise);
    for (int64_t i = 0; i < f.count; i++) {
      const int64_t from = good ? (int64_t)f.order[i] : 0;
      mix_ref_put(args->outputs[0], set.m.dtype, b * f.count + i, good ? -f.sizes[from] * scale : NAN);
      for (int64_t k = 0; k < f.count; k++)
        mix_ref_put(short_side, set.m.dtype, (b * f.count + k) * f.count + i,
                    good ? narrow_of(&f, from)[k] : NAN);
    }
    for (int64_t i = 0; i < wanted; i++)
      for (int64_t k = 0; k < f.length; k++)
        mix_ref_put(long_side, set.m.dtype, (b * f.length + k) * wanted + i,
                    good ? basis[i * f.length + k] : NAN);
  }
}

const mix_kernel mix_ref_svd = {
    .name = "ref_svd", .workspace = svd_workspace, .serial = mix_ref_serial, .run = svd_run};
