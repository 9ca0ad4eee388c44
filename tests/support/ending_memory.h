/* A call in processes of their own, in each of which memory ends a little later. Not under a sanitizer, which
 * reserves the address space. */
#ifndef TESTS_SUPPORT_ENDING_MEMORY_H
#define TESTS_SUPPORT_ENDING_MEMORY_H

#include "support/sanitizer.h"
#include "support/skip.h"

#include <mixtape/mixtape.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The stack, which must not be what ends, is there before the limit. */
static inline void touch_stack(void) {
  volatile char stack[1 << 19];
  for (size_t i = 0; i < sizeof stack; i += 512) stack[i] = 0;
}

static inline bool limit_memory(size_t more) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  const bool known = file && fscanf(file, "%lu", &pages) == 1;
  if (file) fclose(file);
  const rlim_t size = pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
  return known && setrlimit(RLIMIT_AS, &(struct rlimit){size, size}) == 0;
}

/* How the process ends: 0 the call succeeded, 1 with an error of memory, 2 otherwise. */
static inline int end_with(int (*call)(void *), void *argument, size_t more) {
  signal(SIGSEGV, SIG_DFL); /* cmocka would go on in the child */
  signal(SIGABRT, SIG_DFL);
  touch_stack();
  if (!limit_memory(more)) return 3;
  const int status = call(argument);
  if (status && mix_error() != MIX_MEMORY_ERROR) fprintf(stderr, "%s\n", mix_error_message());
  return status == 0 ? 0 : mix_error() == MIX_MEMORY_ERROR ? 1 : 2;
}

static inline void expect_errors_of_memory(int (*call)(void *), void *argument) {
  enum { STEP = 64 << 10, MOST = 4096 };
  if (UNDER_SANITIZER) SKIP("the sanitizer reserves the address space");
  int errors = 0, status = 1;
  for (int i = 0; i < MOST && status; i++) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) _exit(end_with(call, argument, (size_t)i * STEP));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
      fail_msg("with %d KiB more: wait status %#x", i * (STEP >> 10), (unsigned)status);
    errors += status != 0;
  }
  print_message("%d attempts without memory\n", errors);
  assert_int_equal(status, 0);
  assert_true(errors > 0);
}

#endif
