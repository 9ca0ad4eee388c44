/* The barrier of a team of threads. */
#pragma once

#include "base/awaited.h"

/* A sense-reversing barrier whose sense is a counter (Mellor-Crummey and Scott: Algorithms for scalable
 * synchronization on shared-memory multiprocessors, ACM TOCS 9(1), 1991, section 3.1). Zeroed memory is a
 * valid barrier. */
typedef struct mix_barrier {
  _Alignas(64) atomic_int arrived;
  mix_awaited generation;
  _Alignas(64) int patience; /* nanoseconds before a thread sleeps; 0 if there are more threads than cores */
} mix_barrier;

/* Called by every one of `size` threads. Returns once all of them have called it. */
void mix_barrier_wait(mix_barrier *barrier, int size);
