/* Saves and restores the position of a run in a data set. */
#include "data/pipeline/iterator_position.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/steps.h"
#include <stdio.h>
#include <string.h>

/* "batch, shuffle, from_tensors"; mix_free it. NULL with the error recorded. */
static char *steps_text(mix_dataset *dataset) {
  mix_steps steps = {0};
  size_t size = 1, used = 0;
  bool whole = mix_steps_collect(&steps, dataset, MIX_STEPS_ALL);
  for (int i = 0; i < steps.count; i++) size += strlen(steps.items[i]->class->name) + 2;
  char *text = whole ? mix_calloc(1, size) : NULL;
  for (int i = 0; text && i < steps.count; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", steps.items[i]->class->name);
  mix_steps_clear(&steps);
  return text;
}

static void part_name(const char *name, const char *part, char *text, size_t size) {
  snprintf(text, size, "%s/%s", name, part);
}

bool mix_iterator_position_put(mix_archive *archive, const char *name, mix_dataset *dataset,
                               mix_iterator *iterator) {
  char part[128];
  uint64_t *now = iterator ? NULL : mix_dataset_state_now(dataset);
  const uint64_t *state = iterator ? mix_iterator_opened(iterator) : now;
  int64_t drawn = iterator ? mix_iterator_drawn(iterator) : 0;
  const int count = state ? mix_dataset_save_state(dataset, NULL) : -1;
  char *steps = count < 0 ? NULL : steps_text(dataset);
  if (steps) {
    part_name(name, "steps", part, sizeof part);
    mix_archive_put_text(archive, part, steps);
    part_name(name, "memory", part, sizeof part);
    mix_archive_put_integers(archive, part, count, (const int64_t *)state);
    part_name(name, "drawn", part, sizeof part);
    mix_archive_put_integers(archive, part, 1, &drawn);
  }
  mix_free(steps);
  mix_free(now);
  return !mix_failed();
}

static bool same_steps(mix_archive *archive, const char *part, mix_dataset *dataset) {
  char *theirs = mix_archive_get_text(archive, part), *ours = theirs ? steps_text(dataset) : NULL;
  if (ours && strcmp(ours, theirs))
    mix_fail_value(
        "%s: the data set's steps are %s, in the checkpoint %s; resume with the data set it was trained on",
        mix_archive_path(archive), ours, theirs);
  mix_free(ours);
  mix_free(theirs);
  return !mix_failed();
}

/* Reads a position that fits the data set: its state (mix_free it) and the number of drawn elements. */
static uint64_t *read_position(mix_archive *archive, const char *name, mix_dataset *dataset, int64_t *drawn) {
  char part[128];
  part_name(name, "steps", part, sizeof part);
  if (!same_steps(archive, part, dataset)) return NULL;
  int count = mix_dataset_save_state(dataset, NULL);
  uint64_t *state = count < 0 ? NULL : mix_calloc((size_t)count + 1, sizeof *state);
  if (!state) return NULL;
  part_name(name, "memory", part, sizeof part);
  mix_archive_get_integers(archive, part, count, (int64_t *)state);
  part_name(name, "drawn", part, sizeof part);
  if (!mix_failed()) mix_archive_get_integers(archive, part, 1, drawn);
  if (!mix_failed()) return state;
  mix_free(state);
  return NULL;
}

bool mix_iterator_position_fits(mix_archive *archive, const char *name, mix_dataset *dataset) {
  int64_t drawn;
  uint64_t *state = read_position(archive, name, dataset, &drawn);
  mix_free(state);
  return state != NULL;
}

bool mix_iterator_position_get(mix_archive *archive, const char *name, mix_dataset *dataset, int64_t *drawn) {
  uint64_t *state = read_position(archive, name, dataset, drawn);
  bool done = state && mix_dataset_restore_state(dataset, state);
  mix_free(state);
  return done;
}
