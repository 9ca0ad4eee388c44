/* The elements of HDF5 data sets: layouts, chunks, filters. */
#include "formats/hdf5_inside.h"

#include "base/alloc.h"
#include "base/error.h"
#include "graph/unfilled_tensor.h"
#include "tensor/shape.h"
#include <string.h>
#include <zlib.h>

enum { DEFLATE = 1, SHUFFLE = 2, MAX_FILTERS = 4, DEFLATE_MAX = 1032 };

typedef struct dataset {
  mix_hdf5 *file;
  uint64_t header;
  mix_hdf5_type type;
  mix_shape shape;
  size_t count;
  int filters[MAX_FILTERS], filter_count;
  mix_shape chunk;
  size_t chunk_bytes, chunks_left;
  unsigned char *elements; /* count * type.size bytes, as in the file */
} dataset;

/* ---- filters ---- */

static bool read_filters(dataset *d, mix_span span) {
  const int version = (int)mix_span_number(&span, 1), count = (int)mix_span_number(&span, 1);
  if ((version != 1 && version != 2) || count > MAX_FILTERS)
    return mix_hdf5_unsupported(d->file, "these filters");
  mix_span_skip(&span, version == 1 ? 6 : 0);
  for (int i = 0; i < count; i++) {
    const int id = (int)mix_span_number(&span, 2);
    const uint64_t name = version == 1 || id >= 256 ? mix_span_number(&span, 2) : 0;
    mix_span_skip(&span, 2);
    const uint64_t values = mix_span_number(&span, 2);
    mix_span_skip(&span, version == 1 ? (name + 7) / 8 * 8 : name);
    mix_span_skip(&span, 4 * (values + (version == 1 && values % 2)));
    if (id != DEFLATE && id != SHUFFLE)
      return mix_hdf5_unsupported(d->file, "filters but deflate and shuffle");
    d->filters[d->filter_count++] = id;
  }
  return !span.short_ || mix_hdf5_damaged(d->file, "the filters are cut off");
}

static bool inflate_chunk(const dataset *d, const unsigned char *from, size_t size, unsigned char *to) {
  uLongf made = d->chunk_bytes;
  if (uncompress(to, &made, from, size) != Z_OK || made != d->chunk_bytes)
    return mix_hdf5_damaged(d->file, "a chunk does not inflate to its size");
  return true;
}

/* Shuffle puts the first bytes of all elements before the second ones, and so on. */
static void unshuffle(const dataset *d, const unsigned char *from, unsigned char *to) {
  const size_t size = d->type.size, count = d->chunk_bytes / size;
  for (size_t i = 0; i < count; i++)
    for (size_t b = 0; b < size; b++) to[i * size + b] = from[b * count + i];
}

/* Undoes the filters, last first. `room`: two buffers of a chunk. */
static const unsigned char *undo_filters(const dataset *d, mix_span stored, uint64_t skipped,
                                         unsigned char *room) {
  const unsigned char *from = stored.at;
  size_t size = stored.left;
  for (int i = d->filter_count - 1, next = 0; i >= 0; i--) {
    if (skipped >> i & 1) continue;
    unsigned char *to = room + (next++ % 2 ? d->chunk_bytes : 0);
    if (d->filters[i] == DEFLATE) {
      if (!inflate_chunk(d, from, size, to)) return NULL;
    } else {
      if (size != d->chunk_bytes) return mix_hdf5_damaged(d->file, "a chunk has another size"), NULL;
      unshuffle(d, from, to);
    }
    from = to;
    size = d->chunk_bytes;
  }
  if (size != d->chunk_bytes) return mix_hdf5_damaged(d->file, "a chunk has another size"), NULL;
  return from;
}

/* ---- elements that are nowhere ---- */

/* They have the fill value, which is 0 where nobody chose another. */
static bool are_zeros(const dataset *d) {
  mix_span span;
  if (!mix_hdf5_find(d->file, d->header, MIX_HDF5_FILL_VALUE, &span)) return !mix_failed();
  const bool newest = mix_span_number(&span, 1) == 3;
  mix_span_skip(&span, newest ? 0 : 2);
  if (!(mix_span_number(&span, 1) & (newest ? 0x20 : 0xff))) return true;
  for (uint64_t left = mix_span_number(&span, 4); left > 0; left--) {
    if (span.left && *span.at) return mix_hdf5_unsupported(d->file, "a fill value that is not 0");
    if (!span.left) return mix_hdf5_damaged(d->file, "a fill value is cut off");
    mix_span_skip(&span, 1);
  }
  return true;
}

/* ---- chunks ---- */

