/* mix_dataset_batch: rows of arrays are gathered at once, other elements are stacked. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/stack.h"

typedef struct batch_dataset {
  mix_dataset base;
  int64_t batch_size;
  bool drop_remainder;
} batch_dataset;

typedef struct batch_cursor {
  mix_cursor base;
  int64_t *rows;    /* (count): row numbers of the batch being collected */
  mix_list **lists; /* (count): or its elements, retained */
  int count, capacity;
} batch_cursor;

static int64_t batch_cardinality(const mix_dataset *dataset) {
  const batch_dataset *batch = (const batch_dataset *)dataset;
  int64_t input = mix_dataset_length(dataset->input);
  if (input <= 0) return input;
  return input / batch->batch_size + (!batch->drop_remainder && input % batch->batch_size != 0);
}

static void drop_collected(batch_cursor *batch) {
  for (int i = 0; batch->lists && i < batch->count; i++) mix_release(batch->lists[i]);
  batch->count = 0;
}

/* Reserves memory for one more element of either kind. */
static bool reserve(batch_cursor *batch, bool rows) {
  int needed = batch->count + 1;
  return rows ? mix_reserve(&batch->rows, &batch->capacity, needed, sizeof *batch->rows)
              : mix_reserve(&batch->lists, &batch->capacity, needed, sizeof *batch->lists);
}

static bool batch_open(mix_cursor *cursor) {
  const mix_dataset *source = cursor->dataset->input->source;
  return !source || mix_buffers_init(&cursor->buffers, source->components);
}

static mix_pull batch_next(mix_cursor *cursor, mix_element *element) {
  batch_cursor *batch = (batch_cursor *)cursor;
  const batch_dataset *dataset = (const batch_dataset *)cursor->dataset;
  const mix_dataset *source = dataset->base.input->source;
  mix_pull pull = MIX_PULL_ELEMENT;
  while (batch->count < dataset->batch_size) {
    mix_element one = {0};
    pull = mix_cursor_next(cursor->input, &one);
    if (pull != MIX_PULL_ELEMENT) break;
    if (!reserve(batch, source != NULL)) {
      mix_release(one.values);
      return MIX_PULL_FAILED;
    }
    if (source)
      batch->rows[batch->count++] = one.row;
    else
      batch->lists[batch->count++] = one.values;
  }
  if (pull == MIX_PULL_FAILED) return pull;
  if (batch->count == 0 || (dataset->drop_remainder && batch->count < dataset->batch_size))
    return MIX_PULL_END;
  mix_list *values =
      source ? source->class->gather(source, batch->rows, batch->count, true, &batch->base.buffers)
             : mix_stack_elements(batch->lists, batch->count, &batch->base.buffers, "dataset_batch");
  drop_collected(batch);
  *element = (mix_element){.values = values};
  return values ? MIX_PULL_ELEMENT : MIX_PULL_FAILED;
}

static void batch_close(mix_cursor *cursor) {
  batch_cursor *batch = (batch_cursor *)cursor;
  drop_collected(batch);
  mix_free(batch->rows);
  mix_free(batch->lists);
}

static int batch_numbers(const mix_dataset *dataset, int64_t numbers[MIX_STEP_NUMBERS]) {
  const batch_dataset *batch = (const batch_dataset *)dataset;
  numbers[0] = batch->batch_size;
  numbers[1] = batch->drop_remainder;
  return 1 + batch->drop_remainder;
}

static const mix_dataset_class batch_class = {
    .name = "batch",
    .cursor_size = sizeof(batch_cursor),
    .cardinality = batch_cardinality,
    .open = batch_open,
    .next = batch_next,
    .close = batch_close,
    .numbers = batch_numbers,
};

mix_dataset *mix_dataset_batch_with(const mix_dataset_batch_options *given) {
  MIX_OPTIONS(mix_dataset_batch_options, options, given, "dataset_batch");
  if (!mix_dataset_given(options.dataset, "dataset_batch")) return NULL;
  if (options.batch_size < 1 || options.batch_size > INT32_MAX)
    return mix_fail_value("dataset_batch: batch_size is %lld; expected 1 or more%s",
                          (long long)options.batch_size, options.batch_size > 1 ? ", below 2^31" : "");
  batch_dataset *dataset = mix_dataset_new(sizeof *dataset, &batch_class, options.dataset, false);
  if (!dataset) return NULL;
  dataset->batch_size = options.batch_size;
  dataset->drop_remainder = options.drop_remainder;
  return mix_scoped(dataset);
}
