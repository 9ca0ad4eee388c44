/* The variables of a training, in groups, as values of a checkpoint; and what a model must be for a checkpoint to fit it. */
#ifndef MIX_SAVING_TRAINING_VARIABLES_H
#define MIX_SAVING_TRAINING_VARIABLES_H

#include "formats/archive.h"
#include "model/model.h"

/* New lists. The states of the generators that layers keep; ... */
mix_list *mix_training_generators(mix_model *model);
/* ... all state of an optimizer (built first for the model's variables where it is not), loss scale and counter with it. */
mix_list *mix_training_optimizer_variables(mix_optimizer *optimizer, mix_model *model);

/* Values under "GROUP/0", "GROUP/1", ..., names as "GROUP/names". */
bool mix_training_put(mix_archive *archive, const char *group, mix_list *variables);
/* Checks number, dtypes and shapes (ValueError that names the variable) and appends the values to a list. */
bool mix_training_get(mix_archive *archive, const char *group, mix_list *variables, mix_list *values);

/* Generation, classes and policies of the layers, optimizer (either may be NULL): what variables do not tell. */
bool mix_training_put_kind(mix_archive *archive, mix_model *model, mix_optimizer *optimizer);
bool mix_training_check_kind(mix_archive *archive, mix_model *model, mix_optimizer *optimizer);

/* JSON as a text; takes the reference. */
bool mix_archive_put_json(mix_archive *archive, const char *name, json_t *json);
/* An array or object; json_decref it. NULL with the error recorded. */
json_t *mix_archive_get_json(mix_archive *archive, const char *name);

#endif
