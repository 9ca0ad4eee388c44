/* Orthonormal columns by Householder reflections. */
#ifndef MIX_NN_WEIGHTS_ORTHOGONAL_H
#define MIX_NN_WEIGHTS_ORTHOGONAL_H

#include <stdbool.h>
#include <stdint.h>

/* Replaces a, (m, n) row-major with m >= n, by Q of its QR decomposition, columns signed so that R's diagonal is positive. False with
 * MIX_MEMORY_ERROR recorded. */
bool mix_orthonormalize(double *a, int64_t m, int64_t n);

#endif
