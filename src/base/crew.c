/* Each thread that runs work has a crew of its own, not OpenMP's, whose regions end only when every thread
 * has come. What a crew is at is one number, the moment, which changes when work begins and when a stage
 * ends; waiting threads look at it and sleep on it. A share is claimed by writing the moment's count into the
 * share's word, and no moment passes while a claimed one is unfinished, so its claimer may read the work. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getcpu, CPU_CLR */
#endif
#include "base/crew.h"
#include "base/alloc.h"
#include "base/awaited.h"
#include "base/error.h"
#include "base/processor.h"
#include <pthread.h>
#include <sched.h>
#include <string.h>

/* Nanoseconds for which a share is left to its own thread, whose caches have what it reads. */
enum { SHARE_PATIENCE = 1000 };
/* Works after which sleeping helpers are called at the latest, where they came too late for others. */
enum { MAX_BACKOFF = 64 };

/* A moment: its count, which is odd while work goes on; the stage's shares; whether they wait for each other;
 * whether the first one is the owner's. */
#define ODD UINT64_C(1)
#define NEXT UINT64_C(2)
#define COUNT ((UINT64_C(1) << 48) - 1)
#define OWNED (UINT64_C(1) << 61)
#define GONE (UINT64_C(1) << 62)
#define TOGETHER (UINT64_C(1) << 63)
enum { SHARES_AT = 48, MAX_SHARES = 1 << 13 };

typedef struct claim {
  _Alignas(64) atomic_uint_fast64_t count; /* of the moment in which the share was last claimed */
} claim;

typedef struct crew {
  mix_awaited moment;
  mix_awaited call;                   /* changes to wake helpers that sleep between works */
  _Alignas(64) atomic_int unfinished; /* shares of the stage */
  atomic_int users;                   /* the owner and its helpers; the last one frees the crew */
  atomic_int ranks;                   /* that have been given out */
  _Alignas(64) mix_crew_work work;
  uint64_t first;              /* the count of its first stage */
  int size, patience, since;   /* since: works since the latest call */
  _Alignas(64) atomic_int cpu; /* the owner's */
  atomic_int backoff;          /* works from call to call */
  claim claims[];
} crew;

static size_t bytes_of(int size) { return sizeof(crew) + sizeof(claim) * (size_t)size; }

/* ---- shares ---- */

static void begin_stage(crew *x, uint64_t count, int number) {
  const mix_crew_stage stage = x->work.stages[number];
  atomic_store_explicit(&x->unfinished, stage.shares, memory_order_relaxed);
  /* From here on the work may end at any time. */
  mix_awaited_set(&x->moment, count | (uint64_t)stage.shares << SHARES_AT | (stage.together ? TOGETHER : 0) |
                                  (stage.caller_first ? OWNED : 0));
  if (stage.together) mix_awaited_next(&x->call);
}

/* False: another thread has it, or the moment has passed. */
static bool claim_share(crew *x, uint64_t count, int share) {
  uint_fast64_t last = atomic_load_explicit(&x->claims[share].count, memory_order_relaxed);
  return last < count && atomic_compare_exchange_strong(&x->claims[share].count, &last, count);
}

static bool do_share(crew *x, uint64_t moment, int share) {
  const uint64_t count = moment & COUNT;
  if (!claim_share(x, count, share)) return false;
  const int stage = (int)((count - x->first) / NEXT);
  x->work.run(x->work.context, stage, share);
  if (atomic_fetch_sub_explicit(&x->unfinished, 1, memory_order_acq_rel) > 1) return true;
  if (stage + 1 < x->work.stage_count)
    begin_stage(x, count + NEXT, stage + 1);
  else
    mix_awaited_set(&x->moment, count + ODD);
  return true;
}

/* A share of the moment's stage, first of all its own. False: there is none to be had. */
static bool do_any_share(crew *x, uint64_t moment, int own) {
  const int shares = (int)(moment >> SHARES_AT) & (MAX_SHARES - 1);
  if (own < shares && do_share(x, moment, own)) return true;
  if (moment & TOGETHER) return false;
  if (mix_awaited_changes(&x->moment, moment, SHARE_PATIENCE)) return true;
  for (int i = 0; i < shares; i++) {
    const int share = (own + i) % shares;
    const bool allowed = share || !own || !(moment & OWNED);
    if (allowed && do_share(x, moment, share)) return true;
  }
  return false;
}

/* ---- threads ---- */

static void release(crew *x) {
  if (atomic_fetch_sub(&x->users, 1) == 1) mix_free_buffer(x, bytes_of(x->size));
}

static bool in_the_way(crew *x, uint64_t moment) {
  return !(moment & TOGETHER) && sched_getcpu() == atomic_load_explicit(&x->cpu, memory_order_relaxed);
}

