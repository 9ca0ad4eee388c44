/* Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011). */
#pragma once

#include <stdint.h>

typedef struct mix_philox { uint32_t v[4]; } mix_philox;
/* Four words from a 64-bit key and a 128-bit counter (counter, index). In the paper's notation: key =
 * {low, high of key}, counter = {low, high of index, low, high of counter}. */
mix_philox mix_philox_block(uint64_t key, uint64_t counter, uint64_t index);
/* Word `index` of the stream (key, counter): word index % 4 of block index / 4. */
uint32_t mix_philox_word(uint64_t key, uint64_t counter, uint64_t index);

/* The default seed of the next layer, initializer or dataset created without one: a function of the global
 * seed (mix_set_seed, which philox.c also defines; 0 until then) and the creation number. */
uint64_t mix_next_seed(void);
/* Save and restore the seed and the creation number, for a checkpoint. */
void mix_seed_state(uint64_t state[2]);
void mix_seed_restore(const uint64_t state[2]);

/* Uniform in [0, n) without bias. Advances *position by two words a draw; it must be even. n = 0 gives 0. */
uint64_t mix_philox_below(uint64_t key, uint64_t counter, uint64_t *position, uint64_t n);
