/* Stored weights by AVX2. */
#include "backend/cpu/simd/simd_avx2.h"

/* Each byte twice, of which the first lane takes the lower half and the second the upper one. */
SIMD_INLINE vf load_packed(const int8_t *p) {
  int32_t bytes;
  memcpy(&bytes, p, sizeof bytes);
  const __m128i four = _mm_cvtsi32_si128(bytes);
  const __m256i twice = _mm256_cvtepi8_epi32(_mm_unpacklo_epi8(four, four)),
                left = _mm256_setr_epi32(28, 24, 28, 24, 28, 24, 28, 24);
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_sllv_epi32(twice, left), 28));
}
SIMD_INLINE vf load_numbers(const int8_t *p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
#define LOAD_PACKED load_packed
#define LOAD_NUMBERS load_numbers
#define FUNCTIONS mix_stored_avx2
#include "backend/cpu/gemm/stored/functions.h"
