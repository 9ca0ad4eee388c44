/* QR by Householder reflections (Golub, Van Loan: Matrix computations, 4th edition, algorithms 5.2.1
 * and 5.1.4), in double. */
#include "nn/weights/orthogonal.h"
#include "base/alloc.h"
#include <math.h>

/* x(j:m, from:n) -= beta * v * (v' x). Visits memory row by row for the cache. `dots` holds n numbers. */
static void reflect(double *x, int64_t m, int64_t n, int64_t j, int64_t from, const double *v, int64_t stride,
                    double beta, double *dots) {
  for (int64_t c = from; c < n; c++) dots[c] = 0;
  for (int64_t r = j; r < m; r++)
    for (int64_t c = from; c < n; c++) dots[c] += v[r * stride] * x[r * n + c];
  for (int64_t r = j; r < m; r++)
    for (int64_t c = from; c < n; c++) x[r * n + c] -= beta * v[r * stride] * dots[c];
}

bool mix_orthonormalize(double *a, int64_t m, int64_t n) {
  double *vectors = mix_calloc((size_t)(m * n), sizeof *vectors); /* column j is the reflector v_j */
  double *work = mix_calloc((size_t)n * 3, sizeof *work), *beta = work, *diagonal = work ? work + n : NULL,
         *dots = work ? work + 2 * n : NULL;
  if (!vectors || !work) {
    mix_free(vectors);
    mix_free(work);
    return false;
  }
  for (int64_t j = 0; j < n; j++) {
    double norm = 0;
    for (int64_t r = j; r < m; r++) norm += a[r * n + j] * a[r * n + j];
    norm = sqrt(norm);
    double alpha = a[j * n + j] > 0 ? -norm : norm, length = 0; /* the sign avoids cancellation */
    for (int64_t r = j; r < m; r++) vectors[r * n + j] = a[r * n + j] - (r == j ? alpha : 0);
    for (int64_t r = j; r < m; r++) length += vectors[r * n + j] * vectors[r * n + j];
    beta[j] = length > 0 ? 2 / length : 0;
    diagonal[j] = alpha;
    reflect(a, m, n, j, j, vectors + j, n, beta[j], dots);
  }
  for (int64_t r = 0; r < m; r++)
    for (int64_t c = 0; c < n; c++) a[r * n + c] = r == c;
  for (int64_t j = n - 1; j >= 0; j--) reflect(a, m, n, j, j, vectors + j, n, beta[j], dots);
  for (int64_t r = 0; r < m; r++)
    for (int64_t c = 0; c < n; c++)
      if (diagonal[c] < 0) a[r * n + c] = -a[r * n + c];
  mix_free(vectors);
  mix_free(work);
  return true;
}
