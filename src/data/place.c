#include "data/place.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline.h"
#include <stdio.h>
#include <string.h>

/* Inputs beside the first one; NULL behind the last. */
static mix_dataset *beside(const mix_dataset *dataset, int index) {
  mix_dataset *other = dataset->class->beside ? dataset->class->beside(dataset, index) : NULL;
  return other == dataset->input ? NULL : other;
}

/* ---- memory ---- */

/* The next place in a walk over what has memory; NULL behind a step that speaks for its input. */
static mix_dataset *next_with_memory(const mix_dataset *dataset) { return dataset->class->opens_input ? NULL : dataset->input; }

int mix_dataset_memory(mix_dataset *dataset, uint64_t *memory) {
  int count = 0;
  for (; dataset; dataset = next_with_memory(dataset)) {
    if (dataset->class->memory) count += dataset->class->memory(dataset, memory ? memory + count : NULL);
    mix_dataset *other;
    for (int i = 0; (other = beside(dataset, i)); i++) count += mix_dataset_memory(other, memory ? memory + count : NULL);
  }
  return count;
}

bool mix_dataset_remember(mix_dataset *dataset, const uint64_t *memory) {
  for (; dataset; dataset = next_with_memory(dataset)) {
    if (dataset->class->memory) {
      if (!dataset->class->remember(dataset, memory)) return false;
      memory += dataset->class->memory(dataset, NULL);
    }
    mix_dataset *other;
    for (int i = 0; (other = beside(dataset, i)); i++) {
      if (!mix_dataset_remember(other, memory)) return false;
      memory += mix_dataset_memory(other, NULL);
    }
  }
  return true;
}

uint64_t *mix_dataset_memory_now(mix_dataset *dataset) {
  uint64_t *memory = mix_calloc((size_t)mix_dataset_memory(dataset, NULL) + 1, sizeof *memory);
  if (memory) mix_dataset_memory(dataset, memory);
  return memory;
}

/* ---- the place ---- */

/* A walk over a data set and all that it draws from: each step before its inputs. */
typedef struct walk {
  mix_dataset **steps;
  int count, capacity;
} walk;

static bool take_steps(walk *walk, mix_dataset *dataset) {
  for (; dataset; dataset = dataset->input) {
    if (!mix_reserve(&walk->steps, &walk->capacity, walk->count + 1, sizeof *walk->steps)) return false;
    walk->steps[walk->count++] = dataset;
    mix_dataset *other;
    for (int i = 0; (other = beside(dataset, i)); i++)
      if (!take_steps(walk, other)) return false;
  }
  return true;
}

/* "batch, shuffle, from_tensors"; mix_free it. NULL with the error recorded. */
static char *steps_text(mix_dataset *dataset) {
  walk walk = {0};
  size_t size = 1, used = 0;
  bool whole = take_steps(&walk, dataset);
  for (int i = 0; i < walk.count; i++) size += strlen(walk.steps[i]->class->name) + 2;
  char *text = whole ? mix_calloc(1, size) : NULL;
  for (int i = 0; text && i < walk.count; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", walk.steps[i]->class->name);
  mix_free(walk.steps);
  return text;
}

static void part_name(const char *name, const char *part, char *text, size_t size) { snprintf(text, size, "%s/%s", name, part); }

bool mix_place_put(mix_state *state, const char *name, mix_dataset *dataset, mix_iterator *iterator) {
  char part[128];
  uint64_t *now = iterator ? NULL : mix_dataset_memory_now(dataset);
  const uint64_t *memory = iterator ? mix_iterator_opened(iterator) : now;
  int64_t drawn = iterator ? mix_iterator_drawn(iterator) : 0;
  char *steps = steps_text(dataset);
  if (steps && memory) {
    part_name(name, "steps", part, sizeof part);
    mix_state_put_text(state, part, steps);
    part_name(name, "memory", part, sizeof part);
    mix_state_put_integers(state, part, mix_dataset_memory(dataset, NULL), (const int64_t *)memory);
    part_name(name, "drawn", part, sizeof part);
    mix_state_put_integers(state, part, 1, &drawn);
  }
  mix_free(steps);
  mix_free(now);
  return !mix_failed();
}

static bool same_steps(mix_state *state, const char *part, mix_dataset *dataset) {
  char *theirs = mix_state_get_text(state, part), *ours = theirs ? steps_text(dataset) : NULL;
  if (ours && strcmp(ours, theirs))
    mix_fail(MIX_VALUE_ERROR, "%s: the data set's steps are %s, in the checkpoint %s; resume with the data set it was trained on",
             mix_state_path(state), ours, theirs);
  mix_free(ours);
  mix_free(theirs);
  return !mix_failed();
}

/* What the place says, once it is known to fit: the memory (mix_free it), and the elements drawn. */
static uint64_t *read_place(mix_state *state, const char *name, mix_dataset *dataset, int64_t *drawn) {
  char part[128];
  part_name(name, "steps", part, sizeof part);
  if (!same_steps(state, part, dataset)) return NULL;
  int count = mix_dataset_memory(dataset, NULL);
  uint64_t *memory = mix_calloc((size_t)count + 1, sizeof *memory);
  if (!memory) return NULL;
  part_name(name, "memory", part, sizeof part);
  mix_state_get_integers(state, part, count, (int64_t *)memory);
  part_name(name, "drawn", part, sizeof part);
  if (!mix_failed()) mix_state_get_integers(state, part, 1, drawn);
  if (!mix_failed()) return memory;
  mix_free(memory);
  return NULL;
}

bool mix_place_fits(mix_state *state, const char *name, mix_dataset *dataset) {
  int64_t drawn;
  uint64_t *memory = read_place(state, name, dataset, &drawn);
  mix_free(memory);
  return memory != NULL;
}

bool mix_place_get(mix_state *state, const char *name, mix_dataset *dataset, int64_t *drawn) {
  uint64_t *memory = read_place(state, name, dataset, drawn);
  bool done = memory && mix_dataset_remember(dataset, memory);
  mix_free(memory);
  return done;
}
