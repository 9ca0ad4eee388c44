/* Saves and restores a running fit for BackupAndRestore: the state of the run, and around it the checkpoint
 * of model and optimizer. */
#include "train/fit_state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/iterator_position.h"
#include "distribute/distribute.h"
#include "optim/shard.h"
#include "saving/run_identity.h"
#include "saving/training_variables.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Each rank has rows of its own, of which checkpoints know nothing. */
static bool has_own_rows(const mix_fit_state *f) {
  return f->options.rows == MIX_LOCAL && mix_is_distributed();
}

/* ---- the run: options that must not change ---- */

enum {
  RUN_DATASET,
  RUN_ROWS,
  RUN_BATCH_SIZE,
  RUN_STEPS_PER_EPOCH,
  RUN_NO_SHUFFLE,
  RUN_VALIDATES,
  RUN_NUMBERS
};
static const char *const run_names[RUN_NUMBERS] = {
    "data set in place of arrays", "rows", "batch_size", "steps_per_epoch", "no_shuffle", "validation"};

static void describe_run(const mix_fit_state *f, int64_t run[RUN_NUMBERS]) {
  const mix_batches *batches = f->adapter.batches;
  run[RUN_DATASET] = !batches;
  const bool shared = batches && !has_own_rows(f);
  run[RUN_ROWS] = shared ? mix_batches_rows(batches) : 0;
  run[RUN_BATCH_SIZE] = shared ? mix_batches_size(batches, 0) : 0;
  run[RUN_STEPS_PER_EPOCH] = f->options.steps_per_epoch;
  run[RUN_NO_SHUFFLE] = batches && f->options.no_shuffle;
  run[RUN_VALIDATES] = f->validation_x != NULL;
}

static bool same_run(const mix_fit_state *f) {
  int64_t ours[RUN_NUMBERS], theirs[RUN_NUMBERS];
  describe_run(f, ours);
  if (!mix_archive_get_integers(f->resumed, "fit/run", RUN_NUMBERS, theirs)) return false;
  for (int i = 0; i < RUN_NUMBERS; i++)
    if (ours[i] != theirs[i])
      return mix_fail_value(
          "fit: %s: %s is %lld here, %lld in the checkpoint; resume with the data and options of that run",
          mix_archive_path(f->resumed), run_names[i], (long long)ours[i], (long long)theirs[i]);
  return true;
}

/* ---- the position ---- */

enum {
  POSITION_EPOCH,
  POSITION_BATCH,
  POSITION_STEPS,
  POSITION_SEED,
  POSITION_FIRST_EPOCH,
  POSITION_STOPPED,
  POSITION_ENDED,
  POSITION_EPOCH_STEPS,
  POSITION_NUMBERS
};

static bool put_position(const mix_fit_state *f, mix_archive *archive, int64_t epoch, int64_t batch) {
  int64_t run[RUN_NUMBERS], position[POSITION_NUMBERS] = {[POSITION_EPOCH] = epoch,
                                                          [POSITION_BATCH] = batch,
                                                          [POSITION_STEPS] = f->history->steps,
                                                          [POSITION_SEED] = (int64_t)f->seed,
                                                          [POSITION_FIRST_EPOCH] = f->history->first_epoch,
                                                          [POSITION_STOPPED] = f->model->stop_training,
                                                          [POSITION_ENDED] = f->ended,
                                                          [POSITION_EPOCH_STEPS] = f->history->params.steps};
  describe_run(f, run);
  mix_archive_put_integers(archive, "fit/run", RUN_NUMBERS, run);
  mix_archive_put_integers(archive, "fit/place", POSITION_NUMBERS, position);
  if (mix_is_dataset(f->validation_x))
    mix_iterator_position_put(archive, "fit/validation", f->validation_x, NULL);
  return mix_data_adapter_put_position(&f->adapter, archive, batch == 0);
}

/* The rows of ranks that have their own may have become fewer. */
static bool is_in_epoch(const mix_fit_state *f) {
  const mix_data_adapter *adapter = &f->adapter;
  const int64_t batches = adapter->batches ? mix_batches_count(adapter->batches) : 0;
  if (adapter->batches && !adapter->continues && f->position > batches)
    mix_fail_value(
        "fit: %s was saved after batch %lld of an epoch, which has %lld here; resume with the data and "
        "options of that run",
        mix_archive_path(f->resumed), (long long)f->position, (long long)batches);
  return !mix_failed();
}

