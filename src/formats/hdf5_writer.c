/* Writes HDF5 files: notes objects, lays them out, hands out their bytes. */
#include "formats/hdf5_writer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "compile/evaluate.h"
#include "formats/hdf5_encode.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

/* Keras's HDF5_OBJECT_HEADER_LIMIT. */
enum { MAX_ATTRIBUTE = 64512 };

struct mix_hdf5_writer {
  mix_object object;
  const char *call; /* interned */
  mix_hdf5_objects objects;
  uint64_t end;                    /* of the elements */
  mix_hdf5_buffer begin, metadata; /* the superblock; what comes behind the elements */
  int next;                        /* the object whose elements come next */
  uint64_t written;                /* bytes that were handed out */
  unsigned char *piece;
  size_t filled, capacity; /* of the piece */
};

static void writer_finalize(void *object) {
  mix_hdf5_writer *writer = object;
  mix_hdf5_objects_end(&writer->objects);
  mix_free(writer->piece);
  mix_free(writer->begin.data);
  mix_free(writer->metadata.data);
}
static const mix_class writer_class = {.name = "hdf5_writer", .finalize = writer_finalize};

mix_hdf5_writer *mix_hdf5_writer_new(const char *call) {
  mix_hdf5_writer *writer = mix_failed() ? NULL : mix_object_new(sizeof *writer, &writer_class);
  if (!writer) return NULL;
  writer->call = mix_intern(call);
  writer->end = MIX_HDF5_SUPERBLOCK_SIZE;
  if (writer->call && mix_hdf5_objects_begin(&writer->objects)) return mix_scoped(writer);
  mix_release(writer);
  return NULL;
}

/* ---- objects ---- */

bool mix_hdf5_is_free(mix_hdf5_writer *writer, const char *path) {
  return writer && !mix_failed() && mix_hdf5_path_is_free(&writer->objects, path);
}

bool mix_hdf5_write_group(mix_hdf5_writer *writer, const char *path) {
  if (!writer || mix_failed()) return false;
  return mix_hdf5_find_object(&writer->objects, path) ||
         mix_hdf5_make_object(&writer->objects, path, true, writer->call);
}

static void place_elements(mix_hdf5_writer *writer, mix_hdf5_object *set) {
  const uint64_t alignment = set->data_size < MIX_HDF5_LARGE ? 8 : MIX_HDF5_ALIGNMENT;
  set->data = writer->end + -writer->end % alignment;
  if (set->data_size) writer->end = set->data + set->data_size;
}

bool mix_hdf5_write_tensor(mix_hdf5_writer *writer, const char *path, mix_tensor *tensor) {
  if (!writer || !tensor || mix_failed()) return false;
  const mix_dtype dtype = mix_tensor_dtype(tensor);
  if (!mix_hdf5_has_type(dtype))
    return mix_fail_unsupported("%s: '%.200s' is %s, which HDF5 files do not have; expected another dtype",
                                writer->call, path, mix_dtype_name(dtype));
  if (mix_hdf5_find_object(&writer->objects, path))
    return mix_fail_value("%s: '%.200s' is in the HDF5 file already; expected another name", writer->call,
                          path);
  mix_hdf5_object *set = mix_hdf5_make_object(&writer->objects, path, false, writer->call);
  if (!set) return false;
  set->dtype = dtype;
  set->shape = mix_tensor_shape(tensor);
  set->data_size = mix_value_bytes(dtype, set->shape);
  set->tensor = mix_retain(tensor);
  place_elements(writer, set);
  return dtype != MIX_BFLOAT16 || mix_hdf5_write_text(writer, path, "dtype", mix_dtype_name(dtype));
}

/* ---- attributes ---- */

static bool add_text(mix_hdf5_writer *writer, const char *path, mix_hdf5_text text) {
  mix_hdf5_object *object = mix_hdf5_find_object(&writer->objects, path);
  if (object) return mix_hdf5_add_text(object, text, writer->call);
  mix_free(text.bytes);
  return mix_fail_value("%s: '%.200s' is not in the HDF5 file; expected a group or an array that was written",
                        writer->call, path);
}

bool mix_hdf5_write_text(mix_hdf5_writer *writer, const char *path, const char *name, const char *text) {
  if (!writer || mix_failed()) return false;
  const size_t length = strlen(text);
  if (length > UINT32_MAX)
    return mix_fail_value("%s: the text '%.100s' has %zu bytes; HDF5 files take at most %u", writer->call,
                          name, length, UINT32_MAX);
  char *copy = mix_strdup(text);
  return copy &&
         add_text(writer, path,
                  (mix_hdf5_text){
                      .name = (char *)name, .variable = true, .count = 1, .width = length, .bytes = copy});
}

