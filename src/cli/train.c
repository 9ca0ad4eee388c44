#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static void log_step(void *context, const mix_step_record *record) { cli_step_log_write(context, record); }

/* "0=3,7=0.25" */
static bool parse_class_weights(const char *text, mix_fit_options *fit) {
  while (text && *text) {
    char *end;
    long label = strtol(text, &end, 10);
    if (end == text || *end != '=' || fit->class_weight_count == MIX_CLASS_MOST) return false;
    text = end + 1;
    double weight = strtod(text, &end);
    if (end == text || (*end && *end != ',')) return false;
    fit->class_labels[fit->class_weight_count] = label;
    fit->class_weights[fit->class_weight_count++] = weight;
    text = *end ? end + 1 : end;
  }
  return true;
}

static bool train_fit(const cli_options *options, mix_model *model, const cli_data *data, cli_history *history, cli_step_log *log) {
  mix_fit_options fit = {.size = sizeof fit,
                         .x = data->x_train,
                         .y = data->y_train,
                         .batch_size = options->batch_size,
                         .epochs = options->epochs ? options->epochs : options->steps ? INT64_MAX / 2 : 1,
                         .validation_split = options->validation_split,
                         .no_shuffle = options->no_shuffle,
                         .seed = options->has_seed ? options->seed + 1 : 0,
                         .verbose = options->verbose < 0 ? 0 : options->verbose == 0 ? MIX_SILENT : (int)options->verbose,
                         .steps = options->steps,
                         .on_step = options->step_log ? log_step : NULL,
                         .context = log};
  if (!parse_class_weights(options->class_weight, &fit)) {
    fprintf(stderr, "mixtape train: --class-weight: '%s' given; expected LABEL=WEIGHT,LABEL=WEIGHT,... (at most %d)\n", options->class_weight, MIX_CLASS_MOST);
    exit(CLI_USAGE);
  }
  mix_history *fitted = mix_model_fit_with(model, &fit);
  for (int64_t e = 0; e < mix_history_epochs(fitted); e++) {
    const mix_logs *logs = mix_history_epoch(fitted, e);
    for (int i = 0; i < mix_logs_count(logs); i++) cli_history_add(history, e, mix_logs_name(logs, i), mix_logs_value(logs, i));
  }
  history->steps = mix_history_steps(fitted);
  return fitted != NULL;
}

static int run(const cli_options *options) {
  cli_data data;
  cli_history history = {0};
  cli_step_log log;
  if (!cli_setup(options) || !cli_load_data(options, &data)) return cli_fail();
  mix_model *model = cli_make_model(options, data.width);
  if (!model || cli_compile(options, model) != MIX_OK) return cli_fail();
  if (!cli_step_log_open(&log, options->step_log)) return CLI_FAILED;
  history.start_seconds = cli_seconds();
  bool good = !strcmp(options->loop, "custom") ? cli_train_custom(options, model, &data, &history, &log)
                                               : train_fit(options, model, &data, &history, &log);
  history.train_seconds = cli_seconds() - history.start_seconds;
  if (!cli_step_log_close(&log, options->step_log)) return CLI_FAILED;
  mix_logs *test = NULL;
  if (good && options->save) mix_model_save_weights(model, options->save);
  if (good && data.x_test && mix_error() == MIX_OK)
    test = mix_model_evaluate(model, data.x_test, data.y_test, .batch_size = options->batch_size, .verbose = MIX_SILENT);
  int code = mix_error() == MIX_OK ? cli_report(options, &history, test) : cli_fail();
  cli_history_free(&history);
  return code;
}

int cli_train(int argc, char **argv) {
  cli_options options;
  int code = cli_parse("train", CLI_TRAIN, argc, argv, &options);
  if (code) return code < 0 ? CLI_OK : code;
  mix_scope *scope = mix_scope_begin();
  code = run(&options);
  mix_scope_end(scope);
  return code;
}
