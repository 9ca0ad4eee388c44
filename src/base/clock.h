/* Clocks, in seconds. */
#ifndef MIX_BASE_CLOCK_H
#define MIX_BASE_CLOCK_H

#include <time.h>

/* CLOCK_MONOTONIC, or the time that this thread (CLOCK_THREAD_CPUTIME_ID) or the whole process has computed. */
static inline double mix_clock(clockid_t clock) {
  struct timespec t = {0};
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
