/* Failing allocations of the whole process, also those of libzip, jansson and libc: the test's own
 * malloc, calloc and realloc stand before the C library's. Not under a sanitizer, which has its own. */
#ifndef TESTS_SUPPORT_EVERY_ALLOCATION_H
#define TESTS_SUPPORT_EVERY_ALLOCATION_H

#include "support/sanitizer.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REACHES_EVERY_ALLOCATION (!UNDER_SANITIZER)

/* Of this thread: allocations that still succeed before one fails; negative: all succeed. */
static _Thread_local int64_t allocations_left = -1;

#if REACHES_EVERY_ALLOCATION
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

static inline bool refuses_allocation(void) {
  if (allocations_left < 0 || allocations_left-- > 0) return false;
  errno = ENOMEM;
  return true;
}
/* Hidden, as everything else in the tests is, they would be called by the library alone. */
#define SEEN_BY_LIBRARIES __attribute__((visibility("default")))
SEEN_BY_LIBRARIES void *malloc(size_t size) { return refuses_allocation() ? NULL : __libc_malloc(size); }
SEEN_BY_LIBRARIES void *calloc(size_t count, size_t size) {
  return refuses_allocation() ? NULL : __libc_calloc(count, size);
}
SEEN_BY_LIBRARIES void *realloc(void *memory, size_t size) {
  return refuses_allocation() ? NULL : __libc_realloc(memory, size);
}
#endif

#endif
