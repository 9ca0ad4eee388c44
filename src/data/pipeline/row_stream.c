/* Elements as tensors, and passes over secondary inputs. */
#include "data/pipeline/row_stream.h"

#include "base/error.h"
#include "base/structure.h"

bool mix_element_values(const mix_dataset *dataset, mix_element *element, mix_buffers *buffers) {
  if (element->values) return true;
  const mix_dataset *source = dataset->source;
  if (buffers->count == 0 && !mix_buffers_init(buffers, source->components)) return false;
  element->values = source->class->gather(source, &element->row, 1, false, buffers);
  return element->values != NULL;
}

bool mix_element_own(const mix_dataset *dataset, mix_element *element, mix_buffers *buffers) {
  if (!mix_element_values(dataset, element, buffers)) return false;
  mix_list *values = element->values;
  if (mix_list_structure(values))
    element->values = mix_retain(mix_list_pack(values));
  else if (mix_references(values) == 1)
    return true;
  else
    element->values = mix_retain(mix_list_new(mix_list_count(values), mix_list_items(values)));
  mix_release(values);
  return element->values != NULL;
}

mix_list *mix_element_evaluate(mix_list *values, const char *call) {
  mix_list *leaves = mix_list_flatten(values, call);
  int count = mix_list_count(leaves);
  mix_tensor *const *tensors = (mix_tensor *const *)mix_list_items(leaves);
  char what[256];
  for (int i = 0; i < count; i++)
    if (!tensors[i])
      mix_fail_value("%s: %s of the element that the function made is NULL", call,
                     mix_leaf_text(mix_list_structure(leaves), i, what, sizeof what));
  return leaves && mix_evaluate(count, tensors) == MIX_OK ? leaves : NULL;
}

void mix_element_explain(const char *call, int64_t number) {
  mix_error_aside error;
  mix_error_set_aside(&error);
  if (error.status) mix_fail(error.status, "%s (element %lld of %s)", error.message, (long long)number, call);
}

bool mix_stream_open(mix_stream *stream, mix_dataset *dataset) {
  *stream = (mix_stream){.dataset = mix_retain(dataset), .cursor = mix_cursor_open(dataset)};
  return stream->cursor != NULL;
}

mix_pull mix_stream_next(mix_stream *stream, mix_element *element) {
  mix_pull pull = mix_cursor_next(stream->cursor, element);
  if (pull != MIX_PULL_ELEMENT || mix_element_values(stream->dataset, element, &stream->buffers)) return pull;
  return MIX_PULL_FAILED;
}

void mix_stream_close(mix_stream *stream) {
  mix_cursor_close(stream->cursor);
  mix_buffers_clear(&stream->buffers);
  mix_release(stream->dataset);
  *stream = (mix_stream){0};
}
