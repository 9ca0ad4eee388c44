/* Weights in several HDF5 files beside an index of JSON, as Keras 3 shards them: NAME.weights.json says which
 * of NAME_00000.weights.h5, NAME_00001.weights.h5, ... hold the variables of each group. */
#pragma once

#include "formats/hdf5.h"
#include "model/model.h"
#include <jansson.h>

typedef struct mix_weight_shard {
  mix_hdf5 hdf5;
  char *path;
  mix_memory *bytes;
} mix_weight_shard;

typedef struct mix_weight_shards {
  const char *name;   /* of the index, for messages */
  bool copies;        /* the shards are read, not mapped */
  json_t *weight_map; /* "/layers/dense/vars": the numbers of its shards, in a list */
  mix_weight_shard *items;
  int count, capacity;
} mix_weight_shards;

/* True if the file begins as JSON does. */
bool mix_weight_shards_begin(const char *first, size_t size);
/* Opens all shards that the index names; `copies`: mix_keras_file_read. NULL with the error recorded:
 * FormatError for what is no such index or names files outside of its folder, OSError for a shard that cannot
 * be read. */
mix_weight_shards *mix_weight_shards_open(const char *path, const char *text, bool copies);
void mix_weight_shards_close(mix_weight_shards *shards);
/* The shards of a group in their order, through `at`: begin with 0; NULL: there are no more. */
mix_hdf5 *mix_weight_shards_next(mix_weight_shards *shards, const char *group, int *at);
/* The shard that has the data set; NULL without an error: none has it. */
mix_hdf5 *mix_weight_shards_with(mix_weight_shards *shards, const char *path);

/* Writes the model's weights as such files, none of more than so many bytes of values. All are written before
 * the first replaces an old one, and the index comes last. */
bool mix_weight_shards_write(mix_model *model, const char *path, double limit, const char *call);
