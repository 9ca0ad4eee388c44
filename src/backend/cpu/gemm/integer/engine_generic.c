/* The engine in portable C: a product of two int8 fits into 16 bits. */
#define SIMD_BYTES 16
#define VECTORS 2
#define GROUP 2
#define OFFSET 0
#define MULTIPLY_ADD(sums, a, b) add_pairs(sums, a, b)
#define ENGINE mix_integer_generic
#include "backend/cpu/simd/attributes.h"
#include <stdint.h>

typedef int16_t words __attribute__((vector_size(SIMD_BYTES)));
typedef int32_t numbers __attribute__((vector_size(SIMD_BYTES)));
typedef uint32_t sums_of_pairs __attribute__((vector_size(SIMD_BYTES)));
SIMD_INLINE sums_of_pairs add_pairs(sums_of_pairs sums, sums_of_pairs a, sums_of_pairs b) {
  const sums_of_pairs products = (sums_of_pairs)((words)a * (words)b);
  return sums + (sums_of_pairs)((numbers)products >> 16) + (sums_of_pairs)((numbers)(products << 16) >> 16);
}
#include "backend/cpu/gemm/integer/engine.h"
