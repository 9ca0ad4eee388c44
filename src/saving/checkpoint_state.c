/* The state of a checkpoint: what its models, optimizers and variables have goes into an archive and back. */
#include "saving/checkpoint.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "optim/optimizer.h"
#include "saving/run_identity.h"
#include "saving/training_variables.h"
#include <stdio.h>
#include <string.h>

enum { NAME_MAX = 512, PREFIX_MAX = 32 };
#define MODELS "models" /* the names of several models */

/* ---- collecting ---- */

/* A single model has no prefix. */
static const char *prefix_of(const mix_checkpoint *checkpoint, int part, char prefix[PREFIX_MAX]) {
  prefix[0] = '\0';
  if (checkpoint->several) snprintf(prefix, PREFIX_MAX, "model_%d/", part);
  return prefix;
}

static bool put_group(mix_archive *archive, const char *prefix, const char *group, mix_list *variables) {
  char name[PREFIX_MAX + 16];
  snprintf(name, sizeof name, "%s%s", prefix, group);
  return mix_training_put(archive, name, variables);
}

static bool put_values(const mix_checkpoint *checkpoint, mix_archive *archive) {
  char name[NAME_MAX];
  json_t *names = json_array();
  for (int i = 0; i < checkpoint->value_count && !mix_failed(); i++) {
    snprintf(name, sizeof name, "values/%s", checkpoint->value_names[i]);
    mix_archive_put(archive, name, checkpoint->values[i]);
    mix_json_append(names, json_string(checkpoint->value_names[i]));
  }
  return mix_archive_put_json(archive, "values", names);
}

static json_t *model_names(const mix_checkpoint *checkpoint) {
  json_t *names = json_array();
  for (int i = 0; i < checkpoint->part_count; i++)
    mix_json_append(names, json_string(mix_model_name(checkpoint->parts[i].model)));
  return names;
}

static void put_part(const mix_checkpoint_part *part, const char *prefix, mix_archive *archive) {
  mix_training_put_kind(archive, prefix, part->model, part->optimizer);
  mix_run_identity_put(part->identity, archive, prefix);
  if (part->model) {
    put_group(archive, prefix, "weights", mix_model_weights(part->model));
    put_group(archive, prefix, "generators", mix_training_generators(part->model));
    mix_list *states = mix_layer_states(part->model->layer);
    if (mix_list_count(states)) put_group(archive, prefix, "states", states);
  }
  if (part->optimizer)
    put_group(archive, prefix, "optimizer", mix_training_optimizer_variables(part->optimizer, part->model));
}

mix_archive *mix_checkpoint_collect(mix_checkpoint *checkpoint) {
  mix_archive *archive = mix_archive_new();
  char prefix[PREFIX_MAX];
  if (!archive) return NULL;
  MIX_SCOPE {
    uint64_t seed[2];
    mix_seed_state(seed);
    mix_archive_put_integers(archive, "seed", 2, (const int64_t *)seed);
    if (checkpoint->several) mix_archive_put_json(archive, MODELS, model_names(checkpoint));
    for (int i = 0; i < checkpoint->part_count && !mix_failed(); i++)
      put_part(&checkpoint->parts[i], prefix_of(checkpoint, i, prefix), archive);
    if (checkpoint->variables) mix_training_put(archive, "variables", checkpoint->variables);
    put_values(checkpoint, archive);
  }
  return mix_failed() ? NULL : archive;
}

/* ---- the models of an archive ---- */

static void put_names(mix_text *text, const json_t *names) {
  size_t i;
  json_t *name;
  json_array_foreach(names, i, name) {
    const char *shown = json_string_value(name);
    mix_text_put(text, "%s'%s'", i ? ", " : "", shown ? shown : "?");
  }
}

