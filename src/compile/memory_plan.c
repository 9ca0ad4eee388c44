/* Static memory: largest values first, each at the lowest offset that no value alive at the same time covers.
 */
#include "compile/compile.h"

#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b) {
  const mix_lifetime *x = *(mix_lifetime *const *)a, *y = *(mix_lifetime *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* `placed` stands in order of offsets, so that the search ends at the first gap. */
static size_t lowest_gap(mix_lifetime *const *placed, int count, const mix_lifetime *value, size_t bytes) {
  size_t offset = 0;
  for (int i = 0; i < count; i++) {
    const mix_lifetime *other = placed[i];
    if (other->first > value->last || value->first > other->last) continue;
    if (offset + bytes <= other->offset) break;
    size_t end = other->offset + ((other->bytes + 63) & ~(size_t)63);
    if (end > offset) offset = end;
  }
  return offset;
}

static void insert(mix_lifetime **placed, int count, mix_lifetime *value) {
  int low = 0, high = count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (placed[middle]->offset <= value->offset)
      low = middle + 1;
    else
      high = middle;
  }
  memmove(placed + low + 1, placed + low, sizeof *placed * (size_t)(count - low));
  placed[low] = value;
}

bool mix_plan_memory(mix_ir *ir, mix_lifetime *lifetimes, int count, size_t *arena_bytes) {
  mix_lifetime **order = mix_ir_alloc(ir, sizeof *order * (size_t)(count + 1));
  mix_lifetime **placed = mix_ir_alloc(ir, sizeof *placed * (size_t)(count + 1));
  if (!order || !placed) return false;
  for (int i = 0; i < count; i++) order[i] = &lifetimes[i];
  qsort(order, (size_t)count, sizeof *order, by_size);
  *arena_bytes = 0;
  for (int i = 0; i < count; i++) {
    mix_lifetime *value = order[i];
    size_t bytes = (value->bytes + 63) & ~(size_t)63;
    value->offset = lowest_gap(placed, i, value, bytes);
    insert(placed, i, value);
    if (value->offset + bytes > *arena_bytes) *arena_bytes = value->offset + bytes;
  }
  return true;
}
