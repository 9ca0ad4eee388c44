/* Memory of the device "xla". A handle's address names a block; a buffer of it is made with the dtype and
 * shape that a run asks for. */
#include "backend/xla/block.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/memory_inside.h"
#include <string.h>

/* ---- handles ---- */

static bool allocate(mix_memory *memory) {
  mix_xla_block *b = mix_calloc(1, sizeof *b);
  if (!b) return false;
  pthread_mutex_init(&b->lock, NULL);
  b->bytes = memory->bytes;
  memory->address = (char *)b;
  return true;
}

static void deallocate(mix_memory *memory) {
  mix_xla_block *b = mix_xla_block_of(memory);
  mix_xla_drop_buffer(b);
  mix_xla_drop_host(b);
  pthread_mutex_destroy(&b->lock);
  mix_free(b);
}

/* While another error is pending, finished values can still be read. */
static bool settle(mix_memory *memory, bool for_writing) {
  if (!mix_xla_usable()) return false;
  const mix_memory *whole = mix_xla_whole(memory);
  const mix_ticket ticket = for_writing ? whole->used : whole->written;
  const bool pending = mix_failed();
  return !ticket || mix_xla_wait(ticket) == MIX_OK || pending;
}

static void *map(mix_memory *memory, mix_map_mode mode) {
  mix_xla_block *b = mix_xla_block_of(memory);
  if (!settle(memory, mode == MIX_MAP_WRITE)) return NULL;
  pthread_mutex_lock(&b->lock);
  const bool good = mix_xla_make_host(b);
  if (good) b->maps++;
  if (good && mode == MIX_MAP_WRITE) mix_xla_drop_buffer(b);
  pthread_mutex_unlock(&b->lock);
  return good ? b->host + mix_xla_offset_of(memory) : NULL;
}

static void unmap(mix_memory *memory) {
  mix_xla_block *b = mix_xla_block_of(memory);
  if (mix_pjrt_lost()) return; /* its lock may be held for ever */
  pthread_mutex_lock(&b->lock);
  if (--b->maps == 0 && b->buffer) mix_xla_drop_host(b);
  pthread_mutex_unlock(&b->lock);
}

static bool copy_in(mix_memory *to, size_t offset, const void *from, size_t bytes) {
  mix_xla_block *b = mix_xla_block_of(to);
  if (!settle(to, true)) return false;
  pthread_mutex_lock(&b->lock);
  offset += mix_xla_offset_of(to);
  if (bytes == b->bytes) mix_xla_drop_buffer(b); /* nothing of it stays */
  const bool good = mix_xla_make_host(b);
  if (good) mix_xla_drop_buffer(b);
  if (good && bytes) memcpy(b->host + offset, from, bytes);
  pthread_mutex_unlock(&b->lock);
  return good;
}

static bool copy_out(mix_memory *from, size_t offset, void *to, size_t bytes) {
  mix_xla_block *b = mix_xla_block_of(from);
  if (!settle(from, false)) return false;
  pthread_mutex_lock(&b->lock);
  offset += mix_xla_offset_of(from);
  bool good;
  if (b->buffer && !b->host && bytes == b->bytes) {
    good = mix_pjrt_download(mix_xla_plugin(), b->buffer, b->type, to);
  } else {
    good = mix_xla_make_host(b);
    if (good && bytes) memcpy(to, b->host + offset, bytes);
    if (good && b->buffer && !b->maps) mix_xla_drop_host(b);
  }
  pthread_mutex_unlock(&b->lock);
  return good;
}

static bool is_ready(mix_memory *memory) {
  const mix_ticket ticket = mix_xla_whole(memory)->written;
  return !mix_pjrt_lost() && (!ticket || mix_xla_is_over(ticket));
}

const mix_memory_device mix_xla_memory = {.name = "xla",
                                          .alignment = MIX_BUFFER_ALIGNMENT,
                                          .allocate = allocate,
                                          .deallocate = deallocate,
                                          .map = map,
                                          .unmap = unmap,
                                          .copy_in = copy_in,
                                          .copy_out = copy_out,
                                          .is_ready = is_ready};

/* ---- runs ---- */

static pjrt_buffer *upload_copy(mix_memory *memory, mix_type type) {
  const void *bytes = mix_memory_map(memory, MIX_MAP_READ);
  pjrt_buffer *buffer = bytes ? mix_pjrt_upload(mix_xla_plugin(), bytes, type) : NULL;
  if (bytes) mix_memory_unmap(memory);
  return buffer;
}

static void unpin(mix_memory *memory) { mix_pjrt_unpin(mix_xla_plugin(), memory->address); }

/* Pinning takes longer than a copy, and pays where copies come again. */
static void pin(mix_memory *memory) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  if (!memory->reused || memory->bytes < MIX_XLA_LARGE_COPY) return;
  pthread_mutex_lock(&lock);
  if (!memory->unpin && mix_pjrt_pin(mix_xla_plugin(), memory->address, memory->bytes)) memory->unpin = unpin;
  pthread_mutex_unlock(&lock);
}

/* The plug-in may read memory of the host after the call, which is held until then. */
static pjrt_buffer *begin_upload(mix_memory *memory, mix_type type, mix_xla_upload *upload) {
  const void *bytes = mix_memory_map(memory, MIX_MAP_READ);
  if (!bytes) return NULL;
  const bool stays = memory->device == &mix_host_memory && mix_memory_stays(memory);
  if (stays) pin(memory);
  pjrt_buffer *buffer = mix_pjrt_begin_upload(mix_xla_plugin(), bytes, type, stays, &upload->done);
  mix_memory_unmap(memory);
  upload->bytes = buffer ? memory->bytes : 0;
  if (stays && upload->done) upload->memory = mix_retain(memory);
  return buffer;
}

pjrt_buffer *mix_xla_buffer(mix_memory *memory, mix_type type, bool *own, mix_xla_upload *upload) {
  const bool here = memory->device == &mix_xla_memory;
  mix_xla_block *b = here ? mix_xla_block_of(memory) : NULL;
  *own = false;
  if (!mix_xla_usable()) return NULL;
  *own = !here || memory->bytes != b->bytes;
  if (*own) return upload ? begin_upload(memory, type, upload) : upload_copy(memory, type);
  pthread_mutex_lock(&b->lock);
  pjrt_buffer *buffer = mix_xla_make_buffer(b, type);
  pthread_mutex_unlock(&b->lock);
  return buffer;
}
