/* Checkpoints: the object, its values, its files and its form in memory. */
#include "saving/checkpoint.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "distribute/distribute.h"
#include "base/json.h"
#include "saving/checkpoint_folder.h"
#include "formats/file.h"
#include "optim/shard.h"
#include "data/pipeline/iterator_position.h"
#include "data/pipeline/pipeline.h"
#include "saving/run_identity.h"
#include "saving/training_variables.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_MAX = 512 };
#define STEP "step"
#define TO_MEMORY "checkpoint_to_memory"
#define FROM_MEMORY "checkpoint_from_memory"

static void checkpoint_finalize(void *object) {
  mix_checkpoint *checkpoint = object;
  for (int i = 0; i < checkpoint->part_count; i++) {
    mix_release(checkpoint->parts[i].model);
    mix_release(checkpoint->parts[i].optimizer);
    json_decref(checkpoint->parts[i].identity);
  }
  mix_free(checkpoint->parts);
  mix_release(checkpoint->variables);
  mix_release(checkpoint->data);
  mix_folder_lock_release(checkpoint->lock);
  for (int i = 0; i < checkpoint->value_count; i++) mix_release(checkpoint->values[i]);
  mix_free(checkpoint->value_names);
  mix_free(checkpoint->values);
}
static const mix_class checkpoint_class = {.name = "checkpoint", .finalize = checkpoint_finalize};

/* ---- the object ---- */

static bool check_models(const mix_checkpoint_options *options) {
  if (options->model && options->models)
    return mix_fail_value("checkpoint: both .model and .models; give one of them");
  if (options->models && options->optimizer)
    return mix_fail_value("checkpoint: .models with .optimizer; give .optimizers, one for each model");
  if (options->optimizers && mix_list_count(options->optimizers) != mix_list_count(options->models))
    return mix_fail_value("checkpoint: %d optimizers and %d models; give one for each of .models, or NULL",
                          mix_list_count(options->optimizers), mix_list_count(options->models));
  if (options->models && !mix_list_count(options->models))
    return mix_fail_value("checkpoint: .models is an empty list; expected at least one model");
  return true;
}

static bool check_variables(mix_list *variables) {
  for (int i = 0; variables && i < mix_list_count(variables); i++)
    if (!mix_is(mix_list_get(variables, i), &mix_variable_class))
      return mix_fail_type("checkpoint: item %d of variables is not a variable", i);
  return true;
}

static bool fill_part(mix_checkpoint_part *part, mix_model *model, mix_optimizer *optimizer, uint64_t seed) {
  if (model && !mix_model_weights_ready(model, "checkpoint")) return false;
  if (optimizer && !mix_given(optimizer, &mix_optimizer_object_class, "checkpoint", "an optimizer"))
    return false;
  part->model = mix_retain(model);
  part->optimizer = mix_retain(!optimizer && model ? mix_model_optimizer(model) : optimizer);
  part->identity = mix_run_identity_new(part->model, part->optimizer);
  return part->identity && mix_run_identity_number(part->identity, "seed", (int64_t)seed);
}

static bool fill_parts(mix_checkpoint *checkpoint, const mix_checkpoint_options *options) {
  const int count = options->models ? mix_list_count(options->models) : 1;
  checkpoint->several = options->models != NULL;
  checkpoint->parts = mix_calloc((size_t)count, sizeof *checkpoint->parts);
  if (!checkpoint->parts) return false;
  checkpoint->part_count = count;
  if (!checkpoint->several)
    return fill_part(&checkpoint->parts[0], options->model, options->optimizer, options->seed);
  for (int i = 0; i < count; i++) {
    mix_optimizer *optimizer = options->optimizers ? mix_list_get(options->optimizers, i) : NULL;
    mix_model *model = mix_list_get(options->models, i);
    if (!mix_model_given(model, "checkpoint") ||
        !fill_part(&checkpoint->parts[i], model, optimizer, options->seed))
      return false;
  }
  return true;
}

mix_checkpoint *mix_checkpoint_with(const mix_checkpoint_options *given) {
  MIX_OWN_FLOAT_MODES;
  MIX_OPTIONS(mix_checkpoint_options, options, given, "checkpoint");
  if (options.folder && !*options.folder)
    return mix_fail_value("checkpoint: the folder's name is empty; NULL is a checkpoint in memory alone");
  if (!check_models(&options) || !check_variables(options.variables)) return NULL;
  mix_checkpoint *checkpoint = mix_object_new(sizeof *checkpoint, &checkpoint_class);
  if (!checkpoint) return NULL;
  checkpoint->folder = options.folder ? mix_intern(options.folder) : NULL;
  checkpoint->variables = mix_retain(options.variables);
  checkpoint->only_newest = options.only_newest;
  checkpoint->force = options.force;
  checkpoint->newest = checkpoint->previous = -1;
  if ((checkpoint->folder || !options.folder) && fill_parts(checkpoint, &options))
    return mix_scoped(checkpoint);
  mix_release(checkpoint);
  return NULL;
}

static bool given(const mix_checkpoint *checkpoint, const char *call) {
  if (mix_failed()) return false;
  if (!mix_is(checkpoint, &checkpoint_class)) mix_fail_type("%s: expected a checkpoint", call);
  return !mix_failed();
}

