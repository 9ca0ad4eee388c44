/* Reads the plain files of a tar archive, gzipped or not. */
#pragma once

#include "formats/file.h"

/* Gets each plain file; the content is mix_alloc'd, and the function's. False with an error recorded ends the
 * reading. */
typedef bool mix_tar_member(void *context, const char *path, void *content, size_t size);
/* False with the error recorded: FormatError for a damaged archive, named `name`. */
bool mix_tar_read(const char *name, const void *data, size_t size, mix_tar_member *member, void *context);
