/* Watches the ranks of this machine: the end of one is noticed at once, and MPI may never tell. */
#pragma once

#include <stdbool.h>

typedef struct mix_watch mix_watch;

/* What a rank tells the others about itself. It has no padding: all of it is sent. */
typedef struct mix_rank_identity {
  char host[64], boot[40];  /* boot: another one for each start of each machine, whatever its name */
  unsigned char cores[128]; /* cpu_set_t of those it may run on; zeros: unknown */
  unsigned process_space;   /* in which `process` is a number */
  int process;
} mix_rank_identity;
mix_rank_identity mix_rank_identity_own(void);
/* May both run on the same cores of one machine, and on no others? */
bool mix_ranks_share_cores(const mix_rank_identity *a, const mix_rank_identity *b);

/* Calls `ended` on a thread of the watch, once, when the first other rank of this machine has ended. NULL
 * without an error where the system cannot watch processes. */
mix_watch *mix_watch_begin(const mix_rank_identity *ranks, int count, int own,
                           void (*ended)(void *context, int rank), void *context);
void mix_watch_end(mix_watch *watch);
