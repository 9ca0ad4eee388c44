/* mix_dataset_from_generator: elements made by a function of the caller. */
#include "base/error.h"
#include "base/structure.h"
#include "data/pipeline/row_stream.h"

typedef struct generator_dataset {
  mix_dataset base;
  mix_dataset_generator_options options;
} generator_dataset;

typedef struct generator_cursor {
  mix_cursor base;
  int64_t next;
} generator_cursor;

static int64_t generator_cardinality(const mix_dataset *dataset) {
  int64_t cardinality = ((const generator_dataset *)dataset)->options.cardinality;
  return cardinality ? cardinality : MIX_UNKNOWN_CARDINALITY;
}

static mix_pull generator_next(mix_cursor *cursor, mix_element *element) {
  const generator_dataset *dataset = (const generator_dataset *)cursor->dataset;
  generator_cursor *generator = (generator_cursor *)cursor;
  mix_scope *scope = mix_scope_begin();
  if (!scope) return MIX_PULL_FAILED;
  const int64_t number = generator->next++;
  mix_list *values = dataset->options.generate(dataset->options.context, number);
  char what[256];
  if (values) values = mix_list_flatten(values, "dataset_from_generator");
  for (int i = 0; values && i < mix_list_count(values) && !mix_failed(); i++)
    if (!mix_list_items(values)[i])
      mix_fail_value("dataset_from_generator: %s is NULL",
                     mix_leaf_text(mix_list_structure(values), i, what, sizeof what));
    else if (mix_evaluate(1, (mix_tensor *const *)&mix_list_items(values)[i]) != MIX_OK)
      break;
  mix_element_explain("dataset_from_generator", number);
  *element = (mix_element){.values = mix_failed() ? NULL : mix_retain(values)};
  mix_scope_end(scope);
  return mix_failed() ? MIX_PULL_FAILED : element->values ? MIX_PULL_ELEMENT : MIX_PULL_END;
}

static mix_made generator_place(const mix_dataset *dataset) { return MIX_MADE_BY_RECEIVER; }

static const mix_dataset_class generator_class = {
    .name = "from_generator",
    .cursor_size = sizeof(generator_cursor),
    .cardinality = generator_cardinality,
    .next = generator_next,
    .calls_user = true,
    .place = generator_place,
};

mix_dataset *mix_dataset_from_generator_with(const mix_dataset_generator_options *given) {
  MIX_OPTIONS(mix_dataset_generator_options, options, given, "dataset_from_generator");
  if (!options.generate) return mix_fail_type("dataset_from_generator: the function is NULL");
  if (options.cardinality < MIX_UNKNOWN_CARDINALITY)
    return mix_fail_value(
        "dataset_from_generator: cardinality is %lld; expected a number of elements, -1 (infinite) or 0 "
        "(unknown)",
        (long long)options.cardinality);
  generator_dataset *dataset = mix_dataset_new(sizeof *dataset, &generator_class, NULL, false);
  if (!dataset) return NULL;
  dataset->options = options;
  return mix_dataset_calling(dataset, (const void *)options.generate, options.context, options.release);
}
