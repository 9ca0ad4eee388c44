/* Finished tensors around memory that is still to be filled, so that readers and batches write each
 * element once. */
#pragma once

#include "tensor/memory.h"
#include <mixtape/tensor.h>

/* Returns `*memory` if nothing else refers to it and it has at least `bytes` bytes. Otherwise releases it
 * and stores a new one there. The caller owns the reference. NULL with the error recorded. */
mix_memory *mix_memory_reuse(mix_memory **memory, size_t bytes);
/* A scoped finished tensor of the first bytes of the buffer. */
mix_tensor *mix_tensor_of_memory(mix_memory *memory, mix_dtype dtype, mix_shape shape);
/* A scoped finished tensor with new memory; `*data` receives the address of its elements. */
mix_tensor *mix_tensor_unfilled(mix_dtype dtype, mix_shape shape, void **data);
