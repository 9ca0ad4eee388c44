#include "tensor/memory_inside.h"

#include "base/alloc.h"
#include <pthread.h>
#include <string.h>

/* ---- memory of the host ---- */

static bool host_allocate(mix_memory *memory) {
  return (memory->address = mix_alloc_buffer(memory->bytes)) != NULL;
}
static void host_deallocate(mix_memory *memory) { mix_free_buffer(memory->address, memory->bytes); }
/* No bytes have an address too: a caller may wrap NULL for them, and NULL says that mapping failed. */
static void *host_map(mix_memory *memory, mix_map_mode mode) {
  static char nothing[MIX_BUFFER_ALIGNMENT];
  return memory->address ? memory->address : nothing;
}
static void host_unmap(mix_memory *memory) {}
static bool host_copy_in(mix_memory *to, size_t offset, const void *from, size_t bytes) {
  if (bytes) memcpy(to->address + offset, from, bytes);
  return true;
}
static bool host_copy_out(mix_memory *from, size_t offset, void *to, size_t bytes) {
  if (bytes) memcpy(to, from->address + offset, bytes);
  return true;
}

const mix_memory_device mix_host_memory = {.name = "host",
                                           .alignment = MIX_BUFFER_ALIGNMENT,
                                           .allocate = host_allocate,
                                           .deallocate = host_deallocate,
                                           .map = host_map,
                                           .unmap = host_unmap,
                                           .copy_in = host_copy_in,
                                           .copy_out = host_copy_out};

/* ---- handles ---- */

static void drop_mirror(mix_memory *memory) {
  if (memory->mirror) mix_free_buffer(memory->mirror, memory->bytes);
  memory->mirror = NULL;
}

static void finalize(void *object) {
  mix_memory *memory = object;
  drop_mirror(memory);
  mix_release(memory->spare);
  if (memory->unpin) memory->unpin(memory);
  if (memory->whole)
    mix_release(memory->whole);
  else if (memory->release)
    memory->release(memory->address);
  else
    memory->device->deallocate(memory);
}

/* The memory may be handed out again, by another thread, as soon as the hook has it: only the owner is
 * touched after that. */
static bool recycle(void *object) {
  mix_memory *memory = object;
  if (!memory->recycle) return false;
  drop_mirror(memory);
  void *owner = memory->owner;
  memory->recycle(memory, owner);
  mix_release(owner);
  return true;
}

const mix_class mix_memory_class = {.name = "memory", .finalize = finalize, .recycle = recycle};

static void keep(void *data) {}

/* A handle without bytes yet. */
static mix_memory *handle_new(const mix_memory_device *device, size_t bytes) {
  mix_memory *memory = mix_object_new(sizeof *memory, &mix_memory_class);
  if (!memory) return NULL;
  memory->device = device;
  memory->bytes = bytes;
  memory->release = keep;
  return memory;
}

mix_memory *mix_memory_new(const mix_memory_device *device, size_t bytes) {
  mix_memory *memory = handle_new(device, bytes);
  if (!memory) return NULL;
  if (!device->allocate(memory)) return mix_release(memory), NULL;
  memory->release = NULL;
  return memory;
}

mix_memory *mix_memory_wrap(void *data, size_t bytes, void (*release)(void *data)) {
  mix_memory *memory = handle_new(&mix_host_memory, bytes);
  if (!memory) return NULL;
  memory->address = data;
  if (release) memory->release = release;
  return memory;
}

void mix_memory_own_wrapped(mix_memory *memory, void (*release)(void *data)) { memory->release = release; }

mix_memory *mix_memory_part(mix_memory *whole, size_t offset, size_t bytes) {
  mix_memory *memory = handle_new(whole->device, bytes);
  if (!memory) return NULL;
  memory->address = whole->address + offset;
  memory->whole = mix_retain(whole);
  return memory;
}

size_t mix_memory_bytes(const mix_memory *memory) { return memory->bytes; }
const mix_memory_device *mix_memory_device_of(const mix_memory *memory) { return memory->device; }
bool mix_memory_is_aligned(const mix_memory *memory, size_t offset) {
  return ((uintptr_t)memory->address + offset) % memory->device->alignment == 0;
}
size_t mix_memory_aligned(const mix_memory_device *device, size_t bytes) {
  return bytes + -bytes % device->alignment;
}

/* ---- bytes ---- */

void *mix_memory_map(mix_memory *memory, mix_map_mode mode) { return memory->device->map(memory, mode); }
void mix_memory_unmap(mix_memory *memory) { memory->device->unmap(memory); }

