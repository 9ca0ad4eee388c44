/* Clocks in seconds. */
#pragma once

#include <time.h>

/* CLOCK_MONOTONIC, or CPU time of this thread (CLOCK_THREAD_CPUTIME_ID) or of the process. */
static inline double mix_clock(clockid_t clock) {
  struct timespec t = {0};
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
