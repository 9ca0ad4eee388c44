/* A file of the HDF5 writer in memory. */
#ifndef TESTS_FORMATS_WRITTEN_HDF5_H
#define TESTS_FORMATS_WRITTEN_HDF5_H

#include "formats/hdf5_writer.h"
#include <stdlib.h>
#include <string.h>

typedef struct written_hdf5 {
  unsigned char *data; /* free it */
  size_t size;
  int pieces;
} written_hdf5;

/* False with the error recorded and nothing to free. */
static inline bool take_hdf5(mix_hdf5_writer *writer, written_hdf5 *file) {
  mix_piece_source source;
  mix_bytes piece;
  bool good = mix_hdf5_writer_source(writer, &source);
  *file = (written_hdf5){0};
  if (!good || !(file->data = malloc(source.size))) return false;
  while ((good = source.next(source.context, &piece)) && piece.size &&
         piece.size <= source.size - file->size) {
    memcpy(file->data + file->size, piece.data, piece.size);
    file->size += piece.size;
    file->pieces++;
  }
  if (good && !piece.size && file->size == source.size) return true;
  free(file->data);
  *file = (written_hdf5){0};
  return false;
}

#endif
