/* How long a rank waits for the others, what it hears from them meanwhile, and what it says of them. All of
 * it on the thread that communicates, but for `stop`. */
#pragma once

#include "distribute/meeting.h"
#include "distribute/transport.h"
#include "distribute/watch.h"
#include <stdatomic.h>

/* What another rank has told. */
typedef struct mix_rank_news {
  unsigned waits_in, closes_in; /* its calls, counted from 1; 0: it has not told */
} mix_rank_news;

typedef struct mix_waiting {
  const mix_transport *transport;
  mix_transport_link *link;
  int rank, ranks;
  const mix_rank_identity *identities; /* NULL: not known yet */
  mix_rank_news *news;
  unsigned step; /* the call that is at work, counted from 1 */
  bool closing;
  mix_meeting *meeting; /* while a limit holds; NULL: none */
  double begin, limit;  /* limit: seconds; 0: none */
  bool looked, told, logged, told_failure;
  const char *reason; /* why it gave up: interned; NULL: it did not */
  atomic_bool stop;   /* set by any thread: gives up at once */
} mix_waiting;

/* False: out of memory, recorded. */
bool mix_waiting_prepare(mix_waiting *waiting, int rank, int ranks);
void mix_waiting_release(mix_waiting *waiting);
/* Before each call that waits for the others. */
void mix_waiting_begin(mix_waiting *waiting, double limit);
/* For the transport: a mix_waiting. */
bool mix_waiting_gives_up(void *waiting);
void mix_waiting_heard(void *waiting, int rank, const mix_transport_note *note);
/* Waits until all ranks close. Returns 0 or the transport's code. */
int mix_waiting_close(mix_waiting *waiting);
/* Tells the other ranks, once, that this one fails; nothing if that cannot be told. `why`: if it has not
 * given up. */
void mix_waiting_tell_failure(mix_waiting *waiting, const char *why);
/* The limit of MIXTAPE_MPI_TIMEOUT in seconds, 60 without it. Negative with the error recorded. */
double mix_waiting_limit(void);