/* Texts padded by zeros. */
static bool write_piece(mix_hdf5_writer *writer, const char *path, const char *name, int count,
                        const char *const *texts, size_t width) {
  char *block = mix_calloc((size_t)count, width);
  if (!block) return false;
  for (int i = 0; i < count; i++) memcpy(block + (size_t)i * width, texts[i], strlen(texts[i]));
  return add_text(writer, path,
                  (mix_hdf5_text){.name = (char *)name, .count = count, .width = width, .bytes = block});
}

/* numpy.array_split: the first pieces are one longer. */
static bool write_pieces(mix_hdf5_writer *writer, const char *path, const char *name, int count,
                         const char *const *texts, size_t width) {
  int pieces = 1;
  while (((size_t)(count + pieces - 1) / (size_t)pieces) * width > MAX_ATTRIBUTE) pieces++;
  if (pieces == 1) return write_piece(writer, path, name, count, texts, width);
  const size_t room = strlen(name) + 16;
  char *piece = mix_alloc(room);
  bool good = piece;
  for (int i = 0, first = 0; good && i < pieces; i++) {
    const int length = count / pieces + (i < count % pieces);
    snprintf(piece, room, "%s%d", name, i);
    good = write_piece(writer, path, piece, length, texts + first, width);
    first += length;
  }
  mix_free(piece);
  return good;
}

/* No texts are an empty array of numbers, as numpy makes of an empty list. */
bool mix_hdf5_write_texts(mix_hdf5_writer *writer, const char *path, const char *name, int count,
                          const char *const *texts) {
  size_t width = 1;
  if (!writer || mix_failed()) return false;
  for (int i = 0; i < count; i++)
    if (strlen(texts[i]) > width) width = strlen(texts[i]);
  if (width > MAX_ATTRIBUTE)
    return mix_fail_value("%s: a name in %s has %zu bytes; HDF5 files take at most %d", writer->call, name,
                          width, MAX_ATTRIBUTE);
  return count ? write_pieces(writer, path, name, count, texts, width)
               : add_text(writer, path, (mix_hdf5_text){.name = (char *)name});
}

/* ---- the layout ---- */

/* A collection of the global heap takes texts while they have room in its least size. */
typedef struct collection {
  size_t begin; /* in the metadata */
  int count;    /* of its texts; 0: there is none */
} collection;

enum { COLLECTION_HEAD = 16, TEXT_HEAD = 16 };

static void begin_collection(mix_hdf5_buffer *block, collection *heap, size_t first) {
  size_t size = COLLECTION_HEAD + TEXT_HEAD + (first + 7) / 8 * 8;
  if (size < MIX_HDF5_COLLECTION_MIN) size = MIX_HDF5_COLLECTION_MIN;
  *heap = (collection){.begin = block->size};
  mix_hdf5_put(block, "GCOL\1\0\0", 8);
  mix_hdf5_put_number(block, size, 8);
}

/* The free room, if any, is an object of its own, whose size counts its head. */
static void end_collection(mix_hdf5_buffer *block, collection *heap) {
  const size_t used = block->size - heap->begin;
  if (heap->count && used < MIX_HDF5_COLLECTION_MIN) {
    const size_t left = MIX_HDF5_COLLECTION_MIN - used;
    mix_hdf5_put_zeros(block, 8);
    if (left >= TEXT_HEAD) mix_hdf5_put_number(block, left, 8);
    mix_hdf5_put_zeros(block, left < TEXT_HEAD ? left - 8 : left - TEXT_HEAD);
  }
  heap->count = 0;
}

/* An empty text is nowhere. */
static void put_in_collection(mix_hdf5_buffer *block, collection *heap, mix_hdf5_text *text) {
  if (!text->width) return;
  const size_t used = block->size - heap->begin + TEXT_HEAD + (text->width + 7) / 8 * 8;
  if (heap->count && used > MIX_HDF5_COLLECTION_MIN) end_collection(block, heap);
  if (!heap->count) begin_collection(block, heap, text->width);
  text->collection = block->address + heap->begin;
  text->index = ++heap->count;
  mix_hdf5_put_number(block, (uint64_t)text->index, 8);
  mix_hdf5_put_number(block, text->width, 8);
  mix_hdf5_put(block, text->bytes, text->width);
  mix_hdf5_align(block);
}

