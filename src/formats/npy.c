/* Reads and writes .npy arrays. */
#include "formats/npy.h"

#include "base/alloc.h"
#include "base/error.h"
#include "compile/evaluate.h"
#include "formats/file.h"
#include "graph/unfilled_tensor.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* numpy rejects headers over 10,000 characters by default. An array of rank 8 needs less than a tenth of
 * that. */
#define HEADER_LIMIT 10000

/* Kind and width in the file, dtype in memory. */
static const struct {
  char kind;
  int width;
  mix_dtype dtype;
} kinds[] = {
    {'f', 2, MIX_FLOAT16}, {'f', 4, MIX_FLOAT32}, {'f', 8, MIX_FLOAT64}, {'i', 1, MIX_INT8},
    {'i', 2, MIX_INT16},   {'i', 4, MIX_INT32},   {'i', 8, MIX_INT64},   {'u', 1, MIX_UINT8},
    {'u', 2, MIX_INT32},   {'u', 4, MIX_INT64},   {'b', 1, MIX_BOOL},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

static bool damaged(const char *name, const char *what) {
  return mix_fail_format("%s: not a usable .npy array: %s", name, what);
}

/* ---- the header: a Python dictionary of exactly three entries ---- */

typedef struct cursor {
  const char *at, *end;
} cursor;

static void skip_blanks(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')) c->at++;
}

static bool accept(cursor *c, char expected) {
  skip_blanks(c);
  if (c->at == c->end || *c->at != expected) return false;
  c->at++;
  return true;
}

static bool accept_word(cursor *c, const char *word) {
  skip_blanks(c);
  size_t length = strlen(word);
  if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
  c->at += length;
  return true;
}

/* A quoted string without escapes, of fewer than `size` characters. */
static bool accept_text(cursor *c, char *text, size_t size) {
  skip_blanks(c);
  if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
  char quote = *c->at++;
  size_t length = 0;
  while (c->at < c->end && *c->at != quote) {
    unsigned char character = (unsigned char)*c->at++;
    if (character == '\\' || character < ' ' || character >= 127 || length + 1 >= size) return false;
    text[length++] = (char)character;
  }
  if (c->at == c->end) return false;
  c->at++;
  text[length] = 0;
  return true;
}

/* (), (3,), (3, 4); Python 2 wrote long integers as 3L. */
static bool parse_shape(const char *name, cursor *c, mix_shape *shape) {
  *shape = (mix_shape){.rank = 0};
  if (!accept(c, '(')) return damaged(name, "the shape is no tuple");
  for (bool comma = true; !accept(c, ')');) {
    skip_blanks(c);
    if (!comma || c->at == c->end || *c->at < '0' || *c->at > '9')
      return damaged(name, "the shape is no tuple of integers");
    if (shape->rank == MIX_MAX_RANK)
      return mix_fail_unsupported("%s: an array of more than %d dimensions", name, MIX_MAX_RANK);
    int64_t dimension = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
      if (__builtin_mul_overflow(dimension, 10, &dimension) ||
          __builtin_add_overflow(dimension, *c->at - '0', &dimension))
        return damaged(name, "a dimension beyond 64 bits");
    if (c->at < c->end && *c->at == 'L') c->at++;
    shape->dims[shape->rank++] = dimension;
    comma = accept(c, ',');
    if (!comma && shape->rank == 1) return damaged(name, "the shape is an integer in parentheses, no tuple");
  }
  return true;
}

static bool parse_descr(const char *name, cursor *c, mix_npy_header *header) {
  char text[24];
  skip_blanks(c);
  if (c->at < c->end && *c->at == '[')
    return mix_fail_unsupported("%s: a structured array; save each field as an array of its own", name);
  if (!accept_text(c, text, sizeof text)) return damaged(name, "'descr' is no text");
  const char *descr = text;
  char order = *descr && strchr("<>=|", *descr) ? *descr++ : '=';
  header->swapped = order == '>'; /* this machine is little-endian; '=' is its own order */
  header->kind = *descr;
  header->width = 0;
  if (*descr)
    for (descr++; *descr >= '0' && *descr <= '9' && header->width < 1000; descr++)
      header->width = header->width * 10 + (*descr - '0');
  if (*descr == 0)
    for (size_t i = 0; i < KIND_COUNT; i++)
      if (kinds[i].kind == header->kind && kinds[i].width == header->width) {
        header->dtype = kinds[i].dtype;
        return true;
      }
  const char *remedy = "save it as one of float16, float32, float64, int8 to int64, uint8 to uint32 or bool";
  if (header->kind == 'V' && header->width == 2)
    remedy = "if it holds bfloat16, save it with .astype('float32'): "
             "NumPy files do not say what two void bytes mean";
  if (header->kind == 'O') remedy = "an array of Python objects can only be read by Python";
  return mix_fail_unsupported("%s: elements of type '%s' are not supported; %s", name, text, remedy);
}

static bool parse_boolean(const char *name, cursor *c, bool *value) {
  *value = accept_word(c, "True");
  return *value || accept_word(c, "False") || damaged(name, "'fortran_order' is neither True nor False");
}

/* The dictionary of a header: `size` characters, no terminating zero needed. */
static bool parse_header(const char *name, const char *text, size_t size, mix_npy_header *header) {
  cursor c = {text, text + size};
  bool descr = false, fortran = false, shape = false;
  *header = (mix_npy_header){0};
  if (!accept(&c, '{')) return damaged(name, "the header is no dictionary");
  for (bool comma = true; !accept(&c, '}');) {
    char key[16];
    if (!comma || !accept_text(&c, key, sizeof key) || !accept(&c, ':'))
      return damaged(name, "the header is no dictionary of names");
    bool *seen = strcmp(key, "descr") == 0           ? &descr
                 : strcmp(key, "fortran_order") == 0 ? &fortran
                 : strcmp(key, "shape") == 0         ? &shape
                                                     : NULL;
    if (!seen) return damaged(name, "the header has an entry beside 'descr', 'fortran_order' and 'shape'");
    if (*seen) return damaged(name, "the header has an entry twice");
    *seen = true;
    if (seen == &descr     ? !parse_descr(name, &c, header)
        : seen == &fortran ? !parse_boolean(name, &c, &header->fortran)
                           : !parse_shape(name, &c, &header->shape))
      return false;
    comma = accept(&c, ',');
  }
  skip_blanks(&c);
  if (c.at != c.end) return damaged(name, "the header goes on after its dictionary");
  if (!descr || !fortran || !shape)
    return damaged(name, "the header lacks 'descr', 'fortran_order' or 'shape'");
  return true;
}

/* ---- reading ---- */

static bool read_bytes(const mix_byte_source *source, void *into, size_t size) {
  if (source->read(source->context, into, size)) return true;
  return damaged(source->name, "it ends early");
}

/* Reads preamble and header. Returns their size in bytes, 0 with the error recorded. */
static uint64_t read_header(const mix_byte_source *source, mix_npy_header *header) {
  unsigned char preamble[12];
  if (source->size < 10) return damaged(source->name, "it is shorter than the shortest header");
  if (!read_bytes(source, preamble, 10)) return 0;
  if (memcmp(preamble, "\x93NUMPY", 6) != 0)
    return damaged(source->name, "it does not begin with \\x93NUMPY");
  if (preamble[6] < 1 || preamble[6] > 3)
    return damaged(source->name, "a format version other than 1, 2 and 3");
  uint64_t start = 10, length = preamble[8] | (uint64_t)preamble[9] << 8;
  if (preamble[6] > 1) {
    if (!read_bytes(source, preamble + 10, 2)) return 0;
    start = 12;
    length |= (uint64_t)preamble[10] << 16 | (uint64_t)preamble[11] << 24;
  }
  if (length > HEADER_LIMIT) return damaged(source->name, "the header is absurdly long");
  if (length > source->size - start) return damaged(source->name, "the header is longer than the file");
  char text[HEADER_LIMIT];
  if (!read_bytes(source, text, length) || !parse_header(source->name, text, length, header)) return 0;
  return start + length;
}

static void swap_bytes(unsigned char *data, int64_t count, int width) {
  for (int64_t i = 0; i < count; i++, data += width)
    for (int j = 0; j < width / 2; j++) {
      unsigned char byte = data[j];
      data[j] = data[width - 1 - j];
      data[width - 1 - j] = byte;
    }
}

/* Converts Fortran order (first index fastest) to C order. Walks the result in C order and tracks the offset
 * in the source. */
static void from_fortran(const unsigned char *source, unsigned char *result, mix_shape shape, int width) {
  int64_t strides[MIX_MAX_RANK], index[MIX_MAX_RANK] = {0}, stride = 1, offset = 0,
                                 count = mix_shape_size(shape);
  for (int axis = 0; axis < shape.rank; axis++) {
    strides[axis] = stride;
    stride *= shape.dims[axis];
  }
  for (int64_t i = 0; i < count; i++) {
    memcpy(result + i * width, source + offset * width, (size_t)width);
    for (int axis = shape.rank - 1; axis >= 0; axis--) {
      offset += strides[axis];
      if (++index[axis] < shape.dims[axis]) break;
      offset -= strides[axis] * shape.dims[axis];
      index[axis] = 0;
    }
  }
}

/* Converts file elements to memory elements: the same width, or uint16 and uint32 to twice their width. */
static void convert_elements(const unsigned char *source, void *result, const mix_npy_header *header,
                             int64_t count) {
  size_t size = mix_dtype_size(header->dtype);
  if (size == (size_t)header->width) {
    if ((const void *)source != result) memcpy(result, source, (size_t)count * size);
  } else if (header->width == 2) {
    for (int64_t i = 0; i < count; i++) {
      uint16_t element;
      memcpy(&element, source + 2 * i, 2);
      ((int32_t *)result)[i] = element;
    }
  } else {
    for (int64_t i = 0; i < count; i++) {
      uint32_t element;
      memcpy(&element, source + 4 * i, 4);
      ((int64_t *)result)[i] = element;
    }
  }
  if (header->dtype == MIX_BOOL)
    for (int64_t i = 0; i < count; i++) ((uint8_t *)result)[i] = ((uint8_t *)result)[i] != 0;
}

mix_tensor *mix_npy_read(const mix_byte_source *source) {
  if (mix_failed()) return NULL;
  mix_npy_header header;
  uint64_t start = read_header(source, &header);
  if (start == 0) return NULL;
  int64_t count = mix_shape_checked_size(header.shape);
  uint64_t bytes;
  if (count < 0 || __builtin_mul_overflow((uint64_t)count, (uint64_t)header.width, &bytes))
    return mix_fail_format("%s: the header declares more elements than any memory holds", source->name);
  if (bytes != source->size - start)
    return mix_fail_format(
        "%s: the header declares %llu bytes of elements, but %llu follow; the file is %s", source->name,
        (unsigned long long)bytes, (unsigned long long)(source->size - start),
        bytes > source->size - start ? "cut short" : "damaged, or holds more than one array");
  void *data;
  mix_tensor *tensor = mix_tensor_unfilled(header.dtype, header.shape, &data);
  if (!tensor) return NULL;
  bool reordered = header.fortran && header.shape.rank > 1,
       converts = mix_dtype_size(header.dtype) != (size_t)header.width;
  unsigned char *raw = converts || reordered ? mix_alloc(bytes) : data;
  unsigned char *ordered = converts && reordered ? mix_alloc(bytes) : reordered ? data : raw;
  bool read = raw && ordered && read_bytes(source, raw, bytes);
  if (read) {
    if (header.swapped) swap_bytes(raw, count, header.width);
    if (reordered) from_fortran(raw, ordered, header.shape, header.width);
    convert_elements(ordered, data, &header, count);
  }
  if (ordered != raw && (void *)ordered != data) mix_free(ordered);
  if ((void *)raw != data) mix_free(raw);
  return read ? tensor : NULL;
}

static bool read_memory(void *context, void *into, size_t size) {
  mix_bytes *rest = context;
  if (size > rest->size) return false;
  memcpy(into, rest->data, size);
  *rest = (mix_bytes){(const char *)rest->data + size, rest->size - size};
  return true;
}

mix_tensor *mix_npy_read_memory(const char *name, const void *data, size_t size) {
  mix_bytes rest = {data, size};
  return mix_npy_read(&(const mix_byte_source){name, read_memory, &rest, size});
}

static bool read_stream(void *context, void *into, size_t size) {
  return fread(into, 1, size, context) == size;
}

mix_tensor *mix_npy_load(const char *path) {
  if (mix_failed()) return NULL;
  if (!path) return mix_fail_value("npy_load: path is NULL; expected the name of a .npy file");
  /* O_NONBLOCK: opening a FIFO would block until someone writes to it. */
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "rb");
  if (!file) {
    mix_fail_io("npy_load: %s cannot be opened: %s", path, strerror(errno));
    if (descriptor >= 0) close(descriptor);
    return NULL;
  }
  struct stat status;
  mix_tensor *tensor = NULL;
  if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode))
    mix_fail_io("npy_load: %s is not a regular file", path);
  else
    tensor = mix_npy_read(&(const mix_byte_source){path, read_stream, file, (uint64_t)status.st_size});
  fclose(file);
  return tensor;
}

