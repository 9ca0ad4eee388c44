/* NumPy array files: .npy (one array) and .npz (a zip archive of named arrays). */
#ifndef MIXTAPE_ARRAYS_H
#define MIXTAPE_ARRAYS_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* Reads a file that numpy.save wrote (format versions 1 to 3, either byte order). float16, float32,
 * float64, int8, int16, int32, int64, uint8 and bool keep their dtype; uint16 becomes int32 and uint32
 * int64. Fortran order is converted to C order.
 * Everything else (objects, strings, structures, complex numbers, uint64, the two void bytes that NumPy
 * writes for bfloat16) is MIX_UNSUPPORTED. A damaged file is MIX_FORMAT_ERROR, detected before memory of
 * the declared size is allocated. */
MIX_API mix_tensor *mix_npy_load(const char *path);
/* Writes what numpy.save would write. bfloat16, which NumPy does not have, is written as float32 with the
 * same values. The data goes to a temporary file, which is flushed to the disk and renamed. If this fails
 * (disk full), the old file is unchanged and the error is recorded. */
MIX_API mix_status mix_npy_save(const char *path, mix_tensor *tensor);

/* An open archive, an object. Members, stored or deflated, are read on request. */
typedef struct mix_npz mix_npz;
/* Opens an archive. The file stays open as long as the archive lives. IOError if it cannot be read,
 * FormatError if it is not a zip archive. */
MIX_API mix_npz *mix_npz_open(const char *path);
/* The number of arrays (members NAME.npy; others are ignored), in the order of the archive. */
MIX_API int mix_npz_count(const mix_npz *npz);
/* The name without ".npy": "arr_0", "dense_1/kernel". The string lives as long as the archive. ValueError
 * if the index is out of range. */
MIX_API const char *mix_npz_name(const mix_npz *npz, int index);
/* The array of that name, read at each call; NULL without an error if there is none. Of several members
 * with one name the last is used. */
MIX_API mix_tensor *mix_npz_get(mix_npz *npz, const char *name);
/* The same, but a missing array is a MIX_VALUE_ERROR that lists the names. */
MIX_API mix_tensor *mix_npz_require(mix_npz *npz, const char *name);
/* Writes an archive as numpy.savez does, with members stored, not compressed. The file is replaced as in
 * mix_npy_save. names[i] may be NULL: "arr_<i>". Two equal names are an error. */
MIX_API mix_status mix_npz_save(const char *path, int count, const char *const *names,
                                mix_tensor *const *tensors);

MIX_END_DECLARATIONS
#endif
