/* The barrier of a team of threads. Whoever waits spins briefly, then sleeps. */
#ifndef MIX_BACKEND_HOST_BARRIER_H
#define MIX_BACKEND_HOST_BARRIER_H

#include <stdatomic.h>

/* Pauses before a thread sleeps: 30 to 90 us, about what it takes to sleep and to be woken, so that waiting
 * costs at most twice the better of the two. */
enum { MIX_BARRIER_SPINS = 2000 };

/* A sense-reversing barrier whose sense is a counter (Mellor-Crummey and Scott: Algorithms for scalable
 * synchronization on shared-memory multiprocessors, ACM TOCS 9(1), 1991, section 3.1). Zeroed memory is a
 * valid barrier. */
typedef struct mix_barrier {
  _Alignas(64) atomic_int arrived;
  _Alignas(64) atomic_uint generation; /* who sleeps waits for another value */
  atomic_int sleepers;
  _Alignas(64) int spins; /* pauses before a thread sleeps; 0 if there are more threads than cores */
} mix_barrier;

/* Called by every one of `size` threads. Returns once all of them have called it. */
void mix_barrier_wait(mix_barrier *barrier, int size);

#endif
