/* The barrier of a team: threads that already run together wait for each other in well under a microsecond. */
#ifndef MIX_BACKEND_HOST_BARRIER_H
#define MIX_BACKEND_HOST_BARRIER_H

#include <stdatomic.h>

/* Sense-reversing (Mellor-Crummey and Scott: Algorithms for scalable synchronization on shared-memory multiprocessors, ACM TOCS 9(1),
 * 1991, section 3.1), the sense being a number that goes up. Zeroed memory is a barrier. */
typedef struct mix_barrier {
  _Alignas(64) atomic_int arrived;
  _Alignas(64) atomic_uint generation;
  _Alignas(64) int spins; /* pauses before the processor is given away; 0 where threads outnumber cores */
} mix_barrier;

/* Every one of `size` threads calls it; none returns before the last has. */
void mix_barrier_wait(mix_barrier *barrier, int size);

#endif
