/* mix_dataset_padded_batch: batches of elements of different shapes, padded to the largest or to a given
 * shape. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/structure.h"
#include "compile/evaluate.h"
#include "graph/unfilled_tensor.h"
#include "data/pipeline/row_stream.h"
#include "data/pipeline/stack.h"
#include "tensor/convert.h"
#include "tensor/shape.h"

typedef struct padded_dataset {
  mix_dataset base;
  mix_dataset_padded_batch_options options;
} padded_dataset;

typedef struct padded_cursor {
  mix_cursor base;
  mix_list **lists; /* (count): the elements of the batch being collected, retained */
  int count, capacity;
} padded_cursor;

static int64_t padded_cardinality(const mix_dataset *dataset) {
  const mix_dataset_padded_batch_options *options = &((const padded_dataset *)dataset)->options;
  int64_t input = mix_dataset_length(dataset->input);
  if (input <= 0) return input;
  return input / options->batch_size + (!options->drop_remainder && input % options->batch_size != 0);
}

static void drop_collected(padded_cursor *padded) {
  for (int i = 0; i < padded->count; i++) mix_release(padded->lists[i]);
  padded->count = 0;
}

/* The padded shape of component `index` over all collected elements. */
static bool padded_shape(const padded_cursor *padded, int index, mix_shape *shape) {
  const mix_shape *given = &((const padded_dataset *)padded->base.dataset)->options.padded_shapes[index];
  mix_tensor *model = mix_list_get(padded->lists[0], index);
  char text[160], what[256];
  mix_leaf_text(mix_list_structure(padded->lists[0]), index, what, sizeof what);
  *shape = mix_tensor_shape(model);
  for (int i = 0; i < padded->count; i++) {
    mix_tensor *tensor = mix_list_get(padded->lists[i], index);
    mix_shape own = mix_tensor_shape(tensor);
    mix_shape_text(own, text, sizeof text);
    if (own.rank != shape->rank || mix_tensor_dtype(tensor) != mix_tensor_dtype(model))
      return mix_fail_value(
          "dataset_padded_batch: %s of element %d of a batch is %s %s, of its first element %s %s; "
          "padding changes neither dtype nor rank",
          what, i, mix_dtype_name(mix_tensor_dtype(tensor)), text, mix_dtype_name(mix_tensor_dtype(model)),
          MIX_SHAPE_TEXT(mix_tensor_shape(model)));
    if (given->rank != 0 && given->rank != own.rank)
      return mix_fail_value("dataset_padded_batch: %s has shape %s; padded_shapes[%d] has %d dimensions",
                            what, text, index, given->rank);
    for (int d = 0; d < own.rank; d++) {
      if (given->rank != 0 && given->dims[d] >= 0) {
        if (own.dims[d] > given->dims[d])
          return mix_fail_value(
              "dataset_padded_batch: %s has shape %s; padded_shapes[%d] has only %lld on axis %d", what, text,
              index, (long long)given->dims[d], d);
        shape->dims[d] = given->dims[d];
      } else if (own.dims[d] > shape->dims[d]) {
        shape->dims[d] = own.dims[d];
      }
    }
  }
  return true;
}

static void fill(char *to, mix_dtype dtype, int64_t count, double value) {
  size_t size = mix_dtype_size(dtype);
  for (int64_t done = 0; done < count;) {
    if (done == 0) mix_store_double(to, dtype, 0, value);
    int64_t more = done == 0 ? 1 : done < count - done ? done : count - done;
    if (done > 0) memcpy(to + (size_t)done * size, to, (size_t)more * size);
    done += more;
  }
}

/* Copies a value of shape `own` into the corner of a value of shape `padded` of the same rank. */
static void copy_corner(char *to, mix_shape padded, const char *from, mix_shape own, size_t size) {
  int last = own.rank - 1;
  int64_t run = own.rank ? own.dims[last] : 1, runs = 1;
  for (int d = 0; d < last; d++) runs *= own.dims[d];
  for (int64_t r = 0; r < runs && run > 0; r++) {
    int64_t rest = r, stride = own.rank ? padded.dims[last] : 1, offset = 0;
    for (int d = last - 1; d >= 0; d--) {
      offset += rest % own.dims[d] * stride;
      rest /= own.dims[d];
      stride *= padded.dims[d];
    }
    memcpy(to + (size_t)offset * size, from + (size_t)(r * run) * size, (size_t)run * size);
  }
}

