/* The safetensors format (github.com/huggingface/safetensors, README, "Format"): the length of a header in
 * eight bytes, the header in JSON, and the bytes of the tensors one after the other. Also the index of a
 * checkpoint in several such files. */
#pragma once

#include "tensor/memory.h"
#include <mixtape/tensor.h>

typedef struct mix_safetensors mix_safetensors; /* an object */

/* A tensor of a file. */
typedef struct mix_stored_tensor {
  const char *name;
  mix_dtype dtype;
  mix_shape shape;
  mix_memory *file; /* all of it */
  size_t offset, bytes;
  const char *path; /* of its file */
  bool mapped;
} mix_stored_tensor;

/* Opens a file, or the index of several (NAME.index.json), which lie beside it; in memory as the system reads
 * their pages, unless `copies`. Scoped. FormatError for headers that are damaged or overlap, and where bytes
 * belong to no tensor. */
mix_safetensors *mix_safetensors_open(const char *path, bool copies);
/* Opens a file in memory, which must outlive it; `name` is for messages. */
mix_safetensors *mix_safetensors_open_memory(const char *name, const void *data, size_t size);
/* Does it begin as such a file does? Asks the content. */
bool mix_is_safetensors(const char *path);

int mix_safetensors_count(const mix_safetensors *tensors);
/* By index, in the order of the names. */
const mix_stored_tensor *mix_safetensors_at(const mix_safetensors *tensors, int index);
/* NULL: there is none. */
const mix_stored_tensor *mix_safetensors_find(const mix_safetensors *tensors, const char *name);

/* The value: the file's own bytes where they are aligned, which the result keeps; else a copy. Scoped. NULL
 * with the error recorded, which is MIX_UNSUPPORTED for a dtype that no tensor has. */
mix_tensor *mix_stored_tensor_value(const mix_stored_tensor *stored);
/* The mapped bytes as a variable's storage (mix_variable_borrow), the caller's reference. NULL without an
 * error: they are too few, not aligned, or not mapped. */
mix_memory *mix_stored_tensor_share(const mix_stored_tensor *stored);

/* Replaces the file by one with these tensors in their dtypes. Values of a multiple of 64 bytes come first,
 * so that each lies where a kernel may use it in place. False with the error recorded. */
bool mix_safetensors_write(const char *call, const char *path, int count, const char *const *names,
                           mix_tensor *const *tensors);
