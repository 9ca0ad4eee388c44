/* Archives of arrays, from a file or from memory. */
#ifndef MIX_DATA_NPZ_H
#define MIX_DATA_NPZ_H

#include <mixtape/arrays.h>

/* An archive in memory, which must outlive it; `name` is for messages. */
mix_npz *mix_npz_open_memory(const char *name, const void *data, size_t size);

#endif
