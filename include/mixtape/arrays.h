/* NumPy's own array files: .npy (one array) and .npz (a zip archive of named arrays), in and out. */
#ifndef MIXTAPE_ARRAYS_H
#define MIXTAPE_ARRAYS_H

#include <mixtape/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads an array file as numpy.save writes it (format versions 1 to 3). float16, float32, float64, int8, int16, int32, int64, uint8 and
 * bool keep their dtype; uint16 becomes int32 and uint32 int64; either byte order; Fortran order is turned into C order. Everything else
 * (objects, strings, structures, complex numbers, uint64, the two void bytes by which NumPy writes bfloat16) is MIX_UNSUPPORTED. A
 * damaged file is MIX_FORMAT_ERROR, recorded before anything of the size that it declares is allocated. */
MIX_API mix_tensor *mix_npy_load(const char *path);
/* Writes what numpy.save would write. bfloat16, which NumPy lacks, is written as float32 (the same values). The file is written beside
 * the old one, flushed to the disk and renamed: where that fails (a full disk) the old file is untouched and the error recorded. */
MIX_API mix_status mix_npy_save(const char *path, mix_tensor *tensor);

/* An open archive. Members are read when they are asked for, stored or deflated. */
typedef struct mix_npz mix_npz;
/* IOError where it cannot be read, FormatError where it is no zip archive. The file stays open as long as the archive lives. */
MIX_API mix_npz *mix_npz_open(const char *path);
/* Arrays in the archive (members called NAME.npy; others are passed over), in the order of the archive. */
MIX_API int mix_npz_count(const mix_npz *npz);
/* The name without ".npy": "arr_0", "dense_1/kernel". Lives as long as the archive. An index outside it is an error. */
MIX_API const char *mix_npz_name(const mix_npz *npz, int index);
/* The array of that name, read anew at each call; NULL without an error where there is none. Of members of one name the last counts. */
MIX_API mix_tensor *mix_npz_get(mix_npz *npz, const char *name);
/* The same; a missing array is a MIX_VALUE_ERROR that lists what there is. */
MIX_API mix_tensor *mix_npz_require(mix_npz *npz, const char *name);
/* Writes an archive as numpy.savez does (members stored, not compressed), beside the old one and renamed like mix_npy_save.
 * names[i] may be NULL: "arr_<i>". Two equal names are an error. */
MIX_API mix_status mix_npz_save(const char *path, int count, const char *const *names, mix_tensor *const *tensors);

#ifdef __cplusplus
}
#endif
#endif
