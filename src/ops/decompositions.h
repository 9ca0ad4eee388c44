/* Decompositions of matrices: ops with kernels, but without a form in StableHLO. */
#pragma once

#include "ops/table.h"

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
