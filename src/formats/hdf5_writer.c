/* Writes HDF5 files by the HDF5 library, into memory. */
#include "formats/hdf5_writer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "compile/evaluate.h"
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The library's headers would compare versions, and end the program where they differ. */
#undef H5CHECK
#define H5CHECK

/* Keras's HDF5_OBJECT_HEADER_LIMIT. */
enum { MAX_ATTRIBUTE = 64512, MIN_GROWTH = 1 << 16 };

struct mix_hdf5_writer {
  mix_object object;
  const char *call;  /* interned */
  hid_t file, links; /* links: the properties of new paths */
};

/* ---- the library ---- */

/* It is not safe for threads, and has one stack of errors, which it would print. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

typedef struct quiet {
  H5E_auto2_t print;
  void *context;
} quiet;

static quiet begin(void) {
  quiet former = {NULL, NULL};
  pthread_mutex_lock(&mutex);
  H5Eget_auto2(H5E_DEFAULT, &former.print, &former.context);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  return former;
}

static void end(quiet former) {
  H5Eset_auto2(H5E_DEFAULT, former.print, former.context);
  pthread_mutex_unlock(&mutex);
}

/* What the library takes for itself is there before; the file's bytes are asked for by mix_realloc. */
static bool start(void) {
  enum { ROOM = 4 << 20 };
  if (!mix_has_room(ROOM)) return false;
  const quiet former = begin();
  const bool good = H5open() >= 0;
  end(former);
  return good || mix_fail(MIX_MEMORY_ERROR, "the HDF5 library cannot start: out of memory");
}

/* The innermost error, which says the reason. */
static herr_t take_reason(unsigned number, const H5E_error2_t *error, void *context) {
  if (number == 0) *(H5E_error2_t *)context = *error;
  return 0;
}

/* To be called before `end`. */
static bool library_failed(const mix_hdf5_writer *writer, const char *what) {
  H5E_error2_t reason = {.desc = NULL};
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, &reason);
  const bool memory = reason.maj_num == H5E_RESOURCE || reason.min_num == H5E_NOSPACE;
  return mix_fail(memory ? MIX_MEMORY_ERROR : MIX_RUNTIME_ERROR,
                  "%s: the HDF5 library cannot write %.200s: %.200s", writer->call, what,
                  reason.desc ? reason.desc : "it does not say why");
}

/* ---- memory of the file ---- */

static void *image_malloc(size_t size, H5FD_file_image_op_t operation, void *context) {
  return mix_alloc(size);
}
static void *image_realloc(void *memory, size_t size, H5FD_file_image_op_t operation, void *context) {
  return mix_realloc(memory, size);
}
static herr_t image_free(void *memory, H5FD_file_image_op_t operation, void *context) {
  mix_free(memory);
  return 0;
}

/* The properties of a file in memory that grows by a sixteenth of what is expected. */
static hid_t memory_access(size_t expected) {
  const size_t growth = expected / 16 > MIN_GROWTH ? expected / 16 : MIN_GROWTH;
  H5FD_file_image_callbacks_t callbacks = {
      .image_malloc = image_malloc, .image_realloc = image_realloc, .image_free = image_free};
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (access >= 0 && H5Pset_fapl_core(access, growth, false) >= 0 &&
      H5Pset_file_image_callbacks(access, &callbacks) >= 0)
    return access;
  if (access >= 0) H5Pclose(access);
  return H5I_INVALID_HID;
}

/* ---- the writer ---- */

static void writer_finalize(void *object) {
  mix_hdf5_writer *writer = object;
  const quiet former = begin();
  if (writer->links > 0) H5Pclose(writer->links);
  if (writer->file > 0) H5Fclose(writer->file);
  end(former);
}
static const mix_class writer_class = {.name = "hdf5_writer", .finalize = writer_finalize};

/* Names of links are UTF-8. The library tells files in memory apart by their names. */
static bool open_file(mix_hdf5_writer *writer, size_t expected) {
  static unsigned long number;
  char name[32];
  const hid_t access = memory_access(expected);
  if (access < 0) return false;
  snprintf(name, sizeof name, "mixtape-%lu", number++);
  writer->file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  H5Pclose(access);
  writer->links = H5Pcreate(H5P_LINK_CREATE);
  return writer->file >= 0 && writer->links >= 0 && H5Pset_create_intermediate_group(writer->links, 1) >= 0 &&
         H5Pset_char_encoding(writer->links, H5T_CSET_UTF8) >= 0;
}

mix_hdf5_writer *mix_hdf5_writer_new(const char *call, size_t expected) {
  if (mix_failed() || !start()) return NULL;
  mix_hdf5_writer *writer = mix_object_new(sizeof *writer, &writer_class);
  if (!writer) return NULL;
  writer->call = mix_intern(call);
  const quiet former = begin();
  if (!writer->call || !open_file(writer, expected)) library_failed(writer, "the file");
  end(former);
  if (!mix_failed()) return mix_scoped(writer);
  mix_release(writer);
  return NULL;
}