/* ---- writing ---- */

mix_dtype mix_npy_written_dtype(mix_dtype dtype) {
  return dtype == MIX_BFLOAT16 || mix_dtype_is_float8(dtype) ? MIX_FLOAT32 : dtype;
}

size_t mix_npy_write_header(mix_dtype dtype, mix_shape shape, char header[MIX_NPY_HEADER_MAX]) {
  size_t kind = 0;
  while (kind + 1 < KIND_COUNT && kinds[kind].dtype != dtype) kind++;
  int length =
      snprintf(header + 10, MIX_NPY_HEADER_MAX - 10, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
               kinds[kind].width == 1 ? '|' : '<', kinds[kind].kind, kinds[kind].width);
  int growth = 0; /* numpy pads the header so that the first dimension can grow to 21 digits */
  for (int axis = 0; axis < shape.rank; axis++) {
    int digits = snprintf(header + 10 + length, (size_t)(MIX_NPY_HEADER_MAX - 10 - length), "%lld",
                          (long long)shape.dims[axis]);
    if (axis == 0) growth = 21 - digits;
    length += digits;
    length += snprintf(header + 10 + length, (size_t)(MIX_NPY_HEADER_MAX - 10 - length), "%s",
                       axis + 1 < shape.rank ? ", "
                       : shape.rank == 1     ? ","
                                             : "");
  }
  length += snprintf(header + 10 + length, (size_t)(MIX_NPY_HEADER_MAX - 10 - length), "), }");
  size_t total = (10 + (size_t)length + (size_t)growth + 1 + 63) / 64 * 64;
  memset(header + 10 + length, ' ', total - 10 - (size_t)length);
  header[total - 1] = '\n';
  memcpy(header, "\x93NUMPY\x01", 8);
  header[8] = (char)((total - 10) & 0xff);
  header[9] = (char)((total - 10) >> 8);
  return total;
}

