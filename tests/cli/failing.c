/* The program mixtape with a failure: of the allocation number MIXTAPE_FAIL_ALLOCATION (from 0), whereupon it
 * says on standard error whether so many were made; or, with MIXTAPE_FAIL_WRITE, of the first write to
 * standard output, without a reason. */
#define _GNU_SOURCE
#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void say_whether_one_failed(void) {
  if (mix_allocation_failure_injected()) fputs("no allocation failed\n", stderr);
}

static ssize_t fail_first_write(void *writes, const char *data, size_t size) {
  return (*(int *)writes)++ ? write(STDOUT_FILENO, data, size) : 0;
}

__attribute__((constructor)) static void begin(void) {
  static int writes;
  const char *text = getenv("MIXTAPE_FAIL_ALLOCATION");
  if (getenv("MIXTAPE_FAIL_WRITE")) {
    stdout = fopencookie(&writes, "w", (cookie_io_functions_t){.write = fail_first_write});
    setvbuf(stdout, NULL, _IOLBF, 0);
  }
  if (!text) return;
  atexit(say_whether_one_failed);
  mix_inject_allocation_failure(strtoll(text, NULL, 10));
}
