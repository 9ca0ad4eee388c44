/* A table of communicators, which fills up from its beginning. */
#include "distribute/communicators.h"

#include "base/error.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct place {
  mix_communicator communicator;    /* first: its functions get its address */
  _Atomic(mix_exchange *) exchange; /* NULL: it was let go */
} place;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static place places[MIX_COMMUNICATORS];
static int used;

static const char over[] = "the distribution that this was compiled for has ended";

static mix_exchange *exchange_of(mix_communicator *self) { return atomic_load(&((place *)self)->exchange); }

static const char *reduce(mix_communicator *self, void *data, mix_dtype dtype, int64_t count) {
  mix_exchange *x = exchange_of(self);
  return x ? mix_exchange_reduce(x, data, dtype, count) : over;
}
static const char *finish(mix_communicator *self, const void *data) {
  mix_exchange *x = exchange_of(self);
  return x ? mix_exchange_finish(x, data) : over;
}
static const char *scatter(mix_communicator *self, void *data, mix_dtype dtype, mix_division division) {
  mix_exchange *x = exchange_of(self);
  return x ? mix_exchange_scatter(x, data, dtype, division) : over;
}
static const char *collect(mix_communicator *self, void *data, size_t size, mix_division division) {
  mix_exchange *x = exchange_of(self);
  return x ? mix_exchange_collect(x, data, size, division) : over;
}
static const char *broadcast(mix_communicator *self, void *data, size_t bytes, int root) {
  mix_exchange *x = exchange_of(self);
  return x ? mix_exchange_broadcast(x, data, bytes, root) : over;
}
static const char *gather(mix_communicator *self, const void *data, size_t bytes, void *all) {
  mix_exchange *x = exchange_of(self);
  return x ? mix_exchange_gather(x, data, bytes, all) : over;
}

/* With the lock. */
static place *free_place(mix_exchange_place of) {
  for (int i = 0; i < used; i++) {
    const mix_communicator *c = &places[i].communicator;
    if (!atomic_load(&places[i].exchange) && c->rank == of.rank && c->ranks == of.ranks &&
        c->on_caller == of.on_caller)
      return &places[i];
  }
  if (used == MIX_COMMUNICATORS) return NULL;
  place *next = &places[used++];
  next->communicator = (mix_communicator){.rank = of.rank,
                                          .ranks = of.ranks,
                                          .on_caller = of.on_caller,
                                          .number = (unsigned)used,
                                          .reduce = reduce,
                                          .finish = finish,
                                          .scatter = scatter,
                                          .collect = collect,
                                          .broadcast = broadcast,
                                          .gather = gather};
  return next;
}

mix_communicator *mix_communicator_take(mix_exchange *exchange) {
  pthread_mutex_lock(&lock);
  place *found = free_place(mix_exchange_place_of(exchange));
  if (found) found->communicator.shards_optimizer = false, atomic_store(&found->exchange, exchange);
  pthread_mutex_unlock(&lock);
  if (found) return &found->communicator;
  return mix_fail_runtime("distribution: this process has had %d distributions of different size or rank; "
                          "make the distributions once and keep them",
                          MIX_COMMUNICATORS);
}

void mix_communicator_let_go(mix_communicator *communicator) {
  if (communicator) atomic_store(&((place *)communicator)->exchange, NULL);
}
