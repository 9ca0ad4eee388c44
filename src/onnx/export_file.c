/* The file: a head, the graph, then for each tensor its head and its elements, converted piece by piece. */
#include "onnx/export_file.h"

#include "base/alloc.h"
#include "base/error.h"
#include "compile/evaluate.h"
#include "formats/file.h"
#include "graph/divided_variable.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 1 << 18, ALIGNMENT = 64 }; /* elements; bytes */

/* The pieces of a file: messages before the tensors, then heads (if any) and elements. */
typedef struct writer {
  const mix_onnx_export_file *file;
  mix_bytes front[2];
  int front_at;
  mix_message *heads; /* of the tensors; NULL: in the file beside, where elements are aligned */
  bool elements;      /* are they behind the heads? */
  int tensor;         /* that is being written */
  bool head_done;
  int64_t at; /* its next element */
  uint64_t written;
  mix_tensor *value; /* of its variable; owned by the scope */
  void *piece;
} writer;

static size_t bytes_of(const mix_onnx_initializer *tensor) {
  return mix_value_bytes(tensor->dtype, tensor->shape);
}

/* Elements from `at` on, converted. */
static bool convert_piece(writer *w, const mix_onnx_initializer *tensor, const void *data, int64_t count) {
  const char *from = (const char *)data + (size_t)w->at * mix_dtype_size(tensor->from);
  mix_convert(from, tensor->from, w->piece, tensor->dtype, count);
  w->at += count;
  return true;
}

static bool read_piece(writer *w, const mix_onnx_initializer *tensor, int64_t count) {
  mix_pinned pinned;
  if (tensor->data) return convert_piece(w, tensor, tensor->data, count);
  if (tensor->constant) {
    const void *data = mix_ir_map_constant(tensor->constant);
    if (!data) return false;
    convert_piece(w, tensor, data, count);
    mix_ir_unmap_constant(tensor->constant);
    return true;
  }
  if (!w->at) w->value = tensor->value ? tensor->value : mix_variable_true_value(tensor->variable);
  if (!w->value || !mix_tensor_pin(w->value, &pinned)) return false;
  convert_piece(w, tensor, pinned.data, count);
  mix_tensor_unpin(&pinned);
  return true;
}

static bool next_elements(writer *w, const mix_onnx_initializer *tensor, mix_bytes *piece) {
  const int64_t left = mix_shape_size(tensor->shape) - w->at, count = left < PIECE ? left : PIECE;
  if (!read_piece(w, tensor, count)) return false;
  *piece = (mix_bytes){w->piece, (size_t)count * mix_dtype_size(tensor->dtype)};
  w->written += piece->size;
  return true;
}

/* Zeros up to where a tensor may begin. */
static bool next_alignment(writer *w, mix_bytes *piece) {
  static const char zeros[ALIGNMENT];
  *piece = (mix_bytes){zeros, (size_t)(-w->written % ALIGNMENT)};
  w->written += piece->size;
  return true;
}

static bool next_piece(void *context, mix_bytes *piece) {
  writer *w = context;
  *piece = (mix_bytes){NULL, 0};
  while (w->front_at < 2 && !piece->size) *piece = w->front[w->front_at++];
  while (!piece->size && w->tensor < w->file->tensor_count) {
    const mix_onnx_initializer *tensor = &w->file->tensors[w->tensor];
    if (!w->head_done) {
      w->head_done = true;
      if (w->heads) *piece = (mix_bytes){w->heads[w->tensor].data, w->heads[w->tensor].size};
      if (!w->heads) next_alignment(w, piece);
    } else if (w->elements && w->at < mix_shape_size(tensor->shape)) {
      if (!next_elements(w, tensor, piece)) return false;
    } else {
      w->tensor++;
      w->head_done = false;
      w->at = 0;
    }
  }
  return true;
}

/* ---- heads ---- */

static void put_entry(mix_message *tensor, const char *key, const char *value) {
  mix_message entry = {0};
  mix_message_text(&entry, MIX_ONNX_ENTRY_KEY, key);
  mix_message_text(&entry, MIX_ONNX_ENTRY_VALUE, value);
  mix_message_message(tensor, MIX_ONNX_TENSOR_EXTERNAL, &entry);
}

static void put_place(mix_message *tensor, const char *location, uint64_t offset, uint64_t length) {
  enum { EXTERNAL = 1 };
  char number[24];
  put_entry(tensor, "location", location);
  snprintf(number, sizeof number, "%" PRIu64, offset);
  put_entry(tensor, "offset", number);
  snprintf(number, sizeof number, "%" PRIu64, length);
  put_entry(tensor, "length", number);
  mix_message_integer(tensor, MIX_ONNX_TENSOR_LOCATION, EXTERNAL);
}