static bool fail_names(mix_archive *archive, const json_t *ours, const json_t *theirs) {
  mix_text text = {.grows = true};
  mix_text_put(&text, "%zu models here (", json_array_size(ours));
  put_names(&text, ours);
  mix_text_put(&text, "), %zu in the checkpoint (", json_array_size(theirs));
  put_names(&text, theirs);
  mix_text_put(&text, ")");
  if (!text.failed)
    mix_fail_value("%s: %s; give the models that it was made with, in the same order",
                   mix_archive_path(archive), text.text);
  mix_free(text.text);
  return false;
}

/* Models that are made anew may get other names, but none that another of the checkpoint has. */
static bool is_moved(const json_t *ours, const json_t *theirs) {
  for (size_t i = 0; i < json_array_size(ours); i++)
    for (size_t j = 0; j < json_array_size(theirs); j++)
      if (i != j && json_equal(json_array_get(ours, i), json_array_get(theirs, j)) &&
          !json_equal(json_array_get(ours, i), json_array_get(theirs, i)))
        return true;
  return false;
}

static bool check_models(const mix_checkpoint *checkpoint, mix_archive *archive) {
  const bool several = mix_archive_has(archive, MODELS);
  if (!several && !checkpoint->several) return true;
  if (!several)
    return mix_fail_value("%s: %d models here, one in the checkpoint; restore it with .model",
                          mix_archive_path(archive), checkpoint->part_count);
  json_t *theirs = mix_archive_get_json(archive, MODELS);
  json_t *ours = theirs && checkpoint->several ? model_names(checkpoint) : NULL;
  if (theirs && !checkpoint->several)
    mix_fail_value("%s: %zu models in the checkpoint; restore it with .models, a list of as many",
                   mix_archive_path(archive), json_array_size(theirs));
  else if (ours && !mix_failed() &&
           (json_array_size(ours) != json_array_size(theirs) || is_moved(ours, theirs)))
    fail_names(archive, ours, theirs);
  json_decref(ours);
  json_decref(theirs);
  return !mix_failed();
}

static bool check_part(const mix_checkpoint_part *part, const char *prefix, mix_archive *archive) {
  return mix_training_check_kind(archive, prefix, part->model, part->optimizer) &&
         mix_run_identity_check(part->identity, archive, prefix);
}

/* Begins the message of an error with the model that it is about. */
static void name_part(const mix_checkpoint *checkpoint, int i) {
  char message[MIX_ERROR_BYTES];
  if (!checkpoint->several || !mix_failed() || mix_error() == MIX_MEMORY_ERROR) return;
  const mix_status status = mix_error_take(message, sizeof message);
  mix_fail(status, "model %d of %d ('%s'): %s", i + 1, checkpoint->part_count,
           mix_model_name(checkpoint->parts[i].model), message);
}

bool mix_checkpoint_check_run(mix_checkpoint *checkpoint, mix_archive *archive) {
  char prefix[PREFIX_MAX];
  if (!check_models(checkpoint, archive)) return false;
  for (int i = 0; i < checkpoint->part_count && !mix_failed(); i++) {
    check_part(&checkpoint->parts[i], prefix_of(checkpoint, i, prefix), archive);
    name_part(checkpoint, i);
  }
  return !mix_failed();
}

bool mix_checkpoint_forced(mix_checkpoint *checkpoint) {
  char message[1024];
  if (!checkpoint->force || mix_error() != MIX_VALUE_ERROR) return false;
  mix_error_take(message, sizeof message);
  char *advice = strstr(message, "; resume with");
  if (advice) *advice = 0; /* which the user has not taken */
  if (!checkpoint->another) mix_log_message(MIX_LOG_WARNING, "checkpoint: resumed by force: %s", message);
  return checkpoint->another = true;
}

/* ---- applying ---- */

/* The variables of a checkpoint and the values that they get. */
typedef struct restored {
  mix_list *variables, *values;
  mix_list *kept; /* these variables stay as they are */
} restored;

