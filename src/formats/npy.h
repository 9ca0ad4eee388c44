/* The .npy format (NumPy Enhancement Proposal 1 and numpy/lib/format.py), from any source of bytes. */
#pragma once

#include <mixtape/arrays.h>

/* A source of bytes: a file, a member of an archive, memory. */
typedef struct mix_byte_source {
  const char *name; /* for messages: "weights.npz: arr_0" */
  /* reads exactly `size` bytes; false: fewer, or an error (maybe recorded) */
  bool (*read)(void *context, void *into, size_t size);
  void *context;
  uint64_t size; /* total bytes, known independently of the array's header */
} mix_byte_source;

/* The contents of a header. */
typedef struct mix_npy_header {
  char kind;    /* 'f', 'i', 'u', 'b' */
  int width;    /* bytes an element in the file */
  bool swapped; /* the other byte order */
  bool fortran;
  mix_shape shape;
  mix_dtype dtype; /* the dtype in memory */
} mix_npy_header;

/* Reads an array that must fill the source exactly; scoped. */
mix_tensor *mix_npy_read(const mix_byte_source *source);
/* The same from memory. */
mix_tensor *mix_npy_read_memory(const char *name, const void *data, size_t size);

/* The preamble and header that numpy.save writes before the elements of a C order array: a multiple of 64
 * bytes. */
#define MIX_NPY_HEADER_MAX 384
size_t mix_npy_write_header(mix_dtype dtype, mix_shape shape, char header[MIX_NPY_HEADER_MAX]);
/* The dtype in which a tensor is written: its own, float32 for bfloat16. */
mix_dtype mix_npy_written_dtype(mix_dtype dtype);
/* The elements as written. mix_free `*converted`; it is NULL if they are the tensor's own. */
const void *mix_npy_written_data(mix_tensor *tensor, void **converted);