static bool get_position(mix_fit_state *f, int64_t *epoch) {
  int64_t position[POSITION_NUMBERS], drawn;
  const bool anew = f->checkpoint->another; /* the epoch begins anew: its data are others */
  if (!mix_archive_get_integers(f->resumed, "fit/place", POSITION_NUMBERS, position)) return false;
  if (position[POSITION_EPOCH] < 0 || position[POSITION_BATCH] < 0 ||
      position[POSITION_STEPS] < position[POSITION_BATCH])
    return mix_fail_format("%s: 'fit/place' is no place in a run", mix_archive_path(f->resumed));
  *epoch = position[POSITION_EPOCH];
  f->position = anew ? 0 : position[POSITION_BATCH];
  f->history->steps = position[POSITION_STEPS];
  f->seed = (uint64_t)position[POSITION_SEED];
  f->history->first_epoch = position[POSITION_FIRST_EPOCH];
  f->model->stop_training = position[POSITION_STOPPED] != 0;
  f->ended = position[POSITION_ENDED] != 0;
  if (anew) return true;
  f->history->params.steps = position[POSITION_EPOCH_STEPS];
  if (mix_is_dataset(f->validation_x) &&
      !mix_iterator_position_get(f->resumed, "fit/validation", f->validation_x, &drawn))
    return false;
  return is_in_epoch(f) && mix_data_adapter_get_position(&f->adapter, f->resumed);
}

/* ---- metrics: saved only within an epoch, whose start resets them ---- */

/* The names of metrics that layers add, whose variables come with the first step. */
static bool put_added(const mix_fit_state *f, mix_archive *archive) {
  const mix_compiled_state *state = f->model->state;
  json_t *names = json_array();
  for (int i = 0; i < state->metric_count; i++)
    if (state->metrics[i].added) mix_json_append(names, json_string(state->metrics[i].name));
  return mix_archive_put_json(archive, "metrics/added", names);
}

static bool get_added(const mix_fit_state *f) {
  json_t *names =
      mix_archive_has(f->resumed, "metrics/added") ? mix_archive_get_json(f->resumed, "metrics/added") : NULL;
  for (size_t i = 0; i < json_array_size(names) && !mix_failed(); i++) {
    const char *name = json_string_value(json_array_get(names, i));
    name ? (void)mix_model_added_metric(f->model, name)
         : (void)mix_fail_format("%s: 'metrics/added' is no list of names", mix_archive_path(f->resumed));
  }
  json_decref(names);
  return !mix_failed();
}

static bool put_metrics(const mix_fit_state *f, mix_archive *archive, int64_t batch) {
  return batch == 0 || (mix_training_put(archive, "metrics", mix_model_metrics_variables(f->model)) &&
                        put_added(f, archive));
}

static bool get_metrics(const mix_fit_state *f) {
  if (!get_added(f)) return false;
  mix_list *variables = mix_model_metrics_variables(f->model), *values = mix_list_new(0, NULL);
  if (!mix_training_get(f->resumed, "metrics", variables, values)) return false;
  for (int i = 0; i < mix_list_count(variables) && !mix_failed(); i++)
    mix_variable_assign(mix_list_get(variables, i), mix_list_get(values, i));
  return !mix_failed();
}

/* ---- the history ---- */

static bool put_history(const mix_history *history, mix_archive *archive) {
  int epochs = mix_list_count(history->epochs), count = 0, used = 0;
  for (int e = 0; e < epochs; e++) count += mix_logs_count(mix_list_get(history->epochs, e));
  double *values = mix_calloc((size_t)count + 1, sizeof *values);
  json_t *names = json_array();
  for (int e = 0; values && e < epochs; e++) {
    const mix_logs *logs = mix_list_get(history->epochs, e);
    json_t *row = json_array();
    for (int i = 0; i < mix_logs_count(logs); i++) {
      mix_json_append(row, json_string(mix_logs_name(logs, i)));
      values[used++] = mix_logs_value(logs, i);
    }
    mix_json_append(names, row);
  }
  mix_archive_put_json(archive, "history/names", names);
  if (values)
    mix_archive_put(archive, "history/values", mix_tensor_from(values, MIX_FLOAT64, MIX_SHAPE(count)));
  mix_free(values);
  return !mix_failed();
}

