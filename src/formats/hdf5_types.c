/* Types, spaces and attributes of HDF5 files, and texts. */
#include "formats/hdf5_inside.h"

#include "base/alloc.h"
#include "base/error.h"
#include <string.h>

/* ---- types ---- */

static mix_dtype integer_dtype(size_t size, bool is_signed) {
  switch (size) {
  case 1: return is_signed ? MIX_INT8 : MIX_UINT8;
  case 2: return is_signed ? MIX_INT16 : MIX_DTYPE_NONE;
  case 4: return is_signed ? MIX_INT32 : MIX_DTYPE_NONE;
  case 8: return is_signed ? MIX_INT64 : MIX_DTYPE_NONE;
  default: return MIX_DTYPE_NONE;
  }
}

/* IEEE formats by their sizes, and bfloat16 by the bits of its exponent. */
static mix_dtype float_dtype(mix_span *span, size_t size) {
  mix_span_skip(span, 5);
  const int exponent = (int)mix_span_number(span, 1);
  mix_span_skip(span, 6);
  if (size == 2) return exponent == 5 ? MIX_FLOAT16 : exponent == 8 ? MIX_BFLOAT16 : MIX_DTYPE_NONE;
  if (size == 4 && exponent == 8) return MIX_FLOAT32;
  return size == 8 && exponent == 11 ? MIX_FLOAT64 : MIX_DTYPE_NONE;
}

bool mix_hdf5_read_type(const mix_hdf5 *file, mix_span *span, mix_hdf5_type *type) {
  const int class = (int)mix_span_number(span, 1) & 15;
  const uint64_t bits = mix_span_number(span, 3);
  *type = (mix_hdf5_type){.dtype = MIX_DTYPE_NONE, .size = (size_t)mix_span_number(span, 4)};
  if (span->short_ || type->size == 0) return mix_hdf5_damaged(file, "a type is cut off");
  switch (class) {
  case 0:
    type->dtype = integer_dtype(type->size, bits & 8);
    type->big_endian = bits & 1;
    return true;
  case 1:
    if (bits & 0x40) return mix_hdf5_unsupported(file, "VAX numbers");
    type->dtype = float_dtype(span, type->size);
    type->big_endian = bits & 1;
    return true;
  case 3: type->kind = MIX_HDF5_TEXT; return true;
  case 5: type->kind = MIX_HDF5_OPAQUE; return true;
  case 8: /* numpy's bool: FALSE and TRUE of one byte */
    type->dtype = type->size == 1 ? MIX_BOOL : MIX_DTYPE_NONE;
    return true;
  case 9:
    type->kind = MIX_HDF5_VARIABLE_TEXT;
    if ((bits & 15) != 1 || type->size != 16)
      return mix_hdf5_unsupported(file, "sequences of variable length");
    return true;
  default:
    return mix_hdf5_unsupported(file, class == 6 ? "compound types" : "types that are no numbers or strings");
  }
}

/* ---- spaces ---- */

bool mix_hdf5_read_space(const mix_hdf5 *file, mix_span span, mix_shape *shape, size_t *count) {
  const int version = (int)mix_span_number(&span, 1), rank = (int)mix_span_number(&span, 1);
  if (version != 1 && version != 2) return mix_hdf5_unsupported(file, "a data space of a new version");
  mix_span_skip(&span, 1);
  const bool empty = version == 2 && mix_span_number(&span, 1) == 2;
  mix_span_skip(&span, version == 1 ? 5 : 0);
  if (rank > MIX_MAX_RANK) return mix_hdf5_unsupported(file, "more than 8 dimensions");
  *shape = (mix_shape){.rank = rank};
  *count = empty ? 0 : 1;
  for (int d = 0; d < rank; d++) {
    const uint64_t size = mix_span_number(&span, 8);
    if (size > INT64_MAX || (size && *count > (SIZE_MAX >> 4) / size))
      return mix_hdf5_damaged(file, "a data set is larger than memory can be");
    shape->dims[d] = (int64_t)size;
    *count *= (size_t)size;
  }
  return !span.short_ || mix_hdf5_damaged(file, "a data space is cut off");
}

/* ---- texts ---- */

static char *copy_text(const unsigned char *bytes, size_t size) {
  char *text = mix_alloc(size + 1);
  if (!text) return NULL;
  memcpy(text, bytes, size);
  text[size] = 0;
  return text;
}

/* A text of fixed length ends at its first 0; others are padded by spaces. */
static char *fixed_text(const unsigned char *bytes, size_t size) {
  size = strnlen((const char *)bytes, size);
  while (size > 0 && bytes[size - 1] == ' ') size--;
  return copy_text(bytes, size);
}

/* The object of that index in a collection of the global heap. */
static bool find_global(mix_hdf5 *file, uint64_t address, uint64_t wanted, mix_span *object) {
  mix_span span;
  if (!mix_hdf5_block(file, address, "GCOL", &span)) return false;
  mix_span_skip(&span, 4);
  const uint64_t size = mix_span_number(&span, 8);
  mix_span objects = mix_span_take(&span, size < 16 ? 0 : size - 16);
  while (objects.left >= 16) {
    const uint64_t index = mix_span_number(&objects, 2);
    mix_span_skip(&objects, 6);
    const uint64_t length = mix_span_number(&objects, 8);
    *object = mix_span_take(&objects, length);
    if (object->short_ || index == 0) break;
    if (index == wanted) return true;
    mix_span_skip(&objects, (8 - length % 8) % 8);
  }
  return mix_hdf5_damaged(file, "a text is not in its heap");
}

