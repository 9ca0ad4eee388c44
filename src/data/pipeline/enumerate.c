/* mix_dataset_enumerate: prepends its index to each element. */
#include "base/error.h"
#include "base/structure.h"
#include "data/pipeline/row_stream.h"

typedef struct enumerate_dataset {
  mix_dataset base;
  int64_t start;
} enumerate_dataset;

typedef struct enumerate_cursor {
  mix_cursor base;
  int64_t next;
} enumerate_cursor;

static bool enumerate_open(mix_cursor *cursor) {
  ((enumerate_cursor *)cursor)->next = ((const enumerate_dataset *)cursor->dataset)->start;
  return true;
}

static mix_pull enumerate_next(mix_cursor *cursor, mix_element *element) {
  enumerate_cursor *enumerate = (enumerate_cursor *)cursor;
  mix_element unnumbered = {0};
  mix_pull pull = mix_cursor_next(cursor->input, &unnumbered);
  if (pull != MIX_PULL_ELEMENT) return pull;
  mix_scope *scope = mix_scope_begin();
  mix_list *values = NULL;
  if (scope && mix_element_values(cursor->dataset->input, &unnumbered, &cursor->buffers)) {
    mix_tensor *number = mix_tensor_from(&enumerate->next, MIX_INT64, MIX_SCALAR);
    values = number ? mix_list_of(number) : NULL;
    enumerate->next = (int64_t)((uint64_t)enumerate->next + 1);
  }
  for (int i = 0; values && i < mix_list_count(unnumbered.values); i++)
    if (mix_list_append(values, mix_list_items(unnumbered.values)[i]) != MIX_OK) values = NULL;
  const mix_structure *inner = mix_list_structure(unnumbered.values);
  if (inner)
    mix_list_set_structure(values, mix_structure_of(2, NULL, (const mix_structure *[]){NULL, inner}));
  mix_release(unnumbered.values);
  *element = (mix_element){.values = mix_retain(values)};
  mix_scope_end(scope);
  return element->values && !mix_failed() ? MIX_PULL_ELEMENT : MIX_PULL_FAILED;
}

static const mix_dataset_class enumerate_class = {
    .name = "enumerate",
    .cursor_size = sizeof(enumerate_cursor),
    .open = enumerate_open,
    .next = enumerate_next,
};

mix_dataset *mix_dataset_enumerate(mix_dataset *input, int64_t start) {
  if (!mix_dataset_given(input, "dataset_enumerate")) return NULL;
  enumerate_dataset *dataset = mix_dataset_new(sizeof *dataset, &enumerate_class, input, false);
  if (!dataset) return NULL;
  dataset->start = start;
  return mix_scoped(dataset);
}
