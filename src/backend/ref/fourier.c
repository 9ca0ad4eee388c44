/* The discrete Fourier transform in double, by Cooley and Tukey (1965) with factors of any size: a transform
 * of n = p m points is p transforms of m, combined. A prime n takes n^2 steps. */
#include "backend/ref/ref.h"
#include <math.h>

typedef struct number {
  double real, imaginary;
} number;

/* In the workspace: the points, the result, p numbers, and the n roots exp(+-2 pi i k / n). */
typedef struct transform {
  int64_t size;
  const number *roots;
  number *terms;
} transform;

static int64_t length_of(const mix_kernel_args *args) {
  const mix_shape shape = args->input_types[0].shape;
  return mix_shape_size(shape) ? shape.dims[shape.rank - 1] : 0;
}

static size_t fourier_workspace(const mix_kernel_args *args, int threads) {
  return 4 * (size_t)length_of(args) * sizeof(number);
}

static int64_t smallest_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

/* y[j] = sum over the p parts q of root^(j q) times point j mod m of part q. */
static void combine(const transform *t, number *y, int64_t n, int64_t p) {
  const int64_t m = n / p, stride = t->size / n;
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
  const transform t = {n, roots, roots + n};
  for (int64_t k = 0; k < n; k++) {
    const double angle = turn * 2 * 3.14159265358979323846 * (double)k / (double)n;
    roots[k] = (number){cos(angle), sin(angle)};
  }
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
