/* The numbers of an ONNX tensor: raw bytes, lists of numbers, or another file in the model's folder. */
#include "onnx/file.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/number.h"
#include "formats/file.h"
#include "formats/file_mapping.h"
#include "graph/unfilled_tensor.h"
#include "tensor/shape.h"
#include <stdlib.h>
#include <string.h>

#define NAME "%s: tensor '%.200s'"

static void *wrong(const mix_onnx_file *file, const mix_onnx_tensor *tensor, const char *what) {
  return mix_fail_format(NAME ": %s; the file is cut short, or damaged", file->path, tensor->name, what);
}

static mix_tensor *of_memory(mix_memory *memory, bool mapped, size_t offset, const mix_onnx_tensor *tensor) {
  const size_t bytes = mix_value_bytes(tensor->dtype, tensor->shape);
  if (bytes && mapped && mix_memory_is_aligned(memory, offset)) {
    mix_memory *own = mix_memory_part(memory, offset, bytes);
    mix_tensor *value = own ? mix_tensor_of_memory(own, tensor->dtype, tensor->shape) : NULL;
    mix_release(own);
    return value;
  }
  void *data;
  mix_tensor *value = mix_tensor_unfilled(tensor->dtype, tensor->shape, &data);
  return value && mix_memory_copy_out(memory, offset, data, bytes) ? value : NULL;
}

/* ---- raw bytes ---- */

static mix_tensor *of_raw(const mix_onnx_file *file, const mix_onnx_tensor *tensor,
                          const mix_wire_field *raw) {
  if (raw->type != MIX_WIRE_BYTES || raw->size != mix_value_bytes(tensor->dtype, tensor->shape))
    return wrong(file, tensor, "its bytes are more or less than its shape says");
  if (file->memory) {
    const unsigned char *first = mix_memory_map(file->memory, MIX_MAP_READ);
    if (!first) return NULL;
    mix_memory_unmap(file->memory);
    return of_memory(file->memory, file->mapped, (size_t)(raw->data - first), tensor);
  }
  return mix_tensor_from(raw->data, tensor->dtype, tensor->shape);
}

/* ---- lists of numbers: floats and doubles, or integers, of which 16-bit floats are the bits ---- */

