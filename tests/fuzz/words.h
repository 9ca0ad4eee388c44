/* The words of JSON, also of JSON that lies in a file of another format: quoted names, and numbers. And
 * numbers that fit no field: those of 64 bits whose lower 32 are those of a small one, and limits. */
#ifndef TESTS_FUZZ_WORDS_H
#define TESTS_FUZZ_WORDS_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *const large_words[] = {"4294967297",          "-4294967296",          "2147483648",
                                          "9223372036854775807", "-9223372036854775808", "1e308"};
enum { LARGE_WORDS = sizeof large_words / sizeof *large_words };

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

/* How many bytes a number of that length may take from a number on, so that JSON stays whole: it, and what
 * follows in the same list or object. 0: no so many. */
static inline size_t room_of_number(const unsigned char *data, size_t size, size_t at, size_t length) {
  for (size_t end = at + 1; end < size && data[end]; end++) {
    const bool closes = data[end] == '}' || data[end] == ']';
    if (end - at >= length && (data[end] == ',' || closes)) return end - at;
    if (closes || data[end] == '{' || data[end] == '[') return 0;
  }
  return 0;
}

/* Puts a large number over a number at `at` or behind it, and spaces. False: none has the room. */
static inline bool put_large_word(unsigned char *data, size_t size, size_t at, size_t which) {
  const char *word = large_words[which % LARGE_WORDS];
  const size_t length = strlen(word);
  for (size_t step; (step = next_word(data, size, &at)) > 0; at += step) {
    const size_t room = data[at] == '"' ? 0 : room_of_number(data, size, at, length);
    if (!room) continue;
    memset(data + at, ' ', room);
    memcpy(data + at, word, length);
    return true;
  }
  return false;
}

#endif
