/* A queue of what is to be communicated, and who does it: a thread, or the callers themselves where MPI
 * allows no other thread. Sums that begin one after the other form a bucket, which is exchanged when it is
 * full or when somebody waits for it: a function of the order of calls and of sizes alone, so that all ranks
 * form the same buckets. */
#include "distribute/exchange.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "distribute/lane.h"
#include "distribute/meeting.h"
#include "distribute/launcher.h"
#include "distribute/waiting.h"
#include "tensor/shape.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { SUM, SCATTER, COLLECT, BROADCAST, GATHER, END_JOB, CLOSE } kind;

typedef struct job {
  kind kind;
  mix_bucket bucket; /* of other kinds: one segment of bytes */
  int number;        /* root, exit code, or bytes of an element */
  void *all;
  struct job *next;
  bool finished, awaited;
} job;

struct mix_exchange {
  mix_lane lane;
  mix_exchange_place place;
  double limit;    /* of opening, in seconds */
  const int *host; /* NULL: all processes; else the handle of the host's communicator */
  int handle;
  pthread_t thread; /* unless on_caller */
  pthread_mutex_t lock;
  pthread_cond_t work, progress;
  bool opened;
  int code;          /* of opening; 0: a thread serves, whatever fails later */
  job *first, *last; /* the queue; the first one may be at work */
  bool at_work;
  job *bucket; /* not yet in the queue; NULL: none */
  job *unused;
  const char *failure; /* interned; NULL: none */
  mix_rank_identity *ranks;
  mix_watch *watch; /* NULL: none */
  atomic_bool closing;
  mix_exchange_times times;
  mix_waiting waiting;
};

static double now(void) { return mix_clock(CLOCK_MONOTONIC); }

/* ---- jobs ---- */

static int close_link(mix_exchange *x) {
  const mix_transport *t = x->lane.transport;
  const int code = x->host && t->host_is_over() ? 0 : mix_waiting_close(&x->waiting);
  return code ? code : t->close(x->lane.link);
}

static int run(mix_exchange *x, job *j) {
  mix_lane *lane = &x->lane;
  void *data = j->bucket.segments[0].data;
  if (lane->ranks < 2 && j->kind <= COLLECT) return 0;
  if (j->kind < END_JOB) mix_waiting_begin(&x->waiting, 0);
  switch (j->kind) {
  case SUM: return mix_lane_sum(lane, &j->bucket);
  case SCATTER: return mix_lane_scatter(lane, &j->bucket);
  case COLLECT: return mix_lane_collect(lane, data, (size_t)j->number, &j->bucket.segments[0].division);
  case BROADCAST: return mix_lane_broadcast(lane, data, j->bucket.bytes, j->number);
  case GATHER: return mix_lane_gather(lane, data, j->bucket.bytes, j->all);
  case END_JOB: lane->transport->end_job(lane->link, j->number); return 0;
  case CLOSE: return close_link(x);
  }
  return 0;
}

/* Called with the lock. */
static void fail(mix_exchange *x, int code) {
  if (x->failure) return;
  char reason[256] = "out of memory", rank[32] = "", text[400];
  if (code == MIX_TRANSPORT_STOPPED && x->waiting.reason) {
    x->failure = x->waiting.reason;
    return;
  }
  if (code != MIX_LANE_NO_MEMORY) x->lane.transport->error_text(code, reason, sizeof reason);
  if (x->place.ranks) snprintf(rank, sizeof rank, " on rank %d", x->place.rank);
  snprintf(text, sizeof text, "%s%s: %s", x->lane.transport->flavor, rank, reason);
  x->failure = mix_intern(text);
  if (!x->failure) x->failure = "out of memory", mix_error_clear();
}

static void take_out(mix_exchange *x, job *j) {
  x->first = j->next;
  if (!x->first) x->last = NULL;
  j->finished = true;
  if (j->awaited) return; /* the waiting thread takes it */
  j->next = x->unused;
  x->unused = j;
}

