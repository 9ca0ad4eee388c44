/* Checkpoints: collects, applies, writes and reads the state of a training run. */
#include "saving/checkpoint.h"

#include "base/alloc.h"
#include "base/error.h"
#include "distribute/distribute.h"
#include "base/json.h"
#include "base/philox.h"
#include "saving/checkpoint_folder.h"
#include "formats/file.h"
#include "optim/optimizer.h"
#include "data/pipeline/iterator_position.h"
#include "data/pipeline/pipeline.h"
#include "saving/run_identity.h"
#include "saving/training_variables.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_MAX = 512 };

static void checkpoint_finalize(void *object) {
  mix_checkpoint *checkpoint = object;
  mix_release(checkpoint->model);
  mix_release(checkpoint->optimizer);
  mix_release(checkpoint->variables);
  mix_release(checkpoint->data);
  json_decref(checkpoint->identity);
  mix_folder_lock_release(checkpoint->lock);
  for (int i = 0; i < checkpoint->value_count; i++) mix_release(checkpoint->values[i]);
  mix_free(checkpoint->value_names);
  mix_free(checkpoint->values);
}
static const mix_class checkpoint_class = {.name = "checkpoint", .finalize = checkpoint_finalize};

mix_checkpoint *mix_checkpoint_with(const mix_checkpoint_options *given) {
  MIX_OPTIONS(mix_checkpoint_options, options, given, "checkpoint");
  if (!options.folder || !*options.folder) return mix_fail_value("checkpoint: the folder's name is missing");
  if (options.model && !mix_model_weights_ready(options.model, "checkpoint")) return NULL;
  if (options.optimizer &&
      !mix_given(options.optimizer, &mix_optimizer_object_class, "checkpoint", "an optimizer"))
    return NULL;
  if (!options.optimizer && options.model) options.optimizer = mix_model_optimizer(options.model);
  for (int i = 0; options.variables && i < mix_list_count(options.variables); i++)
    if (!mix_is(mix_list_get(options.variables, i), &mix_variable_class))
      return mix_fail_type("checkpoint: item %d of variables is not a variable", i);
  mix_checkpoint *checkpoint = mix_object_new(sizeof *checkpoint, &checkpoint_class);
  if (!checkpoint) return NULL;
  checkpoint->folder = mix_intern(options.folder);
  checkpoint->model = mix_retain(options.model);
  checkpoint->optimizer = mix_retain(options.optimizer);
  checkpoint->variables = mix_retain(options.variables);
  checkpoint->only_newest = options.only_newest;
  checkpoint->force = options.force;
  checkpoint->newest = checkpoint->previous = -1;
  if (checkpoint->folder) checkpoint->identity = mix_run_identity_new(options.model, options.optimizer);
  if (checkpoint->identity && mix_run_identity_number(checkpoint->identity, "seed", (int64_t)options.seed))
    return mix_scoped(checkpoint);
  mix_release(checkpoint);
  return NULL;
}

static bool given(const mix_checkpoint *checkpoint, const char *call) {
  if (mix_failed()) return false;
  if (!mix_is(checkpoint, &checkpoint_class)) mix_fail_type("%s: expected a checkpoint", call);
  return !mix_failed();
}

/* ---- values of the user ---- */

static int value_named(const mix_checkpoint *checkpoint, const char *name) {
  for (int i = 0; i < checkpoint->value_count; i++)
    if (!strcmp(checkpoint->value_names[i], name)) return i;
  return -1;
}

static bool set_value(mix_checkpoint *checkpoint, const char *name, mix_tensor *value) {
  int i = value_named(checkpoint, name);
  if (i < 0) {
    const char *kept = mix_intern(name);
    if (!kept ||
        !mix_reserve(&checkpoint->value_names, &checkpoint->name_capacity, checkpoint->value_count + 1,
                     sizeof *checkpoint->value_names) ||
        !mix_reserve(&checkpoint->values, &checkpoint->value_capacity, checkpoint->value_count + 1,
                     sizeof *checkpoint->values))
      return false;
    i = checkpoint->value_count++;
    checkpoint->value_names[i] = kept;
    checkpoint->values[i] = NULL;
  }
  mix_retain(value);
  mix_release(checkpoint->values[i]);
  checkpoint->values[i] = value;
  return true;
}

mix_status mix_checkpoint_put(mix_checkpoint *checkpoint, const char *name, mix_tensor *value) {
  if (!given(checkpoint, "checkpoint_put")) return mix_error();
  if (!name || !*name || strlen(name) >= NAME_MAX / 2 || !mix_is(value, &mix_tensor_class))
    return mix_fail_status(MIX_TYPE_ERROR,
                           "checkpoint_put: expected a name of 1 to %d characters and a tensor",
                           NAME_MAX / 2 - 1);
  if (mix_evaluate(1, &value) == MIX_OK) set_value(checkpoint, name, value);
  return mix_error();
}

