/* Saves and restores the state of a data set: what its steps keep from one pass to the next. */
#include "base/alloc.h"
#include "data/pipeline/pipeline.h"

mix_dataset *mix_dataset_beside(const mix_dataset *dataset, int index) {
  mix_dataset *other = dataset->class->beside ? dataset->class->beside(dataset, index) : NULL;
  return other == dataset->input ? NULL : other;
}

/* The next step in a walk over steps with state; NULL after a step that handles its input's state itself. */
static mix_dataset *next_with_state(const mix_dataset *dataset) {
  return dataset->class->opens_input ? NULL : dataset->input;
}

int mix_dataset_save_state(mix_dataset *dataset, uint64_t *state) {
  int count = 0;
  for (; dataset; dataset = next_with_state(dataset)) {
    if (dataset->class->save) count += dataset->class->save(dataset, state ? state + count : NULL);
    mix_dataset *other;
    for (int i = 0; (other = mix_dataset_beside(dataset, i)); i++)
      count += mix_dataset_save_state(other, state ? state + count : NULL);
  }
  return count;
}

bool mix_dataset_restore_state(mix_dataset *dataset, const uint64_t *state) {
  for (; dataset; dataset = next_with_state(dataset)) {
    if (dataset->class->save) {
      if (!dataset->class->restore(dataset, state)) return false;
      state += dataset->class->save(dataset, NULL);
    }
    mix_dataset *other;
    for (int i = 0; (other = mix_dataset_beside(dataset, i)); i++) {
      if (!mix_dataset_restore_state(other, state)) return false;
      state += mix_dataset_save_state(other, NULL);
    }
  }
  return true;
}

uint64_t *mix_dataset_state_now(mix_dataset *dataset) {
  uint64_t *state = mix_calloc((size_t)mix_dataset_save_state(dataset, NULL) + 1, sizeof *state);
  if (state) mix_dataset_save_state(dataset, state);
  return state;
}
