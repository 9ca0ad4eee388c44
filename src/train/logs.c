/* Logs of a batch or epoch, and the history of a fit. */
#include "train/logs.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void logs_finalize(void *object) { mix_free(((mix_logs *)object)->entries); }
static const mix_class logs_class = {.name = "logs", .finalize = logs_finalize};

mix_logs *mix_logs_new(void) { return mix_scoped(mix_object_new(sizeof(mix_logs), &logs_class)); }

bool mix_logs_add(mix_logs *logs, const char *name, double value) {
  if (!logs || !mix_reserve(&logs->entries, &logs->capacity, logs->count + 1, sizeof *logs->entries))
    return false;
  const char *kept = mix_intern(name);
  if (!kept) return false;
  logs->entries[logs->count].name = kept;
  logs->entries[logs->count++].value = value;
  return true;
}

bool mix_logs_merge(mix_logs *logs, const mix_logs *from, const char *prefix) {
  char name[256];
  for (int i = 0; from && i < from->count; i++) {
    snprintf(name, sizeof name, "%s%s", prefix, from->entries[i].name);
    if (!mix_logs_add(logs, name, from->entries[i].value)) return false;
  }
  return true;
}

mix_logs *mix_logs_of(int count, const char *const *names, const double *values) {
  if (mix_failed()) return NULL;
  for (int i = 0; i < count; i++)
    if (!names || !names[i] || !values) return mix_fail_type("logs_of: name %d or the values are NULL", i);
  mix_logs *logs = mix_logs_new();
  for (int i = 0; i < count; i++)
    if (!mix_logs_add(logs, names[i], values[i])) return NULL;
  return logs;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct mix_log_entry *)a)->name, ((const struct mix_log_entry *)b)->name);
}
void mix_logs_sort(mix_logs *logs) {
  if (logs->count > 1) qsort(logs->entries, (size_t)logs->count, sizeof *logs->entries, by_name);
}

int mix_logs_count(const mix_logs *logs) { return mix_is(logs, &logs_class) ? logs->count : 0; }
const char *mix_logs_name(const mix_logs *logs, int index) {
  return mix_is(logs, &logs_class) && index >= 0 && index < logs->count ? logs->entries[index].name : NULL;
}
double mix_logs_value(const mix_logs *logs, int index) {
  return mix_is(logs, &logs_class) && index >= 0 && index < logs->count ? logs->entries[index].value : NAN;
}
static int entry_named(const mix_logs *logs, const char *name) {
  for (int i = 0; mix_is(logs, &logs_class) && name && i < logs->count; i++)
    if (!strcmp(logs->entries[i].name, name)) return i;
  return -1;
}
bool mix_logs_has(const mix_logs *logs, const char *name) { return entry_named(logs, name) >= 0; }
double mix_logs_get(const mix_logs *logs, const char *name) {
  int i = entry_named(logs, name);
  return i >= 0 ? logs->entries[i].value : NAN;
}
mix_status mix_logs_set(mix_logs *logs, const char *name, double value) {
  if (mix_failed()) return mix_error();
  if (!mix_is(logs, &logs_class) || !name)
    return mix_fail_status(MIX_TYPE_ERROR, "logs_set: %s is NULL", logs ? "the name" : "logs");
  int i = entry_named(logs, name);
  if (i >= 0)
    logs->entries[i].value = value;
  else
    mix_logs_add(logs, name, value);
  return mix_error();
}

/* A later result of one name takes the place of an earlier one: in Keras 3 outputs of one layer share the
 * name of their losses. */
static bool put(mix_logs *logs, const char *name, double value) {
  const int i = entry_named(logs, name);
  if (i < 0) return mix_logs_add(logs, name, value);
  logs->entries[i].value = value;
  return true;
}

bool mix_logs_add_result(mix_logs *logs, const char *name, mix_tensor *result) {
  if (!result) return false;
  int64_t count = mix_shape_size(mix_tensor_shape(result));
  if (count == 1) return put(logs, name, mix_tensor_item(result));
  double *numbers = mix_alloc(sizeof *numbers * (size_t)count);
  bool good = numbers && mix_tensor_read(result, MIX_FLOAT64, numbers, count) == MIX_OK;
  for (int64_t i = 0; i < count && good; i++) {
    char text[280];
    snprintf(text, sizeof text, "%s[%lld]", name, (long long)i);
    good = mix_logs_add(logs, text, numbers[i]);
  }
  mix_free(numbers);
  return good;
}

mix_list *mix_model_results(mix_model *model) {
  mix_compiled_state *state = model->state;
  mix_list *results = mix_list_of(mix_metric_result_tensor(state->loss_tracker));
  for (int i = 0; i < state->tracker_count; i++)
    mix_list_append(results, mix_metric_result_tensor(state->trackers[i].metric));
  for (int i = 0; i < state->metric_count; i++)
    mix_list_append(results, mix_metric_result_tensor(state->metrics[i].metric));
  return mix_failed() ? NULL : results;
}

mix_logs *mix_model_logs_of(const mix_model *model, mix_list *results) {
  const mix_compiled_state *state = model->state;
  mix_logs *logs = mix_logs_new();
  int at = 0;
  if (!logs) return NULL;
  mix_logs_add_result(logs, "loss", mix_list_get(results, at++));
  for (int i = 0; i < state->tracker_count; i++)
    mix_logs_add_result(logs, state->trackers[i].name, mix_list_get(results, at++));
  for (int i = 0; i < state->metric_count; i++)
    mix_logs_add_result(logs, state->metrics[i].name, mix_list_get(results, at++));
  return mix_failed() ? NULL : logs;
}

/* Evaluates all results in one plan. */
mix_logs *mix_model_current_logs(mix_model *model) {
  mix_logs *logs = NULL;
  MIX_SCOPE {
    mix_list *results = mix_model_results(model);
    mix_tensor *const *tensors = results ? (mix_tensor *const *)mix_list_items(results) : NULL;
    if (results && mix_evaluate(mix_list_count(results), (mix_tensor **)tensors) == MIX_OK)
      logs = mix_retain(mix_model_logs_of(model, results));
  }
  return mix_scoped(logs);
}

/* ---- history ---- */

static void history_finalize(void *object) { mix_release(((mix_history *)object)->epochs); }
static const mix_class history_class = {.name = "history", .finalize = history_finalize};

mix_history *mix_history_new(void) {
  mix_history *history = mix_object_new(sizeof *history, &history_class);
  if (!history) return NULL;
  history->epochs = mix_retain(mix_list_new(0, NULL));
  return mix_scoped(history);
}

int64_t mix_history_epochs(const mix_history *history) {
  return mix_is(history, &history_class) && history->epochs ? mix_list_count(history->epochs) : 0;
}
int64_t mix_history_steps(const mix_history *history) {
  return mix_is(history, &history_class) ? history->steps : 0;
}
mix_history_params mix_history_get_params(const mix_history *history) {
  return mix_is(history, &history_class) ? history->params : (mix_history_params){0};
}
int64_t mix_history_epoch_number(const mix_history *history, int64_t epoch) {
  return epoch < 0 || epoch >= mix_history_epochs(history) ? -1 : history->first_epoch + epoch;
}
const mix_logs *mix_history_epoch(const mix_history *history, int64_t epoch) {
  if (epoch < 0 || epoch >= mix_history_epochs(history)) return NULL;
  return mix_list_get(history->epochs, (int)epoch);
}
