/* Reference-counted storage of finished values. */
#ifndef MIX_TENSOR_BUFFER_H
#define MIX_TENSOR_BUFFER_H

#include "base/object.h"

typedef struct mix_buffer {
  mix_object object;
  void *data;
  size_t bytes;
  void (*release)(void *data); /* foreign memory; NULL: the library's own */
  void (*recycle)(struct mix_buffer *buffer, void *owner); /* back to its pool instead of freed; NULL: none */
  void *owner;                                             /* retained by the buffer while it is out of the pool */
  struct mix_buffer *whole;                                /* that it is a part of, retained; NULL: none */
} mix_buffer;

extern const mix_class mix_buffer_class;
/* Not zeroed; one reference, the caller's.
 * Pools: to hand a buffer out, set recycle, owner = mix_retain(pool) and (when it comes from the pool) references to 1. When its
 * references are gone `recycle(buffer, owner)` runs on the releasing thread, must keep the pointer, and the owner's reference is given
 * back after it. To free a pooled buffer: recycle = NULL, references = 1, mix_release. */
mix_buffer *mix_buffer_new(size_t bytes);
/* Memory of someone else; `release` NULL: never freed by the buffer. On failure (NULL) the memory stays the caller's. */
mix_buffer *mix_buffer_wrap(void *data, size_t bytes, void (*release)(void *data));
/* Bytes [offset, offset + bytes) of `whole`, but not of a variable's, whose old value moves. All of it lives as long as a part. */
mix_buffer *mix_buffer_part(mix_buffer *whole, size_t offset, size_t bytes);

#endif
