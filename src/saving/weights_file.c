/* Saves a model's weights as .npz archives, and loads them and those of Keras's files. */
#include "saving/read_weights.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"
#include "tensor/convert.h"
#include <mixtape/arrays.h>
#include <stdio.h>
#include <string.h>

/* Keras chooses the format by the ending. */
static bool is_keras_name(const char *path) {
  static const char *const endings[] = {".h5", ".hdf5", ".keras"};
  const size_t length = strlen(path);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    const size_t end = strlen(endings[i]);
    if (length >= end && !strcmp(path + length - end, endings[i])) return true;
  }
  return false;
}

static bool is_taken(const char **names, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return true;
  return false;
}

/* The names of the arrays, in the scope: those of the variables. Models in a model may have layers of one
 * name each, whose weights are told apart by a number: "dense/kernel_1". */
static const char **name_arrays(mix_list *weights) {
  const int count = mix_list_count(weights);
  const char **names = mix_scoped_memory(((size_t)count + 1) * sizeof *names);
  for (int i = 0; names && i < count; i++) {
    const char *own = mix_variable_name(mix_list_get(weights, i));
    names[i] = own;
    for (int number = 1; is_taken(names, i, names[i]); number++) {
      const size_t size = strlen(own) + 16;
      char *numbered = mix_scoped_memory(size);
      if (!numbered) return NULL;
      snprintf(numbered, size, "%s_%d", own, number);
      names[i] = numbered;
    }
  }
  return mix_failed() ? NULL : names;
}

mix_status mix_model_save_weights(mix_model *model, const char *path) {
  if (!mix_model_given(model, "model_save_weights")) return mix_error();
  if (!path) return mix_fail_status(MIX_TYPE_ERROR, "model_save_weights: path is NULL");
  if (is_keras_name(path))
    return mix_fail_status(MIX_VALUE_ERROR,
                           "model_save_weights: '%.200s' names a file of Keras, which is not written; give a "
                           "name that ends in .npz, which Keras reads with model.set_weights",
                           path);
  MIX_MODEL_USE(model, MIX_READS_MODEL, "model_save_weights")
  MIX_SCOPE {
    const bool ready = mix_model_weights_ready(model, "model_save_weights");
    mix_list *weights = ready ? mix_model_weights(model) : NULL;
    int count = weights ? mix_list_count(weights) : 0;
    const char **names = weights ? name_arrays(weights) : NULL;
    mix_tensor **tensors = mix_calloc((size_t)count + 1, sizeof *tensors);
    for (int i = 0; names && tensors && i < count; i++)
      tensors[i] = mix_variable_true_value(mix_list_get(weights, i));
    if (names && tensors && !mix_failed()) mix_npz_save(path, count, names, tensors);
    mix_free(tensors);
  }
  return mix_error();
}

/* The array for weight `index`: by its name, else by numpy.savez's default name. */
static mix_tensor *array_for(mix_npz *npz, const char *path, mix_variable *variable, const char *name,
                             int index) {
  char number[32];
  snprintf(number, sizeof number, "arr_%d", index);
  mix_tensor *array = mix_npz_get(npz, name);
  if (!array && !mix_failed()) array = mix_npz_get(npz, number);
  if (!array && !mix_failed())
    mix_fail(MIX_VALUE_ERROR, "model_load_weights: %s has neither '%s' nor '%s'", path, name, number);
  char ours[160], theirs[160];
  if (array && !mix_shape_equal(mix_tensor_shape(array), mix_variable_shape(variable)))
    return mix_fail(MIX_VALUE_ERROR, "model_load_weights: '%s' has shape %s, the array in %s %s", name,
                    mix_shape_text(mix_variable_shape(variable), ours, sizeof ours), path,
                    mix_shape_text(mix_tensor_shape(array), theirs, sizeof theirs));
  return array;
}

static void load_arrays(mix_model *model, const char *path) {
  mix_npz *npz = mix_npz_open(path);
  mix_list *weights = npz ? mix_model_weights(model) : NULL, *values = mix_list_new(0, NULL);
  int count = weights ? mix_list_count(weights) : 0;
  if (npz && !mix_failed() && mix_npz_count(npz) != count)
    mix_fail(MIX_VALUE_ERROR, "model_load_weights: %s holds %d arrays, the model has %d weights", path,
             mix_npz_count(npz), count);
  const char **names = weights ? name_arrays(weights) : NULL;
  for (int i = 0; i < count && !mix_failed(); i++)
    mix_list_append(values, array_for(npz, path, mix_list_get(weights, i), names[i], i));
  if (!mix_failed()) mix_model_set_weights(model, values);
}

static void load_keras_file(mix_model *model, const mix_load_weights_options *options) {
  mix_keras_file file;
  if (!mix_keras_file_open(&file, options->path, false)) return;
  mix_weights_reader reader = {.file = &file,
                               .model = model,
                               .call = "model_load_weights",
                               .by_name = options->by_name,
                               .skip_mismatch = options->skip_mismatch};
  if (options->by_name && file.by_path)
    mix_fail(MIX_VALUE_ERROR,
             "model_load_weights: .by_name is for legacy .h5 files; the weights of %s stand at paths",
             file.name);
  if (!mix_failed()) mix_read_weights(&reader);
  mix_keras_file_close(&file);
}

static void load_weights(mix_model *model, const mix_load_weights_options *options) {
  const size_t length = strlen(options->path);
  const bool arrays =
      (length > 4 && !strcmp(options->path + length - 4, ".npz")) || mix_is_array_file(options->path);
  if (mix_failed()) return;
  if (arrays && (options->by_name || options->skip_mismatch))
    mix_fail(MIX_VALUE_ERROR,
             "model_load_weights: .by_name and .skip_mismatch are for files of Keras, not for "
             "arrays: %s",
             options->path);
  else if (arrays)
    load_arrays(model, options->path);
  else
    load_keras_file(model, options);
}

mix_status mix_model_load_weights_with(mix_model *model, const mix_load_weights_options *given) {
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
