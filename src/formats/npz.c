/* Reads and writes .npz archives with libzip. */
#include "formats/npz.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"
#include "formats/npy.h"
#include "formats/zip_writer.h"
#include "tensor/shape.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zip.h>

/* Deflate cannot compress below 1/1032 of the original. A member that declares more is invalid. */
#define DEFLATE_MAX 1032

typedef struct member {
  char *name; /* without ".npy" */
  zip_uint64_t index;
} member;

struct mix_npz {
  mix_object object;
  char *path;
  uint64_t bytes; /* size of the archive */
  zip_t *archive;
  member *members;
  int count, capacity;
};

static void npz_finalize(void *object) {
  mix_npz *npz = object;
  if (npz->archive) zip_discard(npz->archive);
  for (int i = 0; i < npz->count; i++) mix_free(npz->members[i].name);
  mix_free(npz->members);
  mix_free(npz->path);
}

static const mix_class npz_class = {.name = "npz", .finalize = npz_finalize};

static bool list_members(mix_npz *npz) {
  zip_int64_t entries = zip_get_num_entries(npz->archive, 0);
  for (zip_int64_t i = 0; i < entries; i++) {
    const char *name = zip_get_name(npz->archive, (zip_uint64_t)i, ZIP_FL_ENC_GUESS);
    size_t length = name ? strlen(name) : 0;
    if (length < 4 || strcmp(name + length - 4, ".npy") != 0) continue;
    if (!mix_reserve(&npz->members, &npz->capacity, npz->count + 1, sizeof *npz->members)) return false;
    char *copy = mix_strdup(name);
    if (!copy) return false;
    copy[length - 4] = 0;
    npz->members[npz->count++] = (member){copy, (zip_uint64_t)i};
  }
  return true;
}

/* Takes ownership of `archive`. */
static mix_npz *open_archive(const char *path, uint64_t bytes, zip_t *archive) {
  mix_npz *npz = mix_object_new(sizeof *npz, &npz_class);
  if (!npz) {
    zip_discard(archive);
    return NULL;
  }
  npz->archive = archive;
  npz->bytes = bytes;
  npz->path = mix_strdup(path);
  if (!npz->path || !list_members(npz)) {
    mix_release(npz);
    return NULL;
  }
  return mix_scoped(npz);
}

mix_npz *mix_npz_open(const char *path) {
  if (mix_failed()) return NULL;
  if (!path) return mix_fail_value("npz_open: path is NULL; expected the name of a .npz file");
  struct stat status;
  if (stat(path, &status) != 0)
    return mix_fail_io("npz_open: %s cannot be opened: %s", path, strerror(errno));
  if (!S_ISREG(status.st_mode)) return mix_fail_io("npz_open: %s is not a regular file", path);
  int code = 0;
  zip_t *archive = zip_open(path, ZIP_RDONLY, &code);
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    mix_fail(code == ZIP_ER_OPEN || code == ZIP_ER_READ ? MIX_IO_ERROR
             : code == ZIP_ER_MEMORY                    ? MIX_MEMORY_ERROR
                                                        : MIX_FORMAT_ERROR,
             "npz_open: %s is not a usable .npz (zip) archive: %s", path, zip_error_strerror(&error));
    zip_error_fini(&error);
    return NULL;
  }
  return open_archive(path, (uint64_t)status.st_size, archive);
}

mix_npz *mix_npz_open_memory(const char *name, const void *data, size_t size) {
  if (mix_failed()) return NULL;
  if (size == 0) return mix_fail_format("%s is not a usable .npz (zip) archive: it is empty", name);
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source = zip_source_buffer_create(data, size, 0, &error);
  zip_t *archive = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
  if (!archive) {
    const int code = zip_error_code_zip(&error); /* libzip sets none after some failed allocations */
    mix_fail(code == ZIP_ER_MEMORY || code == ZIP_ER_OK ? MIX_MEMORY_ERROR : MIX_FORMAT_ERROR,
             "%s is not a usable .npz (zip) archive: %s", name, zip_error_strerror(&error));
    if (source) zip_source_free(source);
  }
  zip_error_fini(&error);
  return archive ? open_archive(name, size, archive) : NULL;
}