/* Stacks component `index` of the collected elements: (count, ...). Scoped. */
static mix_tensor *stack(const padded_cursor *padded, int index) {
  mix_dtype dtype = mix_tensor_dtype(mix_list_get(padded->lists[0], index));
  double value = ((const padded_dataset *)padded->base.dataset)->options.padding_values[index];
  mix_shape shape;
  if (!padded_shape(padded, index, &shape)) return NULL;
  if (shape.rank == MIX_MAX_RANK)
    return mix_fail_value("dataset_padded_batch: elements have %d dimensions already, and no tensor has more",
                          MIX_MAX_RANK);
  mix_shape stacked = {.rank = shape.rank + 1, .dims = {padded->count}};
  memcpy(stacked.dims + 1, shape.dims, (size_t)shape.rank * sizeof *shape.dims);
  if (mix_shape_checked_size(stacked) < 0) return mix_fail_memory("a padded batch");
  void *data;
  mix_tensor *result = mix_tensor_unfilled(dtype, stacked, &data);
  size_t bytes = mix_value_bytes(dtype, shape);
  for (int i = 0; result && i < padded->count; i++) {
    mix_tensor *tensor = mix_list_get(padded->lists[i], index);
    char *to = (char *)data + (size_t)i * bytes;
    mix_pinned pinned;
    if (!mix_tensor_pin(tensor, &pinned)) return NULL;
    if (!mix_shape_equal(mix_tensor_shape(tensor), shape)) fill(to, dtype, mix_shape_size(shape), value);
    copy_corner(to, shape, pinned.data, mix_tensor_shape(tensor), mix_dtype_size(dtype));
    mix_tensor_unpin(&pinned);
  }
  return result;
}

static mix_list *stack_all(padded_cursor *padded) {
  int components = mix_list_count(padded->lists[0]);
  if (components > MIX_PADDED_COMPONENTS)
    return mix_fail_value("dataset_padded_batch: elements of %d tensors; expected at most %d", components,
                          MIX_PADDED_COMPONENTS);
  if (!mix_elements_alike(padded->lists, padded->count, "dataset_padded_batch")) return NULL;
  mix_scope *scope = mix_scope_begin();
  mix_list *list = scope ? mix_list_new(0, NULL) : NULL;
  for (int i = 0; list && i < components; i++) {
    mix_tensor *tensor = stack(padded, i);
    if (!tensor || mix_list_append(list, tensor) != MIX_OK) list = NULL;
  }
  mix_list_set_structure(mix_retain(list), mix_list_structure(padded->lists[0]));
  mix_scope_end(scope);
  return list;
}

static mix_pull padded_next(mix_cursor *cursor, mix_element *element) {
  padded_cursor *padded = (padded_cursor *)cursor;
  const mix_dataset_padded_batch_options *options = &((const padded_dataset *)cursor->dataset)->options;
  mix_pull pull = MIX_PULL_ELEMENT;
  while (padded->count < options->batch_size) {
    mix_element one = {0};
    pull = mix_cursor_next(cursor->input, &one);
    if (pull != MIX_PULL_ELEMENT) break;
    if (!mix_element_values(cursor->dataset->input, &one, &padded->base.buffers) ||
        !mix_reserve(&padded->lists, &padded->capacity, padded->count + 1, sizeof *padded->lists)) {
      mix_release(one.values);
      return MIX_PULL_FAILED;
    }
    padded->lists[padded->count++] = one.values;
  }
  if (pull == MIX_PULL_FAILED) return pull;
  if (padded->count == 0 || (options->drop_remainder && padded->count < options->batch_size))
    return MIX_PULL_END;
  mix_list *values = stack_all(padded);
  drop_collected(padded);
  *element = (mix_element){.values = values};
  return values ? MIX_PULL_ELEMENT : MIX_PULL_FAILED;
}

static void padded_close(mix_cursor *cursor) {
  padded_cursor *padded = (padded_cursor *)cursor;
  drop_collected(padded);
  mix_free(padded->lists);
}

static int padded_numbers(const mix_dataset *dataset, int64_t numbers[MIX_STEP_NUMBERS]) {
  numbers[0] = ((const padded_dataset *)dataset)->options.batch_size;
  numbers[1] = ((const padded_dataset *)dataset)->options.drop_remainder;
  return numbers[1] ? 2 : 1;
}

static const mix_dataset_class padded_class = {
    .name = "padded_batch",
    .cursor_size = sizeof(padded_cursor),
    .cardinality = padded_cardinality,
    .next = padded_next,
    .close = padded_close,
    .numbers = padded_numbers,
};

mix_dataset *mix_dataset_padded_batch_with(const mix_dataset_padded_batch_options *given) {
  MIX_OPTIONS(mix_dataset_padded_batch_options, options, given, "dataset_padded_batch");
  if (!mix_dataset_given(options.dataset, "dataset_padded_batch")) return NULL;
  if (options.batch_size < 1 || options.batch_size > INT32_MAX)
    return mix_fail_value("dataset_padded_batch: batch_size is %lld; expected 1 or more%s",
                          (long long)options.batch_size, options.batch_size > 1 ? ", below 2^31" : "");
  padded_dataset *dataset = mix_dataset_new(sizeof *dataset, &padded_class, options.dataset, false);
  if (!dataset) return NULL;
  dataset->options = options;
  return mix_scoped(dataset);
}
