/* What the steps of a data set remember from one pass to the next. */
#include "base/alloc.h"
#include "data/pipeline/pipeline.h"

mix_dataset *mix_dataset_beside(const mix_dataset *dataset, int index) {
  mix_dataset *other = dataset->class->beside ? dataset->class->beside(dataset, index) : NULL;
  return other == dataset->input ? NULL : other;
}

/* The next place in a walk over what has memory; NULL behind a step that speaks for its input. */
static mix_dataset *next_with_memory(const mix_dataset *dataset) {
  return dataset->class->opens_input ? NULL : dataset->input;
}

int mix_dataset_save_state(mix_dataset *dataset, uint64_t *memory) {
  int count = 0;
  for (; dataset; dataset = next_with_memory(dataset)) {
    if (dataset->class->save) count += dataset->class->save(dataset, memory ? memory + count : NULL);
    mix_dataset *other;
    for (int i = 0; (other = mix_dataset_beside(dataset, i)); i++)
      count += mix_dataset_save_state(other, memory ? memory + count : NULL);
  }
  return count;
}

bool mix_dataset_restore_state(mix_dataset *dataset, const uint64_t *memory) {
  for (; dataset; dataset = next_with_memory(dataset)) {
    if (dataset->class->save) {
      if (!dataset->class->restore(dataset, memory)) return false;
      memory += dataset->class->save(dataset, NULL);
    }
    mix_dataset *other;
    for (int i = 0; (other = mix_dataset_beside(dataset, i)); i++) {
      if (!mix_dataset_restore_state(other, memory)) return false;
      memory += mix_dataset_save_state(other, NULL);
    }
  }
  return true;
}

uint64_t *mix_dataset_state_now(mix_dataset *dataset) {
  uint64_t *memory = mix_calloc((size_t)mix_dataset_save_state(dataset, NULL) + 1, sizeof *memory);
  if (memory) mix_dataset_save_state(dataset, memory);
  return memory;
}
