/* Static memory: largest values first, each at the lowest offset that no value alive at the same time covers. */
#include "compile/plan.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b) {
  const mix_lifetime *x = *(mix_lifetime *const *)a, *y = *(mix_lifetime *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static int by_offset(const void *a, const void *b) {
  const mix_lifetime *x = *(mix_lifetime *const *)a, *y = *(mix_lifetime *const *)b;
  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

bool mix_plan_memory(mix_ir *ir, mix_lifetime *lifetimes, int count, size_t *arena_bytes) {
  mix_lifetime **order = mix_ir_alloc(ir, sizeof *order * (size_t)(count + 1));
  mix_lifetime **meets = mix_ir_alloc(ir, sizeof *meets * (size_t)(count + 1));
  if (!order || !meets) return false;
  for (int i = 0; i < count; i++) order[i] = &lifetimes[i];
  qsort(order, (size_t)count, sizeof *order, by_size);
  *arena_bytes = 0;
  for (int i = 0; i < count; i++) {
    mix_lifetime *value = order[i];
    size_t bytes = (value->bytes + 63) & ~(size_t)63, offset = 0;
    int met = 0;
    for (int j = 0; j < i; j++)
      if (order[j]->first <= value->last && value->first <= order[j]->last) meets[met++] = order[j];
    qsort(meets, (size_t)met, sizeof *meets, by_offset);
    for (int j = 0; j < met; j++) {
      if (offset + bytes <= meets[j]->offset) break;
      size_t end = meets[j]->offset + ((meets[j]->bytes + 63) & ~(size_t)63);
      if (end > offset) offset = end;
    }
    value->offset = offset;
    if (offset + bytes > *arena_bytes) *arena_bytes = offset + bytes;
  }
  return true;
}
