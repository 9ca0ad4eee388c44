/* Reads safetensors. A file is hostile input: every number of its header is checked before it is used. */
#include "formats/safetensors.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/object.h"
#include "formats/file.h"
#include "formats/file_mapping.h"
#include "formats/safetensors_dtypes.h"
#include "graph/unfilled_tensor.h"
#include "tensor/shape.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 10000, MAX_HEADER = 100000000 /* as the format's own reader has it */ };

typedef struct part {
  char *path;
  mix_memory *memory;
  bool mapped;
} part;

struct mix_safetensors {
  mix_object object;
  part *parts;
  mix_stored_tensor *items; /* by name; names are the object's */
  int part_count, part_capacity, count, capacity;
};

static void finalize(void *object) {
  mix_safetensors *tensors = object;
  for (int i = 0; i < tensors->count; i++) mix_free((void *)tensors->items[i].name);
  for (int i = 0; i < tensors->part_count; i++) {
    mix_release(tensors->parts[i].memory);
    mix_free(tensors->parts[i].path);
  }
  mix_free(tensors->items);
  mix_free(tensors->parts);
}

static const mix_class safetensors_class = {.name = "safetensors", .finalize = finalize};

const char *const mix_safetensors_dtypes[MIX_DTYPE_COUNT] = {
#define DTYPE(dtype, name) [dtype] = name,
    MIX_SAFETENSORS_DTYPES(DTYPE)
#undef DTYPE
};

static mix_dtype dtype_named(const char *name) {
  for (int i = 0; name && i < MIX_DTYPE_COUNT; i++)
    if (mix_safetensors_dtypes[i] && !strcmp(mix_safetensors_dtypes[i], name)) return (mix_dtype)i;
  return MIX_DTYPE_NONE;
}

/* ---- the header of a file ---- */

typedef struct header {
  const char *path, *text; /* of the JSON */
  uint64_t data, size;     /* where the tensors' bytes begin, and how many there are */
} header;

/* Some data sets have names of hundreds of bytes; messages hold a part. */
#define NAME "%s: '%.200s'"

static bool read_shape(const header *h, const char *name, const json_t *given, mix_shape *shape) {
  *shape = MIX_SCALAR;
  if (!json_is_array(given))
    return mix_fail_format(NAME ": shape is %s; expected a list", h->path, name, mix_json_kind(given));
  if (json_array_size(given) > MIX_MAX_RANK)
    return mix_fail_unsupported(NAME ": it has %zu axes; at most %d can be read", h->path, name,
                                json_array_size(given), MIX_MAX_RANK);
  shape->rank = (int)json_array_size(given);
  for (int i = 0; i < shape->rank; i++)
    if (!mix_json_integer_within(json_array_get(given, (size_t)i), 0, INT64_MAX, &shape->dims[i]))
      return mix_fail_format(NAME ": its shape holds something else than sizes of axes", h->path, name);
  return mix_shape_checked_size(*shape) >= 0 ||
         mix_fail_format(NAME ": its shape has more elements than any memory holds", h->path, name);
}

static bool read_offsets(const header *h, const char *name, const json_t *given, mix_stored_tensor *stored) {
  int64_t from, to;
  if (!json_is_array(given) || json_array_size(given) != 2 ||
      !mix_json_integer_within(json_array_get(given, 0), 0, INT64_MAX, &from) ||
      !mix_json_integer_within(json_array_get(given, 1), from, INT64_MAX, &to))
    return mix_fail_format(NAME ": data_offsets are not the beginning and the end of its bytes", h->path,
                           name);
  if ((uint64_t)to > h->size)
    return mix_fail_format(NAME ": its bytes end at %lld of %llu; the file is cut short, or damaged", h->path,
                           name, (long long)to, (unsigned long long)h->size);
  stored->offset = (size_t)(h->data + (uint64_t)from);
  stored->bytes = (size_t)(to - from);
  return true;
}

