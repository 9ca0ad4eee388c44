/* Waiting by futex(2). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "base/awaited.h"
#include "base/machine.h"
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The lower half of the number, which futex compares. */
static void *word_of(mix_awaited *awaited) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return &awaited->number;
#else
  return (char *)&awaited->number + sizeof awaited->number - sizeof(uint32_t);
#endif
}

static void wake(mix_awaited *awaited) {
  if (atomic_load(&awaited->sleepers))
    syscall(SYS_futex, word_of(awaited), FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Sequentially consistent, as in waiting: a thread about to sleep sees the new number, or is counted. */
void mix_awaited_set(mix_awaited *awaited, uint64_t number) {
  atomic_store(&awaited->number, number);
  wake(awaited);
}

void mix_awaited_next(mix_awaited *awaited) {
  atomic_fetch_add(&awaited->number, 1);
  wake(awaited);
}

void mix_awaited_wait(mix_awaited *awaited, uint64_t number, int spins) {
  for (int spin = 0; spin < spins; spin++) {
    if (mix_awaited_number(awaited) != number) return;
    mix_pause();
  }
  atomic_fetch_add(&awaited->sleepers, 1);
  /* The kernel compares once more before it sleeps, so that no change in between is missed. */
  while (atomic_load(&awaited->number) == number)
    syscall(SYS_futex, word_of(awaited), FUTEX_WAIT_PRIVATE, (uint32_t)number, NULL, NULL, 0);
  atomic_fetch_sub(&awaited->sleepers, 1);
}