/* Does any link of that path exist? Intermediate links are asked first, as the library wants it. */
static bool exists(const mix_hdf5_writer *writer, const char *path) {
  char *part = mix_strdup(path);
  bool found = part;
  for (char *slash = part; found && slash; slash = slash ? slash + 1 : NULL) {
    if ((slash = strchr(slash, '/'))) *slash = 0;
    found = H5Lexists(writer->file, part, H5P_DEFAULT) > 0;
    if (slash) *slash = '/';
  }
  mix_free(part);
  return found;
}

bool mix_hdf5_write_group(mix_hdf5_writer *writer, const char *path) {
  if (!writer || mix_failed()) return false;
  const quiet former = begin();
  if (*path && !exists(writer, path) && !mix_failed()) {
    const hid_t group = H5Gcreate2(writer->file, path, writer->links, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0 || H5Gclose(group) < 0) library_failed(writer, path);
  }
  end(former);
  return !mix_failed();
}

static bool is_group(const mix_hdf5_writer *writer, const char *path) {
  const hid_t object = H5Oopen(writer->file, path, H5P_DEFAULT);
  const bool group = object >= 0 && H5Iget_type(object) == H5I_GROUP;
  if (object >= 0) H5Oclose(object);
  return group;
}

bool mix_hdf5_is_free(mix_hdf5_writer *writer, const char *path) {
  char *part = writer && !mix_failed() ? mix_strdup(path) : NULL;
  bool free_ = part;
  if (!part) return false;
  const quiet former = begin();
  for (char *slash = strchr(part, '/'); free_ && slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (!exists(writer, part)) break;
    free_ = is_group(writer, part);
    *slash = '/';
  }
  free_ = free_ && !exists(writer, path);
  end(former);
  mix_free(part);
  return free_ && !mix_failed();
}

/* ---- data sets ---- */

/* The type, or what stands for none if it could not be made whole. */
static hid_t whole_type(hid_t type, bool whole) {
  if (whole || type < 0) return type;
  H5Tclose(type);
  return H5I_INVALID_HID;
}

static hid_t float16_type(void) {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  return whole_type(type, H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(type, 2) >= 0 &&
                              H5Tset_ebias(type, 15) >= 0);
}

/* As h5py stores numpy's bool. */
static hid_t bool_type(void) {
  const hid_t type = H5Tenum_create(H5T_STD_I8LE);
  return whole_type(type, H5Tenum_insert(type, "FALSE", &(signed char){0}) >= 0 &&
                              H5Tenum_insert(type, "TRUE", &(signed char){1}) >= 0);
}

/* A type of its own, to be closed. */
static hid_t type_of(mix_dtype dtype) {
  switch (dtype) {
  case MIX_FLOAT16: return float16_type();
  case MIX_BFLOAT16: return H5Tcreate(H5T_OPAQUE, 2);
  case MIX_FLOAT32: return H5Tcopy(H5T_IEEE_F32LE);
  case MIX_FLOAT64: return H5Tcopy(H5T_IEEE_F64LE);
  case MIX_INT8: return H5Tcopy(H5T_STD_I8LE);
  case MIX_INT16: return H5Tcopy(H5T_STD_I16LE);
  case MIX_INT32: return H5Tcopy(H5T_STD_I32LE);
  case MIX_INT64: return H5Tcopy(H5T_STD_I64LE);
  case MIX_UINT8: return H5Tcopy(H5T_STD_U8LE);
  case MIX_BOOL: return bool_type();
  default: return H5I_INVALID_HID;
  }
}

static hid_t space_of(mix_shape shape) {
  hsize_t dims[MIX_MAX_RANK];
  for (int i = 0; i < shape.rank; i++) dims[i] = (hsize_t)shape.dims[i];
  return shape.rank ? H5Screate_simple(shape.rank, dims, NULL) : H5Screate(H5S_SCALAR);
}

/* Without the time, so that equal tensors give equal files. The bytes in memory are those of the file: both
 * are little-endian. */
static bool write_data(const mix_hdf5_writer *writer, const char *path, hid_t type, mix_shape shape,
                       const void *data) {
  const hid_t space = space_of(shape), create = H5Pcreate(H5P_DATASET_CREATE);
  const bool ready = type >= 0 && space >= 0 && create >= 0 && H5Pset_obj_track_times(create, false) >= 0;
  const hid_t set = ready ? H5Dcreate2(writer->file, path, type, space, writer->links, create, H5P_DEFAULT)
                          : H5I_INVALID_HID;
  const bool empty = mix_shape_size(shape) == 0;
  bool good = set >= 0 && (empty || H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  if (set >= 0) good = H5Dclose(set) >= 0 && good;
  if (create >= 0) H5Pclose(create);
  if (space >= 0) H5Sclose(space);
  return good;
}

bool mix_hdf5_write_tensor(mix_hdf5_writer *writer, const char *path, mix_tensor *tensor) {
  mix_pinned pinned;
  if (!writer || !tensor || mix_failed() || !mix_tensor_pin(tensor, &pinned)) return false;
  const mix_dtype dtype = mix_tensor_dtype(tensor);
  const quiet former = begin();
  const hid_t type = type_of(dtype);
  if (!write_data(writer, path, type, mix_tensor_shape(tensor), pinned.data)) library_failed(writer, path);
  if (type >= 0) H5Tclose(type);
  end(former);
  mix_tensor_unpin(&pinned);
  return !mix_failed() &&
         (dtype != MIX_BFLOAT16 || mix_hdf5_write_text(writer, path, "dtype", mix_dtype_name(dtype)));
}

/* ---- attributes ---- */

static bool write_attribute(const mix_hdf5_writer *writer, const char *path, const char *name, hid_t type,
                            hid_t space, const void *data) {
  const hid_t object = H5Oopen(writer->file, *path ? path : "/", H5P_DEFAULT);
  const bool ready = object >= 0 && type >= 0 && space >= 0;
  const hid_t attribute =
      ready ? H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT) : H5I_INVALID_HID;
  bool good = attribute >= 0 && (!data || H5Awrite(attribute, type, data) >= 0);
  if (attribute >= 0) good = H5Aclose(attribute) >= 0 && good;
  if (object >= 0) good = H5Oclose(object) >= 0 && good;
  if (type >= 0) H5Tclose(type);
  if (space >= 0) H5Sclose(space);
  return good;
}

