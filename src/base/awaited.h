/* A number that threads wait for to change. Whoever waits spins briefly, then sleeps. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* Pauses before a thread sleeps: 30 to 90 us, about what it takes to sleep and to be woken, so that waiting
 * costs at most twice the better of the two. */
enum { MIX_SPINS = 2000 };

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

/* Returns once the number is another one. */
void mix_awaited_wait(mix_awaited *awaited, uint64_t number, int spins);
