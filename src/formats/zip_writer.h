/* Writing zip archives, whose members are stored without compression. */
#pragma once

#include "formats/file.h"

typedef struct mix_zip_member {
  const char *name;
  mix_bytes pieces[2];     /* one after the other; the second may be empty */
  mix_piece_source source; /* what comes behind them; `next` NULL: nothing */
  int alignment;           /* of its first byte in the archive, a power of two; 0: none */
} mix_zip_member;

/* Writes the archive of `path` to `part`, a name from mix_file_part, in the order of the members, with
 * `comment` unless it is NULL; there may be none of both. All members have the first date of the format, so
 * that equal members give equal files. On failure (ValueError if two have one name) the part is removed. */
bool mix_zip_write(const char *call, const char *path, const char *part, int count,
                   const mix_zip_member *members, const char *comment);
/* The same into new memory of `*size` bytes, the bytes of that file; mix_free it. */
void *mix_zip_write_memory(const char *call, int count, const mix_zip_member *members, const char *comment,
                           size_t *size);