static bool get_history(mix_history *history, mix_archive *archive) {
  json_t *names = mix_archive_get_json(archive, "history/names");
  mix_tensor *tensor = names ? mix_archive_get(archive, "history/values") : NULL;
  bool fits = tensor && mix_tensor_dtype(tensor) == MIX_FLOAT64;
  const double *values = fits ? mix_tensor_data(tensor) : NULL;
  int64_t count = fits ? mix_shape_size(mix_tensor_shape(tensor)) : 0, used = 0;
  for (size_t e = 0; values && e < json_array_size(names) && !mix_failed(); e++) {
    const json_t *row = json_array_get(names, e);
    mix_logs *logs = mix_logs_new();
    for (size_t i = 0; logs && fits && i < json_array_size(row); i++) {
      const char *name = json_string_value(json_array_get(row, i));
      fits = name && used < count;
      if (fits) mix_logs_add(logs, name, values[used++]);
    }
    if (logs) mix_list_append(history->epochs, logs);
  }
  if (names && (!fits || used != count))
    mix_fail_format("%s: the history is none", mix_archive_path(archive));
  json_decref(names);
  return !mix_failed();
}

/* ---- callbacks ---- */

static bool put_callbacks(const mix_fit_state *f, mix_archive *archive) {
  char name[64];
  json_t *list = json_array();
  for (int i = 0; i < mix_list_count(f->callbacks.items) && !mix_failed(); i++) {
    const mix_callback *callback = mix_list_get(f->callbacks.items, i);
    mix_list *values =
        callback->options.get_state ? callback->options.get_state(callback->options.context) : NULL;
    for (int j = 0; values && j < mix_list_count(values); j++) {
      snprintf(name, sizeof name, "callbacks/%d/%d", i, j);
      mix_archive_put(archive, name, mix_list_get(values, j));
    }
    mix_json_append(list, json_pack("[s, i]", callback->options.name, values ? mix_list_count(values) : -1));
  }
  return mix_archive_put_json(archive, "callbacks", list);
}

/* The index in the checkpoint of the nth callback of a name; -1: not saved. `*count`: its number of
 * values. */
static int saved_callback(const json_t *list, const char *name, int nth, int *count) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *item = json_array_get(list, i);
    const char *theirs = json_string_value(json_array_get(item, 0));
    if (!theirs || strcmp(theirs, name) || nth-- != 0) continue;
    const json_t *saved = json_array_get(item, 1);
    return mix_json_int_read(saved, "callbacks", "a number of values", -1, INT_MAX, count) ? (int)i : -1;
  }
  return -1;
}

static bool get_callback(mix_fit_state *f, const json_t *list, int index) {
  const mix_callback *callback = mix_list_get(f->callbacks.items, index);
  int nth = 0, count = 0;
  for (int i = 0; i < index; i++)
    nth += !strcmp(mix_callback_name(mix_list_get(f->callbacks.items, i)), callback->options.name);
  int saved = saved_callback(list, callback->options.name, nth, &count);
  if (saved < 0 && !mix_failed())
    mix_log_message(MIX_LOG_WARNING, "fit: callback '%s' has no state in %s; it begins anew",
                    callback->options.name, mix_archive_path(f->resumed));
  if (saved < 0 || count < 0) return !mix_failed();
  mix_list *values = mix_list_new(0, NULL);
  for (int j = 0; j < count && !mix_failed(); j++) {
    char name[64];
    snprintf(name, sizeof name, "callbacks/%d/%d", saved, j);
    mix_tensor *value = mix_archive_get(f->resumed, name);
    if (!value) mix_fail_format("%s: '%s' is missing", mix_archive_path(f->resumed), name);
    mix_list_append(values, value);
  }
  mix_status status =
      mix_failed() ? MIX_OK : callback->options.set_state(callback->options.context, f->model, values);
  if (status != MIX_OK)
    mix_fail(status, "fit: callback '%s' could not take back its state", callback->options.name);
  return !mix_failed();
}

static bool get_callbacks(mix_fit_state *f) {
  json_t *list = mix_archive_get_json(f->resumed, "callbacks");
  for (int i = 0; list && i < mix_list_count(f->callbacks.items) && !mix_failed(); i++)
    if (((const mix_callback *)mix_list_get(f->callbacks.items, i))->options.set_state)
      MIX_SCOPE { get_callback(f, list, i); }
  json_decref(list);
  return !mix_failed();
}

/* ---- called by fit ---- */

/* The data, and the batch size of arrays, become part of the run's identity. */
static bool identify_data(mix_fit_state *f) {
  const mix_batches *batches = f->adapter.batches;
  json_t *identity = f->checkpoint->parts[0].identity;
  return mix_fit_identify_data(f, identity) &&
         (!batches || has_own_rows(f) ||
          mix_run_identity_number(identity, "batch_size", mix_batches_size(batches, 0)));
}

