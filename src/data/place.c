#include "data/place.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline.h"
#include <stdio.h>
#include <string.h>

/* A walk over a data set and all that it draws from: each step before its inputs. */
typedef struct walk {
  mix_dataset **steps;
  int count, capacity;
} walk;

static bool take_steps(walk *walk, mix_dataset *dataset) {
  for (; dataset; dataset = dataset->input) {
    if (!mix_reserve(&walk->steps, &walk->capacity, walk->count + 1, sizeof *walk->steps)) return false;
    walk->steps[walk->count++] = dataset;
    for (int i = 0;; i++) {
      mix_dataset *beside = dataset->class->beside ? dataset->class->beside(dataset, i) : NULL;
      if (!beside) break;
      if (beside != dataset->input && !take_steps(walk, beside)) return false;
    }
  }
  return true;
}

uint64_t *mix_dataset_memory(mix_dataset *dataset, int *count) {
  walk walk = {0};
  uint64_t *memory = NULL;
  if (take_steps(&walk, dataset)) memory = mix_calloc((size_t)walk.count * MIX_DATASET_MEMORY, sizeof *memory);
  int used = 0;
  for (int i = 0; memory && i < walk.count; i++) {
    const mix_dataset_class *class = walk.steps[i]->class;
    if (!class->memory) continue;
    class->memory(walk.steps[i], memory + used);
    used += MIX_DATASET_MEMORY;
  }
  if (count) *count = used;
  mix_free(walk.steps);
  return memory;
}

/* "batch, shuffle, from_tensors"; mix_free it. */
static char *steps_text(const walk *walk) {
  size_t size = 1, used = 0;
  for (int i = 0; i < walk->count; i++) size += strlen(walk->steps[i]->class->name) + 2;
  char *text = mix_calloc(1, size);
  for (int i = 0; text && i < walk->count; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", walk->steps[i]->class->name);
  return text;
}

static void part_name(const char *name, const char *part, char *text, size_t size) { snprintf(text, size, "%s/%s", name, part); }

bool mix_place_put(mix_state *state, const char *name, mix_dataset *dataset, mix_iterator *iterator) {
  walk walk = {0};
  char part[128];
  int count = 0;
  uint64_t *now = take_steps(&walk, dataset) ? mix_dataset_memory(dataset, &count) : NULL;
  char *steps = now ? steps_text(&walk) : NULL;
  const uint64_t *memory = iterator ? mix_iterator_opened(iterator) : now;
  int64_t drawn = iterator ? mix_iterator_drawn(iterator) : 0;
  if (steps) {
    part_name(name, "steps", part, sizeof part);
    mix_state_put_text(state, part, steps);
    part_name(name, "memory", part, sizeof part);
    mix_state_put_integers(state, part, count, (const int64_t *)memory);
    part_name(name, "drawn", part, sizeof part);
    mix_state_put_integers(state, part, 1, &drawn);
  }
  mix_free(steps);
  mix_free(now);
  mix_free(walk.steps);
  return !mix_failed();
}

static bool same_steps(mix_state *state, const char *part, const walk *walk) {
  char *theirs = mix_state_get_text(state, part), *ours = theirs ? steps_text(walk) : NULL;
  if (ours && strcmp(ours, theirs))
    mix_fail(MIX_VALUE_ERROR, "%s: the data set's steps are %s, in the checkpoint %s; resume with the data set it was trained on",
             mix_state_path(state), ours, theirs);
  mix_free(ours);
  mix_free(theirs);
  return !mix_failed();
}

/* First what never changes, of all steps; then what moves, from the end to the source, so that a cache can fill itself from an input that is
 * still at its beginning. */
static bool remember_all(const walk *walk, const uint64_t *memory) {
  for (int moving = 0; moving < 2; moving++) {
    const uint64_t *saved = memory;
    for (int i = 0; i < walk->count; i++) {
      const mix_dataset_class *class = walk->steps[i]->class;
      if (!class->memory) continue;
      uint64_t now[MIX_DATASET_MEMORY];
      class->memory(walk->steps[i], now);
      if (!class->remember(walk->steps[i], moving ? saved : (const uint64_t[MIX_DATASET_MEMORY]){saved[0], now[1]})) return false;
      saved += MIX_DATASET_MEMORY;
    }
  }
  return true;
}

bool mix_place_get(mix_state *state, const char *name, mix_dataset *dataset, int64_t *drawn) {
  walk walk = {0};
  char part[128];
  int count = 0;
  uint64_t *memory = take_steps(&walk, dataset) ? mix_dataset_memory(dataset, &count) : NULL;
  part_name(name, "steps", part, sizeof part);
  bool done = memory && same_steps(state, part, &walk);
  part_name(name, "memory", part, sizeof part);
  done = done && mix_state_get_integers(state, part, count, (int64_t *)memory);
  part_name(name, "drawn", part, sizeof part);
  done = done && mix_state_get_integers(state, part, 1, drawn) && remember_all(&walk, memory);
  mix_free(memory);
  mix_free(walk.steps);
  return done;
}
