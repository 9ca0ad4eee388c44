/* Archives of arrays, from a file or from memory. */
#ifndef MIX_FORMATS_NPZ_H
#define MIX_FORMATS_NPZ_H

#include <mixtape/arrays.h>

/* An archive in memory, which must outlive it; `name` is for messages. */
mix_npz *mix_npz_open_memory(const char *name, const void *data, size_t size);

/* mix_npz_get by the name that mix_npz_name gives, and no other. */
mix_tensor *mix_npz_get_listed(mix_npz *npz, const char *name);

/* Writes an archive, with a comment where one is given, to `part`, a name of mix_file_part; `path` is for messages. The part goes where it
 * fails. */
bool mix_npz_write(const char *call, const char *path, const char *part, int count, const char *const *names, mix_tensor *const *tensors,
                   const char *comment);

#endif
