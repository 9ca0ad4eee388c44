/* mix_dataset_element_spec: the first element as text. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/structure.h"
#include "data/pipeline/pipeline.h"
#include "tensor/shape.h"
#include <stdio.h>

static void write_tensor(void *context, int leaf, char *text, size_t size) {
  mix_tensor *tensor = mix_list_items(context)[leaf];
  snprintf(text, size, "%s %s", mix_dtype_name(mix_tensor_dtype(tensor)),
           MIX_SHAPE_TEXT(mix_tensor_shape(tensor)));
}

static const char *spec_of(mix_dataset *dataset) {
  char text[4096];
  const char *spec = NULL;
  MIX_SCOPE {
    mix_list *element = mix_iterator_next_leaves(mix_dataset_iterate(dataset));
    if (element)
      spec = mix_intern(mix_structure_text(element, write_tensor, element, text, sizeof text));
    else
      mix_fail_value("dataset_element_spec: the data set has no elements");
  }
  return spec;
}

const char *mix_dataset_element_spec(mix_dataset *dataset) {
  if (!mix_dataset_given(dataset, "dataset_element_spec")) return NULL;
  uint64_t *state = mix_dataset_state_now(dataset);
  const char *spec = state ? spec_of(dataset) : NULL;
  if (spec && !mix_dataset_restore_state(dataset, state)) spec = NULL;
  mix_free(state);
  return spec;
}