/* The first job of the queue; with the lock, which is open meanwhile. Returns its kind. */
static kind run_first(mix_exchange *x) {
  job *j = x->first;
  const kind kind = j->kind;
  const bool failed = x->failure && kind != END_JOB;
  x->at_work = true;
  pthread_mutex_unlock(&x->lock);
  const double start = now();
  const int code = failed ? 0 : run(x, j);
  if (code && kind != CLOSE) mix_waiting_tell_failure(&x->waiting, "it cannot communicate");
  pthread_mutex_lock(&x->lock);
  x->at_work = false;
  x->times.working += now() - start;
  if (kind <= SCATTER) x->times.bytes += (double)j->bucket.bytes;
  if (code) fail(x, code);
  take_out(x, j);
  pthread_cond_broadcast(&x->progress);
  return kind;
}

/* ---- opening, on the thread that will communicate, or on the caller's ---- */

/* On the thread of the watch. The launcher may end this process at any moment, so the log hears of it now. */
static void rank_ended(void *context, int rank) {
  mix_exchange *x = context;
  char text[256];
  if (atomic_load(&x->closing) || (x->host && x->lane.transport->host_is_over())) return;
  snprintf(text, sizeof text, "rank %d of %d (process %d on %s) has ended", rank, x->place.ranks,
           x->ranks[rank].process, x->ranks[rank].host);
  mix_log_message(MIX_LOG_ERROR, "distribution: %s, and with it this job", text);
  pthread_mutex_lock(&x->lock);
  if (!x->failure) x->failure = mix_intern(text);
  pthread_mutex_unlock(&x->lock);
  atomic_store(&x->waiting.stop, true);
}

static int meet(mix_exchange *x) {
  mix_exchange_place *p = &x->place;
  const double limit = x->host ? x->limit : 0; /* else the caller has its eye on the clock */
  if (x->host) x->waiting.meeting = mix_meeting_begin(x->lane.transport, x->lane.link, p->rank, p->ranks);
  mix_waiting_begin(&x->waiting, limit);
  const double begin = x->waiting.begin; /* of one limit for all of it */
  int code = x->lane.transport->join(x->lane.link);
  if (code) return code;
  const mix_rank_identity own = mix_rank_identity_own();
  if (!(x->ranks = mix_calloc((size_t)p->ranks, sizeof *x->ranks))) return MIX_LANE_NO_MEMORY;
  mix_waiting_begin(&x->waiting, limit);
  x->waiting.begin = begin;
  if ((code = mix_lane_gather(&x->lane, &own, sizeof own, x->ranks))) return code;
  x->waiting.identities = x->ranks;
  for (int r = 0; r < p->ranks; r++) p->sharing += mix_ranks_share_cores(&x->ranks[r], &x->ranks[p->rank]);
  x->watch = mix_watch_begin(x->ranks, p->ranks, p->rank, rank_ended, x);
  return 0;
}

static int open_link(mix_exchange *x) {
  const mix_transport_request request = {.communicator = x->host,
                                         .gives_up = mix_waiting_gives_up,
                                         .heard = mix_waiting_heard,
                                         .context = &x->waiting};
  mix_transport_place joined;
  const int code = x->lane.transport->open(&request, &x->lane.link, &joined);
  if (code) return code;
  x->lane.rank = joined.rank, x->lane.ranks = joined.ranks;
  x->place = (mix_exchange_place){.rank = joined.rank, .ranks = joined.ranks, .on_caller = joined.on_caller};
  x->waiting.transport = x->lane.transport, x->waiting.link = x->lane.link;
  if (!mix_waiting_prepare(&x->waiting, joined.rank, joined.ranks)) return MIX_LANE_NO_MEMORY;
  const int met = meet(x);
  if (met || !x->host) return met; /* others are still to see that this rank has come */
  mix_meeting_end(x->waiting.meeting);
  x->waiting.meeting = NULL;
  return 0;
}

static void record_opened(mix_exchange *x, int code) {
  mix_error_clear(); /* memory that ran out is the failure */
  pthread_mutex_lock(&x->lock);
  x->opened = true;
  x->code = code;
  if (code) fail(x, code);
  pthread_cond_broadcast(&x->progress);
  pthread_mutex_unlock(&x->lock);
}

