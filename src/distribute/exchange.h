/* What calls the transport. Where MPI serves several threads, or is the library's own, it is a thread that
 * takes jobs from a queue; else the threads that call the library do it, in calls that wait. */
#pragma once

#include "distribute/transport.h"
#include "graph/division.h"
#include <mixtape/dtype.h>

typedef struct mix_exchange mix_exchange;

typedef struct mix_exchange_place {
  int rank, ranks;
  int sharing;    /* ranks that may run on the cores of this one, it included */
  bool on_caller; /* there is no thread: the callers communicate */
} mix_exchange_place;

/* Seconds since the start: the thread at work, and others waiting for it. */
typedef struct mix_exchange_times {
  double working, waited;
  double bytes; /* that this rank has sent for sums */
} mix_exchange_times;

/* Starts the thread, and MPI on it, for all processes that were started together. NULL with the error
 * recorded, also when not all have met within MIXTAPE_MPI_TIMEOUT. */
mix_exchange *mix_exchange_open(const mix_transport *transport);
/* The same for the communicator of a host program with this Fortran handle. */
mix_exchange *mix_exchange_open_on(const mix_transport *transport, int communicator);
/* As the functions of a communicator (backend/communicator.h). */
const char *mix_exchange_reduce(mix_exchange *exchange, void *data, mix_dtype dtype, int64_t count);
const char *mix_exchange_finish(mix_exchange *exchange, const void *data);
const char *mix_exchange_scatter(mix_exchange *exchange, void *data, mix_dtype dtype, mix_division division);
const char *mix_exchange_collect(mix_exchange *exchange, void *data, size_t size, mix_division division);
const char *mix_exchange_broadcast(mix_exchange *exchange, void *data, size_t bytes, int root);
const char *mix_exchange_gather(mix_exchange *exchange, const void *data, size_t bytes, void *all);
mix_exchange_place mix_exchange_place_of(const mix_exchange *exchange);
mix_exchange_times mix_exchange_times_of(mix_exchange *exchange);
/* Logs which process on which machine each rank is, so that a launcher's message about a process names the
 * rank. */
void mix_exchange_log_ranks(const mix_exchange *exchange);
/* Ends all processes, from the thread if it is free within a second. */
void mix_exchange_end_job(mix_exchange *exchange, int code);
/* Closes the transport, with all other ranks, and ends the thread; alone and without MPI once the host
 * program has ended that. After a failure it leaves both as they are: the other side may never answer. */
void mix_exchange_close(mix_exchange *exchange);