/* A dtype that no tensor has is kept, as the tensor may not be asked for; only its size is not known. */
static bool read_entry(const header *h, const char *name, const json_t *entry, mix_stored_tensor *stored) {
  const json_t *dtype = json_object_get(entry, "dtype");
  if (!json_is_string(dtype))
    return mix_fail_format(NAME ": dtype is %s; expected a name", h->path, name, mix_json_kind(dtype));
  stored->dtype = dtype_named(json_string_value(dtype));
  if (!read_shape(h, name, json_object_get(entry, "shape"), &stored->shape) ||
      !read_offsets(h, name, json_object_get(entry, "data_offsets"), stored))
    return false;
  if (stored->dtype == MIX_DTYPE_NONE || mix_value_bytes(stored->dtype, stored->shape) == stored->bytes)
    return true;
  return mix_fail_format(NAME ": %s of shape %s takes %zu bytes, and its data_offsets have %zu", h->path,
                         name, json_string_value(dtype), MIX_SHAPE_TEXT(stored->shape),
                         mix_value_bytes(stored->dtype, stored->shape), stored->bytes);
}

static bool add(mix_safetensors *tensors, const char *name, mix_stored_tensor stored) {
  if (!mix_reserve(&tensors->items, &tensors->capacity, tensors->count + 1, sizeof *tensors->items) ||
      !(stored.name = mix_strdup(name)))
    return false;
  tensors->items[tensors->count++] = stored;
  return true;
}

static int by_offset(const void *a, const void *b) {
  const mix_stored_tensor *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}
static int by_name(const void *a, const void *b) {
  return strcmp(((const mix_stored_tensor *)a)->name, ((const mix_stored_tensor *)b)->name);
}

/* The tensors of a file, from `first`, must fill it without gaps: else bytes could hide in it. */
static bool check_bytes(const header *h, mix_stored_tensor *first, int count) {
  uint64_t at = h->data;
  if (count) qsort(first, (size_t)count, sizeof *first, by_offset);
  for (int i = 0; i < count; at = first[i].offset + first[i].bytes, i++)
    if (first[i].offset != at)
      return mix_fail_format(NAME ": its bytes begin at %llu, and those before it end at %llu; expected "
                                  "tensors without gaps that do not overlap",
                             h->path, first[i].name, (unsigned long long)(first[i].offset - h->data),
                             (unsigned long long)(at - h->data));
  return at == h->data + h->size || mix_fail_format("%s: %llu bytes at its end belong to no tensor", h->path,
                                                    (unsigned long long)(h->data + h->size - at));
}

static bool read_entries(mix_safetensors *tensors, const header *h, const part *file, json_t *json) {
  const int first = tensors->count;
  const char *name;
  json_t *entry;
  if (!json_is_object(json))
    return mix_fail_format("%s: its header is %s; expected an object of tensors", h->path,
                           mix_json_kind(json));
  json_object_foreach(json, name, entry) {
    mix_stored_tensor stored = {.file = file->memory, .path = file->path, .mapped = file->mapped};
    if (strcmp(name, "__metadata__") && (!read_entry(h, name, entry, &stored) || !add(tensors, name, stored)))
      return false;
  }
  return check_bytes(h, tensors->items + first, tensors->count - first);
}

static uint64_t length_at(const unsigned char *bytes) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; i--) length = length << 8 | bytes[i];
  return length;
}

/* The header's text ends with a zero, which that in the file does not. */
static bool read_header(const part *file, const unsigned char *data, uint64_t size, header *h, char **text) {
  const uint64_t length = size < 8 ? 0 : length_at(data);
  if (size < 8 || length > size - 8 || length > MAX_HEADER)
    return mix_fail_format(
        "%s: no safetensors file, or one cut short: its header would take %llu bytes of %llu", file->path,
        (unsigned long long)length, (unsigned long long)size);
  *text = mix_alloc((size_t)length + 1);
  if (!*text) return false;
  memcpy(*text, data + 8, (size_t)length);
  (*text)[length] = 0;
  *h = (header){file->path, *text, 8 + length, size - 8 - length};
  return strlen(*text) == length || mix_fail_format("%s: its header has a byte of zero", file->path);
}

