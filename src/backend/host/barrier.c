/* The barrier of a team of threads. */
#include "backend/host/barrier.h"
#include "backend/host/kernel.h"

void mix_barrier_wait(mix_barrier *barrier, int size) {
  if (size < 2) return;
  const uint64_t generation = atomic_load_explicit(&barrier->generation.number, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) + 1 < size) {
    mix_awaited_wait(&barrier->generation, generation, barrier->patience);
    return;
  }
  atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
  mix_awaited_set(&barrier->generation, generation + 1);
}

void mix_team_barrier(const mix_team *team) { mix_barrier_wait(team->barrier, team->size); }