int mix_npz_count(const mix_npz *npz) { return mix_is(npz, &npz_class) ? npz->count : 0; }

const char *mix_npz_name(const mix_npz *npz, int index) {
  if (mix_failed()) return NULL;
  if (!mix_is(npz, &npz_class) || index < 0 || index >= npz->count)
    return mix_fail_value("npz_name: index %d is outside an archive of %d arrays", index,
                          npz ? npz->count : 0);
  return npz->members[index].name;
}

typedef struct member_reader {
  zip_file_t *file;
} member_reader;

/* libzip verifies the member's checksum when its last byte is read. */
static bool read_member(void *context, void *into, size_t size) {
  member_reader *reader = context;
  for (size_t done = 0; done < size;) {
    zip_int64_t got = zip_fread(reader->file, (char *)into + done, size - done);
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

static mix_tensor *read_array(mix_npz *npz, const member *member) {
  char name[512];
  snprintf(name, sizeof name, "%s: %s", npz->path, member->name);
  zip_stat_t status;
  const zip_uint64_t required = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(npz->archive, member->index, 0, &status) != 0 || (status.valid & required) != required)
    return mix_fail_format("%s: the archive does not say how large the member is", name);
  if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE)
    return mix_fail_unsupported("%s: compressed by method %d; NumPy stores or deflates", name,
                                status.comp_method);
  bool invalid = status.comp_method == ZIP_CM_STORE ? status.size != status.comp_size
                                                    : status.size / DEFLATE_MAX > status.comp_size;
  if (invalid || status.comp_size > npz->bytes)
    return mix_fail_format("%s: declares %llu bytes made from %llu in an archive of %llu", name,
                           (unsigned long long)status.size, (unsigned long long)status.comp_size,
                           (unsigned long long)npz->bytes);
  member_reader reader = {zip_fopen_index(npz->archive, member->index, 0)};
  if (!reader.file)
    return mix_fail(zip_error_code_zip(zip_get_error(npz->archive)) == ZIP_ER_MEMORY ? MIX_MEMORY_ERROR
                                                                                     : MIX_FORMAT_ERROR,
                    "%s: cannot be read: %s", name, zip_strerror(npz->archive));
  mix_tensor *tensor = mix_npy_read(&(const mix_byte_source){name, read_member, &reader, status.size});
  char beyond;
  /* Fails on a wrong checksum, or on more data than declared. */
  if (tensor && zip_fread(reader.file, &beyond, 1) != 0)
    tensor = mix_fail_format("%s: damaged: %s", name, zip_error_strerror(zip_file_get_error(reader.file)));
  zip_fclose(reader.file);
  return tensor;
}

static const member *find_named(const mix_npz *npz, const char *name, size_t length) {
  for (int i = npz->count - 1; i >= 0; i--)
    if (strncmp(npz->members[i].name, name, length) == 0 && npz->members[i].name[length] == 0)
      return &npz->members[i];
  return NULL;
}

mix_tensor *mix_npz_get_listed(mix_npz *npz, const char *name) {
  const member *member = mix_failed() ? NULL : find_named(npz, name, strlen(name));
  return member ? read_array(npz, member) : NULL;
}

/* Names listed by mix_npz_name come first, so that an array saved as "x.npy" can be read next to one saved as
 * "x". Otherwise "x.npy" names the member of "x". */
mix_tensor *mix_npz_get(mix_npz *npz, const char *name) {
  if (mix_failed()) return NULL;
  if (!mix_is(npz, &npz_class) || !name)
    return mix_fail_value("npz_get: %s is NULL", npz ? "name" : "the archive");
  size_t length = strlen(name);
  const member *member = find_named(npz, name, length);
  if (!member && length > 4 && strcmp(name + length - 4, ".npy") == 0)
    member = find_named(npz, name, length - 4);
  return member ? read_array(npz, member) : NULL;
}

