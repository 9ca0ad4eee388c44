/* Reading HDF5 as h5py writes it ("HDF5 File Format Specification 3.0"): superblocks 0, 2 and 3; groups by
 * symbol tables, compact and dense links; data sets that are compact, contiguous or in chunks (deflate,
 * shuffle); numbers, strings of fixed and variable length; attributes. All else, like chunks of layout 4
 * (libver="latest"), is an error that names it. Memory is bounded by the file's size and what is asked for;
 * no other file is opened. */
#pragma once

#include "tensor/memory.h"
#include <mixtape/tensor.h>

typedef struct mix_hdf5 {
  const char *name; /* for messages */
  const unsigned char *bytes;
  size_t size;
  mix_memory *memory; /* that the bytes lie in, and that may outlive the file; NULL: none. The caller's */
  uint64_t root;      /* the object header of the root group */
  int64_t visits;     /* blocks that one call may still read: ends walks of links that form a circle */
  struct mix_hdf5_index *index; /* the links of large groups, sorted; NULL: none yet */
} mix_hdf5;

/* The elements of an attribute or of a data set. */
typedef struct mix_hdf5_value {
  mix_shape shape;
  mix_dtype dtype; /* MIX_DTYPE_NONE: texts, or elements that have no dtype here */
  size_t element_size, count;
  unsigned char *bytes; /* numbers, little-endian; NULL for texts */
  char **texts;         /* count texts, each ending in 0; NULL for numbers */
} mix_hdf5_value;

/* Opens a file in memory, which the caller keeps. FormatError if it is none. */
bool mix_hdf5_open(mix_hdf5 *file, const char *name, const void *bytes, size_t size);
/* Ends the use of a file, one that did not open too; the bytes stay the caller's. */
void mix_hdf5_close(mix_hdf5 *file);

/* Calls `visit` for each link of the group at `path` ("", "layers/dense"), in the order of their names, and
 * says whether it leads to a group. Ends with the first false, which is the result. */
typedef bool mix_hdf5_visit(void *context, const char *name, bool is_group);
bool mix_hdf5_list(mix_hdf5 *file, const char *path, mix_hdf5_visit *visit, void *context);
/* True if there is an object of that path. Records no error for a link that is missing. */
bool mix_hdf5_has(mix_hdf5 *file, const char *path);

/* A data set as a tensor; bfloat16 is what Keras 3 writes as two opaque bytes beside an attribute "dtype".
 * Scoped. NULL with the error recorded. */
mix_tensor *mix_hdf5_tensor(mix_hdf5 *file, const char *path);
/* Its dtype and shape alone. False with the error recorded. */
bool mix_hdf5_describe(mix_hdf5 *file, const char *path, mix_dtype *dtype, mix_shape *shape);
/* The same tensor, which shares the file's bytes where they lie there as they are: to be used while the file
 * is open, and only to be copied from, since the bytes may not be aligned. */
mix_tensor *mix_hdf5_borrow(mix_hdf5 *file, const char *path);
/* The elements of a data set as a part of file->memory, aligned as values of tensors are. NULL without an
 * error where they do not lie there so: there is no such memory, they are in chunks, big-endian, not aligned,
 * or fewer bytes than a page. The caller's reference. */
mix_memory *mix_hdf5_share(mix_hdf5 *file, const char *path);
/* The elements of a data set; mix_hdf5_value_free them. */
bool mix_hdf5_dataset(mix_hdf5 *file, const char *path, mix_hdf5_value *value);
/* The attribute of an object. False without an error if there is none. */
bool mix_hdf5_attribute(mix_hdf5 *file, const char *path, const char *name, mix_hdf5_value *value);
void mix_hdf5_value_free(mix_hdf5_value *value);
