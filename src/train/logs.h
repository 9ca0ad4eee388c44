/* Logs of a batch or epoch, and the history of a fit. */
#pragma once

#include "model/model.h"

struct mix_logs {
  mix_object object;
  int count, capacity;
  struct mix_log_entry {
    const char *name;
    double value;
  } * entries;
};
mix_logs *mix_logs_new(void);                                      /* scoped */
bool mix_logs_add(mix_logs *logs, const char *name, double value); /* interns the name */
/* Current values of loss, losses of outputs, and metrics. */
mix_logs *mix_model_current_logs(mix_model *model);
/* The same as a list of tensors, and the logs of its values. */
mix_list *mix_model_results(mix_model *model);
mix_logs *mix_model_logs_of(const mix_model *model, mix_list *results);
/* finished_logs.c: the latest values of a pass that can be read without waiting for a step; NULL: none yet,
 * or with the error recorded. Where a device cannot tell, the current ones. */
mix_logs *mix_model_finished_logs(mix_model *model);
/* The metrics were reset: no earlier value is shown. */
void mix_model_forget_logs(mix_model *model);
/* Adds all entries of `from`, with prefixed names. */
bool mix_logs_merge(mix_logs *logs, const mix_logs *from, const char *prefix);
/* Adds a metric's result. Several numbers become "name[0]", "name[1]", ... */
bool mix_logs_add_result(mix_logs *logs, const char *name, mix_tensor *result);
void mix_logs_sort(mix_logs *logs);

struct mix_history {
  mix_object object;
  mix_list *epochs; /* of mix_logs */
  int64_t steps, first_epoch;
  mix_history_params params;
};
mix_history *mix_history_new(void);
