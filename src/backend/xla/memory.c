/* Memory of the device "xla". A handle's address names a block, whose bytes are a buffer of the plug-in, or
 * bytes of the host until a run needs them: a buffer is made with the dtype and shape that the run asks for.
 * While the host has a block mapped, they are in both places. */
#include "backend/xla/xla.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/memory_inside.h"
#include <pthread.h>
#include <string.h>

typedef struct block {
  pthread_mutex_t lock;
  size_t bytes;
  pjrt_buffer *buffer; /* of `type` */
  mix_type type;
  char *host;
  int maps;
  int kept; /* references of kept values: with the lock of the runs */
} block;

/* ---- blocks; the caller holds the lock ---- */

static void drop_buffer(block *b) {
  if (b->buffer) mix_pjrt_destroy(mix_xla_plugin(), PJRT_BUFFER_DESTROY, b->buffer);
  b->buffer = NULL;
}

static void drop_host(block *b) {
  if (b->host) mix_free_buffer(b->host, b->bytes);
  b->host = NULL;
}

/* The host's bytes, with the value of the buffer if there is one. */
static bool make_host(block *b) {
  if (b->host) return true;
  if (!(b->host = mix_alloc_buffer(b->bytes))) return false;
  if (!b->buffer || mix_pjrt_download(mix_xla_plugin(), b->buffer, b->type, b->host)) return true;
  drop_host(b);
  return false;
}

static bool is_type(const block *b, mix_type type) {
  return b->type.dtype == type.dtype && mix_shape_equal(b->type.shape, type.shape);
}

static pjrt_buffer *make_buffer(block *b, mix_type type) {
  if (b->buffer && is_type(b, type)) return b->buffer;
  if (!make_host(b)) return NULL;
  drop_buffer(b);
  b->buffer = mix_pjrt_upload(mix_xla_plugin(), b->host, type);
  b->type = type;
  if (b->buffer && !b->maps) drop_host(b);
  return b->buffer;
}

/* ---- handles ---- */

mix_memory *mix_xla_whole(mix_memory *memory) {
  while (memory->whole) memory = memory->whole;
  return memory;
}

static block *block_of(mix_memory *memory) { return (block *)(void *)mix_xla_whole(memory)->address; }
static size_t offset_of(mix_memory *memory) {
  return (size_t)(memory->address - mix_xla_whole(memory)->address);
}

static bool allocate(mix_memory *memory) {
  block *b = mix_calloc(1, sizeof *b);
  if (!b) return false;
  pthread_mutex_init(&b->lock, NULL);
  b->bytes = memory->bytes;
  memory->address = (char *)b;
  return true;
}

static void deallocate(mix_memory *memory) {
  block *b = block_of(memory);
  drop_buffer(b);
  drop_host(b);
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
  block *b = block_of(memory);
  if (!settle(memory, mode == MIX_MAP_WRITE)) return NULL;
  pthread_mutex_lock(&b->lock);
  const bool good = make_host(b);
  if (good) b->maps++;
  if (good && mode == MIX_MAP_WRITE) drop_buffer(b);
  pthread_mutex_unlock(&b->lock);
  return good ? b->host + offset_of(memory) : NULL;
}

static void unmap(mix_memory *memory) {
  block *b = block_of(memory);
  if (mix_pjrt_lost()) return; /* its lock may be held for ever */
  pthread_mutex_lock(&b->lock);
  if (--b->maps == 0 && b->buffer) drop_host(b);
  pthread_mutex_unlock(&b->lock);
}

static bool copy_in(mix_memory *to, size_t offset, const void *from, size_t bytes) {
  block *b = block_of(to);
  if (!settle(to, true)) return false;
  pthread_mutex_lock(&b->lock);
  offset += offset_of(to);
  if (bytes == b->bytes) drop_buffer(b); /* nothing of it stays */
  const bool good = make_host(b);
  if (good) drop_buffer(b);
  if (good && bytes) memcpy(b->host + offset, from, bytes);
  pthread_mutex_unlock(&b->lock);
  return good;
}

static bool copy_out(mix_memory *from, size_t offset, void *to, size_t bytes) {
  block *b = block_of(from);
  if (!settle(from, false)) return false;
  pthread_mutex_lock(&b->lock);
  offset += offset_of(from);
  bool good;
  if (b->buffer && !b->host && bytes == b->bytes) {
    good = mix_pjrt_download(mix_xla_plugin(), b->buffer, b->type, to);
  } else {
    good = make_host(b);
    if (good && bytes) memcpy(to, b->host + offset, bytes);
    if (good && b->buffer && !b->maps) drop_host(b);
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
  block *b = here ? block_of(memory) : NULL;
  *own = false;
  if (!mix_xla_usable()) return NULL;
  *own = !here || memory->bytes != b->bytes;
  if (*own) return upload ? begin_upload(memory, type, upload) : upload_copy(memory, type);
  pthread_mutex_lock(&b->lock);
  pjrt_buffer *buffer = make_buffer(b, type);
  pthread_mutex_unlock(&b->lock);
  return buffer;
}

bool mix_xla_may_donate(mix_memory *memory) {
  const block *b = block_of(memory);
  return mix_references(memory) == 1 + b->kept && !memory->whole && !b->maps;
}

void mix_xla_count_kept(mix_memory *memory, int more) { block_of(memory)->kept += more; }

pjrt_buffer *mix_xla_take_buffer(mix_memory *memory, mix_type *type) {
  block *b = block_of(memory);
  pthread_mutex_lock(&b->lock);
  pjrt_buffer *buffer = b->buffer;
  *type = b->type;
  b->buffer = NULL;
  pthread_mutex_unlock(&b->lock);
  return buffer;
}

void mix_xla_give_buffer(mix_memory *memory, pjrt_buffer *buffer, mix_type type) {
  block *b = block_of(memory);
  pthread_mutex_lock(&b->lock);
  drop_buffer(b);
  if (!b->maps) drop_host(b);
  b->buffer = buffer;
  b->type = type;
  pthread_mutex_unlock(&b->lock);
}

/* On failure the value stays as it is, and reading it fails as that of the run did. */
bool mix_xla_copy_value(mix_memory *to, mix_memory *from) {
  block *a = block_of(to), *b = block_of(from);
  char *bytes = mix_alloc_buffer(a->bytes);
  if (!bytes) return false;
  pthread_mutex_lock(&b->lock);
  const bool good = make_host(b);
  if (good) memcpy(bytes, b->host + offset_of(from), a->bytes);
  if (good && b->buffer && !b->maps) drop_host(b);
  pthread_mutex_unlock(&b->lock);
  if (!good) return mix_free_buffer(bytes, a->bytes), false;
  pthread_mutex_lock(&a->lock);
  drop_buffer(a);
  drop_host(a);
  a->host = bytes;
  pthread_mutex_unlock(&a->lock);
  return true;
}
