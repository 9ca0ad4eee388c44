/* LearningRateScheduler and ReduceLROnPlateau: callbacks that set the learning rate. */
#include "base/alloc.h"
#include "base/error.h"
#include "train/callback.h"
#include <math.h>

static mix_status log_rate(mix_model *model, mix_logs *logs) {
  return mix_logs_set(logs, model->semantics->learning_rate_log,
                      mix_optimizer_learning_rate(mix_model_optimizer(model)));
}

/* ---- LearningRateScheduler ---- */

typedef struct scheduler {
  mix_learning_rate_function schedule;
  void *context;
} scheduler;

static mix_status scheduler_epoch_begin(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  scheduler *s = context;
  mix_optimizer *optimizer = mix_model_optimizer(model);
  if (!mix_optimizer_learning_rate_variable(optimizer))
    return mix_fail_status(
        MIX_TYPE_ERROR,
        "learning_rate_scheduler: the optimizer's learning rate follows a schedule of its own; "
        "give it a number");
  double rate = s->schedule(s->context, epoch, mix_optimizer_learning_rate(optimizer));
  if (!mix_failed() && !isfinite(rate))
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "learning_rate_scheduler: the schedule gave %g for epoch %lld; expected a finite number", rate,
        (long long)epoch);
  return mix_optimizer_set_learning_rate(optimizer, rate);
}
static mix_status scheduler_epoch_end(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  return log_rate(model, logs);
}

/* Text cannot make it, for it has a function. */
static const mix_callback_kind scheduler_kind = {.name = "learning_rate_scheduler"};

mix_callback *mix_learning_rate_scheduler(mix_learning_rate_function schedule, void *context) {
  if (mix_failed()) return NULL;
  if (!schedule)
    return mix_fail_type("learning_rate_scheduler: schedule is NULL; expected a function of the epoch");
  scheduler *s = mix_alloc(sizeof *s);
  if (!s) return NULL;
  *s = (scheduler){schedule, context};
  return mix_callback_steers(MIX_CALLBACK_OWN(.name = "LearningRateScheduler", .context = s,
                                              .release = mix_free, .on_epoch_begin = scheduler_epoch_begin,
                                              .on_epoch_end = scheduler_epoch_end),
                             (mix_callback_steering){.kind = &scheduler_kind});
}

/* ---- ReduceLROnPlateau ---- */

typedef struct plateau {
  mix_reduce_lr_on_plateau_options options;
  mix_monitor monitor;
  double best; /* NaN: none yet */
  int64_t wait, cooldown_left;
} plateau;

static mix_status plateau_begin(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  plateau *p = context;
  if (!mix_monitor_begin(&p->monitor, model)) return mix_error();
  if (!mix_optimizer_learning_rate_variable(mix_model_optimizer(model)))
    return mix_fail_status(
        MIX_TYPE_ERROR, "reduce_lr_on_plateau: the optimizer's learning rate follows a schedule of its own; "
                        "give it a number");
  p->best = mix_monitor_first_best(&p->monitor);
  p->wait = p->cooldown_left = 0;
  return MIX_OK;
}

static mix_status plateau_epoch_end(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  plateau *p = context;
  double value;
  if (log_rate(model, logs) != MIX_OK || !mix_monitor_read(&p->monitor, logs, &value)) return mix_error();
  if (p->cooldown_left > 0) p->cooldown_left--, p->wait = 0;
  if (mix_monitor_better(&p->monitor, value, p->best, p->options.min_delta)) {
    p->best = value;
    p->wait = 0;
    return MIX_OK;
  }
  if (p->cooldown_left > 0 || ++p->wait < p->options.patience) return MIX_OK;
  double rate = mix_optimizer_learning_rate(mix_model_optimizer(model));
  if (!(rate > (double)(float)p->options.min_lr)) return mix_error();
  p->cooldown_left = p->options.cooldown;
  p->wait = 0;
  return mix_optimizer_set_learning_rate(mix_model_optimizer(model),
                                         fmax(rate * p->options.factor, p->options.min_lr));
}

static mix_list *plateau_get_state(void *context) {
  const plateau *p = context;
  return mix_numbers_state(3, (const double[]){p->best, (double)p->wait, (double)p->cooldown_left});
}
static mix_status plateau_set_state(void *context, mix_model *model, mix_list *state) {
  plateau *p = context;
  double numbers[3];
  if (!mix_numbers_of_state(state, 3, numbers, "reduce_lr_on_plateau")) return mix_error();
  p->best = numbers[0];
  p->wait = (int64_t)numbers[1];
  p->cooldown_left = (int64_t)numbers[2];
  return MIX_OK;
}

#define FIELD(member) MIX_FIELD(mix_reduce_lr_on_plateau_options, member)
static const mix_field_row fields[] = {
    MIX_MONITOR_FIELD(mix_reduce_lr_on_plateau_options),
    {FIELD(factor), &mix_field_number, .number = 0.1},
    {FIELD(patience), &mix_field_integer, .number = 10, .range = MIX_NOT_NEGATIVE},
    MIX_MODE_FIELD(mix_reduce_lr_on_plateau_options),
    {FIELD(min_delta), &mix_field_number, .number = 1e-4},
    {FIELD(cooldown), &mix_field_integer, .range = MIX_NOT_NEGATIVE},
    {FIELD(min_lr), &mix_field_number},
    {0}};
MIX_CALLBACK_KIND(reduce_lr_on_plateau, fields)

mix_callback *mix_reduce_lr_on_plateau_with(const mix_reduce_lr_on_plateau_options *given) {
  mix_reduce_lr_on_plateau_options options;
  if (!mix_callback_resolve(&mix_reduce_lr_on_plateau_kind, given, &options)) return NULL;
  if (!(options.factor < 1))
    return mix_fail_value("reduce_lr_on_plateau: factor is %g; expected a number below 1", options.factor);
  plateau *p = mix_calloc(1, sizeof *p);
  if (!p) return NULL;
  *p =
      (plateau){.options = options, .monitor = mix_monitor_of(MIX_BY_PLATEAU, options.monitor, options.mode)};
  return mix_callback_steers(MIX_CALLBACK_OWN(.name = "ReduceLROnPlateau", .context = p, .release = mix_free,
                                              .on_train_begin = plateau_begin,
                                              .on_epoch_end = plateau_epoch_end,
                                              .get_state = plateau_get_state, .set_state = plateau_set_state),
                             (mix_callback_steering){&mix_reduce_lr_on_plateau_kind, &p->options, NULL});
}
