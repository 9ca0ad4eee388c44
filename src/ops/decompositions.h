/* Decompositions of matrices: ops with kernels, but without a form in StableHLO. */
#pragma once

#include "ops/table.h"

/* X(name, reference kernel, none, fast kernels), as MIX_KERNEL_OPS. */
#define MIX_DECOMPOSITION_OPS(X)                                                                             \
  X(eigh, eigh, none, none)                                                                                  \
  X(svd, svd, none, none) X(eig, eig, none, none) X(matrix_solve, matrix_solve, none, none)

/* eigh: (..., n, n) -> eigenvalues (..., n), eigenvectors as columns (..., n, n). eig: the same, each as real
 * and imaginary part. svd: (..., m, n) -> s (..., k), u (..., m, k), v (..., n, k) with k the smaller size;
 * with `full_matrices` u and v are square. matrix_solve: a (..., n, n), b (..., n, m) -> the inverse of a
 * times b; the public mix_solve is a loop, which every device runs. */
typedef struct mix_svd_attributes {
  bool full_matrices;
} mix_svd_attributes;

#define MIX_DECLARE_OP(name, ...) extern const mix_op mix_op_##name;
MIX_DECOMPOSITION_OPS(MIX_DECLARE_OP)
#undef MIX_DECLARE_OP
