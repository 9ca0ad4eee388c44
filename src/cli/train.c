/* mixtape train. */
#include "cli/cli.h"
#include "formats/file.h"
#include "model/model.h"
#include "train/callback.h"

#include <math.h>
#include <string.h>

static void log_step(void *context, const mix_step_record *record) { cli_step_log_write(context, record); }

int64_t cli_epoch_count(const cli_options *options, int64_t rows) {
  if (options->epochs) return options->epochs;
  if (!options->steps) return 1;
  double training = floor((double)rows * (1.0 - options->validation_split));
  double steps = ceil(training / (double)(options->batch_size ? options->batch_size : 32));
  return steps >= 1 ? (int64_t)ceil((double)options->steps / steps) : 1;
}

/* tf_keras requires a weight for every class. Classes of the model that were not named get weight 1. */
static void weigh_classes(const cli_options *options, const mix_model *model, mix_fit_options *fit) {
  const mix_shape outputs = mix_model_output_shape(model, 0);
  const int64_t classes = outputs.rank > 1 ? outputs.dims[outputs.rank - 1] : 0;
  fit->class_weight_count = options->class_weight_count;
  if (!fit->class_weight_count) return;
  memcpy(fit->class_labels, options->class_labels, sizeof fit->class_labels);
  memcpy(fit->class_weights, options->class_weights, sizeof fit->class_weights);
  for (int64_t label = 0; label < classes; label++) {
    int i = 0;
    while (i < fit->class_weight_count && fit->class_labels[i] != label) i++;
    if (i < fit->class_weight_count || fit->class_weight_count == MIX_CLASS_MAX) continue;
    fit->class_labels[i] = label;
    fit->class_weights[i] = 1;
    fit->class_weight_count++;
  }
}

static int64_t rows_of(void *one_or_list, int i, int *count) {
  const bool list = mix_is(one_or_list, &mix_list_class);
  *count = list ? mix_list_count(one_or_list) : one_or_list != NULL;
  if (!*count) return 0;
  const mix_shape shape = mix_tensor_shape(list ? mix_list_get(one_or_list, i) : one_or_list);
  return shape.rank ? shape.dims[0] : 0;
}

/* Targets whose count is another than that of the examples, which are one batch then (model_data.c). */
static bool has_other_targets(const cli_part *part) {
  int count = 1;
  bool other = false;
  for (int i = 0; i < count; i++) {
    const int64_t rows = rows_of(part->y, i, &count);
    other |= count && rows != cli_part_rows(part);
  }
  return other;
}

mix_fit_options cli_fit_options(const cli_options *options, const mix_model *model, const cli_part *part) {
  mix_fit_options fit = {.size = sizeof fit,
                         .x = part->x,
                         .y = part->y,
                         .sample_weight = part->weights,
                         .batch_size = options->batch_size,
                         .epochs = cli_epoch_count(options, cli_part_rows(part)),
                         .validation_split = options->validation_split,
                         .no_shuffle = options->no_shuffle,
                         .seed = options->seed,
                         .verbose = MIX_SILENT,
                         .steps = options->steps};
  if (has_other_targets(part)) {
    fit.x = mix_dataset_from_element(mix_list_of(part->x, part->y));
    fit.y = NULL;
    fit.batch_size = 0;
  }
  weigh_classes(options, model, &fit);
  return fit;
}

static mix_status save_beside(void *data, const char *path) { return cli_save_columns(data, path); }

static void add_callbacks(const cli_options *options, const cli_data *data, mix_fit_options *fit) {
  if (options->callback_count || options->tensorboard || options->checkpoint)
    fit->callbacks = mix_list_new(0, NULL);
  for (int i = 0; i < options->callback_count; i++) {
    if (mix_distribution_rank(mix_distribution_current()) && cli_callback_is_local(options->callbacks[i]))
      continue;
    mix_callback *callback = mix_callback_from_text(options->callbacks[i]);
    mix_model_checkpoint_notify(callback, save_beside, (void *)data);
    mix_list_append(fit->callbacks, callback);
  }
  if (options->tensorboard)
    mix_list_append(fit->callbacks, mix_tensorboard(options->tensorboard, .histogram_freq = 1));
  if (options->checkpoint)
    mix_list_append(fit->callbacks,
                    mix_backup_and_restore(options->checkpoint, .save_freq = options->checkpoint_freq,
                                           .keep_checkpoint = true, .force = options->force));
}

