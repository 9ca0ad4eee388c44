/* Mutations for libFuzzer: half are its own, half put a word of the input in another one's place, with spaces
 * behind it, so that JSON and the files around it stay whole more often than mutated bytes do. One in four
 * puts a large number there. */
#include "words.h"
#include <stdint.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* A word at or behind a place that the number says. */
static size_t word_at(const uint8_t *data, size_t size, unsigned number, size_t *at) {
  *at = number % size;
  while (*at > 0 && data[*at] != '"' && data[*at] != ' ') --*at;
  return next_word(data, size, at);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  if (!size || seed % 2) return LLVMFuzzerMutate(data, size, most);
  unsigned number = seed;
  if (seed % 8 == 0 && put_large_word(data, size, seed / 8 % size, seed / 64)) return size;
  for (int trial = 0; trial < 16; trial++) {
    size_t from, to;
    const size_t length = word_at(data, size, number = number * 1664525u + 1013904223u, &from);
    const size_t room = word_at(data, size, number = number * 1664525u + 1013904223u, &to);
    if (!length || length > room || from == to) continue;
    memmove(data + to, data + from, length);
    memset(data + to + length, ' ', room - length);
    if (number >> 28) return size;
  }
  return LLVMFuzzerMutate(data, size, most);
}
