/* Stored weights by AVX-512. */
#include "backend/cpu/simd/simd_avx512.h"

/* Even columns in one vector, odd ones in the other, with a bias: half a byte, of which the highest bit is
 * inverted, is the number + 8, and the lowest bits of a float that begins with 2^23 or, four bits higher,
 * 2^19. One instruction cuts it out and joins it to that; subtracting bias and zero together is exact. */
enum { EVEN_BIAS = (1 << 23) + 8, ODD_BIAS = (1 << 19) + 8 };
SIMD_INLINE void load_packed_pair(const int8_t *p, vf w[2]) {
  enum { AND_XOR = 0x6a }; /* c ^ (a & b), as bits of a table */
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
  const __m512i even = _mm512_set1_epi32(0x4b000008), odd = _mm512_set1_epi32(0x49000080);
  w[0] = (vf)_mm512_ternarylogic_epi32(bytes, _mm512_set1_epi32(0x0f), even, AND_XOR);
  w[1] = (vf)_mm512_ternarylogic_epi32(bytes, _mm512_set1_epi32(0xf0), odd, AND_XOR);
}
SIMD_INLINE vf load_numbers(const int8_t *p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

SIMD_INLINE void from_pair(vf w[2]) {
  const vi low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}, high = low + 8;
  const vf even = w[0];
  w[0] = _mm512_permutex2var_ps(even, (__m512i)low, w[1]);
  w[1] = _mm512_permutex2var_ps(even, (__m512i)high, w[1]);
}
static void from_pairs(float *values, int64_t columns) {
  for (int64_t j = 0; j < columns; j += 2 * LANES) {
    vf w[2] = {v_load(values + j), v_load(values + j + LANES)};
    from_pair(w);
    v_store(values + j, w[0]), v_store(values + j + LANES, w[1]);
  }
}
static void to_pairs(float *values, int64_t columns, bool zeros) {
  const vi even = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}, odd = even + 1;
  for (int64_t j = 0; j < columns; j += 2 * LANES) {
    const vf first = v_load(values + j), second = v_load(values + j + LANES);
    vf x = _mm512_permutex2var_ps(first, (__m512i)even, second),
       y = _mm512_permutex2var_ps(first, (__m512i)odd, second);
    if (zeros) x += v_set(EVEN_BIAS), y += v_set(ODD_BIAS);
    v_store(values + j, x), v_store(values + j + LANES, y);
  }
}
#define LOAD_PACKED_PAIR load_packed_pair
#define PACKED_BIAS(v) v_set((v) ? ODD_BIAS : EVEN_BIAS)
#define FROM_PAIR from_pair
#define TO_PAIRS to_pairs
#define FROM_PAIRS from_pairs
#define LOAD_NUMBERS load_numbers
#define FUNCTIONS mix_stored_avx512
#include "backend/cpu/gemm/stored/functions.h"
