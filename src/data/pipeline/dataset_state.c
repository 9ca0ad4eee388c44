/* Saves and restores the state of a data set: what its steps keep from one pass to the next. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/steps.h"

int mix_dataset_save_state(mix_dataset *dataset, uint64_t *state) {
  mix_steps steps = {0};
  int count = mix_steps_collect(&steps, dataset, MIX_STEPS_WITH_STATE) ? 0 : -1;
  for (int i = 0; count >= 0 && i < steps.count; i++) {
    const mix_dataset_class *class = steps.items[i]->class;
    const int own = class->save ? class->save(steps.items[i], state ? state + count : NULL) : 0;
    count = own < 0 ? -1 : count + own;
  }
  mix_steps_clear(&steps);
  return count;
}

bool mix_dataset_restore_state(mix_dataset *dataset, const uint64_t *state) {
  mix_steps steps = {0};
  bool done = mix_steps_collect(&steps, dataset, MIX_STEPS_WITH_STATE);
  for (int i = 0; done && i < steps.count; i++) {
    mix_dataset *step = steps.items[i];
    if (!step->class->save) continue;
    done = step->class->restore(step, state);
    const int own = done ? step->class->save(step, NULL) : -1;
    done = own >= 0;
    if (done) state += own;
  }
  mix_steps_clear(&steps);
  return done;
}

uint64_t *mix_dataset_state_now(mix_dataset *dataset) {
  const int count = mix_dataset_save_state(dataset, NULL);
  uint64_t *state = count < 0 ? NULL : mix_calloc((size_t)count + 1, sizeof *state);
  if (!state || mix_dataset_save_state(dataset, state) >= 0) return state;
  mix_free(state);
  return NULL;
}
