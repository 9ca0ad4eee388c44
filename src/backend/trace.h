/* When the kernels of a run ran: what a backend fills in for compile/trace.h. */
#pragma once

#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct mix_trace_event {
  int64_t begin, end; /* nanoseconds of CLOCK_MONOTONIC */
  int thread;         /* from 1; 0: nothing ran */
  bool skipped;       /* by its guard, or after an error */
} mix_trace_event;

typedef struct mix_trace_run {
  int shares;              /* of each step */
  mix_trace_event *events; /* of share `r` of step `i`: events[i * shares + r] */
} mix_trace_run;

static inline int64_t mix_trace_now(void) {
  struct timespec t = {0};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The number of the calling thread, from 1 in the order of first use. */
int mix_trace_thread(void);
