/* Memory planning: lifetimes of the values in the arena, and an offset for each. Largest values first, each
 * at the lowest offset where it overlaps no value alive at the same time; where that leaves gaps, other
 * orders are tried. The small ones of a very large plan come in order of time instead. */
#include "compile/compile.h"
#include "compile/pass_pipeline.h"

#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b) {
  const mix_lifetime *x = *(mix_lifetime *const *)a, *y = *(mix_lifetime *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static size_t aligned(const mix_ir *ir, size_t bytes) {
  return mix_memory_aligned(ir->context->backend->memory, bytes);
}

/* `placed` is sorted by offset, so the search ends at the first gap. */
static size_t lowest_gap(mix_ir *ir, mix_lifetime *const *placed, int count, const mix_lifetime *value,
                         size_t bytes) {
  size_t offset = 0;
  for (int i = 0; i < count; i++, ir->visits++) {
    const mix_lifetime *other = placed[i];
    if (other->first > value->last || value->first > other->last) continue;
    if (offset + bytes <= other->offset) break;
    size_t end = other->offset + aligned(ir, other->bytes);
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

/* Places values in this order. Returns the end of the highest one. */
static size_t place_in_order(mix_ir *ir, mix_lifetime **order, mix_lifetime **placed, int count) {
  size_t end = 0;
  for (int i = 0; i < count; i++) {
    mix_lifetime *value = order[i];
    size_t bytes = aligned(ir, value->bytes);
    value->offset = lowest_gap(ir, placed, i, value, bytes);
    insert(placed, i, value);
    if (value->offset + bytes > end) end = value->offset + bytes;
  }
  return end;
}

/* The most bytes of these values alive at once: no order needs less. False: out of memory. */
static bool most_alive(mix_ir *ir, mix_lifetime *const *values, int count, size_t *most) {
  int steps = 0;
  for (int i = 0; i < count; i++) steps = values[i]->last >= steps ? values[i]->last + 1 : steps;
  size_t *change = mix_ir_array(ir, steps + 1, sizeof *change), alive = 0;
  if (!change) return false;
  for (int i = 0; i < count; i++) {
    change[values[i]->first] += aligned(ir, values[i]->bytes);
    change[values[i]->last + 1] -= aligned(ir, values[i]->bytes);
  }
  *most = 0;
  for (int t = 0; t < steps; t++) {
    alive += change[t];
    *most = alive > *most ? alive : *most;
  }
  return true;
}

static int by_first(const void *a, const void *b) {
  const mix_lifetime *x = *(mix_lifetime *const *)a, *y = *(mix_lifetime *const *)b;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}
static int by_last(const void *a, const void *b) {
  const mix_lifetime *x = *(mix_lifetime *const *)a, *y = *(mix_lifetime *const *)b;
  if (x->last != y->last) return x->last < y->last ? -1 : 1;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}
static int by_duration(const void *a, const void *b) {
  const mix_lifetime *x = *(mix_lifetime *const *)a, *y = *(mix_lifetime *const *)b;
  if (x->last - x->first != y->last - y->first) return x->last - x->first < y->last - y->first ? 1 : -1;
  return by_size(a, b);
}

/* Moves the value that ends highest to the front. False: it is there. */
static bool move_highest_first(const mix_ir *ir, mix_lifetime **order, int count) {
  int highest = 0;
  size_t end = 0;
  for (int i = 0; i < count; i++)
    if (order[i]->offset + aligned(ir, order[i]->bytes) > end)
      highest = i, end = order[i]->offset + aligned(ir, order[i]->bytes);
  mix_lifetime *value = order[highest];
  memmove(order + 1, order, sizeof *order * (size_t)highest);
  order[0] = value;
  return highest > 0;
}

typedef struct packing {
  mix_ir *ir;
  mix_lifetime *all, **order, **placed;
  int count;
  size_t least, end; /* of no order, of the best one so far */
  size_t *best;      /* its offsets, by index in `all` */
  uint64_t visits;   /* beyond which no order is tried */
} packing;

/* Places the values in the present order. True: no other one is worth a try. */
static bool try_order(packing *p) {
  enum { WORTH = 256 }; /* such a part of the bytes */
  const size_t end = place_in_order(p->ir, p->order, p->placed, p->count);
  for (int i = 0; i < p->count && end < p->end; i++) p->best[p->order[i] - p->all] = p->order[i]->offset;
  p->end = end < p->end ? end : p->end;
  return p->end <= p->least + p->least / WORTH || p->ir->visits > p->visits;
}

/* By size; while that leaves gaps at the peak also in other orders, in each of which the value that ended
 * highest then comes first. How many are tried depends on the plan alone. */
static void try_orders(packing *p) {
  enum { TRIES = 24 };
  static int (*const orders[])(const void *, const void *) = {by_duration, by_first};
  if (try_order(p)) return;
  for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
    qsort(p->order, (size_t)p->count, sizeof *p->order, orders[o]);
    for (int try = 0; try < TRIES; try++) {
      if (try && !move_highest_first(p->ir, p->order, p->count)) break;
      if (try_order(p)) return;
    }
  }
}

/* The power of two of the device's alignment that holds the value. */
static int size_class(const mix_ir *ir, const mix_lifetime *value) {
  int class = 0;
  while (aligned(ir, 1) << class < value->bytes) class ++;
  return class;
}

/* Places the others behind `end`, in order of time: a value takes the memory of an ended one of its size
 * class, or new memory. */
static bool place_by_time(mix_ir *ir, mix_lifetime **order, int count, size_t *end) {
  enum { CLASSES = 58 };
  mix_lifetime *ended[CLASSES] = {0}; /* a stack for each class, linked through `below` */
  mix_lifetime **dying = mix_ir_array(ir, count + 1, sizeof *dying);
  if (!dying) return false;
  memcpy(dying, order, sizeof *dying * (size_t)count);
  qsort(order, (size_t)count, sizeof *order, by_first);
  qsort(dying, (size_t)count, sizeof *dying, by_last);
  for (int i = 0, dead = 0; i < count; i++) {
    for (; dead < count && dying[dead]->last < order[i]->first; dead++) {
      mix_lifetime **stack = &ended[size_class(ir, dying[dead])];
      dying[dead]->below = *stack;
      *stack = dying[dead];
    }
    const int class = size_class(ir, order[i]);
    if (ended[class]) {
      order[i]->offset = ended[class]->offset;
      ended[class] = ended[class]->below;
    } else {
      order[i]->offset = *end;
      *end += aligned(ir, 1) << class;
    }
  }
  return true;
}

/* Placing by size looks at all values that are placed: beyond this number that would take too long. */
enum { PLACED_BY_SIZE = 2048 };

bool mix_plan_memory(mix_ir *ir, mix_lifetime *lifetimes, int count, size_t *arena_bytes) {
  enum { VISITS = 1 << 20 }; /* a few milliseconds */
  packing p = {.ir = ir,
               .all = lifetimes,
               .order = mix_ir_array(ir, count + 1, sizeof *p.order),
               .placed = mix_ir_array(ir, count + 1, sizeof *p.placed),
               .count = count < PLACED_BY_SIZE ? count : PLACED_BY_SIZE,
               .end = SIZE_MAX,
               .best = mix_ir_array(ir, count + 1, sizeof *p.best),
               .visits = ir->visits + VISITS};
  if (!p.order || !p.placed || !p.best) return false;
  for (int i = 0; i < count; i++) p.order[i] = &lifetimes[i];
  qsort(p.order, (size_t)count, sizeof *p.order, by_size);
  if (!most_alive(ir, p.order, p.count, &p.least)) return false;
  try_orders(&p);
  for (int i = 0; i < p.count; i++) p.order[i]->offset = p.best[p.order[i] - lifetimes];
  *arena_bytes = p.end;
  return place_by_time(ir, p.order + p.count, count - p.count, arena_bytes);
}

/* ---- lifetimes ---- */

typedef struct arena {
  int *owner;    /* slot -> slot that owns its memory */
  int *last;     /* owning slot -> the last step that accesses it */
  int *lifetime; /* slot -> its lifetime, possibly taken over from an operand; -1 */
  mix_lifetime *lifetimes;
  int count;
} arena;

/* Operand i of a step: the guard (-1), then inputs, then outputs. Returns the slot that owns its arena
 * memory, or -1. */
static int arena_slot(const mix_plan *plan, const arena *a, const mix_step *step, int i) {
  int s = i < 0                   ? step->guard
          : i < step->input_count ? step->inputs[i]
                                  : step->outputs[i - step->input_count];
  return s < 0 || plan->slots[s].kind != MIX_SLOT_ARENA ? -1 : a->owner[s];
}

/* Starts the lifetime of a result: in memory of its own, or in that of an operand whose last use this is. */
static void begin_life(const mix_ir *ir, const mix_plan *plan, arena *a, int step, int slot, int output) {
  bool may = output >= 0 && mix_pass_wanted(ir, "inplace") && mix_pass_wanted(ir, "memory_plan");
  int operand = may ? mix_plan_taken_over(ir->context->backend, plan, a->owner, a->last, step, output) : -1;
  if (operand >= 0) {
    a->lifetime[slot] = a->lifetime[operand];
    a->last[operand] = -1; /* taken over */
  } else {
    a->lifetime[slot] = a->count;
    a->lifetimes[a->count++] = (mix_lifetime){.slot = slot, .first = step, .bytes = plan->slots[slot].bytes};
  }
}

/* Of an evaluation outside of functions: moves the operand that a result could overwrite into the result's
 * memory, so that the two are never there at once. Initial values of weights are made so. */
static void begin_in_result(const mix_ir *ir, mix_plan *plan, arena *a, int step, int output) {
  const mix_slot *result = &plan->slots[plan->steps[step].outputs[output]];
  if (!ir->eager || result->kind != MIX_SLOT_RESULT || plan->steps[step].guard >= 0) return;
  if (!mix_pass_wanted(ir, "inplace") || !mix_pass_wanted(ir, "memory_plan")) return;
  const int operand = mix_plan_taken_over(ir->context->backend, plan, a->owner, a->last, step, output);
  const int lifetime = operand >= 0 ? a->lifetime[operand] : -1;
  if (lifetime < 0) return;
  a->lifetimes[lifetime].bytes = 0;
  for (int s = 0; s < plan->slot_count; s++)
    if (plan->slots[s].kind == MIX_SLOT_ARENA && a->lifetime[a->owner[s]] == lifetime) {
      plan->slots[s].kind = MIX_SLOT_RESULT;
      plan->slots[s].index = result->index;
      plan->slots[s].offset = result->offset;
    }
}

static bool find_lifetimes(mix_ir *ir, mix_plan *plan, const int *base, arena *a, size_t *unshared_bytes) {
  a->owner = mix_ir_ints(ir, plan->slot_count);
  a->last = mix_ir_ints(ir, plan->slot_count);
  a->lifetime = mix_ir_ints(ir, plan->slot_count);
  a->lifetimes = mix_ir_array(ir, plan->slot_count + 1, sizeof *a->lifetimes);
  if (!a->owner || !a->last || !a->lifetime || !a->lifetimes) return false;
  for (int s = 0; s < plan->slot_count; s++) {
    a->owner[s] = s < ir->value_count ? base[s] : s;
    a->lifetime[s] = a->last[s] = -1;
  }
  for (int t = 0; t < plan->step_count; t++)
    for (int i = -1; i < plan->steps[t].input_count + plan->steps[t].output_count; i++) {
      int s = arena_slot(plan, a, &plan->steps[t], i);
      if (s >= 0) a->last[s] = t;
    }
  for (int t = 0; t < plan->step_count; t++) {
    const mix_step *step = &plan->steps[t];
    for (int i = -1; i < step->input_count + step->output_count; i++) {
      int s = arena_slot(plan, a, step, i);
      if (s < 0) continue;
      if (a->lifetime[s] < 0) {
        begin_life(ir, plan, a, t, s, i - step->input_count);
        *unshared_bytes += aligned(ir, plan->slots[s].bytes);
      }
      a->lifetimes[a->lifetime[s]].last = t;
    }
    for (int o = 0; o < step->output_count; o++) begin_in_result(ir, plan, a, t, o);
  }
  return true;
}

bool mix_plan_arena(mix_compiled *compiled, const int *base) {
  mix_plan *plan = &compiled->plan;
  arena a = {.count = 0};
  if (!find_lifetimes(compiled->ir, plan, base, &a, &compiled->report.unshared_bytes)) return false;
  if (!mix_pass_wanted(compiled->ir, "memory_plan")) /* no two values share memory */
    for (int i = 0; i < a.count; i++) a.lifetimes[i].first = 0, a.lifetimes[i].last = plan->step_count;
  if (!mix_plan_memory(compiled->ir, a.lifetimes, a.count, &plan->arena_bytes)) return false;
  for (int s = 0; s < plan->slot_count; s++)
    if (plan->slots[s].kind == MIX_SLOT_ARENA && a.lifetime[a.owner[s]] >= 0)
      plan->slots[s].offset = a.lifetimes[a.lifetime[a.owner[s]]].offset;
  compiled->report.arena_bytes = plan->arena_bytes;
  compiled->lifetimes = a.lifetimes;
  compiled->lifetime_count = a.count;
  return true;
}
