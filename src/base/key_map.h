/* A map from addresses, or other numbers of 64 bits, to small numbers: what was seen before, and where. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: an empty map. */
typedef struct mix_key_map {
  struct mix_key_slot *slots;
  size_t slot_count, key_count; /* slot_count is 0 or a power of two */
} mix_key_map;

/* The value of the key; -1: it has none. */
int mix_key_map_get(const mix_key_map *map, uint64_t key);
/* Sets the value, 0 or more. False with the error recorded. */
bool mix_key_map_set(mix_key_map *map, uint64_t key, int value);
/* Empties the map and frees its memory. */
void mix_key_map_clear(mix_key_map *map);

static inline uint64_t mix_address_key(const void *object) { return (uint64_t)(uintptr_t)object; }
