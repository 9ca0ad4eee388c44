/* Decides from timings whether background threads help. */
#include "data/pipeline/prefetch_policy.h"

#include "backend/backend.h"
#include "base/processor.h"
#include <mixtape/device.h>

/* Min elements before a decision: other programs take the processor now and then. */
enum { MIN_ELEMENTS = 4 };
/* The first SAMPLE elements are timed, then one in SAMPLE: reading a thread's clock takes half a
 * microsecond. */
enum { SAMPLE = 8 };

/* Seconds */
#define MIN_WAIT 5e-5    /* min wait that justifies a thread */
#define MIN_COARSE 2e-4  /* min time of an element on one thread; far above its hand-over cost */
#define LONG_ELEMENT 0.1 /* an element this long is enough evidence alone */
#define HISTORY 1.0      /* older timings are halved */

void mix_prefetch_policy_open(mix_prefetch_policy *policy, bool automatic) {
  *policy = (mix_prefetch_policy){.core_free = !automatic || mix_cpu_cores() > mix_threads()};
}

static bool waits_dominate(const mix_prefetch_policy *policy) {
  return policy->waits >= MIN_ELEMENTS && policy->waited > policy->passed / 2;
}

/* True if elements take long on one thread while the other threads are idle, or wait for elements longer than
 * they work. */
static bool is_bottleneck(const mix_prefetch_policy *policy) {
  if (policy->coarse < MIN_ELEMENTS || policy->shared > policy->passed / 2) return false;
  return policy->idle >= MIN_ELEMENTS || policy->passed > policy->between;
}

bool mix_prefetch_policy_helps(const mix_prefetch_policy *policy) {
  return policy->core_free || waits_dominate(policy) || is_bottleneck(policy);
}

static bool is_timed(const mix_prefetch_policy *policy) {
  return policy->elements < SAMPLE || policy->elements % SAMPLE == 0;
}

void mix_prefetch_policy_begin(mix_prefetch_policy *policy) {
  policy->caller.capture = mix_capture_set(NULL);
  policy->caller.tape = mix_tapes_set(NULL);
  policy->caller.cast = mix_cast_dtype_set(MIX_DTYPE_NONE);
  policy->caller.scope = mix_graph_scope_set(NULL);
  if (!is_timed(policy)) return;
  policy->idle = mix_threads_awake() < mix_threads() ? policy->idle + 1 : 0;
  policy->began = mix_clock(CLOCK_MONOTONIC);
  policy->began_computed = mix_clock(CLOCK_THREAD_CPUTIME_ID);
  policy->began_all = mix_clock(CLOCK_PROCESS_CPUTIME_ID);
  if (policy->elements) policy->between += policy->began - policy->ended;
}

static void add_timing(mix_prefetch_policy *policy) {
  const double computed = mix_clock(CLOCK_THREAD_CPUTIME_ID) - policy->began_computed;
  const double all = mix_clock(CLOCK_PROCESS_CPUTIME_ID) - policy->began_all;
  const double passed = policy->ended - policy->began, waited = passed - computed;
  const int weight = passed >= LONG_ELEMENT ? MIN_ELEMENTS : 1;
  if (waited >= MIN_WAIT && waited > passed / 2) policy->waits += weight;
  policy->coarse = passed >= MIN_COARSE ? policy->coarse + weight : 0;
  policy->passed += passed, policy->waited += waited, policy->shared += all - computed;
  if (policy->passed + policy->between <= HISTORY) return;
  policy->passed /= 2, policy->waited /= 2, policy->shared /= 2, policy->between /= 2;
  if (weight == 1) policy->waits /= 2;
}

void mix_prefetch_policy_end(mix_prefetch_policy *policy) {
  policy->ended = mix_clock(CLOCK_MONOTONIC);
  if (is_timed(policy)) add_timing(policy);
  policy->elements++;
  mix_graph_scope_set(policy->caller.scope);
  mix_cast_dtype_set(policy->caller.cast);
  mix_tapes_set(policy->caller.tape);
  mix_capture_set(policy->caller.capture);
}
