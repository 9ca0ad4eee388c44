/* Interned strings: an open-addressed hash table of pointers, grown at half load. */
#include "base/alloc.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char **slots;
static size_t slot_count, name_count; /* slot_count is 0 or a power of two */

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
static uint64_t hash(const char *text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3u;
  return h;
}

static const char **find(const char **table, size_t count, const char *text) {
  size_t i = (size_t)hash(text) & (count - 1);
  while (table[i] && strcmp(table[i], text) != 0) i = (i + 1) & (count - 1);
  return &table[i];
}

static bool grow(void) {
  size_t count = slot_count ? slot_count * 2 : 256;
  const char **table = mix_calloc(count, sizeof *table);
  if (!table) return false;
  for (size_t i = 0; i < slot_count; i++)
    if (slots[i]) *find(table, count, slots[i]) = slots[i];
  mix_free(slots);
  slots = table;
  slot_count = count;
  return true;
}

static const char *intern(const char *text) {
  if (2 * (name_count + 1) > slot_count && !grow()) return NULL;
  const char **slot = find(slots, slot_count, text);
  if (!*slot && (*slot = mix_strdup(text))) name_count++;
  return *slot;
}

const char *mix_intern(const char *text) {
  if (!text) return NULL;
  pthread_mutex_lock(&mutex);
  const char *name = intern(text);
  pthread_mutex_unlock(&mutex);
  return name;
}
