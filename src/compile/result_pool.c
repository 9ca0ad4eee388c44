#include "compile/result_pool.h"

#include "base/alloc.h"

typedef struct shelf {
  size_t bytes;
  _Atomic(mix_object *) free; /* linked through next_dead; pushed by any thread, popped by one */
} shelf;

struct mix_pool {
  mix_object object;
  int count;
  shelf shelves[];
};

static void pool_finalize(void *object) {
  mix_pool *pool = object;
  for (int i = 0; i < pool->count; i++)
    for (mix_object *buffer = atomic_load(&pool->shelves[i].free), *next; buffer; buffer = next) {
      next = buffer->next_dead;
      ((mix_buffer *)buffer)->recycle = NULL;
      atomic_store(&buffer->references, 1);
      mix_release(buffer);
    }
}

static const mix_class pool_class = {.name = "result pool", .finalize = pool_finalize};

mix_pool *mix_pool_new(int count, const size_t *bytes) {
  mix_pool *pool = mix_object_new(sizeof *pool + sizeof(shelf) * (size_t)count, &pool_class);
  if (!pool) return NULL;
  pool->count = count;
  for (int i = 0; i < count; i++) pool->shelves[i].bytes = bytes[i];
  return pool;
}

/* The first shelf with buffers of that size takes it: sizes are what distinguishes them. */
static void put_back(mix_buffer *buffer, void *owner) {
  mix_pool *pool = owner;
  int i = 0;
  while (i < pool->count - 1 && pool->shelves[i].bytes != buffer->bytes) i++;
  mix_object *top = atomic_load(&pool->shelves[i].free);
  do buffer->object.next_dead = top;
  while (!atomic_compare_exchange_weak(&pool->shelves[i].free, &top, &buffer->object));
}

mix_buffer *mix_pool_take(mix_pool *pool, int index) {
  int i = 0;
  while (pool->shelves[i].bytes != pool->shelves[index].bytes) i++;
  mix_object *top = atomic_load(&pool->shelves[i].free);
  while (top && !atomic_compare_exchange_weak(&pool->shelves[i].free, &top, top->next_dead)) {}
  mix_buffer *buffer = (mix_buffer *)top;
  if (buffer)
    atomic_store(&buffer->object.references, 1);
  else if (!(buffer = mix_buffer_new(pool->shelves[index].bytes)))
    return NULL;
  buffer->recycle = put_back;
  buffer->owner = mix_retain(pool);
  return buffer;
}