/* Copies the part of a chunk that lies inside the data set. */
static void place_chunk(const dataset *d, const uint64_t *begin, const unsigned char *chunk) {
  const int last = d->shape.rank - 1;
  const size_t size = d->type.size;
  int64_t at[MIX_MAX_RANK] = {0};
  const int64_t left = d->shape.dims[last] - (int64_t)begin[last];
  const size_t run = (size_t)(left < d->chunk.dims[last] ? left : d->chunk.dims[last]) * size;
  for (;;) {
    size_t from = 0, to = 0;
    bool inside = true;
    for (int i = 0; i <= last; i++) {
      const int64_t place = (int64_t)begin[i] + at[i];
      inside = inside && place < d->shape.dims[i];
      from = from * (size_t)d->chunk.dims[i] + (size_t)at[i];
      to = to * (size_t)d->shape.dims[i] + (size_t)place;
    }
    if (inside) memcpy(d->elements + to * size, chunk + from * size, run);
    int axis = last - 1;
    while (axis >= 0 && ++at[axis] == d->chunk.dims[axis]) at[axis--] = 0;
    if (axis < 0) return;
  }
}

static bool read_chunk(dataset *d, mix_span key, uint64_t address, unsigned char *room) {
  const uint64_t size = mix_span_number(&key, 4), skipped = mix_span_number(&key, 4);
  uint64_t begin[MIX_MAX_RANK] = {0};
  mix_span stored;
  for (int i = 0; i < d->shape.rank; i++) {
    begin[i] = mix_span_number(&key, 8);
    if (begin[i] >= (uint64_t)d->shape.dims[i] || begin[i] % (uint64_t)d->chunk.dims[i])
      return mix_hdf5_damaged(d->file, "a chunk lies outside its data set");
  }
  if (!mix_hdf5_span(d->file, address, size, &stored)) return false;
  const unsigned char *chunk = undo_filters(d, stored, skipped, room);
  if (chunk) place_chunk(d, begin, chunk);
  d->chunks_left -= d->chunks_left > 0;
  return chunk != NULL;
}

static bool read_chunks(dataset *d, uint64_t address, int depth, unsigned char *room) {
  mix_span span;
  if (depth > 16) return mix_hdf5_damaged(d->file, "the tree of chunks is too deep");
  if (!mix_hdf5_block(d->file, address, "TREE", &span)) return false;
  const uint64_t kind = mix_span_number(&span, 1), level = mix_span_number(&span, 1);
  const uint64_t count = mix_span_number(&span, 2);
  if (kind != 1) return mix_hdf5_damaged(d->file, "the tree of chunks is that of a group");
  mix_span_skip(&span, 16);
  for (uint64_t i = 0; i < count; i++) {
    const mix_span key = mix_span_take(&span, 8 + 8 * ((uint64_t)d->shape.rank + 1));
    const uint64_t child = mix_span_number(&span, 8);
    if (span.short_) return mix_hdf5_damaged(d->file, "the tree of chunks is cut off");
    if (!(level ? read_chunks(d, child, depth + 1, room) : read_chunk(d, key, child, room))) return false;
  }
  return true;
}

static bool read_chunked(dataset *d, mix_span span) {
  const int rank = (int)mix_span_number(&span, 1) - 1;
  const uint64_t tree = mix_span_number(&span, 8);
  if (rank != d->shape.rank || rank < 1) return mix_hdf5_damaged(d->file, "chunks of another rank");
  d->chunk.rank = rank;
  d->chunk_bytes = d->type.size;
  d->chunks_left = 1;
  for (int i = 0; i < rank; i++) {
    d->chunk.dims[i] = (int64_t)mix_span_number(&span, 4);
    if (d->chunk.dims[i] == 0 || d->chunk_bytes > (SIZE_MAX >> 34) / (size_t)d->chunk.dims[i] * 4)
      return mix_hdf5_damaged(d->file, "chunks of an impossible size");
    d->chunk_bytes *= (size_t)d->chunk.dims[i];
    d->chunks_left *= (size_t)((d->shape.dims[i] - 1) / d->chunk.dims[i] + 1);
  }
  if (span.short_) return mix_hdf5_damaged(d->file, "a layout is cut off");
  if (d->chunk_bytes > (d->file->size + 1) * DEFLATE_MAX)
    return mix_hdf5_damaged(d->file, "chunks that are larger than the file can hold");
  if (tree == MIX_HDF5_NOWHERE) return are_zeros(d);
  unsigned char *room = mix_alloc(2 * d->chunk_bytes);
  const bool good = room && read_chunks(d, tree, 0, room);
  mix_free(room);
  return good && (!d->chunks_left || are_zeros(d));
}