static char *variable_text(mix_hdf5 *file, const unsigned char *element) {
  mix_span span = {element, 16, false}, object;
  const uint64_t length = mix_span_number(&span, 4), address = mix_span_number(&span, 8);
  const uint64_t index = mix_span_number(&span, 4);
  if (length == 0) return copy_text(element, 0);
  if (!find_global(file, address, index, &object)) return NULL;
  if (length > object.left) return mix_hdf5_damaged(file, "a text is longer than its heap's object"), NULL;
  return copy_text(object.at, (size_t)length);
}

static bool fill_texts(mix_hdf5 *file, const mix_hdf5_type *type, const unsigned char *elements,
                       mix_hdf5_value *value) {
  value->texts = mix_calloc(value->count + 1, sizeof *value->texts);
  for (size_t i = 0; value->texts && i < value->count; i++) {
    const unsigned char *element = elements + i * type->size;
    value->texts[i] =
        type->kind == MIX_HDF5_TEXT ? fixed_text(element, type->size) : variable_text(file, element);
    if (!value->texts[i]) break;
  }
  return !mix_failed();
}

/* ---- values ---- */

void mix_hdf5_swap(unsigned char *bytes, size_t count, size_t size) {
  for (size_t i = 0; i < count; i++, bytes += size)
    for (size_t a = 0, b = size - 1; a < b; a++, b--) {
      const unsigned char former = bytes[a];
      bytes[a] = bytes[b];
      bytes[b] = former;
    }
}

bool mix_hdf5_fill(mix_hdf5 *file, const mix_hdf5_type *type, const unsigned char *elements,
                   mix_hdf5_value *value) {
  value->dtype = type->dtype;
  value->element_size = type->size;
  if (type->kind == MIX_HDF5_TEXT || type->kind == MIX_HDF5_VARIABLE_TEXT) {
    if (fill_texts(file, type, elements, value)) return true;
  } else if ((value->bytes = mix_alloc(value->count * type->size + 1))) {
    memcpy(value->bytes, elements, value->count * type->size);
    if (type->big_endian) mix_hdf5_swap(value->bytes, value->count, type->size);
    return true;
  }
  mix_hdf5_value_free(value);
  return false;
}

void mix_hdf5_value_free(mix_hdf5_value *value) {
  for (size_t i = 0; value->texts && i < value->count; i++) mix_free(value->texts[i]);
  mix_free(value->texts);
  mix_free(value->bytes);
  *value = (mix_hdf5_value){.dtype = MIX_DTYPE_NONE};
}

/* ---- attributes ---- */

typedef struct attribute {
  mix_hdf5 *file;
  const char *name;
  mix_hdf5_value *value;
  bool found;
} attribute;

static mix_span take_padded(mix_span *span, uint64_t size, bool padded) {
  const mix_span part = mix_span_take(span, size);
  if (padded) mix_span_skip(span, (8 - size % 8) % 8);
  return part;
}

/* False: this is the one, or an error is recorded. */
static bool read_attribute(void *context, mix_span span) {
  attribute *a = context;
  const int version = (int)mix_span_number(&span, 1), flags = (int)mix_span_number(&span, 1);
  if (version < 1 || version > 3) return mix_hdf5_unsupported(a->file, "attributes of a new version");
  const uint64_t name_size = mix_span_number(&span, 2), type_size = mix_span_number(&span, 2);
  const uint64_t space_size = mix_span_number(&span, 2);
  mix_span_skip(&span, version == 3 ? 1 : 0);
  const mix_span name = take_padded(&span, name_size, version == 1);
  mix_span type_span = take_padded(&span, type_size, version == 1);
  const mix_span space = take_padded(&span, space_size, version == 1);
  if (span.short_ || name_size == 0) return mix_hdf5_damaged(a->file, "an attribute is cut off");
  if (strnlen((const char *)name.at, name.left) != strlen(a->name) ||
      memcmp(name.at, a->name, strlen(a->name)))
    return true;
  if (version > 1 && flags & 3) return mix_hdf5_unsupported(a->file, "shared types");
  mix_hdf5_type type;
  if (!mix_hdf5_read_type(a->file, &type_span, &type) ||
      !mix_hdf5_read_space(a->file, space, &a->value->shape, &a->value->count))
    return false;
  if (a->value->count > span.left / type.size)
    return mix_hdf5_damaged(a->file, "the values of an attribute are cut off");
  a->found = mix_hdf5_fill(a->file, &type, span.at, a->value);
  return false;
}

static bool on_message(void *context, int type, mix_span body) {
  attribute *a = context;
  if (type == MIX_HDF5_ATTRIBUTE) return read_attribute(a, body);
  if (type != MIX_HDF5_ATTRIBUTE_INFO) return true;
  mix_span_skip(&body, 1);
  mix_span_skip(&body, mix_span_number(&body, 1) & 1 ? 2 : 0);
  const uint64_t heap = mix_span_number(&body, 8), index = mix_span_number(&body, 8);
  if (body.short_) return mix_hdf5_damaged(a->file, "attributes are cut off");
  return heap == MIX_HDF5_NOWHERE || mix_hdf5_dense(a->file, heap, index, 0, read_attribute, a);
}

bool mix_hdf5_attribute(mix_hdf5 *file, const char *path, const char *name, mix_hdf5_value *value) {
  uint64_t header;
  attribute a = {file, name, value, false};
  *value = (mix_hdf5_value){.dtype = MIX_DTYPE_NONE};
  mix_hdf5_begin(file);
  if (mix_failed() || !mix_hdf5_resolve(file, path, &header)) return false;
  mix_hdf5_messages(file, header, on_message, &a);
  return a.found && !mix_failed();
}
