/* Writes the weights and the optimizer's state of legacy HDF5 files: a group a layer, weights by their names.
 */
#include "base/error.h"
#include "optim/optimizer.h"
#include "saving/read_weights.h"
#include "saving/weight_tree.h"
#include "saving/write_weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a group of weights ---- */

/* The variable's name as a name below the group that nothing has yet; in the scope. */
static const char *free_name(mix_hdf5_writer *file, const char *group, const mix_variable *variable,
                             const mix_semantics *rules) {
  const char *end = rules->saved_names_numbered ? ":0" : "";
  const size_t size = strlen(variable->name) + 32;
  for (int i = 0; !mix_failed(); i++) {
    char *name = mix_scoped_memory(size);
    if (!name) return NULL;
    if (i)
      snprintf(name, size, "%s_%d%s", variable->name, i, end);
    else
      snprintf(name, size, "%s%s", variable->name, end);
    const char *path = mix_join_path(group, name);
    if (path && mix_hdf5_is_free(file, path)) return name;
  }
  return NULL;
}

/* Legacy files have no bfloat16; Keras reads float32 into variables of any dtype. */
static bool write_group(mix_hdf5_writer *file, const char *group, mix_list *variables,
                        const mix_semantics *rules) {
  const int count = mix_list_count(variables);
  const char **names = mix_scoped_memory(((size_t)count + 1) * sizeof *names);
  if (!names || !mix_hdf5_write_group(file, group)) return false;
  for (int i = 0; i < count; i++) {
    mix_variable *variable = mix_list_items(variables)[i];
    names[i] = free_name(file, group, variable, rules);
    const char *path = names[i] ? mix_join_path(group, names[i]) : NULL;
    if (!path || !mix_write_variable(file, path, variable, false, false)) return false;
  }
  return mix_hdf5_write_texts(file, group, "weight_names", count, names);
}

/* ---- layers ---- */

/* Those that Keras lists: an input layer only of a functional model. */
static mix_list *listed_layers(const mix_model *model) {
  mix_list *listed = mix_list_new(0, NULL), *all = model->layer->layers;
  for (int i = 0; i < mix_list_count(all); i++) {
    mix_layer *layer = mix_list_items(all)[i];
    if (model->kind == MIX_FUNCTIONAL || !layer->is_input) mix_list_append(listed, layer);
  }
  return mix_failed() ? NULL : listed;
}

static bool write_layer_names(mix_hdf5_writer *file, const char *root, mix_list *layers) {
  const int count = mix_list_count(layers);
  const char **names = mix_scoped_memory(((size_t)count + 1) * sizeof *names);
  for (int i = 0; names && i < count; i++) names[i] = ((mix_layer *)mix_list_items(layers)[i])->name;
  return names && mix_hdf5_write_texts(file, root, "layer_names", count, names);
}

static int by_name(const void *a, const void *b) {
  return strcmp((*(mix_layer *const *)a)->name, (*(mix_layer *const *)b)->name);
}

/* In the order of their names, as Keras writes them: "a" before what lies in "a/b". */
static bool write_layers(mix_hdf5_writer *file, const mix_model *model, const char *root, mix_list *layers) {
  const int count = mix_list_count(layers);
  mix_layer **sorted = mix_scoped_memory(((size_t)count + 1) * sizeof *sorted);
  if (!sorted) return false;
  for (int i = 0; i < count; i++) sorted[i] = mix_list_items(layers)[i];
  qsort(sorted, (size_t)count, sizeof *sorted, by_name);
  for (int i = 0; i < count; i++) {
    mix_list *variables = mix_legacy_variables(sorted[i]);
    const char *group = mix_join_path(root, sorted[i]->name);
    if (!variables || !group || !write_group(file, group, variables, model->semantics)) return false;
  }
  return true;
}

bool mix_write_legacy_weights(mix_hdf5_writer *file, mix_model *model, const char *root) {
  mix_list *layers = listed_layers(model), *own = mix_own_variables(model->layer);
  const char *group = mix_join_path(root, MIX_OWN_WEIGHTS);
  return layers && own && group && mix_hdf5_write_group(file, root) &&
         write_layer_names(file, root, layers) && mix_hdf5_write_text(file, root, "backend", "tensorflow") &&
         mix_hdf5_write_text(file, root, "keras_version", model->semantics->keras_version) &&
         write_layers(file, model, root, layers) && write_group(file, group, own, model->semantics);
}

/* ---- the optimizer ---- */

bool mix_write_legacy_optimizer(mix_hdf5_writer *file, mix_model *model) {
  mix_list *saved = mix_optimizer_saved_variables(model->state->optimizer);
  if (!saved) return false;
  return !mix_list_count(saved) || write_group(file, "optimizer_weights", saved, model->semantics);
}