static void put_collections(mix_hdf5_buffer *block, const mix_hdf5_objects *objects) {
  collection heap = {0};
  for (int i = 0; i < objects->count; i++)
    for (int t = 0; t < objects->items[i]->text_count; t++)
      if (objects->items[i]->texts[t].variable) put_in_collection(block, &heap, &objects->items[i]->texts[t]);
  end_collection(block, &heap);
}

/* Members before their group, which holds their addresses. */
static bool put_objects(mix_hdf5_writer *writer) {
  mix_hdf5_buffer *block = &writer->metadata;
  for (int i = writer->objects.count - 1; i >= 0; i--) {
    mix_hdf5_object *object = writer->objects.items[i];
    if (object->is_group && !mix_hdf5_put_links(block, object)) return false;
    if (!mix_hdf5_put_header(block, object, writer->call)) return false;
  }
  return true;
}

static bool lay_out(mix_hdf5_writer *writer) {
  writer->metadata.address = writer->end + -writer->end % 8;
  put_collections(&writer->metadata, &writer->objects);
  if (!put_objects(writer)) return false;
  mix_hdf5_put_superblock(&writer->begin, writer->objects.items[0], mix_hdf5_here(&writer->metadata));
  return !writer->begin.failed;
}

/* ---- pieces ---- */

/* Reading a tensor copies a part of it, so that assignments never wait for a disk: it keeps its value. */
enum { PIECE = 1 << 20 };

static bool make_room(mix_hdf5_writer *writer, size_t size) {
  if (size <= writer->capacity) return true;
  unsigned char *piece = mix_realloc(writer->piece, size);
  if (!piece) return false;
  writer->piece = piece;
  writer->capacity = size;
  return true;
}

static void put_zeros(mix_hdf5_writer *writer, uint64_t size) {
  const size_t room = writer->capacity - writer->filled, count = size < room ? (size_t)size : room;
  memset(writer->piece + writer->filled, 0, count);
  writer->filled += count;
}

/* Elements from `at` on, as many as there is room for. Memory of a device is mapped once, whole. */
static bool put_elements(mix_hdf5_writer *writer, const mix_hdf5_object *set, size_t at) {
  mix_pinned pinned;
  size_t size = set->data_size - at;
  if (!mix_tensor_pin(set->tensor, &pinned)) return false;
  const size_t room = writer->capacity - writer->filled;
  if (mix_memory_device_of(pinned.memory) == &mix_host_memory && size > room) size = room;
  const bool good = make_room(writer, writer->filled + size);
  if (good) memcpy(writer->piece + writer->filled, (const char *)pinned.data + at, size);
  mix_tensor_unpin(&pinned);
  writer->filled += good ? size : 0;
  return good;
}

/* The first set that is not written whole; NULL: there is none. One that is ends. */
static const mix_hdf5_object *next_set(mix_hdf5_writer *writer, uint64_t position) {
  for (; writer->next < writer->objects.count; writer->next++) {
    mix_hdf5_object *set = writer->objects.items[writer->next];
    if (set->data_size && set->data + set->data_size > position) return set;
    mix_release(set->tensor);
    set->tensor = NULL;
  }
  return NULL;
}

/* Superblock, elements, and zeros between them. */
static bool fill_piece(mix_hdf5_writer *writer) {
  const uint64_t end = writer->metadata.address;
  bool good = make_room(writer, PIECE);
  writer->filled = 0;
  while (good && writer->filled < writer->capacity && writer->written + writer->filled < end) {
    const uint64_t position = writer->written + writer->filled;
    const mix_hdf5_object *set = next_set(writer, position);
    const uint64_t begin = set ? set->data : end;
    if (!position) {
      memcpy(writer->piece, writer->begin.data, writer->begin.size);
      writer->filled = writer->begin.size;
    } else if (position < begin) {
      put_zeros(writer, begin - position);
    } else {
      good = put_elements(writer, set, (size_t)(position - begin));
    }
  }
  return good;
}

static bool next_piece(void *context, mix_bytes *piece) {
  mix_hdf5_writer *writer = context;
  const uint64_t end = writer->metadata.address;
  *piece = (mix_bytes){0};
  if (mix_failed()) return false;
  if (writer->written < end) {
    if (!fill_piece(writer)) return false;
    *piece = (mix_bytes){writer->piece, writer->filled};
  } else if (writer->written == end) {
    *piece = (mix_bytes){writer->metadata.data, writer->metadata.size};
  }
  writer->written += piece->size;
  return true;
}

bool mix_hdf5_writer_source(mix_hdf5_writer *writer, mix_piece_source *source) {
  if (!writer || mix_failed() || !lay_out(writer)) return false;
  *source = (mix_piece_source){mix_hdf5_here(&writer->metadata), next_piece, writer};
  return true;
}