mix_tensor *mix_checkpoint_get(mix_checkpoint *checkpoint, const char *name) {
  if (!given(checkpoint, "checkpoint_get") || !name) return NULL;
  int i = value_named(checkpoint, name);
  return i < 0 ? NULL : checkpoint->values[i];
}

/* ---- collecting and applying ---- */

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

mix_archive *mix_checkpoint_collect(mix_checkpoint *checkpoint) {
  mix_archive *archive = mix_archive_new();
  if (!archive) return NULL;
  MIX_SCOPE {
    uint64_t seed[2];
    mix_seed_state(seed);
    mix_archive_put_integers(archive, "seed", 2, (const int64_t *)seed);
    mix_training_put_kind(archive, checkpoint->model, checkpoint->optimizer);
    mix_run_identity_put(checkpoint->identity, archive);
    if (checkpoint->model) {
      mix_training_put(archive, "weights", mix_model_weights(checkpoint->model));
      mix_training_put(archive, "generators", mix_training_generators(checkpoint->model));
      mix_list *states = mix_layer_states(checkpoint->model->layer);
      if (mix_list_count(states)) mix_training_put(archive, "states", states);
    }
    if (checkpoint->optimizer)
      mix_training_put(archive, "optimizer",
                       mix_training_optimizer_variables(checkpoint->optimizer, checkpoint->model));
    if (checkpoint->variables) mix_training_put(archive, "variables", checkpoint->variables);
    put_values(checkpoint, archive);
  }
  return mix_failed() ? NULL : archive;
}

