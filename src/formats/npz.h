/* .npz archives of arrays, from a file or from memory. */
#pragma once

#include <mixtape/arrays.h>

/* Opens an archive in memory, which must outlive it; `name` is for messages. */
mix_npz *mix_npz_open_memory(const char *name, const void *data, size_t size);

/* mix_npz_get for exactly the names that mix_npz_name gives. */
mix_tensor *mix_npz_get_listed(mix_npz *npz, const char *name);

/* Writes an archive to `part`, a name from mix_file_part, with `comment` unless it is NULL. `path` is for
 * messages. On failure the part is removed. */
bool mix_npz_write(const char *call, const char *path, const char *part, int count, const char *const *names,
                   mix_tensor *const *tensors, const char *comment);
/* The same into new memory of `*size` bytes; mix_free it. There must be a tensor. */
void *mix_npz_write_memory(const char *call, int count, const char *const *names, mix_tensor *const *tensors,
                           const char *comment, size_t *size);
