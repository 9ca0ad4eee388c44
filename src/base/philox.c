#include "base/philox.h"

#include <mixtape/random.h>
#include <pthread.h>

/* Constants and rounds: Salmon et al., SC 2011, section 4.3 and table 2. The Weyl constants are those of
 * the golden ratio and of sqrt(3)-1. */
mix_philox mix_philox_block(uint64_t key, uint64_t counter, uint64_t index) {
  uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = (uint32_t)counter,
           c3 = (uint32_t)(counter >> 32);
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return (mix_philox){{c0, c1, c2, c3}};
}

uint32_t mix_philox_word(uint64_t key, uint64_t counter, uint64_t index) {
  return mix_philox_block(key, counter, index / 4).v[index % 4];
}

/* 64 bits: two words of one block, as positions are even. A stream has 2^66 words; positions reach the
 * first 2^64. */
static uint64_t next_64(uint64_t key, uint64_t counter, uint64_t *position) {
  const mix_philox block = mix_philox_block(key, counter, *position / 4);
  const uint64_t low = block.v[*position % 4], high = block.v[*position % 4 + 1];
  *position += 2;
  return low | high << 32;
}

/* Lemire, Fast random integer generation in an interval, ACM TOMACS 29(1), 2019: the high half of x*n. x
 * is redrawn if the low half is below 2^64 mod n. */
uint64_t mix_philox_below(uint64_t key, uint64_t counter, uint64_t *position, uint64_t n) {
  if (n == 0) return 0;
  for (;;) {
    unsigned __int128 product = (unsigned __int128)next_64(key, counter, position) * n;
    /* The remainder is below n, so this test rarely needs the slow division. */
    if ((uint64_t)product >= n || (uint64_t)product >= -n % n) return (uint64_t)(product >> 64);
  }
}

/* The default seed is 0, so a program that never calls mix_set_seed is reproducible bit for bit. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t seed, creations;

void mix_set_seed(uint64_t value) {
  pthread_mutex_lock(&mutex);
  seed = value;
  creations = 0;
  pthread_mutex_unlock(&mutex);
}

void mix_seed_state(uint64_t state[2]) {
  pthread_mutex_lock(&mutex);
  state[0] = seed;
  state[1] = creations;
  pthread_mutex_unlock(&mutex);
}

void mix_seed_restore(const uint64_t state[2]) {
  pthread_mutex_lock(&mutex);
  seed = state[0];
  creations = state[1];
  pthread_mutex_unlock(&mutex);
}

/* Counter 2^64-1 separates these values from the stream of a generator whose key is the seed itself: that
 * stream counts from 0. */
uint64_t mix_next_seed(void) {
  pthread_mutex_lock(&mutex);
  mix_philox block = mix_philox_block(seed, UINT64_MAX, creations++);
  pthread_mutex_unlock(&mutex);
  return block.v[0] | (uint64_t)block.v[1] << 32;
}
