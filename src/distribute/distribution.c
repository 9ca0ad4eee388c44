/* Distributions: that of the processes started together, and those of communicators of a host program. */
#include "distribute/distribute.h"

#include "base/error.h"
#include "base/object.h"
#include "base/processor.h"
#include "distribute/communicators.h"
#include "distribute/exchange.h"
#include "distribute/launcher.h"
#include "distribute/plugin.h"
#include "graph/variable.h"
#include <mixtape/device.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct mix_distribution {
  mix_object object;
  mix_exchange *exchange;         /* NULL: one process */
  mix_communicator *communicator; /* NULL: one rank */
  int rank, ranks;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER; /* two threads would both start MPI */
static mix_distribution *only;              /* of mix_distribution_mpi: borrowed, while it lives */
static _Atomic(mix_distribution *) current; /* retained */
static atomic_bool ended;                   /* MPI starts once in a process */

static void distribution_finalize(void *object) {
  mix_distribution *distribution = object;
  pthread_mutex_lock(&lock);
  const bool started = distribution == only;
  if (started) only = NULL;
  ended |= started && distribution->exchange;
  pthread_mutex_unlock(&lock);
  mix_communicator_let_go(distribution->communicator);
  if (distribution->exchange) mix_exchange_close(distribution->exchange);
}

static const mix_class distribution_class = {.name = "distribution", .finalize = distribution_finalize};

static mix_distribution *new_distribution(void) {
  mix_distribution *made = mix_object_new(sizeof *made, &distribution_class);
  if (made) made->ranks = 1;
  return made;
}

/* Takes `made`. NULL with the error recorded. */
static mix_distribution *join(mix_distribution *made, const mix_transport *transport, const int *host) {
  if (made && transport)
    made->exchange = host ? mix_exchange_open_on(transport, *host) : mix_exchange_open(transport);
  if (!made || !made->exchange) return mix_release(made), NULL;
  const mix_exchange_place place = mix_exchange_place_of(made->exchange);
  made->rank = place.rank;
  made->ranks = place.ranks;
  if (place.ranks > 1 && !(made->communicator = mix_communicator_take(made->exchange)))
    return mix_release(made), NULL;
  return made;
}

/* ---- the processes that were started together ---- */

static mix_distribution *start(void) {
  if (ended)
    return mix_fail_runtime("distribution_mpi: MPI has ended in this process and cannot start again");
  if (mix_mpi_is_missing())
    return mix_fail_runtime(
        "distribution_mpi: srun started several processes without MPI, which would each train "
        "alone; give it --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)");
  mix_distribution *made = new_distribution();
  return !made || !mix_mpi_launched() ? made : join(made, mix_mpi_plugin(), NULL);
}