static void store(unsigned char *at, mix_dtype dtype, uint64_t value) {
  const size_t size = mix_dtype_size(dtype);
  const bool flag = dtype == MIX_BOOL && value;
  if (dtype == MIX_BOOL) value = flag;
  for (size_t i = 0; i < size; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static int list_of(mix_dtype dtype, int *size) {
  *size = dtype == MIX_FLOAT32 ? 4 : dtype == MIX_FLOAT64 ? 8 : 0;
  if (dtype == MIX_FLOAT32) return MIX_ONNX_TENSOR_FLOATS;
  if (dtype == MIX_FLOAT64) return MIX_ONNX_TENSOR_DOUBLES;
  return dtype == MIX_INT64 ? MIX_ONNX_TENSOR_INT64S : MIX_ONNX_TENSOR_INT32S;
}

static mix_tensor *of_lists(const mix_onnx_file *file, const mix_onnx_tensor *tensor) {
  int size;
  const uint32_t number = (uint32_t)list_of(tensor->dtype, &size);
  const int64_t count = mix_shape_size(tensor->shape);
  const size_t element = mix_dtype_size(tensor->dtype);
  int64_t next = 0;
  uint64_t value;
  mix_wire wire = tensor->message;
  mix_wire_field field;
  if (count > wire.end - wire.at) return wrong(file, tensor, "it has less numbers than its shape says");
  unsigned char *bytes = mix_scoped_memory((size_t)count * element + 1);
  while (bytes && mix_wire_next(&wire, &field)) {
    if (field.number != number) continue;
    mix_wire_numbers numbers = {.begun = false};
    while (mix_wire_number(&wire, &field, size, &numbers, &value)) {
      if (next == count) return wrong(file, tensor, "it has more numbers than its shape says");
      store(bytes + (size_t)next++ * element, tensor->dtype, value);
    }
  }
  if (mix_failed()) return NULL;
  if (next != count) return wrong(file, tensor, "it has less numbers than its shape says");
  return mix_tensor_from(bytes, tensor->dtype, tensor->shape);
}

/* ---- another file ---- */

typedef struct external {
  const char *location;
  int64_t offset, length; /* length -1: not given */
} external;

static bool read_size(const mix_onnx_file *file, const mix_onnx_tensor *tensor, const char *text,
                      int64_t *size) {
  enum { MOST_DIGITS = 18 };
  const size_t digits = strspn(text, "0123456789");
  if (!digits || digits > MOST_DIGITS || text[digits])
    return wrong(file, tensor, "offset or length of its external data is no number");
  *size = strtoll(text, NULL, 10);
  return true;
}

static bool read_entry(const mix_onnx_file *file, const mix_onnx_tensor *tensor, mix_wire wire,
                       external *data) {
  const char *key = "", *value = "";
  mix_wire_field field;
  while (mix_wire_next(&wire, &field)) {
    const char **text = field.number == MIX_ONNX_ENTRY_KEY     ? &key
                        : field.number == MIX_ONNX_ENTRY_VALUE ? &value
                                                               : NULL;
    if (text && !(*text = mix_wire_text(&wire, &field))) return false;
  }
  if (mix_failed()) return false;
  if (!strcmp(key, "location")) data->location = value;
  if (!strcmp(key, "offset")) return read_size(file, tensor, value, &data->offset);
  return strcmp(key, "length") || read_size(file, tensor, value, &data->length);
}

/* Is it a name below the model's folder? */
static bool is_inside(const char *location) {
  if (!*location || *location == '/' || strchr(location, '\\') || strchr(location, ':')) return false;
  for (const char *part = location; part; part = strchr(part, '/')) {
    part += *part == '/';
    if (!strncmp(part, "..", 2) && (!part[2] || part[2] == '/')) return false;
  }
  return true;
}

/* Opens a file once for the tensors in it that follow each other: a copy of it may be large. */
static const mix_onnx_beside *open_beside(const mix_onnx_file *file, const char *path) {
  mix_onnx_beside *beside = file->beside;
  if (beside->path && !strcmp(beside->path, path)) return beside;
  if (!mix_file_exists(path))
    return mix_fail_io("%s: %s is missing; expected it beside the model", file->path, path);
  bool mapped;
  mix_memory *memory = mix_scoped(mix_file_memory(path, file->copies, &mapped));
  if (!memory) return NULL;
  *beside = (mix_onnx_beside){path, memory, mapped};
  return beside;
}

static mix_tensor *of_external(const mix_onnx_file *file, const mix_onnx_tensor *tensor,
                               const external *data) {
  const size_t bytes = mix_value_bytes(tensor->dtype, tensor->shape);
  if (!data->location || !is_inside(data->location))
    return mix_fail_format(NAME ": its numbers are in '%.100s'; expected a file in the model's folder",
                           file->path, tensor->name, data->location ? data->location : "");
  if (!file->memory)
    return mix_fail_unsupported(NAME ": its numbers are in another file, and the model is none", file->path,
                                tensor->name);
  if (data->length >= 0 && (size_t)data->length != bytes)
    return wrong(file, tensor, "its external data have another length than its shape says");
  const char *slash = strrchr(file->path, '/');
  const size_t folder = slash ? (size_t)(slash + 1 - file->path) : 0;
  char *path = mix_scoped_memory(folder + strlen(data->location) + 1);
  if (!path) return NULL;
  memcpy(path, file->path, folder);
  strcpy(path + folder, data->location);
  const mix_onnx_beside *beside = open_beside(file, path);
  if (!beside) return NULL;
  const size_t whole = mix_memory_bytes(beside->memory);
  if ((uint64_t)data->offset > whole || bytes > whole - (size_t)data->offset)
    return wrong(file, tensor, "its external data end behind their file");
  return of_memory(beside->memory, beside->mapped, (size_t)data->offset, tensor);
}

/* ---- all ---- */

static bool read_external(const mix_onnx_file *file, const mix_onnx_tensor *tensor, external *data) {
  mix_wire wire = tensor->message, inner;
  mix_wire_field field;
  while (mix_wire_next(&wire, &field))
    if (field.number == MIX_ONNX_TENSOR_EXTERNAL &&
        (!mix_wire_open(&wire, &field, &inner) || !read_entry(file, tensor, inner, data)))
      return false;
  return !mix_failed();
}

mix_tensor *mix_onnx_tensor_value(const mix_onnx_file *file, const mix_onnx_tensor *tensor) {
  mix_wire wire = tensor->message;
  mix_wire_field field, raw = {0};
  bool elsewhere = false;
  if (tensor->too_many_axes || tensor->dtype == MIX_DTYPE_NONE)
    return mix_fail_unsupported(NAME ": it has element type %lld and %d axes or more; tensors have up to %d "
                                     "axes, and no texts, complex or unsigned numbers but uint8",
                                file->path, tensor->name, (long long)tensor->type, tensor->shape.rank,
                                MIX_MAX_RANK);
  while (mix_wire_next(&wire, &field)) {
    if (field.number == MIX_ONNX_TENSOR_RAW) raw = field;
    if (field.number == MIX_ONNX_TENSOR_LOCATION) elsewhere = field.value == 1;
  }
  if (mix_failed()) return NULL;
  external data = {.length = -1};
  if (elsewhere) return read_external(file, tensor, &data) ? of_external(file, tensor, &data) : NULL;
  return raw.number ? of_raw(file, tensor, &raw) : of_lists(file, tensor);
}
