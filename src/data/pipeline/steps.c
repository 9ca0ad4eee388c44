/* The steps of a data set, by a depth-first walk with a stack of its own. */
#include "data/pipeline/steps.h"

#include "base/alloc.h"

/* An input other than the first, by index; NULL after the last. */
static mix_dataset *input_beside(const mix_dataset *dataset, int index) {
  mix_dataset *other = dataset->class->beside ? dataset->class->beside(dataset, index) : NULL;
  return other == dataset->input ? NULL : other;
}

/* ---- the steps already met: a hash table with linear probing ---- */

typedef struct pointer_set {
  const mix_dataset **slots;
  size_t size, count; /* size: 0 or a power of two */
} pointer_set;

static size_t slot_of(const pointer_set *set, const mix_dataset *dataset) {
  size_t slot = (size_t)(((uintptr_t)dataset >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (set->size - 1);
  while (set->slots[slot] && set->slots[slot] != dataset) slot = (slot + 1) & (set->size - 1);
  return slot;
}

static bool grow(pointer_set *set) {
  pointer_set larger = {.size = set->size ? 2 * set->size : 16, .count = set->count};
  if (!(larger.slots = mix_calloc(larger.size, sizeof(mix_dataset *)))) return false;
  for (size_t i = 0; i < set->size; i++)
    if (set->slots[i]) larger.slots[slot_of(&larger, set->slots[i])] = set->slots[i];
  mix_free(set->slots);
  *set = larger;
  return true;
}

/* `*fresh`: it was not in the set. */
static bool insert(pointer_set *set, const mix_dataset *dataset, bool *fresh) {
  if (2 * (set->count + 1) > set->size && !grow(set)) return false;
  const size_t slot = slot_of(set, dataset);
  *fresh = !set->slots[slot];
  if (*fresh) set->slots[slot] = dataset, set->count++;
  return true;
}

/* ---- the walk ---- */

/* A step whose inputs are being visited: `input` first, then the others from the last. */
typedef struct frame {
  mix_dataset *dataset;
  mix_dataset *input; /* NULL: none, or visited */
  int beside;         /* others that are left */
} frame;

typedef struct walk {
  frame *frames;
  int depth, capacity;
  pointer_set met;
  mix_steps_reach reach;
} walk;

static bool stops_at(const walk *walk, const mix_dataset *dataset) {
  const mix_dataset_class *class = dataset->class;
  return walk->reach == MIX_STEPS_WITH_STATE ? class->opens_input
                                             : walk->reach == MIX_STEPS_OF_RECEIVER && class->place &&
                                                   class->place(dataset) == MIX_MADE_ON_THREADS;
}

static bool enter(walk *walk, mix_dataset *dataset) {
  bool fresh;
  if (!insert(&walk->met, dataset, &fresh)) return false;
  if (!fresh) return true;
  if (!mix_reserve(&walk->frames, &walk->capacity, walk->depth + 1, sizeof *walk->frames)) return false;
  int beside = 0;
  while (input_beside(dataset, beside)) beside++;
  const bool stops = stops_at(walk, dataset);
  walk->frames[walk->depth++] = (frame){dataset, stops ? NULL : dataset->input, beside};
  return true;
}

/* Inputs come before their users here; the caller turns the order around. */
static bool run(walk *walk, mix_steps *steps) {
  while (walk->depth > 0) {
    frame *top = &walk->frames[walk->depth - 1];
    mix_dataset *next = top->input;
    if (next)
      top->input = NULL;
    else if (top->beside > 0)
      next = input_beside(top->dataset, --top->beside);
    if (next) {
      if (!enter(walk, next)) return false;
      continue;
    }
    if (!mix_reserve(&steps->items, &steps->capacity, steps->count + 1, sizeof *steps->items)) return false;
    steps->items[steps->count++] = top->dataset;
    walk->depth--;
  }
  return true;
}

bool mix_steps_collect(mix_steps *steps, mix_dataset *dataset, mix_steps_reach reach) {
  walk walk = {.reach = reach};
  const bool done = enter(&walk, dataset) && run(&walk, steps);
  mix_free(walk.frames);
  mix_free(walk.met.slots);
  for (int i = 0, j = steps->count - 1; i < j; i++, j--) {
    mix_dataset *swapped = steps->items[i];
    steps->items[i] = steps->items[j];
    steps->items[j] = swapped;
  }
  return done;
}

void mix_steps_clear(mix_steps *steps) {
  mix_free(steps->items);
  *steps = (mix_steps){0};
}
