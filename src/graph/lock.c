#include "graph/lock.h"

#include <pthread.h>

static pthread_mutex_t graph = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t storages = PTHREAD_RWLOCK_INITIALIZER;
static _Thread_local int depth;

void mix_graph_lock(void) {
  if (depth++ == 0) pthread_mutex_lock(&graph);
}
void mix_graph_unlock(void) {
  if (--depth == 0) pthread_mutex_unlock(&graph);
}

void mix_storages_hold(void) { pthread_rwlock_rdlock(&storages); }
void mix_storages_let_go(void) { pthread_rwlock_unlock(&storages); }
void mix_storages_wait(void) {
  pthread_rwlock_wrlock(&storages);
  pthread_rwlock_unlock(&storages);
}
