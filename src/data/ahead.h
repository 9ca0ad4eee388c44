/* Is it worth threads of its own to make elements ahead? */
#ifndef MIX_DATA_AHEAD_H
#define MIX_DATA_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

/* Where the threads that compute leave a core free, it is. Where they take all cores, threads that compute elements take turns with them,
 * a time slice each, while the others of the team wait: then only elements that are mostly waited for (files, a network, other threads)
 * are worth it. So elements are made by whoever asks, and watched, until that is known. */
typedef struct mix_ahead {
  double passed, waited; /* seconds of what was watched, lately */
  double began, began_computed;
  int waits; /* elements that were mostly waited for */
  int64_t elements;
  bool cores_free;
} mix_ahead;

void mix_ahead_open(mix_ahead *ahead);
bool mix_ahead_helps(const mix_ahead *ahead);
/* Around the making of an element. */
void mix_ahead_begin(mix_ahead *ahead);
void mix_ahead_end(mix_ahead *ahead);

#endif
