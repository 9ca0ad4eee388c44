/* CSVLogger. Rows end with a carriage return and a newline, as Python's csv module writes them. */
#include "base/alloc.h"
#include "base/error.h"
#include "model/callback.h"
#include "nn/number.h"
#include <errno.h>
#include <sys/stat.h>

typedef struct csv_logger {
  char *filename; /* a copy */
  char separator;
  bool append, again; /* again: the header stands already */
  FILE *file;
  int count, capacity;
  const char **names; /* interned: the columns after the epoch */
} csv_logger;

static void csv_close(csv_logger *csv) {
  if (csv->file) fclose(csv->file);
  csv->file = NULL;
}
static void csv_release(void *context) {
  csv_logger *csv = context;
  csv_close(csv);
  mix_free(csv->names);
  mix_free(csv->filename);
  mix_free(csv);
}

static mix_status failed(const csv_logger *csv, const char *what) {
  return mix_fail_status(MIX_IO_ERROR, "csv_logger: '%s' cannot be %s: %s", csv->filename, what, strerror(errno));
}

static mix_status csv_begin(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  (void)model, (void)index, (void)logs;
  csv_logger *csv = context;
  struct stat status;
  csv_close(csv);
  csv->count = 0;
  csv->again = csv->append && stat(csv->filename, &status) == 0 && status.st_size > 0;
  csv->file = fopen(csv->filename, csv->append ? "a" : "w");
  return csv->file ? MIX_OK : failed(csv, "opened");
}

static bool add_column(csv_logger *csv, const char *name) {
  if (!mix_reserve(&csv->names, &csv->capacity, csv->count + 1, sizeof *csv->names)) return false;
  csv->names[csv->count++] = name;
  return true;
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The first epoch's names; where validation comes in later epochs only, a column for it of each. */
static bool choose_columns(csv_logger *csv, const mix_model *model, const mix_logs *logs) {
  bool validated = false;
  for (int i = 0; i < mix_logs_count(logs); i++) {
    if (!add_column(csv, mix_logs_name(logs, i))) return false;
    validated |= !strncmp(mix_logs_name(logs, i), "val_", 4);
  }
  qsort(csv->names, (size_t)csv->count, sizeof *csv->names, by_name);
  int own = csv->count;
  for (int i = 0; i < own && model->validates && !validated; i++) {
    char name[256];
    if (!strcmp(csv->names[i], "learning_rate")) continue;
    snprintf(name, sizeof name, "val_%s", csv->names[i]);
    const char *kept = mix_intern(name);
    if (!kept || !add_column(csv, kept)) return false;
  }
  return true;
}

static mix_status csv_epoch_end(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  csv_logger *csv = context;
  char number[32];
  if (!csv->count) {
    if (!choose_columns(csv, model, logs)) return mix_error();
    if (!csv->again) {
      fputs("epoch", csv->file);
      for (int i = 0; i < csv->count; i++) fprintf(csv->file, "%c%s", csv->separator, csv->names[i]);
      fputs("\r\n", csv->file);
    }
  }
  fprintf(csv->file, "%lld", (long long)epoch);
  for (int i = 0; i < csv->count; i++) {
    bool there = mix_logs_has(logs, csv->names[i]);
    fprintf(csv->file, "%c%s", csv->separator, there ? mix_python_float(mix_logs_get(logs, csv->names[i]), number) : "NA");
  }
  fputs("\r\n", csv->file);
  return fflush(csv->file) || ferror(csv->file) ? failed(csv, "written") : MIX_OK;
}

static mix_status csv_end(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  (void)model, (void)index, (void)logs;
  csv_close(context);
  return MIX_OK;
}

mix_callback *mix_csv_logger_with(const mix_csv_logger_options *given) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_csv_logger_options, options, given, "csv_logger");
  if (!options.filename || !*options.filename) return mix_fail(MIX_TYPE_ERROR, "csv_logger: filename is missing");
  if (options.separator && strlen(options.separator) != 1)
    return mix_fail(MIX_VALUE_ERROR, "csv_logger: separator is '%s'; expected one character", options.separator);
  csv_logger *csv = mix_calloc(1, sizeof *csv);
  if (!csv) return NULL;
  csv->filename = mix_strdup(options.filename);
  csv->separator = options.separator ? *options.separator : ',';
  csv->append = options.append;
  return mix_callback_own(&(mix_callback_options){.size = sizeof(mix_callback_options),
                                                  .name = "CSVLogger",
                                                  .context = csv,
                                                  .release = csv_release,
                                                  .on_train_begin = csv_begin,
                                                  .on_epoch_end = csv_epoch_end,
                                                  .on_train_end = csv_end});
}
