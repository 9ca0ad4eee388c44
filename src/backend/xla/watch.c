/* Says that a compilation takes long, while it does. */
#include "backend/xla/xla.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/loaded.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

double mix_xla_patience = 10;

/* Of the compiling thread and of the one that tells; the last one frees it. Nobody joins the second one: the
 * log callback that it calls may wait for a lock that the first one holds. */
struct mix_xla_watch {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool ended;
  int users;
  double began;
  char name[128];
};

static void leave(mix_xla_watch *watch) {
  pthread_mutex_lock(&watch->lock);
  const bool last = --watch->users == 0;
  watch->ended = true;
  pthread_cond_signal(&watch->changed);
  pthread_mutex_unlock(&watch->lock);
  if (!last) return;
  pthread_cond_destroy(&watch->changed);
  pthread_mutex_destroy(&watch->lock);
  mix_free(watch);
}

/* False: it has ended before. */
static bool wait_until(mix_xla_watch *watch, double due) {
  const struct timespec t = {.tv_sec = (time_t)due, .tv_nsec = (long)((due - (double)(time_t)due) * 1e9)};
  pthread_mutex_lock(&watch->lock);
  while (!watch->ended && mix_clock(CLOCK_MONOTONIC) < due)
    pthread_cond_timedwait(&watch->changed, &watch->lock, &t);
  const bool ended = watch->ended;
  pthread_mutex_unlock(&watch->lock);
  return !ended;
}

static void *tell(void *context) {
  mix_xla_watch *watch = context;
  for (double wait = mix_xla_patience; wait_until(watch, watch->began + wait); wait *= 2)
    mix_log_message(MIX_LOG_INFO, "compiling %s for %s: %.0f s", watch->name, mix_xla_plugin()->platform,
                    mix_clock(CLOCK_MONOTONIC) - watch->began);
  leave(watch);
  return NULL;
}

mix_xla_watch *mix_xla_watch_begin(const char *name) {
  pthread_t thread;
  pthread_condattr_t clock;
  sigset_t all, former;
  mix_xla_watch *watch = mix_calloc(1, sizeof *watch);
  if (!watch) return NULL;
  mix_keep_library_loaded();
  watch->began = mix_clock(CLOCK_MONOTONIC);
  watch->users = 2;
  snprintf(watch->name, sizeof watch->name, "%s", name);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&watch->lock, NULL);
  pthread_cond_init(&watch->changed, &clock);
  pthread_condattr_destroy(&clock);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former); /* they are the program's threads' to handle */
  if (pthread_create(&thread, NULL, tell, watch))
    watch->users = 1;
  else
    pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &former, NULL);
  return watch;
}

void mix_xla_watch_end(mix_xla_watch *watch) {
  if (watch) leave(watch);
}