static bool has_folder(const mix_checkpoint *checkpoint, const char *call) {
  return checkpoint->folder || mix_fail_value("%s: the checkpoint has no folder, as it was made without "
                                              "one; use mix_checkpoint_to_memory and from_memory",
                                              call);
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
  return mix_run_identity_dataset(checkpoint->parts[0].identity, "data set", data);
}

/* The whole state, with the position of the iterator unless it is NULL; scoped. */
static mix_archive *collect_at(mix_checkpoint *checkpoint, int64_t step, mix_iterator *iterator) {
  mix_archive *archive = identify_data(checkpoint, iterator) ? mix_checkpoint_collect(checkpoint) : NULL;
  if (archive) mix_archive_put_integers(archive, STEP, 1, &step);
  if (archive && iterator)
    mix_iterator_position_put(archive, "place", mix_iterator_dataset(iterator), iterator);
  return mix_failed() ? NULL : archive;
}

static bool may_save(mix_checkpoint *checkpoint, int64_t step, mix_iterator *iterator, const char *call) {
  if (!given(checkpoint, call)) return false;
  if (iterator && !mix_given(iterator, &mix_iterator_class, call, "an iterator or NULL")) return false;
  return step >= 0 || mix_fail_value("%s: step is %lld; expected 0 or more", call, (long long)step);
}

mix_status mix_checkpoint_save(mix_checkpoint *checkpoint, int64_t step, mix_iterator *iterator) {
  MIX_OWN_FLOAT_MODES;
  if (!may_save(checkpoint, step, iterator, "checkpoint_save") || !has_folder(checkpoint, "checkpoint_save"))
    return mix_error();
  int64_t existing = checkpoint->newest < 0 && !mix_rank()
                         ? mix_checkpoint_folder_newest(checkpoint->folder, INT64_MAX, "checkpoint_save")
                         : -1;
  if (existing >= 0)
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "checkpoint_save: %s holds checkpoint-%lld.npz of another run; restore it, or name another folder: "
        "it is not overwritten",
        checkpoint->folder, (long long)existing);
  MIX_SCOPE { mix_checkpoint_write(checkpoint, collect_at(checkpoint, step, iterator), step); }
  return mix_error();
}

mix_tensor *mix_checkpoint_to_memory(mix_checkpoint *checkpoint, int64_t step, mix_iterator *iterator) {
  MIX_OWN_FLOAT_MODES;
  if (!may_save(checkpoint, step, iterator, TO_MEMORY)) return NULL;
  for (int i = 0; i < checkpoint->part_count; i++)
    if (checkpoint->parts[i].optimizer && !mix_shards_check_here(checkpoint->parts[i].optimizer)) return NULL;
  mix_tensor *bytes = NULL;
  MIX_SCOPE { bytes = mix_retain(mix_archive_to_memory(collect_at(checkpoint, step, iterator), TO_MEMORY)); }
  return mix_scoped(bytes);
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
  MIX_OWN_FLOAT_MODES;
  if (!given(checkpoint, "checkpoint_restore") || !has_folder(checkpoint, "checkpoint_restore")) return -1;
  if (iterator && !mix_given(iterator, &mix_iterator_class, "checkpoint_restore", "an iterator")) return -1;
  int64_t number = -1;
  MIX_SCOPE {
    mix_archive *archive = mix_checkpoint_read(checkpoint, &number);
    if (archive) restore(checkpoint, archive, iterator);
  }
  return mix_failed() ? -1 : number;
}

static bool get_step(mix_archive *archive, int64_t *step) {
  if (!mix_archive_get_integers(archive, STEP, 1, step)) return false;
  return *step >= 0 || mix_fail_format("%s: '" STEP "' is %lld", mix_archive_path(archive), (long long)*step);
}

int64_t mix_checkpoint_from_memory(mix_checkpoint *checkpoint, const void *data, size_t size,
                                   mix_iterator *iterator) {
  MIX_OWN_FLOAT_MODES;
  if (!given(checkpoint, FROM_MEMORY)) return -1;
  if (iterator && !mix_given(iterator, &mix_iterator_class, FROM_MEMORY, "an iterator")) return -1;
  if (!data) return mix_fail_type(FROM_MEMORY ": data is NULL"), -1;
  int64_t step = -1;
  MIX_SCOPE {
    mix_archive *archive = mix_archive_load_memory(FROM_MEMORY, data, size);
    if (archive && get_step(archive, &step)) restore(checkpoint, archive, iterator);
  }
  return mix_failed() ? -1 : step;
}

int64_t mix_checkpoint_latest(const char *folder) {
  if (mix_failed()) return -1;
  if (folder && *folder) return mix_checkpoint_folder_newest(folder, INT64_MAX, "checkpoint_latest");
  mix_fail_value("checkpoint_latest: the folder's name is missing");
  return -1;
}

mix_status mix_checkpoint_delete(mix_checkpoint *checkpoint) {
  if (!given(checkpoint, "checkpoint_delete") || !has_folder(checkpoint, "checkpoint_delete"))
    return mix_error();
  if (!mix_checkpoint_lock(checkpoint, false, "checkpoint_delete")) return mix_error();
  mix_checkpoint_remove(checkpoint);
  checkpoint->newest = checkpoint->previous = -1;
  return MIX_OK;
}
