/* mix_dataset_repeat, take and skip: steps that do not look into elements. */
#include "base/error.h"
#include "data/pipeline/pipeline.h"

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
static int64_t input_cardinality(const mix_dataset *dataset) {
  return dataset->input->class->cardinality(dataset->input);
}

static mix_dataset *count_new(const mix_dataset_class *class, mix_dataset *input, int64_t count,
                              const char *call) {
  if (!mix_dataset_given(input, call)) return NULL;
  if (count < -1)
    return mix_fail(MIX_VALUE_ERROR, "%s: count is %lld; expected 0 or more, or -1", call, (long long)count);
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
                                               .next = repeat_next};

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

static mix_pull take_next(mix_cursor *cursor, mix_element *element) {
  count_cursor *take = (count_cursor *)cursor;
  int64_t count = count_of(cursor);
  if (count >= 0 && take->done == count) return MIX_PULL_END;
  take->done++;
  return mix_cursor_next(cursor->input, element);
}

static const mix_dataset_class take_class = {
    .name = "take", .cursor_size = sizeof(count_cursor), .cardinality = take_cardinality, .next = take_next};

mix_dataset *mix_dataset_take(mix_dataset *dataset, int64_t count) {
  return count_new(&take_class, dataset, count, "dataset_take");
}

/* ---- skip ---- */

static int64_t skip_cardinality(const mix_dataset *dataset) {
  int64_t count = ((const count_dataset *)dataset)->count, input = input_cardinality(dataset);
  if (count < 0) return 0;
  return input < 0 ? input : input > count ? input - count : 0;
}

static mix_pull skip_next(mix_cursor *cursor, mix_element *element) {
  count_cursor *skip = (count_cursor *)cursor;
  if (count_of(cursor) < 0) return MIX_PULL_END;
  for (; skip->done < count_of(cursor); skip->done++) {
    mix_pull pull = mix_cursor_next(cursor->input, element);
    if (pull != MIX_PULL_ELEMENT) return pull;
    mix_release(element->values);
    *element = (mix_element){0};
  }
  return mix_cursor_next(cursor->input, element);
}

static const mix_dataset_class skip_class = {
    .name = "skip", .cursor_size = sizeof(count_cursor), .cardinality = skip_cardinality, .next = skip_next};

mix_dataset *mix_dataset_skip(mix_dataset *dataset, int64_t count) {
  return count_new(&skip_class, dataset, count, "dataset_skip");
}
