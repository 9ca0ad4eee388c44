/* Writing HDF5 as h5py writes it, by the HDF5 library: groups, contiguous data sets, attributes. The file is
 * made in memory, so that the library touches no disk and a full one is met by formats/file.h alone. */
#pragma once

#include "formats/file.h"
#include <mixtape/tensor.h>

typedef struct mix_hdf5_writer mix_hdf5_writer; /* an object: mix_release */

/* An empty file; scoped. `expected`: about how many bytes it will take; `call` is for messages. NULL with the
 * error recorded. After a failure a writer is only to be released. */
mix_hdf5_writer *mix_hdf5_writer_new(const char *call, size_t expected);
/* Paths are as in hdf5.h; groups that are missing on the way are made. A group that exists stays as it is. */
bool mix_hdf5_write_group(mix_hdf5_writer *writer, const char *path);
/* A data set. bfloat16 becomes two opaque bytes beside an attribute "dtype", as in Keras 3. */
bool mix_hdf5_write_tensor(mix_hdf5_writer *writer, const char *path, mix_tensor *tensor);
/* True if a data set may be made there: nothing has the path, and nothing on the way is a data set. */
bool mix_hdf5_is_free(mix_hdf5_writer *writer, const char *path);
/* An attribute of the object at `path`: a text of variable length. */
bool mix_hdf5_write_text(mix_hdf5_writer *writer, const char *path, const char *name, const char *text);
/* Several texts of one fixed length. Above 64512 bytes they stand in pieces NAME0, NAME1, ..., as Keras
 * splits them; ValueError if one text is longer than that. */
bool mix_hdf5_write_texts(mix_hdf5_writer *writer, const char *path, const char *name, int count,
                          const char *const *texts);
/* The whole file, which ends with the writer. Nothing may be written afterwards. */
bool mix_hdf5_writer_bytes(mix_hdf5_writer *writer, mix_bytes *bytes);
