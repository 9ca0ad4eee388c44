/* Reads zip archives with libzip. Nothing is extracted to a file. */
#include "formats/zip_members.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zip.h>

enum { MAX_MEMBERS = 1000000, MAX_EXPANSION = 100 };

struct mix_zip {
  mix_object object;
  char *name;
  uint64_t bytes; /* size of the archive */
  zip_t *archive;
};

static void zip_finalize(void *object) {
  mix_zip *zip = object;
  if (zip->archive) zip_discard(zip->archive);
  mix_free(zip->name);
}
static const mix_class zip_class = {.name = "zip", .finalize = zip_finalize};

/* ---- names ---- */

/* Absolute, with a drive or a backslash, or up a folder. */
static bool leads_out(const char *name) {
  if (*name == '/' || strchr(name, '\\') || strchr(name, ':')) return true;
  for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
    if (!strncmp(part, "..", 2) && (part[2] == '/' || part[2] == 0)) return true;
  return false;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool take_names(const mix_zip *zip, const char **names, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    names[i] = zip_get_name(zip->archive, (zip_uint64_t)i, ZIP_FL_ENC_RAW);
    if (!names[i]) return mix_fail_format("%s: a member has no name", zip->name);
    if (leads_out(names[i]))
      return mix_fail_format("%s: member '%.80s' has a name that leads out of the archive", zip->name,
                             names[i]);
  }
  return true;
}

/* Readers differ in which of two members of one name they take. */
static bool check_names(const mix_zip *zip) {
  const int64_t count = zip_get_num_entries(zip->archive, 0);
  if (count > MAX_MEMBERS) return mix_fail_format("%s: %lld members", zip->name, (long long)count);
  const char **names = mix_calloc((size_t)count + 1, sizeof *names);
  bool good = names && take_names(zip, names, count);
  if (good) qsort(names, (size_t)count, sizeof *names, by_text);
  for (int64_t i = 1; good && i < count; i++)
    if (!strcmp(names[i - 1], names[i]))
      good = mix_fail_format("%s: two members are named '%.80s'", zip->name, names[i]);
  mix_free(names);
  return good;
}

/* ---- opening ---- */

/* Takes the archive. */
static mix_zip *open_archive(const char *name, uint64_t bytes, zip_t *archive) {
  mix_zip *zip = mix_object_new(sizeof *zip, &zip_class);
  if (!zip) return zip_discard(archive), NULL;
  zip->archive = archive;
  zip->bytes = bytes;
  zip->name = mix_strdup(name);
  if (zip->name && check_names(zip)) return mix_scoped(zip);
  mix_release(zip);
  return NULL;
}

static void *open_failed(const char *name, zip_error_t *error) {
  const int code = zip_error_code_zip(error);
  mix_fail(code == ZIP_ER_MEMORY                        ? MIX_MEMORY_ERROR
           : code == ZIP_ER_OPEN || code == ZIP_ER_READ ? MIX_IO_ERROR
                                                        : MIX_FORMAT_ERROR,
           "%s: no whole zip archive: %s", name, zip_error_strerror(error));
  zip_error_fini(error);
  return NULL;
}

mix_zip *mix_zip_open(const char *path) {
  struct stat status;
  int code = 0;
  if (mix_failed()) return NULL;
  if (stat(path, &status) != 0) return mix_fail_io("%s: cannot be opened: %s", path, strerror(errno));
  if (!S_ISREG(status.st_mode)) return mix_fail_io("%s: not a regular file", path);
  zip_t *archive = zip_open(path, ZIP_RDONLY, &code);
  zip_error_t error;
  if (archive) return open_archive(path, (uint64_t)status.st_size, archive);
  zip_error_init_with_code(&error, code);
  return open_failed(path, &error);
}

mix_zip *mix_zip_open_memory(const char *name, const void *data, size_t size) {
  if (mix_failed()) return NULL;
  if (size == 0) return mix_fail_format("%s: no whole zip archive: it is empty", name);
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source = zip_source_buffer_create(data, size, 0, &error);
  zip_t *archive = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
  if (!archive) {
    if (source) zip_source_free(source);
    return open_failed(name, &error);
  }
  zip_error_fini(&error);
  return open_archive(name, size, archive);
}

/* ---- members ---- */

bool mix_zip_has(const mix_zip *zip, const char *member) {
  return !mix_failed() && zip_name_locate(zip->archive, member, 0) >= 0;
}

/* Deflate never shrinks below 1/1032, but what a model holds does not come near. */
static bool check_size(const mix_zip *zip, const char *member, const zip_stat_t *status, size_t limit) {
  const zip_uint64_t required = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((status->valid & required) != required)
    return mix_fail_format("%s: the archive does not say how large '%s' is", zip->name, member);
  if (status->comp_method != ZIP_CM_STORE && status->comp_method != ZIP_CM_DEFLATE)
    return mix_fail_unsupported("%s: '%s' is compressed by method %d; expected stored or deflated", zip->name,
                                member, status->comp_method);
  const bool stored = status->comp_method == ZIP_CM_STORE && status->size == status->comp_size;
  const bool sound =
      stored || status->size <= MIX_ZIP_FLOOR || status->size / MAX_EXPANSION <= status->comp_size;
  if (status->comp_size <= zip->bytes && status->size <= limit && sound &&
      (stored || status->comp_method == ZIP_CM_DEFLATE))
    return true;
  char most[64] = "";
  if (limit < SIZE_MAX / 2) snprintf(most, sizeof most, "at most %zu, and ", limit);
  return mix_fail_format(
      "%s: '%s' declares %llu bytes, of which %llu are stored; expected %sno more than 100 times what is "
      "stored",
      zip->name, member, (unsigned long long)status->size, (unsigned long long)status->comp_size, most);
}

/* libzip compares the checksum when the last byte is read. */
static bool read_all(zip_file_t *file, unsigned char *into, size_t size) {
  for (size_t done = 0; done < size;) {
    const zip_int64_t got = zip_fread(file, into + done, size - done);
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return zip_fread(file, &(char){0}, 1) == 0;
}

static void *read_member(mix_zip *zip, const char *member, zip_uint64_t index, size_t size) {
  zip_file_t *file = zip_fopen_index(zip->archive, index, 0);
  unsigned char *bytes = file ? mix_alloc(size + 1) : NULL;
  const bool good = bytes && read_all(file, bytes, size);
  if (good)
    bytes[size] = 0;
  else
    mix_fail_format("%s: '%s' is damaged: %s", zip->name, member,
                    file ? zip_error_strerror(zip_file_get_error(file)) : zip_strerror(zip->archive));
  if (file) zip_fclose(file);
  if (good) return bytes;
  mix_free(bytes);
  return NULL;
}

void *mix_zip_read(mix_zip *zip, const char *member, size_t limit, size_t *size) {
  zip_stat_t status;
  if (mix_failed()) return NULL;
  const zip_int64_t index = zip_name_locate(zip->archive, member, 0);
  if (index < 0) return mix_fail_format("%s: '%s' is missing in the archive", zip->name, member);
  if (zip_stat_index(zip->archive, (zip_uint64_t)index, 0, &status) != 0)
    return mix_fail_format("%s: '%s' is damaged: %s", zip->name, member, zip_strerror(zip->archive));
  if (!check_size(zip, member, &status, limit)) return NULL;
  *size = (size_t)status.size;
  return read_member(zip, member, (zip_uint64_t)index, *size);
}
