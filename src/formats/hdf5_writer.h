/* Writing HDF5 as h5py reads it: groups, contiguous data sets, attributes, in the oldest forms of the format.
 * What is written is noted first; the bytes come piece by piece from mix_hdf5_writer_source: superblock,
 * elements, and the headers at the end. So the values of a model are in memory one at a time. */
#pragma once

#include "formats/file.h"
#include <mixtape/tensor.h>

/* Elements of data sets of at least MIX_HDF5_LARGE bytes begin at multiples of MIX_HDF5_ALIGNMENT in the
 * file, so that a mapping of it can hold a tensor; others at multiples of 8. */
enum { MIX_HDF5_LARGE = 4096, MIX_HDF5_ALIGNMENT = 64 };

typedef struct mix_hdf5_writer mix_hdf5_writer; /* an object: mix_release */

/* An empty file; scoped. `call` is for messages. NULL with the error recorded. After a failure a writer is
 * only to be released. */
mix_hdf5_writer *mix_hdf5_writer_new(const char *call);
/* Paths are as in hdf5.h; groups that are missing on the way are made. A group that exists stays as it is. */
bool mix_hdf5_write_group(mix_hdf5_writer *writer, const char *path);
/* A data set. The tensor is retained, and evaluated when its elements are written: variables that it reads
 * must keep their values until then. bfloat16 becomes two opaque bytes beside an attribute "dtype", as in
 * Keras 3. */
bool mix_hdf5_write_tensor(mix_hdf5_writer *writer, const char *path, mix_tensor *tensor);
/* True if a data set may be made there: nothing has the path, and nothing on the way is a data set. */
bool mix_hdf5_is_free(mix_hdf5_writer *writer, const char *path);
/* An attribute of the object at `path`: a text of variable length. */
bool mix_hdf5_write_text(mix_hdf5_writer *writer, const char *path, const char *name, const char *text);
/* Several texts of one fixed length. Above 64512 bytes they stand in pieces NAME0, NAME1, ..., as Keras
 * splits them; ValueError if one text is longer than that. */
bool mix_hdf5_write_texts(mix_hdf5_writer *writer, const char *path, const char *name, int count,
                          const char *const *texts);
/* The bytes of the file, to be taken once, while the writer lives. Nothing may be written afterwards. */
bool mix_hdf5_writer_source(mix_hdf5_writer *writer, mix_piece_source *source);
