/* mix_dataset_from_element: a data set of one element. */
#include "base/error.h"
#include "base/structure.h"
#include "data/pipeline/row_stream.h"

typedef struct element_dataset {
  mix_dataset base;
  mix_list *values; /* retained */
} element_dataset;

typedef struct element_cursor {
  mix_cursor base;
  bool done;
} element_cursor;

static int64_t element_cardinality(const mix_dataset *dataset) { return 1; }

static mix_pull element_next(mix_cursor *cursor, mix_element *element) {
  element_cursor *one = (element_cursor *)cursor;
  if (one->done) return MIX_PULL_END;
  one->done = true;
  *element = (mix_element){.values = mix_retain(((const element_dataset *)cursor->dataset)->values)};
  return MIX_PULL_ELEMENT;
}

static void element_finalize(mix_dataset *dataset) { mix_release(((element_dataset *)dataset)->values); }

static const mix_dataset_class element_class = {
    .name = "from_tensor",
    .cursor_size = sizeof(element_cursor),
    .cardinality = element_cardinality,
    .next = element_next,
    .finalize = element_finalize,
};

mix_dataset *mix_dataset_from_element(mix_list *tensors) {
  if (mix_failed()) return NULL;
  if (!tensors) return mix_fail_type("dataset_from_tensor: the list is NULL");
  mix_list *leaves = mix_list_flatten(tensors, "dataset_from_tensor");
  int count = mix_list_count(leaves);
  void *const *items = mix_list_items(leaves);
  char what[256];
  if (!mix_failed() && count == 0) mix_fail_value("dataset_from_tensor: no tensors; expected at least one");
  for (int i = 0; i < count; i++)
    if (!items[i])
      mix_fail_value("dataset_from_tensor: %s is NULL",
                     mix_leaf_text(mix_list_structure(leaves), i, what, sizeof what));
  if (mix_failed() || mix_evaluate(count, (mix_tensor *const *)items) != MIX_OK) return NULL;
  element_dataset *dataset = mix_dataset_new(sizeof *dataset, &element_class, NULL, false);
  if (!dataset) return NULL;
  dataset->values = mix_retain(mix_list_new(count, items)); /* a copy: the caller may append to its list */
  mix_list_set_structure(dataset->values, mix_list_structure(leaves));
  if (!dataset->values) {
    mix_release(dataset);
    return NULL;
  }
  return mix_scoped(dataset);
}
