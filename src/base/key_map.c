/* Maps of keys: an open-addressed hash table, grown at half load. */
#include "base/key_map.h"

#include "base/alloc.h"

typedef struct mix_key_slot {
  uint64_t key;
  int value; /* +1; 0: the slot is empty */
} slot;

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014): addresses differ in few bits. */
static uint64_t hash(uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

static slot *find(slot *slots, size_t count, uint64_t key) {
  size_t i = (size_t)hash(key) & (count - 1);
  while (slots[i].value && slots[i].key != key) i = (i + 1) & (count - 1);
  return &slots[i];
}

static bool grow(mix_key_map *map) {
  const size_t count = map->slot_count ? map->slot_count * 2 : 16;
  slot *slots = mix_calloc(count, sizeof *slots);
  if (!slots) return false;
  for (size_t i = 0; i < map->slot_count; i++)
    if (map->slots[i].value) *find(slots, count, map->slots[i].key) = map->slots[i];
  mix_free(map->slots);
  map->slots = slots;
  map->slot_count = count;
  return true;
}

int mix_key_map_get(const mix_key_map *map, uint64_t key) {
  return map->slot_count ? find(map->slots, map->slot_count, key)->value - 1 : -1;
}

bool mix_key_map_set(mix_key_map *map, uint64_t key, int value) {
  if (2 * (map->key_count + 1) > map->slot_count && !grow(map)) return false;
  slot *place = find(map->slots, map->slot_count, key);
  map->key_count += !place->value;
  *place = (slot){key, value + 1};
  return true;
}

void mix_key_map_clear(mix_key_map *map) {
  mix_free(map->slots);
  *map = (mix_key_map){0};
}
