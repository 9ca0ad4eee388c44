/* Whole files: read into memory, and replaced atomically so that a failure leaves the old file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block of memory to write or parse. */
typedef struct mix_bytes {
  const void *data;
  size_t size;
} mix_bytes;

/* Bytes that come in pieces, so that they are never in memory at once. */
typedef struct mix_piece_source {
  uint64_t size; /* of all pieces */
  /* The next piece, which stays until the next call; of size 0 at the end. False with the error recorded. */
  bool (*next)(void *context, mix_bytes *piece);
  void *context;
} mix_piece_source;

bool mix_file_exists(const char *path);
/* The whole file, at most `limit` bytes (more is an error); mix_free it. NULL with the error recorded. */
void *mix_file_read(const char *path, size_t limit, size_t *size);

/* Why writing the file would fail if tried now; NULL: it can be written. The string is valid until the next
 * call. */
const char *mix_file_unwritable_reason(const char *path);
/* The same for files in a folder. The folder and its parents need not exist yet. */
const char *mix_folder_unwritable_reason(const char *path);

/* Replacing a file, step 1: the name of a part file next to it (of a link, next to its target), partly
 * random; mix_free it. Removes parts of the file that killed processes left. NULL with the error recorded if
 * `path` is something that a rename must not replace, like a device. */
char *mix_file_part(const char *path, const char *call);
/* Step 2, when the part is written and closed: give it the mode and owner of the file it replaces, flush it
 * to disk, rename it, flush the folder. On failure the part is removed. */
bool mix_file_commit(const char *part, const char *path, const char *call);
/* Its first half, after which a kill leaves the part whole: mode, owner, flush. */
bool mix_file_settle(const char *part, const char *path, const char *call);
/* Its second half, which needs no memory: renames, or without a part removes what there is, and flushes the
 * folder. False with errno set. */
bool mix_file_take_place(const char *part, const char *target);
/* The target of a symbolic link, existing or not; `path` itself if it is no link; mix_free it. */
char *mix_file_target(const char *path);
/* What comes between: writes `count` blocks one after the other. On failure the part is removed. */
bool mix_file_write_part(const char *part, const char *path, const mix_bytes *pieces, int count,
                         const char *call);
bool mix_file_write_source(const char *part, const char *path, const mix_piece_source *source,
                           const char *call);
/* All steps: writes `count` blocks one after the other. */
bool mix_file_replace(const char *path, const mix_bytes *pieces, int count, const char *call);
bool mix_file_replace_from(const char *path, const mix_piece_source *source, const char *call);
/* Whose part a file name is: of a file whose name begins with the first `length` bytes of `stem`. */
typedef enum mix_part_state {
  MIX_PART_NONE,   /* no part of that file */
  MIX_PART_OURS,   /* this process writes it */
  MIX_PART_STALE,  /* its process has ended */
  MIX_PART_UNKNOWN /* of a running process, or of another machine */
} mix_part_state;
mix_part_state mix_part_state_of(const char *name, const char *stem, size_t length);
/* Creates one folder, unless it exists, and flushes its name to disk. False with errno set. */
bool mix_folder_make_last(const char *path);
/* Creates a folder and its missing parents, and flushes their names to disk. */
bool mix_folder_make(const char *path);
/* "folder/name"; mix_free it. */
char *mix_path_join(const char *folder, const char *name);
