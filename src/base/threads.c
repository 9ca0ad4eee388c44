/* Threads that can be started: tried out, all at once, before OpenMP creates its own. */
#include "base/threads.h"

#include "base/alloc.h"
#include "base/error.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* The size of this thread's latest team, whose threads OpenMP keeps. */
static _Thread_local int team = 1;

static atomic_bool lost;

bool mix_threads_lost(void) { return atomic_load_explicit(&lost, memory_order_relaxed); }

static void lose(void) { atomic_store(&lost, true); }

static void watch_forks(void) { pthread_atfork(NULL, NULL, lose); }

/* Waits until all have been created, so that they exist at the same time. */
static void *wait_for_all(void *mutex) {
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
  return NULL;
}

/* Returns 0, or the errno of the thread that could not be created. */
static int try_threads(pthread_t *threads, int count) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  int created = 0, reason = 0;
  pthread_mutex_lock(&mutex);
  while (created < count && !(reason = pthread_create(&threads[created], NULL, wait_for_all, &mutex)))
    created++;
  pthread_mutex_unlock(&mutex);
  while (created > 0) pthread_join(threads[--created], NULL);
  return reason;
}

bool mix_threads_start(int count) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (count > team) {
    pthread_once(&once, watch_forks);
    pthread_t *threads = mix_calloc((size_t)count, sizeof *threads);
    if (!threads) return false;
    const int reason = try_threads(threads, count - 1);
    mix_free(threads);
    if (reason)
      return mix_fail(
                 MIX_RUNTIME_ERROR,
                 "%d threads cannot be created: %s; use fewer (mix_set_threads, --threads), or raise the "
                 "limit of processes",
                 count - 1, strerror(reason)),
             false;
  }
  team = count;
  return true;
}
