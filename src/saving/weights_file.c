/* Saves a model's weights alone, and loads them: .npz archives, safetensors and Keras's files. */
#include "saving/read_weights.h"
#include "saving/write_weights.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "saving/preset.h"
#include "saving/safetensors_weights.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdio.h>

#define SAVE "model_save_weights"

static void save_arrays(mix_model *model, const char *path) {
  mix_list *weights = mix_model_weights(model);
  const int count = weights ? mix_list_count(weights) : 0;
  const char **names = weights ? mix_weight_names(weights) : NULL;
  mix_tensor **tensors = mix_calloc((size_t)count + 1, sizeof *tensors);
  for (int i = 0; names && tensors && i < count; i++)
    tensors[i] = mix_variable_true_value(mix_list_get(weights, i));
  char *part = names && tensors && !mix_failed() ? mix_file_part(path, SAVE) : NULL;
  if (part && mix_npz_write(SAVE, path, part, count, names, tensors, NULL)) mix_file_commit(part, path, SAVE);
  mix_free(part);
  mix_free(tensors);
}

static bool save_legacy(mix_model *model, const char *path) {
  mix_hdf5_writer *file = mix_hdf5_writer_new(SAVE);
  return mix_write_legacy_weights(file, model, "") && mix_hdf5_save(file, path, SAVE);
}

/* ---- shards ---- */

/* "w.weights.h5" as "w.weights.json", in the scope; Keras renames it too. */
static const char *index_path(const char *path) {
  if (mix_file_kind_of(path) == MIX_FILE_SHARDS) return path;
  const size_t stem = strlen(path) - strlen("h5");
  char *renamed = mix_scoped_memory(stem + sizeof "json");
  if (!renamed) return NULL;
  snprintf(renamed, stem + sizeof "json", "%.*sjson", (int)stem, path);
  mix_log_message(MIX_LOG_WARNING, SAVE ": sharded weights need an index; %s is written instead of %s",
                  renamed, path);
  return renamed;
}

static bool can_shard(const mix_model *model, const mix_save_weights_options *options) {
  const mix_file_kind kind = mix_file_kind_of(options->path);
  if (!(options->max_shard_size > 0) || !isfinite(options->max_shard_size))
    return mix_fail_value(SAVE ": max_shard_size is %g; expected a positive number of GB",
                          options->max_shard_size);
  if (kind != MIX_FILE_SHARDS && kind != MIX_FILE_WEIGHTS)
    return mix_fail_value(SAVE
                          ": '%.200s' with max_shard_size=%g; expected a name that ends in .weights.json",
                          options->path, options->max_shard_size);
  if (model->semantics->weights_sharded) return true;
  return mix_fail_value(SAVE
                        ": sharded weights are files of Keras 3, which %s cannot read; expected a name that "
                        "ends in .weights.h5 and no max_shard_size",
                        model->semantics->name);
}

static mix_status save_shards(mix_model *model, const mix_save_weights_options *options) {
  if (!can_shard(model, options)) return mix_error();
  MIX_MODEL_USE(model, MIX_READS_MODEL, SAVE)
  MIX_SCOPE {
    const char *path = index_path(options->path);
    if (path && mix_model_weights_ready(model, SAVE))
      mix_weight_shards_write(model, path, options->max_shard_size * 1073741824.0, SAVE);
  }
  return mix_error();
}

/* ---- the calls ---- */

mix_status mix_model_save_weights_with(mix_model *model, const mix_save_weights_options *given) {
  mix_save_weights_options options;
  if (!mix_model_given(model, SAVE)) return mix_error();
  if (!given || !mix_options_copy(&options, sizeof options, given, SAVE))
    return mix_failed() ? mix_error() : mix_fail_status(MIX_TYPE_ERROR, SAVE ": no options");
  const char *path = options.path;
  if (!path) return mix_fail_status(MIX_TYPE_ERROR, SAVE ": path is NULL");
  const mix_file_kind kind = mix_file_kind_of(path);
  if (options.weight_map && kind != MIX_FILE_SAFETENSORS)
    return mix_fail_status(MIX_VALUE_ERROR,
                           SAVE ": .weight_map is for a name that ends in .safetensors, not for '%.200s'",
                           path);
  if (options.max_shard_size != 0) return save_shards(model, &options);
  if (kind == MIX_FILE_SHARDS)
    return mix_fail_status(MIX_VALUE_ERROR,
                           SAVE
                           ": '%.200s' is an index of shards; expected max_shard_size (--max-shard-size) "
                           "too, or a name that ends in .weights.h5",
                           path);
  if (kind == MIX_FILE_ARCHIVE || kind == MIX_FILE_PRESET)
    return mix_fail_status(MIX_VALUE_ERROR,
                           SAVE
                           ": '%.200s' names a whole model; use mix_model_save, or give a name that ends in "
                           ".weights.h5, .h5, .npz or .safetensors",
                           path);
  if (kind == MIX_FILE_UNKNOWN)
    return mix_fail_status(
        MIX_VALUE_ERROR,
        SAVE ": '%.200s' given; expected a name that ends in .weights.h5, .h5, .hdf5, .npz or .safetensors",
        path);
  MIX_MODEL_USE(model, MIX_READS_MODEL, SAVE)
  MIX_SCOPE {
    if (mix_model_weights_ready(model, SAVE)) {
      if (kind == MIX_FILE_WEIGHTS)
        mix_hdf5_save(mix_weights_file(model, SAVE, false, false), path, SAVE);
      else if (kind == MIX_FILE_LEGACY)
        save_legacy(model, path);
      else if (kind == MIX_FILE_SAFETENSORS)
        mix_save_safetensors(model, path, options.weight_map, SAVE);
      else
        save_arrays(model, path);
    }
  }
  return mix_error();
}

