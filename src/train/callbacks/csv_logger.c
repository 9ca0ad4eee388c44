/* CSVLogger. Rows end with a carriage return and a newline, as Python's csv module writes them. A resumed run
 * continues after the rows that existed when the checkpoint was saved. */
#include "base/alloc.h"
#include "base/error.h"
#include "train/callback.h"
#include "nn/number.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct csv_logger {
  const char *filename; /* interned */
  char separator;
  bool append, has_header; /* has_header: the file already has a header */
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
  mix_free(csv);
}

static mix_status failed(const csv_logger *csv, const char *what) {
  return mix_fail_status(MIX_IO_ERROR, "csv_logger: '%s' cannot be %s: %s", csv->filename, what,
                         strerror(errno));
}

static mix_status csv_begin(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  csv_logger *csv = context;
  struct stat status;
  csv_close(csv);
  csv->count = 0;
  csv->has_header =
      (csv->append || model->resumes) && stat(csv->filename, &status) == 0 && status.st_size > 0;
  csv->file = fopen(csv->filename, csv->append || model->resumes ? "a" : "w");
  return csv->file ? MIX_OK : failed(csv, "opened");
}

static bool add_column(csv_logger *csv, const char *name) {
  if (!mix_reserve(&csv->names, &csv->capacity, csv->count + 1, sizeof *csv->names)) return false;
  csv->names[csv->count++] = name;
  return true;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The columns are the names in the first epoch's logs. If these have no validation values, each column gets a
 * val_ column too, as in Keras: validation may come later. */
static bool choose_columns(csv_logger *csv, const mix_logs *logs) {
  bool validated = false;
  for (int i = 0; i < mix_logs_count(logs); i++) {
    if (!add_column(csv, mix_logs_name(logs, i))) return false;
    validated |= !strncmp(mix_logs_name(logs, i), "val_", 4);
  }
  qsort(csv->names, (size_t)csv->count, sizeof *csv->names, by_name);
  int own = csv->count;
  for (int i = 0; i < own && !validated; i++) {
    char name[256];
    snprintf(name, sizeof name, "val_%s", csv->names[i]);
    const char *kept = mix_intern(name);
    if (!kept || !add_column(csv, kept)) return false;
  }
  return true;
}

static const char *format_value(mix_model *model, mix_logs *logs, const char *name, char *text) {
  if (!mix_logs_has(logs, name)) return "NA";
  const double value = mix_logs_get(logs, name);
  mix_variable *rate = mix_optimizer_learning_rate_variable(mix_model_optimizer(model));
  const bool is_rate =
      rate && model->semantics->learning_rate_log_numpy && !strcmp(name, model->semantics->learning_rate_log);
  return is_rate ? mix_numpy_number(value, mix_variable_dtype(rate), text) : mix_python_float(value, text);
}

static mix_status csv_epoch_end(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  csv_logger *csv = context;
  char number[32];
  if (!csv->count) {
    if (!choose_columns(csv, logs)) return mix_error();
    if (!csv->has_header) {
      fputs("epoch", csv->file);
      for (int i = 0; i < csv->count; i++) fprintf(csv->file, "%c%s", csv->separator, csv->names[i]);
      fputs("\r\n", csv->file);
    }
  }
  fprintf(csv->file, "%lld", (long long)epoch);
  for (int i = 0; i < csv->count; i++)
    fprintf(csv->file, "%c%s", csv->separator, format_value(model, logs, csv->names[i], number));
  fputs("\r\n", csv->file);
  if (fflush(csv->file)) return failed(csv, "written");
  return !ferror(csv->file)
             ? MIX_OK
             : mix_fail_status(MIX_IO_ERROR, "csv_logger: '%s' is incomplete: an earlier write failed",
                               csv->filename);
}

static mix_status csv_end(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  csv_close(context);
  return MIX_OK;
}

/* The column names, each followed by a newline, and the length of the file. */
static mix_list *csv_get_state(void *context) {
  csv_logger *csv = context;
  size_t size = 1, used = 0;
  for (int i = 0; i < csv->count; i++) size += strlen(csv->names[i]) + 1;
  char *names = mix_calloc(1, size);
  if (!names) return NULL;
  for (int i = 0; i < csv->count; i++)
    used += (size_t)snprintf(names + used, size - used, "%s\n", csv->names[i]);
  int64_t length = csv->file && !fseek(csv->file, 0, SEEK_END) ? ftell(csv->file) : 0;
  mix_list *state = mix_list_of(mix_tensor_from(names, MIX_UINT8, MIX_SHAPE((int64_t)used)),
                                mix_tensor_from(&length, MIX_INT64, MIX_SHAPE(1)));
  mix_free(names);
  return state;
}

static bool take_columns(csv_logger *csv, const char *names, size_t size) {
  csv->count = 0;
  for (size_t start = 0, i = 0; i < size; i++) {
    if (names[i] != '\n') continue;
    char name[512];
    snprintf(name, sizeof name, "%.*s", (int)(i - start), names + start);
    const char *kept = mix_intern(name);
    if (!kept || !add_column(csv, kept)) return false;
    start = i + 1;
  }
  return true;
}

/* Cuts rows written after the checkpoint: this run writes them again. A file that has become shorter is
 * kept. */
static mix_status csv_set_state(void *context, mix_model *model, mix_list *state) {
  csv_logger *csv = context;
  int64_t length;
  struct stat status;
  mix_tensor *names = mix_list_get(state, 0),
             *end = mix_list_count(state) == 2 ? mix_list_get(state, 1) : NULL;
  if (!end || mix_tensor_dtype(names) != MIX_UINT8 || mix_tensor_read(end, MIX_INT64, &length, 1) != MIX_OK)
    return mix_fail_status(MIX_VALUE_ERROR, "csv_logger: the state in the checkpoint is another's");
  const char *text = mix_tensor_data(names);
  if (!text || !take_columns(csv, text, (size_t)mix_shape_size(mix_tensor_shape(names)))) return mix_error();
  if (fstat(fileno(csv->file), &status) != 0) return failed(csv, "examined");
  if (status.st_size > length && ftruncate(fileno(csv->file), length) != 0)
    return failed(csv, "cut to its length at the checkpoint");
  if (status.st_size < length)
    mix_log_message(MIX_LOG_WARNING,
                    "csv_logger: '%s' is shorter than it was at the checkpoint; rows are missing",
                    csv->filename);
  csv->has_header = status.st_size > 0 && length > 0;
  if (!csv->has_header) csv->count = 0; /* the header must be written */
  return MIX_OK;
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_csv_logger_options, filename), &mix_field_text, .required = true},
    {MIX_FIELD(mix_csv_logger_options, separator), &mix_field_text, .text = ","},
    {MIX_FIELD(mix_csv_logger_options, append), &mix_field_boolean},
    {0}};
MIX_CALLBACK_KIND(csv_logger, fields)

mix_callback *mix_csv_logger_with(const mix_csv_logger_options *given) {
  mix_csv_logger_options options;
  if (!mix_callback_resolve(&mix_csv_logger_kind, given, &options)) return NULL;
  if (!*options.filename) return mix_fail_type("csv_logger: filename is empty; expected a name");
  if (strlen(options.separator) != 1)
    return mix_fail_value("csv_logger: separator is '%s'; expected one character", options.separator);
  csv_logger *csv = mix_calloc(1, sizeof *csv);
  if (!csv) return NULL;
  csv->filename = options.filename;
  csv->separator = *options.separator;
  csv->append = options.append;
  return MIX_CALLBACK_OWN(.name = "CSVLogger", .context = csv, .release = csv_release,
                          .on_train_begin = csv_begin, .on_epoch_end = csv_epoch_end, .on_train_end = csv_end,
                          .get_state = csv_get_state, .set_state = csv_set_state);
}
