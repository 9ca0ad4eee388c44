/* mix_dataset_filter: the elements that a predicate accepts. */
#include "base/error.h"
#include "data/pipeline/row_stream.h"

typedef struct filter_dataset {
  mix_dataset base;
  mix_dataset_filter_options options;
} filter_dataset;

static int64_t filter_cardinality(const mix_dataset *dataset) { return MIX_UNKNOWN_CARDINALITY; }

/* If the input yields rows, the row number is passed on and only the predicate gets tensors. */
static mix_pull test(mix_cursor *cursor, const mix_element *element, bool *stays) {
  const filter_dataset *dataset = (const filter_dataset *)cursor->dataset;
  mix_element gathered = {.row = element->row, .values = mix_retain(element->values)};
  mix_scope *scope = mix_scope_begin();
  if (scope && mix_element_own(dataset->base.input, &gathered, &cursor->buffers))
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
    pull = test(cursor, element, &stays);
    if (pull == MIX_PULL_ELEMENT && stays) return pull;
    mix_element_drop(element);
    if (pull == MIX_PULL_FAILED) return pull;
  }
}

static mix_made filter_place(const mix_dataset *dataset) { return MIX_MADE_BY_RECEIVER; }

static const mix_dataset_class filter_class = {
    .name = "filter",
    .place = filter_place,
    .cursor_size = sizeof(mix_cursor),
    .cardinality = filter_cardinality,
    .next = filter_next,
};

mix_dataset *mix_dataset_filter_with(const mix_dataset_filter_options *given) {
  MIX_OPTIONS(mix_dataset_filter_options, options, given, "dataset_filter");
  if (!mix_dataset_given(options.dataset, "dataset_filter")) return NULL;
  if (!options.predicate) return mix_fail_type("dataset_filter: the predicate is NULL");
  filter_dataset *dataset = mix_dataset_new(sizeof *dataset, &filter_class, options.dataset, true);
  if (!dataset) return NULL;
  dataset->options = options;
  return mix_dataset_calling(dataset, (const void *)options.predicate, options.context, options.release);
}
