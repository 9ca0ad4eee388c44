/* The transport over MPI. The build compiles this file once for each flavour that it finds, with the
 * compiler wrapper of that flavour, because their binary interfaces differ. */
#include "distribute/transport.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Counts of MPI are ints: longer messages go in parts. */
enum { LARGEST = 1 << 30 };

enum { WINDOW = 64 }; /* ranks at a time in an exchange */

enum { MESSAGE = 1, NOTE }; /* tags */

/* Beside the codes of MPI, which are positive. */
enum { NOT_STARTED = -10, STARTED, ENDED, OTHER_THREAD, NO_COMMUNICATOR, BETWEEN_GROUPS, NO_MEMORY };

/* A note on its way to the other ranks. */
typedef struct sent_note {
  struct sent_note *next;
  mix_transport_note note;
  int count;
  MPI_Request requests[];
} sent_note;

struct mix_transport_link {
  MPI_Comm host;  /* from which `ranks` is made */
  MPI_Comm ranks; /* a duplicate: messages and errors are apart from those of the host program */
  int own, all, level;
  bool hosted; /* the host program ends MPI */
  sent_note *sent;
  int *counts; /* of a gather: MPI reads them as long as it lasts, also when it has been given up */
  mix_transport_request request;
};

/* ---- waiting ---- */

static int hear(const mix_transport_link *link, MPI_Status *status) {
  mix_transport_note note;
  const int code = MPI_Recv(&note, (int)sizeof note, MPI_BYTE, status->MPI_SOURCE, NOTE, link->ranks, status);
  if (!code) link->request.heard(link->request.context, status->MPI_SOURCE, &note);
  return code;
}

static int listen_to_notes(mix_transport_link *link) {
  for (;;) {
    int there = 0;
    MPI_Status status;
    const int code = MPI_Iprobe(MPI_ANY_SOURCE, NOTE, link->ranks, &there, &status);
    if (code || !there) return code;
    const int heard = hear(link, &status);
    if (heard) return heard;
  }
}

/* Waiting in MPI would occupy a core that computes: the ranks of a machine share them. */
static int wait_for(mix_transport_link *link, int count, MPI_Request *requests, bool with_notes) {
  enum { SPINS = 200, LONGEST = 100000 }; /* tests without a pause; nanoseconds of the longest one */
  struct timespec pause = {0};
  MPI_Status statuses[2 * WINDOW];
  for (int spins = 0;; spins++) {
    int done = 0, code = MPI_Testall(count, requests, &done, statuses);
    if (code || done) return code;
    if (spins < SPINS) continue;
    if (with_notes && (code = listen_to_notes(link))) return code;
    if (link->request.gives_up(link->request.context)) return MIX_TRANSPORT_STOPPED;
    pause.tv_nsec = pause.tv_nsec < LONGEST ? pause.tv_nsec + 5000 : LONGEST;
    nanosleep(&pause, NULL);
  }
}

/* ---- opening ---- */

static atomic_bool ending;
static int note_end(MPI_Comm comm, int key, void *value, void *state) {
  (void)comm, (void)key, (void)value, (void)state;
  atomic_store(&ending, true);
  return MPI_SUCCESS;
}

/* MPI_Finalize begins with the end of what MPI_COMM_SELF has. Other ranks may have ended before MPI_Finalized
 * says so here. */
static int watch_for_end(void) {
  static atomic_bool watched;
  int key, code;
  if (atomic_load(&watched)) return 0;
  if ((code = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_end, &key, NULL))) return code;
  code = MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  if (code) return code;
  atomic_store(&watched, true);
  return MPI_Comm_free_keyval(&key);
}

static bool host_is_over(void) {
  int ended = 0;
  return atomic_load(&ending) || (!MPI_Finalized(&ended) && ended);
}

static bool is_over(const mix_transport_link *link) { return link->hosted && host_is_over(); }

