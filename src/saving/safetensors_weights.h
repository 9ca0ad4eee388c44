/* A model's weights as safetensors. */
#pragma once

#include "model/model.h"
#include <mixtape/saving.h>

/* Writes the weights under the names that archives of arrays have, or by the map at `map_path`, unless that
 * is NULL, as the tensors of which it makes them. False with the error recorded. */
bool mix_save_safetensors(mix_model *model, const char *path, const char *map_path, const char *call);
/* Reads them by the map at options->weight_map, or by name. Everything is checked before the first weight
 * changes. False with the error recorded. */
bool mix_load_safetensors(mix_model *model, const mix_load_weights_options *options, const char *call);
