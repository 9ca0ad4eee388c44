/* The program mixtape with a failure: of the allocation number MIXTAPE_FAIL_ALLOCATION (from 0), whereupon it
 * says on standard error whether so many were made; with MIXTAPE_FAIL_WRITE, of the first write to standard
 * output, without a reason; with MIXTAPE_FAIL_OPEN, of opening the file of that name, whenever it is tried,
 * by the limit of open files. */
#define _GNU_SOURCE
#include "base/alloc.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Stands before the C library's. */
int open(const char *path, int flags, ...) {
  const char *refused = getenv("MIXTAPE_FAIL_OPEN");
  struct rlimit limit;
  va_list list;
  va_start(list, flags);
  const unsigned mode = flags & O_CREAT ? va_arg(list, unsigned) : 0;
  va_end(list);
  const int refuse = refused && !strcmp(path, refused) && getrlimit(RLIMIT_NOFILE, &limit) == 0;
  if (refuse) setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, limit.rlim_max});
  const int file = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  if (refuse) setrlimit(RLIMIT_NOFILE, &limit);
  return file;
}

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