/* What the parser calls no JSON is a damaged file. */
static json_t *parse_header(const header *h) {
  char call[256];
  snprintf(call, sizeof call, "%.200s: the header", h->path);
  json_t *json = mix_json_has_few_values(h->text, call) ? mix_json_parse(h->text, call) : NULL;
  if (mix_error() != MIX_VALUE_ERROR) return json;
  mix_error_aside error;
  mix_error_set_aside(&error);
  mix_fail_format("%s", error.message);
  return NULL;
}

static bool read_file(mix_safetensors *tensors, const part *file) {
  char *text = NULL;
  header h;
  const unsigned char *data = mix_memory_map(file->memory, MIX_MAP_READ); /* of the host: stays valid */
  json_t *json =
      data && read_header(file, data, mix_memory_bytes(file->memory), &h, &text) ? parse_header(&h) : NULL;
  const bool good = json && read_entries(tensors, &h, file, json);
  json_decref(json);
  if (data) mix_memory_unmap(file->memory);
  mix_free(text);
  return good;
}

/* ---- one file, or several ---- */

/* Room for a file whose path the caller fills. */
static part *add_part(mix_safetensors *tensors) {
  if (!mix_reserve(&tensors->parts, &tensors->part_capacity, tensors->part_count + 1, sizeof *tensors->parts))
    return NULL;
  tensors->parts[tensors->part_count] = (part){NULL};
  return &tensors->parts[tensors->part_count++];
}

/* `path` becomes the object's. */
static bool open_part(mix_safetensors *tensors, char *path, bool copies) {
  part *file = path ? add_part(tensors) : NULL;
  if (!file) return mix_free(path), false;
  file->path = path;
  file->memory = mix_file_memory(path, copies, &file->mapped);
  return file->memory && read_file(tensors, file);
}

/* Files of the index's own folder, each once. */
static bool open_named(mix_safetensors *tensors, const char *index, json_t *opened, const json_t *name,
                       bool copies) {
  const char *text = json_string_value(name), *slash = strrchr(index, '/');
  if (!text || strlen(text) != json_string_length(name) || !*text || strpbrk(text, "/\\"))
    return mix_fail_format("%s: weight_map names something else than files beside it", index);
  if (json_object_get(opened, text)) return true;
  if (tensors->part_count == MAX_FILES) return mix_fail_format("%s: it names too many files", index);
  const size_t folder = slash ? (size_t)(slash + 1 - index) : 0, size = folder + strlen(text) + 1;
  char *path = mix_alloc(size);
  if (path) snprintf(path, size, "%.*s%s", (int)folder, index, text);
  if (path && !mix_file_exists(path)) {
    mix_fail_io("%s: %s is missing; expected it beside the index", index, path);
    return mix_free(path), false;
  }
  return open_part(tensors, path, copies) && mix_json_set(opened, text, json_true());
}

static bool open_index(mix_safetensors *tensors, const char *path, bool copies) {
  size_t size;
  char call[256], *bytes = mix_file_read(path, MAX_HEADER, &size);
  char *text = bytes ? mix_realloc(bytes, size + 1) : NULL;
  if (!text) return mix_free(bytes), false;
  text[size] = 0;
  snprintf(call, sizeof call, "%.200s: the index", path);
  json_t *index = mix_json_has_few_values(text, call) ? mix_json_parse(text, call) : NULL;
  json_t *map = json_object_get(index, "weight_map"), *opened = json_object(), *file;
  const char *name;
  bool good = index && opened;
  if (good && !json_is_object(map))
    good = mix_fail_format("%s: no index of safetensors, as it has no object weight_map", path);
  json_object_foreach(map, name, file) good = good && open_named(tensors, path, opened, file, copies);
  json_decref(opened);
  json_decref(index);
  mix_free(text);
  return good && !mix_failed();
}

