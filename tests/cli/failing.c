/* The program mixtape whose allocation number MIXTAPE_FAIL_ALLOCATION (from 0) fails. It says on standard
 * error whether so many were made. */
#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>

static void say_whether_one_failed(void) {
  if (mix_allocation_failure_injected()) fputs("no allocation failed\n", stderr);
}

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("MIXTAPE_FAIL_ALLOCATION");
  if (!text) return;
  atexit(say_whether_one_failed);
  mix_inject_allocation_failure(strtoll(text, NULL, 10));
}
