/* The monitored value of EarlyStopping, ReduceLROnPlateau and ModelCheckpoint, and its direction
 * (docs/spec/keras.md, 14). */
#include "base/alloc.h"
#include "base/error.h"
#include "train/callback.h"
#include <math.h>
#include <string.h>

/* The callback's name in messages. */
static const char *call_of(const mix_monitor *monitor) {
  static const char *const names[] = {"early_stopping", "reduce_lr_on_plateau", "model_checkpoint"};
  return names[monitor->by];
}

mix_monitor mix_monitor_of(mix_monitor_owner by, const char *name, const char *mode) {
  mix_monitor monitor = {.by = by, .name = name, .mode = MIX_MODE_AUTO};
  if (!strcmp(mode, "min")) monitor.mode = MIX_MODE_MIN;
  if (!strcmp(mode, "max")) monitor.mode = MIX_MODE_MAX;
  return monitor;
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && !strcmp(text + length - tail, end);
}

/* The direction of improvement of a metric: 1 up, -1 down, 0 unknown. Functions of the user, means and sums
 * have none. */
static int direction(const mix_metric *metric) {
  if (metric->chooses) return metric->chooses == MIX_CHOOSES_ACCURACY ? 1 : -1;
  if (metric->kind) return metric->kind->direction;
  return !metric->loss ? 0 : metric->loss->kind->function == mix_loss_cosine_similarity ? 1 : -1;
}

static int direction_of_name(const mix_model *model, const char *name) {
  if (!strncmp(name, "val_", 4)) name += 4;
  if (!strcmp(name, "loss") || ends_with(name, "_loss")) return -1;
  for (int i = 0; i < model->state->metric_count; i++)
    if (!strcmp(model->state->metrics[i].name, name)) return direction(model->state->metrics[i].metric);
  return 0;
}

/* tf_keras decides by the name alone. For an output "accent", only EarlyStopping treats val_accent_loss as a
 * loss. */
static bool name_means_up(const mix_monitor *monitor) {
  const char *name = monitor->name;
  switch (monitor->by) {
  case MIX_BY_EARLY_STOPPING:
    return ends_with(name, "acc") || ends_with(name, "accuracy") || ends_with(name, "auc");
  case MIX_BY_PLATEAU: return strstr(name, "acc");
  case MIX_BY_CHECKPOINT: break;
  }
  return strstr(name, "acc") || !strncmp(name, "fmeasure", 8);
}

bool mix_monitor_begin(mix_monitor *monitor, mix_model *model) {
  monitor->rules = model->semantics;
  if (monitor->mode != MIX_MODE_AUTO) {
    monitor->up = monitor->mode == MIX_MODE_MAX;
    return true;
  }
  if (!monitor->rules->monitor_by_metric) {
    monitor->up = name_means_up(monitor);
    return true;
  }
  int sign = direction_of_name(model, monitor->name);
  if (!sign)
    mix_fail_value("%s: it is not known whether '%s' is better larger or smaller; set mode to max or min",
                   call_of(monitor), monitor->name);
  monitor->up = sign > 0;
  return sign != 0;
}

bool mix_monitor_read(const mix_monitor *monitor, const mix_logs *logs, double *value) {
  *value = mix_logs_get(logs, monitor->name);
  if (mix_logs_has(logs, monitor->name)) return true;
  mix_log_message(MIX_LOG_WARNING, "%s: '%s', which it watches, is not in the logs", call_of(monitor),
                  monitor->name);
  return false;
}

bool mix_monitor_better(const mix_monitor *monitor, double value, double best, double delta) {
  if (isnan(best)) return !isnan(value);
  /* Whether delta is applied to the value or to the best decides ties, by rounding. Only tf_keras's plateau
   * accepts a negative delta as it is. */
  if (monitor->by == MIX_BY_PLATEAU && !monitor->rules->plateau_delta_on_value)
    best += monitor->up ? delta : -delta;
  else
    value -= monitor->up ? fabs(delta) : -fabs(delta);
  return monitor->up ? value > best : value < best;
}
double mix_monitor_first_best(const mix_monitor *monitor) {
  return monitor->rules->monitor_first_improves ? NAN : monitor->up ? -INFINITY : INFINITY;
}

mix_list *mix_numbers_state(int count, const double *numbers) {
  return mix_list_of(mix_tensor_from_doubles(numbers, MIX_FLOAT64, MIX_SHAPE(count)));
}

bool mix_numbers_of_state(mix_list *state, int count, double *numbers, const char *call) {
  mix_tensor *first = mix_list_count(state) ? mix_list_get(state, 0) : NULL;
  if (!first || mix_tensor_dtype(first) != MIX_FLOAT64 || mix_shape_size(mix_tensor_shape(first)) != count)
    return mix_fail_value("%s: the state in the checkpoint is another's", call);
  return mix_tensor_read(first, MIX_FLOAT64, numbers, count) == MIX_OK;
}
