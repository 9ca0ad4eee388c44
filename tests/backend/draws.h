/* Random cases of tests: case `number` of a family draws its own stream, so a case that fails is run alone by
 * its number, and more cases are the same ones and others. MIXTAPE_SHAPES is how many of each family (by
 * night); MIXTAPE_SHAPES_FROM the first. */
#ifndef TESTS_BACKEND_DRAWS_H
#define TESTS_BACKEND_DRAWS_H

#include "base/philox.h"
#include <stdbool.h>
#include <stdlib.h>

typedef struct draws {
  uint64_t stream, count;
} draws;

static inline draws draws_of(int family, int number) {
  return (draws){.stream = (uint64_t)family << 32 | (uint64_t)number};
}

static inline uint32_t draw_word(draws *d) { return mix_philox_word(58, d->stream, d->count++); }
static inline int64_t draw(draws *d, int64_t least, int64_t most) {
  return least + (int64_t)(draw_word(d) % (uint64_t)(most - least + 1));
}
static inline bool one_in(draws *d, int n) { return draw(d, 1, n) == 1; }
/* Few more often than many. */
static inline int64_t draw_few(draws *d, int64_t most) {
  return draw(d, 1, one_in(d, 2) ? most : one_in(d, 2) ? (most + 7) / 8 : (most + 2) / 3);
}

static inline int number_in(const char *variable, int without) {
  const char *text = getenv(variable);
  return text ? atoi(text) : without;
}
static inline int first_case(void) { return number_in("MIXTAPE_SHAPES_FROM", 0); }
static inline int case_count(int by_day) { return number_in("MIXTAPE_SHAPES", by_day); }

#endif