/* Before any other call, which would abort the program. */
static int check_state(const mix_transport_link *link) {
  int main_thread = 1, code = 0;
  if (is_over(link)) return ENDED;
  if (link->hosted && link->level <= MPI_THREAD_FUNNELED) code = MPI_Is_thread_main(&main_thread);
  return code || main_thread ? code : OTHER_THREAD;
}

static int check_host(mix_transport_link *link) {
  int started = 0, ended = 0, between = 0;
  int code = MPI_Initialized(&started);
  if (!code) code = MPI_Finalized(&ended);
  if (code || !started || ended) return code ? code : ended ? ENDED : NOT_STARTED;
  if ((code = MPI_Query_thread(&link->level)) || (code = check_state(link))) return code;
  link->host = MPI_Comm_f2c((MPI_Fint)*link->request.communicator);
  if (link->host == MPI_COMM_NULL) return NO_COMMUNICATOR;
  code = MPI_Comm_test_inter(link->host, &between);
  return code ? code : between ? BETWEEN_GROUPS : watch_for_end();
}

static int start_mpi(mix_transport_link *link) {
  int started = 0, code = MPI_Initialized(&started);
  if (code || started) return code ? code : STARTED;
  link->host = MPI_COMM_WORLD;
  code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &link->level);
  return code ? code : MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static int open_mpi(const mix_transport_request *request, mix_transport_link **opened,
                    mix_transport_place *place) {
  const bool hosted = request->communicator != NULL;
  mix_transport_link *link = calloc(1, sizeof *link);
  if (!link) return NO_MEMORY;
  *link = (mix_transport_link){.ranks = MPI_COMM_NULL, .hosted = hosted, .request = *request};
  int code = hosted ? check_host(link) : start_mpi(link);
  if (!code) code = MPI_Comm_rank(link->host, &link->own);
  if (!code) code = MPI_Comm_size(link->host, &link->all);
  if (!code && !(link->counts = calloc(2 * (size_t)link->all, sizeof *link->counts))) code = NO_MEMORY;
  if (code) return free(link), code;
  *opened = link;
  *place = (mix_transport_place){
      .rank = link->own, .ranks = link->all, .on_caller = hosted && link->level < MPI_THREAD_MULTIPLE};
  return 0;
}

/* What waits in here can be given up. */
static int join_ranks(mix_transport_link *link) {
  MPI_Request request;
  int code = MPI_Comm_idup(link->host, &link->ranks, &request);
  if (!code) code = wait_for(link, 1, &request, false);
  return code ? code : MPI_Comm_set_errhandler(link->ranks, MPI_ERRORS_RETURN);
}

static int process_of(mix_transport_link *link, int rank) {
  MPI_Group own, world;
  int process = -1;
  if (MPI_Comm_group(link->host, &own)) return -1;
  if (!MPI_Comm_group(MPI_COMM_WORLD, &world)) {
    if (MPI_Group_translate_ranks(own, 1, &rank, world, &process) || process < 0) process = -1;
    MPI_Group_free(&world);
  }
  MPI_Group_free(&own);
  return process;
}

/* ---- messages ---- */

static int exchange(mix_transport_link *link, const void *send, const size_t *at, void *receive,
                    size_t received) {
  const int own = link->own, all = link->all;
  MPI_Request requests[2 * WINDOW];
  int code = check_state(link);
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
        code = MPI_Irecv(target, (int)received, MPI_BYTE, from, MESSAGE, link->ranks, &requests[count]);
      if (received && !code) count++;
      if (bytes && !code)
        code = MPI_Isend(source, (int)bytes, MPI_BYTE, to, MESSAGE, link->ranks, &requests[count]);
      if (bytes && !code) count++;
    }
    const int waited = wait_for(link, count, requests, true);
    if (!code) code = waited;
  }
  return code;
}

static int gather(mix_transport_link *link, const void *part, void *result, const size_t *at) {
  const int all = link->all;
  int *counts = link->counts, *places = counts + all; /* an exchange is at most LARGEST bytes */
  for (int r = 0; r < all; r++) counts[r] = (int)(at[r + 1] - at[r]), places[r] = (int)at[r];
  MPI_Request request;
  int code = check_state(link);
  if (code) return code;
  code = MPI_Iallgatherv(part, counts[link->own], MPI_BYTE, result, counts, places, MPI_BYTE, link->ranks,
                         &request);
  return code ? code : wait_for(link, 1, &request, true);
}

