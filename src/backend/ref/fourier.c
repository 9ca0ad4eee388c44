/* The discrete Fourier transform in double, by Cooley and Tukey (1965) with factors of any size: a transform
 * of n = p m points is p transforms of m, combined. A prime n takes n^2 steps if it is small, or else three
 * transforms of a power of 2 (Bluestein: A linear filtering approach to the computation of discrete Fourier
 * transform, 1970). */
#include "backend/ref/ref.h"
#include <math.h>

typedef struct number {
  double real, imaginary;
} number;

/* In the workspace: the points, the result, p numbers, and the n roots exp(+-2 pi i k / n). */
typedef struct transform {
  int64_t size;
  double turn; /* 1 or -1: the sign of the roots' angles */
  const number *roots;
  number *terms, *more; /* more: what large_prime needs */
} transform;

static int64_t length_of(const mix_kernel_args *args) {
  const mix_shape shape = args->input_types[0].shape;
  return mix_shape_size(shape) ? shape.dims[shape.rank - 1] : 0;
}

static int64_t smallest_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

enum { LARGE = 64 }; /* primes from here on take fewer steps as convolutions */
static int64_t largest_factor(int64_t n) {
  int64_t p = 1;
  for (; n > 1; n /= p) p = smallest_factor(n);
  return p;
}
static int64_t power_of_two(int64_t least) {
  int64_t size = 1;
  while (size < least) size *= 2;
  return size;
}
/* The chirp, its transform, two arrays of the same size, and roots. */
static int64_t numbers_of_prime(int64_t p) { return p < LARGE ? 0 : p + 4 * power_of_two(2 * p - 1); }

static size_t fourier_workspace(const mix_kernel_args *args, int threads) {
  const int64_t n = length_of(args);
  return n ? (size_t)(4 * n + LARGE + numbers_of_prime(largest_factor(n))) * sizeof(number) : 0;
}

static number product(number a, number b) {
  return (number){a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}
static number conjugate(number a) { return (number){a.real, -a.imaginary}; }
static number root_of(double turn, int64_t k, int64_t n) { /* exp(turn 2 pi i k / n) */
  const double angle = turn * 2 * 3.14159265358979323846 * (double)k / (double)n;
  return (number){cos(angle), sin(angle)};
}

static void compute(const transform *t, const number *x, int64_t step, number *y, int64_t n);

/* A convolution with a chirp: q s = (q^2 + s^2 - (s - q)^2) / 2. Its transform by a power of 2 is made once.
 */
typedef struct chirp {
  transform inner;
  int64_t p, size;
  number *chirp, *kernel, *a, *b;
} chirp;

static chirp begin_chirp(const transform *t, int64_t p) {
  const int64_t size = power_of_two(2 * p - 1);
  number *roots = t->more + p + 3 * size;
  chirp c = {{size, -1, roots, t->terms, NULL},
             p,
             size,
             t->more,
             t->more + p,
             t->more + p + size,
             t->more + p + 2 * size};
  for (int64_t k = 0; k < size; k++) roots[k] = root_of(-1, k, size), c.a[k] = (number){0, 0};
  for (int64_t j = 0; j < p; j++) c.chirp[j] = root_of(t->turn, j * j % (2 * p), 2 * p);
  for (int64_t j = 0; j < p; j++) c.a[j] = c.a[(size - j) % size] = conjugate(c.chirp[j]);
  compute(&c.inner, c.a, 1, c.kernel, size);
  return c;
}
/* The p terms become their transform. */
static void large_prime(const chirp *c, number *terms) {
  for (int64_t k = 0; k < c->size; k++) c->a[k] = k < c->p ? product(terms[k], c->chirp[k]) : (number){0, 0};
  compute(&c->inner, c->a, 1, c->b, c->size);
  for (int64_t k = 0; k < c->size; k++) c->a[k] = conjugate(product(c->b[k], c->kernel[k]));
  compute(&c->inner, c->a, 1, c->b, c->size); /* the inverse, conjugated */
  for (int64_t s = 0; s < c->p; s++) {
    const number y = product(conjugate(c->b[s]), c->chirp[s]);
    terms[s] = (number){y.real / (double)c->size, y.imaginary / (double)c->size};
  }
}

/* The same from parts of m points: p is a large prime. */
static void combine_large(const transform *t, number *y, int64_t n, int64_t p) {
  const int64_t m = n / p, stride = t->size / n;
  const chirp c = begin_chirp(t, p);
  number *terms = t->terms + LARGE; /* the inner transform has two terms */
  for (int64_t k = 0; k < m; k++) {
    for (int64_t q = 0; q < p; q++) terms[q] = product(t->roots[k * q % n * stride], y[q * m + k]);
    large_prime(&c, terms);
    for (int64_t s = 0; s < p; s++) y[k + s * m] = terms[s];
  }
}

/* y[j] = sum over the p parts q of root^(j q) times point j mod m of part q. */
static void combine(const transform *t, number *y, int64_t n, int64_t p) {
  const int64_t m = n / p, stride = t->size / n;
  if (p >= LARGE) {
    combine_large(t, y, n, p);
    return;
  }
  for (int64_t k = 0; k < m; k++) {
    for (int64_t q = 0; q < p; q++) t->terms[q] = y[q * m + k];
    for (int64_t s = 0; s < p; s++) {
      const int64_t j = k + s * m;
      number sum = {0, 0};
      for (int64_t q = 0; q < p; q++) {
        const number root = t->roots[j * q % n * stride], x = t->terms[q];
        sum.real += root.real * x.real - root.imaginary * x.imaginary;
        sum.imaginary += root.real * x.imaginary + root.imaginary * x.real;
      }
      y[j] = sum;
    }
  }
}

/* The n points x[0], x[step], ... to y. */
static void compute(const transform *t, const number *x, int64_t step, number *y, int64_t n) {
  if (n == 1) {
    *y = *x;
    return;
  }
  const int64_t p = smallest_factor(n), m = n / p;
  for (int64_t q = 0; q < p; q++) compute(t, x + q * step, step * p, y + q * m, m);
  combine(t, y, n, p);
}

static void fourier_run(const mix_kernel_args *args, const mix_team *team) {
  const double turn = ((const mix_fourier_attributes *)args->attributes)->inverse ? 1 : -1;
  const mix_dtype dtype = args->input_types[0].dtype;
  const int64_t n = length_of(args), size = mix_shape_size(args->input_types[0].shape);
  if (!size) return;
  number *x = args->workspace, *y = x + n, *roots = y + n;
  const transform t = {n, turn, roots, roots + n, roots + 2 * n + LARGE};
  for (int64_t k = 0; k < n; k++) roots[k] = root_of(turn, k, n);
  for (int64_t row = 0; row < size; row += n) {
    for (int64_t k = 0; k < n; k++)
      x[k] = (number){mix_ref_load(args->inputs[0], dtype, row + k).real,
                      mix_ref_load(args->inputs[1], dtype, row + k).real};
    compute(&t, x, 1, y, n);
    for (int64_t k = 0; k < n; k++) {
      mix_ref_store(args->outputs[0], dtype, row + k,
                    mix_ref_round((mix_ref_value){.real = y[k].real}, dtype));
      mix_ref_store(args->outputs[1], dtype, row + k,
                    mix_ref_round((mix_ref_value){.real = y[k].imaginary}, dtype));
    }
  }
}

const mix_kernel mix_ref_fourier = {
    .name = "ref_fourier", .workspace = fourier_workspace, .serial = mix_ref_serial, .run = fourier_run};
