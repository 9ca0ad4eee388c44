/* A number that threads wait for to change. Whoever waits spins briefly, then sleeps. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds before a thread sleeps: about what it takes to sleep and to be woken, so that waiting costs at
 * most twice the better of the two. In time, because a pause takes 10 to 50 ns, as the processor will. */
enum { MIX_PATIENCE = 50000 };

/* Zeroed memory is a valid one. No two values that follow each other may agree in their lower 32 bits. */
typedef struct mix_awaited {
  _Alignas(64) atomic_uint_fast64_t number;
  atomic_int sleepers;
} mix_awaited;

static inline uint64_t mix_awaited_number(mix_awaited *awaited) {
  return atomic_load_explicit(&awaited->number, memory_order_acquire);
}

/* What was written before is visible to whoever sees the new number. */
void mix_awaited_set(mix_awaited *awaited, uint64_t number);
/* Adds one. */
void mix_awaited_next(mix_awaited *awaited);

/* Waits for another number for about `patience` nanoseconds, and does not sleep. True: it is another one. */
bool mix_awaited_changes(mix_awaited *awaited, uint64_t number, int patience);
/* Returns once the number is another one. Sleeps after `patience` nanoseconds. */
void mix_awaited_wait(mix_awaited *awaited, uint64_t number, int patience);