static bool train_fit(const cli_options *options, mix_model *model, const cli_data *data,
                      cli_history *history, cli_step_log *log) {
  mix_fit_options fit = cli_fit_options(options, model, &data->train);
  fit.verbose = cli_verbose(options);
  fit.on_step = log->file ? log_step : NULL;
  fit.context = log;
  fit.validation_x = data->validation.x;
  fit.validation_y = data->validation.y;
  add_callbacks(options, data, &fit);
  mix_history *fitted = mix_model_fit_with(model, &fit);
  for (int64_t e = 0; e < mix_history_epochs(fitted); e++) {
    const mix_logs *logs = mix_history_epoch(fitted, e);
    for (int i = 0; i < mix_logs_count(logs); i++)
      cli_history_add(history, e, mix_logs_name(logs, i), mix_logs_value(logs, i));
  }
  history->steps = mix_history_steps(fitted);
  return fitted != NULL;
}

int cli_check_checkpoint(const cli_options *options) {
  if (!options->checkpoint) return CLI_OK;
  int64_t step = mix_checkpoint_latest(options->checkpoint);
  if (mix_error() != MIX_OK) return cli_fail();
  const char *reason = mix_folder_unwritable_reason(options->checkpoint);
  if (reason) {
    cli_say("train", "--checkpoint: cannot write to '%s': %s", options->checkpoint, reason);
    return CLI_FAILED;
  }
  if (step < 0 && options->resume && !mix_distribution_rank(mix_distribution_current()))
    fprintf(stderr, "checkpoint: %s holds none yet; training begins\n", options->checkpoint);
  if (step < 0 || options->resume) return CLI_OK;
  cli_say("train",
          "--checkpoint: %s holds a checkpoint of step %lld; give --resume to go on from there, or name "
          "another folder",
          options->checkpoint, (long long)step);
  return CLI_FAILED;
}

int cli_check_output(const char *command, const char *option, const char *path) {
  const char *reason =
      !strcmp(option, "save") ? cli_unwritable_reason(path) : mix_file_unwritable_reason(path);
  if (!reason) return CLI_OK;
  cli_say(command, "--%s: cannot write '%s': %s", option, path, reason);
  return CLI_FAILED;
}

static int run(cli_options *options) {
  cli_data data;
  int code = options->save ? cli_check_output("train", "save", options->save) : CLI_OK;
  if (!code && options->save_lora) code = cli_check_output("train", "save-lora", options->save_lora);
  if (!code) code = cli_check_checkpoint(options);
  mix_model *model;
  if (!code) code = cli_prepare(options, CLI_TRAIN, &data, &model);
  if (!code) code = cli_check_folder("train", options->save, model);
  if (!code && !cli_describe_lora(options, model, &data.train)) code = cli_fail();
  if (code) return code;
  cli_step_log log;
  if (!cli_step_log_open(&log, options->step_log, options->resume)) return CLI_FAILED;
  cli_history history = {.start_seconds = cli_seconds()};
  bool good = !strcmp(options->loop, "custom") ? cli_train_custom(options, model, &data, &history, &log)
                                               : train_fit(options, model, &data, &history, &log);
  history.train_seconds = cli_seconds() - history.start_seconds;
  bool whole = cli_step_log_close(&log);
  if (!good) code = cli_fail();
  if (good && options->gathers && mix_optimizer_gather_state(mix_model_optimizer(model), 0) != MIX_OK)
    return cli_fail();
  /* Failures from here on are reported and set the exit code, but the results are still printed. */
  if (good && options->save && cli_save(model, options->save, options->max_shard_size) != MIX_OK)
    whole = cli_fail() == CLI_OK;
  if (good && options->save && whole && cli_save_columns(&data, options->save) != MIX_OK)
    whole = cli_fail() == CLI_OK;
  if (good && options->save_lora && mix_model_save_lora(model, options->save_lora) != MIX_OK)
    whole = cli_fail() == CLI_OK;
  mix_logs *test = NULL;
  if (good && data.test.x) {
    test = mix_model_evaluate(model, data.test.x, data.test.y, .batch_size = options->batch_size,
                              .verbose = MIX_SILENT, .sample_weight = data.test.weights);
    if (!test) whole = cli_fail() == CLI_OK;
  }
  if (good && !mix_distribution_rank(mix_distribution_current()))
    code = cli_report(options, model, &history, test);
  cli_history_free(&history);
  return code ? code : whole ? CLI_OK : CLI_FAILED;
}

int cli_train(int argc, char **argv) {
  cli_options options;
  cli_hold_messages(argc, argv);
  int code = cli_parse("train", CLI_TRAIN, argc, argv, &options);
  if (!code) cli_watch_rank(&options);
  mix_scope *scope = mix_scope_begin();
  if (!code) code = cli_setup(&options);
  code = cli_join_ranks(&options, code);
  if (!code) code = cli_trace_begin(&options); /* of rank 0 alone */
  if (!code) code = cli_trace_end(&options, run(&options));
  code = cli_leave_ranks(code);
  mix_scope_end(scope);
  return code < 0 ? CLI_OK : code;
}
