/* The transport over MPI. The build compiles this file once for each flavour that it finds, with the
 * compiler wrapper of that flavour, because their binary interfaces differ. */
#include "distribute/transport.h"

#include <mpi.h>
#include <string.h>
#include <time.h>

/* Counts of MPI are ints: longer messages go in parts. */
enum { LARGEST = 1 << 30 };

enum { WINDOW = 64 }; /* ranks at a time in an exchange */

static int own, all;
static const atomic_bool *stopped;

/* Waiting in MPI would occupy a core that computes: the ranks of a machine share them. */
static int wait_for(int count, MPI_Request *requests) {
  enum { SPINS = 200, LONGEST = 100000 }; /* tests without a pause; nanoseconds of the longest one */
  struct timespec pause = {0};
  MPI_Status statuses[2 * WINDOW];
  for (int spins = 0;; spins++) {
    int done = 0;
    const int code = MPI_Testall(count, requests, &done, statuses);
    if (code || done) return code;
    if (atomic_load(stopped)) return MIX_TRANSPORT_STOPPED;
    if (spins < SPINS) continue;
    pause.tv_nsec = pause.tv_nsec < LONGEST ? pause.tv_nsec + 5000 : LONGEST;
    nanosleep(&pause, NULL);
  }
}

static int open_mpi(int *rank, int *ranks, const atomic_bool *stop) {
  stopped = stop;
  int got, code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &got);
  if (!code) code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!code) code = MPI_Comm_rank(MPI_COMM_WORLD, &own);
  if (!code) code = MPI_Comm_size(MPI_COMM_WORLD, &all);
  *rank = own, *ranks = all;
  return code;
}

static int exchange(const void *send, const size_t *at, void *receive, size_t received) {
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
      if (received)
        code = MPI_Irecv(target, (int)received, MPI_BYTE, from, 1, MPI_COMM_WORLD, &requests[count]);
      if (received && !code) count++;
      if (bytes && !code)
        code = MPI_Isend(source, (int)bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD, &requests[count]);
      if (bytes && !code) count++;
    }
    const int waited = wait_for(count, requests);
    if (!code) code = waited;
  }
  return code;
}

static int gather(const void *part, void *result, const size_t *at) {
  int counts[all], places[all]; /* an exchange is at most LARGEST bytes */
  for (int r = 0; r < all; r++) counts[r] = (int)(at[r + 1] - at[r]), places[r] = (int)at[r];
  MPI_Request request;
  const int code = MPI_Iallgatherv(part, counts[own], MPI_BYTE, result, counts, places, MPI_BYTE,
                                   MPI_COMM_WORLD, &request);
  return code ? code : wait_for(1, &request);
}

static int broadcast(void *data, size_t bytes, int root) {
  int code = 0;
  for (size_t done = 0; done < bytes && !code; done += LARGEST) {
    const size_t left = bytes - done;
    MPI_Request request;
    code = MPI_Ibcast((char *)data + done, (int)(left < LARGEST ? left : LARGEST), MPI_BYTE, root,
                      MPI_COMM_WORLD, &request);
    if (!code) code = wait_for(1, &request);
  }
  return code;
}

static int close_mpi(void) { return MPI_Finalize(); }
static void end_mpi_job(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

static void error_text(int code, char *text, size_t size) {
  char message[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, message, &length)) length = 0;
  if ((size_t)length >= size) length = (int)size - 1;
  memcpy(text, message, (size_t)length);
  text[length] = 0;
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
