/* Results: the JSON object of --json, the lines of the guide, the step log. Non-finite numbers are strings in
 * JSON. */
#include "base/json.h"
#include "base/number.h"
#include "base/format.h"
#include "cli/cli.h"
#include "model/model.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COLUMNS = sizeof((cli_history){0}).columns / sizeof(struct cli_column) };

static struct cli_column *column_named(cli_history *history, const char *name) {
  for (int i = 0; i < history->count; i++)
    if (!strcmp(history->columns[i].name, name)) return &history->columns[i];
  char *copy = history->count < COLUMNS ? strdup(name) : NULL;
  if (!copy) return NULL;
  history->columns[history->count] = (struct cli_column){.name = copy};
  return &history->columns[history->count++];
}

bool cli_history_add(cli_history *history, int64_t epoch, const char *name, double value) {
  struct cli_column *column = column_named(history, name);
  if (!column) return false;
  if (epoch >= column->epochs) {
    double *grown = realloc(column->values, sizeof *grown * (size_t)(epoch + 1));
    if (!grown) return false;
    for (int64_t e = column->epochs; e < epoch; e++) grown[e] = NAN;
    column->values = grown;
    column->epochs = epoch + 1;
  }
  column->values[epoch] = value;
  if (epoch >= history->epochs) history->epochs = epoch + 1;
  return true;
}

void cli_history_free(cli_history *history) {
  for (int i = 0; i < history->count; i++) {
    free(history->columns[i].name);
    free(history->columns[i].values);
  }
}

/* ---- the step log ---- */

/* If the path names standard output (/dev/stdout), its descriptor is duplicated. A new open would have its
 * own position, and the two would overwrite each other. */
bool cli_step_log_open(cli_step_log *log, const char *path, bool resumes) {
  *log = (cli_step_log){.path = path, .resumes = resumes};
  if (!path) return true;
  struct stat status, out;
  const bool exists = stat(path, &status) == 0;
  const bool standard =
      exists && fstat(STDOUT_FILENO, &out) == 0 && status.st_dev == out.st_dev && status.st_ino == out.st_ino;
  log->fresh = exists && !standard && S_ISREG(status.st_mode);
  const int copy = standard ? dup(STDOUT_FILENO) : -1;
  if ((log->file = copy >= 0 ? fdopen(copy, "w") : fopen(path, log->fresh ? "r+" : "w"))) return true;
  cli_say("", "--step-log: cannot write '%s': %s", path, strerror(errno));
  return false;
}

/* Reported once. Training continues; the exit code shows the failure. */
static void step_log_failed(cli_step_log *log) {
  if (!log->failed) /* jansson runs out of memory without setting errno */
    cli_say("", "--step-log: '%s' could not be written whole: %s", log->path,
            strerror(errno ? errno : ENOMEM));
  log->failed = true;
}

/* Truncates the log at the first written step, so a run that ends earlier keeps the old file. A killed run
 * may have logged steps after its checkpoint: a resumed run keeps the lines before `step` and writes the
 * others again. */
static bool keep_steps_before(cli_step_log *log, int64_t step) {
  rewind(log->file);
  long end = 0;
  int64_t lines = 0;
  if (!log->resumes) step = 1;
  for (int c; lines + 1 < step && (c = getc(log->file)) != EOF;)
    if (c == '\n') {
      lines++;
      end = ftell(log->file);
    }
  log->fresh = false;
  return end >= 0 && fseek(log->file, end, SEEK_SET) == 0 && ftruncate(fileno(log->file), end) == 0;
}

void cli_step_log_write(cli_step_log *log, const mix_step_record *record) {
  if (!log->file || log->failed) return;
  errno = 0;
  if (log->fresh && !keep_steps_before(log, record->step)) {
    step_log_failed(log);
    return;
  }
  json_t *line = json_object();
  int lost = json_object_set_new(line, "step", json_integer(record->step));
  lost |= json_object_set_new(line, "loss", mix_json_real(record->loss));
  for (int i = 0; i < mix_logs_count(record->metrics); i++)
    lost |= json_object_set_new(line, mix_logs_name(record->metrics, i),
                                mix_json_real(mix_logs_value(record->metrics, i)));
  lost |= json_object_set_new(line, "applied", json_boolean(record->applied));
  lost |= json_object_set_new(line, "iterations", json_integer(record->iterations));
  if (record->has_loss_scale)
    lost |= json_object_set_new(line, "loss_scale", mix_json_real(record->loss_scale));
  if (record->has_good_steps)
    lost |= json_object_set_new(line, "good_steps", json_integer(record->good_steps));
  errno = 0;
  if (lost || json_dumpf(line, log->file, JSON_COMPACT) || fputc('\n', log->file) == EOF || fflush(log->file))
    step_log_failed(log);
  json_decref(line);
}