/* ---- layouts ---- */

static bool copy_elements(dataset *d, mix_span stored) {
  const size_t bytes = d->count * d->type.size;
  if (stored.left < bytes) return mix_hdf5_damaged(d->file, "a data set is cut off");
  if (bytes) memcpy(d->elements, stored.at, bytes);
  return true;
}

static bool read_layout(dataset *d, mix_span span) {
  const int version = (int)mix_span_number(&span, 1), kind = (int)mix_span_number(&span, 1);
  mix_span stored;
  if (kind == 3) return mix_hdf5_unsupported(d->file, "virtual data sets, which read other files");
  if (version != 3 && !(version == 4 && kind < 2))
    return mix_hdf5_unsupported(d->file, version == 4
                                             ? "chunks in layout 4 (libver=\"latest\"; write the file "
                                               "with libver=\"earliest\", or without chunks)"
                                             : "this layout of data");
  if (kind == 2) return read_chunked(d, span);
  if (kind == 0) {
    stored = mix_span_take(&span, mix_span_number(&span, 2));
    return stored.short_ ? mix_hdf5_damaged(d->file, "a data set is cut off") : copy_elements(d, stored);
  }
  const uint64_t address = mix_span_number(&span, 8), size = mix_span_number(&span, 8);
  if (span.short_) return mix_hdf5_damaged(d->file, "a layout is cut off");
  if (address == MIX_HDF5_NOWHERE) return are_zeros(d); /* never written */
  return mix_hdf5_span(d->file, address, size, &stored) && copy_elements(d, stored);
}

/* ---- data sets ---- */

/* Header, type, space and filters. */
static bool describe(dataset *d, const char *path) {
  mix_span span;
  mix_hdf5_begin(d->file);
  if (mix_failed()) return false;
  if (!mix_hdf5_resolve(d->file, path, &d->header))
    return mix_fail_format("%s: no data set '%s' in the file", d->file->name, path);
  if (mix_hdf5_find(d->file, d->header, MIX_HDF5_EXTERNAL_FILES, &span))
    return mix_hdf5_unsupported(d->file, "data in other files");
  if (!mix_hdf5_find(d->file, d->header, MIX_HDF5_DATATYPE, &span))
    return mix_fail_format("%s: '%s' is no data set", d->file->name, path);
  if (!mix_hdf5_read_type(d->file, &span, &d->type)) return false;
  if (!mix_hdf5_find(d->file, d->header, MIX_HDF5_DATASPACE, &span))
    return mix_hdf5_damaged(d->file, "a data set without a space");
  if (!mix_hdf5_read_space(d->file, span, &d->shape, &d->count)) return false;
  return !mix_hdf5_find(d->file, d->header, MIX_HDF5_FILTERS, &span) ? !mix_failed() : read_filters(d, span);
}

/* Bounded by what the file can hold: deflate shrinks by 1/1032 at most. */
static bool check_size(const dataset *d) {
  const size_t most = (d->file->size + 1) * (d->filter_count ? DEFLATE_MAX : 1);
  if (d->count <= most / d->type.size) return true;
  return mix_hdf5_damaged(d->file, "a data set is larger than the file can hold");
}

static bool read_elements(dataset *d) {
  mix_span span;
  if (!mix_hdf5_find(d->file, d->header, MIX_HDF5_LAYOUT, &span))
    return mix_failed() ? false : mix_hdf5_damaged(d->file, "a data set without a layout");
  return d->count == 0 || read_layout(d, span);
}

bool mix_hdf5_dataset(mix_hdf5 *file, const char *path, mix_hdf5_value *value) {
  dataset d = {.file = file};
  *value = (mix_hdf5_value){.dtype = MIX_DTYPE_NONE};
  if (!describe(&d, path) || !check_size(&d)) return false;
  d.elements = mix_calloc(d.count + 1, d.type.size);
  value->shape = d.shape;
  value->count = d.count;
  const bool good = d.elements && read_elements(&d) && mix_hdf5_fill(file, &d.type, d.elements, value);
  mix_free(d.elements);
  if (!good) *value = (mix_hdf5_value){.dtype = MIX_DTYPE_NONE};
  return good;
}

/* The dtype of opaque bytes, from the attribute that Keras 3 writes beside them, except in legacy files,
 * which it does not read again: two bytes are a bfloat16 of NumPy there. */
static mix_dtype opaque_dtype(mix_hdf5 *file, const char *path, size_t size) {
  mix_hdf5_value text;
  if (size != 2) return MIX_DTYPE_NONE;
  if (!mix_hdf5_attribute(file, path, "dtype", &text)) return mix_failed() ? MIX_DTYPE_NONE : MIX_BFLOAT16;
  const bool is = text.texts && text.count == 1 && !strcmp(text.texts[0], "bfloat16");
  mix_hdf5_value_free(&text);
  return is ? MIX_BFLOAT16 : MIX_DTYPE_NONE;
}

