/* Folders in which KerasHub publishes models: config.json, the backbone; task.json, a task with it;
 * model.weights.h5, or shards of it, and task.weights.h5, the backbone's weights and those beside them. */
#pragma once

#include "saving/read_weights.h"

/* Has the folder weights for all layers of the model that it describes? A task may have a new head. */
bool mix_preset_has_all(const mix_keras_file *file);
/* Reads the weights of a folder into the reader's model: a backbone, or a task with one. Everything in the
 * files is checked before the first variable changes. The reader's file says only if weights are copied. */
bool mix_preset_read(const char *folder, const mix_weights_reader *reader);
/* Writes the folder of a model of KerasHub's classes or a class of mix_register_model, its files together
 * (formats/file_set.h). The files of a task that the folder had before go where the model has none. */
bool mix_preset_write(mix_model *model, const char *folder, const char *call);
