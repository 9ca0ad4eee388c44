/* Where in an archive's bytes a member lies that is stored as it is. */
#pragma once

#include "formats/zip_members.h"

/* The member's bytes inside the archive's own, of which `archive` is the whole: NULL without an error where
 * it is compressed or elsewhere than the archive's directory says, and mix_zip_read is to tell why. Its
 * checksum has been compared. */
const void *mix_zip_find_stored(const mix_zip *zip, const char *member, const void *archive,
                                size_t archive_size, size_t *size);