/* Retained; NULL: none. One whose last reference is gone waits for the lock in its finalizer. */
static mix_distribution *find_only(void) {
  pthread_mutex_lock(&lock);
  mix_distribution *found = only && mix_retain_alive(only) ? only : NULL;
  if (only && !found) {
    ended |= only->exchange != NULL;
    only = NULL;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

mix_distribution *mix_distribution_mpi(void) {
  if (mix_failed()) return NULL;
  pthread_mutex_lock(&starting);
  mix_distribution *found = find_only();
  if (!found && (found = start())) {
    pthread_mutex_lock(&lock);
    only = found;
    pthread_mutex_unlock(&lock);
  }
  pthread_mutex_unlock(&starting);
  return mix_scoped(found);
}

/* ---- the processes of a host's communicator ---- */

mix_distribution *mix_distribution_mpi_from(int communicator, const char *flavor) {
  if (mix_failed()) return NULL;
  const mix_transport *transport = mix_mpi_plugin_of_host(flavor);
  return mix_scoped(transport ? join(new_distribution(), transport, &communicator) : NULL);
}

/* ---- the one in force ---- */

static void share_cores(const mix_distribution *distribution) {
  const mix_exchange_place place = mix_exchange_place_of(distribution->exchange);
  if (getenv("MIXTAPE_THREADS") || getenv("OMP_NUM_THREADS")) return;
  if (mix_threads() != mix_cpu_cores()) return; /* somebody has set it */
  const int share = mix_cpu_cores() / place.sharing;
  mix_set_threads(share > 1 ? share : 1);
}

mix_status mix_set_distribution(mix_distribution *distribution) {
  if (mix_failed()) return mix_error();
  if (distribution && !mix_is(distribution, &distribution_class))
    return mix_fail_status(MIX_TYPE_ERROR, "set_distribution: expected a distribution or NULL");
  mix_communicator *c = distribution ? distribution->communicator : NULL;
  mix_communicator_set(c);
  if (c) share_cores(distribution);
  if (c && !c->rank && distribution != atomic_load(&current)) mix_exchange_log_ranks(distribution->exchange);
  mix_release(atomic_exchange(&current, mix_retain(distribution)));
  return mix_error();
}

/* Do all ranks give the same? */
static bool agree_on_shard(mix_communicator *c, mix_shard shard) {
  int all[c->ranks], own = (int)shard;
  const char *failure = c->gather(c, &own, sizeof own, all);
  if (failure) return mix_fail_runtime("distribution_shard: %s", failure);
  for (int r = 0; r < c->ranks; r++)
    if (all[r] != all[0])
      return mix_fail_value("distribution_shard: rank %d gives %d, rank 0 gives %d; all ranks must give the "
                            "same",
                            r, all[r], all[0]);
  return true;
}

mix_status mix_distribution_shard(mix_distribution *distribution, mix_shard shard) {
  if (mix_failed()) return mix_error();
  if (!mix_given(distribution, &distribution_class, "distribution_shard", "a distribution"))
    return mix_error();
  mix_communicator *c = distribution->communicator;
  const bool known = shard == MIX_SHARD_NOTHING || shard == MIX_SHARD_OPTIMIZER;
  /* Others wait for this rank's answer, whatever it is. */
  if (c && !agree_on_shard(c, shard)) return mix_error();
  if (!known)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "distribution_shard: there is no kind %d; expected MIX_SHARD_NOTHING or "
                           "MIX_SHARD_OPTIMIZER",
                           (int)shard);
  if (!c && shard != MIX_SHARD_NOTHING)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "distribution_shard: the distribution has one rank, so that nothing can be "
                           "divided; start several with mpirun");
  if (c && c->shards_optimizer != (shard == MIX_SHARD_OPTIMIZER)) {
    c->shards_optimizer = shard == MIX_SHARD_OPTIMIZER;
    mix_capture_epoch_move(); /* functions have been captured for the other form */
  }
  return MIX_OK;
}

mix_distribution *mix_distribution_current(void) { return atomic_load(&current); }
int mix_distribution_rank(const mix_distribution *distribution) {
  return mix_is(distribution, &distribution_class) ? distribution->rank : 0;
}
int mix_distribution_size(const mix_distribution *distribution) {
  return mix_is(distribution, &distribution_class) ? distribution->ranks : 1;
}
void mix_distribution_end_job(mix_distribution *distribution, int code) {
  if (!mix_is(distribution, &distribution_class) || !distribution->exchange) return;
  if (distribution->ranks > 1) mix_wait_for_launcher();
  mix_exchange_end_job(distribution->exchange, code);
}
mix_distribution_times mix_distribution_measured(const mix_distribution *distribution) {
  if (!mix_is(distribution, &distribution_class) || !distribution->exchange)
    return (mix_distribution_times){0};
  const mix_exchange_times times = mix_exchange_times_of(distribution->exchange);
  return (mix_distribution_times){.communication = times.working, .waited = times.waited};
}

int mix_rank(void) {
  const mix_communicator *c = mix_communicator_in_force();
  return c ? c->rank : 0;
}
int mix_rank_count(void) {
  const mix_communicator *c = mix_communicator_in_force();
  return c ? c->ranks : 1;
}
