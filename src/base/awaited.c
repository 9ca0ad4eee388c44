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
#include <time.h>
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

static int64_t nanoseconds(void) {
  struct timespec t = {0};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

bool mix_awaited_changes(mix_awaited *awaited, uint64_t number, int patience) {
  enum { PAUSES = 16 }; /* from one look at the clock to the next, which costs about two pauses */
  for (int64_t end = 0; patience > 0;) {
    for (int i = 0; i < PAUSES; i++) {
      if (mix_awaited_number(awaited) != number) return true;
      mix_pause();
    }
    const int64_t now = nanoseconds();
    if (!end) end = now + patience;
    if (now >= end) break;
  }
  return mix_awaited_number(awaited) != number;
}

void mix_awaited_wait(mix_awaited *awaited, uint64_t number, int patience) {
  if (mix_awaited_changes(awaited, number, patience)) return;
  atomic_fetch_add(&awaited->sleepers, 1);
  /* The kernel compares once more before it sleeps, so that no change in between is missed. */
  while (atomic_load(&awaited->number) == number)
    syscall(SYS_futex, word_of(awaited), FUTEX_WAIT_PRIVATE, (uint32_t)number, NULL, NULL, 0);
  atomic_fetch_sub(&awaited->sleepers, 1);
}
