/* Sources whose elements are rows: mix_dataset_from_list (slices of arrays) and mix_dataset_range. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/gather.h"
#include "graph/unfilled_tensor.h"

/* ---- rows: shared by slices and ranges ---- */

typedef struct rows_dataset {
  mix_dataset base;
  int64_t length;
  mix_list *arrays;    /* slices: retained */
  int64_t start, step; /* range */
} rows_dataset;

typedef struct rows_cursor {
  mix_cursor base;
  int64_t next;
} rows_cursor;

static int64_t rows_cardinality(const mix_dataset *dataset) {
  return ((const rows_dataset *)dataset)->length;
}

static mix_pull rows_next(mix_cursor *cursor, mix_element *element) {
  rows_cursor *rows = (rows_cursor *)cursor;
  if (rows->next == ((const rows_dataset *)cursor->dataset)->length) return MIX_PULL_END;
  *element = (mix_element){.row = rows->next++};
  return MIX_PULL_ELEMENT;
}

/* ---- slices of arrays ---- */

static mix_list *slices_gather(const mix_dataset *dataset, const int64_t *rows, int64_t count, bool stacked,
                               mix_buffers *buffers) {
  const mix_list *arrays = ((const rows_dataset *)dataset)->arrays;
  mix_list *values = mix_rows_gather(mix_list_count(arrays), (mix_tensor *const *)mix_list_items(arrays),
                                     rows, 0, count, stacked, NULL, buffers);
  mix_list_set_structure(values, mix_list_structure(arrays));
  return values;
}

static mix_list *slices_arrays(const mix_dataset *dataset) { return ((const rows_dataset *)dataset)->arrays; }

static void slices_finalize(mix_dataset *dataset) { mix_release(((rows_dataset *)dataset)->arrays); }

static const mix_dataset_class slices_class = {
    .name = "from_tensors",
    .cursor_size = sizeof(rows_cursor),
    .cardinality = rows_cardinality,
    .next = rows_next,
    .finalize = slices_finalize,
    .gather = slices_gather,
    .arrays = slices_arrays,
};

/* The leaves of the caller's list. NULL with the error recorded if one is NULL. */
static mix_list *leaves_of(mix_list *tensors, const char *call) {
  if (mix_failed()) return NULL;
  if (!tensors) return mix_fail_type("%s: the list is NULL", call);
  mix_list *leaves = mix_list_flatten(tensors, call);
  char what[256];
  for (int i = 0; leaves && i < mix_list_count(leaves); i++)
    if (!mix_list_items(leaves)[i])
      return mix_fail_value("%s: %s is NULL", call,
                            mix_leaf_text(mix_list_structure(leaves), i, what, sizeof what));
  return leaves;
}

mix_dataset *mix_dataset_from_list(mix_list *tensors) {
  mix_list *leaves = leaves_of(tensors, "dataset_from_tensors");
  if (!leaves) return NULL;
  int count = mix_list_count(leaves);
  void *const *items = mix_list_items(leaves);
  int64_t length =
      mix_rows_check(count, (mix_tensor *const *)items, mix_list_structure(leaves), "dataset_from_tensors");
  rows_dataset *dataset = length < 0 ? NULL : mix_dataset_new(sizeof *dataset, &slices_class, NULL, false);
  if (!dataset) return NULL;
  dataset->base.source = &dataset->base;
  dataset->base.components = count;
  dataset->length = length;
  mix_list *arrays = mix_list_new(count, items); /* a copy: the caller may append to its list */
  mix_list_set_structure(arrays, mix_list_structure(leaves));
  dataset->arrays = mix_retain(arrays);
  if (!arrays) {
    mix_release(dataset);
    return NULL;
  }
  return mix_scoped(dataset);
}

/* ---- range ---- */

static mix_list *range_gather(const mix_dataset *dataset, const int64_t *rows, int64_t count, bool stacked,
                              mix_buffers *buffers) {
  const rows_dataset *range = (const rows_dataset *)dataset;
  mix_scope *scope = mix_scope_begin();
  if (!scope || !mix_memory_reuse(&buffers->items[0], (size_t)count * sizeof(int64_t))) {
    mix_scope_end(scope);
    return NULL;
  }
  int64_t *to = mix_memory_map(buffers->items[0], MIX_MAP_WRITE);
  for (int64_t i = 0; to && i < count; i++)
    to[i] = (int64_t)((uint64_t)range->start + (uint64_t)rows[i] * (uint64_t)range->step);
  if (to) mix_memory_unmap(buffers->items[0]);
  mix_tensor *tensor =
      mix_tensor_of_memory(buffers->items[0], MIX_INT64, (mix_shape){.rank = stacked, .dims = {count}});
  mix_list *list = tensor ? mix_retain(mix_list_of(tensor)) : NULL;
  mix_scope_end(scope);
  return list;
}

static int range_numbers(const mix_dataset *dataset, int64_t numbers[MIX_STEP_NUMBERS]) {
  const rows_dataset *range = (const rows_dataset *)dataset;
  numbers[0] = range->start, numbers[1] = range->step, numbers[2] = range->length;
  return 3;
}

static const mix_dataset_class range_class = {
    .name = "range",
    .cursor_size = sizeof(rows_cursor),
    .cardinality = rows_cardinality,
    .next = rows_next,
    .gather = range_gather,
    .numbers = range_numbers,
};

mix_dataset *mix_dataset_range(int64_t start, int64_t stop, int64_t step) {
  if (mix_failed()) return NULL;
  if (step == 0) return mix_fail_value("dataset_range: step is 0; expected another number");
  bool empty = step > 0 ? start >= stop : start <= stop;
  uint64_t distance = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
  uint64_t stride = step > 0 ? (uint64_t)step : -(uint64_t)step,
           length = empty ? 0 : (distance - 1) / stride + 1;
  if (length > INT64_MAX) return mix_fail_value("dataset_range: more than 2^63 - 1 elements");
  rows_dataset *dataset = mix_dataset_new(sizeof *dataset, &range_class, NULL, false);
  if (!dataset) return NULL;
  dataset->base.source = &dataset->base;
  dataset->base.components = 1;
  dataset->length = (int64_t)length;
  dataset->start = start;
  dataset->step = step;
  return mix_scoped(dataset);
}
