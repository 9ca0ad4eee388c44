/* Weights of legacy HDF5 files: a group a layer, matched in order or by name. */

#include "base/alloc.h"
#include "base/error.h"
#include "saving/cudnn_weights.h"
#include <stdio.h>
#include <string.h>

/* ---- lists of names ---- */

void mix_texts_free(mix_texts *texts) {
  for (int i = 0; i < texts->count; i++) mix_free(texts->items[i]);
  mix_free(texts->items);
  *texts = (mix_texts){0};
}

/* Takes the texts of the value. */
static bool take_texts(const mix_keras_file *file, const char *name, mix_hdf5_value *value,
                       mix_texts *texts) {
  if (value->count && !value->texts)
    return mix_fail_format("%s: the attribute %s has no texts", file->name, name);
  if (!mix_reserve(&texts->items, &texts->capacity, texts->count + (int)value->count + 1,
                   sizeof *texts->items))
    return false;
  for (size_t i = 0; i < value->count; i++) {
    texts->items[texts->count++] = value->texts[i];
    value->texts[i] = NULL;
  }
  return true;
}

static bool read_piece(mix_keras_file *file, const char *path, const char *name, mix_texts *texts) {
  mix_hdf5_value value;
  if (!mix_hdf5_attribute(&file->hdf5, path, name, &value)) return false;
  const bool good = take_texts(file, name, &value, texts);
  mix_hdf5_value_free(&value);
  return good;
}

bool mix_read_texts(mix_keras_file *file, const char *path, const char *name, mix_texts *texts) {
  char piece[64];
  *texts = (mix_texts){0};
  if (read_piece(file, path, name, texts)) return true;
  int pieces = 0;
  do snprintf(piece, sizeof piece, "%s%d", name, pieces);
  while (!mix_failed() && read_piece(file, path, piece, texts) && ++pieces);
  if (!mix_failed() && !pieces) mix_fail_format("%s: '%s' has no attribute %s", file->name, path, name);
  if (!mix_failed()) return true;
  mix_texts_free(texts);
  return false;
}

/* ---- one layer ---- */

/* Appends the variables of one layer from `first` on. Returns the first of the next layer. */
static int append_layer(mix_list *variables, int first, mix_list *all) {
  mix_variable *const *items = (mix_variable *const *)mix_list_items(variables);
  int end = first + 1;
  while (end < mix_list_count(variables) && mix_have_one_layer(items[first], items[end])) end++;
  for (int replaced = 1; replaced >= 0; replaced--)
    for (int i = first; i < end; i++)
      if (items[i]->overwrite_with_gradient == replaced) mix_list_append(all, items[i]);
  return end;
}

mix_list *mix_legacy_variables(mix_layer *layer) {
  mix_list *trained = mix_layer_trainable_weights(layer), *others = mix_layer_non_trainable_weights(layer),
           *all = mix_list_new(0, NULL);
  for (int i = 0; trained && all && i < mix_list_count(trained);) i = append_layer(trained, i, all);
  for (int i = 0; others && all && i < mix_list_count(others);) i = append_layer(others, i, all);
  return mix_failed() ? NULL : all;
}

mix_list *mix_own_variables(const mix_layer *model) {
  mix_list *own = mix_list_new(0, NULL);
  for (int i = 0; model->weights && i < mix_list_count(model->weights); i++)
    mix_list_append(own, mix_list_items(model->weights)[i]);
  return mix_failed() ? NULL : own;
}

static bool counts_differ(const mix_weights_reader *reader, const char *layer, const char *saved,
                          mix_list *variables, int count) {
  char ours[300];
  return mix_fail_value(
      "%s: %s: '%s' has %d weights (%s), but layer '%s' in the file has %d; expected the weights "
      "of a model of the same layers",
      reader->call, reader->file->name, layer, mix_list_count(variables),
      mix_variables_text(variables, ours, sizeof ours), saved, count);
}

static bool read_named(mix_weights_reader *reader, const char *group, const mix_texts *names,
                       mix_list *variables, mix_layer *layer) {
  const char **paths = mix_scoped_memory(((size_t)names->count + 1) * sizeof *paths);
  mix_variable *const *to = (mix_variable *const *)mix_list_items(variables);
  for (int i = 0; paths && i < names->count; i++)
    if (!(paths[i] = mix_join_path(group, names->items[i]))) return false;
  for (int i = 0; paths && i < names->count && !mix_failed();) {
    const bool cudnn =
        i + MIX_CUDNN_VARIABLES <= names->count && mix_are_cudnn_weights(reader, layer, paths + i, to + i);
    if (mix_failed()) return false;
    if (!(cudnn ? mix_read_cudnn_weights(reader, paths + i, to + i)
                : mix_read_variable(reader, paths[i], to[i])))
      return false;
    i += cudnn ? MIX_CUDNN_VARIABLES : 1;
  }
  return !mix_failed();
}

