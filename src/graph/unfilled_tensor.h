/* Finished tensors around memory that is still to be filled, so that readers and batches write each value once. */
#ifndef MIX_GRAPH_UNFILLED_TENSOR_H
#define MIX_GRAPH_UNFILLED_TENSOR_H

#include "tensor/buffer.h"
#include <mixtape/tensor.h>

/* A buffer of that many bytes: `*buffer` itself where nothing else refers to it and it is large enough, else a new one, which takes its
 * place (the old one is released). The caller keeps the reference. NULL with the error recorded. */
mix_buffer *mix_buffer_reuse(mix_buffer **buffer, size_t bytes);
/* A scoped finished tensor of the buffer's first bytes. */
mix_tensor *mix_tensor_of_buffer(mix_buffer *buffer, mix_dtype dtype, mix_shape shape);
/* A scoped finished tensor of new memory; `*data` is where its elements go. */
mix_tensor *mix_tensor_unfilled(mix_dtype dtype, mix_shape shape, void **data);

#endif
