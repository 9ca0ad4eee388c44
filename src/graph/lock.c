#include "graph/lock.h"

#include "base/deferred_log.h"

#include <pthread.h>

static pthread_mutex_t graph = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t storages = PTHREAD_RWLOCK_INITIALIZER;
static _Thread_local int depth;

/* Messages are deferred while the graph is locked, because the log callback may need the lock. */
void mix_graph_lock(void) {
  if (depth++ > 0) return;
  mix_log_defer();
  pthread_mutex_lock(&graph);
}
void mix_graph_unlock(void) {
  if (--depth > 0) return;
  pthread_mutex_unlock(&graph);
  mix_log_flush();
}

void mix_storages_pin(void) {
  mix_log_defer();
  pthread_rwlock_rdlock(&storages);
}
void mix_storages_unpin(void) {
  pthread_rwlock_unlock(&storages);
  mix_log_flush();
}
void mix_storages_wait(void) {
  pthread_rwlock_wrlock(&storages);
  pthread_rwlock_unlock(&storages);
}
