#include "graph/retired_storage.h"

#include "base/alloc.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct storages {
  mix_memory **items;
  int count, capacity;
} storages;

static pthread_mutex_t retiring = PTHREAD_MUTEX_INITIALIZER;
static storages retired;
static atomic_bool any;
static atomic_int running;

/* A run that begins after the count was seen to be 0 sees what has taken the places of the retired ones. */
static void release_retired(void) {
  storages free = {0};
  pthread_mutex_lock(&retiring);
  if (!atomic_fetch_add(&running, 0)) {
    free = retired;
    retired = (storages){0};
    atomic_store(&any, false);
  }
  pthread_mutex_unlock(&retiring);
  for (int i = 0; i < free.count; i++) mix_release(free.items[i]);
  mix_free(free.items);
}

void mix_runs_begin(void) { atomic_fetch_add(&running, 1); }
void mix_runs_end(void) {
  if (atomic_fetch_sub(&running, 1) == 1 && atomic_load(&any)) release_retired();
}

bool mix_storage_swap(_Atomic(mix_memory *) *place, mix_memory *memory) {
  pthread_mutex_lock(&retiring);
  const bool good = mix_reserve(&retired.items, &retired.capacity, retired.count + 1, sizeof *retired.items);
  if (good) {
    retired.items[retired.count++] = atomic_exchange(place, memory);
    atomic_store(&any, true);
  }
  pthread_mutex_unlock(&retiring);
  if (good) release_retired();
  return good;
}
