/* The communication thread. Sums that begin one after the other form a bucket, which is exchanged when it is
 * full or when somebody waits for it: a function of the order of calls and of sizes alone, so that all ranks
 * form the same buckets. The sum of an element does not depend on its bucket: rank 0 + rank 1 + ... */
#include "distribute/exchange.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "distribute/sum.h"
#include "distribute/watch.h"
#include "tensor/shape.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
  FULL = 4 << 20,     /* bytes after which a bucket is exchanged */
  LARGEST = 16 << 20, /* bytes of one exchange: larger buckets go in parts */
  SMALL = 8 << 10,    /* bytes that every rank gets whole, in one message, and sums itself */
  SEGMENTS = 128      /* of a bucket */
};

typedef enum kind { SUM, BROADCAST, GATHER, END_JOB, CLOSE } kind;

typedef struct segment {
  void *data;
  int64_t count;
} segment;

typedef struct job {
  kind kind;
  mix_dtype dtype;
  int segment_count;
  segment segments[SEGMENTS];
  size_t bytes;
  int number; /* root, or exit code */
  void *all;
  struct job *next;
  bool finished, awaited;
} job;

typedef struct scratch {
  void *data;
  size_t bytes;
} scratch;

struct mix_exchange {
  const mix_transport *transport;
  const int *host; /* while it opens: the handle of the host's communicator; NULL: there is none */
  mix_transport_link *link;
  mix_exchange_place place;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t work, progress;
  bool opened;
  job *first, *last; /* the queue; the first one may be at work */
  job *bucket;       /* not yet in the queue; NULL: none */
  job *unused;
  const char *failure; /* interned; NULL: none */
  mix_rank_identity *ranks;
  mix_watch *watch; /* NULL: none */
  atomic_bool stop, closing;
  mix_exchange_times times;
  scratch packed, received, sums; /* of the thread */
};

static double now(void) { return mix_clock(CLOCK_MONOTONIC); }

/* ---- the thread ---- */

static void *scratch_of(scratch *s, size_t bytes) {
  if (s->bytes >= bytes && s->data) return s->data;
  mix_free(s->data);
  s->bytes = bytes;
  s->data = mix_alloc(bytes);
  if (!s->data) s->bytes = 0, mix_error_clear();
  return s->data;
}

enum { NO_MEMORY = -1 };

/* Every rank gets everything. */
static int sum_whole(mix_exchange *x, const void *own, void *result, mix_dtype dtype, int64_t count) {
  const int ranks = x->place.ranks;
  const size_t bytes = (size_t)count * mix_dtype_size(dtype);
  size_t *at = scratch_of(&x->sums, sizeof *at * (size_t)(ranks + 1));
  void *all = scratch_of(&x->received, bytes * (size_t)ranks);
  if (!at || !all) return NO_MEMORY;
  for (int r = 0; r <= ranks; r++) at[r] = bytes * (size_t)r;
  const int code = x->transport->gather(x->link, own, all, at);
  if (!code) mix_sum_parts(dtype, all, ranks, count, result);
  return code;
}

/* Each rank sums its chunk and sends it to all. `result` may be `own`. */
static int sum_chunks(mix_exchange *x, const void *own, void *result, mix_dtype dtype, int64_t count) {
  const int ranks = x->place.ranks, rank = x->place.rank;
  const size_t size = mix_dtype_size(dtype);
  size_t at[ranks + 1];
  for (int r = 0; r <= ranks; r++) at[r] = (size_t)(count * r / ranks) * size;
  const size_t bytes = at[rank + 1] - at[rank];
  void *parts = scratch_of(&x->received, bytes * (size_t)ranks), *sums = scratch_of(&x->sums, bytes);
  if (!parts || !sums) return NO_MEMORY;
  int code = x->transport->exchange(x->link, own, at, parts, bytes);
  if (code) return code;
  mix_sum_parts(dtype, parts, ranks, (int64_t)(bytes / size), sums);
  return x->transport->gather(x->link, sums, result, at);
}

