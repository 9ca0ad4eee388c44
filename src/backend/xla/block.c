/* Blocks of memory: their buffers and bytes, and what a run does with the values in them. */
#include "backend/xla/block.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/memory_inside.h"
#include <string.h>

/* ---- blocks; the caller holds the lock ---- */

void mix_xla_drop_buffer(mix_xla_block *b) {
  if (b->buffer) mix_pjrt_destroy(mix_xla_plugin(), PJRT_BUFFER_DESTROY, b->buffer);
  b->buffer = NULL;
}

void mix_xla_drop_host(mix_xla_block *b) {
  if (b->host) mix_free_buffer(b->host, b->bytes);
  b->host = NULL;
}

/* The host's bytes, with the value of the buffer if there is one. */
bool mix_xla_make_host(mix_xla_block *b) {
  if (b->host) return true;
  if (!(b->host = mix_alloc_buffer(b->bytes))) return false;
  if (!b->buffer || mix_pjrt_download(mix_xla_plugin(), b->buffer, b->type, b->host)) return true;
  mix_xla_drop_host(b);
  return false;
}

static bool is_type(const mix_xla_block *b, mix_type type) {
  return b->type.dtype == type.dtype && mix_shape_equal(b->type.shape, type.shape);
}

pjrt_buffer *mix_xla_make_buffer(mix_xla_block *b, mix_type type) {
  if (b->buffer && is_type(b, type)) return b->buffer;
  if (!mix_xla_make_host(b)) return NULL;
  mix_xla_drop_buffer(b);
  b->buffer = mix_pjrt_upload(mix_xla_plugin(), b->host, type);
  b->type = type;
  if (b->buffer && !b->maps) mix_xla_drop_host(b);
  return b->buffer;
}

/* ---- handles ---- */

mix_memory *mix_xla_whole(mix_memory *memory) {
  while (memory->whole) memory = memory->whole;
  return memory;
}

mix_xla_block *mix_xla_block_of(mix_memory *memory) {
  return (mix_xla_block *)(void *)mix_xla_whole(memory)->address;
}
size_t mix_xla_offset_of(mix_memory *memory) {
  return (size_t)(memory->address - mix_xla_whole(memory)->address);
}

/* ---- values ---- */

bool mix_xla_may_donate(mix_memory *memory) {
  const mix_xla_block *b = mix_xla_block_of(memory);
  return mix_references(memory) == 1 + b->kept && !memory->whole && !b->maps;
}

void mix_xla_count_kept(mix_memory *memory, int more) { mix_xla_block_of(memory)->kept += more; }

pjrt_buffer *mix_xla_take_buffer(mix_memory *memory, mix_type *type) {
  mix_xla_block *b = mix_xla_block_of(memory);
  pthread_mutex_lock(&b->lock);
  pjrt_buffer *buffer = b->buffer;
  *type = b->type;
  b->buffer = NULL;
  pthread_mutex_unlock(&b->lock);
  return buffer;
}

void mix_xla_give_buffer(mix_memory *memory, pjrt_buffer *buffer, mix_type type) {
  mix_xla_block *b = mix_xla_block_of(memory);
  pthread_mutex_lock(&b->lock);
  mix_xla_drop_buffer(b);
  if (!b->maps) mix_xla_drop_host(b);
  b->buffer = buffer;
  b->type = type;
  pthread_mutex_unlock(&b->lock);
}

/* On failure the value stays as it is, and reading it fails as that of the run did. */
bool mix_xla_copy_value(mix_memory *to, mix_memory *from) {
  mix_xla_block *a = mix_xla_block_of(to), *b = mix_xla_block_of(from);
  char *bytes = mix_alloc_buffer(a->bytes);
  if (!bytes) return false;
  pthread_mutex_lock(&b->lock);
  const bool good = mix_xla_make_host(b);
  if (good) memcpy(bytes, b->host + mix_xla_offset_of(from), a->bytes);
  if (good && b->buffer && !b->maps) mix_xla_drop_host(b);
  pthread_mutex_unlock(&b->lock);
  if (!good) return mix_free_buffer(bytes, a->bytes), false;
  pthread_mutex_lock(&a->lock);
  mix_xla_drop_buffer(a);
  mix_xla_drop_host(a);
  a->host = bytes;
  pthread_mutex_unlock(&a->lock);
  return true;
}
