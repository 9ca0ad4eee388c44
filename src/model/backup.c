/* What BackupAndRestore has fit do: the state of a run around that of its model and optimizer, into checkpoints and back. */
#include "model/fitting.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/checkpoint_folder.h"
#include "data/pipeline.h"
#include "data/place.h"
#include "model/training_variables.h"
#include <stdio.h>
#include <string.h>

/* ---- the run: what must be the same ---- */

enum { RUN_DATASET, RUN_ROWS, RUN_BATCH_SIZE, RUN_STEPS_PER_EPOCH, RUN_NO_SHUFFLE, RUN_VALIDATES, RUN_NUMBERS };
static const char *const run_names[RUN_NUMBERS] = {
    "data set in place of arrays", "rows", "batch_size", "steps_per_epoch", "no_shuffle", "validation"};

static void describe_run(const mix_fitting *f, int64_t run[RUN_NUMBERS]) {
  const mix_batches *batches = f->feed.batches;
  run[RUN_DATASET] = !batches;
  run[RUN_ROWS] = batches ? mix_batches_rows(batches) : 0;
  run[RUN_BATCH_SIZE] = batches ? mix_batches_size(batches, 0) : 0;
  run[RUN_STEPS_PER_EPOCH] = f->options.steps_per_epoch;
  run[RUN_NO_SHUFFLE] = batches && f->options.no_shuffle;
  run[RUN_VALIDATES] = f->validation_x != NULL;
}

static bool same_run(const mix_fitting *f) {
  int64_t ours[RUN_NUMBERS], theirs[RUN_NUMBERS];
  describe_run(f, ours);
  if (!mix_state_get_integers(f->resumed, "fit/run", RUN_NUMBERS, theirs)) return false;
  for (int i = 0; i < RUN_NUMBERS; i++)
    if (ours[i] != theirs[i]) {
      mix_fail(MIX_VALUE_ERROR, "fit: %s: %s is %lld here, %lld in the checkpoint; resume with the data and options of that run",
               mix_state_path(f->resumed), run_names[i], (long long)ours[i], (long long)theirs[i]);
      return false;
    }
  return true;
}

/* ---- the place ---- */

enum {
  PLACE_EPOCH,
  PLACE_BATCH,
  PLACE_STEPS,
  PLACE_SEED,
  PLACE_FIRST_EPOCH,
  PLACE_STOPPED,
  PLACE_ENDED,
  PLACE_EPOCH_STEPS,
  PLACE_NUMBERS
};

static bool put_place(const mix_fitting *f, mix_state *state, int64_t epoch, int64_t batch) {
  int64_t run[RUN_NUMBERS], place[PLACE_NUMBERS] = {[PLACE_EPOCH] = epoch,
                                                    [PLACE_BATCH] = batch,
                                                    [PLACE_STEPS] = f->history->steps,
                                                    [PLACE_SEED] = (int64_t)f->seed,
                                                    [PLACE_FIRST_EPOCH] = f->history->first_epoch,
                                                    [PLACE_STOPPED] = f->model->stop_training,
                                                    [PLACE_ENDED] = f->ended,
                                                    [PLACE_EPOCH_STEPS] = f->history->params.steps};
  describe_run(f, run);
  mix_state_put_integers(state, "fit/run", RUN_NUMBERS, run);
  mix_state_put_integers(state, "fit/place", PLACE_NUMBERS, place);
  if (mix_is_dataset(f->validation_x)) mix_place_put(state, "fit/validation", f->validation_x, NULL);
  return mix_feed_put_place(&f->feed, state, batch == 0);
}

static bool get_place(mix_fitting *f, int64_t *epoch) {
  int64_t place[PLACE_NUMBERS], drawn;
  if (!mix_state_get_integers(f->resumed, "fit/place", PLACE_NUMBERS, place)) return false;
  if (place[PLACE_EPOCH] < 0 || place[PLACE_BATCH] < 0 || place[PLACE_STEPS] < place[PLACE_BATCH]) {
    mix_fail(MIX_FORMAT_ERROR, "%s: 'fit/place' is no place in a run", mix_state_path(f->resumed));
    return false;
  }
  *epoch = place[PLACE_EPOCH];
  f->position = place[PLACE_BATCH];
  f->history->steps = place[PLACE_STEPS];
  f->seed = (uint64_t)place[PLACE_SEED];
  f->history->first_epoch = place[PLACE_FIRST_EPOCH];
  f->model->stop_training = place[PLACE_STOPPED] != 0;
  f->ended = place[PLACE_ENDED] != 0;
  f->history->params.steps = place[PLACE_EPOCH_STEPS];
  if (mix_is_dataset(f->validation_x) && !mix_place_get(f->resumed, "fit/validation", f->validation_x, &drawn)) return false;
  return mix_feed_get_place(&f->feed, f->resumed);
}

