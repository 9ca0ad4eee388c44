/* Threads that can be started. */
#ifndef MIX_BASE_THREADS_H
#define MIX_BASE_THREADS_H

#include <stdbool.h>

/* Call it before a parallel region of that many threads, this one included. OpenMP's runtime ends the process
 * if it cannot create a thread, so the first region of a size tries it before. False, with a RuntimeError, if
 * they cannot be created now. */
bool mix_threads_start(int count);
/* True in a child, by fork, of a process that had called mix_threads_start for several threads. OpenMP still
 * counts on the threads that did not come along, and a region waits for them forever: run on one thread. */
bool mix_threads_lost(void);

#endif
