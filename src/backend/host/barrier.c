/* The barrier of a team of threads. */
#define _GNU_SOURCE /* syscall */
#include "backend/host/barrier.h"
#include "backend/host/kernel.h"
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel compares the value once more, so that a release between the caller's look and its sleep is not
 * missed. The caller looks again, whatever ended the sleep. */
static void sleep_while(atomic_uint *word, unsigned value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake_all(atomic_uint *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void mix_barrier_wait(mix_barrier *barrier, int size) {
  if (size < 2) return;
  const unsigned generation = atomic_load_explicit(&barrier->generation, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) + 1 == size) {
    atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
    /* Sequentially consistent, as below: a thread about to sleep sees the new generation, or is counted. */
    atomic_store(&barrier->generation, generation + 1);
    if (atomic_load(&barrier->sleepers)) wake_all(&barrier->generation);
    return;
  }
  for (int spin = 0; spin < barrier->spins; spin++) {
    if (atomic_load_explicit(&barrier->generation, memory_order_acquire) != generation) return;
    __builtin_ia32_pause();
  }
  atomic_fetch_add(&barrier->sleepers, 1);
  while (atomic_load(&barrier->generation) == generation) sleep_while(&barrier->generation, generation);
  atomic_fetch_sub(&barrier->sleepers, 1);
}

void mix_team_barrier(const mix_team *team) { mix_barrier_wait(team->barrier, team->size); }
