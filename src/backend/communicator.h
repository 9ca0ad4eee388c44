/* The other processes that run the same plans, as the kernels of collectives see them. All ranks make the
 * same calls in the same order, each on a thread that may wait. */
#pragma once

#include "graph/division.h"
#include <mixtape/dtype.h>

enum { MIX_COMMUNICATORS = 255 }; /* in the life of a process, of different rank or number of ranks */

typedef struct mix_communicator mix_communicator;
struct mix_communicator {
  int rank, ranks;
  bool on_caller; /* made by the thread that calls the library, because MPI allows no other */
  /* Do optimizers divide their state among the ranks? Changed by mix_distribution_shard alone. */
  bool shards_optimizer;
  unsigned number; /* 1 to MIX_COMMUNICATORS: part of the key of plans */
  /* Each returns NULL, or why it failed: interned text. After a failure every call fails. */
  /* Begins to replace the elements by their sums over the ranks. The memory is not to be touched until
   * `finish` for its address. */
  const char *(*reduce)(mix_communicator *self, void *data, mix_dtype dtype, int64_t count);
  const char *(*finish)(mix_communicator *self, const void *data);
  /* As `reduce`, but each rank gets the sums of its share alone; what becomes of the rest is open. */
  const char *(*scatter)(mix_communicator *self, void *data, mix_dtype dtype, mix_division division);
  /* Each rank's share of the memory becomes that of all; elements have `size` bytes. */
  const char *(*collect)(mix_communicator *self, void *data, size_t size, mix_division division);
  const char *(*broadcast)(mix_communicator *self, void *data, size_t bytes, int root);
  /* `all` gets the bytes of every rank, in their order. */
  const char *(*gather)(mix_communicator *self, const void *data, size_t bytes, void *all);
};

/* Of the context in force; NULL: one process. */
mix_communicator *mix_communicator_in_force(void);
void mix_communicator_set(mix_communicator *communicator);
