/* Reference-counted storage of tensor values. */
#ifndef MIX_TENSOR_BUFFER_H
#define MIX_TENSOR_BUFFER_H

#include "base/object.h"

typedef struct mix_buffer {
  mix_object object;
  void *data;
  size_t bytes;
  void (*release)(void *data); /* frees memory of another owner; NULL: the library allocated it */
  /* returns the buffer to its pool instead of freeing it; NULL: no pool */
  void (*recycle)(struct mix_buffer *buffer, void *owner);
  void *owner; /* retained by the buffer while it is outside the pool */
  struct mix_buffer *whole; /* the buffer that this one is a part of, retained; NULL: none */
} mix_buffer;

extern const mix_class mix_buffer_class;
/* Not zeroed; one reference, owned by the caller.
 * Pools: to hand out a buffer, set `recycle` and owner = mix_retain(pool); if it comes from the pool, also
 * set references to 1. When its references are gone, `recycle(buffer, owner)` runs on the releasing thread
 * and must keep the pointer. The owner's reference is released after it. To free a pooled buffer: recycle
 * = NULL, references = 1, mix_release. */
mix_buffer *mix_buffer_new(size_t bytes);
/* Wraps memory of another owner. With `release` NULL the buffer never frees it. On failure (NULL) the
 * caller still owns the memory. */
mix_buffer *mix_buffer_wrap(void *data, size_t bytes, void (*release)(void *data));
/* Bytes [offset, offset + bytes) of `whole`, which lives at least as long as the part. Not for the buffer
 * of a variable, because its old value moves. */
mix_buffer *mix_buffer_part(mix_buffer *whole, size_t offset, size_t bytes);

#endif