static void *serve(void *context) {
  mix_exchange *x = context;
  if (!x->host) record_opened(x, open_link(x));
  pthread_mutex_lock(&x->lock);
  for (bool open = !x->code; open;) {
    while (!x->first) pthread_cond_wait(&x->work, &x->lock);
    open = run_first(x) != CLOSE;
  }
  pthread_mutex_unlock(&x->lock);
  return NULL;
}

/* ---- the queue; all with the lock ---- */

static job *new_job(mix_exchange *x, kind kind, mix_dtype dtype) {
  job *j = x->unused;
  if (j)
    x->unused = j->next;
  else if (!(j = mix_calloc(1, sizeof *j))) {
    x->failure = "out of memory";
    mix_error_clear();
    if (x->place.on_caller && !x->at_work) mix_waiting_tell_failure(&x->waiting, x->failure);
    return NULL;
  }
  j->kind = kind, j->bucket.dtype = dtype;
  j->bucket.segment_count = 0, j->bucket.bytes = 0;
  j->next = NULL, j->finished = j->awaited = false;
  return j;
}

static void push(mix_exchange *x, job *j) {
  if (x->last)
    x->last->next = j;
  else
    x->first = j;
  x->last = j;
  pthread_cond_signal(&x->work);
}

static void push_bucket(mix_exchange *x) {
  if (x->bucket) push(x, x->bucket);
  x->bucket = NULL;
}

static bool contains(const job *j, const void *data) {
  for (int i = 0; j && i < j->bucket.segment_count; i++)
    if (j->bucket.segments[i].data == data) return true;
  return false;
}

static bool is_pending(const mix_exchange *x, const void *data) {
  for (const job *j = x->first; j; j = j->next)
    if (contains(j, data)) return true;
  return false;
}

/* Somebody else is at it, or this thread does it. */
static void wait_for_progress(mix_exchange *x) {
  if (x->place.on_caller && x->first && !x->at_work)
    run_first(x);
  else
    pthread_cond_wait(&x->progress, &x->lock);
}

/* Runs a job and waits for it. */
static const char *call(mix_exchange *x, kind kind, mix_segment segment, size_t bytes, int number,
                        void *all) {
  pthread_mutex_lock(&x->lock);
  push_bucket(x);
  job *j = x->failure ? NULL : new_job(x, kind, MIX_INT8);
  if (j) {
    const double start = now();
    j->bucket.segments[0] = segment;
    j->bucket.segment_count = 1;
    j->bucket.bytes = bytes, j->number = number, j->all = all, j->awaited = true;
    push(x, j);
    while (!j->finished) wait_for_progress(x);
    j->next = x->unused;
    x->unused = j;
    x->times.waited += now() - start;
  }
  const char *failure = x->failure;
  pthread_mutex_unlock(&x->lock);
  return failure;
}

/* ---- what a communicator does ---- */

/* Appends to the bucket that is open, or to a new one. */
static const char *add_segment(mix_exchange *x, kind kind, mix_dtype dtype, mix_segment segment) {
  const size_t bytes = (size_t)segment.count * mix_dtype_size(dtype);
  pthread_mutex_lock(&x->lock);
  const mix_bucket *open = x->bucket ? &x->bucket->bucket : NULL;
  if (open && (x->bucket->kind != kind || open->dtype != dtype ||
               open->segment_count == MIX_BUCKET_SEGMENTS || open->bytes + bytes > MIX_BUCKET_LARGEST))
    push_bucket(x);
  if (!x->bucket) x->bucket = new_job(x, kind, dtype);
  if (x->bucket) {
    mix_bucket *bucket = &x->bucket->bucket;
    bucket->segments[bucket->segment_count++] = segment;
    bucket->bytes += bytes;
    if (bucket->bytes >= MIX_BUCKET_FULL) push_bucket(x);
  }
  const char *failure = x->failure;
  pthread_mutex_unlock(&x->lock);
  return failure;
}

const char *mix_exchange_reduce(mix_exchange *x, void *data, mix_dtype dtype, int64_t count) {
  return add_segment(x, SUM, dtype, (mix_segment){.data = data, .count = count});
}