static void append_all(mix_list *to, mix_list *from) {
  for (int i = 0; from && i < mix_list_count(from); i++) mix_list_append(to, mix_list_items(from)[i]);
}

static bool get_group(mix_archive *archive, const char *prefix, const char *group, mix_list *some,
                      restored *all) {
  char name[PREFIX_MAX + 16];
  mix_list *values = mix_list_new(0, NULL);
  snprintf(name, sizeof name, "%s%s", prefix, group);
  if (!mix_training_get(archive, name, some, values)) return false;
  append_all(all->variables, some);
  append_all(all->values, values);
  return !mix_failed();
}

/* A forced run of another optimizer begins it anew, and keeps its own learning rate. */
static bool get_optimizer(mix_checkpoint *checkpoint, const mix_checkpoint_part *part, const char *prefix,
                          mix_archive *archive, bool another, restored *all) {
  char names[PREFIX_MAX + 16];
  mix_optimizer *optimizer = part->optimizer;
  mix_list *variables = mix_training_optimizer_variables(optimizer, part->model);
  if (another) mix_list_append(all->kept, mix_optimizer_plain(optimizer)->learning_rate);
  if (!variables) return false;
  snprintf(names, sizeof names, "%soptimizer/names", prefix);
  const bool saved = mix_archive_has(archive, names);
  if ((saved || !another) && get_group(archive, prefix, "optimizer", variables, all)) return true;
  if (!another || (saved && !mix_checkpoint_forced(checkpoint))) return false;
  mix_log_message(MIX_LOG_WARNING, "checkpoint: %s begins anew", mix_optimizer_class_name(optimizer));
  return true;
}

static bool get_part(mix_checkpoint *checkpoint, const mix_checkpoint_part *part, const char *prefix,
                     mix_archive *archive, restored *all) {
  mix_model *model = part->model;
  if (model && (!get_group(archive, prefix, "weights", mix_model_weights(model), all) ||
                !get_group(archive, prefix, "generators", mix_training_generators(model), all)))
    return false;
  mix_list *states = model ? mix_layer_states(model->layer) : NULL;
  if (mix_list_count(states) && !get_group(archive, prefix, "states", states, all)) return false;
  const bool another = !check_part(part, prefix, archive);
  if (another && !mix_checkpoint_forced(checkpoint)) return false;
  return !part->optimizer || get_optimizer(checkpoint, part, prefix, archive, another, all);
}

static bool get_variables(mix_checkpoint *checkpoint, mix_archive *archive, restored *all) {
  char prefix[PREFIX_MAX];
  if (!check_models(checkpoint, archive)) return false;
  for (int i = 0; i < checkpoint->part_count && !mix_failed(); i++) {
    get_part(checkpoint, &checkpoint->parts[i], prefix_of(checkpoint, i, prefix), archive, all);
    name_part(checkpoint, i);
  }
  if (mix_failed()) return false;
  return !checkpoint->variables || get_group(archive, "", "variables", checkpoint->variables, all);
}

static bool is_kept(const restored *all, const void *variable) {
  for (int i = 0; i < mix_list_count(all->kept); i++)
    if (mix_list_items(all->kept)[i] == variable) return true;
  return false;
}

bool mix_checkpoint_apply(mix_checkpoint *checkpoint, mix_archive *archive) {
  uint64_t seed[2];
  MIX_SCOPE {
    restored all = {mix_list_new(0, NULL), mix_list_new(0, NULL), mix_list_new(0, NULL)};
    bool good = mix_archive_get_integers(archive, "seed", 2, (int64_t *)seed) &&
                get_variables(checkpoint, archive, &all);
    for (int i = 0; good && i < mix_list_count(all.variables); i++)
      if (!is_kept(&all, mix_list_items(all.variables)[i]))
        good = mix_variable_assign(mix_list_items(all.variables)[i], mix_list_items(all.values)[i]) == MIX_OK;
    if (good) mix_seed_restore(seed);
  }
  return !mix_failed();
}
