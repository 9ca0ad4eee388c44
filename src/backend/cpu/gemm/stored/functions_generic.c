/* Stored weights in portable C. */
#include "backend/cpu/simd/simd_generic.h"
#define FUNCTIONS mix_stored_generic
#include "backend/cpu/gemm/stored/functions.h"