/* ---- metrics: within an epoch, which begins with a reset ---- */

static bool put_metrics(const mix_fitting *f, mix_state *state, int64_t batch) {
  return batch == 0 || mix_training_put(state, "metrics", mix_model_metrics_variables(f->model));
}

static bool get_metrics(const mix_fitting *f) {
  mix_list *variables = mix_model_metrics_variables(f->model), *values = mix_list_new(0, NULL);
  if (!mix_training_get(f->resumed, "metrics", variables, values)) return false;
  for (int i = 0; i < mix_list_count(variables) && !mix_failed(); i++)
    mix_variable_assign(mix_list_get(variables, i), mix_list_get(values, i));
  return !mix_failed();
}

/* ---- the history ---- */

static bool put_history(const mix_history *history, mix_state *state) {
  int epochs = mix_list_count(history->epochs), count = 0, used = 0;
  for (int e = 0; e < epochs; e++) count += mix_logs_count(mix_list_get(history->epochs, e));
  double *values = mix_calloc((size_t)count + 1, sizeof *values);
  json_t *names = json_array();
  for (int e = 0; values && e < epochs; e++) {
    const mix_logs *logs = mix_list_get(history->epochs, e);
    json_t *row = json_array();
    for (int i = 0; i < mix_logs_count(logs); i++) {
      json_array_append_new(row, json_string(mix_logs_name(logs, i)));
      values[used++] = mix_logs_value(logs, i);
    }
    json_array_append_new(names, row);
  }
  mix_state_put_json(state, "history/names", names);
  if (values) mix_state_put(state, "history/values", mix_tensor_from(values, MIX_FLOAT64, MIX_SHAPE(count)));
  mix_free(values);
  return !mix_failed();
}

static bool get_history(mix_history *history, mix_state *state) {
  json_t *names = mix_state_get_json(state, "history/names");
  mix_tensor *tensor = names ? mix_state_get(state, "history/values") : NULL;
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
  if (names && (!fits || used != count)) mix_fail(MIX_FORMAT_ERROR, "%s: the history is none", mix_state_path(state));
  json_decref(names);
  return !mix_failed();
}

/* ---- callbacks ---- */

static bool put_callbacks(const mix_fitting *f, mix_state *state) {
  char name[64];
  json_t *list = json_array();
  for (int i = 0; i < mix_list_count(f->callbacks.items) && !mix_failed(); i++) {
    const mix_callback *callback = mix_list_get(f->callbacks.items, i);
    mix_list *values = callback->options.get_state ? callback->options.get_state(callback->options.context) : NULL;
    for (int j = 0; values && j < mix_list_count(values); j++) {
      snprintf(name, sizeof name, "callbacks/%d/%d", i, j);
      mix_state_put(state, name, mix_list_get(values, j));
    }
    json_array_append_new(list, json_pack("[s, i]", callback->options.name, values ? mix_list_count(values) : -1));
  }
  return mix_state_put_json(state, "callbacks", list);
}

/* The place in the checkpoint of the nth callback of a name, -1: it has no such; *count: its values. */
static int saved_callback(const json_t *list, const char *name, int nth, int *count) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *item = json_array_get(list, i);
    const char *theirs = json_string_value(json_array_get(item, 0));
    *count = (int)json_integer_value(json_array_get(item, 1));
    if (theirs && !strcmp(theirs, name) && nth-- == 0) return (int)i;
  }
  return -1;
}

static bool get_callback(mix_fitting *f, const json_t *list, int index) {
  const mix_callback *callback = mix_list_get(f->callbacks.items, index);
  int nth = 0, count = 0;
  for (int i = 0; i < index; i++) nth += !strcmp(mix_callback_name(mix_list_get(f->callbacks.items, i)), callback->options.name);
  int saved = saved_callback(list, callback->options.name, nth, &count);
  if (saved < 0)
    mix_log_message(MIX_LOG_WARNING, "fit: callback '%s' has no state in %s; it begins anew", callback->options.name,
                    mix_state_path(f->resumed));
  if (saved < 0 || count < 0) return true;
  mix_list *values = mix_list_new(0, NULL);
  for (int j = 0; j < count && !mix_failed(); j++) {
    char name[64];
    snprintf(name, sizeof name, "callbacks/%d/%d", saved, j);
    mix_tensor *value = mix_state_get(f->resumed, name);
    if (!value) mix_fail(MIX_FORMAT_ERROR, "%s: '%s' is missing", mix_state_path(f->resumed), name);
    mix_list_append(values, value);
  }
  mix_status status = mix_failed() ? MIX_OK : callback->options.set_state(callback->options.context, f->model, values);
  if (status != MIX_OK) mix_fail(status, "fit: callback '%s' could not take back its state", callback->options.name);
  return !mix_failed();
}

