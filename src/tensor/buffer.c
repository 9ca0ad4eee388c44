#include "tensor/buffer.h"
#include "base/alloc.h"

static void finalize(void *object) {
  mix_buffer *buffer = object;
  if (buffer->whole)
    mix_release(buffer->whole);
  else if (buffer->release)
    buffer->release(buffer->data);
  else
    mix_free_buffer(buffer->data, buffer->bytes);
}

/* The recycle hook may give the buffer to another thread at once, so only the owner is used after the
 * call. */
static bool recycle(void *object) {
  mix_buffer *buffer = object;
  if (!buffer->recycle) return false;
  void *owner = buffer->owner;
  buffer->recycle(buffer, owner);
  mix_release(owner);
  return true;
}

const mix_class mix_buffer_class = {.name = "buffer", .finalize = finalize, .recycle = recycle};

mix_buffer *mix_buffer_new(size_t bytes) {
  void *data = mix_alloc_buffer(bytes);
  if (!data) return NULL;
  mix_buffer *buffer = mix_object_new(sizeof *buffer, &mix_buffer_class);
  if (!buffer) {
    mix_free_buffer(data, bytes);
    return NULL;
  }
  buffer->data = data;
  buffer->bytes = bytes;
  return buffer;
}

static void keep(void *data) { (void)data; }

mix_buffer *mix_buffer_wrap(void *data, size_t bytes, void (*release)(void *data)) {
  mix_buffer *buffer = mix_object_new(sizeof *buffer, &mix_buffer_class);
  if (!buffer) return NULL;
  buffer->data = data;
  buffer->bytes = bytes;
  buffer->release = release ? release : keep;
  return buffer;
}

mix_buffer *mix_buffer_part(mix_buffer *whole, size_t offset, size_t bytes) {
  mix_buffer *buffer = mix_object_new(sizeof *buffer, &mix_buffer_class);
  if (!buffer) return NULL;
  buffer->data = (char *)whole->data + offset;
  buffer->bytes = bytes;
  buffer->whole = mix_retain(whole);
  return buffer;
}