mix_tensor *mix_npz_require(mix_npz *npz, const char *name) {
  mix_tensor *tensor = mix_npz_get(npz, name);
  if (tensor || mix_failed()) return tensor;
  char known[400] = "none";
  for (int i = 0, length = 0; i < npz->count && length < (int)sizeof known - 1; i++)
    length +=
        snprintf(known + length, sizeof known - (size_t)length, "%s%s", i ? ", " : "", npz->members[i].name);
  return mix_fail_value("%s: no array '%s' in the archive; there are: %s", npz->path, name, known);
}

/* ---- writing ---- */

/* A member, and the memory that stays until the archive is written. */
typedef struct member_data {
  char header[MIX_NPY_HEADER_MAX];
  char *name;
  void *converted;
} member_data;

static bool prepare_member(const char *name, mix_tensor *tensor, member_data *data, mix_zip_member *member) {
  const mix_dtype written = mix_npy_written_dtype(mix_tensor_dtype(tensor));
  const mix_shape shape = mix_tensor_shape(tensor);
  const void *elements = mix_npy_written_data(tensor, &data->converted);
  const size_t size = strlen(name) + 5;
  data->name = elements ? mix_alloc(size) : NULL;
  if (!data->name) return false;
  snprintf(data->name, size, "%s.npy", name);
  *member = (mix_zip_member){.name = data->name,
                             .pieces = {{data->header, mix_npy_write_header(written, shape, data->header)},
                                        {elements, mix_value_bytes(written, shape)}}};
  return true;
}

/* The members of an archive and what they hold. */
typedef struct prepared_members {
  int count;
  member_data *data;
  mix_zip_member *members;
} prepared_members;

static bool prepare_members(prepared_members *all, int count, const char *const *names,
                            mix_tensor *const *tensors) {
  *all = (prepared_members){count, mix_calloc((size_t)count, sizeof *all->data),
                            mix_calloc((size_t)count, sizeof *all->members)};
  bool done = all->data && all->members;
  for (int i = 0; done && i < count; i++) {
    char number[32];
    snprintf(number, sizeof number, "arr_%d", i);
    done = prepare_member(names && names[i] ? names[i] : number, tensors[i], &all->data[i], &all->members[i]);
  }
  return done;
}

static void free_members(prepared_members *all) {
  for (int i = 0; all->data && i < all->count; i++) {
    mix_free(all->data[i].name);
    mix_free(all->data[i].converted);
  }
  mix_free(all->members);
  mix_free(all->data);
}

bool mix_npz_write(const char *call, const char *path, const char *part, int count, const char *const *names,
                   mix_tensor *const *tensors, const char *comment) {
  prepared_members all;
  const bool done = prepare_members(&all, count, names, tensors) &&
                    mix_zip_write(call, path, part, count, all.members, comment);
  free_members(&all);
  return done;
}

void *mix_npz_write_memory(const char *call, int count, const char *const *names, mix_tensor *const *tensors,
                           const char *comment, size_t *size) {
  prepared_members all;
  void *bytes = prepare_members(&all, count, names, tensors)
                    ? mix_zip_write_memory(call, count, all.members, comment, size)
                    : NULL;
  free_members(&all);
  return bytes;
}

mix_status mix_npz_save(const char *path, int count, const char *const *names, mix_tensor *const *tensors) {
  if (mix_failed()) return mix_error();
  if (!path) return mix_fail_status(MIX_VALUE_ERROR, "npz_save: path is NULL");
  if (count < 1 || !tensors)
    return mix_fail_status(MIX_VALUE_ERROR, "npz_save: %s: no arrays to write; expected at least one", path);
  for (int i = 0; i < count; i++)
    if (!tensors[i]) return mix_fail_status(MIX_VALUE_ERROR, "npz_save: %s: array %d is NULL", path, i);
  char *part = mix_file_part(path, "npz_save");
  if (part && mix_npz_write("npz_save", path, part, count, names, tensors, NULL))
    mix_file_commit(part, path, "npz_save");
  mix_free(part);
  return mix_error();
}