static bool get_callbacks(mix_fitting *f) {
  json_t *list = mix_state_get_json(f->resumed, "callbacks");
  for (int i = 0; list && i < mix_list_count(f->callbacks.items) && !mix_failed(); i++)
    if (((const mix_callback *)mix_list_get(f->callbacks.items, i))->options.set_state)
      MIX_SCOPE { get_callback(f, list, i); }
  json_decref(list);
  return !mix_failed();
}

/* ---- fit's calls ---- */

bool mix_backup_open(mix_fitting *f) {
  for (int i = 0; f->callbacks.items && i < mix_list_count(f->callbacks.items); i++) {
    const mix_callback *callback = mix_list_get(f->callbacks.items, i);
    if (callback->backup && f->backup) {
      mix_fail(MIX_VALUE_ERROR, "fit: two BackupAndRestore callbacks (%s and %s); give one", f->backup->folder,
               callback->backup->folder);
      return false;
    }
    if (callback->backup) f->backup = callback->backup;
  }
  f->model->resumes = false;
  if (!f->backup) return true;
  mix_checkpoint_options options = {
      .size = sizeof options, .folder = f->backup->folder, .model = f->model, .only_newest = f->backup->only_newest};
  int64_t number;
  f->checkpoint = mix_checkpoint_with(&options);
  f->resumed = f->checkpoint ? mix_checkpoint_read(f->checkpoint, &number) : NULL;
  f->model->resumes = f->resumed != NULL;
  if (f->resumed && !mix_state_get(f->resumed, "fit/run"))
    mix_fail(MIX_VALUE_ERROR, "fit: %s was saved by mix_checkpoint_save, not by a fit; mix_checkpoint_restore takes it",
             mix_state_path(f->resumed));
  return !mix_failed() && (!f->resumed || same_run(f));
}

bool mix_backup_resume(mix_fitting *f, int64_t *epoch) {
  if (!f->resumed) return true;
  /* What may not fit comes first: then no variable has changed. */
  if (!get_place(f, epoch) || !get_history(f->history, f->resumed) || !mix_checkpoint_apply(f->checkpoint, f->resumed) ||
      !get_callbacks(f))
    return false;
  mix_log_message(MIX_LOG_INFO, "fit: goes on from %s, after step %lld", mix_state_path(f->resumed), (long long)f->history->steps);
  return true;
}

bool mix_backup_resume_epoch(mix_fitting *f) {
  bool done = false;
  MIX_SCOPE { done = mix_checkpoint_apply(f->checkpoint, f->resumed) && get_metrics(f); }
  return done;
}

static bool save(mix_fitting *f, int64_t epoch, int64_t batch) {
  MIX_SCOPE {
    mix_state *state = mix_checkpoint_collect(f->checkpoint);
    if (state && put_place(f, state, epoch, batch) && put_metrics(f, state, batch) && put_history(f->history, state) &&
        put_callbacks(f, state))
      mix_checkpoint_write(f->checkpoint, state, f->history->steps);
  }
  f->batches_since = 0;
  return !mix_failed();
}

bool mix_backup_after_step(mix_fitting *f, int64_t epoch) {
  if (!f->backup) return true;
  bool due = f->backup->save_freq && ++f->batches_since >= f->backup->save_freq;
  return due || mix_fit_limit_reached(f) ? save(f, epoch, f->feed.position) : true;
}

bool mix_backup_after_epoch(mix_fitting *f, int64_t epoch) {
  /* Cut off by fit's `steps`, in its middle or before a data set has said that it is at its end: that place is saved already. */
  bool cut = mix_fit_limit_reached(f) && (f->feed.position != f->feed.target || f->feed.iterator);
  return !f->backup || f->backup->save_freq || cut ? true : save(f, epoch + 1, 0);
}

void mix_backup_after_training(mix_fitting *f) {
  if (f->backup && !f->backup->keep) mix_checkpoint_folder_remove(f->backup->folder);
}
