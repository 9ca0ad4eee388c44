/* Finished tensors around memory that is still to be filled, so that readers and batches write each
 * element once. */
#pragma once

#include "tensor/memory.h"
#include <mixtape/tensor.h>

/* A scoped finished tensor of the first bytes of the buffer. */
mix_tensor *mix_tensor_of_memory(mix_memory *memory, mix_dtype dtype, mix_shape shape);
/* A scoped finished tensor with new memory; `*data` receives the address of its elements. */
mix_tensor *mix_tensor_unfilled(mix_dtype dtype, mix_shape shape, void **data);
