/* Result buffers that come back to their plan: a steady state whose results are released allocates none. */
#ifndef MIX_COMPILE_RESULT_POOL_H
#define MIX_COMPILE_RESULT_POOL_H

#include "tensor/buffer.h"

typedef struct mix_pool mix_pool;
/* A pool of buffers of these sizes, one size a result; an object. */
mix_pool *mix_pool_new(int count, const size_t *bytes);
/* A buffer for result `index`: one that came back, else a new one. One thread at a time; releases may come from any. */
mix_buffer *mix_pool_take(mix_pool *pool, int index);

#endif