static bool read_layer(mix_weights_reader *reader, mix_layer *layer, mix_list *variables, const char *saved) {
  mix_texts names;
  const char *group = mix_join_path(reader->file->root, saved);
  if (!group || !variables || !mix_read_texts(reader->file, group, "weight_names", &names)) return false;
  const bool good = names.count == mix_list_count(variables)
                        ? read_named(reader, group, &names, variables, layer)
                        : counts_differ(reader, layer->name, saved, variables, names.count);
  mix_texts_free(&names);
  return good || mix_skip_mismatch(reader);
}

/* ---- layers in order ---- */

/* A new list: the layers that have weights. */
static mix_list *layers_with_weights(const mix_weights_reader *reader) {
  mix_list *layers = mix_list_new(0, NULL), *all = reader->model->layer->layers;
  for (int i = 0; i < mix_list_count(all); i++) {
    mix_list *weights = mix_layer_weights(mix_list_items(all)[i]);
    if (weights && mix_list_count(weights)) mix_list_append(layers, mix_list_items(all)[i]);
  }
  return mix_failed() ? NULL : layers;
}

/* Drops the names of layers without weights. */
static bool keep_weighted(mix_weights_reader *reader, mix_texts *saved) {
  int kept = 0;
  for (int i = 0; i < saved->count && !mix_failed(); i++) {
    mix_texts names = {0};
    const char *group = mix_join_path(reader->file->root, saved->items[i]);
    const bool good = group && mix_read_texts(reader->file, group, "weight_names", &names);
    char *name = saved->items[i];
    saved->items[i] = NULL;
    if (good && names.count)
      saved->items[kept++] = name;
    else
      mix_free(name);
    mix_texts_free(&names);
  }
  if (!mix_failed()) saved->count = kept;
  return !mix_failed();
}

static bool read_in_order(mix_weights_reader *reader, mix_texts *saved) {
  mix_list *layers = layers_with_weights(reader);
  if (!layers || !keep_weighted(reader, saved)) return false;
  if (mix_list_count(layers) != saved->count)
    return mix_fail_value(
        "%s: %s: the model has %d layers with weights, the file %d; expected the weights of a "
        "model of the same layers, or .by_name",
        reader->call, reader->file->name, mix_list_count(layers), saved->count);
  for (int i = 0; i < saved->count; i++) {
    mix_layer *layer = mix_list_items(layers)[i];
    if (!read_layer(reader, layer, mix_legacy_variables(layer), saved->items[i])) return false;
  }
  return true;
}

/* ---- layers by name ---- */

static bool read_by_name(mix_weights_reader *reader, const mix_texts *saved) {
  mix_list *layers = reader->model->layer->layers;
  for (int i = 0; i < saved->count; i++)
    for (int l = 0; l < mix_list_count(layers); l++) {
      mix_layer *layer = mix_list_items(layers)[l];
      if (strcmp(layer->name, saved->items[i])) continue;
      if (!read_layer(reader, layer, mix_legacy_variables(layer), saved->items[i])) return false;
    }
  return true;
}

/* ---- the model ---- */

/* Files before TensorFlow 2.6 have no such group. */
static bool read_own(mix_weights_reader *reader) {
  mix_layer *model = reader->model->layer;
  mix_list *own = mix_own_variables(model);
  const char *group = mix_join_path(reader->file->root, MIX_OWN_WEIGHTS);
  if (!own || !group || !mix_hdf5_has(&reader->file->hdf5, group)) return !mix_failed();
  return read_layer(reader, model, own, MIX_OWN_WEIGHTS);
}

bool mix_read_legacy_weights(mix_weights_reader *reader) {
  mix_texts saved;
  if (!mix_read_texts(reader->file, reader->file->root, "layer_names", &saved)) return false;
  const bool good = reader->by_name ? read_by_name(reader, &saved) : read_in_order(reader, &saved);
  mix_texts_free(&saved);
  return good && read_own(reader) && !mix_failed();
}
