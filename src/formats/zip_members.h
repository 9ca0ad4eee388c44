/* The members of a zip archive that somebody else wrote, read into memory one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct mix_zip mix_zip; /* an object: mix_release */

/* Opens an archive of at most a million members; scoped. NULL with the error recorded: the file cannot be
 * opened, is no whole archive, or two members have the same name or one that leads out of the archive. */
mix_zip *mix_zip_open(const char *path);
/* The same from memory, which must outlive it; `name` is for messages. */
mix_zip *mix_zip_open_memory(const char *name, const void *data, size_t size);
bool mix_zip_has(const mix_zip *zip, const char *member);
/* A member, stored or deflated, of at most `limit` bytes and with a zero behind it; mix_free it. NULL with
 * the error recorded: it is missing, damaged or longer; or it has more than MIX_ZIP_FLOOR bytes and 100 times
 * as many as the archive stores. */
void *mix_zip_read(mix_zip *zip, const char *member, size_t limit, size_t *size);

/* As many bytes a member may have, however well it was deflated. */
#define MIX_ZIP_FLOOR ((size_t)1 << 28)
