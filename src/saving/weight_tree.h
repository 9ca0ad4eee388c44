/* The tree of model.weights.h5 (docs/spec/keras.md, 17.2): the objects of a model that hold variables, each
 * at its path. What reads and writes such files shares it. */
#pragma once

#include "model/model.h"

/* `path`: "" for the model, "layers/dense_1", "optimizer"; its variables belong into PATH/vars. `name`: of
 * the object. `variables`: own variables in the order of the file, trainable ones first; may be empty. Path
 * and list are borrowed from the scope of mix_visit_weight_tree's caller. */
typedef bool mix_weight_visit(void *context, const char *path, const char *name, mix_list *variables);
/* Calls `visit` for each object in Keras's order of the model's generation, each once: at the first of its
 * paths. Layers in a model are named after their classes; those in a layer, or in a subclassed model, have
 * their own names in the place of the attribute that holds them in Python. Last comes the
 * optimizer of a compiled model, if Keras finds it. Ends with the first false, which is the result. */
bool mix_visit_weight_tree(mix_model *model, mix_weight_visit *visit, void *context);
/* The same walk as if it had been at `skipped`, a layer of the model, and at all layers in it. */
bool mix_visit_weight_tree_without(mix_model *model, mix_layer *skipped, mix_weight_visit *visit,
                                   void *context);
/* The same walk over the layers alone. */
typedef bool mix_weight_layer_visit(void *context, const char *path, mix_layer *layer);
bool mix_visit_weight_layers(mix_model *model, mix_weight_layer_visit *visit, void *context);
/* Without a layer and all in it; NULL: none is left out. */
bool mix_visit_weight_layers_without(mix_model *model, mix_layer *skipped, mix_weight_layer_visit *visit,
                                     void *context);
/* The same for each place of a layer, as if another one stood there. Where tf_keras loads a model from an
 * archive it makes a layer for each, and looks for the weights of all. */
bool mix_visit_weight_places(mix_model *model, mix_weight_visit *visit, void *context);
/* Does a layer stand at several places? */
bool mix_weight_tree_repeats(mix_model *model);
/* True for the paths of the optimizer, where a file may have other variables than the model. */
bool mix_is_optimizer_path(const char *path);
/* The state of an optimizer that files of its generation hold, in their order: a new list. What is not built
 * yet is missing. */
mix_list *mix_optimizer_saved_variables(mix_optimizer *optimizer);
/* The same of a file in which the plain optimizer is wrapped by a loss-scale optimizer, or is not. */
mix_list *mix_optimizer_variables_of_file(mix_optimizer *optimizer, bool wrapped);
