/* Writes safetensors, a tensor at a time. */
#include "formats/safetensors.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "compile/evaluate.h"
#include "formats/file.h"
#include "formats/safetensors_dtypes.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct writer {
  const char *call;
  int count, at; /* of `order`; -1: the header */
  mix_tensor *const *tensors;
  int *order;
  mix_bytes header;
  void *copy; /* of the last piece */
} writer;

static size_t bytes_of(mix_tensor *tensor) {
  return mix_value_bytes(mix_tensor_dtype(tensor), mix_tensor_shape(tensor));
}

/* Those that keep what follows at a multiple of 64 first. */
static void set_order(writer *w) {
  int next = 0;
  for (int last = 0; last < 2; last++)
    for (int i = 0; i < w->count; i++)
      if ((bytes_of(w->tensors[i]) % MIX_BUFFER_ALIGNMENT != 0) == last) w->order[next++] = i;
}

static json_t *entry_of(mix_tensor *tensor, uint64_t from) {
  const mix_shape shape = mix_tensor_shape(tensor);
  json_t *entry = json_object(), *dims = json_array(), *offsets = json_array();
  for (int i = 0; i < shape.rank; i++) mix_json_append(dims, json_integer(shape.dims[i]));
  mix_json_append(offsets, json_integer((json_int_t)from));
  mix_json_append(offsets, json_integer((json_int_t)(from + bytes_of(tensor))));
  mix_json_set(entry, "dtype", json_string(mix_safetensors_dtypes[mix_tensor_dtype(tensor)]));
  mix_json_set(entry, "shape", dims);
  mix_json_set(entry, "data_offsets", offsets);
  return mix_json_whole(entry);
}

/* NULL with the error recorded. `*bytes`: of all tensors. */
static json_t *make_header(const writer *w, const char *const *names, uint64_t *bytes) {
  json_t *header = json_object();
  *bytes = 0;
  for (int i = 0; i < w->count && !mix_failed(); i++) {
    mix_tensor *tensor = w->tensors[w->order[i]];
    const char *name = names[w->order[i]];
    if (json_object_get(header, name))
      mix_fail_value("%s: two tensors have the name '%.200s'", w->call, name);
    else
      mix_json_set(header, name, entry_of(tensor, *bytes));
    *bytes += bytes_of(tensor);
  }
  return mix_json_whole(header);
}

/* The length and the text, with spaces up to where a tensor may begin. */
static bool fill_header(writer *w, const json_t *json) {
  char *text = mix_json_text(json);
  const size_t length = text ? strlen(text) : 0, size = mix_buffer_aligned(8 + length);
  char *bytes = text ? mix_alloc(size) : NULL;
  if (bytes) {
    for (int i = 0; i < 8; i++) bytes[i] = (char)((uint64_t)(size - 8) >> 8 * i);
    memcpy(bytes + 8, text, length);
    memset(bytes + 8 + length, ' ', size - 8 - length);
    w->header = (mix_bytes){bytes, size};
  }
  mix_free(text);
  return bytes;
}

/* A variable's value is copied: others may assign it during the write. */
static bool next_piece(void *context, mix_bytes *piece) {
  writer *w = context;
  mix_free(w->copy);
  w->copy = NULL;
  *piece = (mix_bytes){NULL, 0};
  if (w->at < 0) return *piece = w->header, w->at++, true;
  while (w->at < w->count && !bytes_of(w->tensors[w->order[w->at]])) w->at++;
  if (w->at == w->count) return true;
  mix_tensor *tensor = w->tensors[w->order[w->at++]];
  mix_pinned pinned;
  if (!mix_tensor_pin(tensor, &pinned)) return false;
  *piece = (mix_bytes){pinned.data, bytes_of(tensor)};
  if (pinned.storage && (w->copy = mix_alloc(piece->size))) memcpy(w->copy, pinned.data, piece->size);
  if (pinned.storage) piece->data = w->copy;
  mix_tensor_unpin(&pinned); /* others live as long as their tensor */
  return piece->data;
}

bool mix_safetensors_write(const char *call, const char *path, int count, const char *const *names,
                           mix_tensor *const *tensors) {
  if (mix_failed()) return false;
  uint64_t bytes;
  writer w = {.call = call, .count = count, .at = -1, .tensors = tensors};
  w.order = mix_alloc(((size_t)count + 1) * sizeof *w.order);
  if (!w.order) return false;
  set_order(&w);
  json_t *header = make_header(&w, names, &bytes);
  const bool good =
      header && fill_header(&w, header) &&
      mix_file_replace_from(path, &(const mix_piece_source){w.header.size + bytes, next_piece, &w}, call);
  json_decref(header);
  mix_free((void *)w.header.data);
  mix_free(w.copy);
  mix_free(w.order);
  return good;
}
