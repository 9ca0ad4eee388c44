/* mix_dataset_unbatch: splits elements along axis 0. */
#include "base/error.h"
#include "data/pipeline/gather.h"
#include "data/pipeline/row_stream.h"
#include "tensor/shape.h"

typedef struct unbatch_cursor {
  mix_cursor base;
  mix_element whole; /* the element being split; values NULL: none */
  int64_t next, length;
  mix_buffers parts; /* the elements handed on */
} unbatch_cursor;

static int64_t unbatch_cardinality(const mix_dataset *dataset) {
  int64_t input = mix_dataset_length(dataset->input);
  return input > 0 ? MIX_UNKNOWN_CARDINALITY : input;
}

/* The common length of axis 0; -1 with the error recorded. */
static int64_t length_of(const mix_list *values) {
  int64_t length = -1;
  char text[160], what[256];
  for (int i = 0; i < mix_list_count(values); i++) {
    mix_shape shape = mix_tensor_shape(mix_list_items(values)[i]);
    mix_shape_text(shape, text, sizeof text);
    mix_leaf_text(mix_list_structure(values), i, what, sizeof what);
    if (shape.rank < 1) {
      mix_fail_value("dataset_unbatch: %s of an element is a scalar; expected a batch", what);
      return -1;
    }
    if (length >= 0 && shape.dims[0] != length) {
      mix_fail_value("dataset_unbatch: %s of an element has shape %s, those before it have length %lld", what,
                     text, (long long)length);
      return -1;
    }
    length = shape.dims[0];
  }
  if (length < 0) mix_fail_value("dataset_unbatch: an element without tensors");
  return length;
}

static mix_pull fetch(unbatch_cursor *unbatch) {
  mix_element_drop(&unbatch->whole);
  unbatch->next = unbatch->length = 0;
  mix_pull pull = mix_cursor_next(unbatch->base.input, &unbatch->whole);
  if (pull != MIX_PULL_ELEMENT) return pull;
  if (!mix_element_values(unbatch->base.dataset->input, &unbatch->whole, &unbatch->base.buffers))
    return MIX_PULL_FAILED;
  int64_t length = length_of(unbatch->whole.values);
  if (length < 0) return MIX_PULL_FAILED;
  int components = mix_list_count(unbatch->whole.values);
  if (components != unbatch->parts.count) {
    mix_buffers_clear(&unbatch->parts);
    if (!mix_buffers_init(&unbatch->parts, components)) return MIX_PULL_FAILED;
  }
  unbatch->length = length;
  return MIX_PULL_ELEMENT;
}

static mix_pull unbatch_next(mix_cursor *cursor, mix_element *element) {
  unbatch_cursor *unbatch = (unbatch_cursor *)cursor;
  while (unbatch->next == unbatch->length) {
    mix_pull pull = fetch(unbatch);
    if (pull != MIX_PULL_ELEMENT) return pull;
  }
  mix_list *whole = unbatch->whole.values;
  mix_list *values = mix_rows_gather(mix_list_count(whole), (mix_tensor *const *)mix_list_items(whole), NULL,
                                     unbatch->next++, 1, false, NULL, &unbatch->parts);
  mix_list_set_structure(values, mix_list_structure(whole));
  *element = (mix_element){.values = values};
  return values ? MIX_PULL_ELEMENT : MIX_PULL_FAILED;
}

static void unbatch_close(mix_cursor *cursor) {
  unbatch_cursor *unbatch = (unbatch_cursor *)cursor;
  mix_release(unbatch->whole.values);
  mix_buffers_clear(&unbatch->parts);
}

static const mix_dataset_class unbatch_class = {
    .name = "unbatch",
    .cursor_size = sizeof(unbatch_cursor),
    .cardinality = unbatch_cardinality,
    .next = unbatch_next,
    .close = unbatch_close,
};

mix_dataset *mix_dataset_unbatch(mix_dataset *input) {
  if (!mix_dataset_given(input, "dataset_unbatch")) return NULL;
  return mix_scoped(mix_dataset_new(sizeof(mix_dataset), &unbatch_class, input, false));
}
