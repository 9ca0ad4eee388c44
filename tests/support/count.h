/* How often a text stands in another. */
#ifndef MIX_TESTS_SUPPORT_COUNT_H
#define MIX_TESTS_SUPPORT_COUNT_H

#include <string.h>

static inline int count_of(const char *text, const char *part) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, part)); at += strlen(part)) count++;
  return count;
}

#endif