/* The dtype of the tensor that a data set becomes; none with the error recorded. */
static mix_dtype tensor_dtype(const dataset *d, const char *path) {
  mix_dtype dtype = d->type.dtype;
  if (d->type.kind == MIX_HDF5_OPAQUE) dtype = opaque_dtype(d->file, path, d->type.size);
  if (mix_failed()) return MIX_DTYPE_NONE;
  if (dtype == MIX_DTYPE_NONE)
    mix_fail_unsupported("%s: '%s' holds elements that no tensor has", d->file->name, path);
  else if (mix_shape_size(d->shape) != (int64_t)d->count)
    mix_fail_unsupported("%s: '%s' is empty", d->file->name, path);
  return mix_failed() ? MIX_DTYPE_NONE : dtype;
}

bool mix_hdf5_describe(mix_hdf5 *file, const char *path, mix_dtype *dtype, mix_shape *shape) {
  dataset d = {.file = file};
  if (!describe(&d, path) || !check_size(&d)) return false;
  *dtype = tensor_dtype(&d, path);
  *shape = d.shape;
  return *dtype != MIX_DTYPE_NONE;
}

/* The elements go into the tensor's memory, without a copy between. */
static mix_tensor *read_tensor(dataset *d, mix_dtype dtype) {
  void *data;
  mix_tensor *tensor = mix_tensor_unfilled(dtype, d->shape, &data);
  if (!tensor) return NULL;
  memset(data, 0, d->count * d->type.size);
  d->elements = data;
  if (!read_elements(d)) return NULL;
  if (d->type.big_endian) mix_hdf5_swap(data, d->count, d->type.size);
  return tensor;
}

mix_tensor *mix_hdf5_tensor(mix_hdf5 *file, const char *path) {
  dataset d = {.file = file};
  if (!describe(&d, path) || !check_size(&d)) return NULL;
  const mix_dtype dtype = tensor_dtype(&d, path);
  return dtype == MIX_DTYPE_NONE ? NULL : read_tensor(&d, dtype);
}

/* Where the elements lie in the file as they are; NULL: nowhere, or an error recorded. */
static const unsigned char *find_elements(const dataset *d) {
  mix_span span, stored;
  if (d->type.big_endian || d->filter_count || !d->count) return NULL;
  if (!mix_hdf5_find(d->file, d->header, MIX_HDF5_LAYOUT, &span)) return NULL;
  const uint64_t version = mix_span_number(&span, 1), kind = mix_span_number(&span, 1);
  const uint64_t address = mix_span_number(&span, 8), size = mix_span_number(&span, 8);
  if ((version != 3 && version != 4) || kind != 1 || span.short_ || address == MIX_HDF5_NOWHERE) return NULL;
  if (!mix_hdf5_span(d->file, address, size, &stored)) return NULL;
  return stored.left < d->count * d->type.size ? NULL : stored.at;
}

mix_tensor *mix_hdf5_borrow(mix_hdf5 *file, const char *path) {
  dataset d = {.file = file};
  if (!describe(&d, path) || !check_size(&d)) return NULL;
  const mix_dtype dtype = tensor_dtype(&d, path);
  const unsigned char *elements = dtype == MIX_DTYPE_NONE ? NULL : find_elements(&d);
  if (mix_failed()) return NULL;
  if (!elements) return read_tensor(&d, dtype);
  mix_memory *memory = mix_memory_wrap((void *)elements, d.count * d.type.size, NULL);
  mix_tensor *tensor = memory ? mix_tensor_of_memory(memory, dtype, d.shape) : NULL;
  mix_release(memory);
  return tensor;
}

mix_memory *mix_hdf5_share(mix_hdf5 *file, const char *path) {
  enum { LEAST = 4096 }; /* a page, which less would keep as a whole */
  dataset d = {.file = file};
  if (!file->memory || !describe(&d, path) || !check_size(&d)) return NULL;
  const unsigned char *elements = find_elements(&d), *first = NULL;
  const size_t bytes = d.count * d.type.size;
  if (!elements || bytes < LEAST || !(first = mix_memory_map(file->memory, MIX_MAP_READ))) return NULL;
  mix_memory_unmap(file->memory); /* of the host: stays valid */
  const size_t offset = (size_t)(elements - first);
  return mix_memory_is_aligned(file->memory, offset) ? mix_memory_part(file->memory, offset, bytes) : NULL;
}
