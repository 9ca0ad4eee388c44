/* mix_dataset_shard: every count-th element. */
#include "base/error.h"
#include "data/pipeline/pipeline.h"

typedef struct shard_dataset {
  mix_dataset base;
  int64_t count, index;
} shard_dataset;

typedef struct shard_cursor {
  mix_cursor base;
  int64_t position; /* index of the input's next element modulo count */
} shard_cursor;

static int64_t shard_cardinality(const mix_dataset *dataset) {
  const shard_dataset *shard = (const shard_dataset *)dataset;
  int64_t input = mix_dataset_length(dataset->input);
  return input < 0 ? input : input / shard->count + (shard->index < input % shard->count);
}

static mix_pull shard_next(mix_cursor *cursor, mix_element *element) {
  const shard_dataset *dataset = (const shard_dataset *)cursor->dataset;
  shard_cursor *shard = (shard_cursor *)cursor;
  for (;;) {
    mix_pull pull = mix_cursor_next(cursor->input, element);
    if (pull != MIX_PULL_ELEMENT) return pull;
    int64_t position = shard->position;
    shard->position = position + 1 == dataset->count ? 0 : position + 1;
    if (position == dataset->index) return pull;
    mix_element_drop(element);
  }
}

static int shard_numbers(const mix_dataset *dataset, int64_t numbers[MIX_STEP_NUMBERS]) {
  numbers[0] = ((const shard_dataset *)dataset)->count;
  numbers[1] = ((const shard_dataset *)dataset)->index;
  return 2;
}

static const mix_dataset_class shard_class = {.name = "shard",
                                              .numbers = shard_numbers,
                                              .cursor_size = sizeof(shard_cursor),
                                              .cardinality = shard_cardinality,
                                              .next = shard_next};

mix_dataset *mix_dataset_shard(mix_dataset *input, int64_t count, int64_t index) {
  if (!mix_dataset_given(input, "dataset_shard")) return NULL;
  if (count < 1) return mix_fail_value("dataset_shard: count is %lld; expected 1 or more", (long long)count);
  if (index < 0 || index >= count)
    return mix_fail_value("dataset_shard: index is %lld; expected 0 or more and below count, %lld",
                          (long long)index, (long long)count);
  shard_dataset *dataset = mix_dataset_new(sizeof *dataset, &shard_class, input, true);
  if (!dataset) return NULL;
  dataset->count = count;
  dataset->index = index;
  return mix_scoped(dataset);
}
