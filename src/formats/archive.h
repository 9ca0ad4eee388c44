/* The named values of a checkpoint: tensors, whole numbers, texts. The file is an .npz archive (numpy.load
 * reads it). Its zip comment, the last bytes, holds the SHA-256 of everything before it, so truncated or
 * altered files are rejected. */
#pragma once

#include <mixtape/tensor.h>

/* The seal: this string, then 64 hexadecimal digits, at the end of the file. */
#define MIX_ARCHIVE_SEAL "mixtape checkpoint 1 sha256 "
enum { MIX_ARCHIVE_DIGITS = 64, MIX_ARCHIVE_SEAL_SIZE = sizeof MIX_ARCHIVE_SEAL - 1 + MIX_ARCHIVE_DIGITS };

typedef struct mix_archive mix_archive; /* an object: mix_release */

/* An empty archive; scoped. */
mix_archive *mix_archive_new(void);
/* Retains the value. Every dtype is stored bit by bit. Names must differ. */
bool mix_archive_put(mix_archive *archive, const char *name, mix_tensor *value);
bool mix_archive_put_integers(mix_archive *archive, const char *name, int count, const int64_t *values);
bool mix_archive_put_text(mix_archive *archive, const char *name, const char *text);
/* Replaces the file atomically: written under another name, flushed to disk, renamed. `call` is for
 * messages. */
bool mix_archive_save(mix_archive *archive, const char *path, const char *call);
/* The bytes of that file as a tensor of uint8 (size); scoped. */
mix_tensor *mix_archive_to_memory(mix_archive *archive, const char *call);

/* FormatError that names the file if it is damaged, truncated or no checkpoint; scoped. */
mix_archive *mix_archive_load(const char *path);
/* The same from memory, which must outlive the archive. */
mix_archive *mix_archive_load_memory(const char *name, const void *data, size_t size);
/* The path of the loaded file. */
const char *mix_archive_path(const mix_archive *archive);
/* True if there is a value of that name and it was not stored as another dtype. */
bool mix_archive_has(const mix_archive *archive, const char *name);
/* NULL without an error if there is no value of that name; scoped. */
mix_tensor *mix_archive_get(mix_archive *archive, const char *name);
/* False with the error recorded if the value is missing or is not `count` whole numbers. */
bool mix_archive_get_integers(mix_archive *archive, const char *name, int count, int64_t *values);
/* mix_free it. NULL with the error recorded if it is missing or no text. */
char *mix_archive_get_text(mix_archive *archive, const char *name);
