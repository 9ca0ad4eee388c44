/* mix_dataset_concatenate: one data set after another. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/structure.h"
#include "data/pipeline/read_ahead.h"
#include "data/pipeline/row_stream.h"

typedef struct concatenate_dataset {
  mix_dataset base;    /* base.input is the first data set */
  mix_dataset *second; /* retained */
} concatenate_dataset;

typedef struct concatenate_cursor {
  mix_cursor base;
  mix_stream second; /* opened when the first data set has ended */
  mix_dtype *dtypes; /* (components) of the first element; NULL before it */
  int components;
  const mix_structure *structure; /* of the first element */
} concatenate_cursor;

static int64_t concatenate_cardinality(const mix_dataset *dataset) {
  const mix_dataset *second = ((const concatenate_dataset *)dataset)->second;
  int64_t a = mix_dataset_length(dataset->input), b = mix_dataset_length(second), sum;
  if (a == MIX_INFINITE || b == MIX_INFINITE) return MIX_INFINITE;
  if (a < 0 || b < 0) return MIX_UNKNOWN_CARDINALITY;
  return __builtin_add_overflow(a, b, &sum) ? MIX_INFINITE : sum;
}

/* All elements must match the first in number of tensors and dtypes. */
static bool check(concatenate_cursor *cursor, const mix_list *values) {
  int count = mix_list_count(values);
  mix_tensor *const *tensors = (mix_tensor *const *)mix_list_items(values);
  char text[512];
  if (!cursor->dtypes) {
    if (!(cursor->dtypes = mix_calloc((size_t)count + 1, sizeof *cursor->dtypes))) return false;
    cursor->components = count;
    cursor->structure = mix_list_structure(values);
    for (int i = 0; i < count; i++) cursor->dtypes[i] = mix_tensor_dtype(tensors[i]);
  }
  if (count != cursor->components)
    return mix_fail_type(
        "dataset_concatenate: an element has %d tensors, the first one %d; both data sets must be alike",
        count, cursor->components);
  if (mix_list_structure(values) != cursor->structure)
    return mix_fail_type(
        "dataset_concatenate: an element has the structure %s, which is not that of the first one; both "
        "data sets must be nested alike",
        mix_structure_text(values, NULL, NULL, text, sizeof text));
  for (int i = 0; i < count; i++)
    if (mix_tensor_dtype(tensors[i]) != cursor->dtypes[i])
      return mix_fail_type(
          "dataset_concatenate: %s of an element is %s, of the first one %s; cast it in a map first",
          mix_leaf_text(cursor->structure, i, text, sizeof text),
          mix_dtype_name(mix_tensor_dtype(tensors[i])), mix_dtype_name(cursor->dtypes[i]));
  return true;
}

static mix_pull concatenate_next(mix_cursor *cursor, mix_element *element) {
  concatenate_cursor *concatenate = (concatenate_cursor *)cursor;
  const concatenate_dataset *dataset = (const concatenate_dataset *)cursor->dataset;
  bool rows = dataset->base.source != NULL; /* both share one source: no check is needed */
  mix_pull pull = MIX_PULL_END;
  if (cursor->input) {
    pull = mix_cursor_next(cursor->input, element);
    if (pull == MIX_PULL_ELEMENT && !rows &&
        !mix_element_values(dataset->base.input, element, &cursor->buffers))
      return MIX_PULL_FAILED;
    if (pull == MIX_PULL_END) {
      mix_cursor_close(cursor->input);
      cursor->input = NULL;
      if (!mix_read_ahead_may_begin(dataset->second) ||
          !mix_stream_open(&concatenate->second, dataset->second))
        return MIX_PULL_FAILED;
    }
  }
  if (pull == MIX_PULL_END)
    pull = rows ? mix_cursor_next(concatenate->second.cursor, element)
                : mix_stream_next(&concatenate->second, element);
  if (pull != MIX_PULL_ELEMENT || rows || check(concatenate, element->values)) return pull;
  mix_element_drop(element);
  return MIX_PULL_FAILED;
}

static void concatenate_close(mix_cursor *cursor) {
  concatenate_cursor *concatenate = (concatenate_cursor *)cursor;
  mix_stream_close(&concatenate->second);
  mix_free(concatenate->dtypes);
}

static void concatenate_finalize(mix_dataset *dataset) {
  mix_release(((concatenate_dataset *)dataset)->second);
}

static mix_dataset *concatenate_beside(const mix_dataset *dataset, int index) {
  return index ? NULL : ((const concatenate_dataset *)dataset)->second;
}

static const mix_dataset_class concatenate_class = {
    .name = "concatenate",
    .cursor_size = sizeof(concatenate_cursor),
    .cardinality = concatenate_cardinality,
    .next = concatenate_next,
    .close = concatenate_close,
    .finalize = concatenate_finalize,
    .beside = concatenate_beside,
};

mix_dataset *mix_dataset_concatenate(mix_dataset *first, mix_dataset *second) {
  if (!mix_dataset_given(first, "dataset_concatenate") || !mix_dataset_given(second, "dataset_concatenate"))
    return NULL;
  concatenate_dataset *dataset =
      mix_dataset_new(sizeof *dataset, &concatenate_class, first, first->source == second->source);
  if (!dataset) return NULL;
  dataset->second = mix_retain(second);
  return mix_scoped(dataset);
}