/* In place, from the bucket's only segment or from a copy of all. */
static int sum_bucket(mix_exchange *x, job *bucket) {
  const size_t size = mix_dtype_size(bucket->dtype);
  const bool single = bucket->segment_count == 1;
  char *data = single ? bucket->segments[0].data : scratch_of(&x->packed, bucket->bytes), *to = data;
  if (!data) return NO_MEMORY;
  for (int i = 0; i < bucket->segment_count && !single; i++) {
    memcpy(to, bucket->segments[i].data, (size_t)bucket->segments[i].count * size);
    to += (size_t)bucket->segments[i].count * size;
  }
  int code = 0;
  const size_t part = LARGEST / size * size;
  for (size_t done = 0; done < bucket->bytes && !code; done += part) {
    const size_t bytes = bucket->bytes - done < part ? bucket->bytes - done : part;
    code = bytes <= SMALL ? sum_whole(x, data + done, data + done, bucket->dtype, (int64_t)(bytes / size))
                          : sum_chunks(x, data + done, data + done, bucket->dtype, (int64_t)(bytes / size));
  }
  const char *from = data;
  for (int i = 0; i < bucket->segment_count && !single && !code; i++) {
    memcpy(bucket->segments[i].data, from, (size_t)bucket->segments[i].count * size);
    from += (size_t)bucket->segments[i].count * size;
  }
  return code;
}

static int gather_whole(mix_exchange *x, job *j) {
  const int ranks = x->place.ranks;
  size_t at[ranks + 1];
  for (int r = 0; r <= ranks; r++) at[r] = j->bytes * (size_t)r;
  return x->transport->gather(x->link, j->segments[0].data, j->all, at);
}

/* A rank ends only when no rank watches it any more: all of them have come here. */
static int close_transport(mix_exchange *x) {
  const int ranks = x->place.ranks;
  size_t at[ranks + 1];
  char all[ranks];
  for (int r = 0; r <= ranks; r++) at[r] = (size_t)r;
  const int code = x->transport->gather(x->link, "", all, at);
  return code ? code : x->transport->close(x->link);
}

static int run(mix_exchange *x, job *j) {
  if (x->place.ranks < 2 && j->kind == SUM) return 0;
  switch (j->kind) {
  case SUM: return sum_bucket(x, j);
  case BROADCAST: return x->transport->broadcast(x->link, j->segments[0].data, j->bytes, j->number);
  case GATHER: return gather_whole(x, j);
  case END_JOB: x->transport->end_job(x->link, j->number); return 0;
  case CLOSE: return close_transport(x);
  }
  return 0;
}