/* The field of the graph up to the elements of the tensor. location NULL: these follow. */
static mix_message head_of(const mix_onnx_initializer *tensor, const char *location, uint64_t offset) {
  mix_message inner = {0}, head = {0};
  const uint64_t bytes = bytes_of(tensor);
  for (int d = 0; d < tensor->shape.rank; d++)
    mix_message_number(&inner, MIX_ONNX_TENSOR_DIMS, tensor->shape.dims[d]);
  mix_message_integer(&inner, MIX_ONNX_TENSOR_TYPE, mix_onnx_type_of(tensor->dtype));
  mix_message_text(&inner, MIX_ONNX_TENSOR_NAME, tensor->name);
  if (location)
    put_place(&inner, location, offset, bytes);
  else
    mix_message_head(&inner, MIX_ONNX_TENSOR_RAW, bytes);
  mix_message_head(&head, MIX_ONNX_GRAPH_INITIALIZER, inner.size + (location ? 0 : bytes));
  mix_message_append(&head, &inner);
  return head;
}

/* The heads of all tensors, with the size of the graph. */
static bool make_heads(writer *w, const char *location, uint64_t *graph_bytes) {
  uint64_t offset = 0;
  for (int i = 0; i < w->file->tensor_count; i++) {
    const mix_onnx_initializer *tensor = &w->file->tensors[i];
    offset += -offset % ALIGNMENT;
    w->heads[i] = head_of(tensor, location, offset);
    if (w->heads[i].failed) return false;
    *graph_bytes += w->heads[i].size + (location ? 0 : bytes_of(tensor));
    offset += bytes_of(tensor);
  }
  return true;
}

/* ---- the whole ---- */

/* The version of the format that has all of an opset. */
static int ir_version(int opset) { return opset <= 18 ? 8 : opset <= 20 ? 9 : opset <= 22 ? 10 : 11; }

static mix_message model_head(int opset, uint64_t graph_bytes) {
  mix_message head = {0}, operators = {0};
  mix_message_text(&operators, MIX_ONNX_OPSET_DOMAIN, "");
  mix_message_integer(&operators, MIX_ONNX_OPSET_VERSION, opset);
  mix_message_integer(&head, MIX_ONNX_MODEL_IR_VERSION, ir_version(opset));
  mix_message_text(&head, MIX_ONNX_MODEL_PRODUCER, "mixtape");
  mix_message_text(&head, MIX_ONNX_MODEL_PRODUCER_VERSION, mix_version());
  mix_message_message(&head, MIX_ONNX_MODEL_OPSET, &operators);
  mix_message_head(&head, MIX_ONNX_MODEL_GRAPH, graph_bytes);
  return head;
}

static bool write_beside(writer *w, const char *path, uint64_t bytes) {
  writer beside = {.file = w->file, .front_at = 2, .elements = true, .piece = w->piece};
  return mix_file_replace_from(path, &(mix_piece_source){bytes, next_piece, &beside}, w->file->call);
}

static bool write_file(writer *w, const char *beside, uint64_t bytes) {
  const mix_onnx_export_file *file = w->file;
  const char *slash = beside ? strrchr(beside, '/') : NULL;
  uint64_t graph_bytes = file->graph->size;
  if (!make_heads(w, slash ? slash + 1 : beside, &graph_bytes)) return false;
  mix_message head = model_head(file->opset, graph_bytes);
  w->front[0] = (mix_bytes){head.data, head.size};
  w->front[1] = (mix_bytes){file->graph->data, file->graph->size};
  const uint64_t size = head.size + graph_bytes;
  const bool good = !head.failed && (!beside || write_beside(w, beside, bytes)) &&
                    mix_file_replace_from(file->path, &(mix_piece_source){size, next_piece, w}, file->call);
  mix_message_free(&head);
  return good;
}

bool mix_onnx_write(const mix_onnx_export_file *file) {
  writer w = {.file = file, .heads = mix_calloc((size_t)file->tensor_count + 1, sizeof *w.heads)};
  uint64_t bytes = 0;
  char *beside = NULL;
  for (int i = 0; i < file->tensor_count; i++) bytes += bytes_of(&file->tensors[i]) + ALIGNMENT;
  w.piece = mix_alloc(PIECE * sizeof(double));
  w.elements = file->external_bytes >= 0 && bytes <= (uint64_t)file->external_bytes;
  if (!w.elements) {
    const size_t size = strlen(file->path) + sizeof ".data";
    beside = mix_alloc(size);
    if (beside) snprintf(beside, size, "%s.data", file->path);
  }
  const bool good = w.heads && w.piece && (w.elements || beside) && write_file(&w, beside, bytes);
  for (int i = 0; w.heads && i < file->tensor_count; i++) mix_message_free(&w.heads[i]);
  mix_free(w.heads);
  mix_free(w.piece);
  mix_free(beside);
  return good;
}
