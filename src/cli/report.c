/* Results: the object of --json, the guide's lines, the log of steps. Numbers that are not finite are strings in JSON. */
#include "cli/cli.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void cli_history_add(cli_history *history, int64_t epoch, const char *name, double value) {
  int column = 0;
  while (column < history->count && strcmp(history->names[column], name)) column++;
  if (column == history->count) {
    if (column == (int)(sizeof history->names / sizeof *history->names)) return;
    history->names[history->count++] = strdup(name);
  }
  if (epoch >= history->epochs) history->epochs = epoch + 1;
  double *grown = realloc(history->values[column], sizeof *grown * (size_t)history->epochs);
  if (!grown) return;
  grown[epoch] = value;
  history->values[column] = grown;
}

void cli_history_free(cli_history *history) {
  for (int i = 0; i < history->count; i++) {
    free((char *)history->names[i]);
    free(history->values[i]);
  }
}

static json_t *number(double value) {
  if (isnan(value)) return json_string("nan");
  if (isinf(value)) return json_string(value > 0 ? "inf" : "-inf");
  return json_real(value);
}

/* ---- the log of steps ---- */

bool cli_step_log_open(cli_step_log *log, const char *path) {
  *log = (cli_step_log){.file = NULL};
  if (!path) return true;
  if ((log->file = fopen(path, "w"))) return true;
  fprintf(stderr, "mixtape: --step-log: cannot write '%s': %s\n", path, strerror(errno));
  return false;
}

void cli_step_log_write(cli_step_log *log, const mix_step_record *record) {
  if (log->first_step == 0) log->first_step = cli_seconds();
  if (!log->file) return;
  json_t *line = json_object();
  json_object_set_new(line, "step", json_integer(record->step));
  json_object_set_new(line, "loss", number(record->loss));
  for (int i = 0; i < mix_logs_count(record->metrics); i++)
    json_object_set_new(line, mix_logs_name(record->metrics, i), number(mix_logs_value(record->metrics, i)));
  json_object_set_new(line, "applied", json_boolean(record->applied));
  json_object_set_new(line, "iterations", json_integer(record->iterations));
  if (record->has_loss_scale) json_object_set_new(line, "loss_scale", number(record->loss_scale));
  if (record->has_good_steps) json_object_set_new(line, "good_steps", json_integer(record->good_steps));
  if (json_dumpf(line, log->file, JSON_COMPACT) || fputc('\n', log->file) == EOF || fflush(log->file)) log->failed = true;
  json_decref(line);
}

bool cli_step_log_close(cli_step_log *log, const char *path) {
  if (!log->file) return true;
  bool good = fclose(log->file) == 0 && !log->failed;
  if (!good) fprintf(stderr, "mixtape: --step-log: '%s' could not be written whole: %s\n", path, strerror(errno));
  return good;
}

/* ---- the end of a run ---- */

static json_t *history_object(const cli_history *history) {
  json_t *object = json_object();
  for (int i = 0; i < history->count; i++) {
    json_t *values = json_array();
    for (int64_t e = 0; e < history->epochs; e++) json_array_append_new(values, number(history->values[i][e]));
    json_object_set_new(object, history->names[i], values);
  }
  return object;
}

static json_t *logs_object(const mix_logs *logs) {
  json_t *object = json_object();
  for (int i = 0; i < mix_logs_count(logs); i++) json_object_set_new(object, mix_logs_name(logs, i), number(mix_logs_value(logs, i)));
  return object;
}

int cli_report(const cli_options *options, const cli_history *history, const mix_logs *test) {
  if (!options->json) {
    for (int i = 0; test && i < mix_logs_count(test); i++) {
      const char *name = mix_logs_name(test, i);
      printf("Test %s: %.17g\n", name, mix_logs_value(test, i));
    }
    return CLI_OK;
  }
  json_t *object = json_object();
  json_object_set_new(object, "policy", json_string(options->policy));
  json_object_set_new(object, "device", json_string(mix_device()));
  json_object_set_new(object, "accumulate", json_string(mix_accumulate()));
  json_object_set_new(object, "history", history_object(history));
  if (test) json_object_set_new(object, "test", logs_object(test));
  json_object_set_new(object, "steps", json_integer(history->steps));
  json_t *seconds = json_object();
  json_object_set_new(seconds, "start", json_real(history->start_seconds));
  json_object_set_new(seconds, "train", json_real(history->train_seconds));
  json_object_set_new(object, "seconds", seconds);
  json_dumpf(object, stdout, JSON_COMPACT);
  putchar('\n');
  json_decref(object);
  return CLI_OK;
}
