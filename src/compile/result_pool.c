/* Pools of result buffers, with a lock-free list for each size. */
#include "compile/result_pool.h"

#include "base/alloc.h"

typedef struct free_list {
  size_t bytes;
  _Atomic(mix_object *) free; /* linked through next_dead; any thread pushes, one thread pops */
} free_list;

struct mix_pool {
  mix_object object;
  const mix_memory_device *device;
  int count;
  free_list lists[];
};

static void pool_finalize(void *object) {
  mix_pool *pool = object;
  for (int i = 0; i < pool->count; i++)
    for (mix_object *buffer = atomic_load(&pool->lists[i].free), *next; buffer; buffer = next) {
      next = buffer->next_dead;
      mix_memory_discard((mix_memory *)buffer);
    }
}

static const mix_class pool_class = {.name = "result pool", .finalize = pool_finalize};

mix_pool *mix_pool_new(const mix_memory_device *device, int count, const size_t *bytes) {
  mix_pool *pool = mix_object_new(sizeof *pool + sizeof(free_list) * (size_t)count, &pool_class);
  if (!pool) return NULL;
  pool->device = device;
  pool->count = count;
  for (int i = 0; i < count; i++) pool->lists[i].bytes = bytes[i];
  return pool;
}

/* Buffers of the same size are interchangeable, so the first list of that size takes it. */
static void put_back(mix_memory *buffer, void *owner) {
  mix_pool *pool = owner;
  int i = 0;
  while (i < pool->count - 1 && pool->lists[i].bytes != mix_memory_bytes(buffer)) i++;
  mix_object *top = atomic_load(&pool->lists[i].free);
  mix_object *object = (mix_object *)buffer;
  do object->next_dead = top;
  while (!atomic_compare_exchange_weak(&pool->lists[i].free, &top, object));
}

mix_memory *mix_pool_take(mix_pool *pool, int index) {
  int i = 0;
  while (pool->lists[i].bytes != pool->lists[index].bytes) i++;
  mix_object *top = atomic_load(&pool->lists[i].free);
  while (top && !atomic_compare_exchange_weak(&pool->lists[i].free, &top, top->next_dead)) {}
  mix_memory *buffer = (mix_memory *)top;
  if (buffer)
    atomic_store(&((mix_object *)buffer)->references, 1);
  else if (!(buffer = mix_memory_new(pool->device, pool->lists[index].bytes)))
    return NULL;
  mix_memory_lend(buffer, put_back, pool);
  return buffer;
}