mix_status mix_model_save_weights(mix_model *model, const char *path) {
  return mix_model_save_weights_with(
      model, &(const mix_save_weights_options){.size = sizeof(mix_save_weights_options), .path = path});
}

/* The array for weight `index`: by its name, else by numpy.savez's default name. */
static mix_tensor *array_for(mix_npz *npz, const char *path, mix_variable *variable, const char *name,
                             int index) {
  char number[32];
  snprintf(number, sizeof number, "arr_%d", index);
  mix_tensor *array = mix_npz_get(npz, name);
  if (!array && !mix_failed()) array = mix_npz_get(npz, number);
  if (!array && !mix_failed())
    mix_fail_value("model_load_weights: %s has neither '%s' nor '%s'", path, name, number);
  if (array && !mix_shape_equal(mix_tensor_shape(array), mix_variable_shape(variable)))
    return mix_fail_value("model_load_weights: '%s' has shape %s, the array in %s %s", name,
                          MIX_SHAPE_TEXT(mix_variable_shape(variable)), path,
                          MIX_SHAPE_TEXT(mix_tensor_shape(array)));
  return array;
}

static void load_arrays(mix_model *model, const char *path) {
  mix_npz *npz = mix_npz_open(path);
  mix_list *weights = npz ? mix_model_weights(model) : NULL, *values = mix_list_new(0, NULL);
  int count = weights ? mix_list_count(weights) : 0;
  if (npz && !mix_failed() && mix_npz_count(npz) != count)
    mix_fail_value("model_load_weights: %s holds %d arrays, the model has %d weights", path,
                   mix_npz_count(npz), count);
  const char **names = weights ? mix_weight_names(weights) : NULL;
  for (int i = 0; i < count && !mix_failed(); i++)
    mix_list_append(values, array_for(npz, path, mix_list_get(weights, i), names[i], i));
  if (!mix_failed()) mix_model_set_weights(model, values);
}

/* The weights of a folder of KerasHub, of a backbone also into a task that has it. */
static void load_folder(mix_model *model, const mix_load_weights_options *options) {
  mix_keras_file file = {.copies = options->copy_weights};
  mix_weights_reader reader = {
      .file = &file, .model = model, .call = "model_load_weights", .skip_mismatch = options->skip_mismatch};
  mix_preset_read(options->path, &reader);
}

static void load_keras_file(mix_model *model, const mix_load_weights_options *options) {
  mix_keras_file file;
  if (mix_is_preset_folder(options->path)) {
    load_folder(model, options);
    return;
  }
  if (!(options->copy_weights ? mix_keras_file_read : mix_keras_file_open)(&file, options->path, false))
    return;
  mix_weights_reader reader = {.file = &file,
                               .model = model,
                               .call = "model_load_weights",
                               .by_name = options->by_name,
                               .skip_mismatch = options->skip_mismatch};
  if (options->by_name && file.by_path)
    mix_fail_value("model_load_weights: .by_name is for legacy .h5 files; the weights of %s stand at paths",
                   file.name);
  if (!mix_failed()) mix_read_weights(&reader);
  mix_keras_file_close(&file);
}

static void load_weights(mix_model *model, const mix_load_weights_options *options) {
  const size_t length = strlen(options->path);
  const bool arrays =
      (length > 4 && !strcmp(options->path + length - 4, ".npz")) || mix_is_array_file(options->path);
  if (mix_failed()) return;
  if (!arrays && mix_is_safetensors(options->path)) {
    mix_load_safetensors(model, options, "model_load_weights");
    return;
  }
  if (options->weight_map)
    mix_fail_value("model_load_weights: .weight_map is for safetensors, and %s is none", options->path);
  else if (arrays && (options->by_name || options->skip_mismatch))
    mix_fail_value("model_load_weights: .by_name and .skip_mismatch are for files of Keras, not for "
                   "arrays: %s",
                   options->path);
  else if (arrays)
    load_arrays(model, options->path);
  else
    load_keras_file(model, options);
}

mix_status mix_model_load_weights_with(mix_model *model, const mix_load_weights_options *given) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_model_given(model, "model_load_weights")) return mix_error();
  mix_load_weights_options options;
  if (!given || !mix_options_copy(&options, sizeof options, given, "model_load_weights"))
    return mix_failed() ? mix_error() : mix_fail_status(MIX_TYPE_ERROR, "model_load_weights: no options");
  if (!options.path) return mix_fail_status(MIX_TYPE_ERROR, "model_load_weights: path is NULL");
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, "model_load_weights")
  MIX_SCOPE {
    if (mix_model_weights_ready(model, "model_load_weights")) load_weights(model, &options);
  }
  return mix_error();
}

mix_status mix_model_load_weights(mix_model *model, const char *path) {
  return mix_model_load_weights_with(
      model, &(const mix_load_weights_options){.size = sizeof(mix_load_weights_options), .path = path});
}
