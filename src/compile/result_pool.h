/* Result buffers that return to their plan: a steady state that releases its results allocates none. */
#pragma once

#include "tensor/memory.h"

typedef struct mix_pool mix_pool;
/* A pool of buffers, one size for each result; an object. */
mix_pool *mix_pool_new(const mix_memory_device *device, int count, const size_t *bytes);
/* A buffer for result `index`, reused or new. Only one thread may take; any thread may release. */
mix_memory *mix_pool_take(mix_pool *pool, int index);
