/* Runs a fuzz target without a fuzzer, on mutations of valid files from a generator with a fixed seed. The
 * same loop runs in every build; under the sanitizers it finds reads past the end. A crash is reproducible:
 * the seed and the order never change. */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include "data/support.h"
#include "fuzz/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t mutate_state;

/* SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014). */
static inline uint64_t mutate_next(void) {
  uint64_t z = mutate_state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline size_t mutate_below(size_t n) { return n ? (size_t)(mutate_next() % n) : 0; }

/* One mutation: a bit, a byte, a number at a limit of checks, a truncation, a duplicated or removed range, a
 * digit. */
static inline void mutate_once(bytes *b) {
  static const uint64_t numbers[] = {0,      1,          0x7f,       0x80,       0xff,      0x7fff,
                                     0xffff, 0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, UINT64_MAX};
  if (b->size == 0) return;
  size_t at = mutate_below(b->size), length = 1 + mutate_below(b->size - at < 32 ? b->size - at : 32);
  switch (mutate_next() % 8) {
  case 0: b->data[at] ^= (unsigned char)(1 << mutate_next() % 8); break;
  case 1: b->data[at] = (unsigned char)mutate_next(); break;
  case 2: {
    uint64_t number = numbers[mutate_below(sizeof numbers / sizeof numbers[0])];
    size_t width = (size_t)1 << mutate_next() % 4;
    memcpy(b->data + at, &number, width < b->size - at ? width : b->size - at);
    break;
  }
  case 3: b->size = at; break;
  case 4:
    if (b->size + length > sizeof b->data) break;
    memmove(b->data + at + length, b->data + at, b->size - at);
    b->size += length;
    break;
  case 5:
    memmove(b->data + at, b->data + at + length, b->size - at - length);
    b->size -= length;
    break;
  case 6:
    for (size_t i = at; i < b->size; i++)
      if (b->data[i] >= '0' && b->data[i] <= '9') {
        b->data[i] = (unsigned char)('0' + mutate_next() % 10);
        break;
      }
    break;
  default: memset(b->data + at, (int)(mutate_next() % 2 ? 0 : 0xff), length); break;
  }
}

/* Keeps a valid file as a seed of the target's corpus, if MIXTAPE_FUZZ_SEEDS names a folder, as
 * PROGRAM/seed-NUMBER. */
static inline void keep_seed(const bytes *good) {
  extern const char *__progname;
  static int count;
  const char *folder = getenv("MIXTAPE_FUZZ_SEEDS");
  if (!folder) return;
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, __progname);
  mkdir(path, 0777);
  snprintf(path, sizeof path, "%s/%s/seed-%d", folder, __progname, count++);
  write_file(path, good->data, good->size);
}

/* The valid file, every truncation of it by a multiple of `step` bytes, then `rounds` files with one to six
 * mutations. */
static inline void mutate_in_steps(const bytes *good, int step, int rounds, uint64_t seed) {
  keep_seed(good);
  mutate_state = seed;
  for (int round = -(int)good->size - 1; round < rounds; round = round < -step ? round + step : round + 1) {
    static bytes damaged;
    damaged = *good;
    if (round < 0)
      damaged.size = (size_t)-round - 1;
    else
      for (uint64_t changes = 1 + mutate_next() % 6; changes > 0; changes--) mutate_once(&damaged);
    /* Exact size: the sanitizer sees an overrun of one byte. */
    unsigned char *exact = malloc(damaged.size ? damaged.size : 1);
    memcpy(exact, damaged.data, damaged.size);
    assert_int_equal(LLVMFuzzerTestOneInput(exact, damaged.size), 0);
    assert_int_equal(mix_error(), MIX_OK);
    free(exact);
  }
}

static inline void mutate_and_run(const bytes *good, int rounds, uint64_t seed) {
  mutate_in_steps(good, 1, rounds, seed);
}

/* Large numbers in the places of others, in JSON that lies in a file which stays as it is. */
static inline void large_numbers_in_place(const bytes *good, int rounds, uint64_t seed) {
  mutate_state = seed;
  for (int round = 0; round < rounds; round++) {
    unsigned char *changed = malloc(good->size);
    memcpy(changed, good->data, good->size);
    if (put_large_word(changed, good->size, mutate_below(good->size), mutate_below(LARGE_WORDS)))
      assert_int_equal(LLVMFuzzerTestOneInput(changed, good->size), 0);
    assert_int_equal(mix_error(), MIX_OK);
    free(changed);
  }
}

/* Replaces words of a file of JSON by others of it: names, fields and numbers that exist, in wrong positions;
 * one in eight by large numbers. Most results are valid JSON, unlike mutated bytes. */
static inline void misplaced_words(const bytes *good, int rounds, uint64_t seed) {
  enum { MAX = 2000 };
  static size_t starts[MAX], lengths[MAX];
  int words = 0;
  for (size_t at = 0; words < MAX && (lengths[words] = next_word(good->data, good->size, &at)) > 0;
       at += lengths[words++])
    starts[words] = at;
  mutate_state = seed;
  for (int round = 0; words > 0 && round < rounds; round++) {
    const bool large = round % 8 == 0; /* for a number */
    size_t from = mutate_below((size_t)words), to = mutate_below((size_t)words);
    while (large && to < (size_t)words && good->data[starts[to]] == '"') to++;
    if (to == (size_t)words) continue;
    const char *word = large ? large_words[from % LARGE_WORDS] : (const char *)good->data + starts[from];
    const size_t length = large ? strlen(word) : lengths[from];
    size_t head = starts[to], tail = starts[to] + lengths[to], size = good->size - lengths[to] + length;
    unsigned char *changed = malloc(size);
    memcpy(changed, good->data, head);
    memcpy(changed + head, word, length);
    memcpy(changed + head + length, good->data + tail, good->size - tail);
    assert_int_equal(LLVMFuzzerTestOneInput(changed, size), 0);
    assert_int_equal(mix_error(), MIX_OK);
    free(changed);
  }
}

#endif