bool mix_memory_copy_in(mix_memory *to, size_t offset, const void *from, size_t bytes) {
  return to->device->copy_in(to, offset, from, bytes);
}
bool mix_memory_copy_out(mix_memory *from, size_t offset, void *to, size_t bytes) {
  return from->device->copy_out(from, offset, to, bytes);
}

bool mix_memory_is_ready(mix_memory *memory) {
  return memory->device == &mix_host_memory || (memory->device->is_ready && memory->device->is_ready(memory));
}
bool mix_memory_device_can_tell(const mix_memory_device *device) { return device->is_ready != NULL; }

bool mix_memory_copy(mix_memory *to, mix_memory *from) {
  const void *bytes = mix_memory_map(from, MIX_MAP_READ);
  bool good = bytes && mix_memory_copy_in(to, 0, bytes, to->bytes);
  if (bytes) mix_memory_unmap(from);
  return good;
}

void mix_memory_end_reuse(mix_memory **memory) {
  for (mix_memory *next; *memory; *memory = next) {
    next = (*memory)->spare;
    (*memory)->spare = NULL;
    mix_release(*memory);
  }
}

/* Several in turn: while some are copied to a device, or wait in a prefetch, another one is filled. What is
 * held for longer is forgotten. All have one size, so that sizes that take turns do not push each other out.
 */
mix_memory *mix_memory_reuse(mix_memory **memory, size_t bytes) {
  enum { MOST = 16 };
  int count = 0;
  if (*memory && (*memory)->bytes < bytes) mix_memory_end_reuse(memory);
  if (*memory) bytes = (*memory)->bytes;
  for (mix_memory **at = memory, *found; (found = *at); at = &found->spare) {
    if (++count > MOST) {
      mix_memory_end_reuse(at);
      break;
    }
    if (mix_references(found) != 1) continue;
    *at = found->spare;
    found->spare = *memory;
    return *memory = found;
  }
  mix_memory *made = mix_memory_new(&mix_host_memory, bytes);
  if (!made) return NULL;
  made->reused = true;
  made->spare = *memory;
  return *memory = made;
}

bool mix_memory_stays(const mix_memory *memory) {
  for (; memory->whole; memory = memory->whole)
    if (memory->reads_storage) return false;
  return !memory->release;
}

bool mix_memory_is_alone(const mix_memory *memory) {
  return memory->device == &mix_host_memory && mix_references(memory) == 1 && !memory->whole &&
         !memory->release && !memory->recycle && !memory->reused && !memory->mirror && !memory->unpin;
}

/* Two threads may ask at once: the second one waits for the copy of the first. */
void *mix_memory_mirror(mix_memory *memory) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  if (memory->device == &mix_host_memory) return host_map(memory, MIX_MAP_READ);
  pthread_mutex_lock(&lock);
  if (!memory->mirror) {
    void *copy = mix_alloc_buffer(memory->bytes);
    if (copy && mix_memory_copy_out(memory, 0, copy, memory->bytes))
      memory->mirror = copy;
    else if (copy)
      mix_free_buffer(copy, memory->bytes);
  }
  pthread_mutex_unlock(&lock);
  return memory->mirror;
}

/* ---- storage of variables ---- */

mix_memory *mix_memory_read_storage(mix_memory *storage) {
  mix_memory *memory = mix_memory_part(storage, 0, storage->bytes);
  if (memory) memory->reads_storage = true;
  return memory;
}

bool mix_memory_is_storage(const mix_memory *memory) { return memory->reads_storage; }

bool mix_memory_leave_storage(mix_memory *memory) {
  mix_memory own = {.device = memory->device, .bytes = memory->bytes};
  mix_memory *storage = memory->whole;
  if (!own.device->allocate(&own)) return false;
  if (!mix_memory_copy(&own, storage)) return own.device->deallocate(&own), false;
  memory->address = own.address;
  memory->whole = NULL;
  memory->release = NULL;
  memory->reads_storage = false;
  mix_release(storage);
  return true;
}

void mix_memory_end_storage(mix_memory *memory) { memory->reads_storage = false; }

/* ---- pools ---- */

void mix_memory_lend(mix_memory *memory, void (*hook)(mix_memory *memory, void *owner), void *owner) {
  memory->recycle = hook;
  memory->owner = mix_retain(owner);
}

void mix_memory_discard(mix_memory *memory) {
  memory->recycle = NULL;
  atomic_store(&memory->object.references, 1);
  mix_release(memory);
}