static int broadcast(mix_transport_link *link, void *data, size_t bytes, int root) {
  int code = check_state(link);
  for (size_t done = 0; done < bytes && !code; done += LARGEST) {
    const size_t left = bytes - done;
    MPI_Request request;
    code = MPI_Ibcast((char *)data + done, (int)(left < LARGEST ? left : LARGEST), MPI_BYTE, root,
                      link->ranks, &request);
    if (!code) code = wait_for(link, 1, &request, true);
  }
  return code;
}

/* ---- notes ---- */

/* Or never will: an error is as good as an end. */
static bool has_arrived(sent_note *note) {
  MPI_Status status;
  int done = 1;
  for (int i = 0; i < note->count && done; i++)
    if (MPI_Test(&note->requests[i], &done, &status)) done = 1;
  return done;
}

static void forget_arrived(mix_transport_link *link) {
  for (sent_note **at = &link->sent; *at;) {
    sent_note *note = *at;
    if (has_arrived(note))
      *at = note->next, free(note);
    else
      at = &note->next;
  }
}

static int tell(mix_transport_link *link, const mix_transport_note *note) {
  int code = check_state(link);
  if (code || link->all < 2) return code;
  forget_arrived(link);
  sent_note *sent = calloc(1, sizeof *sent + sizeof *sent->requests * (size_t)link->all);
  if (!sent) return NO_MEMORY;
  sent->note = *note;
  sent->next = link->sent;
  link->sent = sent;
  for (int r = 0; r < link->all && !code; r++) {
    if (r == link->own) continue;
    code = MPI_Isend(&sent->note, (int)sizeof sent->note, MPI_BYTE, r, NOTE, link->ranks,
                     &sent->requests[sent->count]);
    sent->count += !code;
  }
  return code;
}

static int hear_notes(mix_transport_link *link) {
  const int code = check_state(link);
  return code ? code : listen_to_notes(link);
}

/* ---- closing ---- */

/* All others have heard the notes, the last of which said that this rank closes. */
static int free_ranks(mix_transport_link *link) {
  while (link->sent) forget_arrived(link);
  return MPI_Comm_free(&link->ranks);
}

static int close_mpi(mix_transport_link *link) {
  int code = is_over(link) || link->ranks == MPI_COMM_NULL ? 0 : free_ranks(link);
  if (!code && !link->hosted) code = MPI_Finalize();
  for (sent_note *note = link->sent, *next; note; note = next) next = note->next, free(note);
  free(link->counts);
  free(link);
  return code;
}

static void end_mpi_job(mix_transport_link *link, int code) {
  /* The host may have freed its own. Of MPI_COMM_WORLD alone does MPICH pass on the code. */
  if (!is_over(link))
    MPI_Abort(link->hosted && link->ranks != MPI_COMM_NULL ? link->ranks : link->host, code);
}

static const char *reason_of(int code) {
  switch (code) {
  case NOT_STARTED: return "the program has not called MPI_Init_thread";
  case STARTED:
    return "the program has started MPI itself: give mix_distribution_mpi_of its communicator in place of "
           "mix_distribution_mpi";
  case ENDED: return "the program has called MPI_Finalize";
  case OTHER_THREAD:
    return "the program has started MPI with MPI_THREAD_SINGLE or MPI_THREAD_FUNNELED, so that only its main "
           "thread may make calls that communicate; make them there, or start MPI with MPI_THREAD_MULTIPLE";
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
      .join = join_ranks,
      .process_of = process_of,
      .exchange = exchange,
      .gather = gather,
      .broadcast = broadcast,
      .tell = tell,
      .listen = hear_notes,
      .host_is_over = host_is_over,
      .close = close_mpi,
      .end_job = end_mpi_job,
      .error_text = error_text,
  };
  return &transport;
}