/* Called with the lock. */
static void fail(mix_exchange *x, int code) {
  if (x->failure) return;
  char reason[256] = "out of memory", rank[32] = "", text[400];
  if (code != NO_MEMORY) x->transport->error_text(code, reason, sizeof reason);
  if (x->place.ranks) snprintf(rank, sizeof rank, " on rank %d", x->place.rank);
  snprintf(text, sizeof text, "%s%s: %s", x->transport->flavor, rank, reason);
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

/* On the thread of the watch. The launcher may end this process at any moment, so the log hears of it now. */
static void rank_ended(void *context, int rank) {
  mix_exchange *x = context;
  char text[256];
  if (atomic_load(&x->closing)) return;
  snprintf(text, sizeof text, "rank %d of %d (process %d on %s) has ended", rank, x->place.ranks,
           x->ranks[rank].process, x->ranks[rank].host);
  mix_log_message(MIX_LOG_ERROR, "distribution: %s, and with it this job", text);
  pthread_mutex_lock(&x->lock);
  if (!x->failure) x->failure = mix_intern(text);
  pthread_mutex_unlock(&x->lock);
  atomic_store(&x->stop, true);
}

static bool gives_up(void *context) { return atomic_load(&((mix_exchange *)context)->stop); }

static int open_transport(mix_exchange *x) {
  const mix_transport_request request = {.communicator = x->host, .gives_up = gives_up, .context = x};
  mix_transport_place joined;
  int code = x->transport->open(&request, &x->link, &joined);
  if (code) return code;
  mix_exchange_place *p = &x->place;
  *p = (mix_exchange_place){.rank = joined.rank, .ranks = joined.ranks};
  const size_t size = sizeof *x->ranks;
  size_t at[p->ranks + 1];
  for (int r = 0; r <= p->ranks; r++) at[r] = size * (size_t)r;
  const mix_rank_identity own = mix_rank_identity_own();
  if (!(x->ranks = mix_calloc((size_t)p->ranks, size))) return NO_MEMORY;
  if ((code = x->transport->gather(x->link, &own, x->ranks, at))) return code;
  for (int r = 0; r < p->ranks; r++) p->sharing += mix_ranks_share_cores(&x->ranks[r], &x->ranks[p->rank]);
  x->watch = mix_watch_begin(x->ranks, p->ranks, p->rank, rank_ended, x);
  return 0;
}

static void *serve(void *context) {
  mix_exchange *x = context;
  const int opened = open_transport(x);
  pthread_mutex_lock(&x->lock);
  x->opened = true;
  if (opened) fail(x, opened);
  pthread_cond_broadcast(&x->progress);
  for (bool open = !opened; open;) {
    while (!x->first) pthread_cond_wait(&x->work, &x->lock);
    job *j = x->first;
    const bool failed = x->failure && j->kind != END_JOB;
    pthread_mutex_unlock(&x->lock);
    const double start = now();
    const int code = failed ? 0 : run(x, j);
    pthread_mutex_lock(&x->lock);
    x->times.working += now() - start;
    if (j->kind == SUM) x->times.bytes += (double)j->bytes;
    if (code) fail(x, code);
    open = j->kind != CLOSE;
    take_out(x, j);
    pthread_cond_broadcast(&x->progress);
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
    return NULL;
  }
  j->kind = kind, j->dtype = dtype;
  j->segment_count = 0, j->bytes = 0;
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
  for (int i = 0; j && i < j->segment_count; i++)
    if (j->segments[i].data == data) return true;
  return false;
}

static bool is_pending(const mix_exchange *x, const void *data) {
  for (const job *j = x->first; j; j = j->next)
    if (contains(j, data)) return true;
  return false;
}

static void wait_for_progress(mix_exchange *x) { pthread_cond_wait(&x->progress, &x->lock); }

/* Runs a job and waits for it. */
static const char *call(mix_exchange *x, kind kind, void *data, size_t bytes, int number, void *all) {
  pthread_mutex_lock(&x->lock);
  push_bucket(x);
  job *j = x->failure ? NULL : new_job(x, kind, MIX_INT8);
  if (j) {
    const double start = now();
    j->segments[0].data = data;
    j->segment_count = 1;
    j->bytes = bytes, j->number = number, j->all = all, j->awaited = true;
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

const char *mix_exchange_reduce(mix_exchange *x, void *data, mix_dtype dtype, int64_t count) {
  const size_t bytes = (size_t)count * mix_dtype_size(dtype);
  pthread_mutex_lock(&x->lock);
  job *bucket = x->bucket;
  if (bucket &&
      (bucket->dtype != dtype || bucket->segment_count == SEGMENTS || bucket->bytes + bytes > LARGEST))
    push_bucket(x);
  if (!x->bucket) x->bucket = new_job(x, SUM, dtype);
  if ((bucket = x->bucket)) {
    bucket->segments[bucket->segment_count++] = (segment){data, count};
    bucket->bytes += bytes;
    if (bucket->bytes >= FULL) push_bucket(x);
  }
  const char *failure = x->failure;
  pthread_mutex_unlock(&x->lock);
  return failure;
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
  return call(x, BROADCAST, data, bytes, root, NULL);
}

const char *mix_exchange_gather(mix_exchange *x, const void *data, size_t bytes, void *all) {
  if (bytes > ((size_t)1 << 30) / (size_t)x->place.ranks) return "all_gather: more than 2^30 bytes in all";
  return call(x, GATHER, (void *)data, bytes, 0, all);
}

/* ---- opening and closing ---- */

static void destroy(mix_exchange *x) {
  for (job *j = x->unused, *next; j; j = next) next = j->next, mix_free(j);
  mix_free(x->bucket);
  mix_watch_end(x->watch);
  mix_free(x->ranks);
  mix_free(x->packed.data);
  mix_free(x->received.data);
  mix_free(x->sums.data);
  pthread_cond_destroy(&x->work);
  pthread_cond_destroy(&x->progress);
  pthread_mutex_destroy(&x->lock);
  mix_free(x);
}

mix_exchange *mix_exchange_open(const mix_transport *transport, const int *host) {
  mix_exchange *x = mix_calloc(1, sizeof *x);
  if (!x) return NULL;
  x->transport = transport, x->host = host;
  pthread_mutex_init(&x->lock, NULL);
  pthread_cond_init(&x->work, NULL);
  pthread_cond_init(&x->progress, NULL);
  if (pthread_create(&x->thread, NULL, serve, x)) {
    destroy(x);
    return mix_fail_runtime("distribution: the communication thread cannot be created");
  }
  pthread_mutex_lock(&x->lock);
  while (!x->opened) wait_for_progress(x);
  const char *failure = x->failure;
  pthread_mutex_unlock(&x->lock);
  if (!failure) return x;
  pthread_join(x->thread, NULL);
  destroy(x);
  return mix_fail_runtime("distribution: %s", failure);
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
  atomic_store(&x->closing, true);
  if (call(x, CLOSE, NULL, 0, 0, NULL)) return;
  pthread_join(x->thread, NULL);
  destroy(x);
}