/* Leaves the processor, which the system would do only for a thread that keeps it busy for long. False: there
 * is no other one. */
static bool leave(int cpu) {
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all) || cpu < 0 || cpu >= CPU_SETSIZE) return false;
  others = all;
  CPU_CLR((size_t)cpu, &others);
  return CPU_COUNT(&others) && sched_setaffinity(0, sizeof others, &others) == 0 &&
         sched_setaffinity(0, sizeof all, &all) == 0;
}

static void help(crew *x, int own) {
  bool useful = true;
  for (;;) {
    /* Read before the moment: a call for what begins after it is not missed. */
    const uint64_t call = mix_awaited_number(&x->call), moment = mix_awaited_number(&x->moment);
    /* On the owner's processor a helper would take time from it. */
    const bool away = in_the_way(x, moment) && !leave(atomic_load_explicit(&x->cpu, memory_order_relaxed));
    if (moment & GONE) return;
    if (!away && moment & ODD) {
      if (do_any_share(x, moment, own))
        useful = true;
      else
        mix_awaited_wait(&x->moment, moment, x->patience);
      continue;
    }
    if (!away && mix_awaited_changes(&x->moment, moment, x->patience)) continue;
    const int backoff = atomic_load_explicit(&x->backoff, memory_order_relaxed);
    if (useful || backoff < MAX_BACKOFF)
      atomic_store_explicit(&x->backoff, useful ? 1 : 2 * backoff, memory_order_relaxed);
    useful = false;
    mix_awaited_wait(&x->call, call, 0);
  }
}

static void *start_helper(void *argument) {
  crew *x = argument;
  help(x, atomic_fetch_add(&x->ranks, 1) + 1);
  release(x);
  return NULL;
}

static void dismiss(void *argument) {
  crew *x = argument;
  mix_awaited_set(&x->moment, ((mix_awaited_number(&x->moment) & COUNT) + NEXT) | GONE);
  mix_awaited_next(&x->call);
  release(x);
}

static pthread_key_t key;
static _Thread_local crew *mine;
/* In a child by fork, into which no helper of this process came along. */
static atomic_bool forked;
static void lose_helpers(void) { atomic_store(&forked, true); }

static void begin_crews(void) {
  pthread_key_create(&key, dismiss);
  pthread_atfork(NULL, NULL, lose_helpers);
}

/* NULL with the error recorded. */
static crew *gather_crew(int threads) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, begin_crews);
  crew *x = mix_alloc_buffer(bytes_of(threads));
  if (!x) return NULL;
  memset(x, 0, bytes_of(threads));
  x->size = threads;
  atomic_init(&x->users, threads);
  atomic_init(&x->backoff, 1);
  x->patience = threads > mix_cpu_cores() ? 0 : MIX_PATIENCE;
  for (int i = 1; i < threads; i++) {
    pthread_t helper;
    const int reason = pthread_create(&helper, NULL, start_helper, x);
    if (!reason && pthread_detach(helper) == 0) continue;
    atomic_fetch_sub(&x->users, threads - i);
    dismiss(x);
    return mix_fail_runtime(
        "%d threads cannot be created: %s; use fewer (mix_set_threads, --threads), or raise the "
        "limit of processes",
        threads - 1, strerror(reason));
  }
  if (mine) dismiss(mine);
  pthread_setspecific(key, mine = x);
  return x;
}

/* The caller's OpenMP, where its program has one; the library links none. */
extern int omp_get_active_level(void) __attribute__((weak));
extern int omp_get_max_active_levels(void) __attribute__((weak));

/* Is this a thread of a parallel region of the caller's, whose threads have the cores? */
static bool in_parallel_region(void) {
  return omp_get_active_level && omp_get_max_active_levels &&
         omp_get_active_level() >= omp_get_max_active_levels();
}

mix_crew_result mix_crew_run(const mix_crew_work *work, int threads) {
  if (atomic_load_explicit(&forked, memory_order_relaxed) || in_parallel_region()) return MIX_CREW_TOO_FEW;
  crew *x = mine && mine->size >= threads ? mine : gather_crew(threads);
  if (!x) return MIX_CREW_FAILED;
  x->work = *work;
  x->first = (mix_awaited_number(&x->moment) & COUNT) + ODD;
  atomic_store_explicit(&x->cpu, sched_getcpu(), memory_order_relaxed);
  begin_stage(x, x->first, 0);
  if (++x->since >= atomic_load_explicit(&x->backoff, memory_order_relaxed)) {
    x->since = 0;
    mix_awaited_next(&x->call);
  }
  for (uint64_t moment; (moment = mix_awaited_number(&x->moment)) & ODD;)
    if (!do_any_share(x, moment, 0)) mix_awaited_wait(&x->moment, moment, x->patience);
  return MIX_CREW_DONE;
}