const char *mix_exchange_scatter(mix_exchange *x, void *data, mix_dtype dtype, mix_division division) {
  const int64_t count = division.rows * division.row_size;
  return add_segment(x, SCATTER, dtype, (mix_segment){data, count, division});
}

const char *mix_exchange_finish(mix_exchange *x, const void *data) {
  pthread_mutex_lock(&x->lock);
  if (contains(x->bucket, data)) push_bucket(x);
  if (is_pending(x, data)) {
    const double start = now();
    while (is_pending(x, data)) wait_for_progress(x);
    x->times.waited += now() - start;
  }
  const char *failure = x->failure;
  pthread_mutex_unlock(&x->lock);
  return failure;
}

const char *mix_exchange_broadcast(mix_exchange *x, void *data, size_t bytes, int root) {
  return call(x, BROADCAST, (mix_segment){.data = data}, bytes, root, NULL);
}

const char *mix_exchange_collect(mix_exchange *x, void *data, size_t size, mix_division division) {
  const int64_t count = division.rows * division.row_size;
  return call(x, COLLECT, (mix_segment){data, count, division}, size * (size_t)count, (int)size, NULL);
}

const char *mix_exchange_gather(mix_exchange *x, const void *data, size_t bytes, void *all) {
  if (bytes > ((size_t)1 << 30) / (size_t)x->place.ranks)
    return "all_gather: more than 2^30 bytes in all; gather in parts";
  return call(x, GATHER, (mix_segment){.data = (void *)data}, bytes, 0, all);
}

/* ---- opening and closing ---- */

static void destroy(mix_exchange *x) {
  for (job *j = x->unused, *next; j; j = next) next = j->next, mix_free(j);
  mix_free(x->bucket);
  mix_watch_end(x->watch);
  mix_free(x->ranks);
  mix_lane_release(&x->lane);
  mix_waiting_release(&x->waiting);
  pthread_cond_destroy(&x->work);
  pthread_cond_destroy(&x->progress);
  pthread_mutex_destroy(&x->lock);
  mix_free(x);
}

static const char *failure_of(mix_exchange *x) {
  pthread_mutex_lock(&x->lock);
  const char *failure = x->failure;
  pthread_mutex_unlock(&x->lock);
  return failure;
}

static mix_exchange *new_exchange(const mix_transport *transport, const int *host) {
  const double limit = mix_waiting_limit();
  mix_exchange *x = limit < 0 ? NULL : mix_calloc(1, sizeof *x);
  if (!x) return NULL;
  x->lane.transport = transport, x->limit = limit;
  if (host) x->handle = *host, x->host = &x->handle;
  pthread_mutex_init(&x->lock, NULL);
  pthread_cond_init(&x->work, NULL);
  pthread_cond_init(&x->progress, NULL);
  return x;
}

static bool start_thread(mix_exchange *x) {
  if (!pthread_create(&x->thread, NULL, serve, x)) return true;
  mix_fail_runtime("distribution: the communication thread cannot be created");
  return false;
}

/* MPI_Init cannot be made again, neither after a failure nor while a thread is left in it. */
static atomic_bool abandoned;

/* The thread stays in MPI, which cannot be called off, and `x` with it. NULL with the error recorded. */
static mix_exchange *abandon(mix_exchange *x, mix_meeting *meeting) {
  char names[512];
  atomic_store(&abandoned, true);
  atomic_store(&x->waiting.stop, true);
  pthread_detach(x->thread);
  return mix_fail_runtime("distribution: not all ranks have met within %g s (MIXTAPE_MPI_TIMEOUT): %s",
                          x->limit, mix_meeting_missing(meeting, names, sizeof names));
}

/* False: the time has passed. */
static bool wait_until_opened(mix_exchange *x, double seconds) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)seconds;
  until.tv_nsec += (long)((seconds - floor(seconds)) * 1e9);
  if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
  pthread_mutex_lock(&x->lock);
  while (!x->opened && !pthread_cond_timedwait(&x->progress, &x->lock, &until)) continue;
  const bool opened = x->opened;
  pthread_mutex_unlock(&x->lock);
  return opened;
}

