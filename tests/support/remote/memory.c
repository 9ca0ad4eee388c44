/* Memory of the device "remote": a file mapped twice. Handles hold addresses of the first mapping, whose
 * pages the host cannot touch unless they are mapped for it; kernels use the second one. Each block is
 * followed by a page that nobody may touch through a handle, and is filled with NaN when it is made and when
 * it goes. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "support/remote/remote.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/memory_inside.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, BLOCKS_MAX = 1 << 16 };
static const size_t REGION = (size_t)1 << 36; /* of address space; pages come when they are touched */

typedef struct block {
  size_t offset, bytes; /* whole pages, without the guard page */
  bool used, replaced;
  int maps; /* how often the host has it mapped */
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *handles, *kernels; /* the two mappings */
static block *blocks;           /* sorted by offset */
static int block_count;

static bool start(void) {
  if (handles) return true;
  const int file = memfd_create("mixtape-remote", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, (off_t)REGION)) return false;
  blocks = calloc(BLOCKS_MAX, sizeof *blocks);
  char *second = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  char *first = mmap(NULL, REGION, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (!blocks || first == MAP_FAILED || second == MAP_FAILED) return false;
  handles = first, kernels = second;
  return true;
}

void *mix_remote_kernel_address(const char *address) { return kernels + (address - handles); }

/* The block with this address, or the end of it. */
static block *block_of(const char *address) {
  const size_t offset = (size_t)(address - handles);
  int low = 0, high = block_count;
  while (low + 1 < high) {
    const int middle = (low + high) / 2;
    if (blocks[middle].offset <= offset)
      low = middle;
    else
      high = middle;
  }
  return &blocks[low];
}

/* A free block of this size, or a new one behind all others. */
static block *find_room(size_t bytes) {
  for (int i = 0; i < block_count; i++)
    if (!blocks[i].used && blocks[i].bytes == bytes) return &blocks[i];
  const block *last = block_count ? &blocks[block_count - 1] : NULL;
  const size_t offset = last ? last->offset + last->bytes + PAGE : PAGE;
  if (block_count == BLOCKS_MAX || bytes > REGION - offset - PAGE) return NULL;
  blocks[block_count] = (block){.offset = offset, .bytes = bytes};
  return &blocks[block_count++];
}

static bool allocate(mix_memory *memory) {
  void *counted = mix_alloc(1); /* injected failures reach this device too */
  if (!counted) return false;
  mix_free(counted);
  pthread_mutex_lock(&lock);
  block *room = memory->bytes < REGION && start() ? find_room((memory->bytes + PAGE) / PAGE * PAGE) : NULL;
  if (room) {
    *room = (block){.offset = room->offset, .bytes = room->bytes, .used = true};
    memory->address = handles + room->offset;
    memset(kernels + room->offset, 0xff, room->bytes);
  }
  pthread_mutex_unlock(&lock);
  if (!room)
    mix_fail(MIX_MEMORY_ERROR,
             "out of memory: %zu bytes were refused on the device remote; use a smaller batch",
             memory->bytes);
  return room != NULL;
}

static void deallocate(mix_memory *memory) {
  pthread_mutex_lock(&lock);
  block *room = block_of(memory->address);
  madvise(kernels + room->offset, room->bytes, MADV_REMOVE);
  room->used = false;
  pthread_mutex_unlock(&lock);
}

static bool settle(mix_memory *memory, bool for_writing) {
  if (!mix_remote_settle(memory, for_writing)) return false;
  pthread_mutex_lock(&lock);
  const bool replaced = block_of(memory->address)->replaced;
  pthread_mutex_unlock(&lock);
  if (replaced)
    mix_fail(MIX_INTERNAL_ERROR, "remote: storage of a variable is used after a run has replaced it");
  return !replaced;
}

static void *map(mix_memory *memory, mix_map_mode mode) {
  if (!settle(memory, mode == MIX_MAP_WRITE)) return NULL;
  pthread_mutex_lock(&lock);
  block *room = block_of(memory->address);
  if (room->maps++ == 0) mprotect(handles + room->offset, room->bytes, PROT_READ | PROT_WRITE);
  pthread_mutex_unlock(&lock);
  return memory->address;
}

static void unmap(mix_memory *memory) {
  pthread_mutex_lock(&lock);
  block *room = block_of(memory->address);
  if (--room->maps == 0) mprotect(handles + room->offset, room->bytes, PROT_NONE);
  pthread_mutex_unlock(&lock);
}

static bool copy_in(mix_memory *to, size_t offset, const void *from, size_t bytes) {
  if (!settle(to, true)) return false;
  if (bytes) memcpy((char *)mix_remote_kernel_address(to->address) + offset, from, bytes);
  return true;
}

static bool copy_out(mix_memory *from, size_t offset, void *to, size_t bytes) {
  if (!settle(from, false)) return false;
  if (bytes) memcpy(to, (char *)mix_remote_kernel_address(from->address) + offset, bytes);
  return true;
}

void mix_remote_mark_replaced(const mix_memory *storage) {
  pthread_mutex_lock(&lock);
  block_of(storage->address)->replaced = true;
  pthread_mutex_unlock(&lock);
}

void mix_remote_poison(const mix_memory *memory) {
  memset(mix_remote_kernel_address(memory->address), 0xff, memory->bytes);
}

const mix_memory_device mix_remote_memory = {.name = "remote",
                                             .alignment = MIX_BUFFER_ALIGNMENT,
                                             .allocate = allocate,
                                             .deallocate = deallocate,
                                             .map = map,
                                             .unmap = unmap,
                                             .copy_in = copy_in,
                                             .copy_out = copy_out};
