/* The communication thread: it alone calls the transport, from `open` on, and takes jobs from a queue. */
#pragma once

#include "distribute/transport.h"
#include <mixtape/dtype.h>

typedef struct mix_exchange mix_exchange;

typedef struct mix_exchange_place {
  int rank, ranks;
  int sharing; /* ranks that may run on the cores of this one, it included */
} mix_exchange_place;

/* Seconds since the start: the thread at work, and others waiting for it. */
typedef struct mix_exchange_times {
  double working, waited;
  double bytes; /* that this rank has sent for sums */
} mix_exchange_times;

/* Starts the thread and opens the transport there. `host`: the Fortran handle of a communicator of the host
 * program; NULL: all processes that were started together. NULL with the error recorded. */
mix_exchange *mix_exchange_open(const mix_transport *transport, const int *host);
/* As the functions of a communicator (backend/communicator.h). */
const char *mix_exchange_reduce(mix_exchange *exchange, void *data, mix_dtype dtype, int64_t count);
const char *mix_exchange_finish(mix_exchange *exchange, const void *data);
const char *mix_exchange_broadcast(mix_exchange *exchange, void *data, size_t bytes, int root);
const char *mix_exchange_gather(mix_exchange *exchange, const void *data, size_t bytes, void *all);
mix_exchange_place mix_exchange_place_of(const mix_exchange *exchange);
mix_exchange_times mix_exchange_times_of(mix_exchange *exchange);
/* Logs which process on which machine each rank is, so that a launcher's message about a process names the
 * rank. */
void mix_exchange_log_ranks(const mix_exchange *exchange);
/* Ends all processes, from the thread if it is free within a second. */
void mix_exchange_end_job(mix_exchange *exchange, int code);
/* Closes the transport, with all other ranks, and ends the thread. After a failure it leaves both as they
 * are: the other side may never answer. */
void mix_exchange_close(mix_exchange *exchange);
