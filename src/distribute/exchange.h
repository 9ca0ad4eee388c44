/* The communication thread: it alone calls the transport, from `open` on, and takes jobs from a queue. */
#pragma once

#include "backend/communicator.h"
#include "distribute/transport.h"

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

/* Starts the thread and opens the transport there. NULL with the error recorded. */
mix_exchange *mix_exchange_open(const mix_transport *transport, unsigned number);
mix_communicator *mix_exchange_communicator(mix_exchange *exchange);
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
