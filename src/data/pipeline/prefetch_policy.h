/* Is it worth threads of its own to make elements policy? */
#ifndef MIX_DATA_PIPELINE_PREFETCH_POLICY_H
#define MIX_DATA_PIPELINE_PREFETCH_POLICY_H

#include "graph/tape.h"
#include "graph/variable.h"

/* Where the threads that compute leave a core free, it is. Where they take all cores, threads that make elements take turns with them, a
 * time slice each, while the others of the team wait. Then it is worth it only for elements that are mostly waited for (files, a network,
 * other threads), or that one thread computes so long that the team waits for them more than it works. So elements are made by whoever
 * asks, and watched, until that is known; and made as on a thread of its own: nothing that belongs to the caller's thread is there. */
typedef struct mix_prefetch_policy {
  bool core_free;
  int waits, coarse, idle; /* elements that were mostly waited for; in a row: that took long, that found a core idle */
  int64_t elements;
  /* Seconds, lately, of watched elements: making them, of which waiting, work of other threads meanwhile; and from the one before. */
  double passed, waited, shared, between;
  double began, began_computed, began_all, ended;
  struct {
    mix_capture *capture;
    mix_tape *tape;
    mix_dtype cast;
    const char *scope;
  } caller;
} mix_prefetch_policy;

/* by_itself: it is to find out; else threads have been asked for. */
void mix_prefetch_policy_open(mix_prefetch_policy *policy, bool by_itself);
bool mix_prefetch_policy_helps(const mix_prefetch_policy *policy);
/* Around the making of an element by the thread that asks; for those that find out. */
void mix_prefetch_policy_begin(mix_prefetch_policy *policy);
void mix_prefetch_policy_end(mix_prefetch_policy *policy);

#endif
