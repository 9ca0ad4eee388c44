/* Batches: rows gathered from arrays at once, other elements stacked. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline.h"
#include "data/storage.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct batch_dataset {
  mix_dataset base;
  int64_t batch_size;
  bool drop_remainder;
} batch_dataset;

typedef struct batch_cursor {
  mix_cursor base;
  int64_t *rows;    /* of the batch that is being collected (count) */
  mix_list **lists; /* or its elements, retained (count) */
  int count, capacity;
  mix_buffers buffers;
} batch_cursor;

static int64_t batch_cardinality(const mix_dataset *dataset) {
  const batch_dataset *batch = (const batch_dataset *)dataset;
  int64_t input = dataset->input->class->cardinality(dataset->input);
  if (input <= 0) return input;
  return input / batch->batch_size + (!batch->drop_remainder && input % batch->batch_size != 0);
}

static void forget(batch_cursor *batch) {
  for (int i = 0; batch->lists && i < batch->count; i++) mix_release(batch->lists[i]);
  batch->count = 0;
}

/* Room for one more element of either kind. */
static bool reserve(batch_cursor *batch, bool rows) {
  int needed = batch->count + 1;
  return rows ? mix_reserve(&batch->rows, &batch->capacity, needed, sizeof *batch->rows)
              : mix_reserve(&batch->lists, &batch->capacity, needed, sizeof *batch->lists);
}

/* Component `index` of the collected elements, stacked: (count, ...) of the element's own dtype. Scoped. */
static mix_tensor *stack(batch_cursor *batch, int index) {
  mix_tensor *model = mix_list_get(batch->lists[0], index);
  mix_dtype dtype = mix_tensor_dtype(model);
  mix_shape shape = mix_tensor_shape(model), stacked = {.rank = shape.rank + 1, .dims = {batch->count}};
  char text[160], other[160];
  if (shape.rank == MIX_MAX_RANK)
    return mix_fail(MIX_VALUE_ERROR, "dataset_batch: elements have %d dimensions already, and no tensor has more", MIX_MAX_RANK);
  memcpy(stacked.dims + 1, shape.dims, (size_t)shape.rank * sizeof *shape.dims);
  size_t bytes = mix_value_bytes(dtype, shape);
  if (mix_shape_checked_size(stacked) < 0) return mix_fail_memory("a batch");
  if (!mix_buffer_reuse(&batch->buffers.items[index], mix_value_bytes(dtype, stacked))) return NULL;
  for (int i = 0; i < batch->count; i++) {
    mix_tensor *tensor = mix_list_get(batch->lists[i], index);
    if (mix_tensor_dtype(tensor) != dtype || !mix_shape_equal(mix_tensor_shape(tensor), shape))
      return mix_fail(
          MIX_VALUE_ERROR,
          "dataset_batch: tensor %d of element %d of a batch is %s %s, of its first element %s %s; all elements of a batch "
          "must be alike",
          index, i, mix_dtype_name(mix_tensor_dtype(tensor)), mix_shape_text(mix_tensor_shape(tensor), other, sizeof other),
          mix_dtype_name(dtype), mix_shape_text(shape, text, sizeof text));
    const void *data = mix_tensor_data(tensor);
    if (!data) return NULL;
    memcpy((char *)batch->buffers.items[index]->data + (size_t)i * bytes, data, bytes);
  }
  return mix_tensor_of_buffer(batch->buffers.items[index], dtype, stacked);
}

static mix_list *stack_all(batch_cursor *batch) {
  int components = mix_list_count(batch->lists[0]);
  for (int i = 1; i < batch->count; i++)
    if (mix_list_count(batch->lists[i]) != components)
      return mix_fail(MIX_VALUE_ERROR, "dataset_batch: element %d of a batch has %d tensors, its first element %d", i,
                      mix_list_count(batch->lists[i]), components);
  if (components != batch->buffers.count) {
    mix_buffers_clear(&batch->buffers);
    if (!mix_buffers_init(&batch->buffers, components)) return NULL;
  }
  mix_scope *scope = mix_scope_begin();
  mix_list *list = scope ? mix_list_new(0, NULL) : NULL;
  for (int i = 0; list && i < components; i++) {
    mix_tensor *tensor = stack(batch, i);
    if (!tensor || mix_list_append(list, tensor) != MIX_OK) list = NULL;
  }
  mix_retain(list);
  mix_scope_end(scope);
  return list;
}

static bool batch_open(mix_cursor *cursor) {
  const mix_dataset *source = cursor->dataset->input->source;
  return !source || mix_buffers_init(&((batch_cursor *)cursor)->buffers, source->components);
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
  if (batch->count == 0 || (dataset->drop_remainder && batch->count < dataset->batch_size)) return MIX_PULL_END;
  mix_list *values = source ? source->class->gather(source, batch->rows, batch->count, true, &batch->buffers) : stack_all(batch);
  forget(batch);
  *element = (mix_element){.values = values};
  return values ? MIX_PULL_ELEMENT : MIX_PULL_FAILED;
}

static void batch_close(mix_cursor *cursor) {
  batch_cursor *batch = (batch_cursor *)cursor;
  forget(batch);
  mix_free(batch->rows);
  mix_free(batch->lists);
  mix_buffers_clear(&batch->buffers);
}

static const mix_dataset_class batch_class = {
    .name = "batch",
    .cursor_size = sizeof(batch_cursor),
    .cardinality = batch_cardinality,
    .open = batch_open,
    .next = batch_next,
    .close = batch_close,
};

mix_dataset *mix_dataset_batch_with(const mix_dataset_batch_options *given) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_dataset_batch_options, options, given, "dataset_batch");
  if (!mix_dataset_given(options.dataset, "dataset_batch")) return NULL;
  if (options.batch_size < 1 || options.batch_size > INT32_MAX)
    return mix_fail(MIX_VALUE_ERROR, "dataset_batch: batch_size is %lld; expected 1 or more%s", (long long)options.batch_size,
                    options.batch_size > 1 ? ", below 2^31" : "");
  batch_dataset *dataset = mix_dataset_new(sizeof *dataset, &batch_class, options.dataset, false);
  if (!dataset) return NULL;
  dataset->batch_size = options.batch_size;
  dataset->drop_remainder = options.drop_remainder;
  return mix_scoped(dataset);
}
