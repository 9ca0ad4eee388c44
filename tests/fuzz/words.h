/* The words of JSON, also of JSON that lies in a file of another format: quoted names, and numbers. */
#ifndef TESTS_FUZZ_WORDS_H
#define TESTS_FUZZ_WORDS_H

#include <ctype.h>
#include <stddef.h>
#include <string.h>

static inline size_t name_length(const unsigned char *data, size_t size) {
  size_t end = 1;
  while (end < size && (isalnum(data[end]) || (data[end] && strchr("_-.>/$ ", data[end])))) end++;
  return end > 1 && end < size && data[end] == '"' ? end + 1 : 0;
}

static inline size_t number_length(const unsigned char *data, size_t size) {
  size_t end = data[0] == '-';
  while (end < size && isdigit(data[end])) end++;
  return end > (data[0] == '-') ? end : 0;
}

/* Finds the next word from `at` on. Returns its length; 0: none is left. */
static inline size_t next_word(const unsigned char *data, size_t size, size_t *at) {
  for (; *at < size; ++*at) {
    const unsigned char *here = data + *at;
    if (*at && isalnum(here[-1])) continue;
    const size_t length = *here == '"' ? name_length(here, size - *at) : number_length(here, size - *at);
    if (length) return length;
  }
  return 0;
}

#endif
