/* fit: epochs, steps, validation and callbacks. */
#include "base/error.h"
#include "base/float_modes.h"
#include "base/number.h"
#include "base/philox.h"
#include "data/pipeline/pipeline.h"
#include "optim/shard.h"
#include "train/ranks.h"
#include <math.h>

static bool check_options(const mix_fit_options *o) {
  const struct {
    const char *name, *expected;
    int64_t number;
  } numbers[] = {
      {"batch_size", "a positive number", o->batch_size},
      {"epochs", "a positive number", o->epochs},
      {"initial_epoch", "0 or more", o->initial_epoch},
      {"steps", "0 (no limit) or more", o->steps},
      {"steps_per_epoch", "0 (to the end of the data) or more", o->steps_per_epoch},
      {"validation_steps", "0 (to the end of the data) or more", o->validation_steps},
      {"validation_batch_size", "0 (batch_size) or more", o->validation_batch_size},
      {"validation_freq", "a positive number of epochs", o->validation_freq},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (numbers[i].number < 0)
      mix_fail_value("fit: %s is %lld; expected %s", numbers[i].name, (long long)numbers[i].number,
                     numbers[i].expected);
  if (!(o->validation_split >= 0 && o->validation_split < 1)) {
    char given[32];
    mix_number_write_shortest(given, sizeof given, o->validation_split);
    mix_fail_value("fit: validation_split is %s; expected a number in [0, 1)", given);
  }
  return !mix_failed() && mix_class_weights_check(o->class_weight_count, o->class_weights, "fit") &&
         mix_rank_rows_check(o->rows, "fit");
}

/* Rows [first, first + count) as a new tensor; a whole array is returned unchanged. */
static mix_tensor *rows_of(mix_tensor *array, int64_t first, int64_t count) {
  mix_shape begin = mix_tensor_shape(array), size = begin;
  for (int d = 0; d < begin.rank; d++) begin.dims[d] = 0;
  begin.dims[0] = first;
  size.dims[0] = count;
  return mix_slice(array, begin, size);
}

static mix_list *rows_of_all(mix_list *arrays, int from, int to, int64_t first, int64_t count) {
  mix_list *part = mix_list_new(0, NULL);
  for (int i = from; i < to; i++) mix_list_append(part, rows_of(mix_list_get(arrays, i), first, count));
  return part;
}

/* The inputs as a dict, if they were given as one to a subclassed model. */
static mix_list *as_given(mix_list *inputs, const mix_step_arguments *arguments) {
  mix_list_set_structure(inputs, arguments->input_names);
  return mix_failed() ? NULL : mix_list_pack(inputs);
}

/* NULL in place of labels that were not given. */
static mix_list *given_labels(mix_list *labels, unsigned missing) {
  mix_list *given = missing ? mix_list_new(0, NULL) : labels;
  for (int i = 0; missing && i < mix_list_count(labels); i++)
    mix_list_append(given, missing >> i & 1 ? NULL : mix_list_get(labels, i));
  return given;
}

static bool take_validation_data(mix_fit_state *f) {
  mix_fit_options *o = &f->options;
  f->validation_x = o->validation_x;
  f->validation_y = o->validation_y;
  f->validation_weight = o->validation_sample_weight;
  if (mix_is_dataset(o->validation_x)) return true;
  return mix_data_given(o->validation_x, "fit", "validation_x") &&
         ((!o->validation_y && !mix_model_wants_labels(f->model)) ||
          mix_data_given(o->validation_y, "fit", "validation_y"));
}

/* Takes the last part of the arrays as validation data; `*rows` becomes the number of training rows. */
static bool split(mix_fit_state *f, mix_list *all, int weights, int64_t *rows) {
  int labels = f->model->state->output_count, inputs = mix_list_count(all) - labels - weights;
  int64_t training = (int64_t)floor((double)*rows * (1.0 - f->options.validation_split));
  if (training == 0 || training == *rows) {
    char given[32];
    mix_number_write_shortest(given, sizeof given, f->options.validation_split);
    return mix_fail_value(
        "fit: validation_split %s of %lld rows leaves %s part empty; give more rows or another split", given,
        (long long)*rows, training ? "the validation" : "the training");
  }
  f->validation_x = rows_of_all(all, 0, inputs, training, *rows - training);
  f->validation_x = as_given(f->validation_x, &f->adapter.arguments);
  f->validation_y = given_labels(rows_of_all(all, inputs, inputs + labels, training, *rows - training),
                                 f->adapter.arguments.missing_labels);
  if (weights)
    f->validation_weight =
        rows_of_all(all, inputs + labels, inputs + labels + weights, training, *rows - training);
  *rows = training;
  return !mix_failed();
}

static bool open_adapter(mix_fit_state *f) {
  mix_fit_options *o = &f->options;
  mix_data_adapter_data data = {.x = o->x,
                                .y = o->y,
                                .sample_weight = o->sample_weight,
                                .batch_size = o->batch_size,
                                .steps = o->steps_per_epoch,
                                .rows = o->rows};
  bool given = o->validation_x || o->validation_y;
  if (!given && o->validation_sample_weight)
    return mix_fail_value("fit: validation_sample_weight without validation_x, whose rows it weighs");
  if (given && !take_validation_data(f)) return false;
  if (mix_is_dataset(o->x)) {
    if (o->validation_split > 0 && !given)
      mix_fail_value("fit: validation_split is %g with a data set; it needs arrays: "
                     "give validation_x a data set of its own",
                     o->validation_split);
    return !mix_failed() && mix_data_adapter_open(&f->adapter, f->model, &data, MIX_ADAPTER_TRAIN, "fit");
  }
  f->adapter = (mix_data_adapter){.model = f->model,
                                  .call = "fit",
                                  .use = MIX_ADAPTER_TRAIN,
                                  .steps = o->steps_per_epoch,
                                  .rows = o->rows};
  if (!mix_data_adapter_may_read("fit")) return false;
  mix_list *all = mix_data_adapter_arrays(f->model, &data, MIX_ADAPTER_TRAIN, "fit", &f->adapter.arguments);
  if (!all) return false;
  int64_t rows = mix_tensor_shape(mix_list_get(all, 0)).dims[0];
  if (!given && o->validation_split > 0 && !split(f, all, f->adapter.arguments.weights, &rows)) return false;
  return mix_data_adapter_open_arrays(&f->adapter, all, rows, o->batch_size, f->epochs);
}

static bool prepare(mix_fit_state *f) {
  mix_fit_options *o = &f->options;
  if (!mix_callbacks_open(&f->callbacks, f->model, o->callbacks, "fit") || !open_adapter(f)) return false;
  if (mix_model_set_class_weights(f->model, o->class_weight_count, o->class_labels, o->class_weights,
                                  "fit") != MIX_OK)
    return false;
  f->history->first_epoch = o->initial_epoch;
  f->history->params = (mix_history_params){.verbose = o->verbose, .epochs = f->epochs};
  mix_release(f->model->history);
  f->model->history = mix_retain(f->history);
  f->model->stop_training = false;
  f->model->validates = f->validation_x != NULL;
  return mix_callbacks_show(&f->callbacks, false, o->verbose, f->adapter.target, f->epochs) &&
         mix_model_train_step(f->model) != NULL && mix_backup_open(f);
}

/* Reads back the results of a step for the caller's on_step. */
static void report_step(mix_fit_state *f, mix_list *results, int64_t epoch) {
  mix_compiled_state *state = f->model->state;
  mix_logs *metrics = mix_logs_new();
  for (int i = 0; i < state->metric_count; i++)
    mix_logs_add_result(metrics, state->metrics[i].name, mix_list_get(results, 2 + i));
  mix_step_record record = {.size = sizeof record,
                            .step = f->history->steps,
                            .epoch = epoch,
                            .loss = mix_tensor_item(mix_list_get(results, 0)),
                            .metrics = metrics,
                            .applied = mix_tensor_item(mix_list_get(results, 1)) != 0,
                            .iterations = mix_optimizer_iterations(state->optimizer)};
  mix_tensor *scale = mix_optimizer_loss_scale(state->optimizer);
  mix_variable *good_steps = mix_optimizer_dynamic_counter(state->optimizer);
  if (scale) record.has_loss_scale = true, record.loss_scale = mix_tensor_item(scale);
  if (good_steps)
    record.has_good_steps = true,
    record.good_steps = (int64_t)mix_tensor_item(mix_variable_true_value(good_steps));
  if (!mix_failed()) f->options.on_step(f->options.context, &record);
}

static bool notify_observer(const mix_compiled_state *state, mix_list *results, bool watched) {
  const mix_step_observer *observer = state->observer;
  return !observer || observer->after(observer->context, results, watched, 2 + state->metric_count) == MIX_OK;
}

/* Runs one step; false at the end of the data or on failure. Results are read back only if requested. */
static bool run_step(mix_fit_state *f, int64_t epoch) {
  mix_list *batch = mix_data_adapter_next(&f->adapter);
  int64_t index = f->adapter.position - 1;
  if (!batch || !mix_callbacks_run(&f->callbacks, MIX_ON_TRAIN_BATCH_BEGIN, index, NULL)) return false;
  bool watched;
  mix_list *results = mix_data_adapter_run(&f->adapter, mix_model_fit_step(f->model, &watched), &batch);
  if (!results) return mix_data_adapter_explain(&f->adapter, batch), false;
  if (!mix_model_ranks_agree(f->model, "fit")) return false;
  f->history->steps++;
  if (!notify_observer(f->model->state, results, watched)) return false;
  if (f->options.on_step) report_step(f, results, epoch);
  return mix_callbacks_end_batch(&f->callbacks, MIX_ON_TRAIN_BATCH_END, index) &&
         mix_backup_after_step(f, epoch);
}

static bool end_of_data(mix_fit_state *f) {
  mix_data_adapter *adapter = &f->adapter;
  if (adapter->steps && adapter->position < adapter->steps) {
    bool continues = f->model->semantics->epoch_ends_with_data;
    mix_log_message(MIX_LOG_WARNING,
                    "fit: the data ran out after %lld of %lld steps of the epoch; %s. "
                    "They must be enough for steps_per_epoch * epochs steps: mix_dataset_repeat helps",
                    (long long)adapter->position, (long long)adapter->steps,
                    continues ? "the epoch ends" : "training stops");
    f->ended = !continues;
  } else if (!adapter->position)
    mix_fail_value("fit: the data set gave no batches");
  if (!adapter->steps) adapter->target = adapter->position;
  mix_callbacks_set_target(&f->callbacks, adapter->position);
  if (!f->history->params.steps) f->history->params.steps = adapter->position;
  return !mix_failed();
}

static mix_logs *validate(mix_fit_state *f, int64_t epoch) {
  int64_t every = f->options.validation_freq ? f->options.validation_freq : 1;
  if (!f->validation_x || (epoch + 1) % every) return NULL;
  f->kept_validation.asked |= epoch + every >= f->epochs; /* the last one would copy no less */
  mix_evaluate_options evaluate = {.size = sizeof evaluate,
                                   .x = f->validation_x,
                                   .y = f->validation_y,
                                   .batch_size = f->options.validation_batch_size
                                                     ? f->options.validation_batch_size
                                                 : mix_is_dataset(f->validation_x) ? 0
                                                                                   : f->options.batch_size,
                                   .verbose = MIX_SILENT,
                                   .sample_weight = f->validation_weight,
                                   .steps = f->options.validation_steps,
                                   .callbacks = f->options.callbacks,
                                   .rows = f->options.rows};
  f->model->tests_validation_data = &f->kept_validation;
  mix_logs *logs = mix_model_evaluate_with(f->model, &evaluate);
  f->model->tests_validation_data = NULL;
  return logs;
}

/* Ends an epoch: validation, callbacks, history. */
static bool end_epoch(mix_fit_state *f, int64_t epoch) {
  mix_logs *logs = mix_model_current_logs(f->model), *validation = logs ? validate(f, epoch) : NULL;
  if (mix_failed()) return false;
  if (f->model->semantics->history_keys_sorted) {
    mix_logs_sort(logs);
    if (validation) mix_logs_sort(validation);
  }
  if (validation) mix_logs_merge(logs, validation, "val_");
  mix_optimizer *optimizer = f->model->state->optimizer;
  const bool gathers = f->saves_on != MIX_NO_RANK;
  if (gathers && mix_optimizer_gather_state(optimizer, f->saves_on) != MIX_OK) return false;
  if (!mix_callbacks_run(&f->callbacks, MIX_ON_EPOCH_END, epoch, logs)) return false;
  if (gathers && !mix_shards_drop_gathered(optimizer)) return false;
  mix_list_append(f->history->epochs, logs);
  return !mix_failed();
}

/* Runs the hooks and sets the data position at the start of an epoch, or (resumed) after its first
 * batches. */
static bool begin_epoch(mix_fit_state *f, int64_t epoch) {
  mix_batch_order order = f->options.no_shuffle ? MIX_ORDER_KEPT : MIX_ORDER_ROWS;
  int64_t resumed = f->position;
  f->position = 0;
  if (!resumed && mix_model_reset_metrics(f->model) != MIX_OK) return false;
  if (!mix_callbacks_run(&f->callbacks, MIX_ON_EPOCH_BEGIN, epoch, NULL)) return false;
  if (!resumed) return mix_data_adapter_begin(&f->adapter, order, f->seed, (uint64_t)epoch);
  return mix_backup_resume_epoch(f) &&
         mix_data_adapter_resume(&f->adapter, order, f->seed, (uint64_t)epoch, resumed);
}

static bool run_epoch(mix_fit_state *f, int64_t epoch) {
  int64_t before = f->history->steps - f->position,
          left = f->options.steps ? f->options.steps - before : INT64_MAX;
  if (left < f->position) left = f->position; /* resumed beyond the limit */
  int64_t target = f->adapter.target;
  if (f->options.steps && (target < 0 || left < target)) target = left;
  mix_callbacks_set_target(&f->callbacks, target);
  if (!begin_epoch(f, epoch)) return false;
  bool more = true;
  while (more && f->adapter.position < left && !(f->adapter.position && f->model->stop_training))
    MIX_SCOPE { more = run_step(f, epoch); }
  if (mix_failed() || (!more && !end_of_data(f))) return false;
  bool good = true;
  mix_callbacks_set_input_share(&f->callbacks, mix_data_adapter_waited_share(&f->adapter));
  if (f->adapter.position)
    MIX_SCOPE { good = end_epoch(f, epoch) && mix_backup_after_epoch(f, epoch); }
  return good;
}

static void run(mix_fit_state *f) {
  mix_logs *last = NULL;
  const int64_t target = f->adapter.target;
  mix_callbacks_set_target(&f->callbacks, target);
  if (!f->history->params.steps && target > 0) f->history->params.steps = target;
  int64_t epoch = f->options.initial_epoch;
  bool begun = mix_callbacks_run(&f->callbacks, MIX_ON_TRAIN_BEGIN, 0, NULL) && mix_backup_resume(f, &epoch);
  if (!mix_fit_share_values(f, epoch) || !begun || !mix_fit_find_saving_rank(f)) return;
  /* A run that was stopped stays stopped. */
  bool stopped = f->model->resumes && f->model->stop_training && !f->position;
  /* An epoch cut by `steps` is saved in its middle. If it is resumed with no steps left, its end is run
   * again. */
  const mix_optimizer *optimizer = f->model->state->optimizer;
  const int64_t before = f->history->steps, skipped = mix_optimizer_skipped_steps(optimizer);
  for (; !stopped && epoch < f->epochs && (f->position || !mix_fit_limit_reached(f)) && !f->ended; epoch++)
    if (!run_epoch(f, epoch) || f->model->stop_training) break;
  if (mix_failed() || !mix_shards_gather_weights(f->model->state->optimizer)) return;
  mix_optimizer_warn_unapplied(optimizer, "fit", f->history->steps - before,
                               mix_optimizer_skipped_steps(optimizer) - skipped);
  if (mix_optimizer_finalize_variable_values(f->model->state->optimizer,
                                             mix_model_trainable_variables(f->model)) != MIX_OK)
    return;
  if (mix_history_epochs(f->history))
    last = mix_list_get(f->history->epochs, (int)mix_history_epochs(f->history) - 1);
  if (mix_callbacks_run(&f->callbacks, MIX_ON_TRAIN_END, 0, last)) mix_backup_after_training(f);
  /* A checkpoint leaves them divided. */
  if (f->backup && !mix_failed()) mix_shards_gather_weights(f->model->state->optimizer);
}

static mix_history *fit(mix_model *model, const mix_fit_options *given) {
  if (!mix_model_compiled(model, "fit")) return NULL;
  mix_fit_state f = {.model = model};
  if (!mix_options_copy(&f.options, sizeof f.options, given, "fit") || !check_options(&f.options) ||
      !mix_progress_take_quiet(&f.options.verbose, f.options.quiet, "fit"))
    return NULL;
  f.history = mix_history_new();
  f.seed = f.options.seed ? f.options.seed : mix_next_seed();
  f.epochs = f.options.epochs ? f.options.epochs : 1;
  MIX_SCOPE {
    if (mix_fit_join_ranks(&f, f.history && prepare(&f))) run(&f);
    mix_model_observe(model, NULL);
    mix_data_adapter_close(&f.adapter);
    mix_resident_free(f.kept_validation.resident);
  }
  json_decref(f.data_identity);
  return mix_failed() ? NULL : f.history;
}

mix_history *mix_model_fit_with(mix_model *model, const mix_fit_options *options) {
  MIX_OWN_FLOAT_MODES;
  mix_history *history = NULL;
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, "fit") { history = fit(model, options); }
  return history;
}
