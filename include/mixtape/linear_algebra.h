/* Linear algebra: matrices are the last two axes (..., rows, columns), of known sizes of 1 or more and a
 * floating dtype; what stands before them is a batch. Operations build nodes of the lazy graph as those of
 * mixtape/ops.h do, from any thread; results belong to the scope. An operand of another form is a ValueError
 * that names the call, one that is no tensor a TypeError. Nothing tests the values: a singular system gives
 * infinities or NaN, and a matrix with NaN or infinities NaN. */
#ifndef MIXTAPE_LINEAR_ALGEBRA_H
#define MIXTAPE_LINEAR_ALGEBRA_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* ---- systems of equations, in the operands' dtype; gradients are those of the steps ---- */
/* x with a x = b: a (..., n, n), b (..., n) if it has one axis less than a, else (..., n, m), of a's dtype ->
 * b's shape. By elimination with the largest pivot of each column (Gauss and Jordan). */
MIX_API mix_tensor *mix_solve(mix_tensor *a, mix_tensor *b);
/* The same for a triangle: what is above the diagonal (`lower`) or below it is not read. */
MIX_API mix_tensor *mix_solve_triangular(mix_tensor *a, mix_tensor *b, bool lower);
MIX_API mix_tensor *mix_inverse(mix_tensor *x);
/* (..., n, n) -> (...); 0 for a singular matrix. */
MIX_API mix_tensor *mix_determinant(mix_tensor *x);
/* Its sign and the logarithm of its magnitude, a list of two tensors (...); 0 and -inf for a singular
 * matrix. */
MIX_API mix_list *mix_log_determinant(mix_tensor *x);
/* The lower triangle l with l l^T = x, from the lower triangle of a symmetric, positive definite x
 * (..., n, n); NaN for others. The gradient is symmetric, as TensorFlow's. */
MIX_API mix_tensor *mix_cholesky(mix_tensor *x);
/* A list of two tensors: l and u with x[rows] = l u in one matrix (..., n, n), without the ones of l's
 * diagonal, and the place of each row of x among those of l u, int32 (..., n). */
MIX_API mix_list *mix_lu(mix_tensor *x);
/* x (..., m, n) = q r with orthonormal columns of q and r upper triangular, by reflections (Householder): a
 * list of q (..., m, k) and r (..., k, n) with k = min(m, n); k = m if `complete`. */
MIX_API mix_list *mix_qr(mix_tensor *x, bool complete);

/* ---- eigenvalues and singular values, computed in float64 and rounded once; on processors alone ---- */
/* The sign of a vector is any. Gradients are TensorFlow's, in float32 for 16 bits: 1 / x of a difference of
 * eigenvalues is x / (x^2 + 1e-20), 0 for equal ones. */
/* Of a symmetric x (..., n, n), of which the lower triangle is read: a list of the eigenvalues (..., n),
 * ascending, and the eigenvectors of length 1 as columns (..., n, n). */
MIX_API mix_list *mix_eigh(mix_tensor *x);
/* Of any real x (..., n, n): a list of the real and the imaginary parts of the eigenvalues (..., n), in no
 * order, and of the eigenvectors of length 1 as columns (..., n, n). Complex ones come in pairs, the one with
 * a positive imaginary part first; real ones have real vectors. */
MIX_API mix_list *mix_eig(mix_tensor *x);
/* x (..., m, n) = u diag(s) v^T: a list of the singular values s (..., k), descending, u (..., m, k) and v
 * (..., n, k) with orthonormal columns, k = min(m, n). With `full_matrices` u is (..., m, m) and v (..., n,
 * n); their gradient is an UnsupportedError where m and n differ by more than 1. */
MIX_API mix_list *mix_svd(mix_tensor *x, bool full_matrices);
/* How many singular values of x (..., m, n) are above `tolerance`, int32 (...); of a NaN tolerance above the
 * largest one times max(m, n) and the dtype's epsilon. No gradient. */
MIX_API mix_tensor *mix_matrix_rank(mix_tensor *x, double tolerance);
/* The pseudo-inverse (..., n, m) of Moore and Penrose: singular values up to `cutoff` times the largest one
 * count as 0. A NaN cutoff is 10 max(m, n) times the dtype's epsilon, TensorFlow's default. */
MIX_API mix_tensor *mix_pseudo_inverse(mix_tensor *x, double cutoff);
/* The shortest x for which a x - b is shortest: a (..., m, n), b (..., m) if it has one axis less than a,
 * else
 * (..., m, k), of a's dtype -> (..., n) or (..., n, k). Singular values below `cutoff` times the largest one
 * count as 0. A NaN cutoff is max(m, n) times the dtype's epsilon, a negative one the epsilon, as in
 * keras.ops.lstsq. */
MIX_API mix_tensor *mix_least_squares(mix_tensor *a, mix_tensor *b, double cutoff);

MIX_END_DECLARATIONS
#endif
