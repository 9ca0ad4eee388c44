/* Orthonormal columns by Householder reflections. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Replaces a, (m, n) row-major with m >= n, by the Q of its QR decomposition. The signs of the columns make
 * R's diagonal positive. False with MIX_MEMORY_ERROR recorded. */
bool mix_orthonormalize(double *a, int64_t m, int64_t n);