static bool waits_in_vain(mix_exchange *x, mix_meeting *meeting) {
  if (wait_until_opened(x, x->limit / 2)) return false;
  mix_meeting_look(meeting);
  return !wait_until_opened(x, x->limit / 2);
}

mix_exchange *mix_exchange_open(const mix_transport *transport) {
  if (atomic_load(&abandoned))
    return mix_fail_runtime(
        "distribution: MPI has not started, or not within its time, and cannot start again "
        "in this process; end it");
  mix_exchange *x = new_exchange(transport, NULL);
  if (!x) return NULL;
  mix_meeting *meeting =
      mix_meeting_begin(transport, NULL, atoi(mix_mpi_launched_rank()), mix_mpi_launched_ranks());
  if (!start_thread(x)) return mix_meeting_end(meeting), destroy(x), NULL;
  if (waits_in_vain(x, meeting)) return abandon(x, meeting); /* others are still to see that it has come */
  mix_meeting_end(meeting);
  if (!x->code) return x;
  /* What has been sent for is not freed, here and below: the others may still answer. */
  mix_fail_runtime("distribution: %s", failure_of(x));
  pthread_join(x->thread, NULL);
  if (x->lane.link) return atomic_store(&abandoned, true), NULL;
  destroy(x);
  return NULL;
}

static mix_exchange *leave_open(mix_exchange *x) {
  const bool begun = x->lane.link != NULL;
  mix_fail_runtime("distribution: %s", failure_of(x));
  if (!begun) destroy(x);
  return NULL;
}

mix_exchange *mix_exchange_open_on(const mix_transport *transport, int communicator) {
  mix_exchange *x = new_exchange(transport, &communicator);
  if (!x) return NULL;
  record_opened(x, open_link(x));
  if (failure_of(x)) return leave_open(x);
  if (x->place.on_caller || start_thread(x)) return x;
  mix_waiting_tell_failure(&x->waiting, "its communication thread cannot be created");
  return NULL;
}

mix_exchange_place mix_exchange_place_of(const mix_exchange *x) { return x->place; }

void mix_exchange_log_ranks(const mix_exchange *x) {
  const mix_rank_identity *ranks = x->ranks;
  for (int first = 0, end; first < x->place.ranks; first = end) {
    mix_text text = {.grows = true};
    mix_text_put(&text, "distribution: on %s", ranks[first].host);
    for (end = first; end < x->place.ranks && !strcmp(ranks[end].host, ranks[first].host); end++)
      mix_text_put(&text, "%s rank %d is process %d", end > first ? "," : "", end, ranks[end].process);
    if (!text.failed) mix_log_text(MIX_LOG_INFO, text.text);
    mix_free(text.text);
  }
}

mix_exchange_times mix_exchange_times_of(mix_exchange *x) {
  pthread_mutex_lock(&x->lock);
  const mix_exchange_times times = x->times;
  pthread_mutex_unlock(&x->lock);
  return times;
}

void mix_exchange_end_job(mix_exchange *x, int code) {
  struct timespec until;
  if (x->place.on_caller) {
    x->lane.transport->end_job(x->lane.link, code);
    return;
  }
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  pthread_mutex_lock(&x->lock);
  job *j = new_job(x, END_JOB, MIX_INT8);
  if (j) {
    j->number = code, j->awaited = true;
    push(x, j);
    while (!j->finished && !pthread_cond_timedwait(&x->progress, &x->lock, &until)) continue;
  }
  pthread_mutex_unlock(&x->lock);
}

void mix_exchange_close(mix_exchange *x) {
  const bool failed = failure_of(x) != NULL;
  atomic_store(&x->closing, true);
  const char *failure = call(x, CLOSE, (mix_segment){0}, 0, 0, NULL);
  if (failure && !failed) mix_log_message(MIX_LOG_ERROR, "distribution: %s", failure);
  if (failure) { /* the communication thread may be left in MPI, and `x` with it */
    mix_watch_end(x->watch);
    return;
  }
  if (!x->place.on_caller) pthread_join(x->thread, NULL);
  destroy(x);
}