static mix_safetensors *sorted(mix_safetensors *tensors) {
  if (tensors->count) qsort(tensors->items, (size_t)tensors->count, sizeof *tensors->items, by_name);
  for (int i = 1; i < tensors->count; i++)
    if (!strcmp(tensors->items[i - 1].name, tensors->items[i].name)) {
      mix_fail_format(NAME " is in %s, too", tensors->items[i].path, tensors->items[i].name,
                      tensors->items[i - 1].path);
      return mix_release(tensors), NULL;
    }
  return mix_scoped(tensors);
}

static bool ends_in(const char *path, const char *end) {
  const size_t length = strlen(path), count = strlen(end);
  return length > count && !strcmp(path + length - count, end);
}

static bool is_index(const char *path) { return ends_in(path, ".index.json"); }

mix_safetensors *mix_safetensors_open(const char *path, bool copies) {
  mix_safetensors *tensors = mix_failed() ? NULL : mix_object_new(sizeof *tensors, &safetensors_class);
  if (!tensors) return NULL;
  const bool good =
      is_index(path) ? open_index(tensors, path, copies) : open_part(tensors, mix_strdup(path), copies);
  if (good) return sorted(tensors);
  return mix_release(tensors), NULL;
}

mix_safetensors *mix_safetensors_open_memory(const char *name, const void *data, size_t size) {
  mix_safetensors *tensors = mix_failed() ? NULL : mix_object_new(sizeof *tensors, &safetensors_class);
  part *file = tensors ? add_part(tensors) : NULL;
  if (file && (file->path = mix_strdup(name)) && (file->memory = mix_memory_wrap((void *)data, size, NULL)) &&
      read_file(tensors, file))
    return sorted(tensors);
  return mix_release(tensors), NULL;
}

bool mix_is_safetensors(const char *path) {
  unsigned char first[9] = {0};
  FILE *stream = mix_file_exists(path) ? fopen(path, "rb") : NULL; /* a pipe could wait for ever */
  const bool whole = stream && fread(first, 1, sizeof first, stream) == sizeof first;
  if (stream) fclose(stream);
  if (is_index(path)) return true;
  return whole ? first[8] == '{' && length_at(first) <= MAX_HEADER : stream && ends_in(path, ".safetensors");
}

int mix_safetensors_count(const mix_safetensors *tensors) { return tensors->count; }

const mix_stored_tensor *mix_safetensors_at(const mix_safetensors *tensors, int index) {
  return &tensors->items[index];
}

const mix_stored_tensor *mix_safetensors_find(const mix_safetensors *tensors, const char *name) {
  const mix_stored_tensor key = {.name = name};
  return tensors->count
             ? bsearch(&key, tensors->items, (size_t)tensors->count, sizeof *tensors->items, by_name)
             : NULL;
}

/* ---- values ---- */

static bool has_dtype(const mix_stored_tensor *stored) {
  return stored->dtype != MIX_DTYPE_NONE ||
         mix_fail_unsupported(NAME ": its dtype is not one that tensors have here", stored->path,
                              stored->name);
}

mix_tensor *mix_stored_tensor_value(const mix_stored_tensor *stored) {
  if (!has_dtype(stored)) return NULL;
  if (stored->bytes && stored->mapped && mix_memory_is_aligned(stored->file, stored->offset)) {
    mix_memory *own = mix_memory_part(stored->file, stored->offset, stored->bytes);
    mix_tensor *tensor = own ? mix_tensor_of_memory(own, stored->dtype, stored->shape) : NULL;
    mix_release(own);
    return tensor;
  }
  void *data;
  mix_tensor *tensor = mix_tensor_unfilled(stored->dtype, stored->shape, &data);
  return tensor && mix_memory_copy_out(stored->file, stored->offset, data, stored->bytes) ? tensor : NULL;
}

mix_memory *mix_stored_tensor_share(const mix_stored_tensor *stored) {
  enum { LEAST = 4096 }; /* a page, which less would keep as a whole */
  if (!stored->mapped || stored->bytes < LEAST || !mix_memory_is_aligned(stored->file, stored->offset))
    return NULL;
  return mix_memory_part(stored->file, stored->offset, stored->bytes);
}
