/* Reads and writes checkpoint archives: a sealed .npz file of named values. */
#include "formats/archive.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/sha256.h"
#include "compile/evaluate.h"
#include "formats/file.h"
#include "formats/npz.h"
#include "tensor/shape.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEAL MIX_ARCHIVE_SEAL
enum {
  DIGITS = MIX_ARCHIVE_DIGITS,
  SEAL_SIZE = MIX_ARCHIVE_SEAL_SIZE,
  SEAL_WORDS = SEAL_SIZE - DIGITS,
  CHUNK_SIZE = 1 << 18
};
/* NumPy files have none of these. Such values are stored as integers of their width under a name with the
 * dtype as suffix: weights@bfloat16. */
static const mix_dtype suffixed[] = {MIX_BFLOAT16, MIX_FLOAT8_E4M3FN, MIX_FLOAT8_E5M2};
enum { SUFFIXED = sizeof suffixed / sizeof *suffixed };

static mix_dtype stored_as(mix_dtype dtype) {
  for (int i = 0; i < SUFFIXED; i++)
    if (dtype == suffixed[i]) return mix_dtype_size(dtype) == 2 ? MIX_INT16 : MIX_INT8;
  return dtype;
}

/* The name with the suffix of a dtype, to be freed. */
static char *suffixed_name(const char *name, mix_dtype dtype) {
  const char *suffix = mix_dtype_name(dtype);
  const size_t size = strlen(name) + 1 + strlen(suffix) + 1;
  char *text = mix_alloc(size);
  if (text) snprintf(text, size, "%s@%s", name, suffix);
  return text;
}

struct mix_archive {
  mix_object object;
  char *path;
  void *bytes;  /* contents of the loaded file; NULL if the caller owns the memory */
  mix_npz *npz; /* retained; NULL while the archive is being filled */
  char **names;
  mix_tensor **values; /* retained */
  int count, name_capacity, value_capacity;
};

static void archive_finalize(void *object) {
  mix_archive *archive = object;
  mix_release(archive->npz);
  for (int i = 0; i < archive->count; i++) {
    mix_free(archive->names[i]);
    mix_release(archive->values[i]);
  }
  mix_free(archive->names);
  mix_free(archive->values);
  mix_free(archive->bytes);
  mix_free(archive->path);
}
static const mix_class archive_class = {.name = "archive", .finalize = archive_finalize};

mix_archive *mix_archive_new(void) {
  return mix_failed() ? NULL : mix_scoped(mix_object_new(sizeof(mix_archive), &archive_class));
}

/* ---- writing ---- */

/* The same bits reinterpreted as another dtype of the same width. */
static mix_tensor *reinterpret(mix_tensor *value, mix_dtype dtype) {
  const size_t bytes = mix_value_bytes(dtype, mix_tensor_shape(value));
  void *copy = mix_alloc(bytes);
  mix_pinned pinned;
  mix_tensor *result = NULL;
  if (copy && mix_tensor_pin(value, &pinned)) {
    memcpy(copy, pinned.data, bytes);
    mix_tensor_unpin(&pinned);
    result = mix_tensor_from(copy, dtype, mix_tensor_shape(value));
  }
  mix_free(copy);
  return result;
}

bool mix_archive_put(mix_archive *archive, const char *name, mix_tensor *value) {
  if (!archive || !value || mix_failed()) return false;
  const mix_dtype dtype = mix_tensor_dtype(value), stored = stored_as(dtype);
  char *copy = stored == dtype ? mix_strdup(name) : suffixed_name(name, dtype);
  bool reserved =
      copy &&
      mix_reserve(&archive->names, &archive->name_capacity, archive->count + 1, sizeof *archive->names) &&
      mix_reserve(&archive->values, &archive->value_capacity, archive->count + 1, sizeof *archive->values);
  if (reserved) {
    MIX_SCOPE {
      mix_tensor *kept = mix_retain(stored == dtype ? value : reinterpret(value, stored));
      if (kept) {
        archive->names[archive->count] = copy;
        archive->values[archive->count++] = kept;
        copy = NULL;
      }
    }
  }
  mix_free(copy);
  return !mix_failed();
}

bool mix_archive_put_integers(mix_archive *archive, const char *name, int count, const int64_t *values) {
  bool done = false;
  MIX_SCOPE { done = mix_archive_put(archive, name, mix_tensor_from(values, MIX_INT64, MIX_SHAPE(count))); }
  return done;
}