/* Without force only what the position needs is checked here, the rest with the variables. */
static bool may_resume(mix_fit_state *f) {
  if (same_run(f) && (!f->backup->force || mix_checkpoint_check_run(f->checkpoint, f->resumed))) return true;
  return mix_checkpoint_forced(f->checkpoint);
}

bool mix_backup_open(mix_fit_state *f) {
  for (int i = 0; f->callbacks.items && i < mix_list_count(f->callbacks.items); i++) {
    const mix_callback *callback = mix_list_get(f->callbacks.items, i);
    if (callback->backup && f->backup)
      return mix_fail_value("fit: two BackupAndRestore callbacks (%s and %s); give one", f->backup->folder,
                            callback->backup->folder);
    if (callback->backup) f->backup = callback->backup;
  }
  f->model->resumes = false;
  if (!f->backup) return true;
  if (f->adapter.dataset && has_own_rows(f))
    return mix_fail_unsupported(
        "fit: BackupAndRestore with .rows = MIX_LOCAL and a data set: the place of rank 0 alone is kept; "
        "give arrays, or .rows = MIX_SHARED");
  mix_checkpoint_options options = {.size = sizeof options,
                                    .folder = f->backup->folder,
                                    .model = f->model,
                                    .only_newest = f->backup->only_newest,
                                    .seed = f->options.seed,
                                    .force = f->backup->force};
  int64_t number;
  f->checkpoint = mix_checkpoint_with(&options);
  bool ready = f->checkpoint && identify_data(f) && mix_checkpoint_lock(f->checkpoint, true, "fit");
  f->resumed = ready ? mix_checkpoint_read(f->checkpoint, &number) : NULL;
  f->model->resumes = f->resumed != NULL;
  if (f->resumed && !mix_archive_get(f->resumed, "fit/run"))
    mix_fail_value("fit: %s was saved by mix_checkpoint_save, not by a fit; mix_checkpoint_restore takes it",
                   mix_archive_path(f->resumed));
  return !mix_failed() && (!f->resumed || may_resume(f));
}

bool mix_backup_resume(mix_fit_state *f, int64_t *epoch) {
  if (!f->resumed) return true;
  /* Checks that may fail come first, so that no variable has changed when they do. */
  if (!get_position(f, epoch) || !get_history(f->history, f->resumed) ||
      !mix_checkpoint_apply(f->checkpoint, f->resumed) || !get_callbacks(f))
    return false;
  mix_log_message(MIX_LOG_INFO, "fit: goes on from %s, after step %lld", mix_archive_path(f->resumed),
                  (long long)f->history->steps);
  return true;
}

bool mix_backup_resume_epoch(mix_fit_state *f) {
  bool done = false;
  MIX_SCOPE { done = mix_checkpoint_apply(f->checkpoint, f->resumed) && get_metrics(f); }
  return done;
}

static bool save(mix_fit_state *f, int64_t epoch, int64_t batch) {
  mix_optimizer *optimizer = f->model->state->optimizer;
  if (mix_optimizer_gather_state(optimizer, 0) != MIX_OK) return false;
  MIX_SCOPE {
    mix_archive *archive = mix_checkpoint_collect(f->checkpoint);
    if (archive && put_position(f, archive, epoch, batch) && put_metrics(f, archive, batch) &&
        put_history(f->history, archive) && put_callbacks(f, archive))
      mix_checkpoint_write(f->checkpoint, archive, f->history->steps);
  }
  f->batches_since = 0;
  return !mix_failed() && mix_shards_drop_gathered(optimizer);
}

bool mix_backup_after_step(mix_fit_state *f, int64_t epoch) {
  if (!f->backup) return true;
  bool due = f->backup->save_freq && ++f->batches_since >= f->backup->save_freq;
  return due || mix_fit_limit_reached(f) ? save(f, epoch, f->adapter.position) : true;
}

bool mix_backup_after_epoch(mix_fit_state *f, int64_t epoch) {
  /* The epoch was cut by fit's `steps`, in its middle or before a data set reported its end. That position is
   * already saved. */
  bool cut = mix_fit_limit_reached(f) && (f->adapter.position != f->adapter.target || f->adapter.iterator);
  return !f->backup || f->backup->save_freq || cut ? true : save(f, epoch + 1, 0);
}

void mix_backup_after_training(mix_fit_state *f) {
  if (f->backup && !f->backup->keep) mix_checkpoint_remove(f->checkpoint);
}
