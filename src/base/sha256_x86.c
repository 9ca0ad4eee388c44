/* SHA-256 by the instructions of x86's SHA extensions, eight times as fast as portable C. */
#include "base/sha256_inside.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#include <stdbool.h>

/* CPUID bits: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A. */
static bool find_instructions(void) {
  uint32_t a, b, c, d;
  enum { SSSE3 = 1 << 9, SSE41 = 1 << 19, SHA = 1 << 29 };
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & SSSE3) || !(c & SSE41)) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & SHA;
}

static bool has_instructions(void) {
  enum { UNKNOWN, NO, YES };
  static atomic_int known;
  int found = atomic_load_explicit(&known, memory_order_relaxed);
  if (found == UNKNOWN)
    atomic_store_explicit(&known, found = find_instructions() ? YES : NO, memory_order_relaxed);
  return found == YES;
}

#define BY_INSTRUCTIONS __attribute__((target("sha,sse4.1,ssse3")))

/* Words 4i to 4i + 3 of the schedule, from the 16 words before, of which w has four a register. */
BY_INSTRUCTIONS static inline __m128i next_words(__m128i w[4], int i) {
  const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]),
                                    _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
  return _mm_sha256msg2_epu32(sum, w[(i + 3) & 3]);
}

/* The instructions take the state as a, b, e, f and c, d, g, h, the highest word first. */
BY_INSTRUCTIONS static void add_block(__m128i *abef, __m128i *cdgh, const unsigned char *block) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i w[4], x = *abef, y = *cdgh;
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) {
    w[i & 3] = i < 4 ? _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)block + i), big_endian)
                     : next_words(w, i);
    const __m128i sum =
        _mm_add_epi32(w[i & 3], _mm_loadu_si128((const __m128i *)(const void *)(mix_sha256_k + 4 * i)));
    y = _mm_sha256rnds2_epu32(y, x, sum);
    x = _mm_sha256rnds2_epu32(x, y, _mm_shuffle_epi32(sum, 0x0e));
  }
  *abef = _mm_add_epi32(*abef, x);
  *cdgh = _mm_add_epi32(*cdgh, y);
}

BY_INSTRUCTIONS static void add_blocks(uint32_t state[8], const unsigned char *blocks, size_t count) {
  __m128i abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
  __m128i cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);
  uint32_t x[4], y[4];
  for (; count > 0; count--, blocks += 64) add_block(&abef, &cdgh, blocks);
  _mm_storeu_si128((__m128i *)(void *)x, abef);
  _mm_storeu_si128((__m128i *)(void *)y, cdgh);
  const uint32_t after[8] = {x[3], x[2], y[3], y[2], x[1], x[0], y[1], y[0]};
  for (int i = 0; i < 8; i++) state[i] = after[i];
}

void mix_sha256_add_blocks(uint32_t state[8], const unsigned char *blocks, size_t count) {
  if (has_instructions())
    add_blocks(state, blocks, count);
  else
    mix_sha256_add_blocks_portable(state, blocks, count);
}
