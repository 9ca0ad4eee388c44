/* Prefetch policy: whether it pays to produce elements on background threads. */
#pragma once

#include "graph/tape.h"
#include "graph/variable.h"

/* If the compute threads leave a core free, background threads pay. If compute uses all cores, background
 * threads compete with it for time slices while the rest of the team waits. They then pay only for elements
 * that mostly wait (files, a network, other threads), or that take one thread so long that the team waits
 * longer than it works.
 *
 * Until that is known the receiver's thread makes the elements and times them. As on a background thread, the
 * tapes, scopes and cast dtype of the caller's thread are not active. */
typedef struct mix_prefetch_policy {
  bool core_free;
  /* waits: elements that mostly waited; consecutive elements: coarse took long, idle found an idle core */
  int waits, coarse, idle;
  int64_t elements;
  /* Recent seconds over timed elements: making them, waiting in that time, work of other threads in that
   * time; and between an element and the next. */
  double passed, waited, shared, between;
  double began, began_computed, began_all, ended;
  struct {
    mix_capture *capture;
    mix_tape *tape;
    mix_dtype cast;
    const char *scope;
  } caller;
} mix_prefetch_policy;

/* automatic: measure whether threads help; false: threads were requested. */
void mix_prefetch_policy_open(mix_prefetch_policy *policy, bool automatic);
bool mix_prefetch_policy_helps(const mix_prefetch_policy *policy);
/* Called around each element that the receiver's thread makes while measuring. */
void mix_prefetch_policy_begin(mix_prefetch_policy *policy);
void mix_prefetch_policy_end(mix_prefetch_policy *policy);
