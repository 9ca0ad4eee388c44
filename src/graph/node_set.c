#include "graph/node_set.h"

#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

static size_t node_hash(const mix_node *node) { return ((uintptr_t)node >> 4) * 0x9e3779b97f4a7c15u >> 11; }

static void enter(mix_node_set *set, int index) {
  size_t at = node_hash(set->nodes[index]) & (size_t)(set->table_size - 1);
  while (set->table[at]) at = (at + 1) & (size_t)(set->table_size - 1);
  set->table[at] = index + 1;
}

int mix_node_set_find(const mix_node_set *set, const mix_node *node) {
  if (!set->table_size) return -1;
  for (size_t at = node_hash(node) & (size_t)(set->table_size - 1); set->table[at];
       at = (at + 1) & (size_t)(set->table_size - 1))
    if (set->nodes[set->table[at] - 1] == node) return set->table[at] - 1;
  return -1;
}

bool mix_node_set_add(mix_node_set *set, mix_node *node) {
  if (mix_node_set_find(set, node) >= 0) return true;
  if (!mix_reserve(&set->nodes, &set->capacity, set->count + 1, sizeof *set->nodes)) return false;
  if ((set->count + 1) * 2 > set->table_size) {
    int size = set->table_size ? set->table_size * 2 : 256;
    int *table = mix_calloc((size_t)size, sizeof *table);
    if (!table) return false;
    mix_free(set->table);
    set->table = table;
    set->table_size = size;
    for (int i = 0; i < set->count; i++) enter(set, i);
  }
  set->nodes[set->count++] = node;
  enter(set, set->count - 1);
  return true;
}

static int by_sequence(const void *a, const void *b) {
  uint64_t x = (*(mix_node *const *)a)->sequence, y = (*(mix_node *const *)b)->sequence;
  return x < y ? -1 : x > y;
}

void mix_node_set_sort(mix_node_set *set) {
  if (set->count > 0) qsort(set->nodes, (size_t)set->count, sizeof *set->nodes, by_sequence);
  if (set->table) memset(set->table, 0, sizeof *set->table * (size_t)set->table_size);
  for (int i = 0; i < set->count; i++) enter(set, i);
}

void mix_node_set_clear(mix_node_set *set) {
  mix_free(set->nodes);
  mix_free(set->table);
  *set = (mix_node_set){0};
}
