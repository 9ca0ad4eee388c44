/* Named values on their way into a checkpoint and out of it: tensors, whole numbers, texts. Their file is an .npz archive (numpy.load reads
 * it) whose comment, its last bytes, holds the SHA-256 of everything before: what is cut or altered anywhere is refused. */
#ifndef MIX_FORMATS_ARCHIVE_H
#define MIX_FORMATS_ARCHIVE_H

#include <mixtape/tensor.h>

/* The seal: these words, then 64 hexadecimal digits, at the very end. */
#define MIX_ARCHIVE_SEAL "mixtape checkpoint 1 sha256 "
enum { MIX_ARCHIVE_DIGITS = 64, MIX_ARCHIVE_SEAL_SIZE = sizeof MIX_ARCHIVE_SEAL - 1 + MIX_ARCHIVE_DIGITS };

typedef struct mix_archive mix_archive; /* an object: mix_release */

/* Nothing in it yet; scoped. */
mix_archive *mix_archive_new(void);
/* Retains the value, which keeps its bits whatever its dtype. Names must differ. */
bool mix_archive_put(mix_archive *archive, const char *name, mix_tensor *value);
bool mix_archive_put_integers(mix_archive *archive, const char *name, int count, const int64_t *values);
bool mix_archive_put_text(mix_archive *archive, const char *name, const char *text);
/* Replaces the file in one step: written beside, flushed to the disk, renamed. `call` is for messages. */
bool mix_archive_save(mix_archive *archive, const char *path, const char *call);

/* Refuses (FormatError, naming the file) what is damaged, cut, or no such file; scoped. */
mix_archive *mix_archive_load(const char *path);
/* The same from memory, which must outlive it. */
mix_archive *mix_archive_load_memory(const char *name, const void *data, size_t size);
/* The file it came from. */
const char *mix_archive_path(const mix_archive *archive);
/* NULL, without an error, where there is none of that name; scoped. */
mix_tensor *mix_archive_get(mix_archive *archive, const char *name);
/* False with the error recorded where they are missing or not that many whole numbers. */
bool mix_archive_get_integers(mix_archive *archive, const char *name, int count, int64_t *values);
/* mix_free it. NULL with the error recorded where it is missing or no text. */
char *mix_archive_get_text(mix_archive *archive, const char *name);

#endif