bool cli_step_log_close(cli_step_log *log) {
  if (!log->file) return true;
  if (fclose(log->file)) step_log_failed(log);
  return !log->failed;
}

/* ---- the end of a run ---- */

const char *cli_number_text(double value, char *text, size_t size) {
  for (int digits = 15; digits <= 17; digits++) {
    mix_number_write(text, size, 'g', digits, value);
    if (!isfinite(value) || mix_number_read(text, NULL) == value) break;
  }
  size_t used = strlen(text);
  if (isfinite(value) && !strpbrk(text, ".e") && used + 3 <= size) snprintf(text + used, size - used, ".0");
  return isnan(value) ? "nan" : text;
}

static json_t *history_object(const cli_history *history) {
  json_t *object = json_object();
  for (int i = 0; i < history->count; i++) {
    const struct cli_column *column = &history->columns[i];
    json_t *values = json_array();
    for (int64_t e = 0; e < history->epochs; e++)
      mix_json_append(values, mix_json_real(e < column->epochs ? column->values[e] : NAN));
    mix_json_set(object, column->name, values);
  }
  return object;
}

static json_t *logs_object(const mix_logs *logs) {
  json_t *object = json_object();
  for (int i = 0; i < mix_logs_count(logs); i++)
    mix_json_set(object, mix_logs_name(logs, i), mix_json_real(mix_logs_value(logs, i)));
  return object;
}

/* The dtype of most matrix products of the run. */
static mix_dtype compute_dtype(const cli_options *options, mix_model *model) {
  if (options->graph_rewrite) return mix_dtype_from_name(options->graph_rewrite);
  mix_layer *layer = mix_model_main_layer(model);
  return layer ? mix_layer_compute_dtype(layer) : mix_policy_compute_dtype(mix_model_policy(model));
}

int cli_report(const cli_options *options, mix_model *model, const cli_history *history,
               const mix_logs *test) {
  if (!options->json) {
    char text[64];
    for (int i = 0; i < mix_logs_count(test); i++)
      printf("Test %s: %s\n", MIX_PRINTABLE(mix_logs_name(test, i)),
             cli_number_text(mix_logs_value(test, i), text, sizeof text));
    return CLI_OK;
  }
  json_t *object = json_object();
  mix_json_set(object, "policy", json_string(options->policy));
  mix_json_set(object, "device", json_string(mix_device()));
  const int64_t examples = options->batch_size ? options->batch_size : MIX_DEFAULT_BATCH;
  const mix_kernel_info service = mix_model_kernel_info(model, compute_dtype(options, model), examples);
  mix_json_set(object, "accumulate", json_string(service.accumulation));
  if (options->jit_compile) mix_json_set(object, "jit_compile", json_true());
  if (history) mix_json_set(object, "history", history_object(history));
  if (test) mix_json_set(object, "test", logs_object(test));
  if (history) {
    mix_json_set(object, "steps", json_integer(history->steps));
    json_t *seconds = json_object();
    mix_json_set(seconds, "start", json_real(history->start_seconds));
    mix_json_set(seconds, "train", json_real(history->train_seconds));
    mix_json_set(object, "seconds", seconds);
  }
  /* The kernel of the model's largest product, and why. After the members that every version has. */
  mix_json_set(object, "products",
               json_pack("{s:s, s:s}", "kernel", service.kernel, "why", service.description));
  if (!(object = mix_json_whole(object))) return cli_fail();
  bool written = json_dumpf(object, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF;
  json_decref(object);
  return written ? CLI_OK : CLI_FAILED;
}