bool mix_archive_put_text(mix_archive *archive, const char *name, const char *text) {
  bool done = false;
  MIX_SCOPE {
    done = mix_archive_put(archive, name, mix_tensor_from(text, MIX_UINT8, MIX_SHAPE((int64_t)strlen(text))));
  }
  return done;
}

/* ---- the seal ---- */

/* SHA-256 over the first `size` bytes of an open file. */
static bool digest_of_file(int file, size_t size, unsigned char digest[MIX_SHA256_BYTES], const char *call,
                           const char *path) {
  mix_sha256 hash;
  unsigned char *chunk = mix_alloc(CHUNK_SIZE);
  bool good = chunk;
  mix_sha256_begin(&hash);
  for (size_t done = 0; good && done < size;) {
    size_t want = size - done < CHUNK_SIZE ? size - done : CHUNK_SIZE;
    ssize_t got = pread(file, chunk, want, (off_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      mix_fail_io("%s: %s cannot be read back: %s", call, path, got < 0 ? strerror(errno) : "it shrank");
      good = false;
      break;
    }
    mix_sha256_add(&hash, chunk, (size_t)got);
    done += (size_t)got;
  }
  mix_sha256_end(&hash, digest);
  mix_free(chunk);
  return good;
}

/* False with errno set. A disk that fills up takes a part first and says why when asked to take the rest. */
static bool write_at(int file, const char *data, size_t size, off_t at) {
  while (size > 0) {
    const ssize_t put = pwrite(file, data, size, at);
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = ENOSPC;
    if (put <= 0) return false;
    data += put, size -= (size_t)put, at += put;
  }
  return true;
}

/* Writes the digest of a written archive over the zeros at its end. */
static bool seal(const char *part, const char *path, const char *call) {
  int file = open(part, O_RDWR | O_CLOEXEC);
  const off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
  if (size >= 0) errno = EIO; /* a file that is shorter than what was written */
  unsigned char digest[MIX_SHA256_BYTES];
  char digits[DIGITS + 1];
  bool done = size > SEAL_SIZE && digest_of_file(file, (size_t)size - DIGITS, digest, call, path);
  if (done) {
    mix_sha256_text(digest, digits);
    done = write_at(file, digits, DIGITS, size - DIGITS);
  }
  if (!done) mix_fail_io("%s: %s cannot be written: %s", call, path, strerror(errno));
  if (file >= 0 && close(file) != 0 && done) {
    mix_fail_io("%s: %s cannot be written: %s", call, path, strerror(errno));
    done = false;
  }
  if (!done) unlink(part);
  return done;
}

static void unsealed_comment(char comment[SEAL_SIZE + 1]) {
  snprintf(comment, SEAL_SIZE + 1, "%s%0*d", SEAL, DIGITS, 0);
}

bool mix_archive_save(mix_archive *archive, const char *path, const char *call) {
  if (!archive || mix_failed()) return false;
  char comment[SEAL_SIZE + 1];
  unsealed_comment(comment);
  char *part = mix_file_part(path, call);
  bool done = part &&
              mix_npz_write(call, path, part, archive->count, (const char *const *)archive->names,
                            archive->values, comment) &&
              seal(part, path, call) && mix_file_commit(part, path, call);
  mix_free(part);
  return done;
}

/* The digits over all bytes but the last DIGITS, which are their place. */
static void digits_of(const void *bytes, size_t size, char digits[DIGITS + 1]) {
  unsigned char digest[MIX_SHA256_BYTES];
  mix_sha256_of(bytes, size - DIGITS, digest);
  mix_sha256_text(digest, digits);
}

mix_tensor *mix_archive_to_memory(mix_archive *archive, const char *call) {
  if (!archive || mix_failed()) return NULL;
  char comment[SEAL_SIZE + 1], digits[DIGITS + 1];
  size_t size = 0;
  unsealed_comment(comment);
  char *bytes = mix_npz_write_memory(call, archive->count, (const char *const *)archive->names,
                                     archive->values, comment, &size);
  mix_tensor *tensor = NULL;
  if (bytes) {
    digits_of(bytes, size, digits);
    memcpy(bytes + size - DIGITS, digits, DIGITS);
    tensor = mix_tensor_wrap(bytes, MIX_UINT8, MIX_SHAPE((int64_t)size), mix_free);
  }
  if (!tensor) mix_free(bytes);
  return tensor;
}

/* ---- reading ---- */

static bool check_seal(const char *name, const void *data, size_t size) {
  const char *end = (const char *)data + size;
  if (size < SEAL_SIZE || memcmp(end - SEAL_SIZE, SEAL, SEAL_WORDS) != 0)
    return mix_fail_format("%s: no whole checkpoint: the seal at its end is missing; "
                           "it was cut short or is something else",
                           name);
  char digits[DIGITS + 1];
  digits_of(data, size, digits);
  if (memcmp(digits, end - DIGITS, DIGITS) == 0) return true;
  return mix_fail_format("%s: the checkpoint is damaged: its SHA-256 differs from the one in its seal", name);
}

/* Takes ownership of `bytes` (NULL: none). */
static mix_archive *open_archive(const char *name, const void *data, size_t size, void *bytes) {
  mix_archive *archive =
      check_seal(name, data, size) ? mix_object_new(sizeof *archive, &archive_class) : NULL;
  if (!archive) {
    mix_free(bytes);
    return NULL;
  }
  archive->bytes = bytes;
  archive->path = mix_strdup(name);
  MIX_SCOPE { archive->npz = mix_retain(mix_npz_open_memory(name, data, size)); }
  if (archive->path && archive->npz) return mix_scoped(archive);
  mix_release(archive);
  return NULL;
}

mix_archive *mix_archive_load_memory(const char *name, const void *data, size_t size) {
  return mix_failed() ? NULL : open_archive(name, data, size, NULL);
}

mix_archive *mix_archive_load(const char *path) {
  if (mix_failed()) return NULL;
  size_t size;
  void *bytes = mix_file_read(path, SIZE_MAX, &size);
  return bytes ? open_archive(path, bytes, size, bytes) : NULL;
}

const char *mix_archive_path(const mix_archive *archive) {
  return archive && archive->path ? archive->path : "";
}

mix_tensor *mix_archive_get(mix_archive *archive, const char *name) {
  if (mix_failed() || !archive || !archive->npz) return NULL;
  mix_tensor *value = mix_npz_get_listed(archive->npz, name);
  if (value || mix_failed()) return value;
  for (int i = 0; i < SUFFIXED && !value && !mix_failed(); i++) {
    char *text = suffixed_name(name, suffixed[i]);
    value = text ? mix_npz_get_listed(archive->npz, text) : NULL;
    mix_free(text);
    if (value && mix_tensor_dtype(value) != stored_as(suffixed[i])) return NULL;
    if (value) return reinterpret(value, suffixed[i]);
  }
  return NULL;
}

bool mix_archive_has(const mix_archive *archive, const char *name) {
  for (int i = 0; archive && archive->npz && i < mix_npz_count(archive->npz); i++)
    if (!strcmp(mix_npz_name(archive->npz, i), name)) return true;
  return false;
}

bool mix_archive_get_integers(mix_archive *archive, const char *name, int count, int64_t *values) {
  bool done = false;
  MIX_SCOPE {
    mix_tensor *value = mix_archive_get(archive, name);
    if (value && mix_tensor_dtype(value) == MIX_INT64 && mix_shape_size(mix_tensor_shape(value)) == count)
      done = mix_tensor_read(value, MIX_INT64, values, count) == MIX_OK;
    else
      mix_fail_format("%s: '%s' is %s; expected %d whole numbers", mix_archive_path(archive), name,
                      value ? "of another kind" : "missing", count);
  }
  return done;
}

char *mix_archive_get_text(mix_archive *archive, const char *name) {
  char *text = NULL;
  MIX_SCOPE {
    mix_tensor *value = mix_archive_get(archive, name);
    const void *data = value && mix_tensor_dtype(value) == MIX_UINT8 ? mix_tensor_data(value) : NULL;
    size_t length = data ? (size_t)mix_shape_size(mix_tensor_shape(value)) : 0;
    if (!data)
      mix_fail_format("%s: '%s' is %s; expected a text", mix_archive_path(archive), name,
                      value ? "of another kind" : "missing");
    else if (memchr(data, 0, length))
      mix_fail_format("%s: '%s' is no text", mix_archive_path(archive), name);
    else if ((text = mix_alloc(length + 1))) {
      memcpy(text, data, length);
      text[length] = 0;
    }
  }
  return text;
}
