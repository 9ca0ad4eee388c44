/* What Keras saved, opened for reading: .keras archives and HDF5 files, told apart by their content. */
#pragma once

#include "saving/weight_shards.h"

typedef struct mix_keras_file {
  const char *name; /* for messages */
  bool by_path;     /* its weights stand at the paths of weight_tree.h; else layer by layer (legacy) */
  const char *root; /* of legacy weights: "model_weights" or "" */
  /* The object of the model, with keras_version and compile_config where the file has them; NULL: weights
   * alone. */
  json_t *model;
  mix_hdf5 hdf5;     /* not used where there are shards */
  mix_memory *bytes; /* of the file, or of the archive's member of weights; owned, NULL: the caller's */
  bool copies;       /* nothing stays in the file's mapping */
  mix_weight_shards *shards; /* of sharded weights; else NULL */
  bool preset; /* `name` is a folder of KerasHub, which has several files of weights (preset.h) */
} mix_keras_file;

/* True if the file begins as an .npz of arrays and holds no model. */
bool mix_is_array_file(const char *path);
/* Which a folder of KerasHub has, unless its files are being replaced. */
#define MIX_PRESET_MARK "config.json"
/* Is it a folder with this file? */
bool mix_is_preset_folder(const char *path);
/* Maps the file, in which weights may stay that are read from it (mix_hdf5_share). `structure`: read the
 * model's object too. False with the error recorded, which names the file; then nothing is to be closed. */
bool mix_keras_file_open(mix_keras_file *file, const char *path, bool structure);
/* The same with a copy of the file, after which it may change. */
bool mix_keras_file_read(mix_keras_file *file, const char *path, bool structure);
/* The same from memory, which must outlive it. */
bool mix_keras_file_open_memory(mix_keras_file *file, const char *name, const void *data, size_t size,
                                bool structure);
/* The HDF5 file with the data set or group at that path, for a look that may find nothing. */
mix_hdf5 *mix_keras_file_with(mix_keras_file *file, const char *path);
void mix_keras_file_close(mix_keras_file *file);