bool mix_checkpoint_check_run(mix_checkpoint *checkpoint, mix_archive *archive) {
  return mix_training_check_kind(archive, checkpoint->model, checkpoint->optimizer) &&
         mix_run_identity_check(checkpoint->identity, archive);
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

/* The variables of a checkpoint and the values that they get. */
typedef struct restored {
  mix_list *variables, *values;
  mix_variable *kept; /* this one stays as it is; NULL: none */
} restored;

static void append_all(mix_list *to, mix_list *from) {
  for (int i = 0; from && i < mix_list_count(from); i++) mix_list_append(to, mix_list_items(from)[i]);
}

static bool get_group(mix_archive *archive, const char *group, mix_list *some, restored *all) {
  mix_list *values = mix_list_new(0, NULL);
  if (!mix_training_get(archive, group, some, values)) return false;
  append_all(all->variables, some);
  append_all(all->values, values);
  return !mix_failed();
}

/* A forced run of another optimizer begins it anew, and keeps its own learning rate. */
static bool get_optimizer(mix_checkpoint *checkpoint, mix_archive *archive, bool another, restored *all) {
  mix_optimizer *optimizer = checkpoint->optimizer;
  mix_list *variables = mix_training_optimizer_variables(optimizer, checkpoint->model);
  if (another) all->kept = mix_optimizer_plain(optimizer)->learning_rate;
  if (!variables) return false;
  const bool saved = mix_archive_has(archive, "optimizer/names");
  if ((saved || !another) && get_group(archive, "optimizer", variables, all)) return true;
  if (!another || (saved && !mix_checkpoint_forced(checkpoint))) return false;
  mix_log_message(MIX_LOG_WARNING, "checkpoint: %s begins anew", mix_optimizer_class_name(optimizer));
  return true;
}

static bool get_variables(mix_checkpoint *checkpoint, mix_archive *archive, restored *all) {
  mix_model *model = checkpoint->model;
  if (model && (!get_group(archive, "weights", mix_model_weights(model), all) ||
                !get_group(archive, "generators", mix_training_generators(model), all)))
    return false;
  mix_list *states = model ? mix_layer_states(model->layer) : NULL;
  if (mix_list_count(states) && !get_group(archive, "states", states, all)) return false;
  const bool another = !mix_checkpoint_check_run(checkpoint, archive);
  if (another && !mix_checkpoint_forced(checkpoint)) return false;
  if (checkpoint->optimizer && !get_optimizer(checkpoint, archive, another, all)) return false;
  return !checkpoint->variables || get_group(archive, "variables", checkpoint->variables, all);
}

bool mix_checkpoint_apply(mix_checkpoint *checkpoint, mix_archive *archive) {
  uint64_t seed[2];
  MIX_SCOPE {
    restored all = {mix_list_new(0, NULL), mix_list_new(0, NULL)};
    bool good = mix_archive_get_integers(archive, "seed", 2, (int64_t *)seed) &&
                get_variables(checkpoint, archive, &all);
    for (int i = 0; good && i < mix_list_count(all.variables); i++)
      if (mix_list_items(all.variables)[i] != all.kept)
        good = mix_variable_assign(mix_list_items(all.variables)[i], mix_list_items(all.values)[i]) == MIX_OK;
    if (good) mix_seed_restore(seed);
  }
  return !mix_failed();
}

/* ---- files ---- */

bool mix_checkpoint_lock(mix_checkpoint *checkpoint, bool make, const char *call) {
  struct stat status;
  if (mix_rank()) return true; /* rank 0 has the lock, and writes */
  if (make ? !mix_folder_make(checkpoint->folder) : stat(checkpoint->folder, &status) != 0 && errno == ENOENT)
    return !make; /* a folder that does not exist is nobody's */
  if (checkpoint->lock && mix_folder_lock_fits(checkpoint->lock, checkpoint->folder)) return true;
  mix_folder_lock_release(checkpoint->lock);
  return (checkpoint->lock = mix_folder_lock_take(checkpoint->folder, call)) != NULL;
}

/* No other process writes into the folder. */
static bool alone(const mix_checkpoint *checkpoint) {
  return checkpoint->lock && mix_folder_lock_fits(checkpoint->lock, checkpoint->folder) &&
         mix_folder_lock_excludes(checkpoint->lock);
}

bool mix_checkpoint_write(mix_checkpoint *checkpoint, mix_archive *archive, int64_t number) {
  if (!archive || mix_failed()) return false;
  if (mix_rank()) return checkpoint->newest = number, true;
  char *path = mix_checkpoint_lock(checkpoint, true, "checkpoint")
                   ? mix_checkpoint_folder_path(checkpoint->folder, number)
                   : NULL;
  bool done = path && mix_archive_save(archive, path, "checkpoint");
  mix_free(path);
  if (!done) return false;
  if (number != checkpoint->newest) checkpoint->previous = checkpoint->newest;
  checkpoint->newest = number;
  mix_checkpoint_folder_prune(checkpoint->folder, number, checkpoint->only_newest ? -1 : checkpoint->previous,
                              alone(checkpoint));
  return true;
}

void mix_checkpoint_remove(mix_checkpoint *checkpoint) {
  if (mix_rank()) return;
  mix_checkpoint_folder_remove(checkpoint->folder, alone(checkpoint));
}

/* NULL without an error if the file is damaged: logs a warning, and `damaged` keeps the message of the first
 * such file. A file that cannot be read now, as with too many open files, may be whole: that is an error. */
static mix_archive *try_file(const mix_checkpoint *checkpoint, int64_t number, char *damaged, size_t size) {
  char *path = mix_checkpoint_folder_path(checkpoint->folder, number), message[1024];
  mix_archive *archive = path ? mix_archive_load(path) : NULL;
  mix_free(path);
  if (archive || mix_error() != MIX_FORMAT_ERROR) return archive;
  mix_error_take(message, sizeof message);
  mix_log_message(MIX_LOG_WARNING, "checkpoint: %s", message);
  if (!*damaged) snprintf(damaged, size, "%s", message);
  return NULL;
}

mix_archive *mix_checkpoint_read(mix_checkpoint *checkpoint, int64_t *number) {
  char damaged[1024] = "";
  mix_archive *archive = NULL;
  int64_t limit = INT64_MAX;
  if (!mix_checkpoint_lock(checkpoint, false, "checkpoint")) return NULL;
  while (!archive && !mix_failed() &&
         (limit = mix_checkpoint_folder_newest(checkpoint->folder, limit, "checkpoint")) >= 0)
    archive = try_file(checkpoint, limit, damaged, sizeof damaged);
  if (!archive && !mix_failed() && *damaged)
    mix_fail_format("%s; the folder %s has no whole checkpoint: name another, or remove them to begin anew",
                    damaged, checkpoint->folder);
  if (!archive || mix_failed()) return NULL;
  *number = checkpoint->newest = limit;
  checkpoint->previous = mix_checkpoint_folder_newest(checkpoint->folder, limit, "checkpoint");
  return archive;
}

/* ---- for custom training loops ---- */

/* The data set of the iterator becomes part of the run's identity. */
static bool identify_data(mix_checkpoint *checkpoint, mix_iterator *iterator) {
  mix_dataset *data = iterator ? mix_iterator_dataset(iterator) : NULL;
  if (!data || data == checkpoint->data) return true;
  mix_retain(data);
  mix_release(checkpoint->data);
  checkpoint->data = data;
  return mix_run_identity_dataset(checkpoint->identity, "data set", data);
}

mix_status mix_checkpoint_save(mix_checkpoint *checkpoint, int64_t step, mix_iterator *iterator) {
  if (!given(checkpoint, "checkpoint_save")) return mix_error();
  if (iterator && !mix_given(iterator, &mix_iterator_class, "checkpoint_save", "an iterator or NULL"))
    return mix_error();
  if (step < 0)
    return mix_fail_status(MIX_VALUE_ERROR, "checkpoint_save: step is %lld; expected 0 or more",
                           (long long)step);
  int64_t existing = checkpoint->newest < 0 && !mix_rank()
                         ? mix_checkpoint_folder_newest(checkpoint->folder, INT64_MAX, "checkpoint_save")
                         : -1;
  if (existing >= 0)
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "checkpoint_save: %s holds checkpoint-%lld.npz of another run; restore it, or name another folder: "
        "it is not overwritten",
        checkpoint->folder, (long long)existing);
  MIX_SCOPE {
    mix_archive *archive = identify_data(checkpoint, iterator) ? mix_checkpoint_collect(checkpoint) : NULL;
    if (archive && iterator)
      mix_iterator_position_put(archive, "place", mix_iterator_dataset(iterator), iterator);
    mix_checkpoint_write(checkpoint, archive, step);
  }
  return mix_error();
}

