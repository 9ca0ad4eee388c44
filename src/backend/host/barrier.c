/* The spin barrier of a team of threads. */
#include "backend/host/barrier.h"
#include "backend/host/kernel.h"
#include <sched.h>

void mix_barrier_wait(mix_barrier *barrier, int size) {
  if (size < 2) return;
  unsigned generation = atomic_load_explicit(&barrier->generation, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) + 1 == size) {
    atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&barrier->generation, generation + 1, memory_order_release);
    return;
  }
  for (int spin = 0; atomic_load_explicit(&barrier->generation, memory_order_acquire) == generation; spin++) {
    if (spin < barrier->spins)
      __builtin_ia32_pause();
    else
      sched_yield(); /* the last thread may need this core */
  }
}

void mix_team_barrier(const mix_team *team) { mix_barrier_wait(team->barrier, team->size); }
