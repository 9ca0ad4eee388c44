#include "data/ahead.h"

#include "base/cpu.h"
#include <mixtape/device.h>
#include <time.h>

enum { FEWEST = 4 }; /* waits to judge by: another program takes the processor now and then */
enum {
  SAMPLE = 8
}; /* the first so many elements are watched, then one of as many: the clock of a thread takes half a microsecond */
#define SHORTEST 5e-5 /* seconds of a wait that a thread of its own is worth */
#define LATELY 1.0    /* seconds, about */

static double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void mix_ahead_open(mix_ahead *ahead) { *ahead = (mix_ahead){.cores_free = mix_cpu_cores() > mix_threads()}; }

bool mix_ahead_helps(const mix_ahead *ahead) {
  return ahead->cores_free || (ahead->waits >= FEWEST && ahead->waited > ahead->passed / 2);
}

static bool watches(const mix_ahead *ahead) { return ahead->elements < SAMPLE || ahead->elements % SAMPLE == 0; }

void mix_ahead_begin(mix_ahead *ahead) {
  if (!watches(ahead)) return;
  ahead->began = seconds(CLOCK_MONOTONIC);
  ahead->began_computed = seconds(CLOCK_THREAD_CPUTIME_ID);
}

void mix_ahead_end(mix_ahead *ahead) {
  const bool watched = watches(ahead);
  ahead->elements++;
  if (!watched) return;
  const double computed = seconds(CLOCK_THREAD_CPUTIME_ID) - ahead->began_computed;
  const double passed = seconds(CLOCK_MONOTONIC) - ahead->began, waited = passed - computed;
  if (waited >= SHORTEST && waited > passed / 2 && ahead->waits < FEWEST) ahead->waits++;
  ahead->passed += passed, ahead->waited += waited;
  if (ahead->passed > LATELY) ahead->passed /= 2, ahead->waited /= 2;
}
