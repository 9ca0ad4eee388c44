/* Writes zip archives with libzip. */
#include "formats/zip_writer.h"

#include "base/alloc.h"
#include "base/error.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

enum { DATE = 0x21 /* 1980-01-01 */ };

static bool zip_failed(const char *call, const char *path, zip_error_t *error) {
  const int code = zip_error_code_system(error);
  return mix_fail(zip_error_code_zip(error) == ZIP_ER_MEMORY ? MIX_MEMORY_ERROR : MIX_IO_ERROR,
                  "%s: %s cannot be written: %s", call, path,
                  code ? strerror(code) : zip_error_strerror(error));
}

/* `fragments` must stay until the archive is closed. */
static bool add_member(zip_t *archive, const char *call, const char *path, const mix_zip_member *member,
                       zip_buffer_fragment_t *fragments) {
  for (int i = 0; i < 2; i++) {
    fragments[i].data = (zip_uint8_t *)(uintptr_t)member->pieces[i].data;
    fragments[i].length = member->pieces[i].size;
  }
  zip_source_t *source = zip_source_buffer_fragment(archive, fragments, fragments[1].length ? 2 : 1, 0);
  const zip_int64_t index = source ? zip_file_add(archive, member->name, source, ZIP_FL_ENC_UTF_8) : -1;
  if (index < 0) {
    zip_source_free(source);
    if (zip_error_code_zip(zip_get_error(archive)) != ZIP_ER_EXISTS)
      return zip_failed(call, path, zip_get_error(archive));
    return mix_fail_value("%s: two members are called '%s'; names in an archive must differ", call,
                          member->name);
  }
  if (zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, (zip_uint64_t)index, 0, DATE, 0) != 0)
    return zip_failed(call, path, zip_get_error(archive));
  return true;
}

static bool write_archive(const char *call, const char *path, const char *part, int count,
                          const mix_zip_member *members, const char *comment,
                          zip_buffer_fragment_t *fragments) {
  int code = 0;
  zip_t *archive = zip_open(part, ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    zip_failed(call, path, &error);
    zip_error_fini(&error);
    return false;
  }
  bool done = !comment || zip_set_archive_comment(archive, comment, (zip_uint16_t)strlen(comment)) == 0;
  for (int i = 0; done && i < count; i++)
    done = add_member(archive, call, path, &members[i], fragments + 2 * (size_t)i);
  /* zip_close writes everything, first to a temporary file of its own */
  if (done && zip_close(archive) == 0) return true;
  if (!mix_failed()) zip_failed(call, path, zip_get_error(archive));
  zip_discard(archive);
  return false;
}

/* libzip writes no archive without members: it is the record at an archive's end alone. */
static bool write_empty(const char *call, const char *path, const char *part) {
  static const char record[22] = {'P', 'K', 5, 6};
  FILE *file = fopen(part, "wbx");
  bool done = file && fwrite(record, sizeof record, 1, file) == 1;
  if (file) done = fclose(file) == 0 && done;
  return done || mix_fail_io("%s: %s cannot be written: %s", call, path, strerror(errno));
}

bool mix_zip_write(const char *call, const char *path, const char *part, int count,
                   const mix_zip_member *members, const char *comment) {
  zip_buffer_fragment_t *fragments = mix_calloc(2 * (size_t)count, sizeof *fragments);
  const bool empty = !count && !comment;
  const bool done =
      fragments && (empty ? write_empty(call, path, part)
                          : write_archive(call, path, part, count, members, comment, fragments));
  mix_free(fragments);
  if (!done) unlink(part);
  return done;
}
