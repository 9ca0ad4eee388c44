/* mix_dataset_repeat, take and skip: steps that do not look into elements. */
#include "base/error.h"
#include "data/pipeline/read_ahead.h"

typedef struct count_dataset {
  mix_dataset base;
  int64_t count; /* -1: infinite (repeat), all (take), none left (skip) */
} count_dataset;

typedef struct count_cursor {
  mix_cursor base;
  int64_t done;
  bool any; /* repeat: this round had an element */
} count_cursor;

static int64_t count_of(const mix_cursor *cursor) { return ((const count_dataset *)cursor->dataset)->count; }
static int64_t input_cardinality(const mix_dataset *dataset) { return mix_dataset_length(dataset->input); }

static int count_numbers(const mix_dataset *dataset, int64_t numbers[MIX_STEP_NUMBERS]) {
  numbers[0] = ((const count_dataset *)dataset)->count;
  return 1;
}

static mix_dataset *count_new(const mix_dataset_class *class, mix_dataset *input, int64_t count,
                              const char *call) {
  if (!mix_dataset_given(input, call)) return NULL;
  if (count < -1)
    return mix_fail_value("%s: count is %lld; expected 0 or more, or -1", call, (long long)count);
  count_dataset *dataset = mix_dataset_new(sizeof *dataset, class, input, true);
  if (!dataset) return NULL;
  dataset->count = count;
  return mix_scoped(dataset);
}

/* ---- repeat ---- */

static int64_t repeat_cardinality(const mix_dataset *dataset) {
  int64_t count = ((const count_dataset *)dataset)->count, input = input_cardinality(dataset), product;
  if (count == 0 || input == 0) return 0;
  if (count < 0) return MIX_INFINITE; /* as in tf.data, also for an input of unknown length */
  if (input < 0) return input;
  return __builtin_mul_overflow(count, input, &product) ? MIX_INFINITE : product;
}

static mix_pull repeat_next(mix_cursor *cursor, mix_element *element) {
  count_cursor *repeat = (count_cursor *)cursor;
  int64_t count = count_of(cursor);
  while (count < 0 || repeat->done < count) {
    if (!cursor->input && !mix_read_ahead_may_begin(cursor->dataset->input)) return MIX_PULL_FAILED;
    if (!cursor->input && !(cursor->input = mix_cursor_open(cursor->dataset->input))) return MIX_PULL_FAILED;
    mix_pull pull = mix_cursor_next(cursor->input, element);
    if (pull != MIX_PULL_END) {
      repeat->any = true;
      return pull;
    }
    /* An empty input repeated for ever is empty. An input known to be empty need not be pulled `count` times
     * either. */
    if (!repeat->any && (count < 0 || input_cardinality(cursor->dataset) == 0)) return MIX_PULL_END;
    repeat->any = false;
    repeat->done++;
    mix_cursor_close(cursor->input);
    cursor->input = NULL;
  }
  return MIX_PULL_END;
}

static const mix_dataset_class repeat_class = {.name = "repeat",
                                               .cursor_size = sizeof(count_cursor),
                                               .cardinality = repeat_cardinality,
                                               .next = repeat_next,
                                               .numbers = count_numbers};

mix_dataset *mix_dataset_repeat(mix_dataset *dataset, int64_t count) {
  return count_new(&repeat_class, dataset, count, "dataset_repeat");
}

/* ---- take ---- */

static int64_t take_cardinality(const mix_dataset *dataset) {
  int64_t count = ((const count_dataset *)dataset)->count, input = input_cardinality(dataset);
  if (count < 0 || count == 0) return count < 0 ? input : 0;
  if (input == MIX_INFINITE) return count;
  return input < 0 || input < count ? input : count;
}

static const mix_dataset_class take_class, skip_class;

/* Goes through takes of takes in a loop, so that any number of them needs no stack. */
static mix_pull take_next(mix_cursor *cursor, mix_element *element) {
  for (; cursor->dataset->class == &take_class; cursor = cursor->input) {
    count_cursor *take = (count_cursor *)cursor;
    if (count_of(cursor) >= 0 && take->done == count_of(cursor)) return MIX_PULL_END;
    take->done++;
  }
  return mix_cursor_next(cursor, element);
}

static const mix_dataset_class take_class = {.name = "take",
                                             .cursor_size = sizeof(count_cursor),
                                             .cardinality = take_cardinality,
                                             .next = take_next,
                                             .numbers = count_numbers};

mix_dataset *mix_dataset_take(mix_dataset *dataset, int64_t count) {
  return count_new(&take_class, dataset, count, "dataset_take");
}

/* ---- skip ---- */

static int64_t skip_cardinality(const mix_dataset *dataset) {
  int64_t count = ((const count_dataset *)dataset)->count, input = input_cardinality(dataset);
  if (count < 0) return 0;
  return input < 0 ? input : input > count ? input - count : 0;
}

/* As take_next: skips of skips leave out their elements one after the other, the innermost first. */
static mix_pull skip_next(mix_cursor *cursor, mix_element *element) {
  uint64_t left = 0;
  for (; cursor->dataset->class == &skip_class; cursor = cursor->input) {
    count_cursor *skip = (count_cursor *)cursor;
    if (count_of(cursor) < 0) return MIX_PULL_END;
    const uint64_t more = (uint64_t)(count_of(cursor) - skip->done);
    left = more > UINT64_MAX - left ? UINT64_MAX : left + more;
    skip->done = count_of(cursor);
  }
  for (; left > 0; left--) {
    mix_pull pull = mix_cursor_next(cursor, element);
    if (pull != MIX_PULL_ELEMENT) return pull;
    mix_element_drop(element);
  }
  return mix_cursor_next(cursor, element);
}

static const mix_dataset_class skip_class = {.name = "skip",
                                             .cursor_size = sizeof(count_cursor),
                                             .cardinality = skip_cardinality,
                                             .next = skip_next,
                                             .numbers = count_numbers};

mix_dataset *mix_dataset_skip(mix_dataset *dataset, int64_t count) {
  return count_new(&skip_class, dataset, count, "dataset_skip");
}
