#include "data/pipeline/prefetch_policy.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/processor.h"
#include "graph/trace.h"
#include <mixtape/device.h>

/* Elements to judge by: another program takes the processor now and then. */
enum { FEWEST = 4 };
/* The first so many elements are watched, then one of as many: the clock of a thread takes half a
 * microsecond. */
enum { SAMPLE = 8 };

/* Seconds */
#define SHORTEST 5e-5 /* of a wait that a thread of its own is worth */
#define COARSE 2e-4   /* of an element that one thread computes: many times what it costs to hand it over */
#define LONG 0.1      /* of an element that tells enough alone */
#define LATELY 1.0

void mix_prefetch_policy_open(mix_prefetch_policy *policy, bool by_itself) {
  *policy = (mix_prefetch_policy){.core_free = !by_itself || mix_cpu_cores() > mix_threads()};
}

static bool is_waited_for(const mix_prefetch_policy *policy) {
  return policy->waits >= FEWEST && policy->waited > policy->passed / 2;
}

/* One thread computes long; the others have nothing to do, or wait for it more than they work. */
static bool is_scarce(const mix_prefetch_policy *policy) {
  if (policy->coarse < FEWEST || policy->shared > policy->passed / 2) return false;
  return policy->idle >= FEWEST || policy->passed > policy->between;
}

bool mix_prefetch_policy_helps(const mix_prefetch_policy *policy) {
  return policy->core_free || is_waited_for(policy) || is_scarce(policy);
}

static bool is_watched(const mix_prefetch_policy *policy) {
  return policy->elements < SAMPLE || policy->elements % SAMPLE == 0;
}

void mix_prefetch_policy_begin(mix_prefetch_policy *policy) {
  policy->caller.capture = mix_capture_set(NULL);
  policy->caller.tape = mix_tapes_set(NULL);
  policy->caller.cast = mix_cast_dtype_set(MIX_DTYPE_NONE);
  policy->caller.scope = mix_graph_scope_set(NULL);
  if (!is_watched(policy)) return;
  policy->idle = mix_threads_awake() < mix_threads() ? policy->idle + 1 : 0;
  policy->began = mix_clock(CLOCK_MONOTONIC);
  policy->began_computed = mix_clock(CLOCK_THREAD_CPUTIME_ID);
  policy->began_all = mix_clock(CLOCK_PROCESS_CPUTIME_ID);
  if (policy->elements) policy->between += policy->began - policy->ended;
}

static void add_watched(mix_prefetch_policy *policy) {
  const double computed = mix_clock(CLOCK_THREAD_CPUTIME_ID) - policy->began_computed;
  const double all = mix_clock(CLOCK_PROCESS_CPUTIME_ID) - policy->began_all;
  const double passed = policy->ended - policy->began, waited = passed - computed;
  const int weight = passed >= LONG ? FEWEST : 1;
  if (waited >= SHORTEST && waited > passed / 2) policy->waits += weight;
  policy->coarse = passed >= COARSE ? policy->coarse + weight : 0;
  policy->passed += passed, policy->waited += waited, policy->shared += all - computed;
  if (policy->passed + policy->between <= LATELY) return;
  policy->passed /= 2, policy->waited /= 2, policy->shared /= 2, policy->between /= 2;
  if (weight == 1) policy->waits /= 2;
}

void mix_prefetch_policy_end(mix_prefetch_policy *policy) {
  policy->ended = mix_clock(CLOCK_MONOTONIC);
  if (is_watched(policy)) add_watched(policy);
  policy->elements++;
  mix_graph_scope_set(policy->caller.scope);
  mix_cast_dtype_set(policy->caller.cast);
  mix_tapes_set(policy->caller.tape);
  mix_capture_set(policy->caller.capture);
}
