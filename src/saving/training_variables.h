/* The variables of a training run, in groups, as values of a checkpoint; and the check that a model fits a
 * checkpoint. */
#pragma once

#include "formats/archive.h"
#include "model/model.h"

/* A new list: the states of the generators that the layers keep. */
mix_list *mix_training_generators(mix_model *model);
/* A new list: all state of an optimizer, loss scale and counter included. Builds the optimizer for the
 * model's variables first if it is not built. */
mix_list *mix_training_optimizer_variables(mix_optimizer *optimizer, mix_model *model);

/* Values under "GROUP/0", "GROUP/1", ..., names as "GROUP/names". */
bool mix_training_put(mix_archive *archive, const char *group, mix_list *variables);
/* Checks count, dtypes and shapes (ValueError that names the variable) and appends the values to `values`. */
bool mix_training_get(mix_archive *archive, const char *group, mix_list *variables, mix_list *values);

/* Ends the message of a checkpoint that is another run's. */
#define MIX_RESUME_REMEDY                                                                                    \
  "resume with what it was made with, or by force (--resume=force, .force), which begins the epoch anew"

/* Generation, classes and policies of the layers, and the optimizer (either may be NULL): what the variables
 * do not show. Under the name "kind" behind a prefix, which may be empty. */
bool mix_training_put_kind(mix_archive *archive, const char *prefix, mix_model *model,
                           mix_optimizer *optimizer);
bool mix_training_check_kind(mix_archive *archive, const char *prefix, mix_model *model,
                             mix_optimizer *optimizer);

/* Stores JSON as a text; takes over the reference. */
bool mix_archive_put_json(mix_archive *archive, const char *name, json_t *json);
/* An array or object; json_decref it. NULL with the error recorded. */
json_t *mix_archive_get_json(mix_archive *archive, const char *name);
