/* Whole files: read into memory, and replaced in one step so that a failure leaves the old one. */
#ifndef MIX_FORMATS_FILE_H
#define MIX_FORMATS_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* A piece of memory to be written or parsed. */
typedef struct mix_bytes {
  const void *data;
  size_t size;
} mix_bytes;

bool mix_file_exists(const char *path);
/* Everything in the file, at most `limit` bytes (more is an error); mix_free it. NULL with the error recorded. */
void *mix_file_read(const char *path, size_t limit, size_t *size);

/* Why the file could not be replaced, or made anew, if it were tried now; NULL: it could. Text that lasts until the next call. */
const char *mix_file_unwritable_reason(const char *path);
/* The same of files in a folder, which may not be there yet, nor those it lies in. */
const char *mix_folder_unwritable_reason(const char *path);

/* Replacing a file: the name of a part file beside it (mix_free it; NULL with the error recorded where `path` is something that a rename
 * must not replace, like a device). Where `path` is a link, what it points at is replaced, and the link stays ... */
char *mix_file_part(const char *path, const char *call);
/* ... then, once it is written and closed: flush to the disk, rename, flush the folder. On failure the part is removed. */
bool mix_file_commit(const char *part, const char *path, const char *call);
/* All of it: pieces, one after the other. */
bool mix_file_replace(const char *path, const mix_bytes *pieces, int count, const char *call);
/* Makes a folder and those it lies in. */
bool mix_folder_make(const char *path);
/* "folder/name"; mix_free it. */
char *mix_path_join(const char *folder, const char *name);

#endif