static bool get_values(mix_checkpoint *checkpoint, mix_archive *archive) {
  char full[NAME_MAX];
  json_t *names = mix_archive_get_json(archive, "values");
  for (size_t i = 0; i < json_array_size(names) && !mix_failed(); i++) {
    const char *name = json_string_value(json_array_get(names, i));
    snprintf(full, sizeof full, "values/%s", name ? name : "");
    mix_tensor *value = mix_archive_get(archive, full);
    if (name && value) set_value(checkpoint, name, value);
  }
  json_decref(names);
  return !mix_failed();
}

/* Continues the pass `iterator` at the saved position, if one was saved. */
static bool get_position(mix_archive *archive, mix_iterator *iterator) {
  int64_t drawn = 0;
  if (!iterator || !mix_archive_has(archive, "place/drawn")) return true;
  return mix_iterator_position_get(archive, "place", mix_iterator_dataset(iterator), &drawn) &&
         mix_iterator_begin_anew(iterator) && mix_iterator_pass_over(iterator, drawn);
}

/* Checks everything before it changes anything. */
static bool restore(mix_checkpoint *checkpoint, mix_archive *archive, mix_iterator *iterator) {
  const bool placed = iterator && mix_archive_has(archive, "place/drawn");
  bool anew = false;
  if (placed && !mix_iterator_position_fits(archive, "place", mix_iterator_dataset(iterator)) &&
      !(anew = mix_checkpoint_forced(checkpoint)))
    return false;
  if (!identify_data(checkpoint, iterator)) return false;
  if (checkpoint->force && !anew && !mix_checkpoint_check_run(checkpoint, archive) &&
      !(anew = mix_checkpoint_forced(checkpoint)))
    return false;
  return mix_checkpoint_apply(checkpoint, archive) && get_values(checkpoint, archive) &&
         (anew || get_position(archive, iterator));
}

int64_t mix_checkpoint_restore(mix_checkpoint *checkpoint, mix_iterator *iterator) {
  if (!given(checkpoint, "checkpoint_restore")) return -1;
  if (iterator && !mix_given(iterator, &mix_iterator_class, "checkpoint_restore", "an iterator")) return -1;
  int64_t number = -1;
  MIX_SCOPE {
    mix_archive *archive = mix_checkpoint_read(checkpoint, &number);
    if (archive) restore(checkpoint, archive, iterator);
  }
  return mix_failed() ? -1 : number;
}

int64_t mix_checkpoint_latest(const char *folder) {
  if (mix_failed()) return -1;
  if (folder && *folder) return mix_checkpoint_folder_newest(folder, INT64_MAX, "checkpoint_latest");
  mix_fail_value("checkpoint_latest: the folder's name is missing");
  return -1;
}

mix_status mix_checkpoint_delete(mix_checkpoint *checkpoint) {
  if (!given(checkpoint, "checkpoint_delete")) return mix_error();
  if (!mix_checkpoint_lock(checkpoint, false, "checkpoint_delete")) return mix_error();
  mix_checkpoint_remove(checkpoint);
  checkpoint->newest = checkpoint->previous = -1;
  return MIX_OK;
}
