/* matrix_solve in double, by elimination with the largest pivot of each column. A matrix that is singular
 * gives infinities or NaN. */
#include "backend/ref/decompositions.h"

static size_t matrix_solve_workspace(const mix_kernel_args *args, int threads) {
  const mix_ref_matrices a = mix_ref_matrices_of(&args->input_types[0]),
                         b = mix_ref_matrices_of(&args->input_types[1]);
  return (size_t)a.rows * (size_t)(a.rows + b.columns) * sizeof(double);
}

static void swap_rows(double *a, double *b, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const double x = a[k];
    a[k] = b[k], b[k] = x;
  }
}

/* Rows of n + m numbers, (a, b) -> (1, the inverse of a times b). */
static void eliminate(double *rows, int64_t n, int64_t width) {
  for (int64_t c = 0; c < n; c++) {
    int64_t pivot = c;
    for (int64_t i = c + 1; i < n; i++)
      if (fabs(rows[i * width + c]) > fabs(rows[pivot * width + c])) pivot = i;
    swap_rows(rows + c * width, rows + pivot * width, width);
    double *row = rows + c * width;
    const double divisor = row[c];
    for (int64_t k = c; k < width; k++) row[k] /= divisor;
    for (int64_t i = 0; i < n; i++) {
      const double factor = rows[i * width + c];
      for (int64_t k = c; k < width && i != c; k++) rows[i * width + k] -= factor * row[k];
    }
  }
}

static void matrix_solve_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_ref_matrices a = mix_ref_matrices_of(&args->input_types[0]),
                         b = mix_ref_matrices_of(&args->input_types[1]);
  const int64_t n = a.rows, m = b.columns, width = n + m;
  double *rows = args->workspace;
  for (int64_t matrix = 0; matrix < a.count; matrix++) {
    for (int64_t i = 0; i < n; i++)
      for (int64_t k = 0; k < width; k++)
        rows[i * width + k] = k < n ? mix_ref_element(&a, args->inputs[0], matrix, i, k)
                                    : mix_ref_element(&b, args->inputs[1], matrix, i, k - n);
    eliminate(rows, n, width);
    for (int64_t i = 0; i < n; i++)
      for (int64_t k = 0; k < m; k++)
        mix_ref_put(args->outputs[0], a.dtype, (matrix * n + i) * m + k, rows[i * width + n + k]);
  }
}

const mix_kernel mix_ref_matrix_solve = {.name = "ref_matrix_solve",
                                         .workspace = matrix_solve_workspace,
                                         .serial = mix_ref_serial,
                                         .run = matrix_solve_run};
