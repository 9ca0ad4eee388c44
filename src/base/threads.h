/* Threads that can be started. */
#ifndef MIX_BASE_THREADS_H
#define MIX_BASE_THREADS_H

#include <stdbool.h>

/* Call it before a parallel region of that many threads, this one included. OpenMP's runtime ends the process
 * if it cannot create a thread, so the first region of a size tries it before. False, with a RuntimeError, if
 * they cannot be created now. */
bool mix_threads_start(int count);

#endif
