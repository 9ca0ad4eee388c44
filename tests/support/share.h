/* Where tests run slowly or again (an emulator, sanitizers, lower instruction sets), those of many cases run
 * one in MIXTAPE_TEST_SHARE of them. Their counts of dtypes, transposes, threads and kinds are products of 2
 * and 3: a share of 5 or 7 meets each of these. */
#ifndef TESTS_SUPPORT_SHARE_H
#define TESTS_SUPPORT_SHARE_H

#include <stdbool.h>
#include <stdlib.h>

/* Is the next case one that is left out? */
static inline bool left_out(void) {
  static int share = 0, cases = 0;
  const char *text = getenv("MIXTAPE_TEST_SHARE");
  if (!share) share = text && atoi(text) > 1 ? atoi(text) : 1;
  return cases++ % share != 0;
}

#endif
