/* A model's weights and its optimizer's state as files of Keras hold them. */
#pragma once

#include "formats/hdf5_writer.h"
#include "model/model.h"

/* What the end of a file's name says. */
typedef enum mix_file_kind {
  MIX_FILE_UNKNOWN,
  MIX_FILE_ARCHIVE, /* .keras */
  MIX_FILE_WEIGHTS, /* .weights.h5 */
  MIX_FILE_SHARDS,  /* .weights.json */
  MIX_FILE_LEGACY,  /* .h5, .hdf5 */
  MIX_FILE_ARRAYS,  /* .npz */
  MIX_FILE_SAFETENSORS,
  MIX_FILE_PRESET, /* ends in a slash: a folder of KerasHub (preset.h) */
} mix_file_kind;
mix_file_kind mix_file_kind_of(const char *path);

/* model.weights.h5: the objects of weight_tree.h at their paths. `archive`: of a model that is made from its
 * config. Scoped. NULL with the error recorded. */
mix_hdf5_writer *mix_weights_file(mix_model *model, const char *call, bool no_optimizer, bool archive);
/* The same without the optimizer, and without `skipped`, a layer of the model, and the layers in it. */
mix_hdf5_writer *mix_weights_file_without(mix_model *model, mix_layer *skipped, const char *call);
/* A variable as a data set at that path; `bfloat16`: not as float32 if it has that dtype; `merged`: with what
 * LoRA adds to it. */
bool mix_write_variable(mix_hdf5_writer *file, const char *path, mix_variable *variable, bool bfloat16,
                        bool merged);
/* weight_names.c: makes names of variables those of an archive of arrays, each once, in the scope. Models in
 * a model may have layers of one name each, whose weights are told apart by a number: "dense/kernel_1". False
 * with the error recorded. */
bool mix_number_names(const char **names, int count);
/* The names of the arrays of these weights, in the scope. NULL with the error recorded. */
const char **mix_weight_names(mix_list *weights);

/* write_legacy.c: the layers' groups of a legacy file below `root` ("model_weights" or ""), and
 * "optimizer_weights". */
bool mix_write_legacy_weights(mix_hdf5_writer *file, mix_model *model, const char *root);
bool mix_write_legacy_optimizer(mix_hdf5_writer *file, mix_model *model);
/* Replaces the file at `path` by what was written. */
bool mix_hdf5_save(mix_hdf5_writer *file, const char *path, const char *call);
