#include "data/ahead.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/cpu.h"
#include <mixtape/device.h>

/* Elements to judge by: another program takes the processor now and then. */
enum { FEWEST = 4 };
/* The first so many elements are watched, then one of as many: the clock of a thread takes half a microsecond. */
enum { SAMPLE = 8 };

/* Seconds */
#define SHORTEST 5e-5 /* of a wait that a thread of its own is worth */
#define COARSE 2e-4   /* of an element that one thread computes: many times what it costs to hand it over */
#define LONG 0.1      /* of an element that tells enough alone */
#define LATELY 1.0

void mix_ahead_open(mix_ahead *ahead, bool by_itself) {
  *ahead = (mix_ahead){.core_free = !by_itself || mix_cpu_cores() > mix_threads()};
}

static bool is_waited_for(const mix_ahead *ahead) { return ahead->waits >= FEWEST && ahead->waited > ahead->passed / 2; }

/* One thread computes long; the others have nothing to do, or wait for it more than they work. */
static bool is_scarce(const mix_ahead *ahead) {
  if (ahead->coarse < FEWEST || ahead->shared > ahead->passed / 2) return false;
  return ahead->idle >= FEWEST || ahead->passed > ahead->between;
}

bool mix_ahead_helps(const mix_ahead *ahead) { return ahead->core_free || is_waited_for(ahead) || is_scarce(ahead); }

static bool is_watched(const mix_ahead *ahead) { return ahead->elements < SAMPLE || ahead->elements % SAMPLE == 0; }

void mix_ahead_begin(mix_ahead *ahead) {
  ahead->caller.capture = mix_capture_set(NULL);
  ahead->caller.tape = mix_tapes_set(NULL);
  ahead->caller.cast = mix_cast_dtype_set(MIX_DTYPE_NONE);
  ahead->caller.scope = mix_graph_scope_set(NULL);
  if (!is_watched(ahead)) return;
  ahead->idle = mix_threads_awake() < mix_threads() ? ahead->idle + 1 : 0;
  ahead->began = mix_clock(CLOCK_MONOTONIC);
  ahead->began_computed = mix_clock(CLOCK_THREAD_CPUTIME_ID);
  ahead->began_all = mix_clock(CLOCK_PROCESS_CPUTIME_ID);
  if (ahead->elements) ahead->between += ahead->began - ahead->ended;
}

static void add_watched(mix_ahead *ahead) {
  const double computed = mix_clock(CLOCK_THREAD_CPUTIME_ID) - ahead->began_computed;
  const double all = mix_clock(CLOCK_PROCESS_CPUTIME_ID) - ahead->began_all;
  const double passed = ahead->ended - ahead->began, waited = passed - computed;
  const int weight = passed >= LONG ? FEWEST : 1;
  if (waited >= SHORTEST && waited > passed / 2) ahead->waits += weight;
  ahead->coarse = passed >= COARSE ? ahead->coarse + weight : 0;
  ahead->passed += passed, ahead->waited += waited, ahead->shared += all - computed;
  if (ahead->passed + ahead->between <= LATELY) return;
  ahead->passed /= 2, ahead->waited /= 2, ahead->shared /= 2, ahead->between /= 2;
  if (weight == 1) ahead->waits /= 2;
}

void mix_ahead_end(mix_ahead *ahead) {
  ahead->ended = mix_clock(CLOCK_MONOTONIC);
  if (is_watched(ahead)) add_watched(ahead);
  ahead->elements++;
  mix_graph_scope_set(ahead->caller.scope);
  mix_cast_dtype_set(ahead->caller.cast);
  mix_tapes_set(ahead->caller.tape);
  mix_capture_set(ahead->caller.capture);
}
