/* The transport over MPI. The build compiles this file once for each flavour that it finds, with the
 * compiler wrapper of that flavour, because their binary interfaces differ. */
#include "distribute/transport.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Counts of MPI are ints: longer messages go in parts. */
enum { LARGEST = 1 << 30 };

enum { WINDOW = 64 }; /* ranks at a time in an exchange */

/* Beside the codes of MPI, which are positive. */
enum { NOT_STARTED = -10, STARTED, ENDED, TOO_FEW_THREADS, NO_COMMUNICATOR, BETWEEN_GROUPS, NO_MEMORY };

struct mix_transport_link {
  MPI_Comm ranks; /* a duplicate: messages and errors are apart from those of the host program */
  int own, all;
  bool hosted; /* the host program ends MPI */
  bool (*gives_up)(void *context);
  void *context;
};

/* Waiting in MPI would occupy a core that computes: the ranks of a machine share them. */
static int wait_for(const mix_transport_link *link, int count, MPI_Request *requests) {
  enum { SPINS = 200, LONGEST = 100000 }; /* tests without a pause; nanoseconds of the longest one */
  struct timespec pause = {0};
  MPI_Status statuses[2 * WINDOW];
  for (int spins = 0;; spins++) {
    int done = 0;
    const int code = MPI_Testall(count, requests, &done, statuses);
    if (code || done) return code;
    if (link->gives_up(link->context)) return MIX_TRANSPORT_STOPPED;
    if (spins < SPINS) continue;
    pause.tv_nsec = pause.tv_nsec < LONGEST ? pause.tv_nsec + 5000 : LONGEST;
    nanosleep(&pause, NULL);
  }
}

/* ---- opening ---- */

/* MPI is the host's: its state is asked before any other call, which would abort. */
static int check_host(MPI_Comm host) {
  int started = 0, ended = 0, level = 0, between = 0;
  int code = MPI_Initialized(&started);
  if (!code) code = MPI_Finalized(&ended);
  if (code || !started || ended) return code ? code : ended ? ENDED : NOT_STARTED;
  if ((code = MPI_Query_thread(&level))) return code;
  if (level < MPI_THREAD_MULTIPLE) return TOO_FEW_THREADS;
  if (host == MPI_COMM_NULL) return NO_COMMUNICATOR;
  code = MPI_Comm_test_inter(host, &between);
  return code ? code : between ? BETWEEN_GROUPS : 0;
}

