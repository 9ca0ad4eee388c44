/* A run's identity: what makes a training run another one, as JSON. Epochs, steps, threads, device, paths and
 * verbosity are no part of it, names of objects neither. */
#pragma once

#include "formats/archive.h"
#include "model/model.h"
#include <mixtape/dataset.h>

/* A new object with the configs of the model's layers, its losses and the optimizer as given (either may be
 * NULL), and the settings of the process that decide about numbers (accumulation, precision of float32,
 * determinism, graph rewrite). What has no config, such as a function of the user, is left out. NULL with
 * the error recorded. */
json_t *mix_run_identity_new(mix_model *model, mix_optimizer *optimizer);
/* Adds a value, and takes it; NULL is an error. */
bool mix_run_identity_set(json_t *identity, const char *name, json_t *value);
/* Adds the configs of the metrics of a compiled model. */
bool mix_run_identity_metrics(json_t *identity, const mix_model *model);
/* Adds a number. */
bool mix_run_identity_number(json_t *identity, const char *name, int64_t number);
/* Adds dtypes, shapes and SHA-256 of arrays (NULL items are left out). */
bool mix_run_identity_arrays(json_t *identity, const char *name, mix_list *arrays);
/* Adds the steps of a data set with their numbers, and its arrays. A generator has no digest: a warning. */
bool mix_run_identity_dataset(json_t *identity, const char *name, mix_dataset *dataset);

/* As "run" behind a prefix, which may be empty. */
bool mix_run_identity_put(json_t *identity, mix_archive *archive, const char *prefix);
/* ValueError that names the first difference. Only members that both have are compared: an older checkpoint
 * has none. */
bool mix_run_identity_check(json_t *identity, mix_archive *archive, const char *prefix);
/* The same with the identity of rank 0, as JSON text. */
bool mix_run_identity_compare(json_t *identity, const char *first);
