/* mix_dataset_shuffle: shuffles through a buffer of bounded size. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/philox.h"
#include "data/pipeline/pipeline.h"

typedef struct shuffle_dataset {
  mix_dataset base;
  int64_t buffer_size;
  uint64_t seed;
  /* Passes begun so far by any thread (a repeat under a prefetch). Each pass draws from its own stream. */
  _Atomic uint64_t passes;
  bool reshuffle;
} shuffle_dataset;

typedef struct shuffle_cursor {
  mix_cursor base;
  /* (buffer_size): grown as elements arrive, so a buffer larger than the data costs nothing. */
  mix_element *waiting;
  int count, capacity;
  uint64_t pass, position;
} shuffle_cursor;

static bool shuffle_open(mix_cursor *cursor) {
  shuffle_dataset *dataset = (shuffle_dataset *)cursor->dataset;
  ((shuffle_cursor *)cursor)->pass = dataset->reshuffle ? dataset->passes++ : 0;
  return true;
}

/* Fills the buffer until it is full or the input ends. */
static bool fill(shuffle_cursor *shuffle) {
  int64_t size = ((const shuffle_dataset *)shuffle->base.dataset)->buffer_size;
  while (shuffle->count < size) {
    mix_element element = {0};
    mix_pull pull = mix_cursor_next(shuffle->base.input, &element);
    if (pull != MIX_PULL_ELEMENT) return pull == MIX_PULL_END;
    if (!mix_reserve(&shuffle->waiting, &shuffle->capacity, shuffle->count + 1, sizeof *shuffle->waiting)) {
      mix_release(element.values);
      return false;
    }
    shuffle->waiting[shuffle->count++] = element;
  }
  return true;
}

static mix_pull shuffle_next(mix_cursor *cursor, mix_element *element) {
  shuffle_cursor *shuffle = (shuffle_cursor *)cursor;
  if (!fill(shuffle)) return MIX_PULL_FAILED;
  if (shuffle->count == 0) return MIX_PULL_END;
  uint64_t seed = ((const shuffle_dataset *)cursor->dataset)->seed;
  uint64_t drawn = mix_philox_below(seed, shuffle->pass, &shuffle->position, (uint64_t)shuffle->count);
  *element = shuffle->waiting[drawn];
  /* The last element fills the gap; the next input element goes to the end. */
  shuffle->waiting[drawn] = shuffle->waiting[--shuffle->count];
  return MIX_PULL_ELEMENT;
}

static void shuffle_close(mix_cursor *cursor) {
  shuffle_cursor *shuffle = (shuffle_cursor *)cursor;
  for (int i = 0; i < shuffle->count; i++) mix_release(shuffle->waiting[i].values);
  mix_free(shuffle->waiting);
}

static int shuffle_save(mix_dataset *dataset, uint64_t *state) {
  if (state) {
    state[0] = ((const shuffle_dataset *)dataset)->seed;
    state[1] = ((const shuffle_dataset *)dataset)->passes;
  }
  return 2;
}
static bool shuffle_restore(mix_dataset *dataset, const uint64_t *state) {
  ((shuffle_dataset *)dataset)->seed = state[0];
  ((shuffle_dataset *)dataset)->passes = state[1];
  return true;
}

static int shuffle_numbers(const mix_dataset *dataset, int64_t numbers[MIX_STEP_NUMBERS]) {
  numbers[0] = ((const shuffle_dataset *)dataset)->buffer_size;
  numbers[1] = ((const shuffle_dataset *)dataset)->reshuffle;
  return 2;
}

static const mix_dataset_class shuffle_class = {
    .name = "shuffle",
    .cursor_size = sizeof(shuffle_cursor),
    .open = shuffle_open,
    .next = shuffle_next,
    .close = shuffle_close,
    .numbers = shuffle_numbers,
    .save = shuffle_save,
    .restore = shuffle_restore,
};

mix_dataset *mix_dataset_shuffle_with(const mix_dataset_shuffle_options *given) {
  MIX_OPTIONS(mix_dataset_shuffle_options, options, given, "dataset_shuffle");
  if (!mix_dataset_given(options.dataset, "dataset_shuffle")) return NULL;
  if (options.buffer_size < 1)
    return mix_fail_value("dataset_shuffle: buffer_size is %lld; expected 1 or more",
                          (long long)options.buffer_size);
  shuffle_dataset *dataset = mix_dataset_new(sizeof *dataset, &shuffle_class, options.dataset, true);
  if (!dataset) return NULL;
  /* A buffer of 2^31 - 1 elements holds any data set that fits into memory. */
  dataset->buffer_size = options.buffer_size < INT32_MAX ? options.buffer_size : INT32_MAX;
  dataset->seed = options.seed == MIX_INT_ZERO ? 0 : options.seed ? (uint64_t)options.seed : mix_next_seed();
  dataset->reshuffle = !options.no_reshuffle;
  return mix_scoped(dataset);
}