const void *mix_npy_written_data(mix_tensor *tensor, void **converted) {
  *converted = NULL;
  mix_pinned pinned;
  if (!mix_tensor_pin(tensor, &pinned)) return NULL;
  mix_dtype dtype = mix_tensor_dtype(tensor), written = mix_npy_written_dtype(dtype);
  if (dtype == written && !pinned.storage) {
    mix_tensor_unpin(&pinned);
    return pinned.data;
  }
  /* A variable's value is copied: others may assign it during the write. */
  mix_shape shape = mix_tensor_shape(tensor);
  const size_t bytes = mix_value_bytes(written, shape);
  *converted = mix_alloc(bytes);
  if (*converted && dtype == written)
    memcpy(*converted, pinned.data, bytes);
  else if (*converted)
    mix_convert(pinned.data, dtype, *converted, written, mix_shape_size(shape));
  mix_tensor_unpin(&pinned);
  return *converted;
}

mix_status mix_npy_save(const char *path, mix_tensor *tensor) {
  if (mix_failed()) return mix_error();
  if (!path || !mix_is(tensor, &mix_tensor_class))
    return mix_fail_status(MIX_VALUE_ERROR, "npy_save: %s is NULL", path ? "the tensor" : "path");
  void *converted;
  const void *data = mix_npy_written_data(tensor, &converted);
  if (!data) return mix_error();
  mix_dtype written = mix_npy_written_dtype(mix_tensor_dtype(tensor));
  mix_shape shape = mix_tensor_shape(tensor);
  char header[MIX_NPY_HEADER_MAX];
  mix_bytes pieces[] = {{header, mix_npy_write_header(written, shape, header)},
                        {data, mix_value_bytes(written, shape)}};
  mix_file_replace(path, pieces, 2, "npy_save");
  mix_free(converted);
  return mix_error();
}
