/* The IDX format of the MNIST files: two zero bytes, element type, number of dimensions, dimensions
 * (big-endian), elements. */
#pragma once

#include <mixtape/tensor.h>

/* Reads an IDX array of unsigned bytes from memory, gzipped or plain: a scoped uint8 tensor. The data must
 * end with the array. */
mix_tensor *mix_idx_read_memory(const char *name, const void *data, size_t size);
/* The same from a file. */
mix_tensor *mix_idx_load(const char *path);
