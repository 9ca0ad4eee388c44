/* Stored weights by NEON; numbers are widened by plain C. */
#include "backend/cpu/simd/simd_neon.h"
#define FUNCTIONS mix_stored_neon
#include "backend/cpu/gemm/stored/functions.h"
