/* EarlyStopping. */
#include "base/alloc.h"
#include "base/error.h"
#include "train/callback.h"
#include <math.h>

typedef struct early_stopping {
  mix_early_stopping_options options;
  mix_monitor monitor;
  double best, baseline; /* best NaN: none yet; baseline NaN: none */
  int64_t wait;
  mix_list *best_weights; /* retained */
} early_stopping;

static void early_release(void *context) {
  early_stopping *early = context;
  mix_release(early->best_weights);
  mix_free(early);
}

static mix_status early_begin(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  early_stopping *early = context;
  if (!mix_monitor_begin(&early->monitor, model)) return mix_error();
  early->wait = 0;
  early->best = mix_monitor_first_best(&early->monitor);
  mix_release(early->best_weights);
  early->best_weights = NULL;
  return MIX_OK;
}

static void save_weights(early_stopping *early, mix_model *model) {
  if (!early->options.restore_best_weights) return;
  mix_list *weights = mix_model_get_weights(model);
  if (!weights) return;
  mix_release(early->best_weights);
  early->best_weights = mix_retain(weights);
}

static mix_status early_epoch_end(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  early_stopping *early = context;
  double value;
  if (epoch < early->options.start_from_epoch || !mix_monitor_read(&early->monitor, logs, &value))
    return MIX_OK;
  if (!early->best_weights) save_weights(early, model); /* the first epoch's weights, if no epoch improves */
  early->wait++;
  double delta = early->options.min_delta;
  if (mix_monitor_better(&early->monitor, value, early->best, delta)) {
    early->best = value;
    save_weights(early, model);
    if (mix_monitor_better(&early->monitor, value, early->baseline, delta)) early->wait = 0;
  } else if (early->wait >= early->options.patience && epoch > 0)
    mix_model_set_stop_training(model, true);
  return mix_error();
}

static mix_status early_end(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  early_stopping *early = context;
  return early->best_weights ? mix_model_set_weights(model, early->best_weights) : MIX_OK;
}

/* The numbers, then the best weights if any. */
static mix_list *early_get_state(void *context) {
  early_stopping *early = context;
  mix_list *state =
      mix_numbers_state(3, (const double[]){(double)early->wait, early->best, !isnan(early->best)});
  for (int i = 0; early->best_weights && i < mix_list_count(early->best_weights); i++)
    mix_list_append(state, mix_list_get(early->best_weights, i));
  return state;
}
static mix_status early_set_state(void *context, mix_model *model, mix_list *state) {
  early_stopping *early = context;
  double numbers[3];
  if (!mix_numbers_of_state(state, 3, numbers, "early_stopping")) return mix_error();
  early->wait = (int64_t)numbers[0];
  early->best = numbers[2] != 0 ? numbers[1] : NAN;
  mix_list *weights = mix_list_count(state) > 1 ? mix_list_new(0, NULL) : NULL;
  for (int i = 1; weights && i < mix_list_count(state); i++) mix_list_append(weights, mix_list_get(state, i));
  mix_release(early->best_weights);
  early->best_weights = mix_retain(weights);
  return mix_error();
}

#define FIELD(member) MIX_FIELD(mix_early_stopping_options, member)
static const mix_field_row fields[] = {
    MIX_MONITOR_FIELD(mix_early_stopping_options),
    {FIELD(min_delta), &mix_field_number},
    {FIELD(patience), &mix_field_integer, .range = MIX_NOT_NEGATIVE},
    MIX_MODE_FIELD(mix_early_stopping_options),
    {FIELD(baseline), &mix_field_number, .number = NAN},
    {FIELD(restore_best_weights), &mix_field_boolean},
    {FIELD(start_from_epoch), &mix_field_integer, .range = MIX_NOT_NEGATIVE},
    {0}};
MIX_CALLBACK_KIND(early_stopping, fields)

mix_callback *mix_early_stopping_with(const mix_early_stopping_options *given) {
  mix_early_stopping_options options;
  if (!mix_callback_resolve(&mix_early_stopping_kind, given, &options)) return NULL;
  early_stopping *early = mix_calloc(1, sizeof *early);
  if (!early) return NULL;
  *early = (early_stopping){.options = options,
                            .monitor = mix_monitor_of(MIX_BY_EARLY_STOPPING, options.monitor, options.mode),
                            .baseline = options.baseline};
  return mix_callback_steers(MIX_CALLBACK_OWN(.name = "EarlyStopping", .context = early,
                                              .release = early_release, .on_train_begin = early_begin,
                                              .on_epoch_end = early_epoch_end, .on_train_end = early_end,
                                              .get_state = early_get_state, .set_state = early_set_state),
                             (mix_callback_steering){&mix_early_stopping_kind, &early->options, NULL});
}