static int start_mpi(void) {
  int started = 0, level, code = MPI_Initialized(&started);
  if (code || started) return code ? code : STARTED;
  code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
  return code ? code : MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static int join_ranks(mix_transport_link *link, MPI_Comm from) {
  int code = MPI_Comm_dup(from, &link->ranks);
  if (!code) code = MPI_Comm_set_errhandler(link->ranks, MPI_ERRORS_RETURN);
  if (!code) code = MPI_Comm_rank(link->ranks, &link->own);
  if (!code) code = MPI_Comm_size(link->ranks, &link->all);
  return code;
}

static int open_mpi(const mix_transport_request *request, mix_transport_link **opened,
                    mix_transport_place *place) {
  const bool hosted = request->communicator != NULL;
  mix_transport_link *link = calloc(1, sizeof *link);
  if (!link) return NO_MEMORY;
  *link = (mix_transport_link){.hosted = hosted, .gives_up = request->gives_up, .context = request->context};
  const MPI_Comm from = hosted ? MPI_Comm_f2c((MPI_Fint)*request->communicator) : MPI_COMM_WORLD;
  int code = hosted ? check_host(from) : start_mpi();
  if (!code) code = join_ranks(link, from);
  if (code) return free(link), code;
  *opened = link;
  *place = (mix_transport_place){.rank = link->own, .ranks = link->all};
  return 0;
}

/* ---- messages ---- */

static int exchange(mix_transport_link *link, const void *send, const size_t *at, void *receive,
                    size_t received) {
  const int own = link->own, all = link->all;
  MPI_Request requests[2 * WINDOW];
  int code = 0;
  /* Rank + d and rank - d: in every round each process sends one message and receives one. */
  for (int first = 0; first < all && !code; first += WINDOW) {
    int count = 0;
    for (int d = first; d < all && d < first + WINDOW && !code; d++) {
      const int to = (own + d) % all, from = (own - d + all) % all;
      char *target = (char *)receive + received * (size_t)from;
      const char *source = (const char *)send + at[to];
      const size_t bytes = at[to + 1] - at[to];
      if (to == own) {
        memcpy(target, source, received);
        continue;
      }
      if (received) code = MPI_Irecv(target, (int)received, MPI_BYTE, from, 1, link->ranks, &requests[count]);
      if (received && !code) count++;
      if (bytes && !code)
        code = MPI_Isend(source, (int)bytes, MPI_BYTE, to, 1, link->ranks, &requests[count]);
      if (bytes && !code) count++;
    }
    const int waited = wait_for(link, count, requests);
    if (!code) code = waited;
  }
  return code;
}

static int gather(mix_transport_link *link, const void *part, void *result, const size_t *at) {
  const int all = link->all;
  int counts[all], places[all]; /* an exchange is at most LARGEST bytes */
  for (int r = 0; r < all; r++) counts[r] = (int)(at[r + 1] - at[r]), places[r] = (int)at[r];
  MPI_Request request;
  const int code = MPI_Iallgatherv(part, counts[link->own], MPI_BYTE, result, counts, places, MPI_BYTE,
                                   link->ranks, &request);
  return code ? code : wait_for(link, 1, &request);
}

static int broadcast(mix_transport_link *link, void *data, size_t bytes, int root) {
  int code = 0;
  for (size_t done = 0; done < bytes && !code; done += LARGEST) {
    const size_t left = bytes - done;
    MPI_Request request;
    code = MPI_Ibcast((char *)data + done, (int)(left < LARGEST ? left : LARGEST), MPI_BYTE, root,
                      link->ranks, &request);
    if (!code) code = wait_for(link, 1, &request);
  }
  return code;
}

/* ---- closing ---- */

static int close_mpi(mix_transport_link *link) {
  int ended = 0, code = MPI_Finalized(&ended);
  if (!code && !ended) code = MPI_Comm_free(&link->ranks);
  if (!code && !link->hosted) code = MPI_Finalize();
  free(link);
  return code;
}

static void end_mpi_job(mix_transport_link *link, int code) {
  int ended = 0;
  if (!MPI_Finalized(&ended) && !ended) MPI_Abort(link->ranks, code);
}

static const char *reason_of(int code) {
  switch (code) {
  case NOT_STARTED: return "the program has not called MPI_Init_thread";
  case STARTED:
    return "the program has started MPI itself: give mix_distribution_mpi_of its communicator in place of "
           "mix_distribution_mpi";
  case ENDED: return "the program has called MPI_Finalize";
  case TOO_FEW_THREADS:
    return "the program has started MPI without MPI_THREAD_MULTIPLE, which the communication thread needs";
  case NO_COMMUNICATOR: return "MPI_COMM_NULL is no communicator: only its own ranks may make this call";
  case BETWEEN_GROUPS: return "an intercommunicator has no ranks of its own: give MPI_Intercomm_merge's";
  case NO_MEMORY: return "out of memory";
  default: return NULL;
  }
}

static void error_text(int code, char *text, size_t size) {
  char message[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  const char *reason = reason_of(code);
  if (!reason) reason = MPI_Error_string(code, message, &length) ? "unknown" : message;
  snprintf(text, size, "%s", reason);
}

__attribute__((visibility("default"))) const mix_transport *mix_transport_plugin(void) {
  static const mix_transport transport = {
      .version = MIX_TRANSPORT_VERSION,
#ifdef OPEN_MPI
      .flavor = "Open MPI",
#else
      .flavor = "MPICH",
#endif
      .open = open_mpi,
      .exchange = exchange,
      .gather = gather,
      .broadcast = broadcast,
      .close = close_mpi,
      .end_job = end_mpi_job,
      .error_text = error_text,
  };
  return &transport;
}
