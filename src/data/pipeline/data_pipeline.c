/* Pipelines in one expression: steps of dataset.h that get their dataset last. */
#include "base/error.h"
#include <mixtape/data_pipeline.h>

mix_dataset *mix_data_pipeline_of(mix_dataset *source, int count, const mix_data_step *steps) {
  if (mix_failed()) return NULL;
  if (count < 0 || (count > 0 && !steps))
    return mix_fail_value("data_pipeline: got %d steps%s; expected an array of 0 or more", count,
                          steps ? "" : " at NULL");
  for (int i = 0; i < count; i++)
    if (!steps[i].apply)
      return mix_fail_type("data_pipeline: `apply` of step %d is NULL; expected a function", i);
  for (int i = 0; i < count && (source || !i); i++) source = steps[i].apply(source, steps[i].options);
  return source;
}

#define APPLY_WITH(step)                                                                                     \
  mix_dataset *mix_data_apply_##step(mix_dataset *dataset, const void *given) {                              \
    mix_dataset_##step##_options options = {0};                                                              \
    mix_options_copy(&options, sizeof options, given, "dataset_" #step);                                     \
    options.size = sizeof options;                                                                           \
    options.dataset = dataset;                                                                               \
    return mix_dataset_##step##_with(&options);                                                              \
  }
APPLY_WITH(shuffle)
APPLY_WITH(batch)
APPLY_WITH(padded_batch)
APPLY_WITH(window)
APPLY_WITH(map)
APPLY_WITH(filter)
APPLY_WITH(interleave)

static mix_dataset *fail_number(const char *step) {
  return mix_fail_type("data_pipeline: the step %s got no number; expected an int64_t", step);
}
#define APPLY_NUMBER(step)                                                                                   \
  mix_dataset *mix_data_apply_##step(mix_dataset *dataset, const void *number) {                             \
    if (!number) return fail_number(#step);                                                                  \
    return mix_dataset_##step(dataset, *(const int64_t *)number);                                            \
  }
APPLY_NUMBER(repeat)
APPLY_NUMBER(take)
APPLY_NUMBER(skip)
APPLY_NUMBER(enumerate)
APPLY_NUMBER(prefetch)

mix_dataset *mix_data_apply_shard(mix_dataset *dataset, const void *count_and_index) {
  const int64_t *numbers = count_and_index;
  if (!numbers) return fail_number("shard");
  return mix_dataset_shard(dataset, numbers[0], numbers[1]);
}
mix_dataset *mix_data_apply_unbatch(mix_dataset *dataset, const void *unused) {
  return mix_dataset_unbatch(dataset);
}
mix_dataset *mix_data_apply_cache(mix_dataset *dataset, const void *unused) {
  return mix_dataset_cache(dataset);
}