static hid_t text_type(size_t size, H5T_cset_t encoding, H5T_str_t padding) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  return whole_type(type, H5Tset_size(type, size) >= 0 && H5Tset_cset(type, encoding) >= 0 &&
                              H5Tset_strpad(type, padding) >= 0);
}

bool mix_hdf5_write_text(mix_hdf5_writer *writer, const char *path, const char *name, const char *text) {
  if (!writer || mix_failed()) return false;
  const quiet former = begin();
  if (!write_attribute(writer, path, name, text_type(H5T_VARIABLE, H5T_CSET_UTF8, H5T_STR_NULLTERM),
                       H5Screate(H5S_SCALAR), &text))
    library_failed(writer, name);
  end(former);
  return !mix_failed();
}

/* Texts padded by zeros. */
static bool write_piece(const mix_hdf5_writer *writer, const char *path, const char *name, int count,
                        const char *const *texts, size_t width) {
  char *block = mix_calloc((size_t)count, width);
  if (!block) return false;
  for (int i = 0; i < count; i++) memcpy(block + (size_t)i * width, texts[i], strlen(texts[i]));
  const hid_t type = text_type(width, H5T_CSET_ASCII, H5T_STR_NULLPAD);
  const hid_t space = H5Screate_simple(1, &(hsize_t){(hsize_t)count}, NULL);
  const bool good = write_attribute(writer, path, name, type, space, block);
  mix_free(block);
  return good || library_failed(writer, name);
}

/* numpy.array_split: the first pieces are one longer. */
static bool write_pieces(const mix_hdf5_writer *writer, const char *path, const char *name, int count,
                         const char *const *texts, size_t width) {
  int pieces = 1;
  while (((size_t)(count + pieces - 1) / (size_t)pieces) * width > MAX_ATTRIBUTE) pieces++;
  for (int i = 0, first = 0; i < pieces; i++) {
    char piece[64];
    const int length = count / pieces + (i < count % pieces);
    snprintf(piece, sizeof piece, pieces > 1 ? "%s%d" : "%s", name, i);
    if (!write_piece(writer, path, piece, length, texts + first, width)) return false;
    first += length;
  }
  return true;
}

/* No texts are an empty array of numbers, as numpy makes of an empty list. */
static bool write_none(const mix_hdf5_writer *writer, const char *path, const char *name) {
  return write_attribute(writer, path, name, H5Tcopy(H5T_IEEE_F64LE),
                         H5Screate_simple(1, &(hsize_t){0}, NULL), NULL) ||
         library_failed(writer, name);
}

bool mix_hdf5_write_texts(mix_hdf5_writer *writer, const char *path, const char *name, int count,
                          const char *const *texts) {
  size_t width = 1;
  if (!writer || mix_failed()) return false;
  for (int i = 0; i < count; i++)
    if (strlen(texts[i]) > width) width = strlen(texts[i]);
  if (width > MAX_ATTRIBUTE)
    return mix_fail_value("%s: a name in %s has %zu bytes; HDF5 files take at most %d", writer->call, name,
                          width, MAX_ATTRIBUTE);
  const quiet former = begin();
  const bool good =
      count ? write_pieces(writer, path, name, count, texts, width) : write_none(writer, path, name);
  end(former);
  return good && !mix_failed();
}

/* ---- the end ---- */

bool mix_hdf5_writer_bytes(mix_hdf5_writer *writer, mix_bytes *bytes) {
  ssize_t size = -1;
  void **image = NULL;
  if (!writer || mix_failed()) return false;
  const quiet former = begin();
  if (H5Fflush(writer->file, H5F_SCOPE_GLOBAL) < 0 || (size = H5Fget_file_image(writer->file, NULL, 0)) < 0 ||
      H5Fget_vfd_handle(writer->file, H5P_DEFAULT, (void **)&image) < 0)
    library_failed(writer, "the file");
  end(former);
  if (!mix_failed()) *bytes = (mix_bytes){*image, (size_t)size};
  return !mix_failed();
}
