/* mix_dataset_filter: the elements that a predicate accepts. */
#include "base/error.h"
#include "base/loaded.h"
#include "data/pipeline/row_stream.h"

typedef struct filter_dataset {
  mix_dataset base;
  mix_dataset_filter_options options;
} filter_dataset;

typedef struct filter_cursor {
  mix_cursor base;
  mix_buffers buffers; /* the row passed to the predicate */
} filter_cursor;

static int64_t filter_cardinality(const mix_dataset *dataset) {
  (void)dataset;
  return MIX_UNKNOWN_CARDINALITY;
}

/* If the input yields rows, the row number is passed on and only the predicate gets tensors. */
static mix_pull test(filter_cursor *filter, const mix_element *element, bool *stays) {
  const filter_dataset *dataset = (const filter_dataset *)filter->base.dataset;
  mix_element gathered = {.row = element->row, .values = mix_retain(element->values)};
  mix_scope *scope = mix_scope_begin();
  if (scope && mix_element_own(dataset->base.input, &gathered, &filter->buffers))
    *stays = dataset->options.predicate(dataset->options.context, gathered.values);
  mix_release(gathered.values);
  mix_scope_end(scope);
  return mix_failed() ? MIX_PULL_FAILED : MIX_PULL_ELEMENT;
}

static mix_pull filter_next(mix_cursor *cursor, mix_element *element) {
  for (;;) {
    bool stays = false;
    mix_pull pull = mix_cursor_next(cursor->input, element);
    if (pull != MIX_PULL_ELEMENT) return pull;
    pull = test((filter_cursor *)cursor, element, &stays);
    if (pull == MIX_PULL_ELEMENT && stays) return pull;
    mix_release(element->values);
    *element = (mix_element){0};
    if (pull == MIX_PULL_FAILED) return pull;
  }
}

static void filter_close(mix_cursor *cursor) { mix_buffers_clear(&((filter_cursor *)cursor)->buffers); }

static void filter_finalize(mix_dataset *dataset) {
  const mix_dataset_filter_options *options = &((filter_dataset *)dataset)->options;
  if (options->release) options->release(options->context);
}

static const mix_dataset_class filter_class = {
    .name = "filter",
    .cursor_size = sizeof(filter_cursor),
    .cardinality = filter_cardinality,
    .next = filter_next,
    .close = filter_close,
    .finalize = filter_finalize,
};

mix_dataset *mix_dataset_filter_with(const mix_dataset_filter_options *given) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_dataset_filter_options, options, given, "dataset_filter");
  if (!mix_dataset_given(options.dataset, "dataset_filter")) return NULL;
  if (!options.predicate) return mix_fail(MIX_TYPE_ERROR, "dataset_filter: the predicate is NULL");
  filter_dataset *dataset = mix_dataset_new(sizeof *dataset, &filter_class, options.dataset, true);
  if (!dataset) return NULL;
  dataset->options = options;
  mix_keep_loaded((const void *)options.predicate);
  dataset->options.release = NULL; /* the context is the caller's until nothing can fail */
  if (!mix_scoped(dataset)) return NULL;
  dataset->options.release = options.release;
  return &dataset->base;
}
